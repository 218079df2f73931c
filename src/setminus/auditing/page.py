"""An audit as a piece of html: self-contained, and harmless whatever groups and classes are called."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from setminus.auditing.result import Audit

__all__ = ["audit_html"]

# dark enough for white and light enough for black pages; the word carries the status, the colour repeats it
_COLOUR = {"ok": "#2e7d5b", "warn": "#b26a00", "fail": "#c0392b"}
_STYLE = """
.setminus-audit{font:14px/1.45 system-ui,sans-serif;overflow-x:auto}
.setminus-audit table{border-collapse:collapse;margin:.6em 0}
.setminus-audit th,.setminus-audit td{padding:.2em .8em .2em 0;text-align:left;vertical-align:top;
border-bottom:1px solid rgba(128,128,128,.35);font-variant-numeric:tabular-nums;white-space:nowrap}
.setminus-audit td.words{white-space:normal;max-width:36em}
.setminus-audit th{font-weight:600}
"""


def audit_html(audit: Audit) -> str:
    """The verdict, the numbers, the group table and the findings of an audit."""
    numbers = "".join(f"<tr><th scope='row'>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in audit.headline())
    header, *rows = audit.table()
    findings = "".join(
        f"<tr><td><strong style='color:{_COLOUR[finding.status]}'>{finding.status}</strong></td>"
        f"<td class='words'>{escape(finding.name)}</td><td class='words'>{escape(finding.evidence)}.</td>"
        f"<td class='words'>{escape(finding.advice)}</td></tr>"
        for finding in audit.findings
    )
    return (
        f"<div class='setminus-audit'><style>{_STYLE}</style>"
        f"<p><strong>{escape(audit.verdict)}</strong><br>{audit.n} rows, {len(audit.groups)} groups, "
        f"{len(audit.classes)} classes, {100 * audit.confidence:g} % intervals</p>"
        f"<table><tbody>{numbers}</tbody></table>"
        f"<table><thead>{_row(header, 'th')}</thead>"
        f"<tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>"
        "<table><thead><tr><th>status</th><th>condition</th><th>evidence</th><th>advice</th></tr></thead>"
        f"<tbody>{findings}</tbody></table></div>"
    )


def _row(cells: list[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"
