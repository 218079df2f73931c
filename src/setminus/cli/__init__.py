"""The `setminus` command."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; what a user can mend ends in two lines and exit code 2, never in a traceback."""
    try:
        from setminus.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print('The setminus command needs one more step: pip install "setminus[cli]"', file=sys.stderr)  # noqa: T201
        sys.exit(2)
    from setminus.cli.errors import explanation

    try:
        app()
    except Exception as error:
        lines = explanation(error)
        if lines is None:
            raise
        print(*lines, sep="\n", file=sys.stderr)  # noqa: T201
        sys.exit(2)
