"""What a model file says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

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
    """
    model = load(path, trusted=trusted)
    parts = getattr(model, "model_", model)
    full = getattr(parts, "full_", None)
    last = model[-1] if isinstance(model, Pipeline) else model
    threshold = getattr(model, "threshold_", None)
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "type": _name(model),
        "full": "" if full is None else _name(full),
        "principals": [_name(part) for part in getattr(parts, "principals_", [])],
        "classes": [str(label) for label in getattr(model, "classes_", [])],
        "strength": getattr(model, "strength_", getattr(model, "strength", None)),
        "threshold": threshold,
        "adapted": _mixes(last) if hasattr(last, "target_prior_") else {},
        "columns": [str(name) for name in getattr(model, "feature_names_in_", [])],
        "about": getattr(model, "about_", {}),
    }


def _mixes(model: Any) -> dict[str, Any]:
    """How an adapter was fitted, and the class frequencies of both domains."""
    mixes = {which: [float(share) for share in getattr(model, f"{which}_prior_")] for which in ("source", "target")}
    return {"method": model.method, **mixes}


def _name(part: Any) -> str:
    steps = [step for _, step in part.steps] if isinstance(part, Pipeline) else [part]
    return " > ".join(type(step).__name__ for step in steps)
