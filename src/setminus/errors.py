"""Errors that a user can mend, in three fields: what came, what was expected, what to do."""

from __future__ import annotations

__all__ = ["MissingExtraError", "UserError"]


class _ThreeFields(Exception):
    """The fields, as one line for Python and as two lines for the command."""

    def __init__(self, came: str, expected: str = "", do: str = ""):
        # all as arguments: the error must survive the way back from a worker process
        super().__init__(came, expected, do)
        self.came, self.expected, self.do = came, expected, do

    def __str__(self) -> str:
        return f"{self.came}: {self._remedy}" if self._remedy else self.came

    @property
    def lines(self) -> tuple[str, str]:
        """What the command prints: what is wrong, and what to do about it."""
        remedy = self._remedy or "Change the input and try again."
        return f"{self.came}.", remedy[:1].upper() + remedy[1:]

    @property
    def _remedy(self) -> str:
        expected = f"expected {self.expected}." if self.expected else ""
        do = self.do[:1].upper() + self.do[1:] if expected else self.do
        return " ".join(part for part in (expected, do) if part)


class UserError(_ThreeFields, ValueError):
    """Input that cannot be used as it is.

    Parameters
    ----------
    came : str
        What is wrong, as a clause without its full stop: "prior has 3 classes, full has 2".
    expected : str, optional
        What would have been right, as a phrase: "one probability for each class".
    do : str, optional
        What to do, as a sentence with its full stop.

    Examples
    --------
    >>> error = UserError("tolerance is 2", expected="a number from 0 to 1")
    >>> str(error)
    'tolerance is 2: expected a number from 0 to 1.'
    >>> UserError("people.csv is empty", do="give a file with rows.").lines
    ('people.csv is empty.', 'Give a file with rows.')
    """


class MissingExtraError(_ThreeFields, ImportError):
    """A package of an optional extra is not installed.

    Parameters
    ----------
    purpose : str
        What needs it, in the singular: "style transfer".
    package : str
    extra : str
        The extra of setminus that brings it.

    Examples
    --------
    >>> MissingExtraError("the page", "jinja2", extra="cli").lines
    ('the page needs jinja2, which is not installed.', 'Install it: pip install "setminus[cli]"')
    """

    def __init__(self, purpose: str, package: str, extra: str):
        super().__init__(f"{purpose} needs {package}", do=f'pip install "setminus[{extra}]"')
        self.args = (purpose, package, extra)
        self.package, self.extra = package, extra

    @property
    def lines(self) -> tuple[str, str]:
        """What the command prints: what is missing, and how to install it."""
        return f"{self.came}, which is not installed.", f"Install it: {self.do}"
