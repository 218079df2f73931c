r"""Proposition 3 on finite variables: what encoders the domain losses ask for when the label's frequencies shift.

An input is x = (label, v); v, like the label, has another distribution in each domain. The model's class is the domain
(0 source, 1 target), its z1 the label and its z2 v. An encoder is a table p(code | label, v) of shape (n_labels, n_v,
n_codes), with positive entries. Against the best discriminator it minimises ``E_source log d_0 + E_target log d_1``:

* plain: d = w_x, the domain given the code;
* orthogonal: d = w_x \ w_1, with w_1 the domain given the label, as the paper has it;
* orthogonal, label seen: the same, with w_x the domain given the code *and* the label.

The proposition assumes that the code determines the label ("kept" below: each label has its own codes). Then the last
two agree. Without that ("free") only the last has its minimum at aligned features: the second is lower still for a
constant code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize
from scipy.special import rel_entr, softmax, xlogy

from setminus.charts.chart import Chart, Points, Rule
from setminus.core.orthogonalize import log_setminus
from setminus.datasets.synthetic import DiscreteModel
from setminus.progress import tracked
from setminus_paper.claims.over_seeds import Records, Summary, mean_line, value_range
from setminus_paper.run import Run, Scale

__all__ = ["CLAIM", "DEFAULT_SEEDS", "charts", "plan", "summary"]

Floats = NDArray[np.float64]
Adversary = Literal["plain", "orthogonal", "orthogonal, label seen"]
ADVERSARIES: tuple[Adversary, ...] = get_args(Adversary)

CLAIM = (
    "With the orthogonal discriminator the encoder's loss has its minimum, -2 log 2, only where the features of each "
    "label have the same distribution in both domains, whatever the label frequencies. The plain discriminator "
    "aligns the features without regard to the label."
)
DEFAULT_SEEDS = 3
SOURCE, TARGET = (0.7, 0.3), (0.3, 0.7)
WEIGHTS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0)
STARTS = {"quick": 4, "paper": 30}
N_V, N_CODES = 4, 4
RANDOM_ENCODERS = 150
LARGEST_LOGIT = 15.0


def plan(scale: Scale, seeds: tuple[int, ...]) -> list[Run]:
    """One run: all losses and encoders on one random model for each seed."""
    config = {"scale": scale, "source": list(SOURCE), "target": list(TARGET), "starts": STARTS[scale]}
    return [Run("prop3", {**config, "n_codes": N_CODES}, seeds, partial(measure, starts=STARTS[scale]))]


def measure(seeds: tuple[int, ...], *, starts: int) -> Iterator[dict[str, Any]]:
    """Minimise each loss over encoders that keep the labels apart and over free ones, alone and with the task."""
    for seed in seeds:
        model = label_shift_model(np.array(SOURCE), np.array(TARGET), N_V, seed)
        rng = np.random.default_rng(seed)
        with tracked(f"optimal encoders on model {seed}"):
            optimum = {
                adversary: {
                    family: {**_best(model, adversary, family == "kept", starts, rng), "value_exact": exact}
                    for family, exact in exact_minima(adversary).items()
                }
                for adversary in ADVERSARIES
            }
        with tracked(f"task and domain loss on model {seed}"):
            sweep = {adversary: _sweep(model, adversary, starts, rng) for adversary in ADVERSARIES}
        yield {
            "optimum": optimum,
            "constant": domain_loss(model, np.ones((2, N_V, 1)), "orthogonal")[0],
            "constant_exact": exact_constant(),
            "random": {family: _random(model, family == "kept", rng) for family in ("kept", "free")},
            "aligned": best_aligned_accuracy(model),
            "aligned_bound": 1 - 0.25 * float(np.abs(np.subtract(SOURCE, TARGET)).sum()),
            "weights": list(WEIGHTS),
            "sweep": sweep,
        }


def label_shift_model(source: Floats, target: Floats, n_v: int, seed: int) -> DiscreteModel:
    """Equally frequent domains with these label frequencies, and a variable v with random ones in each.

    Examples
    --------
    >>> model = label_shift_model(np.array([0.7, 0.3]), np.array([0.3, 0.7]), n_v=4, seed=0)
    >>> model.joint.shape, model.prior.round(6).tolist()
    ((2, 2, 4), [0.5, 0.5])
    """
    v = 0.9 * np.random.default_rng(seed).dirichlet(np.ones(n_v), size=2) + 0.1 / n_v
    joint = np.stack([source, target])[:, :, None] * v[:, None, :]
    return DiscreteModel(joint / joint.sum())


def coded(model: DiscreteModel, encoder: Floats) -> Floats:
    """p(label, code | domain), of shape (2, n_labels, n_codes).

    Examples
    --------
    >>> model = label_shift_model(np.array([0.7, 0.3]), np.array([0.3, 0.7]), n_v=4, seed=0)
    >>> coded(model, np.full((2, 4, 1), 1.0)).ravel().round(6).tolist()
    [0.7, 0.3, 0.3, 0.7]
    """
    given_domain = model.joint / model.prior[:, None, None]
    return np.asarray(np.einsum("uyv,yvz->uyz", given_domain, encoder))


def domain_loss(model: DiscreteModel, encoder: Floats, adversary: Adversary) -> tuple[float, Floats]:
    """``E_source log d_0 + E_target log d_1`` with the best discriminator d of its kind, and its gradient.

    Examples
    --------
    A constant encoder: no domain is left in the codes, but the orthogonal loss is below -2 log 2.

    >>> model = label_shift_model(np.array([0.7, 0.3]), np.array([0.3, 0.7]), n_v=4, seed=0)
    >>> [round(domain_loss(model, np.full((2, 4, 1), 1.0), adversary)[0], 4) for adversary in ADVERSARIES]
    [-1.3863, -1.8996, -1.3863]
    """
    mass = coded(model, encoder)
    seen = mass if adversary == "orthogonal, label seen" else np.broadcast_to(mass.sum(1, keepdims=True), mass.shape)
    log_domain = np.moveaxis(np.log(seen / seen.sum(axis=0)), 0, -1)
    if adversary != "plain":
        log_principal = np.log(model.principal(np.arange(mass.shape[1])))[:, None, :]
        log_domain = log_setminus(log_domain, log_principal, np.log(model.prior))
    log_domain = np.moveaxis(log_domain, -1, 0)
    # the discriminator moves with what it sees of the codes: d log d_u / d seen_u = 1 / seen_u - d_u / seen_u, and
    # d log d_other / d seen_u = -d_u / seen_u
    through = (mass - mass.sum(axis=0) * np.exp(log_domain)) / seen
    if adversary != "orthogonal, label seen":
        through = np.broadcast_to(through.sum(axis=1, keepdims=True), mass.shape)
    given_domain = model.joint / model.prior[:, None, None]
    gradient = np.einsum("uyv,uyz->yvz", given_domain, log_domain + through)
    return float((mass * log_domain).sum()), gradient


def task_loss(model: DiscreteModel, encoder: Floats) -> tuple[float, Floats]:
    """The source's log loss of the label with the best predictor from the code, and its gradient.

    Examples
    --------
    >>> model = label_shift_model(np.array([0.5, 0.5]), np.array([0.3, 0.7]), n_v=4, seed=0)
    >>> round(task_loss(model, np.full((2, 4, 1), 1.0))[0], 6)
    0.693147
    """
    mass = coded(model, encoder)[0]
    posterior = mass / mass.sum(axis=0)
    source = model.joint[0] / model.prior[0]
    return -float(xlogy(mass, posterior).sum()), -source[:, :, None] * np.log(posterior)[:, None, :]


def exact_minima(adversary: Adversary) -> dict[str, float | None]:
    """The least loss over encoders that keep labels apart, and over all; None where no closed form is known here.

    Examples
    --------
    >>> round(exact_minima("orthogonal")["kept"], 6)
    -1.386294
    """
    source, target = np.array(SOURCE), np.array(TARGET)
    divergence = float((rel_entr(source, (source + target) / 2) + rel_entr(target, (source + target) / 2)).sum())
    aligned = -2 * float(np.log(2))
    return {
        # codes that keep the label keep its shift too: twice the Jensen-Shannon divergence of the label
        "kept": aligned + divergence if adversary == "plain" else aligned,
        "free": None if adversary == "orthogonal" else aligned,
    }


def exact_constant() -> float:
    r"""The orthogonal loss of an encoder with a single code: w_x is one half, w_x \ w_1 the reverse of w_1.

    Examples
    --------
    >>> round(exact_constant(), 6)
    -1.899567
    """
    source, target = np.array(SOURCE), np.array(TARGET)
    both = source + target
    return float((source * np.log(target / both) + target * np.log(source / both)).sum())


def minimise(
    model: DiscreteModel,
    adversary: Adversary,
    start: Floats,
    *,
    keep_labels: bool,
    weight: float = 1.0,
    task: float = 0.0,
) -> tuple[float, Floats]:
    """The least ``task * task_loss + weight * domain_loss`` from a start (logits), and the encoder there."""
    apart = _apart(start.shape) if keep_labels else np.zeros(start.shape)

    def loss(flat: Floats) -> tuple[float, Floats]:
        encoder = softmax(flat.reshape(start.shape) + apart, axis=2)
        value, slope = domain_loss(model, encoder, adversary)
        value, slope = weight * value, weight * slope
        if task:
            error, error_slope = task_loss(model, encoder)
            value, slope = value + task * error, slope + task * error_slope
        return value, (encoder * (slope - (encoder * slope).sum(axis=2, keepdims=True))).ravel()

    found = minimize(
        loss,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        # no code may die out: its discriminator would be 0 / 0
        bounds=[(-LARGEST_LOGIT, LARGEST_LOGIT)] * start.size,
        options={"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9},
    )
    return float(found.fun), softmax(found.x.reshape(start.shape) + apart, axis=2)


def described(model: DiscreteModel, encoder: Floats) -> dict[str, float]:
    """How far the domains' codes are apart, given the label and without it; how well the source's predictor does.

    Examples
    --------
    >>> model = label_shift_model(np.array(SOURCE), np.array(TARGET), n_v=2, seed=0)
    >>> label_only = np.broadcast_to(np.eye(2)[:, None, :], (2, 2, 2))
    >>> {name: round(value, 6) for name, value in described(model, label_only).items()}
    {'given_label': 0.0, 'marginal': 0.4, 'source_accuracy': 1.0, 'target_accuracy': 1.0}
    """
    mass = coded(model, encoder)
    given_label = mass / mass.sum(axis=2, keepdims=True)
    predictor = mass[0].argmax(axis=0)
    accuracy = mass[:, predictor, np.arange(mass.shape[2])].sum(axis=1)
    return {
        "given_label": float(0.5 * np.abs(given_label[0] - given_label[1]).sum(axis=1).max()),
        "marginal": float(0.5 * np.abs(mass[0].sum(axis=0) - mass[1].sum(axis=0)).sum()),
        "source_accuracy": float(accuracy[0]),
        "target_accuracy": float(accuracy[1]),
    }


def best_aligned_accuracy(model: DiscreteModel) -> float:
    """The best accuracy, mean of both domains, of predictions that are equally frequent in both: a linear program."""
    source, target = model.joint / model.prior[:, None, None]
    n_labels, n_v = source.shape
    own = np.eye(n_labels)[:, None, :] * (source + target)[:, :, None] / 2
    # one row for each prediction: its frequency in the source less that in the target
    aligned = np.einsum("yv,zw->zyvw", source - target, np.eye(n_labels)).reshape(n_labels, -1)
    normalized = np.kron(np.eye(n_labels * n_v), np.ones(n_labels))
    right = np.concatenate([np.zeros(n_labels), np.ones(n_labels * n_v)])
    found = linprog(-own.ravel(), A_eq=np.vstack([aligned, normalized]), b_eq=right, bounds=(0, 1), method="highs")
    return -float(found.fun)


def _apart(shape: tuple[int, ...]) -> Floats:
    """Logits that give each label different codes; the mass on other codes, e^-60, is far below rounding."""
    owner = np.arange(shape[2]) * shape[0] // shape[2]
    return np.where(owner == np.arange(shape[0])[:, None], 0.0, -60.0)[:, None, :]


def _starts(model: DiscreteModel, starts: int, rng: np.random.Generator) -> Floats:
    return rng.normal(size=(starts, *model.joint.shape[1:], N_CODES))


def _best(
    model: DiscreteModel, adversary: Adversary, keep_labels: bool, starts: int, rng: np.random.Generator
) -> dict[str, float]:
    found = [minimise(model, adversary, start, keep_labels=keep_labels) for start in _starts(model, starts, rng)]
    value, encoder = min(found, key=lambda pair: pair[0])
    # many encoders are optimal, and the start decides which is found: hence the mean
    accuracy = np.mean([described(model, end)["target_accuracy"] for _, end in found])
    return {
        **described(model, encoder),
        "value": value,
        "value_worst_start": max(value for value, _ in found),
        "target_accuracy_mean": float(accuracy),
    }


def _sweep(model: DiscreteModel, adversary: Adversary, starts: int, rng: np.random.Generator) -> dict[str, list[float]]:
    rows = []
    starts_here = list(_starts(model, starts, rng))
    for weight in WEIGHTS:
        # divided by the larger of both weights, so that the optimizer's tolerances keep their meaning
        scale = max(1.0, weight)
        found = [
            minimise(model, adversary, start, keep_labels=False, weight=weight / scale, task=1 / scale)
            for start in starts_here
        ]
        encoder = min(found, key=lambda pair: pair[0])[1]
        rows.append(described(model, encoder))
        # the losses have local minima: the best of one weight is a start for the next
        starts_here = [*_starts(model, starts, rng), np.clip(np.log(encoder) + LARGEST_LOGIT, -LARGEST_LOGIT, None)]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _random(model: DiscreteModel, keep_labels: bool, rng: np.random.Generator) -> dict[str, list[float]]:
    """The orthogonal loss and the label-conditional distance of random encoders, from blurred to sharp."""
    shape = (*model.joint.shape[1:], N_CODES)
    apart = _apart(shape) if keep_labels else 0.0
    values, distances = [], []
    for width in np.geomspace(0.01, 10, RANDOM_ENCODERS):
        encoder = softmax(width * rng.normal(size=shape) + apart, axis=2)
        values.append(round(domain_loss(model, encoder, "orthogonal")[0], 6))
        distances.append(round(described(model, encoder)["given_label"], 6))
    return {"value": values, "given_label": distances}


FAMILIES = {"kept": "codes keep the label", "free": "codes may mix labels"}


def charts(records: Records) -> list[Chart]:
    """The orthogonal loss of many encoders on the first model, and the accuracy as the domain loss gains weight."""
    found = [record["metrics"] for record in sorted(records, key=lambda record: record["seed"])]
    random, best = found[0]["random"], found[0]["optimum"]["orthogonal"]
    clouds = [
        Points(random[key]["given_label"], random[key]["value"], f"random, {words}") for key, words in FAMILIES.items()
    ]
    minima = [
        Points([best[key]["given_label"]], [best[key]["value"]], f"minimum, {words}") for key, words in FAMILIES.items()
    ]
    accuracy = {
        adversary: 100 * np.array([m["sweep"][adversary]["target_accuracy"] for m in found])
        for adversary in found[0]["sweep"]
    }
    return [
        Chart(
            "The orthogonal loss",
            "largest distance between the domains' codes of one label",
            "loss",
            [*clouds, *minima, Rule(-2 * math.log(2), "-2 log 2")],
            "Claim: the minimum is -2 log 2, where the codes of each label agree in both domains. It holds where the "
            f"code determines the label; where codes may mix labels the minimum is {best['free']['value']:.4f}, with "
            f"the codes of a label {best['free']['given_label']:.2g} apart.",
        ),
        Chart(
            "Task and domain loss together",
            "weight of the domain loss",
            "accuracy on the target in %",
            [mean_line(found[0]["weights"], values, adversary) for adversary, values in accuracy.items()],
            "Codes may mix labels; a perfect predictor is possible at every weight. At the largest weight the mean "
            f"accuracy is {accuracy['plain'][:, -1].mean():.0f} % with the plain loss, "
            f"{accuracy['orthogonal'][:, -1].mean():.0f} % with the orthogonal loss as printed, and "
            f"{accuracy['orthogonal, label seen'][:, -1].mean():.0f} % where the discriminator sees the label too.",
            x_scale="log",
        ),
    ]


def summary(records: Records) -> Summary:
    """The minimum of each loss and the codes there, and the accuracy that alignment costs; ranges over models."""
    found = [record["metrics"] for record in records]
    rows = []
    for adversary in found[0]["optimum"]:
        for family, words in FAMILIES.items():
            best = [m["optimum"][adversary][family] for m in found]
            exact = best[0]["value_exact"]
            expected = "the paper: -1.386294 for codes that keep the label" if exact is None else f"{exact:.6f}"
            rows.append((f"{adversary}, {words}: least loss", expected, value_range((b["value"] for b in best), ".6f")))
            if adversary == "plain":
                what, apart, name = "domains' codes", "0" if family == "free" else "0.4", "marginal"
            else:
                what, apart, name = "one label's codes", "" if exact is None else "0", "given_label"
            rows.append((f"distance of the {what} there", apart, value_range((b[name] for b in best), ".2g")))
    constant = value_range((m["constant"] for m in found), ".6f")
    rows.append(("orthogonal loss of a single code", f"{found[0]['constant_exact']:.6f}", constant))
    aligned = value_range((100 * (1 - m["aligned"]) for m in found), ".1f")
    bound = f"{100 * (1 - found[0]['aligned_bound']):.1f} or more"
    rows.append(("accuracy lost by codes that agree in both domains, points", bound, aligned))
    for name in found[0]["sweep"]:
        lost = value_range((100 * (1 - m["sweep"][name]["target_accuracy"][-1]) for m in found), ".1f")
        rows.append((f"target accuracy lost at weight {found[0]['weights'][-1]:g}, {name}", "", lost))
    return rows
