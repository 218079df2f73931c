r"""Tables 2 and 6: faces, whose sex is to change and whose hair is to keep its color.

A face has two known attributes. The principal classifier learns from faces of all four groups, with weights that
balance them: then only z1 predicts its class. It is removed from a classifier of the two domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from setminus.core.importance import effective_sample_size
from setminus.datasets.split import Split
from setminus.errors import UserError
from setminus.invariant.methods import METHODS as INVARIANT
from setminus.nn.cyclegan import CycleGAN
from setminus.nn.networks import GaussianNoise, PhotoClassifier, seeded
from setminus.progress import tracked
from setminus.records import BESIDE
from setminus.transfer.domain_classifiers import ClassifierConfig, DomainByColumn, fit_domain_classifier
from setminus.transfer.networks import image_tensor, photo_networks, signed, translate
from setminus.transfer.transfer_task import OrthogonalRatio, PairRatio, log_ratios
from setminus_paper.data.celeba import (
    CELEBA,
    CELEBA_GH,
    CelebaTask,
    environments,
    even_groups,
    group_weights,
    groups_of,
    load_celeba,
    oracle_orthogonal,
    oracle_principal,
    split_groups,
)
from setminus_paper.published import TABLE2, TABLE6
from setminus_paper.run import Run, current_machine, train_on_machine
from setminus_paper.transfer.evaluation import TransferJudge, oracle_latents
from setminus_paper.transfer.fid import ClassifierFeatures, Inception, frechet_distance
from setminus_paper.transfer.principals import fit_last_layer, fit_principal, weights_by_importance
from setminus_paper.transfer.translation import ROWS, Row, Source, Translation, translated

__all__ = ["FACE_ROWS", "SIZES", "Faces", "Size", "runs"]

MIN_DEVIATION = 1e-3
"""Smallest standard deviation of a log ratio over faces, in nats: less is one value for all of them."""
LONG = ("vanilla", "orthogonal_oracle")
"""Rows trained at full length; the others have `Size.short_steps`."""


@dataclass(frozen=True)
class Size:
    """Size of a run.

    `short_steps` are those of the rows that are not `LONG`; `plain_share` is the share of the steps with plain CycleGAN
    at the beginning, as in the paper's public code. `classifier` is the training of every classifier of faces. `clamp`
    is the largest ratio of the domains' densities of z2 in the generators' loss, and the inverse of the smallest.
    `features` of the FID are those of the published network, or of a classifier of the four groups. `judge` is the
    training of the oracles, if it is different, and `cut` the largest weight of importance sampling, over
    the mean. MLDG, TRM and Fish learn whole networks for `environment_steps`, or else the last layer of a pooled one;
    in the last tenth of the steps their rates are a tenth. `shared_plain` says whether the rows of a seed share the
    plain steps at the beginning.
    """

    pixels: int = 128
    width: int = 64
    discriminator_width: int = 64
    # twice twelve epochs of the paper's 54,000 images of the smaller domain
    translation: Translation = field(
        default_factory=lambda: Translation(steps=40_000, batch_size=32, evaluate_every=1_000)
    )
    short_steps: int | None = None
    plain_share: float = 0.5
    classifier: ClassifierConfig = field(default_factory=lambda: ClassifierConfig(width=64, epochs=10, rate=0.05))
    clamp: float = 9.0
    features: Literal["inception", "groups"] = "inception"
    judge: ClassifierConfig | None = None
    cut: float | None = None
    shared_plain: bool | None = None
    environment_steps: int | None = None

    def config(self, method: str) -> dict[str, Any]:
        """What is set for a row, for the config of a record."""
        found = {name: value for name, value in asdict(self).items() if value is not None and name != "short_steps"}
        return {**found, "translation": asdict(self.of(method))}

    def of(self, method: str) -> Translation:
        """The length of a row's training."""
        if method in LONG or self.short_steps is None:
            return self.translation
        return replace(self.translation, steps=self.short_steps)


