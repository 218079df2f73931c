"""Virtual adversarial domain adaptation (VADA, Shu et al. 2018), with the encoder's domain term left open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn.functional import cross_entropy

from setminus.errors import UserError
from setminus.nn.losses import (
    conditional_entropy,
    domain_discriminator_loss,
    domain_encoder_loss,
    virtual_adversarial_divergence,
)
from setminus.nn.passes import Update, each, frozen, in_float32, running_statistics_kept, sees_whole_batch

__all__ = [
    "DomainTerm",
    "Domains",
    "TargetTerm",
    "VadaConfig",
    "VadaNetworks",
    "plain_discriminator_term",
    "plain_domain_term",
    "vada_step",
]


@dataclass(frozen=True)
class VadaNetworks:
    """A classifier in two parts, and a discriminator of domains.

    Parameters
    ----------
    encoder : Module
        From inputs to features.
    head : Module
        From features to class logits of shape (n, C).
    discriminator : Module
        From features to logits of shape (n,), the log odds of source.
    """

    encoder: torch.nn.Module
    head: torch.nn.Module
    discriminator: torch.nn.Module


@dataclass(frozen=True)
class VadaConfig:
    """The weights of the classifier's loss, and the step of its smoothness.

    Parameters
    ----------
    domain : float, default=1e-2
        1e-1 in the paper for MNIST to MNIST-M.
    source_class : float, default=1.0
    source_vat : float, default=1.0
        With 0 its passes are skipped, as in the paper for SVHN to MNIST and for STL as the source.
    target_entropy, target_vat : float, default=1e-2
        1e-1 in the paper for CIFAR and STL.
    vat_radius, vat_xi, vat_power_steps
        See `setminus.nn.losses.virtual_adversarial_loss`.
    """

    domain: float = 1e-2
    source_class: float = 1.0
    source_vat: float = 1.0
    target_entropy: float = 1e-2
    target_vat: float = 1e-2
    vat_radius: float = 3.5
    vat_xi: float = 1e-6
    vat_power_steps: int = 1

    def __post_init__(self) -> None:
        for name in ("domain", "source_class", "source_vat", "target_entropy", "target_vat"):
            if not getattr(self, name) >= 0:
                raise UserError(f"{name} is {getattr(self, name)}", expected="a weight of 0 or more")


@dataclass(frozen=True)
class Domains:
    """The inputs of a domain term.

    Parameters
    ----------
    source_logits, target_logits : Tensor of shape (n,)
        The discriminator on features of each domain.
    source_labels : Tensor of shape (n,)
    target_class_logits : Tensor of shape (n, C)
        The classifier on target rows, without gradients.
    source_weights : Tensor of shape (n,), optional
        Weights of source rows, where batches do not have the class frequencies of the source.
    """

    source_logits: torch.Tensor
    target_logits: torch.Tensor
    source_labels: torch.Tensor
    target_class_logits: torch.Tensor
    source_weights: torch.Tensor | None = None


DomainTerm = Callable[[Domains], torch.Tensor]
"""The adversarial loss of one player: the encoder or the discriminator."""
TargetTerm = Callable[[torch.Tensor], torch.Tensor]
"""A loss of the classifier's logits for target rows."""


def plain_domain_term(domains: Domains) -> torch.Tensor:
    """``-mean(log(1 - D(source))) - mean(log D(target))``: features of both domains should look alike.

    Parameters
    ----------
    domains : Domains

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> undecided = Domains(torch.zeros(3), torch.zeros(3), torch.zeros(3, dtype=torch.int64), torch.zeros(3, 2))
    >>> plain_domain_term(undecided)
    tensor(1.3863)
    """
    return domain_encoder_loss(domains.source_logits, domains.target_logits, domains.source_weights)


def plain_discriminator_term(domains: Domains) -> torch.Tensor:
    """``-mean(log D(source)) - mean(log(1 - D(target)))``: the discriminator's classification loss.

    Parameters
    ----------
    domains : Domains

    Returns
    -------
    Tensor of shape ()

    Examples
    --------
    >>> undecided = Domains(torch.zeros(3), torch.zeros(3), torch.zeros(3, dtype=torch.int64), torch.zeros(3, 2))
    >>> plain_discriminator_term(undecided)
    tensor(1.3863)
    """
    return domain_discriminator_loss(domains.source_logits, domains.target_logits, domains.source_weights)


