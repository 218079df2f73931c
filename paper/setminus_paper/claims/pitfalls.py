r"""Where ``full \ principal`` fails: a full classifier that missed z2, and miscalibrated probabilities.

Simplicity bias: y is linear in z1, and an exclusive or of the two signs of z2. After a short training the full network
has learned little but z1, and nothing is left when z1 is removed. Cure: a second network with a penalty that keeps its
input gradients apart from the first one's, and a logistic regression of both on held-out rows as the full classifier.
Control: a second network without the penalty.

Miscalibration: where the logits of p(y | x) are too large by a factor s, the formula leaves ``s - 1`` times the log
ratio of z1. Cure: a temperature estimated on held-out rows. It undoes one factor on all logits (first part), but the
error of a network that is trained for longer is no single factor (second part).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from setminus.auditing.leakage import leakage
from setminus.charts.chart import Chart, Rule
from setminus.core.orthogonalize import log_setminus, orthogonalize
from setminus.datasets.split import Split
from setminus.estimators.orthogonal import OrthogonalClassifier
from setminus.estimators.principals import GroupPrincipal
from setminus.nn.networks import mlp, seeded
from setminus.nn.passes import Batches, device_of
from setminus.nn.training import Loop, Task, TrainingConfig
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import (
    Records,
    Summary,
    mean_and_deviation,
    mean_bars,
    mean_line,
    metrics_by,
)
from setminus_paper.run import Run, Scale, train_on_machine

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

CLAIM = (
    "The formula is exact for exact probabilities. If the full classifier missed z2, nothing is left after z1 is "
    "removed. If its probabilities are too large or too small, some of z1 stays."
)
DEFAULT_SEEDS = 10
ROWS = {"quick": 2000, "paper": 20_000}
HELD_OUT, TEST = 4000, 5000
PRIOR = np.full(2, 0.5)
DISTANCE = 4.0
"""Distance between the class means of z1, whose log-odds are then ``DISTANCE * z1``."""
AGREE = 0.95
"""How often the signs of z2 predict y."""
SHARPNESS = (0.25, 0.5, 1.0, 2.0, 4.0)
EPOCHS = (10, 30, 100, 300, 600)
"""After which the network is evaluated."""
PENALTIES = ("none", "cosine", "dot")
PENALTY_WEIGHT = 5.0
SAME_GROUP = 0.85
"""p(z1 = y) where probabilities are miscalibrated."""
COLUMNS = 20
"""Columns of z2 there, of which only the first depends on y."""

Floats = NDArray[np.float64]


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """A run for each pitfall."""
    return [
        Run(
            "pitfalls",
            {"scale": scale, "pitfall": "simplicity bias"},
            seeds,
            partial(simplicity_bias, rows=ROWS[scale]),
            "32-true",
        ),
        Run("pitfalls", {"scale": scale, "pitfall": "miscalibration"}, seeds, partial(miscalibration, rows=500)),
    ]


def simplicity_bias(seeds: tuple[int, ...], *, rows: int, steps: int = 400) -> Iterator[dict[str, Any]]:
    """The orthogonal classifier from one network, and from two with each penalty, where z1 is independent of y."""
    for seed in seeds:
        # three different draws for each seed
        train_rows, held_out, test = (exclusive_or(n, 3 * seed + part) for part, n in enumerate((rows, HELD_OUT, TEST)))
        test_x = np.column_stack([np.random.default_rng(seed).permutation(test.x[:, 0]), test.x[:, 1:]])
        metrics_of = partial(_odds_metrics, z1=test_x[:, 0], y=test.y)
        found: dict[str, Any] = {"exact": metrics_of(_exclusive_or_odds(test_x))}
        for penalty in PENALTIES:
            with tracked(f"two networks, penalty {penalty}, seed {seed}"):
                odds = _train_pair(train_rows, penalty, seed, steps)
                both = LogisticRegression(C=10).fit(odds(held_out.x), held_out.y)
                if penalty == "none":
                    found["one network"] = metrics_of(odds(test_x)[:, 0])
                found[penalty] = metrics_of(both.decision_function(odds(test_x)))
        yield {"classifiers": found}


def miscalibration(seeds: tuple[int, ...], *, rows: int) -> Iterator[dict[str, Any]]:
    """What is left of z1 in the exact p(y | x) made sharper or blunter, and in a network; with and without the cure.

    Both are evaluated on rows where z1 predicts y; leakage is the information of the score on z1 given y.
    """
    for seed in seeds:
        train_rows, held_out, test = (grouped(n, 3 * seed + part) for part, n in enumerate((rows, HELD_OUT, TEST)))
        with tracked(f"exact probabilities made sharper or blunter, seed {seed}"):
            factors = [temperature(s * _full_odds(held_out), held_out.y) for s in SHARPNESS]
            sharp = [_group_metrics(_sharpened(test, s), test) for s in SHARPNESS]
            cured = [_group_metrics(_sharpened(test, s / t), test) for s, t in zip(SHARPNESS, factors, strict=True)]
        network = MLPClassifier((32,), alpha=0.0, random_state=seed)
        trained: list[dict[str, dict[str, float]]] = []
        for before, epochs in pairwise((0, *EPOCHS)):
            with tracked(f"a network after {epochs} epochs, seed {seed}"):
                for _ in range(epochs - before):
                    network.partial_fit(train_rows.x, train_rows.y, classes=[0, 1])
                plain = OrthogonalClassifier(FrozenEstimator(network), GroupPrincipal())
                scaled = OrthogonalClassifier(FrozenEstimator(network), GroupPrincipal(), calibration="temperature")
                answers = {"full": network.predict_proba(test.x)}
                for name, model in (("as trained", plain), ("temperature", scaled)):
                    model.fit(held_out.x, held_out.y, sensitive_features=held_out.z1)
                    answers[name] = model.predict_proba(test.x, sensitive_features=test.z1)
                trained.append({name: _group_metrics(answer, test) for name, answer in answers.items()})
        yield {
            "sharpness": [*SHARPNESS],
            "temperatures": factors,
            "sharp": _columns(sharp),
            "cured": _columns(cured),
            "epochs": [*EPOCHS],
            "trained": {name: _columns([row[name] for row in trained]) for name in trained[0]},
        }


def temperature(odds: Floats, y: NDArray[np.int64]) -> float:
    """The number by which to divide log-odds so that held-out labels are most probable.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> odds = rng.normal(size=20_000)
    >>> y = (rng.random(20_000) < 1 / (1 + np.exp(-odds))).astype(int)
    >>> round(temperature(3 * odds, y), 1)
    3.0
    """
    signed = np.where(y == 1, odds, -odds)
    found = minimize_scalar(
        lambda log_t: np.logaddexp(0, -signed / np.exp(log_t)).mean(), bounds=(-5, 5), method="bounded"
    )
    return float(np.exp(found.x))


def exclusive_or(n: int, seed: int) -> Split:
    """z1 is Gaussian around its class; z2 has two coordinates whose signs agree in class 1.

    Examples
    --------
    >>> split = exclusive_or(1000, seed=0)
    >>> bool(np.mean((split.z2[:, 0] * split.z2[:, 1] > 0) == split.y) > 0.9)
    True
    """
    rng = np.random.default_rng([seed, 2])
    y = rng.integers(2, size=n)
    z1 = (y - 0.5) * DISTANCE + rng.normal(size=n)
    agree = np.where(rng.random(n) < AGREE, y, 1 - y)
    first = rng.integers(2, size=n)
    signs = 2 * np.column_stack([first, np.where(agree == 1, first, 1 - first)]) - 1
    z2 = 0.5 * signs + 0.125 * rng.normal(size=(n, 2))
    return Split(x=np.column_stack([z1, z2]), y=y, z1=z1, z2=z2)


def grouped(n: int, seed: int) -> Split:
    """z1 is a group, z2 a Gaussian vector whose first column alone depends on y, x both."""
    rng = np.random.default_rng([seed, 3])
    y = rng.integers(2, size=n)
    z1 = np.where(rng.random(n) < SAME_GROUP, y, 1 - y)
    z2 = rng.normal(size=(n, COLUMNS))
    z2[:, 0] += 2.0 * (y - 0.5)
    return Split(x=np.column_stack([z1, z2]), y=y, z1=z1, z2=z2)


class ApartInGradient(Task):
    """Two networks on the same rows; the second one's input gradients are held apart from the first one's."""

    def __init__(self, networks: list[torch.nn.Module], rows: Split, penalty: str, seed: int):
        self.modules = dict(zip(("first", "second"), networks, strict=True))
        self.optimizers = {name: torch.optim.Adam(net.parameters(), 3e-3) for name, net in self.modules.items()}
        x, y = torch.from_numpy(rows.x.astype(np.float32)), torch.from_numpy(rows.y)
        self.batches = Batches(x, y, size=64, seed=seed)
        self.penalty = penalty

    def step(self, loop: Loop) -> None:
        """Go down both losses, and the second network's penalty."""
        x, y = loop.batch(self.batches)
        for name, network in self.modules.items():
            loss = torch.nn.functional.cross_entropy(network(x), y)
            if name == "second" and self.penalty != "none":
                loss = loss + PENALTY_WEIGHT * self._overlap(x)
            loop.update(name, loss)

    def _overlap(self, x: torch.Tensor) -> torch.Tensor:
        # between rows too: a network that is flat at every row may still step where there are none
        share = torch.rand(len(x), 1, device=x.device)
        between = (share * x + (1 - share) * x.flip(0)).requires_grad_()
        first, second = (
            torch.autograd.grad(_odds(self.modules[name](between)).sum(), between, create_graph=name == "second")[0]
            for name in ("first", "second")
        )
        if self.penalty == "cosine":
            return torch.cosine_similarity(first, second, dim=1).square().mean()
        return (first * second).sum(1).square().mean()


