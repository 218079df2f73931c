"""Records to one html file that needs nothing else: no server, no network."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from setminus.files import atomic_write
from setminus.report.adapted_table import adapted_table_section
from setminus.report.audit import audit_section
from setminus.report.domain_adaptation import domain_adaptation_section
from setminus.report.errors import RecordError
from setminus.report.fairness import fairness_section
from setminus.report.fairness_tables import fairness_tables_section
from setminus.report.laboratory.section import laboratory_section, made_by, same_experiment
from setminus.report.style_transfer import style_transfer_section
from setminus.report.translation import translation_section

__all__ = ["EXPERIMENTS", "build_page", "write_page"]

SECTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "adapted_table": adapted_table_section,
    "audit": audit_section,
    "fairness": fairness_section,
    "translation": translation_section,
}
EXPERIMENTS: dict[str, Callable[[list[dict[str, Any]]], dict[str, Any]]] = {
    "domain_adaptation": domain_adaptation_section,
    "fairness_tables": fairness_tables_section,
    "laboratory": laboratory_section,
    "style_transfer": style_transfer_section,
}
"""Jobs whose records make one section for each experiment, not for each record."""


def build_page(records: Sequence[dict[str, Any]]) -> str:
    """The page as text: one section for each record, or for all of an experiment, in the given order.

    Parameters
    ----------
    records : sequence of dict
        Each with a `job` that has a section here.

    Returns
    -------
    str
        Html with style, script and figures inside; every text that comes from a record is escaped.
    """
    if not records:
        raise RecordError("no records came: a page needs at least one, for example the last of `setminus demo`.")
    unknown = sorted({str(record.get("job")) for record in records} - {*SECTIONS, *EXPERIMENTS})
    if unknown:
        known = ", ".join(sorted([*SECTIONS, *EXPERIMENTS]))
        raise RecordError(f"no section shows the job {', '.join(unknown)}: the page knows {known}.")
    groups = _together(records)
    sections = [{"id": number, "brief": False, **_section(group)} for number, group in enumerate(groups)]
    figures = {f"{section['id']}-{name}": figure for section in sections for name, figure in section["figures"].items()}
    template = _environment().get_template("page.html.j2")
    page: str = template.render(
        records=[_made_by(group) for group in groups],
        sections=sections,
        figures_json=_script_safe(json.dumps(figures, allow_nan=False)),
        plotly_js=_plotly_js(),
    )
    return page


def write_page(path: str | os.PathLike[str], records: Sequence[dict[str, Any]]) -> Path:
    """Write the page of `build_page` to a file, whose folder is made where it does not exist.

    Parameters
    ----------
    path : path
    records : sequence of dict

    Returns
    -------
    Path
        Where the page is.
    """
    page = build_page(records)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(target) as partial:
        # a name of the disk may be no UTF-8
        partial.write_text(page, encoding="utf-8", errors="backslashreplace")
    return target


def _together(records: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The records of each section."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for number, record in enumerate(records):
        groups.setdefault(same_experiment(record) if record["job"] in EXPERIMENTS else number, []).append(record)
    return list(groups.values())


def _section(group: list[dict[str, Any]]) -> dict[str, Any]:
    job = group[0]["job"]
    return EXPERIMENTS[job](group) if job in EXPERIMENTS else SECTIONS[job](group[0])


def _made_by(group: list[dict[str, Any]]) -> dict[str, Any]:
    first = group[0]
    return made_by(group) if first["job"] in EXPERIMENTS else {**first, "commands": [first["command"]]}


def _environment() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise ImportError('the page needs jinja2 and plotly: pip install "setminus[cli]"') from error
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("setminus.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["percent"] = lambda share: "n/a" if share is None else f"{100 * share:.1f} %"
    # adding 0 makes a zero of minus zero
    environment.filters["decimals"] = lambda value: "n/a" if value is None else f"{round(value, 3) + 0.0:.3f}"
    environment.filters["thousands"] = lambda count: f"{count:,}"
    environment.filters["sentence"] = lambda text: text[:1].upper() + text[1:]
    return environment


def _plotly_js() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as error:
        raise ImportError('the page needs jinja2 and plotly: pip install "setminus[cli]"') from error
    script: str = get_plotlyjs()
    return script


def _script_safe(text: str) -> str:
    """JSON that cannot end the script element around it."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
