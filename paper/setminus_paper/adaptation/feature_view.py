"""Features of both domains in two dimensions: before the domains meet, and at the end of a training."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from torch import nn

from setminus.adaptation.adaptation_task import AdaptationTask, class_logits
from setminus.errors import UserError
from setminus_paper.adaptation.pairs import Scoring

__all__ = ["FeatureView", "flat_features", "two_dimensions"]

ROWS = 150
"""Of each domain."""
COMPONENTS = 30
"""Principal components that t-SNE is given: with all features it is slow, and hears mostly noise."""
PERPLEXITY = 30.0


class FeatureView:
    """An observer of a training that keeps what the encoder makes of some rows of each domain.

    "before" is the end of the warm-up, and it has to be called there: see `every`. "after" is the moment when `metrics`
    is asked. Nothing of the training is changed, and no label is looked at before `metrics`.

    Parameters
    ----------
    task : AdaptationTask
        Its source rows are held-out ones, where there are some.
    scoring : Scoring
        Its images stand for the target.
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
        """How often to log so that it is called every so many steps, and at the end of the warm-up."""
        return gcd(steps, self.task.config.warmup)

    def __call__(self, step: int, values: Mapping[str, float]) -> None:
        """Keep the features at the end of the warm-up."""
        if step == self.task.config.warmup:
            self._before = self._features()

    def metrics(self) -> dict[str, Any]:
        """Both views as plain JSON: each has `xy`, and for each point its `class` and its `domain`, 1 for the target.

        Returns
        -------
        dict
            "before" and "after".

        Raises
        ------
        ValueError
            If the observer was not called at the end of the warm-up.
        """
        if self._before is None:
            raise UserError(
                f"step {self.task.config.warmup}, the end of the warm-up, was not observed",
                do="train for longer, or log every so many steps that one is there.",
            )
        told = {
            "class": [int(label) for labels in self._classes for label in labels],
            "domain": [domain for domain, labels in enumerate(self._classes) for _ in labels],
        }
        views = (("before", self._before), ("after", self._features()))
        return {when: {"xy": two_dimensions(features).round(2).tolist(), **told} for when, features in views}

    def _features(self) -> NDArray[np.float64]:
        # each domain as the classifier meets it: the running statistics are those of the target
        source = flat_features(self.task.networks.encoder, self._source, own_statistics=True)
        return np.concatenate([source, flat_features(self.task.predictor[0], self._target)])


def flat_features(encoder: nn.Module, x: torch.Tensor, *, own_statistics: bool = False) -> NDArray[np.float64]:
    """What the encoder makes of rows, as the discriminator of domains sees it: all numbers of a row side by side.

    Parameters
    ----------
    encoder : Module
    x : Tensor of shape (n, ...)
    own_statistics : bool, default=False
        As in `class_logits`.

    Returns
    -------
    ndarray of shape (n, number of features)

    Examples
    --------
    >>> flat_features(nn.Conv2d(3, 2, 1), torch.zeros(5, 3, 4, 4)).shape
    (5, 32)
    """
    flat = class_logits(nn.Identity(), nn.Sequential(encoder, nn.Flatten()), x, own_statistics=own_statistics)
    features: NDArray[np.float64] = flat.double().cpu().numpy()
    return features


def two_dimensions(features: NDArray[np.float64], *, random_state: int = 0) -> NDArray[np.float64]:
    """A map of rows on which neighbors stay neighbors: t-SNE of the principal components.

    Distances between far points, and the size of clusters, say nothing.

    Parameters
    ----------
    features : ndarray of shape (n, number of features)
        At least four rows.
    random_state : int, default=0

    Returns
    -------
    ndarray of shape (n, 2)

    Examples
    --------
    >>> two_dimensions(np.random.default_rng(0).normal(size=(20, 5))).shape
    (20, 2)
    """
    if features.ndim != 2 or len(features) < 4:
        raise UserError(f"features have shape {features.shape}", expected="four rows or more, each with its features")
    parts = PCA(min(COMPONENTS, *features.shape), random_state=random_state).fit_transform(features)
    # more neighbors than a third of the rows would be no neighborhood
    perplexity = min(PERPLEXITY, (len(parts) - 1) / 3)
    places = TSNE(perplexity=perplexity, init="pca", random_state=random_state).fit_transform(parts)
    return np.asarray(places, dtype=np.float64)


def _spread(n: int) -> NDArray[np.int64]:
    """Rows at equal distances: some sets are sorted by class, and the first rows of those are of one."""
    return np.linspace(0, n - 1, min(ROWS, n)).astype(np.int64)
