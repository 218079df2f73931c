"""The methods of adaptation on small networks of linear layers, with their gradients written out.

The losses are those of `setminus.adaptation.methods`, which tests compare this file with. On the batches of a table a
step of these networks takes microseconds of arithmetic; what takes time is the bookkeeping of automatic differentiation
and of an optimizer for each weight. Here the weights of a player are one vector, and a step is a few matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from setminus.adaptation.methods import (
    MIN_FREQUENCY,
    AdaptationTask,
    DirtT,
    EstimatingVada,
    Vada,
    VadaOrthogonal,
)
from setminus.adaptation.vada import VadaConfig
from setminus.nn.losses import unit_rows
from setminus.nn.training import NotFiniteError, TrainingConfig, training_settings
from setminus.progress import tracked

__all__ = ["LinearLayers", "class_slope", "linear_layers", "train_small", "weights_of"]

EPSILON = 1e-8
"""Of Adam."""
LOOK_EVERY, LOOKS, MAX_CHANGED = 50, 4, 0.02
"""Steps between two looks at an adversarial training; the number of looks in a row at which it must have settled; and
the share of target rows whose predicted class may change between two of them."""
MAX_LOOKED_AT = 1_000
"""Target rows that are looked at."""


class LinearLayers:
    """Linear layers with ReLU between them, whose weights, and the slopes of a loss in them, are one vector each.

    Parameters
    ----------
    weights : sequence of Tensor
        The weight, of shape (outputs, inputs), and the bias of each layer, one after the other. Changed in place: they
        become views of the vector.
    rate, betas
        Of Adam.

    Examples
    --------
    >>> with torch.no_grad():
    ...     network = LinearLayers(weights_of(nn.Linear(2, 3), nn.Linear(3, 1)), rate=0.1)
    ...     seen = network.forward(torch.ones(4, 2))
    ...     network.backward(seen, torch.ones(4, 1))
    ...     network.update()
    >>> [tuple(one.shape) for one in seen], bool(network.forward(torch.ones(4, 2))[-1].sum() < seen[-1].sum())
    ([(4, 2), (4, 3), (4, 1)], True)
    """

    def __init__(self, weights: Sequence[torch.Tensor], rate: float, betas: tuple[float, float] = (0.5, 0.999)) -> None:
        self.rate: float = rate
        self.betas: tuple[float, float] = betas
        self.vector: torch.Tensor = torch.cat([weight.detach().flatten() for weight in weights])
        self.slopes: torch.Tensor = torch.zeros_like(self.vector)
        self._moments = torch.zeros_like(self.vector), torch.zeros_like(self.vector)
        self._updates = 0
        sizes = [weight.numel() for weight in weights]
        views = [
            [part.view_as(weight) for part, weight in zip(vector.split(sizes), weights, strict=True)]
            for vector in (self.vector, self.slopes)
        ]
        for weight, view in zip(weights, views[0], strict=True):
            weight.data = view
        self._weights, self._biases = views[0][::2], views[0][1::2]
        self._weight_slopes, self._bias_slopes = views[1][::2], views[1][1::2]

    @property
    def layers(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The weight and the bias of each layer."""
        return [*zip(self._weights, self._biases, strict=True)]

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        """The inputs of each layer, from 0 on after ReLU, and the output of the last."""
        seen = [x]
        for weight, bias in zip(self._weights[:-1], self._biases[:-1], strict=True):
            seen.append(torch.addmm(bias, seen[-1], weight.t()).relu_())
        seen.append(torch.addmm(self._biases[-1], seen[-1], self._weights[-1].t()))
        return seen

    def backward(self, seen: list[torch.Tensor], slope: torch.Tensor, features: torch.Tensor | None = None) -> None:
        """Add the slopes of a loss in the weights, from its slope in the output and in the last layer's input."""
        for place in reversed(range(len(self._weights))):
            self._weight_slopes[place].addmm_(slope.t(), seen[place])
            self._bias_slopes[place].add_(slope.sum(0))
            if place:
                slope = slope @ self._weights[place]
                if features is not None and place == len(self._weights) - 1:
                    slope += features
                slope.mul_(seen[place].sign())

    def input_slope(self, seen: list[torch.Tensor], slope: torch.Tensor) -> torch.Tensor:
        """The slope of a loss in the input, from its slope in the output."""
        for place in reversed(range(len(self._weights))):
            slope = slope @ self._weights[place]
            if place:
                slope.mul_(seen[place].sign())
        return slope

    def update(self, factor: float = 1.0) -> None:
        """Take a step of Adam down the slopes, and clear them."""
        self._updates += 1
        (first, second), slopes, (beta, gamma) = self._moments, self.slopes, self.betas
        first.lerp_(slopes, 1 - beta)
        second.mul_(gamma).addcmul_(slopes, slopes, value=1 - gamma)
        deviation = second.sqrt().div_(math.sqrt(1 - gamma**self._updates)).add_(EPSILON)
        length = factor * self.rate / (1 - beta**self._updates)
        self.vector.addcdiv_(first, deviation, value=-length)
        slopes.zero_()


