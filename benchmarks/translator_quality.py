"""What the default step of `OrthogonalTranslator` reaches beside the first version's, after as many pictures.

`translator_speed` has the time of a step alone; a faster step is worth nothing if it learns less. Both train on UCI's
digits in two colors, drawn at 32 and at 64 pixels, with the same classifiers: networks, loss and batch are those of
each version, and both see as many pictures of each folder. The last weights of the first version are scored, the best
evaluation of the present one, as each keeps them.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.provenance import provenance
from benchmarks.translator_speed import EARLIER, SIZES
from benchmarks.translators import CELL_SHARES, LABELLED, N_TEST, N, measure_small_digits, small_digits
from setminus.datasets.split import UNLABELLED, Split
from setminus.datasets.two_factor_folder import LabelledImages
from setminus.nn.passes import fast_precision
from setminus.nn.training import TrainingConfig, train
from setminus.records import append_record, run_record
from setminus.transfer import fitting
from setminus.transfer.factor_classifiers import FactorClassifiers, Part, deal_out, fit_factor_classifiers
from setminus.transfer.networks import image_tensor, networks_for, photo_networks, translate
from setminus.transfer.transfer_task import TransferConfig, TransferTask
from setminus.transfer.verdict import TranslationJudge

PICTURES = 3_200
"""Of each folder."""
SEED = 0
CONFIG = fitting.TranslationConfig("change")


def _data(size: int) -> tuple[Part, Part, Split]:
    """Training and held-out pictures, and those that are measured."""
    rng = np.random.default_rng([SEED, 0])
    drawn = small_digits(N + N_TEST, rng, CELL_SHARES["development"], size)
    labels = np.array(drawn.z1[:N])
    labels[rng.permutation(N)[LABELLED:]] = UNLABELLED
    images = LabelledImages(drawn.x[:N], np.asarray(drawn.y[:N]), labels, ("yellow", "pink"), ())
    return *deal_out(images, CONFIG.held_out, SEED), drawn.take(slice(N, None))


def _earlier(size: int, part: Part, log_ratio: nn.Module) -> dict[str, nn.Module]:
    """The generators of the first version, at its defaults, after so many pictures."""
    batch, width = EARLIER
    networks = photo_networks(size, width, seed=SEED, discriminator_width=width)
    steps = PICTURES // batch
    task = TransferTask(networks, part.a, part.b, TransferConfig(batch_size=batch), log_ratio=log_ratio)
    training = TrainingConfig(
        steps=steps, seed=SEED, clip=fitting.CLIP, ema=fitting.AVERAGE, precision=fast_precision("cpu")
    )
    return train(task, training).averaged


def _now(size: int, part: Part, log_ratio: nn.Module, judge: TranslationJudge) -> dict[str, nn.Module]:
    """The generators of the present version, likewise."""
    steps = PICTURES // CONFIG.batch_size
    settings = fitting.transfer_config(batch_size=CONFIG.batch_size, rate=CONFIG.rate, seed=SEED, steps=steps)
    config = fitting.TranslationConfig("change", steps=steps, seed=SEED)
    networks = networks_for(size, CONFIG.width, seed=SEED)
    task = fitting.WatchedTask(networks, part.a, part.b, settings, log_ratio=log_ratio, judge=judge)
    train(task, config.training())
    best = task.best()
    return {"a_to_b": best.a_to_b, "b_to_a": best.b_to_a}


def _measured(generators: dict[str, nn.Module], test: Split) -> dict[str, dict[str, float]]:
    found = {}
    for own, direction in enumerate(("a_to_b", "b_to_a")):
        real = test.x[np.asarray(test.y) == own]
        made = translate(generators[direction].cpu().eval(), image_tensor(real)).numpy().transpose(0, 2, 3, 1)
        fake = ((made + 1) * 127.5).round().clip(0, 255).astype(np.uint8)
        before, after = measure_small_digits(real), measure_small_digits(fake)
        found[direction] = {
            "changed": float(np.mean(after[0][before[0] == own] == 1 - own)),
            "kept": float(np.mean(after[1] == before[1])),
        }
    return found


def score(size: int) -> dict[str, Any]:
    """Changed and kept of both versions, and the CPU seconds of each training."""
    part, held_out, test = _data(size)
    classifiers: FactorClassifiers = fit_factor_classifiers(
        part, held_out, "change", width=CONFIG.classifier_width, steps=CONFIG.classifier_steps, seed=SEED
    )
    log_ratio = classifiers.log_ratio("change", CONFIG.clamp)
    judge = TranslationJudge(classifiers, "change", held_out.a, held_out.b)
    trainings = {
        "now": functools.partial(_now, size, part, log_ratio, judge),
        "earlier": functools.partial(_earlier, size, part, log_ratio),
    }
    found: dict[str, Any] = {}
    for name, training in trainings.items():
        start = time.process_time()
        generators = training()
        found[name] = {"cpu_seconds": round(time.process_time() - start, 1), **_measured(generators, test)}
        print(size, name, found[name], flush=True)
    return found


def run(records: Path, sizes: tuple[int, ...] = SIZES) -> None:
    """Append a record with what both versions reach at each size."""
    torch.set_num_threads(1)
    metrics = {str(size): score(size) for size in sizes}
    record = run_record(
        "translator_quality",
        "benchmark",
        {"sizes": list(sizes), "pictures": PICTURES, "earlier": list(EARLIER), "precision": fast_precision("cpu")},
        command="python -m benchmarks translator_quality",
        task={"source": "small_digits", "data": "small_digits"},
        metrics=metrics,
        steps={},
        packages=("torch",),
        seed=SEED,
    )
    records.parent.mkdir(parents=True, exist_ok=True)
    append_record(records, record | provenance("python -m benchmarks translator_quality", "torch"))
