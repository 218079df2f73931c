"""Run the commands on the inputs, through the command line alone, and keep the numbers of what they write."""

import io
import json
import math
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from unittest import mock

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
SKIPPED = {"config", "versions", "steps", "seed", "seconds", "seconds_per_step", "bytes", "commit"}
"""What repeats the input, or depends on the machine and the day."""
FITS = {
    "text by proxy": "people.csv --label income --ignore sex --positive high",
    "text by group": "people.csv --label income --ignore sex --principal group --full logistic",
    "many classes": "bands.parquet --label band --ignore sex --full logistic --agg sum --seed 1",
}
AUDITS = {
    "text by proxy": "people.csv --label income --ignore sex --positive high",
    "many classes": "bands.parquet --label band --ignore sex --ignore job",
}
"""Of the tables that `apply` wrote."""
TRANSFER = ["--change", "ink", "--size", "16", "--width", "4", "--batch-size", "8", "--steps", "4", "--every", "2"]
HEAD = 12
"""Rows of a scored table that are kept one by one; all others count in the means."""
TRAINED = ("adapt", "transfer")
"""Commands that train networks in float32: another CPU adds in another order, and steps of Adam enlarge that."""


def setminus(*arguments):
    """Run the command in this process, found as pip would, and return what it prints."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    main = resolve_name(scripts["setminus"])
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), mock.patch.object(sys, "argv", ["setminus", *map(str, arguments)]):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        else:
            code = 0
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    assert code == 0, f"setminus {' '.join(map(str, arguments))}\n{texts[1]}"
    return texts[0]


def numbers(value):
    """The same JSON with its numbers only, to ten digits; None where nothing is left."""
    if isinstance(value, dict):
        kept = {key: numbers(one) for key, one in value.items() if key not in SKIPPED}
        return {key: one for key, one in kept.items() if one is not None} or None
    if isinstance(value, list):
        kept = [numbers(one) for one in value]
        # an object without numbers keeps its place, so that those behind it keep theirs
        return [{} if one is None else one for one in kept] if any(one is not None for one in kept) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) else float(f"{value:.10g}")


def run(home, out):
    """Run all commands on the files of `write_inputs`; returns the numbers by job."""
    found = {}
    for name, line in FITS.items():
        table, *options = line.split()
        model = out / name / "model.skops"
        setminus("fit", home / table, *options, "--out", model, "--quiet")
        found[f"fit {name}"] = numbers(json.loads((out / name / "model.audit.json").read_text()))
        found[f"info {name}"] = numbers(json.loads(setminus("info", model, "--json")))
        setminus("apply", model, home / table, "--out", out / name / table, "--quiet")
        found[f"apply {name}"] = _scores(out / name / table, home / table)
    for name, line in AUDITS.items():
        table, *options = line.split()
        found[f"audit {name}"] = numbers(json.loads(setminus("audit", out / name / table, *options, "--json")))
    columns = ["--full", "p0,p1", "--principal", "q0,q1", "--prior", "0.7,0.3", "--strength", "0.8"]
    setminus("apply", home / "scores.csv", *columns, "--out", out / "columns.csv", "--quiet")
    found["apply columns"] = _scores(out / "columns.csv", home / "scores.csv")
    return found | _trained(home, out)


def _trained(home, out):
    import torch

    torch.set_num_threads(1)
    found = {}
    hospitals = [home / "old.csv", home / "new.csv", "--label", "outcome", "--steps", 30]
    setminus("adapt", *hospitals, "--out", out / "adapted" / "model.skops", "--quiet")
    found["adapt"] = numbers(json.loads((out / "adapted" / "model.adaptation.json").read_text()))
    setminus("apply", out / "adapted" / "model.skops", home / "new.csv", "--out", out / "adapted.csv", "--quiet")
    found["adapt apply"] = _scores(out / "adapted.csv", home / "new.csv")
    pictures, translated = home / "pictures", out / "translated"
    folders = [pictures / "A", pictures / "B", "--labels", pictures / "labels.csv"]
    # bfloat16 is taken where the CPU has it, and has three digits only: pretend that no CPU does
    absent = {name: lambda: False for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported")}
    with mock.patch.multiple(torch.cpu, create=True, **absent):
        setminus("transfer", "fit", *folders, *TRANSFER, "--out", out / "translator", "--quiet")
        setminus("transfer", "apply", out / "translator", pictures / "A", "--out", translated, "--quiet")
    (record,) = map(json.loads, (out / "translator" / "records.jsonl").read_text().splitlines())
    # votes of judges that trained for a moment: one of twelve pictures changes sides with the last digit of a score
    for direction in ("directions", "curves"):
        del record["metrics"][direction]
    found["transfer fit"] = numbers(record)
    found["transfer apply"] = {file.stem: _colors(file) for file in sorted(translated.iterdir())[:HEAD]}
    return found


def _scores(scored, given):
    """The columns that `apply` added: first rows, the mean, and one that notices rows in another order."""
    read = [pd.read_csv if file.suffix == ".csv" else pd.read_parquet for file in (scored, given)]
    after, before = read[0](scored), read[1](given)
    found = {"rows": len(after)}
    for name in [name for name in after if name not in before]:
        column = after[name]
        if column.dtype.kind in "if":
            weighted = np.average(column, weights=np.arange(1, len(column) + 1))
            found[name] = {"mean": column.mean(), "weighted": weighted, "head": column[:HEAD].tolist()}
        else:
            found[name] = column.value_counts().to_dict()
    return numbers(found)


def _colors(file):
    from PIL import Image

    return np.asarray(Image.open(file), dtype=float).mean(axis=(0, 1)).round(4).tolist()


def changes(expected, found, relative):
    """What differs: a list of texts, empty where every expected number is still there.

    Numbers are compared by their path. Where a path is gone, as after a renaming, any object or list of the
    same job that holds the numbers of the old one will do. Numbers that were added do not matter.
    """
    near = partial(math.isclose, rel_tol=relative, abs_tol=1e-9)
    groups, texts = dict(_groups(found)), []
    for path, wanted in _groups(expected):
        now = groups.get(path, {})
        changed = [
            f"{path}{key}: {number} is now {now[key]}"
            for key, number in wanted.items()
            if key in now and not near(now[key], number)
        ]
        if not changed and wanted.keys() - now.keys() and not any(_holds(one, wanted, near) for one in groups.values()):
            changed = [f"{path}: {list(wanted.values())} is gone"]
        texts += changed
    return texts


def _groups(value, path="."):
    """Each object or list with the numbers that stand in it directly."""
    items = dict(value.items() if isinstance(value, dict) else enumerate(value))
    direct = {key: one for key, one in items.items() if not isinstance(one, dict | list)}
    if direct:
        yield path, direct
    for key, one in items.items():
        if key not in direct:
            yield from _groups(one, f"{path}{key}.")


def _holds(group, wanted, near):
    left = sorted(group.values())
    for number in sorted(wanted.values()):
        match = next((one for one in left if near(one, number)), None)
        if match is None:
            return False
        left.remove(match)
    return True
