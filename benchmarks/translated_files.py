"""`setminus transfer apply` on a folder of 100,000 pictures: killed in the middle, resumed, and on a tenth of them.

``python -m benchmarks translated_files [--rows 100000]``. The pictures are PNGs of 32 pixels in folders of a thousand,
the model has the default size and no training, which does not change its speed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.provenance import provenance
from setminus.records import append_record, run_record

PICTURES, SIZE, PER_FOLDER = 100_000, 32, 1_000
CHILD = "from setminus.commands import build_app; build_app()()"
PAUSE = 1.0
"""Seconds between two looks at the process."""


def run(records: Path, pictures: int = PICTURES) -> None:
    """Translate, kill, resume, compare with what an uninterrupted run writes, and append a record."""
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        model, given, few = home / "model", home / "given", home / "few"
        _save_model(model)
        _write_pictures(given, pictures)
        _write_pictures(few, pictures // 10)
        killed = _apply(model, given, home / "out", kill_after=pictures // 2)
        resumed = _apply(model, given, home / "out", "--resume")
        whole = _apply(model, few, home / "few-out")
        written = sorted(path.relative_to(home / "out") for path in (home / "out").rglob("*.png"))
        expected = sorted(path.relative_to(given) for path in given.rglob("*.png"))
        # the first tenth has the same pixels in both folders
        tenth = [path.relative_to(few) for path in few.rglob("*.png")]
        differences = [_difference(home / "few-out" / name, home / "out" / name) for name in tenth]
        leftovers = sum(path.suffix != ".png" for path in (home / "out").rglob("*") if path.is_file())
    metrics: dict[str, Any] = {
        "killed": killed,
        "resumed": resumed,
        "tenth": whole,
        "all_written": written == expected,
        "leftovers": leftovers,
        "compared": len(differences),
        "largest_difference": max(differences),
    }
    print(metrics, flush=True)
    record = run_record(
        "translated_files",
        "benchmark",
        {"pictures": pictures, "size": SIZE},
        command=f"python -m benchmarks translated_files --rows {pictures}",
        task={"source": "files", "data": "random pictures"},
        metrics=metrics,
        steps={},
        packages=("torch", "pillow"),
        seed=0,
    )
    records.parent.mkdir(parents=True, exist_ok=True)
    append_record(records, record | provenance(f"python -m benchmarks translated_files --rows {pictures}", "torch"))


def _save_model(folder: Path) -> None:
    from setminus.transfer.fitting import DEFAULT_WIDTH
    from setminus.transfer.model_files import ImageTranslator, save_translator
    from setminus.transfer.networks import networks_for

    networks = networks_for(SIZE, DEFAULT_WIDTH, seed=0)
    made = ImageTranslator(networks.a_to_b, networks.b_to_a, SIZE, DEFAULT_WIDTH, {"column": "x", "role": "change"})
    save_translator(made, folder)


def _write_pictures(folder: Path, n: int) -> None:
    for start in range(0, n, PER_FOLDER):
        within = folder / f"{start // PER_FOLDER:04d}"
        within.mkdir(parents=True)
        pixels = np.random.default_rng(start).integers(256, size=(min(PER_FOLDER, n - start), SIZE, SIZE, 3))
        for number, picture in enumerate(pixels.astype(np.uint8)):
            Image.fromarray(picture).save(within / f"{start + number}.png", compress_level=1)


def _apply(model: Path, given: Path, out: Path, *options: str, kill_after: int | None = None) -> dict[str, Any]:
    """Seconds, CPU seconds and peak bytes of the command; with `kill_after` until so many pictures are written."""
    before, start = _count(out), time.perf_counter()
    command = [sys.executable, "-c", CHILD, "transfer", "apply", str(model), str(given), "--out", str(out), "--quiet"]
    process = subprocess.Popen([*command, *options])
    peak = 0
    while True:
        done, status, used = os.wait4(process.pid, os.WNOHANG)
        if done:
            break
        # not of the resources that wait4 returns: there a child starts at its parent's peak
        peak = max(peak, _peak(process.pid))
        if kill_after is not None and _count(out) >= kill_after:
            os.kill(process.pid, signal.SIGKILL)
            _, status, used = os.wait4(process.pid, 0)
            break
        time.sleep(PAUSE)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != (0 if kill_after is None else -signal.SIGKILL):
        raise RuntimeError(f"{command} ended with {process.returncode}")
    seconds, cpu_seconds, written = time.perf_counter() - start, used.ru_utime + used.ru_stime, _count(out) - before
    return {
        "written": written,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "pictures_per_second": round(written / seconds, 1),
        "pictures_per_cpu_second": round(written / cpu_seconds, 1),
        "peak_mib": round(peak / 2**20),
    }


def _peak(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except ProcessLookupError:
        return 0
    # a process that has ended, and is not yet waited for, has no memory
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def _count(folder: Path) -> int:
    return sum(1 for _ in folder.glob("*/*.png"))


def _difference(one: Path, other: Path) -> int:
    pixels = [np.asarray(Image.open(path)).astype(int) for path in (one, other)]
    return int(np.abs(pixels[0] - pixels[1]).max())
