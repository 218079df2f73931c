"""Ours beside skada on rows with other class frequencies: rows, runs, and the tables of the page."""

import numpy as np
import pytest
from sklearn import get_config

from benchmarks.peers_page import ADAPTER, adapter_tables
from setminus.datasets.split import Split

PEER = "skada OTMapping"


def record(name, seed, accuracy, shift=0.7, pair="optical-usps"):
    return {
        "name": name,
        "config": {"pair": pair, "shift": shift},
        "seed": seed,
        "versions": {},
        "command": "python -m benchmarks adapters",
        "metrics": {"accuracy": accuracy},
        "seconds": 2.0 + seed,
    }


def made(peer_at_50, peer_at_85):
    lines = []
    for seed in range(5):
        for shift, peer in ((0.5, peer_at_50), (0.85, peer_at_85)):
            wobble = 0.01 * (-1) ** seed
            lines += [record(ADAPTER, seed, 0.7, shift), record(PEER, seed, peer + wobble, shift)]
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
    (row,) = adapter_tables(made(peer_at_50=0.699, peer_at_85=0.4))["gains"]
    assert row == [PEER, "-0.1 level", "+29.8 win"]
    (row,) = adapter_tables(made(peer_at_50=0.7, peer_at_85=0.9))["gains"]
    assert row[2] == "-20.2 lose"


def test_every_method_has_a_row_with_as_many_cells_as_heads():
    found = adapter_tables(made(0.7, 0.4))
    assert {len(row) for row in found["rows"]} == {len(found["heads"])}
    assert found["rows"][0] == [ADAPTER, "70.0 ± 0.0", "70.0 ± 0.0", "70.0", "4.0"]


def test_a_setting_that_is_half_measured_and_other_settings_of_ours_are_left_out():
    other = f"{ADAPTER}, shrinkage=0.5"
    whole = made(0.7, 0.4)
    half = record(PEER, 0, 0.9, shift=0.95)
    assert adapter_tables([*whole, half])["heads"] == adapter_tables(whole)["heads"]
    found = adapter_tables([*whole, *({**one, "name": other} for one in whole if one["name"] == PEER)])
    assert other in [row[0] for row in found["rows"]] and other not in [row[0] for row in found["gains"]]


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
