r"""Figure 2c on colored digits: probabilities of the trained ``full \ principal``, and the two true values of p(y|z2).

Three ways to the same classifier are compared: the formula with classifiers trained as
`fit_domain_classifier` trains them, the same after one short epoch at a constant rate (the effect of the training), and
importance sampling with the weights that the same principal classifier gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from setminus.charts.chart import Bars, Chart, Rule
from setminus.core.importance import importance_weights
from setminus.core.orthogonalize import log_setminus
from setminus.datasets.colored_digits import ColoredDigits
from setminus.datasets.images import resize, to_signed_nchw
from setminus.progress import tracked
from setminus.transfer.domain_classifiers import ClassifierConfig, fit_domain_classifier, log_proba
from setminus_paper.claims.over_seeds import Records, Summary, mean_and_deviation
from setminus_paper.data.images import load_images
from setminus_paper.run import Run, Scale, train_on_machine

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

CLAIM = (
    "On colored digits the probabilities of the orthogonal classifier gather around the two true values of p(y | "
    "background). Those of importance sampling are spread out."
)
DEFAULT_SEEDS = 3
BINS = 50
INK = 64
"""Grey above which a pixel of a shrunk digit is ink."""


@dataclass(frozen=True)
class DigitsConfig:
    """Which digits, and how their classifiers are trained."""

    pixels: int
    train_digits: int
    classifier: ClassifierConfig
    hasty_digits: int = 20_000


CONFIGS = {
    "quick": DigitsConfig(16, 56_000, ClassifierConfig(width=16, epochs=2, average=0.99)),
    "paper": DigitsConfig(28, 56_000, ClassifierConfig(width=64, epochs=5)),
}


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """One run: three classifiers on the same digits, for each seed."""
    config = CONFIGS[scale]
    return [Run("fig2c", {"scale": scale, **asdict(config)}, seeds, partial(measure, config=config), "32-true")]


def measure(seeds: tuple[int, ...], *, config: DigitsConfig) -> Iterator[dict[str, Any]]:
    """Train on part of the digits, and predict p(y|z2) for the others."""
    model = ColoredDigits()
    for seed in seeds:
        digits = np.random.default_rng(seed).permutation(shrunk_digits(config.pixels))
        train, test = digits[: config.train_digits], digits[config.train_digits :]
        split = model.paint(test, seed=3 * seed + 2)
        x = _tensor(split.x)
        hasty = replace(config.classifier, epochs=1, cosine=False, average=None)
        with tracked(f"formula, one epoch, seed {seed}"):
            full, principal = fit_pair(model, train[: config.hasty_digits], hasty, seed)
            predicted = {"formula, one short epoch": _orthogonal(full, principal, x)}
        with tracked(f"formula, seed {seed}"):
            full, principal = fit_pair(model, train, config.classifier, seed)
            predicted["formula"] = _orthogonal(full, principal, x)
        with tracked(f"importance sampling, seed {seed}"):
            weighted = _importance_network(model, train, principal, config.classifier, seed)
            predicted["importance sampling"] = log_proba(weighted, x)
        z2 = np.asarray(split.z2)
        yield {
            "truth": model.orthogonal([0, 1])[:, 1].tolist(),
            "ways": {name: _described(log.numpy(), model.orthogonal(z2), z2) for name, log in predicted.items()},
        }


def shrunk_digits(pixels: int) -> NDArray[np.uint8]:
    """All digits of MNIST, black and white, of this size."""
    digits = np.concatenate([load_images("mnist", part).x for part in ("train", "test")])
    if digits.shape[1] == pixels:
        return digits
    return np.where(resize(digits, pixels) > INK, np.uint8(255), np.uint8(0))


def fit_pair(
    model: ColoredDigits, digits: NDArray[np.uint8], config: ClassifierConfig, seed: int
) -> tuple[torch.nn.Module, torch.nn.Module]:
    """The full classifier, and the principal one from the oracle's set, on the same digits."""
    fitted = []
    for variant in (model, model.oracle_principal()):
        split = variant.paint(digits, seed=3 * seed)
        fitted.append(
            fit_domain_classifier(
                _tensor(split.x), torch.from_numpy(split.y), config, seed=seed, trainer=train_on_machine
            )
        )
    return fitted[0], fitted[1]


