"""Table 3 on made images: what is planned, what is recorded, and that no label of the target has a say in it."""

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.manifold import TSNE

pytest.importorskip("torch")

import torch
from setminus_paper.adaptation import table3
from setminus_paper.adaptation.settings import FIRST_SEED, paper_accuracy, shifted_pair
from setminus_paper.adaptation.table3 import FeatureView, _spread, flat_features, two_dimensions
from setminus_paper.published import TABLE3

from setminus.datasets.split import Split
from setminus.nn.passes import fast_precision
from setminus.nn.training import TrainingConfig, train

SIZE = table3.Size(width=4, photograph_width=4, steps=6, warmup=2, epochs=0, batch=16, evaluations=3, seen_rows=40)
LARGE = replace(SIZE, average=0.5, held_out=0.1, first_estimate=2, source_steps=6, scored="weighted", selection="last")
FIRST_ADAPTED = {"source_only": 0, "cycada": 2}
"""Of three evaluations, where it is not the second."""
CLASSES = ("left", "right", "top", "bottom")


def made(n, seed, ink):
    """A bar at one of four edges."""
    y = np.arange(n) % 4
    x = np.random.default_rng(seed).integers(0, 60, (n, 16, 16, 1), dtype=np.uint8)
    for k, place in enumerate((np.s_[:, :, :4], np.s_[:, :, 12:], np.s_[:, :4], np.s_[:, 12:])):
        bars = x[y == k]
        bars[place] = ink
        x[y == k] = bars
    return Split(x=x, y=y)


def whole_pair(options):
    options = {name: options[name] for name in ("held_out", "score_all")}
    return shifted_pair(made(320, 0, 250), made(160, 1, 180), made(80, 2, 180), CLASSES, **options)


@pytest.fixture(scope="module")
def pair():
    return shifted_pair(made(320, 0, 250), made(160, 1, 180), made(80, 2, 180), CLASSES)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", autouse=True)
def quick_views():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table3, "TSNE", partial(TSNE, max_iter=250))
        yield


@pytest.fixture(scope="module")
def found(pair):
    seeds, about = (FIRST_SEED,), {"pair": "svhn-mnist", "shift": 0.7, "size": SIZE}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table3, "load_pair", lambda name, **options: pair)
        return {method: next(table3.measure(seeds, method=method, **about)) for method in table3.METHODS}


def test_records_are_plain_and_small(found):
    for metrics in found.values():
        assert len(json.dumps(metrics, allow_nan=False)) < 30_000
        assert metrics["rows"] == {"source": 128, "held_out": 32, "target": 80, "scored": 40}
        assert metrics["precision"] == fast_precision()


def test_each_selection_is_one_of_the_evaluations(found):
    for method, metrics in found.items():
        curves = metrics["curves"]
        assert curves["step"] == [2, 4, 6] == metrics["losses"]["step"]
        chosen = curves["step"].index(metrics["step"])
        # the domains meet after two steps, for CyCADA after four; without adaptation they never do
        counted = curves["information"][FIRST_ADAPTED.get(method, 1) :]
        assert metrics["selection"] == "information" and metrics["information"] == max(counted)
        assert metrics["accuracy"] == curves["accuracy"][chosen] <= metrics["test_oracle"]["accuracy"]
        assert metrics["test_oracle"]["accuracy"] == max(curves["accuracy"])
        assert metrics["last"] == {"accuracy": curves["accuracy"][-1], "step": 6}


def test_accuracy_is_the_mean_over_classes_by_their_true_frequency(found, pair):
    shares = np.bincount(pair.scoring.labels) / len(pair.scoring.labels)
    for metrics in found.values():
        assert np.dot(metrics["class_accuracy"], shares) == pytest.approx(metrics["accuracy"], abs=1e-3)


