"""The paper's alternative: the orthogonal classifier itself, trained on rows weighted until z1 tells nothing."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from setminus.core.importance import importance_weights
from setminus.transfer.domain_classifiers import ClassifierConfig, fit_domain_classifier, log_proba

__all__ = ["fit_orthogonal_by_importance"]


def fit_orthogonal_by_importance(
    x: torch.Tensor,
    y: torch.Tensor,
    principal: nn.Module,
    config: ClassifierConfig,
    *,
    seed: int,
    prior: Any = "uniform",
    network: nn.Module | None = None,
) -> nn.Module:
    """Train p(y|z2) on images weighted by ``phi = p(y) / w_1(x)_y``.

    Parameters
    ----------
    x : Tensor of shape (n, channels, height, width)
        As bytes, or in [-1, 1].
    y : Tensor of shape (n,), int64
        The domain of each image.
    principal : Module
        From images to logits of shape (n, 2).
    config : ClassifierConfig
    seed : int
    prior : two numbers (A, B) or "uniform"
        The domains' shares in the data that the principal classifier was trained on.
    network : Module, optional
        See `fit_domain_classifier`.

    Returns
    -------
    Module
        From images in [-1, 1] to logits of shape (n, 2), in evaluation mode.

    Examples
    --------
    >>> x, y = torch.rand(32, 3, 8, 8), torch.arange(32) % 2
    >>> config = ClassifierConfig(width=2, epochs=1, batch_size=16)
    >>> principal = fit_domain_classifier(x, y, config, seed=0)
    >>> fit_orthogonal_by_importance(x, y, principal, config, seed=0)(x).shape
    torch.Size([32, 2])
    """
    phi = importance_weights(y.numpy(), log_proba(principal, x).exp().numpy(), prior)
    return fit_domain_classifier(x, y, config, seed=seed, weights=torch.from_numpy(phi).float(), network=network)
