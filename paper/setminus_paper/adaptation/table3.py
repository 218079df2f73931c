"""Table 3 of the paper: adaptation between image sets whose classes have other frequencies in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import gcd
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from torch import nn

from setminus.adaptation.domains import DomainData, LabelShift, class_logits
from setminus.adaptation.methods import METHODS as LIBRARY
from setminus.adaptation.methods import AdaptationConfig, AdaptationTask
from setminus.adaptation.vada import VadaNetworks
from setminus.errors import UserError
from setminus.nn.networks import AdaptationNetwork, DomainDiscriminator, seeded
from setminus.nn.passes import prepare
from setminus.nn.training import Outcome
from setminus.progress import tracked
from setminus_paper.adaptation.rivals import Adda, BalancedVada, Cycada
from setminus_paper.adaptation.settings import (
    ALL_ROWS,
    FIRST_LARGE_SEED,
    FIRST_SEED,
    ORTHOGONAL,
    OTHER_SOURCE,
    PAIRS,
    PHOTOGRAPHS,
    ROWS,
    SIZES,
    Scoring,
    ShiftedPair,
    Size,
    check_shift,
    load_pair,
    paper_accuracy,
)
from setminus_paper.run import Run, Scale, train_run

__all__ = ["CLAIM", "DEFAULT_SEEDS", "JOB", "METHODS", "PAIRS", "SELECTION", "SHIFTS", "plan"]

CLAIM = (
    "Where source and target have other class frequencies, VADA that plays against the orthogonal discriminator is "
    "more accurate on the target than plain VADA on all pairs, and than importance weights on most."
)
DEFAULT_SEEDS = 3
JOB = "domain_adaptation"

SELECTION = "information"
"""The selected evaluation, among those after adaptation began, has the largest mutual information between a target
image and its predicted class, ``entropy(mean(proba)) - mean(entropy(proba))`` over the images that are adapted to. It
uses no label of the target. "last" and "test_oracle", the best by the target's labels as in the paper, are also
recorded; the large size, whose weights are averaged, takes "last"."""

METHODS = tuple(ROWS)
TASKS: dict[str, type[AdaptationTask]] = {**LIBRARY, "adda": Adda, "cycada": Cycada, "vada_balanced": BalancedVada}
MAIN_PAIRS = ("mnist-mnist_m", "svhn-mnist", "mnist-usps", "syn_signs-gtsrb")
"""Pairs with every method and every seed; the others have the methods of `COMPARED` and one seed."""
LARGE_ONLY = ("vada_orthogonal_public", "vada_balanced")
"""Methods of the large size alone."""
COMPARED = ("source_only", "vada", "vada_iw", *(name for name in ORTHOGONAL if name not in LARGE_ONLY))
DIGITS_ONLY = {"cycada": ("mnist-mnist_m", "svhn-mnist", "mnist-usps")}
"""Methods for some pairs only: CyCADA's generators are designed for digits, as in the paper."""
SHIFT = 0.7
SHIFTS = (SHIFT,)
"""The default: the paper's alone."""
CURVE_METHODS = tuple(name for name in COMPARED if name != "vada_iw")
"""Methods at other shifts than the paper's."""
VIEWED_METHODS = ("source_only", "vada", "vada_orthogonal_shrunk")
"""Methods whose features are recorded in two dimensions, at the paper's shift and on a pair's first seed."""
VIEWED_ROWS = 150
"""Rows of each domain in a view of the features."""
CORE = ("vada", "vada_orthogonal_pseudo", "vada_orthogonal_shrunk")
"""The claim at the large size: VADA, the paper's form as printed, and ours with one estimate. Main pairs have these on
all seeds and the others of `LARGE` on two, the other pairs have these on one seed."""
LARGE = (*CORE, "source_only", "dann", "vada_iw", *LARGE_ONLY, "adda", "cycada")
RIVAL_SEEDS = 2
COMPONENTS = 30
"""Number of principal components for t-SNE: with all features it is slow and fits mostly noise."""
PERPLEXITY = 30.0


