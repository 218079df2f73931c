r"""What tables 2 and 6 share: faces, whose sex is to change and whose hair is to keep its color.

A face has two known attributes. The principal classifier learns from faces of all four groups, under weights that make
the groups alike: then only z1 tells its class. What it knows is taken out of a classifier of the two domains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch

from setminus.nn.cyclegan import CycleGAN
from setminus.progress import tracked
from setminus.records import BESIDE
from setminus.transfer.domain_classifiers import ClassifierConfig
from setminus.transfer.evaluation import TransferJudge, oracle_latents, translate
from setminus.transfer.transfer_task import photo_networks
from setminus_paper.data.celeba import CelebaTask
from setminus_paper.run import Run
from setminus_paper.transfer.face_classifiers import (
    Faces,
    by_group,
    dealt,
    group_features,
    judged_right,
    judges,
    log_ratio,
)
from setminus_paper.transfer.fid import frechet_distance
from setminus_paper.transfer.style_transfer_tables import ROWS, Translation, translated

__all__ = ["SIZES", "FaceTable", "Size", "plan"]

LONG = ("vanilla", "orthogonal_oracle")
"""The rows that are compared at full length; the others are shorter where `Size.short_steps` says so."""


@dataclass(frozen=True)
class Size:
    """How large a run is.

    Parameters
    ----------
    pixels, width, discriminator_width : int
        Of the images, of the generators and of the discriminators.
    translation : Translation
    short_steps : int, optional
        Steps of the rows that are not `LONG`.
    plain_share : float
        Part of the steps before the generators are told anything, as in the paper's public code.
    classifier : ClassifierConfig
        Of every classifier of faces.
    clamp : float
        Largest ratio of the domains' densities of z2 that the generators are told, and the inverse of the smallest.
    features : "inception" or "groups"
        What images are compared by in the FID: the published network, or a classifier of the four groups.
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
    "paper": Size(),
}


@dataclass(frozen=True)
class FaceTable:
    """One table.

    Attributes
    ----------
    name : str
    task : CelebaTask
        Which faces are in each domain.
    paper : dict
        Its published scores by method: z1 and z2 as shares, fid.
    """

    name: str
    task: CelebaTask
    paper: dict[str, dict[str, float]]


def plan(
    table: FaceTable, size: Size, scale: str, seeds: tuple[int, ...], methods: Sequence[str] = tuple(ROWS)
) -> list[Run]:
    """One run for each row, the long ones first.

    Parameters
    ----------
    table : FaceTable
    size : Size
    scale : str
    seeds : tuple of int
    methods : sequence of str

    Returns
    -------
    list of Run
    """
    runs = []
    for method in sorted((one for one in ROWS if one in methods), key=lambda one: one not in LONG):
        config = {"method": method, "scale": scale, **asdict(size), "translation": asdict(size.of(method))}
        del config["short_steps"]
        runs.append(Run(table.name, config, seeds, partial(measure, table=table, method=method, size=size)))
    return runs


def measure(seeds: tuple[int, ...], *, table: FaceTable, method: str, size: Size) -> Iterator[dict[str, Any]]:
    """Train one row for each seed, judge it along the way, and compare its images with real ones at the end."""
    row, length = ROWS[method], size.of(method)
    label = row.label.replace(")", ", last layer)") if row.source not in (None, "oracle") else row.label
    about: dict[str, Any] = {"label": label, "loss": row.loss, "source": row.source, "paper": table.paper[method]}
    if row.loss == "orthogonal" and row.source == "oracle":
        about["of_groups"] = True
    for seed in seeds:
        with tracked(f"{row.label}, seed {seed}: classifiers"):
            faces = dealt(table.task, size.pixels, seed)
            oracles = judges(faces, size.classifier)
            ratio = log_ratio(row, faces, size.classifier, size.clamp)
        told = {
            "groups": faces.groups,
            "judges": judged_right(oracles, faces),
            "log_ratio": None if ratio is None else by_group(ratio, faces),
        }
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
                plain_steps=round(size.plain_share * length.steps),
            )
        with tracked(f"{row.label}, seed {seed}: FID"):
            distances = _distances(networks, faces, size)
        samples = numbers.pop("samples")
        # images of faces stay with whoever has the data
        yield {"row": about, **told, **numbers, **distances, BESIDE: {"samples": samples}}


def _distances(networks: CycleGAN, faces: Faces, size: Size) -> dict[str, Any]:
    """Of held-out faces, translated, to all real ones of the domain that they should be in."""
    features = "inception" if size.features == "inception" else group_features(faces, size.classifier)
    found = {}
    for start, end, direction, generator in (
        (0, 1, "a_to_b", networks.a_to_b),
        (1, 0, "b_to_a", networks.b_to_a),
    ):
        real = torch.cat([faces.domain(end), faces.domain(end, "test")])
        fake = translate(generator.eval(), faces.domain(start, "test"))
        found[f"fid_{direction}"] = round(frechet_distance(real, fake, features), 3)
    name = "Inception" if size.features == "inception" else "a classifier of the four groups, trained here"
    return {**found, "fid": round(sum(found.values()) / 2, 3), "fid_features": name}
