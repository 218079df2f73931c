"""The tables and the section of table 3 show the numbers of its records, and no text of them as markup."""

import re
import subprocess
import sys

import numpy as np
import pytest
from setminus_paper.report.domain_adaptation import (
    charts,
    commands,
    distances,
    domain_adaptation_section,
    frame_of,
    gain_rows,
    reversed_rows,
    shift_rows,
    summary,
)

from setminus.report import page
from tests.made_adaptation import STEPS, made_record, made_records

SCRIPT = "<script>alert(1)</script>"
START = "setminus reproduce table3 --scale quick --seeds"


def records_of(pair="svhn-mnist", seeds=3, **accuracies):
    papers = {"source_only": 0.7, "vada": 0.79, "vada_iw": 0.871, "vada_orthogonal_em": 0.88}
    return [
        made_record(method, value + 0.01 * seed, pair=pair, seed=seed, paper=papers.get(method))
        for method, value in accuracies.items()
        for seed in range(seeds)
    ]


@pytest.fixture(scope="module")
def records():
    drawn = made_records("drawn_digits-svhn", seeds=1, other_source="the paper's source is SYN-DIGITS")
    curve = [
        made_record(method, 0.6 + gain, pair="mnist-usps", seed=seed, shift=0.95)
        for method, gain in (("vada", 0), ("vada_orthogonal_em", 0.1))
        for seed in range(2)
    ]
    return [*made_records(), *drawn, *made_records("mnist-usps", seeds=2), *curve]


@pytest.fixture(scope="module")
def section(records):
    return domain_adaptation_section(records)


@pytest.fixture(scope="module")
def body(records):
    pytest.importorskip("vl_convert")
    html = page.build_page(records)
    return html[html.index("<main") : html.index("</main>")]


def test_gains_are_those_over_vada_and_over_no_adaptation():
    won = records_of("a-b", source_only=0.5, vada=0.6, vada_orthogonal_em=0.7)
    lost = records_of("c-d", seeds=1, source_only=0.5, vada=0.6, vada_orthogonal_em=0.55)
    first, second = gain_rows(frame_of([*won, *lost])).to_dict("records")
    assert first["ours.vada"] == "+10.0 (+10.0 to +10.0)" and first["ours.source_only"].startswith("+20.0 (")
    assert (second["ours.vada"], second["seeds"], first["paper"]) == ("-5.0", 1, "+9.0")
    assert first["papers.vada"] == "" and first["as_paper"] == "3 of 3" and second["as_paper"] == "2 of 3"


def test_an_order_that_differs_from_the_papers_is_listed():
    turned = reversed_rows(frame_of(records_of(source_only=0.5, vada=0.7, vada_iw=0.6, vada_orthogonal_em=0.8)))
    (one,) = turned
    assert one["comparison"] == "VADA + IW less VADA" and one["here"].startswith("-10.0 (")
    assert (one["paper"], one["clear"]) == ("+8.1", "yes")
    assert reversed_rows(frame_of(records_of(source_only=0.5, vada=0.6, vada_iw=0.7, vada_orthogonal_em=0.8))) == []
    (level,) = reversed_rows(frame_of(records_of(seeds=1, vada=0.6, vada_iw=0.6)))
    assert (level["here"], level["clear"]) == ("+0.0", "one seed")
    # the estimates are one row of the paper, and a pair that it lacks has no order
    assert gain_rows(frame_of(made_records()))["as_paper"].tolist() == ["10 of 10"]
    assert gain_rows(frame_of(made_records("mnist-usps")))["as_paper"].tolist() == [""]


def test_distances_are_those_at_the_selected_evaluation():
    far = made_record("vada_orthogonal_bbse", 0.5, seed=1)
    far["metrics"]["step"] = STEPS[0]
    methods = ("vada", "vada_orthogonal_em", "vada_orthogonal_bbse")
    heads, rows = distances(frame_of([*(made_record(method, 0.5) for method in methods), far]))
    assert heads == ["pair", "source's", "equal", "EM", "BBSE"]
    near = 40 * np.linspace(1, 0.1, len(STEPS))[-2]
    assert rows == [["svhn-mnist, 70/30", "40", "20", f"{near:.0f}", f"{(near + 40) / 2:.0f}"]]
    assert distances(frame_of([made_record("vada", 0.5)]))[1] == []


def test_each_estimate_has_its_own_row_by_the_shift():
    gains = {"vada_orthogonal_em": {0.5: 0.0, 0.7: 0.1, 0.9: 0.2}, "vada_orthogonal_bbse": {0.5: 0.02, 0.9: 0.12}}
    records = [made_record("vada", 0.6, seed=seed, shift=shift) for shift in (0.5, 0.7, 0.9) for seed in range(3)]
    for method, by_shift in gains.items():
        records += [made_record(method, 0.6 + g, seed=seed, shift=s) for s, g in by_shift.items() for seed in range(3)]
    ((heads, (chosen, em, bbse)),) = shift_rows(frame_of(records))
    assert heads == ["svhn-mnist", "50/50", "70/30", "90/10", "slope per 10 points of shift"]
    assert em[2] == "+10.0 (+10.0 to +10.0)" and em[-1] == "+5.0 (+5.0 to +5.0)"
    # a shift without both estimates has no choice
    assert chosen[2] == "" == bbse[2] and bbse[-1] == "+2.5 (+2.5 to +2.5)"


