"""What a translation did to held-out pictures, in numbers and in one word for each direction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from setminus.datasets.images import Bytes, from_signed_nchw
from setminus.nn.cyclegan import CycleGAN
from setminus.transfer.factor_classifiers import FactorClassifiers, Role
from setminus.transfer.networks import signed, translate

__all__ = [
    "DIRECTIONS",
    "TranslationJudge",
    "Verdict",
    "edge_correlation",
    "fine_contrast",
    "keeps_up",
    "kernel_distance",
    "merit",
    "verdict",
    "worst",
]

DIRECTIONS = ("a_to_b", "b_to_a")
Floats = NDArray[np.float64]
Verdict = Literal["good", "train longer", "do not use"]
ORDER: tuple[Verdict, ...] = ("good", "train longer", "do not use")

MIN_CHANGED, MIN_KEPT = 0.88, 0.85
"""Fractions of pictures that change, and that keep what they must, from which on a direction is good.

Real pictures have 0.95 in the first, and the classifier behind the second errs on about one of ten of them. Where both
are reached on the development sets, 90 % had changed and were kept by their pixels."""
BAD = 0.75
"""Below this fraction of pictures that keep what they must, a translation that no longer improves is not usable."""
MIN_MATCHED = 0.75
"""Fraction of pictures whose translation must have more of their own edges than of another picture's."""
SAME_EDGES = 0.9
"""Correlation of the edges of two pictures from which on their outlines are the same."""
MAX_GRAIN = 1.25
"""A direction with more fine contrast than real pictures by this factor is noise, with less it is blur."""
MAX_DISTANCE = 0.12
"""A direction whose distance from real pictures is above this is not good, also where that may be chance.

Crosses that are half discs pass for crosses, but are 0.13 from real ones."""
FINE_GRAIN = 1.1
"""Up to this factor a grain is like that of real pictures, and no reason to prefer one translation to another."""
CHANCE = 0.05
"""Merits that differ by less are about equal: of 130 held-out pictures at 80 %, 1.5 standard errors."""
ALIKE = 0.8
"""Fraction of pictures whose mirror image must be classified alike, to train on mirrored pictures."""
IMPROVES = 0.05
"""A fraction that rose by this much over the second half of the training is still rising."""
UNSURE = 0.05
"""Quantile of the log odds of real pictures below which a translation does not count as changed."""
INVISIBLE = 0.05
"""Contrast of a pixel with the four next to it that nobody sees: 1.5 of 255 levels from each."""
TINY = 1e-9
RESAMPLES = 200
"""Of the pictures, for the interval of the distance."""


