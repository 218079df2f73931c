"""Text from data that is safe to print."""

from __future__ import annotations

import re

__all__ = ["printable", "printable_json"]

CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What moves the cursor, changes colours, breaks a line, turns the direction of writing, or cannot be encoded."""


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
