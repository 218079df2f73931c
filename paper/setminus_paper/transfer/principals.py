"""Where the principal classifier of the domain comes from: an oracle's set, or environments that share only p(y|z1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, get_args

from torch import nn

from setminus.errors import UserError
from setminus.invariant.environment_task import Environment, EnvironmentConfig
from setminus.invariant.fitting import METHODS, Method, fit_invariant
from setminus.nn.networks import DigitClassifier, seeded
from setminus.nn.passes import prepare
from setminus.transfer.domain_classifiers import ClassifierConfig, fit_domain_classifier
from setminus.transfer.pixels import signed
from setminus_paper.transfer.last_layer import fit_last_layer

__all__ = ["fit_last_layer_principal", "fit_principal"]


def fit_principal(
    source: str,
    sets: Sequence[Environment],
    classifier: ClassifierConfig,
    *,
    seed: int,
    environments: EnvironmentConfig | None = None,
) -> nn.Module:
    """Train a principal classifier of the domain.

    Parameters
    ----------
    source : {"oracle", "mldg", "trm", "fish"}
        "oracle" fits one set in which only z1 tells the domain; the others look for what stays between sets.
    sets : sequence of (Tensor, Tensor)
        Images, as bytes or in [-1, 1], and int64 domains: one set for the oracle, two or more environments else.
    classifier : ClassifierConfig
        How the oracle's classifier is trained; of its numbers the other methods take the width.
    seed : int
        Of the initial weights and of the batches.
    environments : EnvironmentConfig, optional
        How the other methods train, of the method's own kind; its seed is replaced. By default with the paper's values.

    Returns
    -------
    Module
        From images in [-1, 1] to logits of shape (n, 2), frozen in evaluation mode.

    Examples
    --------
    >>> import torch
    >>> x = torch.rand(32, 3, 8, 8)
    >>> y = (x.mean((1, 2, 3)) > 0.5).long()
    >>> principal = fit_principal("oracle", [(x, y)], ClassifierConfig(width=2, epochs=1, batch_size=16), seed=0)
    >>> principal(x).shape
    torch.Size([32, 2])
    """
    if source == "oracle":
        if len(sets) != 1:
            raise UserError(
                f"the oracle came with {len(sets)} sets", do="give the one in which only z1 tells the domain."
            )
        (x, y), *_ = sets
        return fit_domain_classifier(x, y, classifier, seed=seed)
    method = _method(source)
    channels = sets[0][0].shape[1]
    network = prepare(seeded(seed, lambda: DigitClassifier(width=classifier.width, channels=channels)))
    config = replace(environments or METHODS[method][1](), seed=seed)
    return fit_invariant(method, [(signed(x), y) for x, y in sets], network, config)


def fit_last_layer_principal(
    source: str, sets: Sequence[Environment], held_out: Sequence[Environment], pooled: nn.Module
) -> nn.Module:
    """Learn only the last layer of a principal classifier from environments, on features that all of them share.

    On whole networks the methods hardly leave the classifier that pools the environments; here they do. The stage is
    ours, not the paper's: see `setminus_paper.transfer.last_layer`.

    Parameters
    ----------
    source : {"mldg", "trm", "fish"}
    sets, held_out : sequence of (Tensor, Tensor)
        Images, as bytes or in [-1, 1], and int64 domains of each environment: to fit, and to calibrate and choose.
    pooled : Module
        A classifier of all environments' images together, such as `fit_domain_classifier` gives. It stays as it is.

    Returns
    -------
    Module
        From images in [-1, 1] to logits of shape (n, 2), in evaluation mode.

    Examples
    --------
    >>> import torch
    >>> x = torch.rand(400, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    >>> y = (x.mean((1, 2, 3)) > 0.5).long()
    >>> pooled = fit_domain_classifier(x, y, ClassifierConfig(width=2, epochs=2, batch_size=16), seed=0)
    >>> sets = [(x[:200], y[:200]), (x[200:], y[200:])]
    >>> fit_last_layer_principal("mldg", sets, sets, pooled)(x).shape
    torch.Size([400, 2])
    """
    method = _method(source)
    environments, others = ([(signed(x), y) for x, y in some] for some in (sets, held_out))
    return fit_last_layer(method, environments, others, pooled)


def _method(source: str) -> Any:
    known = sorted({*get_args(Method)} - {"erm"})
    if source not in known:
        raise UserError(
            f"no source of principal classifiers is called {source!r}", do=f"there are oracle, {', '.join(known)}."
        )
    return source