def test_class_frequencies_are_recorded_beside_the_true_ones(found):
    for method, metrics in found.items():
        prior = metrics["prior"]
        assert sum(prior["target"][:2]) == pytest.approx(0.3)
        assert sum(prior["source"][:2]) == pytest.approx(0.7, abs=0.01)
        assert [sum(one) for one in prior["predicted"]] == pytest.approx([1, 1, 1], abs=1e-3)
        if method.startswith(("vada_iw", "vada_orthogonal")):
            assert [sum(one) for one in prior["estimated"]] == pytest.approx([1, 1, 1], abs=1e-3)
        else:
            assert prior["estimated"] is None


def test_features_are_recorded_of_the_viewed_methods_for_one_seed_at_the_papers_shift(found, pair, monkeypatch):
    assert {method for method, metrics in found.items() if "features" in metrics} == {*table3.VIEWED_METHODS}
    for method in table3.VIEWED_METHODS:
        before, after = (found[method]["features"][when] for when in ("before", "after"))
        assert before["domain"] == after["domain"] == [0] * 32 + [1] * 40
        assert before["xy"] != after["xy"] and len(before["xy"]) == 72
        assert after["class"][32:] == pair.scoring.labels.tolist()
    monkeypatch.setattr(table3, "load_pair", lambda name, **options: pair)
    of_vada = {"pair": "mnist-usps", "method": "vada", "size": SIZE}
    for seed, shift in ((FIRST_SEED + 1, 0.7), (FIRST_SEED, 0.5)):
        (other,) = table3.measure((seed,), shift=shift, **of_vada)
        assert "features" not in other


def test_methods_differ_and_the_papers_number_stands_beside_them(found):
    assert found["vada"]["row"]["paper"] == 0.79 and found["vada_iw"]["row"]["paper"] == 0.871
    assert found["dann"]["row"]["paper"] is None
    ends = {method: tuple(metrics["losses"]["classifier"]) for method, metrics in found.items() if method != "adda"}
    # the first estimates of EM and of BBSE may agree on so few rows; nothing else may
    assert len({*ends.values()}) >= len(ends) - 1


@pytest.mark.parametrize("method", table3.METHODS)
def test_labels_of_the_target_as_noise_change_nothing_but_the_score(method, pair):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 4, len(pair.scoring.labels))
    noisy = replace(pair.scoring, labels=noise, target_prior=rng.dirichlet(np.ones(4)))
    size, runs = replace(SIZE, steps=4), []
    for scoring in (pair.scoring, noisy):
        task, steps = table3.make_task(pair.data, "mnist-usps", method, size, seed=0, scoring=scoring)
        outcome = train(task, TrainingConfig(steps=steps, log_every=0, evaluate_every=4))
        states = [module.state_dict().values() for module in task.modules.values()]
        runs.append((torch.cat([part.double().flatten() for state in states for part in state]), outcome))
    (first, seen), (second, otherwise) = runs
    assert torch.equal(first, second)
    assert table3.select(seen.evaluations) == table3.select(otherwise.evaluations)
    # the negative control: the score does look at them
    scores, others = ([one["accuracy"] for one in found.evaluations] for found in (seen, otherwise))
    assert scores != others


def test_selection_prefers_sure_and_varied_answers():
    sure, same = np.eye(4), np.tile([1.0, 0, 0, 0], (4, 1))
    undecided = np.full((4, 4), 0.25)
    scores = [{"step": step, **table3.information(one)} for step, one in enumerate((same, sure, undecided), start=1)]
    assert table3.select(scores) == 1
    assert scores[1]["information"] == pytest.approx(np.log(4), abs=1e-4)
    # of equal ones the last; the accuracy is not asked
    one, other = ({"step": 1, "information": 1.0, "accuracy": accuracy} for accuracy in (1.0, 0.0))
    assert table3.select([one, other]) == 1


def test_what_was_before_the_domains_met_is_not_selected():
    scores = [{"step": step, "information": information} for step, information in ((2, 3.0), (4, 1.0), (6, 2.0))]
    assert [table3.select(scores, met) for met in (0, 2, 4)] == [0, 2, 2]
    # a run that ends before has nothing else
    assert table3.select(scores, 6) == 0


