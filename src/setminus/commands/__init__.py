"""The `setminus` command."""

from __future__ import annotations

import os
import sys
import traceback

__all__ = ["main"]


def main() -> None:
    """Run the command; every error ends in two lines and an exit code of `ExitCode`, never in a traceback."""
    try:
        from setminus.commands.app import app
        from setminus.commands.errors import ExitCode, explanation
        from setminus.commands.streams import echo, flush, protect_streams
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print('The setminus command needs one more step: pip install "setminus[cli]"', file=sys.stderr)  # noqa: T201
        sys.exit(2)
    protect_streams()
    code: int | str | None = 0
    try:
        try:
            app()
        except SystemExit as stop:
            code = stop.code
        flush()
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except Exception as error:
        if os.environ.get("SETMINUS_TRACEBACK"):
            traceback.print_exc()
        code, *lines = explanation(error)
        echo(*lines, err=True)
    sys.exit(code)