class TranslationJudge:
    """What held-out pictures are after translation, as classifiers see them.

    Parameters
    ----------
    classifiers : FactorClassifiers
    role : {"change", "keep"}
    a, b : Tensor of shape (n, 3, size, size)
        Held-out images of each domain.
    shown : int
        Images of each domain in samples.
    """

    def __init__(
        self, classifiers: FactorClassifiers, role: Role, a: torch.Tensor, b: torch.Tensor, shown: int = 8
    ) -> None:
        self.classifiers = classifiers
        # what is to move to the other domain's side, and what is to stay: its side, and its value
        self.moves, self.side, self.stays = (
            ("column", "rest", "rest") if role == "change" else ("rest", "column", "value")
        )
        if "kept" in classifiers.modules:
            self.stays = "kept"
        self.real: dict[str, torch.Tensor] = {"a_to_b": signed(a), "b_to_a": signed(b)}
        self.before: dict[str, dict[str, Floats]] = {
            direction: classifiers.log_probas(images) for direction, images in self.real.items()
        }
        odds = np.concatenate([_odds(found[self.moves]) for found in self.before.values()])
        # a picture between two values gets one of them from a classifier, less clearly than real pictures of a value
        self.clear: tuple[float, float] = (_limit(-odds), _limit(odds))
        self.shown = shown

    def __call__(self, networks: CycleGAN) -> dict[str, dict[str, float]]:
        """Scores of each direction.

        Returns
        -------
        dict of str to dict
            For "a_to_b" and "b_to_a": "changed", the fraction of pictures with their own domain's side of the factor
            to change that get the other's, as clearly as all but 5 % of its real pictures have it; "kept", the fraction
            whose other factor stays; "domain", the fraction classified as the other domain; "structure" and
            "unrelated", the mean correlation of the edges of a picture with those of its translation, and with those
            of the next picture's; "matched", the fraction of pictures with more of the former: 0.5 where translations
            have nothing to do with their pictures; "grain", the `fine_contrast` of translations over that of their
            pictures or of real pictures of the other domain, with weights as in `distances`: above 1 where it is above
            both, for noise, below 1 where it is below both, for blur.
        """
        scores = {}
        contrast = {direction: fine_contrast(real.numpy()) for direction, real in self.real.items()}
        weights = self._weights()
        for own, direction in enumerate(DIRECTIONS):
            real, before = self.real[direction], self.before[direction]
            translated = translate(getattr(networks, direction), real)
            after = self.classifiers.log_probas(translated)
            has_own = before[self.moves].argmax(1) == own
            rows = has_own if has_own.any() else np.ones_like(has_own)
            odds = _odds(after[self.moves]) * (1 if own == 0 else -1)
            fakes, other = translated.numpy(), DIRECTIONS[1 - own]
            # both: what is kept has a contrast of its own, which weights match only roughly
            usual = [np.average(contrast[one], weights=weights[one]) for one in (direction, other)]
            made = np.average(fine_contrast(fakes), weights=weights[direction])
            own_edges, others_edges = (
                edge_correlation(real.numpy(), one) for one in (fakes, np.roll(fakes, 1, axis=0))
            )
            # pictures with the same outlines cannot be told apart by them
            distinct = edge_correlation(real.numpy(), np.roll(real.numpy(), 1, axis=0)) < SAME_EDGES
            shares = {
                "changed": np.mean(odds[rows] >= self.clear[1 - own]),
                "kept": np.mean(after[self.stays].argmax(1) == before[self.stays].argmax(1)),
                "domain": np.mean(after["domain"].argmax(1) != own),
                "structure": own_edges.mean(),
                "unrelated": others_edges.mean(),
                "matched": np.mean((own_edges > others_edges)[distinct]) if distinct.any() else 1.0,
                "grain": np.exp(made - np.clip(made, min(usual), max(usual))),
            }
            scores[direction] = {name: round(float(share), 4) for name, share in shares.items()}
        return scores

    def mirrors(self) -> bool:
        """Whether mirrored pictures are as good to train on: whether the classifiers see the same in them.

        They do not where a factor is a direction, such as heads that look to the left or to the right.
        """
        found = {direction: self.classifiers.log_probas(images.flip(3)) for direction, images in self.real.items()}
        return all(
            np.mean(mirrored[name].argmax(1) == self.before[direction][name].argmax(1)) >= ALIKE
            for direction, mirrored in found.items()
            for name in (self.moves, self.side)
        )

    def distances(self, networks: CycleGAN) -> dict[str, dict[str, Any]]:
        """How far translations are from real pictures of the other domain in what is to change, by `kernel_distance`.

        The features are those of the classifier of what is to change. What is kept differs between the domains, and is
        no fault: pictures of both domains are weighted by the probability of the *other* domain given what is kept.
        Both then have the same distribution of it.

        Returns
        -------
        dict of str to dict
            For each direction the "distance" of translations, as a fraction of that before translation: 0 for pictures
            like the real ones, 1 for no change; and its "distance_interval" (95 %, by resampled pictures).
        """
        features = {direction: self._features(real) for direction, real in self.real.items()}
        weights = self._weights()
        found = {}
        for direction, other in zip(DIRECTIONS, DIRECTIONS[::-1], strict=True):
            fakes = self._features(translate(getattr(networks, direction), self.real[direction]))
            target = (features[other], weights[other])
            distance, interval = kernel_distance((fakes, weights[direction]), target)
            before = max(kernel_distance((features[direction], weights[direction]), target)[0], TINY)
            found[direction] = {
                "distance": round(distance / before, 4),
                "distance_interval": [round(limit / before, 4) for limit in interval],
            }
        return found

    def _weights(self) -> dict[str, Floats]:
        """The probability of the other domain given what is kept, for the pictures of each direction."""
        return {
            direction: np.exp(self.before[direction][self.side][:, 1 - own]) for own, direction in enumerate(DIRECTIONS)
        }

    def _features(self, images: torch.Tensor) -> Floats:
        network = self.classifiers.modules[f"judge_{self.moves}"].features
        with torch.no_grad():
            return np.asarray(torch.cat([network(signed(part)) for part in images.split(256)]).double())

    def strips(self, networks: CycleGAN) -> dict[str, Bytes]:
        """The first images and their translations: "a", "a_to_b", "b", "b_to_a", of shape (n, size, size, 3)."""
        rows = {}
        for domain, direction in zip("ab", DIRECTIONS, strict=True):
            images = self.real[direction][: self.shown]
            rows[domain] = from_signed_nchw(images.numpy())
            rows[direction] = from_signed_nchw(translate(getattr(networks, direction), images).numpy())
        return rows

    def grid(self, networks: CycleGAN) -> Bytes:
        """The strips below each other, as one image of shape (4 * size, n * size, 3)."""
        strips = [np.concatenate(list(images), axis=1) for images in self.strips(networks).values()]
        widest = max(strip.shape[1] for strip in strips)
        # a domain may have fewer held-out images than the other
        white = [np.full((strip.shape[0], widest - strip.shape[1], 3), 255, np.uint8) for strip in strips]
        return np.concatenate([np.concatenate(pair, axis=1) for pair in zip(strips, white, strict=True)])