def test_commands_repeat_all_records():
    records = made_records()
    assert commands(records) == [records[0]["command"]]
    usual = [made_record("vada", 0.5, pair="a-b", seed=seed) for seed in range(3)]
    more = [
        made_record(method, 0.5, pair="c-d", seed=seed, shift=shift) | {"command": "another"}
        for method, seeds, shifts in (("vada", 5, (0.7, 0.5)), ("vada_iw", 4, (0.7,)), ("adda", 4, (0.7,)))
        for seed in range(seeds)
        for shift in shifts
    ]
    assert commands([*usual, *more]) == [
        f"{START} 3",
        f"{START} 4 --pairs c-d --shifts 0.7 --methods adda,vada_iw",
        f"{START} 5 --pairs c-d --shifts 0.5,0.7 --methods vada",
    ]
    assert commands([*usual, *(one for one in more if one["config"]["method"] == "vada")]) == [
        f"{START} 3",
        f"{START} 5 --pairs c-d --shifts 0.5,0.7",
    ]


def test_the_summary_has_means_beside_the_paper_at_its_own_shift_only():
    records = [
        *(made_record("vada", value, seed=seed, paper=0.9) for seed, value in enumerate((0.6, 0.8))),
        made_record("vada_orthogonal_em", 0.9),
        made_record("vada", 0.5, shift=0.95, paper=0.9),
    ]
    assert summary(records) == [
        ("svhn-mnist, 70/30, VADA: accuracy, %", "90.0", "70.0 ± 14.1; test_oracle 72.0 ± 14.1"),
        ("svhn-mnist, 70/30, VADA + w_x \\ w_1 (EM): accuracy, %", "", "90.0; test_oracle 92.0"),
        ("svhn-mnist, 95/5, VADA: accuracy, %", "", "50.0; test_oracle 52.0"),
    ]
    assert len(charts(records)) == 1
    assert len(charts([*records, made_record("vada_orthogonal_em", 0.8, shift=0.95)])) == 3


def test_both_rules_have_their_tables_pairs_with_several_seeds_first(section):
    assert section["rows"].startswith("pairs: 3, seeds: 1 to 3, ")
    information, oracle = section["blocks"]
    assert (information["rule"], oracle["rule"]) == ("information", "test_oracle")
    several, one = information["tables"]
    assert several["heads"] == ["svhn-mnist", "mnist-usps"] and one["heads"] == ["drawn_digits-svhn"]
    cells = {row["method"]: row["cells"] for row in several["rows"]}
    assert [*cells][-1] == "vada_orthogonal_chosen" and cells["vada_orthogonal_chosen"][0]["picked"] == "EM"
    assert cells["vada"][0]["vada"] == "" and cells["vada"][0]["paper"] == "74.0"
    assert re.fullmatch(r"\+\d\.\d \(\+\d\.\d to \+\d\.\d\)", cells["vada_iw"][0]["vada"])
    single = {row["method"]: row["cells"] for row in one["rows"]}
    assert "(" not in single["vada_iw"][0]["vada"] and "±" not in single["vada_iw"][0]["text"]


def test_a_method_that_a_pair_lacks_has_an_empty_cell():
    pairs = [records_of(pair, vada=0.6, vada_orthogonal_em=0.7) for pair in ("svhn-mnist", "mnist-usps")]
    section = domain_adaptation_section([*pairs[0], *pairs[1], made_record("dann", 0.5)])
    (dann,) = [row for row in section["blocks"][0]["tables"][0]["rows"] if row["method"] == "dann"]
    assert dann["cells"][0]["text"] == "50.0" and dann["cells"][1] is None


def test_figures_are_of_the_pairs_with_several_seeds_or_else_of_all(records, section):
    titles = [plot.chart.title for plots in section["plots"].values() for plot in plots]
    assert any("mnist-usps: accuracy on each class" in title for title in titles)
    assert not any("drawn_digits" in title for title in titles)
    alone = domain_adaptation_section([one for one in records if one["config"]["pair"] == "drawn_digits-svhn"])
    assert len(alone["views"]) == 1 and "shift" not in alone["headings"]


def test_the_page_has_the_numbers_and_the_settings(records, body):
    values = [one["metrics"]["accuracy"] for one in records if one["config"]["method"] == "vada"][:3]
    found = re.search(r'data-method="vada" data-rule="information".*?data-value="([^"]+)"', body, flags=re.S)
    assert float(found[1]) == pytest.approx(np.mean(values))
    assert re.search(r"\b24 channels\b.*\b1,000 steps\b.*\b10,000 images\b", body) and "SYN-DIGITS" in body


@pytest.mark.parametrize("many", [False, True])
def test_hostile_text_stays_text(many):
    pytest.importorskip("vl_convert")
    classes = (SCRIPT, *(f"<b>{k}</b>" for k in range(20 if many else 5)))
    records = made_records(f"{SCRIPT}-b", classes=classes, other_source=SCRIPT)
    for one in records:
        one["metrics"]["row"]["label"] += SCRIPT
        one |= {"claim": SCRIPT, "command": SCRIPT}
    html = page.build_page(records)
    assert SCRIPT not in html and "<b>0" not in html and "&lt;script&gt;alert(1)" in html


def test_a_class_has_one_color_in_legend_and_figure(section):
    (view, _) = section["views"]
    assert [entry["name"] for entry in view["legend"]] == list("0123456789")
    point = view["plots"][0].spec["layer"][0]["data"]["values"][0]
    assert point["colour"] == view["legend"][0]["colour"]


def test_it_needs_no_torch():
    code = "import sys, setminus_paper.report.tables_page; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
