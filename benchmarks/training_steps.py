"""What a training step takes beside the same step written plainly; ``python -m benchmarks.training_steps`` prints it.

The plain steps are what one would write: float32, the usual layout, Adam as it comes, one pass for each batch. Like
ours they make no pass twice.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from benchmarks.provenance import provenance
from benchmarks.speed import Ratio, in_turns, table
from setminus.adaptation.vada import VadaConfig, VadaNetworks, vada_step
from setminus.nn.cyclegan import CycleGAN, CycleGANWeights, DigitDiscriminator, DigitGenerator, cyclegan_step
from setminus.nn.losses import (
    conditional_entropy,
    cycle_loss,
    domain_discriminator_loss,
    domain_encoder_loss,
    gan_discriminator_loss,
    gan_generator_loss,
    identity_loss,
    virtual_adversarial_loss,
)
from setminus.nn.networks import AdaptationNetwork, DomainDiscriminator, seeded
from setminus.nn.passes import Precision, adam, fast_precision, prepare, running_statistics_kept
from setminus.records import append_record

RECORDS = Path("results/training_steps/records.jsonl")

Losses = dict[str, torch.Tensor]
Step = Callable[[], Losses]


@dataclass(frozen=True)
class Sizes:
    """How large the benchmark is: the paper's networks by default."""

    generator_width: int = 128
    adaptation_width: int = 64
    batch: int = 64
    noise: bool = True
    """Dropout and Gaussian noise; without them both sides compute the same."""


def run(repeats: int = 5, records: Path | None = RECORDS, sizes: Sizes | None = None) -> list[Ratio]:
    """Time both steps, print a table and append a record."""
    sizes = sizes or Sizes()
    start = time.perf_counter()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    precision = fast_precision()
    found = []
    for precision_here in dict.fromkeys(["32-true", precision]):
        print(f"timing in {precision_here}", flush=True)
        found += ratios(sizes, precision_here, repeats)
    print(table(found))
    if records is not None:
        config = {**asdict(sizes), "repeats": repeats, "threads": torch.get_num_threads(), "load_before": load}
        record = {
            "name": "training_steps",
            "config": {**config, "statistic": "median", "fast_precision": precision, "amx": has_amx()},
            "seed": 0,
            **provenance("python -m benchmarks training_steps", "torch"),
            "metrics": {r.name: {**asdict(r), "ratio": r.ratio, "met": r.met} for r in found},
            "seconds": round(time.perf_counter() - start, 3),
        }
        append_record(records, record)
    return found


def ratios(sizes: Sizes, precision: Precision, repeats: int) -> list[Ratio]:
    """Both steps against the plain ones, each after a first step that is not timed."""
    found = []
    for name, make in (("CycleGAN", cyclegan_steps), ("VADA", vada_steps)):
        ours, plain = make(sizes, precision)
        ours()
        plain()
        found.append(Ratio(f"{name} step in {precision} / plain", *in_turns(ours, plain, repeats), bar(precision)))
    return found


def bar(precision: Precision) -> float:
    """The largest ratio that is quick enough: with units for bfloat16 matrices more is due than without."""
    return 1 / 1.6 if precision == "bf16-mixed" and has_amx() else 1 / 1.1


def has_amx() -> bool:
    """Whether this CPU has units for products of matrices."""
    return bool(getattr(torch.cpu, "_is_amx_tile_supported", lambda: False)())


def cyclegan_steps(sizes: Sizes, precision: Precision) -> tuple[Step, Step]:
    """Our step on networks prepared for it, and the plain one on the same networks as they come."""

    def build() -> CycleGAN:
        generators = [DigitGenerator(width=sizes.generator_width) for _ in range(2)]
        dropout = 0.25 if sizes.noise else 0.0
        return CycleGAN(*generators, *(DigitDiscriminator(dropout=dropout) for _ in range(2)))

    real_a, real_b = _images(sizes.batch, 28)
    fast, plain = seeded(0, build), seeded(0, build)
    for network in (*fast.generators, *fast.discriminators):
        prepare(network)
    ours = {
        name: adam(part.parameters(), lr=2e-4)
        for name, part in (("generators", fast.generators), ("discriminators", fast.discriminators))
    }
    theirs = [
        torch.optim.Adam(part.parameters(), lr=2e-4, betas=(0.5, 0.999))
        for part in (plain.generators, plain.discriminators)
    ]
    fast_a, fast_b = prepare(real_a), prepare(real_b)

    def our_step() -> Losses:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16-mixed"):
            return cyclegan_step(fast, fast_a, fast_b, _update(ours))

    return our_step, lambda: plain_cyclegan_step(plain, real_a, real_b, *theirs)


