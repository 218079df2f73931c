"""What is wrong with a table, and what to do about it."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

__all__ = ["TableError", "check_names", "check_unique", "refusing_damage", "shown"]


class TableError(ValueError):
    """A table that cannot be used as asked.

    Parameters
    ----------
    problem : str
        What is wrong, as a clause without its full stop.
    advice : str
        What to do, as a sentence.

    Examples
    --------
    >>> error = TableError("people.csv is empty", "Give a file with rows.")
    >>> str(error)
    'people.csv is empty. Give a file with rows.'
    >>> error.advice
    'Give a file with rows.'
    """

    def __init__(self, problem: str, advice: str):
        # both as arguments: the error must survive the way back from a worker process
        super().__init__(problem, advice)
        self.problem = problem
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.problem}. {self.advice}"

    @classmethod
    def of(cls, error: ValueError) -> TableError:
        """An error of the library, which says "what is wrong: what to do", in the two parts.

        Examples
        --------
        >>> TableError.of(ValueError("prior is None: pass p(y).")).problem
        'prior is None'
        """
        if isinstance(error, TableError):
            return error
        problem, _, advice = str(error).partition(": ")
        return cls(problem.rstrip("."), advice[:1].upper() + advice[1:] or "Mend the values, and try again.")


LONGEST_SHOWN = 60
"""Characters of a name or a value that an error repeats."""


def shown(text: str) -> str:
    r"""A name or a value in quotes on one line, cut where it is long.

    Examples
    --------
    >>> shown("two\nlines"), len(shown("x" * 10_000))
    ("'two\\nlines'", 65)
    """
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}...")


def check_names(wanted: Iterable[str], present: Sequence[str], where: str, what: str = "column") -> None:
    """Raise where a wanted column, or what else it is, is not among those present, and suggest the nearest.

    Examples
    --------
    >>> check_names(["sexx"], ["age", "sex"], "people.csv")
    Traceback (most recent call last):
    setminus.tables.errors.TableError: people.csv has no column 'sexx'. Did you mean 'sex'?
    """
    known = set(present)
    for name in wanted:
        if name in known:
            continue
        folded = {other.casefold().strip(): other for other in present}
        near = difflib.get_close_matches(name.casefold().strip(), folded, n=1)
        advice = f"Did you mean {shown(folded[near[0]])}?" if near else f"It has {_listed(present)}."
        raise TableError(f"{where} has no {what} {shown(name)}", advice)


def check_unique(names: Sequence[str], where: str, otherwise: str = "") -> None:
    """Raise where two columns have the same name.

    Examples
    --------
    >>> check_unique(["a", "b", "a"], "people.csv")
    Traceback (most recent call last):
    setminus.tables.errors.TableError: people.csv has 2 columns called 'a'. Give each column a name of its own.
    """
    name, count = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    if count > 1:
        raise TableError(
            f"{where} has {count} columns called {shown(name)}", f"Give each column a name of its own{otherwise}."
        )


@contextmanager
def refusing_damage(where: str, kind: str) -> Iterator[None]:
    """Turn what pyarrow and the system say of a damaged file into a `TableError`."""
    try:
        yield
    except TableError:
        raise
    except pa.ArrowNotImplementedError as error:
        raise TableError(
            f"{where} holds a type that cannot be read: {str(error).splitlines()[0]}",
            "Write that column as numbers of 64 bits or as text, or leave it out.",
        ) from error
    # the last three: a type that pandas registered is made by code of pandas from words in the file
    except (pa.ArrowException, OSError, EOFError, KeyError, TypeError, ValueError) as error:
        first = str(error).strip().split("\n")[0]
        raise TableError(
            f"{where} cannot be read as {kind}: {first or type(error).__name__}",
            "The file may be damaged or not complete; write it again, or fetch it again.",
        ) from error


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(map(shown, names[:12]))
    return f"{listed} and {len(names) - 12} more" if len(names) > 12 else listed