def vada_step(
    networks: VadaNetworks,
    source: torch.Tensor,
    source_labels: torch.Tensor,
    target: torch.Tensor,
    update: Update,
    *,
    config: VadaConfig | None = None,
    class_weights: torch.Tensor | None = None,
    source_weights: torch.Tensor | None = None,
    domain_term: DomainTerm = plain_domain_term,
    discriminator_term: DomainTerm = plain_discriminator_term,
    target_term: TargetTerm = conditional_entropy,
) -> dict[str, torch.Tensor]:
    """One step of both players: the discriminator first, then the classifier against it.

    ``loss = source_class * cross_entropy + domain * domain_term + source_vat * VAT(source)
    + target_vat * VAT(target) + target_entropy * H(target)``

    Each domain is normalised by its own batch statistics. Only the pass of the target rows as they are goes into the
    running ones: these are for target rows, and neither source rows nor rows moved by VAT are such.

    Parameters
    ----------
    networks : VadaNetworks
        In training mode.
    source, target : Tensor of shape (n, ...)
    source_labels : Tensor of shape (n,), int64
    update : callable
        Called as ``update("discriminator", loss)``, then ``update("classifier", loss)``; the latter is of the
        encoder and the head together.
    config : VadaConfig, optional
    class_weights : Tensor of shape (C,), optional
        Of the source's cross entropy, as a weighted mean: the target's class frequency over the source's undoes a
        shift. None weighs rows equally.
    source_weights : Tensor of shape (n,), optional
        Of source rows in the domain losses, for batches without the class frequencies of the source.
    domain_term : callable, optional
        The encoder's; see `DomainTerm`. The orthogonal one takes the classes out of the discriminator's logits.
    discriminator_term : callable, optional
        The discriminator's; importance weights change both.
    target_term : callable, optional
        From the classifier's logits for target rows to the loss that `VadaConfig.target_entropy` weighs.

    Returns
    -------
    dict of str to Tensor of shape ()
        Every term before its weight, without gradients, to be logged.

    Examples
    --------
    >>> from setminus.nn.networks import mlp
    >>> networks = VadaNetworks(mlp((2, 8)), mlp((8, 3)), torch.nn.Sequential(mlp((8, 1)), torch.nn.Flatten(0)))
    >>> terms = vada_step(networks, torch.zeros(4, 2), torch.arange(4) % 3, torch.ones(4, 2), lambda name, loss: None)
    >>> sorted(terms)
    ['discriminator', 'domain', 'source_class', 'source_vat', 'target_entropy', 'target_vat']
    """
    config = config or VadaConfig()
    encoder, head, discriminator = networks.encoder, networks.head, networks.discriminator
    n = len(source)
    # one pass for both domains where a row's answer does not depend on the rows beside it: half the time
    together = not (sees_whole_batch(encoder) or sees_whole_batch(head))

    def classify_unremembered(x: torch.Tensor) -> torch.Tensor:
        with running_statistics_kept(encoder, head):
            return in_float32(head(encoder(x)))

    if together:
        source_features, target_features = each(encoder, source, target)
        class_logits = in_float32(head(torch.cat([source_features, target_features])))
        source_class_logits, target_class_logits = class_logits[:n], class_logits[n:]
    else:
        with running_statistics_kept(encoder, head):
            source_features = encoder(source)
            source_class_logits = in_float32(head(source_features))
        target_features = encoder(target)
        target_class_logits = in_float32(head(target_features))

    def domains(source_rows: torch.Tensor, target_rows: torch.Tensor) -> Domains:
        source_logits, target_logits = each(discriminator, source_rows, target_rows)
        return Domains(
            in_float32(source_logits),
            in_float32(target_logits),
            source_labels,
            target_class_logits.detach(),
            source_weights,
        )

    terms = {"discriminator": discriminator_term(domains(source_features.detach(), target_features.detach()))}
    update("discriminator", terms["discriminator"])

    terms["source_class"] = cross_entropy(source_class_logits, source_labels, class_weights)
    terms["target_entropy"] = target_term(target_class_logits)
    # frozen also keeps autocast from answering with the discriminator's weights before their update
    with frozen(discriminator):
        terms["domain"] = domain_term(domains(source_features, target_features))
    smoothed = {"source_vat": (source, source_class_logits), "target_vat": (target, target_class_logits)}
    smoothed = {name: rows for name, rows in smoothed.items() if getattr(config, name)}
    groups = [smoothed] if together else [{name: rows} for name, rows in smoothed.items()]
    for group in filter(None, groups):
        divergence = virtual_adversarial_divergence(
            classify_unremembered,
            torch.cat([rows for rows, _ in group.values()]),
            radius=config.vat_radius,
            xi=config.vat_xi,
            power_steps=config.vat_power_steps,
            clean_logits=torch.cat([logits for _, logits in group.values()]),
        )
        parts = divergence.split([len(rows) for rows, _ in group.values()])
        terms |= {name: part.mean() for name, part in zip(group, parts, strict=True)}
    weights = {name: getattr(config, name) for name in terms if name != "discriminator"}
    # no backward pass for losses of weight 0: during the warm-up, the target's rows have none
    counted = [weight * terms[name] for name, weight in weights.items() if weight or name == "source_class"]
    update("classifier", torch.stack(counted).sum())
    return {name: loss.detach() for name, loss in terms.items()}
