"""``setminus info``: what a model file holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import Annotated, Any

import typer

from setminus.commands import options
from setminus.commands.terminal import Display
from setminus.errors import UserError
from setminus.records import to_json

__all__ = ["describe_model", "describe_translator", "info"]


def info(
    model: Annotated[
        Path,
        typer.Argument(help="A model file, or the folder of a translator, that setminus wrote.", show_default=False),
    ],
    trust: options.Trusted = None,
    json: options.Json = False,
) -> None:
    """Describe a model file, or the folder of a translator.

    Prints what it predicts, what it ignores, which columns it needs, and how accurate and fair it was on test rows.
    For a translator: what it changes and keeps, and its verdict.

    Example: setminus info model.skops
    """
    about = describe_translator(model) if model.is_dir() else describe_model(model, tuple(trust or ()))
    if json:
        typer.echo(to_json(about))
        return
    with _readable(about["file"]):
        rows = _translator_rows(about) if model.is_dir() else _rows(about)
    Display().table(("", ""), [(name, value) for name, value in rows if value])


@contextmanager
def _readable(name: str) -> Iterator[None]:
    try:
        yield
    # the attributes of an untrusted file, and the description in an untrusted folder, may be anything
    except Exception as error:
        raise UserError(
            f"{name} holds a model that is damaged, its description cannot be read ({type(error).__name__})",
            do="fit it again, or copy it again.",
        ) from error


def describe_model(path: Path, trusted: tuple[str, ...] = ()) -> dict[str, Any]:
    """What a model file predicts, ignores and needs, in plain values; for `trusted` see `setminus.load`.

    `about` is the description that ``setminus fit`` stored; it is empty for a model that was saved from Python.
    """
    from setminus.estimators.persistence import load

    model = load(path, trusted=trusted)
    with _readable(path.name):
        return _described(path, model)


def describe_translator(folder: Path) -> dict[str, Any]:
    """The description of itself in a folder that ``setminus transfer fit`` wrote; its networks are not read.

    `about` is what was stored when it was fitted.
    """
    from setminus.transfer.model_files import read_config

    config = read_config(folder)
    about = config.get("about")
    return {
        "file": folder.resolve().name,
        "bytes": sum(file.stat().st_size for file in folder.glob("*.safetensors")),
        "type": "OrthogonalTranslator",
        "size": config.get("size"),
        "network": config.get("network"),
        "about": about if isinstance(about, dict) else {},
    }


def _translator_rows(about: dict[str, Any]) -> list[tuple[str, str]]:
    written = about["about"]
    params, report = written.get("params", {}), written.get("report", {})
    a, b = (str(name) for name in written.get("domains", ("a", "b")))
    role, column = written.get("role", ""), str(written.get("column", ""))
    rows = [
        ("model", f"{about['type']} in {about['file']}, {about['bytes'] / 1e6:.1f} MB"),
        ("translates", f"{a} to {b} and back"),
        ("changes", column if role == "change" else "all other differences"),
        ("keeps", str(params.get("keep") or "all other differences") if role == "change" else column),
        ("pictures", f"{about['size']} x {about['size']}, {about['network']}"),
        ("steps", str(params.get("steps", ""))),
        ("verdict", str(report.get("verdict", ""))),
    ]
    names = {"a_to_b": f"{a} to {b}", "b_to_a": f"{b} to {a}"}
    for direction, scores in report.get("directions", {}).items():
        shown = f"changed {float(scores['changed']):.1%}, kept {float(scores['kept']):.1%}"
        rows.append((f"{names[direction]}, held out", f"{shown}, structure {float(scores['structure']):.2f}"))
    return rows


def _described(path: Path, model: Any) -> dict[str, Any]:
    from sklearn.pipeline import Pipeline

    parts = getattr(model, "model_", model)
    full = getattr(parts, "full_", None)
    last = model[-1] if isinstance(model, Pipeline) else model
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "type": _name(model),
        "full": "" if full is None else _name(full),
        "principals": [_name(part) for part in getattr(parts, "principals_", [])],
        "classes": [str(label) for label in getattr(model, "classes_", [])],
        "strength": _number(getattr(model, "strength_", getattr(model, "strength", None))),
        "threshold": _number(getattr(model, "threshold_", None)),
        "adapted": _mixes(last) if hasattr(last, "target_prior_") else {},
        "columns": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "about": _about(model),
    }


def _about(model: Any) -> dict[str, Any]:
    """The description that `fit` stored, after a check that what is shown of it has the right types."""
    about: dict[str, Any] = getattr(model, "about_", {})
    task, config = about.get("task", {}), about.get("config", {})
    bound = ("constraint", "agg") if "constraint" in config else ()
    texts = [about.get("command", ""), task.get("label", ""), task.get("ignored", ""), *(config[key] for key in bound)]
    if not all(isinstance(text, str) for text in texts) or (bound and _number(config["tolerance"]) is None):
        raise TypeError
    for measured in about.get("test", {}).values():
        for value in measured.values():
            _number(value["value"])
    return about


def _number(value: Any) -> float | None:
    if value is not None and not isinstance(value, Real):
        raise TypeError
    return None if value is None else float(value)


def _mixes(model: Any) -> dict[str, Any]:
    """How an adapter was fitted, and the class frequencies of both domains."""
    mixes = {which: [float(share) for share in getattr(model, f"{which}_prior_")] for which in ("source", "target")}
    return {"method": str(model.method), **mixes}


def _name(part: Any) -> str:
    from sklearn.pipeline import Pipeline

    steps = [step for _, step in part.steps] if isinstance(part, Pipeline) else [part]
    return " > ".join(type(step).__name__ for step in steps)


def _rows(about: dict[str, Any]) -> list[tuple[str, str]]:
    written = about["about"]
    task = written.get("task", {})
    rows = [
        ("model", f"{about['type']} in {about['file']}, {about['bytes'] / 1e6:.1f} MB"),
        ("predicts", task.get("label", ", ".join(about["classes"]))),
        ("classes", ", ".join(about["classes"])),
        ("ignores", task.get("ignored", ", ".join(about["principals"]))),
        ("full", about["full"]),
        *_adapted(about["adapted"]),
        ("strength", "" if about["strength"] is None else f"{about['strength']:g}"),
        ("threshold", "" if about["threshold"] is None else f"{about['threshold']:.3f}"),
        ("bounds", _bound(written.get("config", {}))),
        ("needs the columns", ", ".join(about["columns"])),
        ("made by", written.get("command", "")),
    ]
    for when, numbers in written.get("test", {}).items():
        shown = ", ".join(f"{key.replace('_', ' ')} {_digits(value['value'])}" for key, value in numbers.items())
        rows.append((f"{when}, on test rows", shown))
    return rows


def _digits(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"


def _adapted(about: dict[str, Any]) -> list[tuple[str, str]]:
    """How a model was adapted, and to which class frequencies; nothing for other models."""
    mixes = {"class frequencies, source": "source", "class frequencies, target (estimated)": "target"}
    shown = [(name, ", ".join(f"{share:.3f}" for share in about[key])) for name, key in mixes.items() if about]
    return [("adapted by", about["method"]), *shown] if about else []


def _bound(config: dict[str, Any]) -> str:
    """The gap that was bounded, for a model that was made fair."""
    if "constraint" not in config:
        return ""
    agg = f" ({config['agg']})" if config["constraint"] == "equalized_odds" else ""
    return f"the {config['constraint'].replace('_', ' ')} gap{agg}, to {config['tolerance']:g}"
