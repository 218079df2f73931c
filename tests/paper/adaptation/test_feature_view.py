"""The map of features: it shows what is there, looks at no label, and leaves the training as it was."""

import json
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from setminus_paper.adaptation import table3
from setminus_paper.adaptation.feature_view import FeatureView, _spread, flat_features, two_dimensions
from setminus_paper.adaptation.pairs import shifted_pair

from setminus.datasets.split import Split
from setminus.nn.passes import fast_precision
from setminus.nn.training import TrainingConfig, train

SIZE = table3.Size(width=4, photograph_width=4, steps=10, warmup=3, epochs=0, evaluations=5, seen_rows=40)


@pytest.fixture(scope="module")
def pair():
    def images(n, seed):
        pixels = np.random.default_rng(seed).integers(0, 255, (n, 16, 16, 1), dtype=np.uint8)
        # sorted by class, as some sets come
        return Split(x=pixels, y=np.arange(n) * 4 // n)

    return shifted_pair(images(320, 0), images(160, 1), images(400, 2), ("a", "b", "c", "d"))


def trained(pair, scoring=None, observed=True):
    task, steps = table3.make_task(pair.data, "mnist-usps", "vada_orthogonal_em", SIZE, seed=0)
    view = FeatureView(task, scoring or pair.scoring)
    kept = []

    def observe(step, values):
        view(step, values)
        kept.append((step, view._before))

    train(task, TrainingConfig(steps=steps, log_every=1), observers=[observe] if observed else [])
    weights = torch.cat(
        [part.flatten().double() for one in task.modules.values() for part in one.state_dict().values()]
    )
    return view, kept, weights


@pytest.fixture(scope="module")
def seen(pair):
    return trained(pair)


def test_before_is_the_end_of_the_warm_up_and_after_the_end(pair, seen):
    view, kept, _ = seen
    warmup = view.task.config.warmup
    assert 1 < warmup < len(kept)
    assert all(features is None for step, features in kept if step < warmup)
    (first,) = {id(features): features for step, features in kept if step >= warmup}.values()
    # what the networks make of the rows by now is something else
    assert not np.allclose(view._features(), first)


def test_before_is_the_end_of_a_warm_up_that_no_evaluation_is_at(pair):
    found = table3.adapted(pair, "mnist-usps", "vada", SIZE, seed=0, viewed=True)
    assert SIZE.warmup not in found["curves"]["step"]
    task, _ = table3.make_task(pair.data, "mnist-usps", "vada", SIZE, seed=0)
    train(task, TrainingConfig(steps=SIZE.warmup, precision=fast_precision()))
    alone = two_dimensions(FeatureView(task, pair.scoring)._features()).round(2).tolist()
    assert found["features"]["before"]["xy"] == alone


def test_the_views_are_plain_and_have_both_domains_and_all_classes(pair, seen):
    metrics = seen[0].metrics()
    assert set(metrics) == {"before", "after"} and metrics["before"]["xy"] != metrics["after"]["xy"]
    assert len(json.dumps(metrics, allow_nan=False)) < 20_000
    held_out = pair.data.held_out_labels.tolist()
    for one in metrics.values():
        assert len(one["xy"]) == len(one["class"]) == len(one["domain"])
        assert one["domain"] == [0] * len(held_out) + [1] * 150
        assert one["class"][:-150] == held_out
        shares = np.bincount(pair.scoring.labels) / len(pair.scoring.labels)
        assert np.bincount(one["class"][-150:]) / 150 == pytest.approx(shares, abs=0.02)


def test_whoever_looks_on_changes_nothing_and_the_points_need_no_label(pair, seen):
    _, _, weights = seen
    assert torch.equal(weights, trained(pair, observed=False)[2])
    noise = np.random.default_rng(0).integers(0, 4, len(pair.scoring.labels))
    view, _, others = trained(pair, scoring=replace(pair.scoring, labels=noise))
    assert torch.equal(weights, others)
    assert np.array_equal(view._features(), seen[0]._features())
    # the negative control: the colors are theirs
    assert not np.array_equal(view._classes[1], seen[0]._classes[1])


def test_a_training_that_ends_within_the_warm_up_has_no_view(pair):
    task, _ = table3.make_task(pair.data, "mnist-usps", "vada", SIZE, seed=0)
    view = FeatureView(task, pair.scoring)
    view(1, {})
    with pytest.raises(ValueError, match=r"step 3, the end of the warm-up, was not observed: train for longer"):
        view.metrics()


def test_without_held_out_rows_those_of_the_source_are_shown(pair):
    data = replace(pair.data, held_out=None, held_out_labels=None)
    task, _ = table3.make_task(data, "mnist-usps", "source_only", SIZE, seed=0)
    view = FeatureView(task, pair.scoring)
    view(task.config.warmup, {})
    assert view.metrics()["before"]["domain"].count(0) == min(150, len(data.source))


def test_features_of_rows_by_their_own_statistics_have_the_mean_of_the_layer():
    norm = torch.nn.BatchNorm2d(2)
    x = torch.randn(50, 2, 4, 4, generator=torch.Generator().manual_seed(0)) * 3 + 7
    own, running = (flat_features(norm, x, own_statistics=flag) for flag in (True, False))
    assert own.shape == (50, 32)
    assert own.mean() == pytest.approx(0, abs=1e-5) and running.mean() == pytest.approx(7, abs=0.5)
    assert norm.running_mean.tolist() == [0, 0] and norm.training


def test_clusters_stay_clusters_in_two_dimensions():
    rng = np.random.default_rng(0)
    which = np.arange(90) % 3
    features = rng.normal(size=(90, 40)) + 8 * rng.normal(size=(3, 40))[which]
    places = two_dimensions(features)
    assert np.array_equal(places, two_dimensions(features))
    assert nearest_agree(places, which) == 1
    # the negative control: of clusters that are none
    assert nearest_agree(two_dimensions(rng.normal(size=(90, 40))), which) < 0.6


def nearest_agree(places, which):
    distances = np.linalg.norm(places[:, None] - places[None], axis=-1) + np.diag(np.full(len(places), np.inf))
    return np.mean(which[distances.argmin(axis=1)] == which)


def test_few_rows_are_refused():
    with pytest.raises(ValueError, match=r"features have shape \(3, 2\): expected four rows or more"):
        two_dimensions(np.zeros((3, 2)))


def test_rows_are_spread_over_the_whole_set():
    assert _spread(3).tolist() == [0, 1, 2]
    rows = _spread(4_001)
    assert len(rows) == len(set(rows.tolist())) == 150 and (rows[0], rows[-1]) == (0, 4_000)
