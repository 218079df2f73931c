"""Ours beside skada on rows with another class mix: what is dealt, what is run, what the page says of it."""

import numpy as np
import pytest
from sklearn import get_config

from benchmarks import adapter_tables
from setminus.datasets.split import Split

PEER = "skada OTMapping"


def record(name, seed, accuracy, shift=0.7, pair="optical-usps"):
    return {
        "name": name,
        "config": {"pair": pair, "shift": shift},
        "seed": seed,
        "command": "python -m benchmarks adapters",
        "metrics": {"accuracy": accuracy},
        "seconds": 2.0 + seed,
    }


def made(peer_at_50, peer_at_85):
    lines = []
    for seed in range(5):
        for shift, peer in ((0.5, peer_at_50), (0.85, peer_at_85)):
            wobble = 0.01 * (-1) ** seed
            lines += [record(adapter_tables.OURS, seed, 0.7, shift), record(PEER, seed, peer + wobble, shift)]
    return lines


@pytest.fixture
def adapters(monkeypatch):
    pytest.importorskip("torch")
    from benchmarks import adapters

    def blobs(turn, seed):
        rng = np.random.default_rng(seed)
        y = np.repeat(np.arange(4), 100)
        return Split(x=rng.normal(scale=0.3, size=(400, 2)) + np.column_stack([y, turn * y]), y=y)

    monkeypatch.setattr(adapters, "_SETS", {"optical": lambda: blobs(0.0, 0), "usps": lambda: blobs(0.2, 1)})
    return adapters


def test_a_peer_wins_or_loses_beyond_the_noise_and_is_level_within_it():
    text = adapter_tables.section(made(peer_at_50=0.699, peer_at_85=0.4))
    (verdict,) = [line for line in text.splitlines() if line.startswith(f"- **{PEER}**")]
    assert verdict == f"- **{PEER}**: we win on optical-usps at 85/15 (+29.8); level on optical-usps at 50/50 (-0.1)."
    assert "we lose on optical-usps at 85/15 (-20.2)" in adapter_tables.section(made(peer_at_50=0.7, peer_at_85=0.9))


def test_every_method_has_a_line_of_the_table_with_as_many_cells_as_heads():
    text = adapter_tables.section(made(0.7, 0.4))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in lines}) == 1
    (ours,) = [line for line in lines if line.startswith(f"| {adapter_tables.OURS} |")]
    assert ours.endswith("| 70.0 ± 0.0 | 70.0 ± 0.0 | 70.0 | 4.0 |")


def test_a_setting_that_is_half_measured_and_other_settings_of_ours_are_left_out():
    other = f"{adapter_tables.OURS}, shrinkage=0.5"
    whole = made(0.7, 0.4)
    half = record(PEER, 0, 0.9, shift=0.95)
    assert adapter_tables.section([*whole, half]) == adapter_tables.section(whole)
    text = adapter_tables.section([*whole, *({**one, "name": other} for one in whole if one["name"] == PEER)])
    assert f"| {other} |" in text and f"- **{other}**" not in text


def test_the_target_has_the_mix_of_the_source_turned_round_and_scored_rows_are_not_fitted_on(adapters):
    rows = adapters.digits("optical-usps", 0.85, seed=0)
    of_source = rows.sample_domain > 0
    assert np.mean(rows.y[of_source] < 2) == pytest.approx(0.85, abs=0.02)
    assert np.mean(rows.labels < 2) == pytest.approx(0.15, abs=0.07)
    assert set(rows.y[~of_source]) == {-1}
    assert not {*map(tuple, rows.X)} & {*map(tuple, rows.scored)}


def test_of_an_even_pair_the_target_alone_is_shifted(adapters):
    rows = adapters.digits("even optical-usps", 0.95, seed=0)
    assert np.mean(rows.y[rows.sample_domain > 0] < 2) == pytest.approx(0.5, abs=0.02)
    assert np.mean(rows.labels < 2) == pytest.approx(0.05, abs=0.05)


def test_a_run_goes_on_where_it_was(adapters, tmp_path, monkeypatch):
    names = [f"setminus {method}" for method in ("source_only", "vada_orthogonal")]
    asked = []
    monkeypatch.setattr(
        adapters, "METHODS", {name: lambda rows, seed, name=name: asked.append(name) or rows.labels for name in names}
    )
    path = tmp_path / "records.jsonl"
    adapters.run((0,), path)
    settings = sum(map(len, adapters.SHIFTS.values()))
    assert len(asked) == len(names) * settings
    adapters.run((0,), path)
    assert len(asked) == len(names) * settings
    adapters.run((0,), path, again="vada")
    assert asked[-1] == "setminus vada_orthogonal"
    assert len(asked) == (len(names) + 1) * settings


def test_skada_is_run_as_it_comes_and_leaves_scikit_learn_as_it_was(adapters):
    pytest.importorskip("skada")
    rows = adapters.digits("optical-usps", 0.5, seed=0)
    before = get_config()
    for name in ("SVC, no adaptation", "skada LinearOTMapping", "skada JDOT", "skada MMDTarSReweight"):
        found = adapters.measured(name, rows, "optical-usps", 0.5, 0)
        assert found["metrics"]["accuracy"] > 0.6, name
        assert found["versions"]["skada"]
    assert get_config() == before
