"""Models to files and back, by skops: a file from a stranger runs no code."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from setminus.errors import UserError
from setminus.estimators.model_archive import DamagedError, LimitError, read_archive
from setminus.estimators.reviewed_types import refused_name
from setminus.files import atomic_write
from setminus.text import printable

__all__ = ["load", "model_errors", "save"]

SHOWN, LONGEST = 5, 200
"""Names in a message, and characters of each."""


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

    Only types on a reviewed list are made: this library's, and scikit-learn's with the parts they are made of. Anything
    else is refused by name, before it exists. What is made is then checked, so that using it neither reads a file nor
    leaves its own memory; SECURITY.md says what that covers.

    Parameters
    ----------
    path : path
    trusted : iterable of str
        Names of further types, functions or settings to allow, as the error gives them, after looking at where the
        file comes from.

    Returns
    -------
    estimator

    Raises
    ------
    FileNotFoundError
    ValueError
        If the file is damaged, holds what is not trusted, or unpacks to more than ``SETMINUS_MODEL_BYTES`` (by default
        2 GiB, and 100 times its size).
    """
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}: check the path, or save a model there first.")
    if isinstance(trusted, str):
        raise TypeError(f"trusted is the string {trusted!r}: expected a list of type names, trusted=[{trusted!r}].")
    try:
        return _made(source, frozenset(trusted))
    except (RefusedError, LimitError):
        raise
    # of zip, json, numpy, skops, and of types that are given what they never wrote: they have no common kind
    except Exception as error:
        raise UserError(
            f"{source.name} is no model file of setminus, or is damaged ({_reason(error)})",
            do="copy it again, or save the model again.",
        ) from error


@contextmanager
def model_errors(name: str) -> Iterator[None]:
    """Turn what a loaded model raises into a `ValueError`: parts of a damaged file may not fit together.

    Parameters
    ----------
    name : str
        What to call the file.

    Examples
    --------
    >>> with model_errors("m.skops"):
    ...     [0][1]
    Traceback (most recent call last):
    setminus.errors.UserError: the model m.skops fails (IndexError, its parts do not fit together): ...
    """
    try:
        yield
    except (ValueError, MemoryError, ImportError):
        raise
    except Exception as error:
        raise UserError(f"the model {name} fails ({_reason(error)})", do="fit it again, or copy it again.") from error


class RefusedError(ValueError):
    """A file that may be whole, and is not loaded because of what it holds."""

    def __init__(self, name: str, strangers: Iterable[str]):
        listed = [_short(one) for one in sorted(set(strangers))]
        more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
        super().__init__(
            f"{name} holds what is not trusted, {', '.join(listed[:SHOWN])}{more}: if you know who made the file, "
            f"allow it by load(path, trusted={listed[:SHOWN]}), or by --trust for each name."
        )


def _made(source: Path, trusted: frozenset[str]) -> Any:
    import sklearn
    import skops.io
    from sklearn.exceptions import InconsistentVersionWarning

    from setminus.estimators.model_contents import check_contents, outside_settings

    archive = read_archive(source)
    refused = {name for node in archive.nodes if (name := refused_name(*node)) is not None} - trusted
    # by skops, too, which names what a node does beyond its type
    found = skops.io.get_untrusted_types(data=archive.content)
    known = {f"{node.module}.{node.name}" for node in archive.nodes}
    strangers = refused | (set(found) - known - trusted)
    if strangers:
        raise RefusedError(source.name, strangers)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = skops.io.loads(archive.content, trusted=found)
    check_contents(model)
    reaching = set(outside_settings(model)) - trusted
    if reaching:
        raise RefusedError(source.name, reaching)
    if any(isinstance(one.message, InconsistentVersionWarning) for one in told):
        # once, not for each part; and without the version that the file gives, which may be any text
        warnings.warn(
            f"{source.name} was saved with another version of scikit-learn than {sklearn.__version__}: it may predict "
            "otherwise than there. Save it again with this one.",
            UserWarning,
            stacklevel=3,
        )
    return model


def _reason(error: Exception) -> str:
    """What is wrong, for a user; what Python and numpy say of their own objects is kept for the traceback."""
    if isinstance(error, (DamagedError, BadZipFile)):
        # a colon would end the first part of a message
        return _short(str(error).replace(": ", ", "))
    return f"{type(error).__name__}, its parts do not fit together"


def _short(text: str) -> str:
    """A text of the file's, for one line of a message."""
    line = printable(text)
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