def _importance_network(
    model: ColoredDigits, digits: NDArray[np.uint8], principal: torch.nn.Module, config: ClassifierConfig, seed: int
) -> torch.nn.Module:
    split = model.paint(digits, seed=3 * seed)
    x = _tensor(split.x)
    phi = importance_weights(split.y, log_proba(principal, x).exp().numpy(), model.prior)
    weights = torch.from_numpy(phi).float()
    return fit_domain_classifier(
        x, torch.from_numpy(split.y), config, seed=seed, weights=weights, trainer=train_on_machine
    )


def _orthogonal(full: torch.nn.Module, principal: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    # both domains are equally frequent in both sets: the uniform prior is the true one
    return log_setminus(log_proba(full, x), log_proba(principal, x), torch.zeros(1, dtype=torch.float64), 1.0)


def _tensor(images: NDArray[np.uint8]) -> torch.Tensor:
    return torch.from_numpy(to_signed_nchw(images)).contiguous(memory_format=torch.channels_last)


def _described(log_orthogonal: NDArray[Any], truth: NDArray[Any], z2: NDArray[Any]) -> dict[str, Any]:
    """Histograms and errors of p(B|z2), and the surprise beyond that of the truth."""
    proba = np.exp(log_orthogonal[:, 1])
    edges = np.linspace(0, 1, BINS + 1)
    values = [proba[z2 == color] for color in (0, 1)]
    return {
        "mean": [float(value.mean()) for value in values],
        "sd": [float(value.std()) for value in values],
        "histogram": [(np.histogram(value, edges)[0] / len(value)).round(6).tolist() for value in values],
        "absolute_error": float(np.abs(proba - truth[:, 1]).mean()),
        "excess_loss": float((truth * (np.log(truth) - log_orthogonal)).sum(axis=1).mean()),
    }


def charts(records: Records) -> list[Chart]:
    """One histogram for each way, with the images of either background color."""
    truth, *_ = (record["metrics"]["truth"] for record in records)
    rules = [Rule(value, f"truth, {domain}", axis="x") for value, domain in zip(truth, "AB", strict=True)]
    middles = ((np.arange(BINS) + 0.5) / BINS).tolist()
    found = []
    for way, metrics in _by_way(records).items():
        shares, means, deviations = (
            np.mean([one[key] for one in metrics], axis=0) for key in ("histogram", "mean", "sd")
        )
        bars = [Bars(middles, shares[color].tolist(), f"background of domain {'AB'[color]}") for color in (0, 1)]
        found.append(
            Chart(
                way[0].upper() + way[1:],
                "predicted probability of domain B",
                "share of the images of a color",
                [*bars, *rules],
                f"Means {means[0]:.3f} and {means[1]:.3f}, standard deviations over images {deviations[0]:.3f} and "
                f"{deviations[1]:.3f}, excess loss {np.mean([one['excess_loss'] for one in metrics]):.4f} nats. "
                f"{len(records)} seeds.",
            )
        )
    return found


def summary(records: Records) -> Summary:
    """The mean probability for each background, and the error, beside the truth."""
    rows = []
    for way, metrics in _by_way(records).items():
        for color, truth in enumerate(records[0]["metrics"]["truth"]):
            means = [one["mean"][color] for one in metrics]
            rows.append((f"{way}: mean p(B), background {'AB'[color]}", f"{truth:g}", mean_and_deviation(means)))
        errors = [one["absolute_error"] for one in metrics]
        rows.append((f"{way}: mean absolute error", "0", mean_and_deviation(errors)))
    return rows


def _by_way(records: Records) -> dict[str, list[dict[str, Any]]]:
    ways = records[0]["metrics"]["ways"]
    return {way: [record["metrics"]["ways"][way] for record in records] for way in ways}
