"""The reproduction is tested by its command, and on one page with the library's records."""

from tests.commands.conftest import command
from tests.report.conftest import record

__all__ = ["command", "record"]
