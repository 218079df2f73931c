"""The prose about the measurements: Markdown templates in this folder, filled with numbers from records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

__all__ = ["PAGES", "markdown_table", "rebuild", "render"]

PAGES = ("setminus_paper.claims.page", "setminus_paper.report.tables_page")
"""The modules that make pages of the documentation from records.

Such a module has `RECORDS`, the names of the experiments that its pages show, and ``build(results, docs)``, which
writes the pages and their pictures to the folder `docs` from the files ``results/NAME/records.jsonl`` and returns their
paths. It reads records only: nothing is measured.
"""


def rebuild(names: Iterable[str], results: Path, docs: Path) -> list[Path]:
    """Write the pages that show some of these experiments, with their pictures, from ``results/NAME/records.jsonl``."""
    wanted = {*names}
    modules = [import_module(module) for module in PAGES]
    return [path for module in modules if wanted & {*module.RECORDS} for path in module.build(results, docs)]


def render(template: str | Path, **values: Any) -> str:
    """Fill a template of this folder, such as ``laboratory.md.j2``, or at a path; a missing value is an error.

    Besides jinja2's own filters a template has ``number`` (``{{ accuracy | number(".1%") }}``) and ``table``, which is
    `markdown_table`.
    """
    path = Path(__file__).parent / template
    return environment(path.parent).get_template(path.name).render(values).rstrip("\n") + "\n"


def environment(folder: Path) -> jinja2.Environment:
    """Where templates are found, and the filters that they have."""
    # Markdown, not HTML: nothing in it comes from a user
    made = jinja2.Environment(  # noqa: S701
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["number"] = format
    made.filters["table"] = markdown_table
    return made


def markdown_table(rows: pd.DataFrame | Iterable[Sequence[Any]], heads: Sequence[str] | Mapping[str, str]) -> str:
    r"""A Markdown table of cells as they are to be shown; None and NaN are empty, ``|`` and ``\`` are escaped.

    `heads` are the headings of the columns; of a data frame a dictionary also chooses its columns.

    Examples
    --------
    >>> print(markdown_table([("I(z; y | z1)", 0.25), ("rows", None)], ("quantity", "value")))
    | quantity | value |
    |---|---|
    | I(z; y \| z1) | 0.25 |
    | rows |  |
    >>> print(markdown_table(pd.DataFrame({"method": ["vada"], "seeds": [3]}), {"seeds": "number of seeds"}))
    | number of seeds |
    |---|
    | 3 |
    """
    if isinstance(rows, pd.DataFrame):
        chosen = rows[[*heads]] if isinstance(heads, Mapping) else rows
        rows = chosen.astype(object).itertuples(index=False)
    names = [*heads.values()] if isinstance(heads, Mapping) else [*heads]
    lines = [names, *([_cell(value) for value in row] for row in rows)]
    head, *body = (f"| {' | '.join(cells)} |" for cells in lines)
    return "\n".join([head, "|" + "---|" * len(names), *body])


def _cell(value: Any) -> str:
    # NaN is the one number that is not itself
    text = "" if value is None or value != value else str(value)
    return text.replace("\\", "\\\\").replace("|", "\\|")
