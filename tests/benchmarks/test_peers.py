"""The methods of the comparison on a small set with a known answer."""

from functools import partial

import numpy as np
import pytest

from benchmarks import libraries, peers, splits
from benchmarks.fairness_sets import Set
from benchmarks.libraries import Scored
from benchmarks.linear_post import calibrated, linear_post, multipliers
from setminus import ProxyPrincipal, TunedOrthogonalClassifier, equalized_odds_gap
from setminus.records import read_records


def scored(rows, seed, groups=2):
    """A score that is calibrated in each group, with more informative scores in some groups than in others."""
    rng = np.random.default_rng(seed)
    u = rng.integers(0, groups, rows)
    logit = rng.normal(0.8 * u - 0.8, 1 + u / groups, rows)
    p = 1 / (1 + np.exp(-logit))
    y = (rng.random(rows) < p).astype(int)
    known = np.eye(groups)[u]
    return Scored(np.column_stack([1 - p, p]), y, u.astype(str), np.stack([known, known], axis=1))


def gap(predictions, rows):
    return equalized_odds_gap(rows.y, predictions, sensitive_features=rows.u, agg="max")


@pytest.fixture(scope="module")
def halves():
    return scored(6000, 0), scored(6000, 1)


def test_linear_post_without_a_constraint_is_the_base_model(halves):
    tune, test = halves
    for inferred, same in ((True, 0.999), (False, 0.97)):
        # known groups are calibrated again, which moves a few rows
        (answer,) = linear_post(tune, test, [1.0], 0, inferred=inferred)
        assert (answer.predictions == test.decisions).mean() > same


def test_linear_post_meets_the_tolerance_and_beats_a_common_cut(halves):
    tune, test = halves
    base = gap(test.decisions, test)
    for inferred in (False, True):
        (answer,) = linear_post(tune, test, [0.02], 0, inferred=inferred)
        assert gap(answer.predictions, test) < 0.08 < base
        assert np.mean(answer.predictions == test.y) > 0.6


def test_known_groups_are_calibrated_first(halves):
    _, test = halves
    first = test.u == "0"
    tilted = test.proba[:, 1] ** np.where(first, 0.5, 1)
    wrong = Scored(np.column_stack([1 - tilted, tilted]), test.y, test.u)
    right = calibrated(wrong, wrong)
    assert abs(right.proba[first, 1].mean() - test.y[first].mean()) < 0.01
    assert abs(tilted[first].mean() - test.y[first].mean()) > 0.1


def test_the_multipliers_solve_the_problem_that_a_grid_solves():
    rows = scored(400, 2)
    gain = rows.proba[:, 1] - rows.proba[:, 0]
    joint = (rows.proba[:, :, None] * rows.given).transpose(0, 2, 1).reshape(400, -1)
    cells = joint / joint.mean(axis=0)
    weights = multipliers(gain, cells, 0.05)

    def value(w):
        # the dual: what the best decisions earn less the price of the constraint
        spread = np.abs(w.reshape(-1, 2)).sum() * 0.05 / 2
        return np.maximum(0, gain - cells @ w).mean() + spread

    # multipliers of one label sum to zero, because the centre is free
    assert np.allclose(weights.reshape(-1, 2).sum(axis=0), 0, atol=1e-6)
    grid = [np.array([-a, -b, a, b]) for a in np.linspace(-0.3, 0.3, 61) for b in np.linspace(-0.3, 0.3, 61)]
    found = value(weights)
    assert found <= min(map(value, grid)) + 1e-6
    assert found < value(np.zeros(4)) - 1e-4


@pytest.mark.parametrize("name", ["error_parity", "oxonfair"])
def test_relaxed_libraries_reduce_the_gap(halves, name):
    pytest.importorskip(name)
    tune, test = halves
    correct = {
        "error_parity": partial(libraries.error_parity, seed=0),
        "oxonfair": partial(libraries.oxonfair, agg="max"),
    }[name]
    tight, loose = correct(tune, test, (0.02, 0.9))
    assert gap(tight.predictions, test) < 0.08 < gap(loose.predictions, test)


def small(name):
    rng = np.random.default_rng(0)
    u = rng.integers(0, 2, 600)
    x = rng.normal(size=(600, 3)) + 0.5 * u[:, None]
    y = (x.sum(axis=1) + rng.normal(size=600) > 0.7).astype(int)
    return Set(x, y, u.astype(str), np.zeros(3, dtype=bool), name, "development", "made")


def test_a_run_continues_and_names_what_failed(monkeypatch, tmp_path):
    monkeypatch.setattr(splits, "load", small)
    records = tmp_path / "records.jsonl"
    broken = peers.Method("broken", lambda task: [][0], tolerances=(None,))
    chosen = [m for m in peers.METHODS if m.name in ("base", "LinearPost (written here), group")]
    with pytest.raises(RuntimeError, match="made, seed 0, broken: IndexError"):
        peers.run(["made"], [0], [broken, *chosen], records)
    first = read_records(records)
    assert {r["name"] for r in first} == {m.name for m in chosen}
    assert len(first) == 1 + len(peers.TOLERANCES)
    assert first[0]["config"]["set"] == "made" and first[0]["config"]["groups"] == 2
    peers.run(["made"], [0, 1], chosen, records)
    assert read_records(records)[: len(first)] == first
    assert len(read_records(records)) == 2 * len(first)


def test_kept_scores_are_used_again(monkeypatch, tmp_path):
    monkeypatch.setattr(splits, "load", small)
    first = splits.split("made", 0, tmp_path).scored(inferred=True)
    monkeypatch.setattr(splits.Task, "_label_scores", None)
    monkeypatch.setattr(splits.Task, "_group_scores", None)
    again = splits.split("made", 0, tmp_path).scored(inferred=True)
    assert np.array_equal(first[0].given, again[0].given) and np.array_equal(first[1].proba, again[1].proba)
    with pytest.raises(TypeError):
        splits.split("made", 1, tmp_path).scored(inferred=True)
    assert np.allclose(first[0].with_groups[:, 2:].sum(axis=1), 1)


def test_rows_of_a_split_are_in_one_part_only(monkeypatch):
    monkeypatch.setattr(splits, "load", small)
    task = splits.split("made", 0)
    assert len(task.train.y) + len(task.test.y) == 600
    assert not {*map(tuple, task.train.x)} & {*map(tuple, task.test.x)}


def test_remembered_models_repeat_the_shared_scores_in_any_fold(monkeypatch):
    monkeypatch.setattr(splits, "load", small)
    task = splits.split("made", 0)
    label, group, rows, new_rows = task.remembered()
    tune, test, _ = task.scored(inferred=True)
    model = TunedOrthogonalClassifier(label, ProxyPrincipal(group, method="mixture"), tolerance=0.3)
    model.fit(rows, task.train.y, sensitive_features=task.train.u)
    assert model.predict(new_rows).shape == task.test.y.shape
    label, group = label.fit(rows, task.train.y), group.fit(rows, task.train.u)
    assert np.array_equal(label.predict_proba(rows), tune.proba)
    assert np.array_equal(label.predict_proba(new_rows), test.proba)
    assert np.array_equal(group.predict_proba(new_rows[::-1]), test.with_groups[::-1, 2:])
    # each score comes from a model that has not seen the row: one that has would be surer of the label
    seen = task.model.fit(task.train.x, task.train.y)
    assert (tune.decisions == task.train.y).mean() < seen.score(task.train.x, task.train.y) - 0.02
