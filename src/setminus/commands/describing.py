"""What a model file says of itself."""

from __future__ import annotations

from numbers import Real
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from setminus.errors import UserError
from setminus.estimators.persistence import load

__all__ = ["describe_model"]


def describe_model(path: Path, trusted: tuple[str, ...] = ()) -> dict[str, Any]:
    """Load a model and say what it predicts, ignores and needs.

    Parameters
    ----------
    path : Path
    trusted : tuple of str
        See `setminus.load`.

    Returns
    -------
    dict
        Plain values; `about` is what ``setminus fit`` wrote down, empty for a model that was saved from Python.

    Raises
    ------
    ValueError
        If the file is refused by `load`, or describes itself in a way that ``setminus fit`` does not.
    """
    model = load(path, trusted=trusted)
    try:
        return _described(path, model)
    # of attributes that may be anything in a file of a stranger
    except Exception as error:
        raise UserError(
            f"{path.name} holds a model that is damaged, its description cannot be read ({type(error).__name__})",
            do="fit it again, or copy it again.",
        ) from error


def _described(path: Path, model: Any) -> dict[str, Any]:
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
    """What was written down of a model, having seen that what is shown of it has the kinds that it should."""
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
    steps = [step for _, step in part.steps] if isinstance(part, Pipeline) else [part]
    return " > ".join(type(step).__name__ for step in steps)
