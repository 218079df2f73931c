"""What a user reads: errors in three fields (what came, what was expected, what to do), and text made safe to print."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["MissingExtraError", "UserError", "printable", "printable_json"]

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves the cursor, changes colours, breaks a line, turns the direction of writing, or cannot be encoded."""


class _ThreeFields(Exception):
    """The fields, as one line for Python and as two lines for the command."""

    came: str
    expected: str
    do: str

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

    package: str
    extra: str

    def __init__(self, purpose: str, package: str, extra: str):
        super().__init__(f"{purpose} needs {package}", do=f'pip install "setminus[{extra}]"')
        self.args: tuple[Any, ...] = (purpose, package, extra)
        self.package, self.extra = package, extra

    @property
    def lines(self) -> tuple[str, str]:
        """What the command prints: what is missing, and how to install it."""
        return f"{self.came}, which is not installed.", f"Install it: {self.do}"


def printable(text: str) -> str:
    r"""A text in one line whose control characters are shown as escapes instead of obeyed by the terminal.

    Examples
    --------
    >>> print(printable("sex\x1b[2K\rall clear"))
    sex\x1b[2K\rall clear
    """
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def printable_json(text: str) -> str:
    r"""The same JSON, with escapes in place of control characters; line breaks between its parts stay.

    Examples
    --------
    >>> print(printable_json('{\n"sex": "\u202eelam"\n}'))
    {
    "sex": "\u202eelam"
    }
    """
    return CONTROL.sub(lambda found: found[0] if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)