SIZES = {
    "quick": Size(
        pixels=64,
        width=24,
        discriminator_width=24,
        translation=Translation(steps=2_000, batch_size=8, evaluate_every=100, rate=5e-4),
        short_steps=800,
        plain_share=0.0,
        classifier=ClassifierConfig(width=16, epochs=10, rate=0.05, batch_size=64, average=0.99),
        features="groups",
    ),
    # set before any of its runs was scored; see docs/how-tables-2-and-6-were-set.md
    "large": Size(
        pixels=64,
        width=24,
        discriminator_width=24,
        translation=Translation(steps=4_000, batch_size=8, evaluate_every=200, rate=5e-4),
        plain_share=0.5,
        classifier=ClassifierConfig(width=24, epochs=12, rate=0.05, batch_size=64, average=0.995, shift=2),
        features="groups",
        judge=ClassifierConfig(width=24, epochs=24, rate=0.05, batch_size=64, average=0.995, shift=4),
        cut=20.0,
        shared_plain=True,
    ),
    # five epochs of the training faces, as for digits
    "paper": Size(cut=20.0, shared_plain=True, environment_steps=6_300),
}
PAIR = "orthogonal_pair"
"""The paper's two networks for the oracle, beside our one."""
FACE_ROWS = {**ROWS, PAIR: Row("w_x \\ w_1 (Oracle, two networks)", "orthogonal", "oracle")}
TASKS = {"table2": CELEBA_GH, "table6": CELEBA}
PAPER = {"table2": TABLE2, "table6": TABLE6}


def runs(table: str, size: Size, scale: str, seeds: tuple[int, ...], methods: Sequence[str]) -> list[Run]:
    """One run for each row of "table2" or "table6", the long ones first; in the large size each seed separately.

    The large size has the rows that are not `LONG` on one seed.
    """
    known = [one for one in FACE_ROWS if one in methods and (scale != "quick" or one in ROWS)]
    ordered = sorted(known, key=lambda one: one not in LONG)
    planned = [(method, seeds) for method in ordered]
    if scale == "large":
        planned = [(method, (seed,)) for seed in seeds for method in ordered if method in LONG or seed == seeds[0]]
    return [
        Run(
            table,
            {"method": method, "scale": scale, **size.config(method)},
            some,
            partial(
                measure, table=table, method=method, size=size, shared=f"plain-{scale}" if size.shared_plain else ""
            ),
        )
        for method, some in planned
    ]


def measure(
    seeds: tuple[int, ...], *, table: str, method: str, size: Size, shared: str = ""
) -> Iterator[dict[str, Any]]:
    """Train one row for each seed, score it along the way, and compare its images with real ones at the end.

    `shared` names the plain steps that rows have in common, see `translated`.
    """
    row, length = FACE_ROWS[method], size.of(method)
    last_layer = row.source not in (None, "oracle") and size.environment_steps is None
    label = row.label.replace(")", ", last layer)") if last_layer else row.label
    about: dict[str, Any] = {"label": label, "loss": row.loss, "source": row.source, "paper": PAPER[table].get(method)}
    if method == "orthogonal_oracle":
        about["of_groups"] = True
    # before any training: its weights may be missing
    inception = Inception().to(current_machine().kind) if size.features == "inception" else None
    for seed in seeds:
        with tracked(f"{row.label}, seed {seed}: classifiers"):
            faces = load_faces(TASKS[table], size.pixels, seed)
            oracles = judges(faces, size.judge or size.classifier)
            ratio = log_ratio(row, faces, size, pair=method == PAIR)
        described = {
            "groups": faces.groups,
            "judges": oracle_accuracy(oracles, faces),
            "judges_by_group": oracle_accuracy_by_group(oracles, faces),
            "log_ratio": None if ratio is None else by_group(ratio, faces),
        }
        if row.loss == "importance":
            phi = importance(faces, size.classifier, size.cut)
            described["importance"] = {"rows": len(phi), "effective_rows": round(effective_sample_size(phi), 1)}
        judge = TransferJudge(*(faces.domain(k, "test") for k in (0, 1)), oracle=oracle_latents(*oracles))
        networks = photo_networks(size.pixels, size.width, seed=seed, discriminator_width=size.discriminator_width)
        with tracked(f"{row.label}, seed {seed}: {length.steps} steps"):
            numbers = translated(
                networks,
                (faces.domain(0), faces.domain(1)),
                judge,
                length,
                log_ratio=ratio,
                seed=seed,
                plain_share=size.plain_share,
                shared=shared,
            )
        with tracked(f"{row.label}, seed {seed}: FID"):
            distances = _distances(networks, faces, inception or group_features(faces, size.classifier))
        samples = numbers.pop("samples")
        # images of faces stay with whoever has the data
        yield {"row": about, **described, **numbers, **distances, BESIDE: {"samples": samples}}