def test_the_plan_has_all_methods_on_the_main_pairs_at_the_papers_shift():
    runs = table3.plan("quick", (0, 1, 2))
    keys = [json.dumps(run.config, sort_keys=True) for run in runs]
    assert len(set(keys)) == len(keys) and {run.name for run in runs} == {"table3"}
    for pair in table3.MAIN_PAIRS:
        of_pair = [run for run in runs if run.config["pair"] == pair and run.config["shift"] == 0.7]
        digits = pair != "syn_signs-gtsrb"
        assert [run.config["method"] for run in of_pair] == [
            name for name in table3.METHODS if name not in table3.LARGE_ONLY and (digits or name != "cycada")
        ]
        assert {run.seeds for run in of_pair} == {(9, 10, 11)}
    others = [run for run in runs if run.config["pair"] not in table3.MAIN_PAIRS]
    assert {run.config["pair"] for run in others} == {
        "mnist-svhn",
        "drawn_digits-svhn",
        "cifar10-stl10",
        "stl10-cifar10",
    }
    # behind all that were scored when sizes were open
    assert {run.seeds for run in others} == {(9,)}
    assert {run.config["shift"] for run in runs} == {0.7}


def test_every_first_part_of_the_large_runs_is_a_table():
    runs = [
        (run.config["pair"], run.config["method"], seed) for run in table3.plan("large", range(5)) for seed in run.seeds
    ]
    assert len({*runs}) == len(runs)
    first = table3.FIRST_LARGE_SEED
    claim = [(pair, method) for pair in table3.MAIN_PAIRS for method in table3.CORE]
    assert runs[: len(claim)] == [(*one, first) for one in claim]
    assert runs[len(claim) : 2 * len(claim)] == [(*one, first + 1) for one in claim]
    seeds = {}
    for pair, method, seed in runs:
        seeds.setdefault((pair, method), []).append(seed - first)
    assert all(seeds[one] == [*range(5)] for one in claim)
    rivals = {key: some for key, some in seeds.items() if key not in claim}
    assert {method for _, method in rivals} == {*table3.LARGE}
    assert all(some == ([0, 1] if pair in table3.MAIN_PAIRS else [0]) for (pair, _), some in rivals.items())
    # the seeds of the two sizes are apart: the quick one was scored before the large one was set
    assert first > max(seed for run in table3.plan("quick", range(10)) for seed in run.seeds)


def test_at_the_large_size_the_last_averaged_weights_are_scored(monkeypatch):
    monkeypatch.setattr(table3, "load_pair", lambda name, **options: whole_pair(options))
    about = {"pair": "svhn-mnist", "shift": 0.7, "size": LARGE}
    for method in ("vada_balanced", "vada_orthogonal_shrunk", "adda"):
        found = next(table3.measure((20,), method=method, **about))
        assert found["selection"] == "last" and found["step"] == found["curves"]["step"][-1]
        assert found["rows"]["scored"] == 80
        # all classes are as frequent among the scored images; the weights of the halves give the shift
        assert np.dot(found["class_accuracy"], [0.15, 0.15, 0.35, 0.35]) == pytest.approx(found["accuracy"], abs=1e-3)
    # ADDA begins with a finished classifier of the source
    assert found["curves"]["step"][-1] == 12


def test_other_shifts_are_measured_where_they_are_asked_for():
    runs = table3.plan("quick", (0, 1), pairs=("mnist-usps", "mnist-svhn"), shifts=(0.5, 0.7))
    planned = {}
    for run in runs:
        planned.setdefault((run.config["pair"], run.config["shift"]), []).append(run.config["method"])
    assert planned == {
        ("mnist-usps", 0.5): [*table3.CURVE_METHODS],
        ("mnist-usps", 0.7): [name for name in table3.METHODS if name not in table3.LARGE_ONLY],
        ("mnist-svhn", 0.5): [*table3.CURVE_METHODS],
        ("mnist-svhn", 0.7): [*table3.COMPARED],
    }
    with pytest.raises(ValueError, match=r"for dann .* and shifts other than 0.7 source_only, vada, vada_orth"):
        table3.plan("quick", (0,), ("vada", "dann"), shifts=(0.9,))
    for wrong in (70, 0, 1.0, -0.3, float("nan")):
        with pytest.raises(ValueError, match=r"shift is .*: expected the first half's share in the source"):
            table3.plan("quick", (0,), shifts=(0.7, wrong))


