"""The `setminus` command."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import traceback
from enum import IntEnum
from typing import TYPE_CHECKING

from setminus.errors import MissingExtraError, UserError

if TYPE_CHECKING:
    import typer

__all__ = ["ExitCode", "build_app", "explanation", "main"]

MAX_LETTERS = 800
"""The longest line of an error: a name or a value in it may be as long as a file."""
EPILOG = """\
Start with:  setminus demo,  or:  setminus fit people.csv --label income --ignore sex --out model.skops

Exit codes: 0 success. 1 the gap is above audit --fail-above, monitor found a drift or a gap above its limit, or \
adapt advises against its model. \
2 the input or the options must be changed. \
3 no result: the gap is undefined, or setminus itself failed. 130 interrupted."""


class ExitCode(IntEnum):
    """What the exit code of a command means."""

    DONE = 0
    GAP_TOO_LARGE = 1
    """The gap is above ``audit --fail-above``, or not certified by ``--certify``."""
    NOT_RECOMMENDED = 1
    """``adapt`` advises against the model that it wrote."""
    DRIFTED = 1
    """``monitor`` found a drift or a gap above its limit; nothing else ends with 1."""
    INPUT = 2
    """The input, the options or the machine (a full disk, no memory) stopped it: the message says what to change."""
    UNJUDGED = 3
    """Could not judge: the gap is undefined, or setminus itself failed."""
    INTERRUPTED = 130


def main() -> None:
    """Run the command; every error ends in two lines and an exit code of `ExitCode`, never in a traceback."""
    try:
        from setminus.commands.terminal import echo, flush, protect_streams
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print('The setminus command needs one more step: pip install "setminus[cli]"', file=sys.stderr)  # noqa: T201
        sys.exit(2)
    protect_streams()
    code: int | str | None = 0
    try:
        try:
            build_app()()
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


@functools.cache
def build_app() -> typer.Typer:
    """All commands; their modules load nothing heavy before one is called, so that --help answers at once."""
    from importlib.metadata import entry_points

    import typer

    from setminus.commands.adapt import adapt
    from setminus.commands.apply import apply
    from setminus.commands.audit import audit
    from setminus.commands.data import data_app
    from setminus.commands.demo import demo
    from setminus.commands.export import export
    from setminus.commands.fit import fit
    from setminus.commands.info import info
    from setminus.commands.monitor import monitor
    from setminus.commands.report import report
    from setminus.commands.terminal import CommandGroup
    from setminus.commands.transfer import transfer_app

    app = typer.Typer(
        cls=CommandGroup,
        help="Train classifiers that ignore what they must not use, such as sex.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=EPILOG,
    )
    for command in (demo, fit, apply, audit, monitor, info, report, export, adapt):
        app.command(no_args_is_help=command is not demo)(command)
    app.add_typer(transfer_app, name="transfer")
    app.add_typer(data_app, name="data")
    others = {point.name: point for point in entry_points(group="setminus.commands")}
    if "reproduce" in others:
        app.command(no_args_is_help=True)(others["reproduce"].load())
    else:
        # whatever options were typed, the answer is the same
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command("reproduce", context_settings=anything)(_reproduce)

    def show_version(wanted: bool) -> None:
        if wanted:
            import setminus

            typer.echo(f"setminus {setminus.__version__}")
            raise typer.Exit

    for part in (app, transfer_app, data_app):
        for registered in part.registered_commands:
            registered.help = _paragraphs(registered.callback.__doc__ or "")
    wanted = typer.Option(False, "--version", callback=show_version, is_eager=True, help="Print the version and exit.")

    @app.callback()
    def setminus_command(version: bool = wanted) -> None:
        """Options that every command shares."""

    return app


def _paragraphs(docstring: str) -> str:
    """A docstring whose lines are joined to paragraphs, so that any width of the terminal can wrap them."""
    return re.sub(r"(?<!\n)\n(?!\n|Example: )", " ", inspect.cleandoc(docstring))


def _reproduce() -> None:
    """Measure the paper's figures, tables and claims again (needs the package setminus-paper)."""
    raise UserError(
        "setminus reproduce is part of the package setminus-paper, which is not installed",
        do="install it from the folder paper of the repository: pip install ./paper",
    )


def explanation(error: Exception) -> tuple[ExitCode, str, str]:
    """The exit code and the two lines of an error.

    Examples
    --------
    >>> print(*explanation(UserError("the file is empty", do="give one with rows."))[1:])
    Error: the file is empty. Give one with rows.
    >>> explanation(KeyError("x"))[0].name
    'UNJUDGED'
    """
    code = ExitCode.INPUT
    match error:
        case UserError() | MissingExtraError():
            wrong, remedy = error.lines
        case OSError(errno=int(), strerror=str()):
            wrong = f"{error.filename or 'the output'}: {error.strerror}."
            remedy = "Choose a file or folder that you may use, on a disk with room."
        case MemoryError():
            wrong, remedy = "the memory of this machine is not enough.", "Give fewer rows, or smaller pictures."
        case ValueError() | FileNotFoundError() | TypeError():
            # of another library: its own words, of which the first line says what is wrong
            wrong = (str(error).strip() or type(error).__name__).splitlines()[0]
            remedy = "Change the input or the options, and try again; SETMINUS_TRACEBACK=1 shows where it happened."
        case _:
            code = ExitCode.UNJUDGED
            wrong = f"setminus failed with {type(error).__name__}: {error}"
            remedy = "Nothing was judged. Please report this; with SETMINUS_TRACEBACK=1 it shows where it happened."
    return code, _short(f"Error: {wrong}"), _short(remedy)


def _short(line: str) -> str:
    """A line without its middle where a value in it fills the screen."""
    return line if len(line) <= MAX_LETTERS else f"{line[: MAX_LETTERS // 2]} ... {line[-MAX_LETTERS // 2 :]}"
