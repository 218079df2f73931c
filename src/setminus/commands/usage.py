"""What a user typed, and what to type next."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

__all__ = ["typed_command", "usage"]


def typed_command(*left_out: str) -> str:
    """The command of this process, for records, without some of its words."""
    return shlex.join(["setminus", *(word for word in sys.argv[1:] if word not in left_out)])


def usage(model: Path, needs: str = "") -> tuple[str, str]:
    """How to use a model file in Python, and on the command line; `needs` is a remark on its columns."""
    remark = f"  # {needs}" if needs else ""
    python = f'from setminus import load\n\nmodel = load("{model.name}")\nmodel.predict_proba(frame){remark}'
    return python, f"setminus apply {shlex.quote(model.name)} new.csv --out scored.csv"