def test_a_record_says_where_the_papers_number_is_of_other_images(found, pair, monkeypatch):
    monkeypatch.setattr(table3, "load_pair", lambda name, **options: pair)
    of_drawn = {"pair": "drawn_digits-svhn", "method": "source_only", "shift": 0.7, "size": SIZE}
    row = next(table3.measure((0,), **of_drawn))["row"]
    assert (row["paper"], row["other_source"]) == (0.85, "the paper's source is SYN-DIGITS")
    assert "other_source" not in found["source_only"]["row"]


def test_the_plan_can_be_narrowed_and_refuses_what_it_lacks():
    runs = table3.plan("paper", (0,), ("vada",), pairs=("svhn-mnist",))
    config = {"pair": "svhn-mnist", "method": "vada", "scale": "paper", "shift": 0.7}
    # with its size: a run of another one is another run
    assert [run.config for run in runs] == [{**config, **table3.SIZES["paper"].config()}]
    for others in ((), ("vada",)):
        with pytest.raises(ValueError, match=r"nothing to measure for cycada \(.* on syn_signs-gtsrb\): cycada is"):
            table3.plan("quick", (0,), (*others, "cycada"), pairs=("syn_signs-gtsrb",))
    with pytest.raises(ValueError, match=r"nothing to measure for mnist-svhn .* have source_only, vada, vada_iw"):
        table3.plan("quick", (0,), ("dann",), pairs=("mnist-usps", "mnist-svhn"))
    assert table3.plan("quick", (0,), ("dann",))


def test_the_papers_schedule_counts_epochs(pair):
    paper, data = table3.SIZES["paper"], pair.data
    # 128 source rows are two batches
    assert paper.schedule("svhn-mnist", "vada", data) == (60, 2)
    assert paper.schedule("cifar10-stl10", "vada", data) == (60, 10)
    assert paper.schedule("svhn-mnist", "adda", data) == (60, 30)
    assert table3.SIZES["quick"].schedule("svhn-mnist", "vada", data) == (2_500, 1_000)


def test_all_pairs_methods_and_shifts_have_one_size():
    for scale, size in table3.SIZES.items():
        for run in table3.plan(scale, (0,)):
            assert run.config.items() >= size.config().items()


def test_the_papers_numbers_are_those_printed():
    assert paper_accuracy("mnist-mnist_m", "adda") == 0.897
    assert paper_accuracy("stl10-cifar10", "vada_orthogonal_em") == 0.541
    assert {pair for pair, row in TABLE3.items() if "cycada" in row} == {"svhn-mnist", "mnist-svhn"}
    assert "mnist-usps" not in TABLE3
    assert {*TABLE3} < {*table3.PAIRS}
    for row in TABLE3.values():
        assert row["orthogonal"] > row["vada"]


VIEW_SIZE = replace(SIZE, steps=10, warmup=3, evaluations=5)


