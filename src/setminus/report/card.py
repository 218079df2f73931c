"""A fit or an audit as a Markdown model card, from its record alone."""

from __future__ import annotations

import json
import re
from typing import Any

from setminus.auditing.plot import label_name
from setminus.errors import UserError, printable
from setminus.report.fairness import audit_section, fairness_section
from setminus.report.page import environment

__all__ = ["build_card"]

SPECIAL = re.compile(r"([\\`*_{}\[\]|#~])")
"""What Markdown reads as markup inside a line; < and & are escaped as in HTML."""


def build_card(record: dict[str, Any]) -> str:
    """The card as text.

    Parameters
    ----------
    record : dict
        Of `setminus fit` or `setminus audit`.

    Returns
    -------
    str
        Markdown with YAML front matter; every text from a record is escaped.
    """
    sections = {"audit": audit_section, "fairness": fairness_section}
    if record["job"] not in sections:
        raise UserError(f"there is no card of the job {record['job']!r}", expected="a record of fit or audit")
    section = sections[record["job"]](record)
    models = section["models"]
    renderer = environment(finalize=_escaped)
    from markupsafe import Markup

    safe = {
        # JSON is YAML
        "json": lambda value: json.dumps(value),
        "verbatim": lambda text: printable(text),
        "quoted": lambda text: "\n".join(f"> {printable(line)}" for line in _harmless(text).splitlines()),
    }
    # escaped here, each in its own way
    renderer.filters |= {name: (lambda value, one=one: Markup(one(value))) for name, one in safe.items()}  # noqa: S704
    renderer.filters["group"] = label_name
    template = renderer.get_template("card.md.j2")
    fitted = record["job"] == "fairness"
    text: str = template.render(
        section=section,
        models=[models[0], models[-1]] if len(models) > 1 else models,
        fitted=fitted,
        name=record.get("model") or section["title"],
        versions=record["versions"],
        command=record["command"],
    )
    # blocks of a template leave several blank lines
    return re.sub(r"\n{3,}", "\n\n", text).rstrip() + "\n"


def _harmless(notes: str) -> str:
    """A user's Markdown without markup of HTML, and without pictures, which a reader's program would fetch."""
    return notes.replace("<", "&lt;").replace("![", "!\\[")


def _escaped(value: Any) -> Any:
    """A text that Markdown shows as it is."""
    from markupsafe import Markup

    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    text = printable(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return Markup(SPECIAL.sub(r"\\\1", text))  # noqa: S704