def _odds(log_proba: Floats) -> Floats:
    return np.asarray(log_proba[:, 1] - log_proba[:, 0])


def _limit(odds: Floats) -> float:
    """The log odds of a value that all but the least clear of its real pictures have."""
    positive = odds[odds > 0]
    return float(np.quantile(positive, UNSURE)) if len(positive) else 0.0


def edge_correlation(before: NDArray[np.float32], after: NDArray[np.float32]) -> Floats:
    """The correlation of the edges of each picture before and after: 1 where its outlines stay as they are.

    Edges are the lengths of the gradient over all channels: red next to green is an edge, where their mean has none.

    Parameters
    ----------
    before, after : float array of shape (n, channels, height, width)

    Returns
    -------
    float array of shape (n,)
        0 where one of the two has no edges.

    Examples
    --------
    >>> pictures = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    >>> edge_correlation(pictures, 2 - pictures).round(3).tolist()
    [1.0, 1.0]
    """
    edges = [_edges(pictures) for pictures in (before, after)]
    centred = [one - one.mean(axis=1, keepdims=True) for one in edges]
    scale = np.sqrt(np.prod([(one**2).sum(axis=1) for one in centred], axis=0))
    product = (centred[0] * centred[1]).sum(axis=1)
    return np.asarray(np.divide(product, scale, out=np.zeros_like(product), where=scale > 0))


def fine_contrast(pictures: NDArray[np.float32]) -> Floats:
    """The mean log contrast of the pixels of each picture with the four next to them.

    In logs, since a few edges must not hide noise on all the ground between them.

    Parameters
    ----------
    pictures : float array of shape (n, channels, height, width)
        In [-1, 1].

    Returns
    -------
    float array of shape (n,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> flat, noisy = (rng.normal(0, scale, size=(1, 3, 8, 8)).astype(np.float32) for scale in (0.01, 0.2))
    >>> bool(fine_contrast(noisy)[0] > fine_contrast(flat)[0] + 1)
    True
    """
    middle = 4 * pictures[..., 1:-1, 1:-1].astype(np.float64)
    around = pictures[..., :-2, 1:-1] + pictures[..., 2:, 1:-1] + pictures[..., 1:-1, :-2] + pictures[..., 1:-1, 2:]
    contrast = np.abs(middle - around).mean(axis=1).reshape(len(pictures), -1)
    return np.asarray(np.log(contrast + INVISIBLE).mean(axis=1))


def _edges(pictures: NDArray[np.float32]) -> Floats:
    colors = pictures.astype(np.float64)
    down, across = np.diff(colors, axis=2)[..., :-1], np.diff(colors, axis=3)[:, :, :-1]
    return np.asarray(np.sqrt((down**2 + across**2).sum(axis=1)).reshape(len(colors), -1))


Weighted = tuple[Floats, Floats]
"""Features of shape (n, d) and weights of shape (n,)."""


def kernel_distance(one: Weighted, other: Weighted, seed: int = 0) -> tuple[float, list[float]]:
    """The squared maximum mean discrepancy (Gretton et al. 2012) of features, and its 95 % bootstrap interval.

    Unbiased, hence 0 on average where both have one distribution, and possibly negative. Its kernel is
    ``exp(-|x - y|**2 / (2 * median**2))``, with the median distance of two pictures of `other`, of features that are
    scaled by their standard deviation there. Unlike the cubic kernel of the kernel inception distance it is bounded: a
    few strange pictures count as a few.

    Parameters
    ----------
    one, other : (features of shape (n, d), weights of shape (n,))
    seed : int
        Of the resampled pictures.

    Returns
    -------
    distance : float
    interval : [low, high]

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> same, apart = ((rng.normal(size=(200, 4)) + shift, np.ones(200)) for shift in (0, 1))
    >>> reference = (rng.normal(size=(200, 4)), np.ones(200))
    >>> kernel_distance(same, reference)[0] < 0.1 < kernel_distance(apart, reference)[1][0]
    True
    """
    scale = other[0].std(axis=0) + 1e-6
    x, y = one[0] / scale, other[0] / scale
    squared = [_squared_distances(left, right) for left, right in ((x, x), (y, y), (x, y))]
    usual = max(float(np.median(squared[1][~np.eye(len(y), dtype=bool)])) if len(y) > 1 else 1.0, TINY)
    kernels = [np.exp(-one / (2 * usual)) for one in squared]
    rng = np.random.default_rng(seed)
    whole = _discrepancy(kernels, one[1], other[1])
    drawn = []
    for _ in range(RESAMPLES):
        # multiplicities of the pictures: those drawn twice have weight 2
        counts = [rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows))) for rows in (x, y)]
        drawn.append(_discrepancy(kernels, one[1] * counts[0], other[1] * counts[1]))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return whole, [float(low), float(high)]