def plan(
    scale: Scale,
    seeds: tuple[int, ...],
    methods: Sequence[str] = METHODS,
    pairs: Sequence[str] = tuple(PAIRS),
    shifts: Sequence[float] = SHIFTS,
) -> list[Run]:
    """Every method on every pair at every shift that the table has; its seeds begin at `FIRST_SEED`.

    At the large size a run has one seed, and the order makes every first part of the runs a table: the claim on the
    main pairs, a second seed, the rivals, and so on.
    """
    for shift in shifts:
        check_shift(shift)
    planned = [
        (pair, shift, name, seeds if pair in MAIN_PAIRS else seeds[:1])
        for pair in pairs
        for shift in shifts
        for name in _methods(pair, shift)
    ]
    if scale == "large":
        planned = [
            (pair, shift, name, (seed,))
            for names, some, part in _rounds(seeds)
            for seed in part
            for pair in some
            for shift in shifts
            for name in names
            if pair in pairs and pair in DIGITS_ONLY.get(name, PAIRS)
        ]
    first = FIRST_LARGE_SEED if scale == "large" else FIRST_SEED
    runs = [
        Run(
            "table3",
            {"pair": pair, "method": name, "scale": scale, "shift": shift, **SIZES[scale].config()},
            tuple(seed + first for seed in some),
            partial(measure, pair=pair, method=name, shift=shift, size=SIZES[scale]),
        )
        for pair, shift, name, some in planned
        if name in methods
    ]
    for kind, names, known in (("method", methods, METHODS), ("pair", pairs, PAIRS)):
        # the default names all of them: only a choice can be impossible
        left_out = {*names} - {run.config[kind] for run in runs}
        if left_out and {*names} != {*known}:
            raise UserError(
                f"table3 has nothing to measure for {', '.join(sorted(left_out))} "
                f"(methods {', '.join(methods)} on {', '.join(pairs)})",
                do="cycada is for "
                f"{', '.join(DIGITS_ONLY['cycada'])}, pairs other than {', '.join(MAIN_PAIRS)} have "
                f"{', '.join(COMPARED)} only, and shifts other than {SHIFT:g} {', '.join(CURVE_METHODS)}.",
            )
    return runs


def measure(seeds: tuple[int, ...], *, pair: str, method: str, shift: float, size: Size) -> Iterator[dict[str, Any]]:
    """Adapt by one method, seed by seed."""
    row = ALL_ROWS[method]
    about = {"label": row.label, "options": row.options, "paper": paper_accuracy(pair, method)}
    if pair in OTHER_SOURCE:
        about["other_source"] = OTHER_SOURCE[pair]
    for seed in seeds:
        with tracked(f"{row.label} on {pair}, seed {seed}"):
            loaded = load_pair(
                pair,
                shift=shift,
                seed=seed,
                most_rows=size.most_rows,
                held_out=size.held_out,
                score_all=size.scored == "weighted",
            )
            viewed = method in VIEWED_METHODS and seed == FIRST_SEED and shift == SHIFT
            found = adapted(loaded, pair, method, size, seed=seed, viewed=viewed)
        yield {"row": about, **found}