def linear_layers(*modules: nn.Module) -> list[nn.Linear]:
    """The linear layers of modules, in order."""
    return [part for module in modules for part in module.modules() if isinstance(part, nn.Linear)]


def weights_of(*modules: nn.Module) -> list[torch.Tensor]:
    """The weight and the bias of each of the linear layers."""
    return [weight for layer in linear_layers(*modules) for weight in (layer.weight, layer.bias)]


def train_small(
    task: AdaptationTask, steps: int, seed: int, device: str = "cpu", *, early_stopping: bool = False
) -> None:
    """Train the networks of a task in place, as `setminus.nn.training.train` does.

    Parameters
    ----------
    task : AdaptationTask
        One of `setminus.adaptation.methods` on `small_networks`.
    steps, seed : int
    device : str
    early_stopping : bool, default=False
        Stop an adversarial training that has settled: the predictions for the target hardly change any more, and the
        loss on held-out source rows, if there are any, has stopped falling. No label of the target is used.
    """
    for module in task.modules.values():
        module.to(device)
    with training_settings(TrainingConfig(steps=steps, seed=seed, accelerator=device)), torch.inference_mode():
        classifier = LinearLayers(weights_of(*task.predictor), task.config.rate)
        step = _step_of(task, classifier, device)
        settled = _Settled(task, classifier, device) if early_stopping and isinstance(task, Vada) else None
        with tracked("train", total=steps, unit="steps") as progress:
            for index in range(steps):
                step(index)
                classifier.update(task.rate(index))
                progress.advance()
                due = index >= task.config.warmup and (index + 1) % LOOK_EVERY == 0
                if settled is not None and due and settled.look():
                    break
    for module in task.modules.values():
        for weight in module.parameters():
            # a tensor of inference mode cannot be copied or trained outside of it
            weight.data = weight.detach().clone()
    if not bool(classifier.vector.isfinite().all()):
        raise NotFiniteError("the weights of the network are no longer finite: lower the learning rate.")


