"""The section on scores that came from elsewhere: a record of an audit to what its template shows."""

from __future__ import annotations

from typing import Any

from setminus.report.lead import lead
from setminus.report.numbers import gap_title
from setminus.report.pieces import audited

__all__ = ["audit_section"]

HEADINGS = {
    "compare": ("Groups", "What the decisions do to the groups"),
    "reliability": ("Probabilities", "Do the probabilities mean what they say?"),
    "scores": ("Scores", "Where the scores of each group lie"),
    "check": ("Findings", "Does the score depend on the group?"),
    "use": ("Use", "What to do next"),
    "table": ("Table", "What was read, and what was done with it"),
}


def audit_section(record: dict[str, Any]) -> dict[str, Any]:
    """What the template ``audit.html.j2`` shows of a record.

    Parameters
    ----------
    record : dict
        Of a run whose job is "audit": `task`, `metrics` with one audited model, and where a limit was set, `limit`.

    Returns
    -------
    dict
        Names of the template; `figures` maps the id of a figure to its plotly dictionary.
    """
    task, models = record["task"], record["metrics"]["models"]
    limit = record.get("limit")
    gap = limit["name"] if limit else "equalized_odds_max"
    usable = record.get("usage") or record.get("usage_command")
    headings = {key: names for key, names in HEADINGS.items() if key != "use" or usable}
    shared = audited(record, models, headings=headings, bounded=limit and gap)
    score = models[0]
    return {
        **shared,
        "template": "audit.html.j2",
        "title": f"Audit of {task['score']}: {task['label']} by {task['ignored']}",
        "rows": f"{task['rows']['test']:,} rows",
        "lead": lead([score["audit"]], gap, shared["drawn"]),
        "score": score,
        "gap": gap,
        "gap_title": gap_title(gap),
        "limit": limit,
    }