def adapted(
    loaded: ShiftedPair, pair: str, method: str, size: Size, *, seed: int, viewed: bool = False
) -> dict[str, Any]:
    """Train one method with the hyper-parameters of a pair; metrics as plain JSON.

    `viewed` adds the features of both domains in two dimensions, see `FeatureView`.
    """
    task, steps = make_task(loaded.data, pair, method, size, seed=seed, scoring=loaded.scoring)
    every = max(steps // size.evaluations, 1)
    view = FeatureView(task, loaded.scoring) if viewed else None
    log_every = every if view is None else view.every(every)
    outcome, precision = train_run(
        task,
        str(seed),
        steps=steps,
        seed=seed,
        ema=size.average,
        log_every=log_every,
        evaluate_every=every,
        precision=None,
        observers=() if view is None else (view,),
    )
    # the precision differs between machines, and with it the last digits
    found = {**_metrics(outcome, loaded, task.first_adapted_step, size.selection or SELECTION), "precision": precision}
    return found if view is None else {**found, "features": view.metrics()}


def make_task(
    data: DomainData, pair: str, method: str, size: Size, *, seed: int, scoring: Scoring | None = None
) -> tuple[AdaptationTask, int]:
    """A method with new networks, and its number of steps; `scoring` is used in evaluations only."""
    row, width = ALL_ROWS[method], size.photograph_width if pair in PHOTOGRAPHS else size.width
    networks = seeded(seed, partial(_networks, data.n_classes, width))
    steps, warmup = size.schedule(pair, method, data)
    options = dict(row.options)
    if "label_shift" in options:
        options["label_shift"] = LabelShift(**options["label_shift"])
    watch = None if scoring is None else partial(_watch, scoring=scoring, seen_rows=size.seen_rows)
    config = AdaptationConfig(
        size.losses(pair),
        rate=size.rate,
        batch=size.batch,
        warmup=warmup,
        first_estimate=size.first_estimate,
        balanced=size.balanced,
        estimate_every=size.estimate_every,
        decay_end=steps if size.rests else None,
    )
    return TASKS[row.task](networks, data, config, seed, watch=watch, **options), steps


def information(proba: NDArray[np.float64]) -> dict[str, float]:
    """The mutual information of row and predicted class, and the mean entropy of a row; neither needs labels.

    Examples
    --------
    >>> information(np.array([[1.0, 0.0], [0.0, 1.0]]))
    {'information': 0.6931, 'entropy': 0.0}
    >>> information(np.array([[1.0, 0.0], [1.0, 0.0]]))["information"]
    0.0
    """
    rows, mean = _entropy(proba).mean(), _entropy(proba.mean(axis=0))
    return {"information": round(float(mean - rows), 4) + 0.0, "entropy": round(float(rows), 4) + 0.0}


def select(evaluations: Sequence[dict[str, Any]], adapted_from: int = 0) -> int:
    """The index of the selected evaluation, by `SELECTION`; the last of equal ones.

    Evaluations up to the step `adapted_from`, when adaptation began, are excluded. Predictions that are spread over all
    classes have the most information, even where the target has few rows of some: a balanced network that has not seen
    the target would be selected.
    """
    scores = [(one["step"] > adapted_from, one[SELECTION]) for one in evaluations]
    return max(range(len(scores)), key=lambda place: (scores[place], place))


def _methods(pair: str, shift: float) -> tuple[str, ...]:
    if shift != SHIFT:
        return CURVE_METHODS
    if pair not in MAIN_PAIRS:
        return COMPARED
    return tuple(name for name in METHODS if name not in LARGE_ONLY and pair in DIGITS_ONLY.get(name, PAIRS))


def _rounds(seeds: Sequence[int]) -> list[tuple[Sequence[str], Sequence[str], Sequence[int]]]:
    """Methods, pairs and seeds of the large size, in the order of the runs."""
    rivals, others = LARGE[len(CORE) :], [pair for pair in PAIRS if pair not in MAIN_PAIRS]
    return [
        (CORE, MAIN_PAIRS, seeds[:2]),
        (rivals, MAIN_PAIRS, seeds[:1]),
        (CORE, others, seeds[:1]),
        (CORE, MAIN_PAIRS, seeds[2:3]),
        (rivals, MAIN_PAIRS, seeds[1:RIVAL_SEEDS]),
        (CORE, MAIN_PAIRS, seeds[3:]),
    ]


def _networks(n_classes: int, width: int) -> VadaNetworks:
    network = prepare(AdaptationNetwork(n_classes, width=width))
    return VadaNetworks(network.encoder, network.head, DomainDiscriminator(network.n_features))


def _watch(task: AdaptationTask, *, scoring: Scoring, seen_rows: int) -> dict[str, Any]:
    data = task.data
    proba = task.predict_proba(data.target[:: -(-len(data.target) // seen_rows)])
    decided = np.bincount(proba.argmax(axis=1), minlength=data.n_classes)
    seen: dict[str, Any] = {**information(proba), "predicted": _rounded(decided / len(proba))}
    if data.held_out is not None and data.held_out_labels is not None:
        # by its own statistics: the running ones are those of the target
        logits = class_logits(task.networks.encoder, task.networks.head, data.held_out, own_statistics=True)
        right = logits.argmax(1).cpu() == data.held_out_labels.cpu()
        seen["source_accuracy"] = round(right.double().mean().item(), 4)
    hits = task.predict_proba(scoring.images).argmax(axis=1) == scoring.labels
    by_class = [hits[scoring.labels == k] for k in range(data.n_classes)]
    seen["accuracy"] = round(float(np.average(hits, weights=scoring.weights)), 4)
    seen["class_accuracy"] = [round(float(one.mean()), 4) if len(one) else None for one in by_class]
    return seen


def _metrics(outcome: Outcome, loaded: ShiftedPair, adapted_from: int, selection: str) -> dict[str, Any]:
    found, data = outcome.evaluations, loaded.data
    chosen = found[-1 if selection == "last" else select(found, adapted_from)]
    oracle = max(found, key=lambda one: one["accuracy"])
    curves = [name for name in ("step", "accuracy", "information", "entropy", "source_accuracy") if name in found[0]]
    return {
        "selection": selection,
        **{name: chosen[name] for name in ("accuracy", "step", "information", "class_accuracy")},
        **{
            name: {"accuracy": one["accuracy"], "step": one["step"]}
            for name, one in (("last", found[-1]), ("test_oracle", oracle))
        },
        "curves": {name: [one[name] for one in found] for name in curves},
        "prior": {
            "source": _rounded(data.source_prior),
            "target": _rounded(loaded.scoring.target_prior),
            # a method without an estimate has its predictions only
            "estimated": [_rounded(one["target_prior"]) for one in found] if "target_prior" in found[0] else None,
            "predicted": [one["predicted"] for one in found],
        },
        "classes": list(loaded.classes),
        "rows": {
            "source": len(data.source),
            "held_out": 0 if data.held_out is None else len(data.held_out),
            "target": len(data.target),
            "scored": len(loaded.scoring.labels),
        },
        "losses": _losses(outcome.history),
        "seconds_per_step": round(outcome.seconds / outcome.steps, 4),
    }


def _losses(history: list[dict[str, Any]]) -> dict[str, list[float | None]]:
    """Losses by step; some begin with adaptation."""
    names = dict.fromkeys(name for entry in history for name in entry)
    return {name: [round(entry[name], 4) if name in entry else None for entry in history] for name in names}


def _entropy(proba: NDArray[np.float64]) -> NDArray[np.float64]:
    logs = np.log(proba, where=proba > 0, out=np.zeros_like(proba))
    entropy: NDArray[np.float64] = -(proba * logs).sum(axis=-1)
    return entropy


def _rounded(values: Any) -> list[float]:
    rounded: list[float] = np.round(np.asarray(values, dtype=np.float64), 4).tolist()
    return rounded


class FeatureView:
    """An observer of training that records the features of some rows of each domain, in two dimensions.

    "before" is the end of the warm-up, where it has to be called: see `every`. "after" is the time of `metrics`. It
    changes nothing in the training, and uses no label before `metrics`. Source rows are held-out ones if there are
    any; the target's are those of `scoring`.
    """

    def __init__(self, task: AdaptationTask, scoring: Scoring) -> None:
        self.task = task
        data = task.data
        rows, labels = data.source, data.source_labels
        if data.held_out is not None and data.held_out_labels is not None:
            rows, labels = data.held_out, data.held_out_labels
        source, target = _spread(len(rows)), _spread(len(scoring.labels))
        self._source, self._target = rows[source], scoring.images[target]
        self._classes = labels.numpy(force=True)[source], scoring.labels[target]
        self._before: NDArray[np.float64] | None = None

    def every(self, steps: int) -> int:
        """The logging interval that includes every multiple of `steps` and the end of the warm-up."""
        return gcd(steps, self.task.config.warmup)

    def __call__(self, step: int, values: Mapping[str, float]) -> None:
        """Keep the features at the end of the warm-up."""
        if step == self.task.config.warmup:
            self._before = self._features()

    def metrics(self) -> dict[str, Any]:
        """Both views, "before" and "after": `xy`, and for each point its `class` and its `domain`, 1 for the target."""
        if self._before is None:
            raise UserError(
                f"step {self.task.config.warmup}, the end of the warm-up, was not observed",
                do="train for longer, or log every so many steps that one is there.",
            )
        points = {
            "class": [int(label) for labels in self._classes for label in labels],
            "domain": [domain for domain, labels in enumerate(self._classes) for _ in labels],
        }
        views = (("before", self._before), ("after", self._features()))
        return {when: {"xy": two_dimensions(features).round(2).tolist(), **points} for when, features in views}

    def _features(self) -> NDArray[np.float64]:
        # each domain by its own statistics: the running ones are those of the target
        source = flat_features(self.task.networks.encoder, self._source, own_statistics=True)
        return np.concatenate([source, flat_features(self.task.predictor[0], self._target)])


def flat_features(encoder: nn.Module, x: torch.Tensor, *, own_statistics: bool = False) -> NDArray[np.float64]:
    """The encoder's features as a matrix of shape (n, number of features), as the discriminator of domains gets them.

    Examples
    --------
    >>> flat_features(nn.Conv2d(3, 2, 1), torch.zeros(5, 3, 4, 4)).shape
    (5, 32)
    """
    flat = class_logits(nn.Identity(), nn.Sequential(encoder, nn.Flatten()), x, own_statistics=own_statistics)
    features: NDArray[np.float64] = flat.cpu().double().numpy()
    return features


def two_dimensions(features: NDArray[np.float64], *, random_state: int = 0) -> NDArray[np.float64]:
    """t-SNE of the principal components, of shape (n, 2); distances between clusters and their sizes mean nothing.

    Examples
    --------
    >>> two_dimensions(np.random.default_rng(0).normal(size=(20, 5))).shape
    (20, 2)
    """
    if features.ndim != 2 or len(features) < 4:
        raise UserError(f"features have shape {features.shape}", expected="four rows or more, each with its features")
    parts = PCA(min(COMPONENTS, *features.shape), random_state=random_state).fit_transform(features)
    # at most a third of the rows can be neighbors
    perplexity = min(PERPLEXITY, (len(parts) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=random_state).fit_transform(parts)
    return np.asarray(places, dtype=np.float64)


def _spread(n: int) -> NDArray[np.int64]:
    """Rows at equal distances: some sets are sorted by class, so their first rows have one class."""
    return np.linspace(0, n - 1, min(VIEWED_ROWS, n)).astype(np.int64)
