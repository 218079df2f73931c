"""Models to files and back, by skops: a file from a stranger runs no code."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from setminus.files import atomic_write

__all__ = ["load", "save"]

_OWN = "setminus.estimators"
TRUSTED = frozenset(
    {
        f"{_OWN}.frontier.Frontier",
        f"{_OWN}.groups.Groups",
        f"{_OWN}.importance.ImportanceWeightedClassifier",
        f"{_OWN}.orthogonal.OrthogonalClassifier",
        f"{_OWN}.principals.GroupPrincipal",
        f"{_OWN}.principals.ProxyPrincipal",
        f"{_OWN}.tuned.TunedOrthogonalClassifier",
        "setminus.applications.domain_adaptation.adapter.OrthogonalAdapter",
        "setminus.tables.encoding.TableEncoder",
        "numpy.dtype",
        # gradient boosting checks categories by a partial call of check_array; a partial of anything else is named
        # by that other function, and refused
        "functools.partial",
        "sklearn.utils.validation.check_array",
        # parts of scikit-learn's own models that hold numbers only
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    }
)
"""Types beyond skops' own list that a saved model of this library may hold, each looked at: data, no code."""


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Write a fitted model to `path`; the file appears whole or not at all.

    Parameters
    ----------
    model : estimator
    path : path
        Where to write, by custom ending in ``.skops``.

    Returns
    -------
    Path

    Examples
    --------
    >>> import tempfile
    >>> from setminus import GroupPrincipal
    >>> model = GroupPrincipal().fit(None, [0, 1, 0, 1], sensitive_features=["f", "f", "m", "m"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(save(model, Path(folder) / "model.skops"))
    GroupPrincipal()
    """
    import skops.io

    with atomic_write(path) as partial:
        partial.write_bytes(skops.io.dumps(model))
    return Path(path)


def load(path: str | os.PathLike[str], *, trusted: Iterable[str] = ()) -> Any:
    """Read a model that `save` wrote.

    Only types on a reviewed list are made: this library's, and scikit-learn's with the parts they are made of.
    Anything else is refused by name, before it exists.

    Parameters
    ----------
    path : path
    trusted : iterable of str
        Names of further types to allow, after looking at where the file comes from.

    Returns
    -------
    estimator
    """
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}: check the path, or save a model there first.")
    if isinstance(trusted, str):
        raise TypeError(f"trusted is the string {trusted!r}: expected a list of type names, trusted=[{trusted!r}].")
    try:
        found = skops.io.get_untrusted_types(file=source)
        strangers = sorted(set(found) - TRUSTED - set(trusted))
        if strangers:
            raise ValueError(
                f"{source.name} holds types that are not trusted: {', '.join(strangers)}. If you know who made the "
                f"file, allow them: load(path, trusted={strangers})."
            )
        return skops.io.load(source, trusted=found)
    except (BadZipFile, KeyError) as error:
        raise ValueError(f"{source.name} is no model file of skops ({error}): expected what save() wrote.") from error
    except UntrustedTypesFoundException as error:
        raise ValueError(f"{source.name} holds types that are not trusted: {error}") from error