@pytest.fixture(scope="module")
def sorted_pair():
    def images(n, seed):
        pixels = np.random.default_rng(seed).integers(0, 255, (n, 16, 16, 1), dtype=np.uint8)
        # sorted by class, as some sets come
        return Split(x=pixels, y=np.arange(n) * 4 // n)

    return shifted_pair(images(320, 0), images(160, 1), images(400, 2), ("a", "b", "c", "d"))


def trained(sorted_pair, scoring=None, observed=True):
    task, steps = table3.make_task(sorted_pair.data, "mnist-usps", "vada_orthogonal_em", VIEW_SIZE, seed=0)
    view = FeatureView(task, scoring or sorted_pair.scoring)
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
def seen(sorted_pair):
    return trained(sorted_pair)


def test_before_is_the_end_of_the_warm_up_and_after_the_end(sorted_pair, seen):
    view, kept, _ = seen
    warmup = view.task.config.warmup
    assert 1 < warmup < len(kept)
    assert all(features is None for step, features in kept if step < warmup)
    (first,) = {id(features): features for step, features in kept if step >= warmup}.values()
    # what the networks make of the rows by now is something else
    assert not np.allclose(view._features(), first)


def test_before_is_the_end_of_a_warm_up_that_no_evaluation_is_at(sorted_pair):
    found = table3.adapted(sorted_pair, "mnist-usps", "vada", VIEW_SIZE, seed=0, viewed=True)
    assert VIEW_SIZE.warmup not in found["curves"]["step"]
    task, _ = table3.make_task(sorted_pair.data, "mnist-usps", "vada", VIEW_SIZE, seed=0)
    train(task, TrainingConfig(steps=VIEW_SIZE.warmup, precision=fast_precision()))
    alone = two_dimensions(FeatureView(task, sorted_pair.scoring)._features()).round(2).tolist()
    assert found["features"]["before"]["xy"] == alone


def test_the_views_are_plain_and_have_both_domains_and_all_classes(sorted_pair, seen):
    metrics = seen[0].metrics()
    assert set(metrics) == {"before", "after"} and metrics["before"]["xy"] != metrics["after"]["xy"]
    assert len(json.dumps(metrics, allow_nan=False)) < 20_000
    held_out = sorted_pair.data.held_out_labels.tolist()
    for one in metrics.values():
        assert len(one["xy"]) == len(one["class"]) == len(one["domain"])
        assert one["domain"] == [0] * len(held_out) + [1] * 150
        assert one["class"][:-150] == held_out
        shares = np.bincount(sorted_pair.scoring.labels) / len(sorted_pair.scoring.labels)
        assert np.bincount(one["class"][-150:]) / 150 == pytest.approx(shares, abs=0.02)


def test_whoever_looks_on_changes_nothing_and_the_points_need_no_label(sorted_pair, seen):
    _, _, weights = seen
    assert torch.equal(weights, trained(sorted_pair, observed=False)[2])
    noise = np.random.default_rng(0).integers(0, 4, len(sorted_pair.scoring.labels))
    view, _, others = trained(sorted_pair, scoring=replace(sorted_pair.scoring, labels=noise))
    assert torch.equal(weights, others)
    assert np.array_equal(view._features(), seen[0]._features())
    # the negative control: the colors are theirs
    assert not np.array_equal(view._classes[1], seen[0]._classes[1])


def test_a_training_that_ends_within_the_warm_up_has_no_view(sorted_pair):
    task, _ = table3.make_task(sorted_pair.data, "mnist-usps", "vada", VIEW_SIZE, seed=0)
    view = FeatureView(task, sorted_pair.scoring)
    view(1, {})
    with pytest.raises(ValueError, match=r"step 3, the end of the warm-up, was not observed: train for longer"):
        view.metrics()


def test_without_held_out_rows_those_of_the_source_are_shown(sorted_pair):
    data = replace(sorted_pair.data, held_out=None, held_out_labels=None)
    task, _ = table3.make_task(data, "mnist-usps", "source_only", VIEW_SIZE, seed=0)
    view = FeatureView(task, sorted_pair.scoring)
    view(task.config.warmup, {})
    assert view.metrics()["before"]["domain"].count(0) == min(150, len(data.source))


def test_features_of_rows_by_their_own_statistics_have_the_mean_of_the_layer():
    norm = torch.nn.BatchNorm2d(2)
    x = torch.randn(50, 2, 4, 4, generator=torch.Generator().manual_seed(0)) * 3 + 7
    own, running = (flat_features(norm, x, own_statistics=flag) for flag in (True, False))
    assert own.shape == (50, 32)
    assert own.mean() == pytest.approx(0, abs=1e-5) and running.mean() == pytest.approx(7, abs=0.5)
    assert norm.running_mean.tolist() == [0, 0] and norm.training


def test_clusters_stay_clusters_in_two_dimensions(monkeypatch):
    monkeypatch.setattr(table3, "TSNE", TSNE)
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