def _train_pair(rows: Split, penalty: str, seed: int, steps: int) -> Callable[[Floats], Floats]:
    """The log-odds of both networks, as a function of rows."""
    networks = [seeded(2 * seed + place, lambda: mlp((3, 32, 2))) for place in range(2)]
    train_on_machine(
        ApartInGradient(networks, rows, penalty, seed), TrainingConfig(steps=steps, seed=seed, log_every=0)
    )

    def odds(x: Floats) -> Floats:
        with torch.no_grad():
            seen = torch.from_numpy(x.astype(np.float32)).to(device_of(networks[0]))
            return np.asarray(torch.stack([_odds(network(seen)) for network in networks], dim=1).cpu().double().numpy())

    return odds


def _odds(logits: torch.Tensor) -> torch.Tensor:
    return logits[:, 1] - logits[:, 0]


def _log_proba(odds: Floats) -> Floats:
    return -np.logaddexp(0, np.column_stack([odds, -odds]))


def _exclusive_or_odds(x: Floats) -> Floats:
    """The exact log-odds, log p(y = 1 | x) - log p(y = 0 | x)."""
    # log of both densities of one coordinate, around +0.5 and around -0.5
    near = [-0.5 * ((x[:, 1:] - side) / 0.125) ** 2 for side in (0.5, -0.5)]
    agree = np.logaddexp(near[0].sum(axis=1), near[1].sum(axis=1))
    differ = np.logaddexp(near[0][:, 0] + near[1][:, 1], near[1][:, 0] + near[0][:, 1])
    yes, no = np.log(AGREE), np.log1p(-AGREE)
    z2 = np.logaddexp(yes + agree, no + differ) - np.logaddexp(no + agree, yes + differ)
    return np.asarray(DISTANCE * x[:, 0] + z2)