class _Settled:
    """How long the predictions for the target have hardly changed, and the loss on held-out source rows not fallen."""

    def __init__(self, task: AdaptationTask, classifier: LinearLayers, device: str) -> None:
        data, self.classifier = task.data, classifier
        every = -(-len(data.target) // MAX_LOOKED_AT)
        self.target = data.target[::every].to(device)
        self.held_out, self.labels = data.held_out, data.held_out_labels
        if self.held_out is not None and self.labels is not None:
            self.held_out, self.labels = self.held_out.to(device), self.labels.to(device)
            counts = torch.bincount(self.labels, minlength=data.n_classes)
            self.weights = (1 / counts).to(self.held_out)
        self.decided: torch.Tensor | None = None
        self.least, self.still, self.waited = math.inf, 0, 0

    def look(self) -> bool:
        """Whether the training may stop."""
        decided = self.classifier.forward(self.target)[-1].argmax(1)
        changed = 1.0 if self.decided is None else float((decided != self.decided).double().mean())
        self.decided = decided
        self.still = self.still + 1 if changed <= MAX_CHANGED else 0
        if self.held_out is None or self.labels is None:
            return self.still >= LOOKS
        loss = float(cross_entropy(self.classifier.forward(self.held_out)[-1], self.labels, self.weights))
        self.waited = 0 if loss < self.least else self.waited + 1
        self.least = min(loss, self.least)
        return min(self.still, self.waited) >= LOOKS


Step = Callable[[int], None]
"""Adds the slopes of the classifier's loss on the batches of a step."""


def _step_of(task: AdaptationTask, classifier: LinearLayers, device: str) -> Step:
    if isinstance(task, Vada):
        return _Game(task, classifier, device).step
    if isinstance(task, DirtT):
        return partial(_refine, task, classifier, LinearLayers(weights_of(task.teacher), 0.0), device)
    return partial(_supervise, task, classifier, device)


def _supervise(task: AdaptationTask, classifier: LinearLayers, device: str, index: int) -> None:
    x, labels = (rows.to(device) for rows in task.source_batches.at(index))
    seen = classifier.forward(x)
    classifier.backward(seen, class_slope(seen[-1].softmax(1), labels, task.class_weights(index)))


def _refine(task: DirtT, classifier: LinearLayers, teacher: LinearLayers, device: str, index: int) -> None:
    if index % task.teacher_every == 0:
        teacher.vector.copy_(classifier.vector)
    losses = task.config.losses
    (x,) = (rows.to(device) for rows in task.target_batches.at(index))
    seen = classifier.forward(x)
    log_proba = seen[-1].log_softmax(1)
    proba = log_proba.exp()
    distance = (proba - teacher.forward(x)[-1].softmax(1)) / len(x)
    classifier.backward(seen, losses.target_entropy * _slope(proba, -log_proba) + task.anchor * distance)
    if losses.target_vat:
        _smoothen(classifier, x, proba, torch.full_like(x[:, :1], losses.target_vat / len(x)), losses)


class _Game:
    """The steps of `vada_step`: the discriminator's update, then the slopes of the classifier's loss."""

    def __init__(self, task: Vada, classifier: LinearLayers, device: str) -> None:
        self.task, self.classifier, self.device = task, classifier, device
        self.discriminator = LinearLayers(weights_of(task.networks.discriminator), task.config.rate)
        self.n: int = task.source_batches.size
        sizes = self.n, task.target_batches.size
        values = (torch.tensor([one, other]) for one, other in ((1.0, 0.0), (1 / sizes[0], 1 / sizes[1])))
        # of each row of the source, then of the target: its domain, and its share of a mean over the domain
        self.of_source, self.share = (
            pair.repeat_interleave(torch.tensor(sizes))[:, None].to(classifier.vector) for pair in values
        )

    def step(self, index: int) -> None:
        task, classifier, n = self.task, self.classifier, self.n
        if isinstance(task, EstimatingVada):
            task.prior.update(index, *task.predictor, task.data)
        source, labels = (rows.to(self.device) for rows in task.source_batches.at(index))
        (target,) = (rows.to(self.device) for rows in task.target_batches.at(index))
        losses, x = task.losses(index), torch.cat([source, target])
        seen = classifier.forward(x)
        log_proba = seen[-1].log_softmax(1)
        proba = log_proba.exp()
        if isinstance(task, EstimatingVada):
            task.prior.observe(seen[-1][n:])
        slope = class_slope(proba[:n], labels, task.class_weights(index))
        of_features = self._domain_slope(index, seen[-2], labels, proba[n:], losses.domain)
        if losses.domain or losses.target_entropy:
            slope = torch.cat([slope, losses.target_entropy * self._target_slope(seen[-1][n:], log_proba[n:])])
        # during the warm-up no loss has target rows
        classifier.backward([rows[: len(slope)] for rows in seen], slope, of_features)
        smoothed = slice(0 if losses.source_vat else n, None if losses.target_vat else n)
        if losses.source_vat or losses.target_vat:
            weights = self.share * torch.where(self.of_source > 0, losses.source_vat, losses.target_vat)
            _smoothen(classifier, x[smoothed], proba[smoothed], weights[smoothed], losses)

    def _domain_slope(
        self, index: int, features: torch.Tensor, labels: torch.Tensor, target_proba: torch.Tensor, weight: float
    ) -> torch.Tensor | None:
        """Train the discriminator on the features; the slope of the encoder's domain loss in them."""
        task, discriminator, share = self.task, self.discriminator, self.share
        of_rows = task.source_weights(labels)
        if of_rows is not None:
            share = share.clone()
            share[: self.n] *= of_rows[:, None]
        learned, removed = 0.0, 0.0
        if isinstance(task, VadaOrthogonal):
            odds = torch.cat(task.log_odds(labels, target_proba))[:, None]
            learned, removed = (odds, 0.0) if task.discriminator == "orthogonal" else (0.0, odds)
        seen = discriminator.forward(features)
        discriminator.backward(seen, ((seen[-1] + learned).sigmoid() - self.of_source) * share)
        discriminator.update(task.rate(index))
        if not weight:
            return None
        seen = discriminator.forward(features)
        # with the domains swapped
        return discriminator.input_slope(seen, ((seen[-1] - removed).sigmoid() - 1 + self.of_source) * weight * share)

    def _target_slope(self, logits: torch.Tensor, log_proba: torch.Tensor) -> torch.Tensor:
        task = self.task
        if not (isinstance(task, VadaOrthogonal) and task.mass):
            return _slope(log_proba.exp(), -log_proba)
        prior = task.prior.target.to(logits).clamp(min=MIN_FREQUENCY)
        log_proba = (logits + prior.log()).log_softmax(1)
        proba = log_proba.exp()
        return _slope(proba, -log_proba - task.mass * prior / proba.mean(0))


def _slope(proba: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The slope in the logits of a mean over rows, from its slope `values` in the probabilities of a row.

    An entropy has ``-log proba - 1``, and constants do not matter.
    """
    return proba * (values - (proba * values).sum(1, keepdim=True)) / len(proba)


def class_slope(proba: torch.Tensor, labels: torch.Tensor, weights: torch.Tensor | None) -> torch.Tensor:
    """The slope of the cross entropy in the logits, as a mean that `weights` of classes may weigh.

    Examples
    --------
    >>> class_slope(torch.tensor([[0.5, 0.5], [0.9, 0.1]]), torch.tensor([0, 0]), None)
    tensor([[-0.2500,  0.2500],
            [-0.0500,  0.0500]])
    """
    slope = proba.scatter_add(1, labels[:, None], torch.full_like(proba[:, :1], -1.0))
    if weights is None:
        return slope / len(labels)
    own = weights.to(proba)[labels]
    return slope * (own / own.sum())[:, None]


def _smoothen(
    classifier: LinearLayers, x: torch.Tensor, proba: torch.Tensor, weights: torch.Tensor, losses: VadaConfig
) -> None:
    """Add the slopes of `virtual_adversarial_divergence`, summed over rows with weights of shape (n, 1)."""
    direction = unit_rows(torch.randn(x.shape, dtype=x.dtype, device=x.device))
    for _ in range(losses.vat_power_steps):
        seen = classifier.forward(x + losses.vat_xi * direction)
        direction = unit_rows(classifier.input_slope(seen, seen[-1].softmax(1) - proba))
    seen = classifier.forward(x + losses.vat_radius * direction)
    classifier.backward(seen, (seen[-1].softmax(1) - proba) * weights)
