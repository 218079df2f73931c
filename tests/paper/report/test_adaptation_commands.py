"""What to type for the records of table 3, whole or in parts."""

from setminus_paper.report.adaptation_commands import repeat_commands

from tests.made_adaptation import made_record, made_records


def test_what_was_measured_in_parts_is_repeated_as_a_whole():
    records = made_records()
    assert repeat_commands(records) == [records[0]["command"]]
    part = {**records[0], "command": f"{records[0]['command']} --pairs svhn-mnist"}
    whole = "setminus reproduce table3 --scale quick --seeds 3"
    assert repeat_commands([part, *records[1:]]) == [whole]
    curve = [
        made_record("vada", 0.5, shift=shift, seed=seed) | {"command": "a curve's"}
        for shift in (0.95, 0.5)
        for seed in range(3)
    ]
    assert repeat_commands([*records, *curve]) == [whole, f"{whole} --pairs svhn-mnist --shifts 0.5,0.95"]


def test_a_pair_with_more_seeds_than_others_has_a_command_of_its_own():
    usual = [made_record("vada", 0.5, pair="a-b", seed=seed) for seed in range(3)]
    more = [
        made_record("vada", 0.5, pair="c-d", seed=seed, shift=shift) | {"command": "another"}
        for seed in range(6)
        for shift in (0.7, 0.5)
    ]
    start = "setminus reproduce table3 --scale quick --seeds"
    assert repeat_commands([*usual, *more]) == [f"{start} 3", f"{start} 6 --pairs c-d --shifts 0.5,0.7"]
    assert repeat_commands([more[1], made_record("vada", 0.5, pair="a-b", shift=0.5)]) == [
        f"{start} 1 --pairs c-d --shifts 0.5",
        f"{start} 1 --pairs a-b --shifts 0.5",
    ]


def test_methods_with_more_seeds_than_others_have_a_command_of_their_own():
    usual = [made_record("vada", 0.5, pair="a-b", seed=seed) for seed in range(3)]
    more = [
        made_record(method, 0.5, pair="c-d", seed=seed, shift=shift) | {"command": "another"}
        for method, seeds, shifts in (("vada", 5, (0.7, 0.5)), ("vada_iw", 4, (0.7,)), ("adda", 4, (0.7,)))
        for seed in range(seeds)
        for shift in shifts
    ]
    start = "setminus reproduce table3 --scale quick --seeds"
    assert repeat_commands([*usual, *more]) == [
        f"{start} 3",
        f"{start} 4 --pairs c-d --shifts 0.7 --methods adda,vada_iw",
        f"{start} 5 --pairs c-d --shifts 0.5,0.7 --methods vada",
    ]