def _odds_metrics(odds: Floats, *, z1: Floats, y: NDArray[np.int64]) -> dict[str, float]:
    answer = log_setminus(_log_proba(odds), _log_proba(DISTANCE * z1), np.log(PRIOR))
    own = np.take_along_axis(answer, y[:, None], axis=1)
    return {"loss": -float(own.mean()), "accuracy": float((answer.argmax(axis=1) == y).mean())}


def _sharpened(rows: Split, sharpness: float) -> Floats:
    full = np.exp(_log_proba(sharpness * _full_odds(rows)))
    return np.asarray(orthogonalize(full, np.exp(_log_proba(_group_odds(rows))), PRIOR))


def _full_odds(rows: Split) -> Floats:
    return _group_odds(rows) + 2.0 * rows.x[:, 1]


def _group_odds(rows: Split) -> Floats:
    return np.asarray(np.where(rows.z1 == 1, 1, -1) * np.log(SAME_GROUP / (1 - SAME_GROUP)))


def _group_metrics(proba: Floats, rows: Split) -> dict[str, float]:
    truth = _log_proba(2.0 * rows.x[:, 1])
    # an overtrained network may rule a class out
    excess = (np.exp(truth) * (truth - np.log(np.clip(proba, 1e-12, 1)))).sum(axis=1).mean()
    left = leakage(rows.y, proba, sensitive_features=np.asarray(rows.z1))
    return {"excess": float(excess), "leakage": left.bits, "p_value": left.p_value}


