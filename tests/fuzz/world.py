"""Valid files of every kind, small ones, that the inputs are made from by damage."""

import csv
import io
import json
import math
import shutil
import zipfile
from functools import cache

from tests.fuzz.forks import PROJECT, Job
from tests.made_translation import made_translation

OLD = PROJECT / "tests" / "data" / "models_0_1_0"
NAMES = ("age", "skill", "job", "sex", "income", "p", "q")
ROLES = ("--label", "income", "--ignore", "sex")
EARLIER = {"model.skops": "model.skops", "model.audit.json": "audit.json", "scored.csv": "people.csv"}
"""Outputs of an earlier run, which a new one leaves alone or replaces whole; and what they are copies of."""


@cache
def people():
    """Rows of words: income from skill, and from sex by way of a job that tells it; p and q are scores."""
    with (OLD / "target.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    for row in rows:
        skill, male = float(row[1]), row[3] == "m"
        row += [f"{1 / (1 + math.exp(skill - shift)):.3f}" for shift in (0, 2 * male)]
    return rows


def as_csv(rows, **dialect):
    """Rows as text."""
    text = io.StringIO()
    csv.writer(text, **{"lineterminator": "\n", **dialect}).writerows(rows)
    return text.getvalue()


def zipped(members):
    """Files as a zip archive, without times."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return sink.getvalue()


@cache
def unzipped(content):
    """The files of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def build(folder, forks, torch=True):
    """Write the files: models that are kept with the tests, and records that the commands write about them."""
    folder.mkdir(parents=True)
    (folder / "people.csv").write_text(as_csv([NAMES, *people()]))
    (folder / "translation.jsonl").write_text(json.dumps(made_translation("keep")) + "\n")
    for results in sorted((PROJECT / "results").glob("*/records.jsonl")):
        (folder / f"{results.parent.name}.jsonl").write_text(_first(results))
    commands = [
        ("fit.json", "fit", "people.csv", *ROLES, "--full", "logistic", "--out", "new.skops"),
        ("audit.json", "audit", "people.csv", *ROLES, "--score", "p", "--fail-above", "1"),
        ("adaptation.json", "adapt", "people.csv", "people.csv", *ROLES[:2], "--steps", "1", "--out", "new.skops"),
    ]
    for file, *argv in commands if torch else commands[:-1]:
        (done,) = forks.run(Job((*argv, "--json"), str(folder)))
        # without times, so that a seed gives the same inputs everywhere
        record = {**json.loads(done.out), "steps": {}, "seconds": 0.0}
        for beside in folder.glob("new.*"):
            beside.unlink()
        (folder / file).write_text(json.dumps(record, indent=2))
    shutil.copy(OLD / "command_fit.skops", folder / "model.skops")
    shutil.copy(OLD / "command_adapt.skops", folder / "adapted.skops")
    shutil.copy(OLD / "translator" / "before" / "0000.png", folder / "picture.png")
    shutil.copytree(OLD / "translator", folder / "translator", ignore=shutil.ignore_patterns("before", "after"))
    (folder / "out").mkdir()
    (folder / "out" / "page.html").write_text("<!doctype html><p>old</p></html>")
    for name, source in EARLIER.items():
        shutil.copy(folder / source, folder / "out" / name)


def _first(results, most=60_000):
    """Of a file, the first record of each setting, as many as there is room for: a page of thousands takes long."""
    lines, size = {}, 0
    for line in results.read_text().splitlines():
        record = json.loads(line)
        key = json.dumps([record["name"], record["config"]], sort_keys=True)
        if key not in lines and size + len(line) < most:
            lines[key] = line + "\n"
            size += len(line)
    return "".join(lines.values())