def _distances(networks: CycleGAN, faces: Faces, features: nn.Module) -> dict[str, Any]:
    """FID of translated held-out faces and all real ones of the domain that they should be in."""
    found = {}
    for start, end, direction, generator in (
        (0, 1, "a_to_b", networks.a_to_b),
        (1, 0, "b_to_a", networks.b_to_a),
    ):
        real = torch.cat([faces.domain(end), faces.domain(end, "test")])
        fake = translate(generator.eval(), faces.domain(start, "test"))
        found[f"fid_{direction}"] = round(frechet_distance(real, fake, features), 3)
    name = "Inception" if isinstance(features, Inception) else "a classifier of the four groups, trained here"
    return {**found, "fid": round(sum(found.values()) / 2, 3), "fid_features": name}


GROUPS = ("00", "01", "10", "11")
"""The groups of (z1, z2)."""
NOISE = 0.3
"""Standard deviation in the images that `_coarse_groups` learns from, on the scale of [-1, 1]."""


@dataclass(frozen=True)
class Faces:
    """The training and test faces of one seed."""

    train: Split
    test: Split
    seed: int

    def domain(self, which: int, part: Literal["train", "test"] = "train") -> torch.Tensor:
        """Images of domain A (0) or B (1), as bytes."""
        split = self.train if part == "train" else self.test
        return image_tensor(split.x[split.y == which])

    @property
    def domains(self) -> Split:
        """The training faces that are in A or B."""
        return self.train.take(self.train.y >= 0)

    @property
    def groups(self) -> dict[str, int]:
        """How many training faces there are of each group."""
        return dict(zip(GROUPS, np.bincount(groups_of(self.train), minlength=4).tolist(), strict=True))


# the rows of a seed share what is cached here, and a process measures several rows
@cache
def load_faces(task: CelebaTask, pixels: int, seed: int) -> Faces:
    """Split all faces into training and test faces, four to one as in the paper."""
    train, test = split_groups(load_celeba(task, pixels), (0.8, 0.2), seed)
    return Faces(train, test, seed)


def log_ratio(row: Row, faces: Faces, size: Size, *, pair: bool = False) -> nn.Module | None:
    """The log ratio of z2 in the loss of a row's generators; None for plain CycleGAN.

    The oracle's is of one classifier of groups, or of a `pair` of networks as in the paper.
    """
    if row.source is None:
        return None
    config, bounds = size.classifier, (1 / size.clamp, size.clamp)
    both = faces.domains
    shares = tuple((np.bincount(both.y, minlength=2) / len(both)).tolist())
    if pair:
        return PairRatio(full(faces, config), separate_principal(faces, config), full_prior=shares, clamp=bounds)
    known = principal(row.source, faces, config, size.environment_steps)
    # balanced groups have balanced classes: the prior of the principal classifier is uniform
    if row.loss == "importance":
        by_importance = fit_domain_classifier(
            _mirrored(both.x),
            torch.from_numpy(both.y).repeat(2),
            config,
            seed=faces.seed,
            weights=torch.from_numpy(importance(faces, config, size.cut)).float(),
            network=_network(config, faces.seed),
            trainer=train_on_machine,
        )
        return OrthogonalRatio(by_importance, prior=shares, clamp=bounds)
    if row.source == "oracle":
        return PairRatio(full_of_groups(faces, config), known, clamp=bounds)
    return PairRatio(full(faces, config), known, full_prior=shares, clamp=bounds)