def _columns(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


_CLASSIFIERS = {
    "one network": "one network",
    "none": "two networks, no penalty",
    "cosine": "two, cosine penalty",
    "dot": "two, dot product penalty",
}
_NETWORK = {"full": "full", "as trained": "full minus principal", "temperature": "with temperature"}
_CURES = {"sharp": "no cure", "cured": "temperature"}
_MEASURES = {"excess": "excess loss (nats)", "leakage": "leakage of z1 (bits)"}


def charts(records: Records) -> list[Chart]:
    """Losses after simplicity bias; excess and leakage by sharpness, and by how long a network was trained."""
    grouped = metrics_by(records, "pitfall")
    biased, miscalibrated = (grouped.get(name, []) for name in ("simplicity bias", "miscalibration"))
    return [
        *([_bias_chart(biased)] if biased else []),
        *(chart for measure in _MEASURES if miscalibrated for chart in _calibration_charts(miscalibrated, measure)),
    ]


def summary(records: Records) -> Summary:
    """Losses and leakage, mean and standard deviation over seeds, beside the exact value."""
    rows = []
    grouped = metrics_by(records, "pitfall")
    if biased := grouped.get("simplicity bias"):
        exact = f"{_losses(biased, 'exact').mean():.3f}"
        rows += [
            (f"loss in nats, {words}", exact, mean_and_deviation(_losses(biased, key)))
            for key, words in _CLASSIFIERS.items()
        ]
        saved = _losses(biased, "none") - _losses(biased, "cosine")
        rows.append(("nats saved by the cosine penalty", "more than 0", mean_and_deviation(saved)))
    miscalibrated = grouped.get("miscalibration", [])
    for measure, words in _MEASURES.items() if miscalibrated else ():
        sharpness, epochs = miscalibrated[0]["sharpness"], miscalibrated[0]["epochs"]
        for key, cure in _CURES.items():
            last = [one[key][measure][-1] for one in miscalibrated]
            rows.append((f"{words}, logits x {sharpness[-1]:g}: {cure}", "0", mean_and_deviation(last)))
        for key in ("as trained", "temperature"):
            for place in (-2, -1):
                values = [one["trained"][key][measure][place] for one in miscalibrated]
                rows.append((f"{words}, {epochs[place]} epochs: {_NETWORK[key]}", "0", mean_and_deviation(values)))
    return rows


def _bias_chart(metrics: list[dict[str, Any]]) -> Chart:
    saved = _losses(metrics, "none") - _losses(metrics, "cosine")
    bars = mean_bars([*_CLASSIFIERS.values()], [_losses(metrics, key) for key in _CLASSIFIERS], "full minus principal")
    return Chart(
        "A full classifier that missed z2",
        "the full classifier",
        "loss in nats",
        [
            bars,
            Rule(float(_losses(metrics, "exact").mean()), "exact p(y | z2)"),
            Rule(float(np.log(2)), "prior alone"),
        ],
        "z1 is linear in y, z2 an exclusive or: a short training learns z1 only. Two networks help; the cosine "
        f"penalty saves {saved.mean():.3f} nats more, in {int((saved > 0).sum())} of {len(saved)} seeds. Means over "
        "seeds, with the smallest and the largest.",
    )


def _calibration_charts(metrics: list[dict[str, Any]], measure: str) -> list[Chart]:
    words = _MEASURES[measure]
    sharp = [
        mean_line(metrics[0]["sharpness"], [one[key][measure] for one in metrics], name) for key, name in _CURES.items()
    ]
    trained = [
        mean_line(metrics[0]["epochs"], [one["trained"][key][measure] for one in metrics], name)
        for key, name in _NETWORK.items()
    ]
    return [
        Chart(
            f"Logits times a factor: {words}",
            "factor on the logits of p(y | x)",
            words,
            sharp,
            "The formula is exact at factor 1. A temperature estimated on held-out rows undoes any factor. Means over "
            "seeds, with the smallest and the largest.",
            x_scale="log",
        ),
        Chart(
            f"A network trained for longer: {words}",
            "epochs",
            words,
            trained,
            "Its error is not one factor: a temperature lowers the loss but need not remove what is left of z1. Means "
            "over seeds, with the smallest and the largest.",
            x_scale="log",
        ),
    ]


def _losses(metrics: list[dict[str, Any]], key: str) -> Floats:
    return np.array([one["classifiers"][key]["loss"] for one in metrics])