def plain_cyclegan_step(
    networks: CycleGAN,
    real_a: torch.Tensor,
    real_b: torch.Tensor,
    generators: torch.optim.Optimizer,
    discriminators: torch.optim.Optimizer,
) -> Losses:
    """The step as one would write it."""
    a_to_b, b_to_a, weights = networks.a_to_b, networks.b_to_a, CycleGANWeights()
    fake_b, fake_a = a_to_b(real_a), b_to_a(real_b)
    b_from_b, a_from_a = a_to_b(real_b), b_to_a(real_a)
    b_again, a_again = a_to_b(fake_a), b_to_a(fake_b)
    losses = {
        "a_to_b": gan_generator_loss(networks.discriminator_b(fake_b)),
        "b_to_a": gan_generator_loss(networks.discriminator_a(fake_a)),
        "cycle": cycle_loss(real_a, a_again, real_b, b_again),
        "identity": identity_loss(real_a, a_from_a, real_b, b_from_b),
    }
    total = (
        losses["a_to_b"] + losses["b_to_a"] + weights.cycle * losses["cycle"] + weights.identity * losses["identity"]
    )
    generators.zero_grad()
    total.backward()
    generators.step()
    for domain, network, real, fake in (
        ("a", networks.discriminator_a, real_a, fake_a),
        ("b", networks.discriminator_b, real_b, fake_b),
    ):
        losses[f"discriminator_{domain}"] = gan_discriminator_loss(network(real), network(fake.detach()))
    discriminators.zero_grad()
    (losses["discriminator_a"] + losses["discriminator_b"]).backward()
    discriminators.step()
    return losses


def vada_steps(sizes: Sizes, precision: Precision, config: VadaConfig | None = None) -> tuple[Step, Step]:
    """Our step on networks prepared for it, and the plain one on the same networks as they come."""

    def build() -> VadaNetworks:
        noise = {} if sizes.noise else {"dropout": 0.0, "noise": 0.0}
        classifier = AdaptationNetwork(10, width=sizes.adaptation_width, **noise)
        return VadaNetworks(classifier.encoder, classifier.head, DomainDiscriminator(classifier.n_features))

    config = config or VadaConfig()
    source, target = _images(sizes.batch, 32)
    labels = torch.arange(sizes.batch) % 10
    fast, plain = seeded(0, build), seeded(0, build)
    for network in (fast.encoder, fast.head):
        prepare(network)
    ours = {
        "classifier": adam([*fast.encoder.parameters(), *fast.head.parameters()], lr=1e-3),
        "discriminator": adam(fast.discriminator.parameters(), lr=1e-3),
    }
    theirs = [
        torch.optim.Adam(weights, lr=1e-3, betas=(0.5, 0.999))
        for weights in ([*plain.encoder.parameters(), *plain.head.parameters()], plain.discriminator.parameters())
    ]
    fast_source, fast_target = prepare(source), prepare(target)

    def our_step() -> Losses:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16-mixed"):
            return vada_step(fast, fast_source, labels, fast_target, _update(ours), config=config)

    return our_step, lambda: plain_vada_step(plain, source, labels, target, *theirs, config)


def plain_vada_step(
    networks: VadaNetworks,
    source: torch.Tensor,
    labels: torch.Tensor,
    target: torch.Tensor,
    classifier: torch.optim.Optimizer,
    discriminator: torch.optim.Optimizer,
    config: VadaConfig,
) -> Losses:
    """The step as one would write it."""
    encoder, head, domain = networks.encoder, networks.head, networks.discriminator
    vat = {"radius": config.vat_radius, "xi": config.vat_xi, "power_steps": config.vat_power_steps}

    def classify(x: torch.Tensor) -> torch.Tensor:
        with running_statistics_kept(encoder, head):
            return head(encoder(x))

    with running_statistics_kept(encoder, head):
        source_features = encoder(source)
        source_logits = head(source_features)
    target_features = encoder(target)
    target_logits = head(target_features)
    losses = {
        "discriminator": domain_discriminator_loss(domain(source_features.detach()), domain(target_features.detach()))
    }
    discriminator.zero_grad()
    losses["discriminator"].backward()
    discriminator.step()
    losses |= {
        "source_class": cross_entropy(source_logits, labels),
        "target_entropy": conditional_entropy(target_logits),
        "domain": domain_encoder_loss(domain(source_features), domain(target_features)),
        "source_vat": virtual_adversarial_loss(classify, source, clean_logits=source_logits, **vat),
        "target_vat": virtual_adversarial_loss(classify, target, clean_logits=target_logits, **vat),
    }
    total = sum(getattr(config, name) * loss for name, loss in losses.items() if name != "discriminator")
    classifier.zero_grad()
    total.backward()
    classifier.step()
    return losses


def _update(optimizers: dict[str, torch.optim.Optimizer]) -> Callable[[str, torch.Tensor], None]:
    def update(name: str, loss: torch.Tensor) -> None:
        optimizers[name].zero_grad(set_to_none=True)
        loss.backward()
        optimizers[name].step()

    return update


def _images(batch: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two batches in [-1, 1], of 4 x 4 colored squares: simple enough that a few steps learn something."""
    squares = 2 * torch.rand(2, batch, 3, 4, 4, generator=torch.Generator().manual_seed(0)) - 1
    both = squares.repeat_interleave(size // 4, 3).repeat_interleave(size // 4, 4)
    return both[0], both[1]


if __name__ == "__main__":
    run()