def _squared_distances(x: Floats, y: Floats) -> Floats:
    return np.asarray(((x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1) - 2 * x @ y.T).clip(0))


def _discrepancy(kernels: Sequence[Floats], v: Floats, w: Floats) -> float:
    """The squared discrepancy from the kernels within and between, with weights; pairs of a picture with itself out."""
    within = [
        (weights @ kernel @ weights - weights**2 @ kernel.diagonal())
        / max(weights.sum() ** 2 - (weights**2).sum(), TINY)
        for kernel, weights in zip(kernels, (v, w), strict=False)
    ]
    return float(sum(within) - 2 * (v @ kernels[2] @ w) / (v.sum() * w.sum()))


def verdict(scores: Mapping[str, Any], curve: Sequence[Mapping[str, Any]] = ()) -> Verdict:
    """The word for one direction.

    Parameters
    ----------
    scores : mapping
        `changed` and `kept`, fractions of held-out pictures; `matched`, the fraction whose translation has their own
        edges rather than another picture's; `grain`, the fine contrast of translations over that of real pictures;
        `distance`, that from real pictures of the other domain, where it was measured.
    curve : sequence of mapping
        The scores at evaluations during training, the last of them at its end.

    Returns
    -------
    {"good", "train longer", "do not use"}

    Examples
    --------
    >>> verdict({"changed": 0.97, "kept": 0.99, "matched": 0.98, "grain": 1.1})
    'good'
    >>> verdict({"changed": 0.97, "kept": 0.31, "matched": 0.98, "grain": 1.1})
    'do not use'
    >>> verdict({"changed": 0.97, "kept": 0.99, "matched": 0.98, "grain": 2.5})
    'train longer'
    """
    content = scores["matched"] >= MIN_MATCHED
    # noise may satisfy classifiers of both factors, and is far from real pictures
    near = scores.get("distance", 0.0) <= MAX_DISTANCE
    real = near and 1 / MAX_GRAIN <= scores["grain"] <= MAX_GRAIN
    if content and real and scores["changed"] >= MIN_CHANGED and scores["kept"] >= MIN_KEPT:
        return "good"
    # as it was halfway, where the learning rate began to fall
    middle = curve[(len(curve) - 1) // 2] if len(curve) > 1 else None
    rising = middle is not None and any(scores[name] - middle[name] >= IMPROVES for name in ("kept", "matched"))
    if (scores["kept"] < BAD or not content) and not rising:
        return "do not use"
    return "train longer"


def merit(scores: Mapping[str, float]) -> float:
    """How good one direction is at an evaluation, to choose between evaluations: 2 at most.

    The fractions changed and kept, less the log of a grain beyond `FINE_GRAIN`: a longer training that changes no more
    pictures, but roughens them, is worse.

    Examples
    --------
    >>> merit({"changed": 1.0, "kept": 1.0, "grain": 1.05})
    2.0
    >>> merit({"changed": 0.99, "kept": 0.97, "grain": 2.2}) < merit({"changed": 0.85, "kept": 0.97, "grain": 1.5})
    True
    """
    grain = max(0.0, abs(math.log(max(scores["grain"], TINY))) - math.log(FINE_GRAIN))
    # rounded as the scores are: what is as good is equal
    return round(scores["changed"] + scores["kept"] - grain, 4)


def keeps_up(found: float, highest: float) -> bool:
    """Whether a later evaluation is about as good as the best one before: by then the weights have settled more.

    Parameters
    ----------
    found, highest : float
        The `merit` of the later one, and the highest of those before it.

    Examples
    --------
    >>> keeps_up(1.86, 1.9), keeps_up(1.8, 1.9)
    (True, False)
    """
    # half of the last digit of a merit: a buffer has it in float32, as some devices have no other
    return found > highest - CHANCE - 5e-5


def worst(words: Sequence[Verdict]) -> Verdict:
    """The word for a translation: that of its worse direction.

    Examples
    --------
    >>> worst(["good", "train longer"])
    'train longer'
    """
    return max(words, key=ORDER.index)