@cache
def full(faces: Faces, config: ClassifierConfig) -> nn.Module:
    """A classifier of the two domains as they are."""
    return _fitted(faces.domains, config, faces.seed, weighted=False)


@cache
def separate_principal(faces: Faces, config: ClassifierConfig) -> nn.Module:
    """The paper's oracle: a separate network of z1, from balanced groups."""
    return _fitted(oracle_principal(faces.train), config, faces.seed)


@cache
def importance(faces: Faces, config: ClassifierConfig, cut: float | None) -> NDArray[np.float64]:
    """The weights of importance sampling of the faces of both domains and of their mirror images."""
    both = faces.domains
    x, y = _mirrored(both.x), torch.from_numpy(both.y).repeat(2)
    return weights_by_importance(x, y, principal("oracle", faces, config), cut=cut)


def full_of_groups(faces: Faces, config: ClassifierConfig) -> nn.Module:
    """The same for equally frequent domains, computed from a classifier of the four groups."""
    a, b = (np.bincount(groups_of(faces.domains)[faces.domains.y == domain], minlength=4) for domain in (0, 1))
    return _of_groups(faces, config, a / a.sum(), b / b.sum())


@cache
def principal(source: Source, faces: Faces, config: ClassifierConfig, steps: int | None = None) -> nn.Module:
    """A classifier of z1: from balanced groups (oracle), or from two environments: a whole network with `steps`.

    The oracle and `full_of_groups` are computed from one classifier of groups: errors of that network about z1 are
    then the same in both and cancel in their quotient. Two separate networks do not agree on the faces between the
    domains, which are the ones that the generators have to produce.
    """
    if source == "oracle":
        # depends on z1 alone, with either hair in half of the cases
        return _of_groups(faces, config, np.array([0.5, 0.5, 0, 0]), np.array([0, 0, 0.5, 0.5]))
    if steps is not None:
        sets = [_evened(one, faces.seed) for one in environments(faces.train)]
        training = INVARIANT[source][1](steps=steps, decay_at=steps * 9 // 10)
        network = _network(config, faces.seed)
        return fit_principal(source, sets, config, seed=faces.seed, environments=training, network=network)
    fitted, held_out = (
        [_evened(one, faces.seed) for one in environments(part)]
        for part in split_groups(faces.train, (7 / 8, 1 / 8), faces.seed)
    )
    return fit_last_layer(source, fitted, held_out, _pooled(fitted, config, faces.seed))


@cache
def judges(faces: Faces, config: ClassifierConfig) -> tuple[nn.Module, nn.Module]:
    """The oracles of z1 and of z2; the generators are not trained against them."""
    z1, z2 = (_fitted(make(faces.train), config, faces.seed + 1_000) for make in (oracle_principal, oracle_orthogonal))
    return z1, z2


@cache
def group_features(faces: Faces, config: ClassifierConfig) -> nn.Module:
    """Features of a classifier of the four groups, for the FID; the generators are not trained against it."""
    seed = faces.seed + 2_000
    return ClassifierFeatures(_groups(faces, config, _network(config, seed, n_classes=len(GROUPS)), seed))


def oracle_accuracy(oracles: tuple[nn.Module, nn.Module], faces: Faces) -> dict[str, float]:
    """Accuracy of the oracles on held-out faces, with balanced groups."""
    predicted = oracle_latents(*oracles)(signed(image_tensor(faces.test.x)))
    weights = group_weights(faces.test)
    return {
        name: float(np.average(values == getattr(faces.test, name), weights=weights))
        for name, values in zip(("z1", "z2"), predicted, strict=True)
    }


def oracle_accuracy_by_group(oracles: tuple[nn.Module, nn.Module], faces: Faces) -> dict[str, dict[str, float]]:
    """Accuracy of each oracle on the held-out faces of each group."""
    predicted = oracle_latents(*oracles)(signed(image_tensor(faces.test.x)))
    rows = {name: groups_of(faces.test) == k for k, name in enumerate(GROUPS)}
    return {
        z: {name: round(float(np.mean((values == getattr(faces.test, z))[own])), 4) for name, own in rows.items()}
        for z, values in zip(("z1", "z2"), predicted, strict=True)
    }


def by_group(ratio: nn.Module, faces: Faces) -> dict[str, list[float]]:
    """The log ratio on held-out faces of each group: it should be large for the hair of A, small for that of B.

    One value for all faces is refused: its classifier diverged, and the row would be plain CycleGAN under another name.
    """
    values = log_ratios(ratio, image_tensor(faces.test.x)).numpy()
    if not values.std() > MIN_DEVIATION:
        raise UserError(
            f"the log ratio is {values.mean():.3g} for all {len(values)} faces (deviation {values.std():.1g})",
            expected="a ratio that depends on the face; its classifier diverged or saw weights of few rows",
        )
    groups = [values[groups_of(faces.test) == k] for k in range(len(GROUPS))]
    return {
        "mean": [round(float(one.mean()), 4) for one in groups],
        "sd": [round(float(one.std()), 4) for one in groups],
    }


def _groups(faces: Faces, config: ClassifierConfig, network: nn.Module, seed: int) -> nn.Module:
    """A classifier of the four groups, balanced."""
    return _fitted(replace(faces.train, y=groups_of(faces.train)), config, seed, network=network)


@cache
def _coarse_groups(faces: Faces, config: ClassifierConfig) -> nn.Module:
    """A classifier of images of half the size, with noise in training.

    Generators that are trained against a classifier exploit fine texture that fools it. This one does not see the
    finest texture, and learns to ignore the rest.
    """
    network = _network(config, faces.seed, n_classes=len(GROUPS))
    network.features = nn.Sequential(nn.AvgPool2d(2), GaussianNoise(NOISE), network.features)
    return _groups(faces, config, network, faces.seed)


def _of_groups(
    faces: Faces, config: ClassifierConfig, given_a: NDArray[np.float64], given_b: NDArray[np.float64]
) -> nn.Module:
    """A classifier of two mixtures of the groups."""
    equal = np.full(len(GROUPS), 1 / len(GROUPS))
    groups = _coarse_groups(faces, config)
    return DomainByColumn(groups, column_prior=equal, given_a=given_a, given_b=given_b)


def _pooled(sets: Sequence[tuple[torch.Tensor, torch.Tensor]], config: ClassifierConfig, seed: int) -> nn.Module:
    """A classifier of both environments together; repeated faces make its epochs twice as long."""
    x, y = (torch.cat(parts) for parts in zip(*sets, strict=True))
    shorter = replace(config, epochs=-(-config.epochs // 2))
    return fit_domain_classifier(x, y, shorter, seed=seed, network=_network(config, seed), trainer=train_on_machine)


def _evened(environment: Split, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    evened = even_groups(environment, seed)
    return image_tensor(evened.x), torch.from_numpy(evened.y)


def _fitted(
    split: Split, config: ClassifierConfig, seed: int, *, weighted: bool = True, network: nn.Module | None = None
) -> nn.Module:
    """A classifier of `y` from faces and their mirror images, with balanced groups of (z1, z2) if weighted."""
    weights = torch.from_numpy(group_weights(split)).float().repeat(2) if weighted else None
    return fit_domain_classifier(
        _mirrored(split.x),
        torch.from_numpy(split.y).repeat(2),
        config,
        seed=seed,
        weights=weights,
        network=network or _network(config, seed),
        trainer=train_on_machine,
    )


def _network(config: ClassifierConfig, seed: int, n_classes: int = 2) -> nn.Module:
    network: nn.Module = seeded(seed, lambda: PhotoClassifier(n_classes, width=config.width))
    return network


def _mirrored(images: NDArray[np.uint8]) -> torch.Tensor:
    return image_tensor(np.concatenate([images, images[:, :, ::-1]]))
