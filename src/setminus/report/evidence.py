"""A fit or an audit in other forms than the page, from its record: a Markdown card, a PDF, JUnit XML and SARIF."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from setminus.auditing.plot import label_name
from setminus.errors import UserError, printable
from setminus.report.fairness import audit_section, fairness_section
from setminus.report.page import environment

__all__ = ["build_card", "find_browser", "junit", "print_page", "sarif"]

SPECIAL = re.compile(r"([\\`*_{}\[\]|#~])")
"""What Markdown reads as markup inside a line; < and & are escaped as in HTML."""
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
PRINT_SECONDS = 180


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


def junit(record: dict[str, Any]) -> str:
    """The checks of a record of ``setminus audit`` as JUnit XML.

    A gap above its limit is a failure, one that cannot be judged an error.
    """
    found = _checks(record)
    suite = ElementTree.Element(
        "testsuite",
        name="setminus audit",
        tests=str(len(found)),
        failures=str(sum(check["status"] == "failure" for check in found)),
        errors=str(sum(check["status"] == "error" for check in found)),
        time=f"{record['seconds']:.3f}",
    )
    for check in found:
        case = ElementTree.SubElement(suite, "testcase", classname=record["task"]["data"], name=check["name"])
        if check["status"] != "passed":
            ElementTree.SubElement(case, check["status"], message=printable(check["text"]))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def sarif(record: dict[str, Any]) -> dict[str, Any]:
    """The same checks as SARIF 2.1.0: each of kind "pass", or of level "error" at the table's file."""
    found = _checks(record)
    place = {"physicalLocation": {"artifactLocation": {"uri": record["config"]["table"]}}}
    driver = {
        "name": "setminus",
        "version": record["versions"]["setminus"],
        "rules": [{"id": check["id"], "shortDescription": {"text": check["name"]}} for check in found],
    }
    results = [
        {
            "ruleId": check["id"],
            "kind": {"passed": "pass", "failure": "fail", "error": "open"}[check["status"]],
            "level": "error" if check["status"] == "failure" else "none",
            "message": {"text": printable(check["text"])},
            "locations": [place],
        }
        for check in found
    ]
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _checks(record: dict[str, Any]) -> list[dict[str, str]]:
    """The limit and the certificate, where they were asked for: name, status and what was measured."""
    limit, audit = record.get("limit"), record["metrics"]["models"][0]["audit"]
    found = []
    if limit is not None:
        status = "passed" if limit["passed"] else "error" if limit["undefined"] else "failure"
        value = "undefined" if limit["value"] is None else f"{limit['value']:.4f}"
        name = f"{limit['name']} {'gap' if limit['by'] == 'point' else 'bound'} at most {limit['limit']:g}"
        found.append({"id": "gap-limit", "name": name, "status": status, "text": f"{name}: {value}"})
    certificate = audit["certificate"]
    if record["config"]["certify"] is not None and certificate is not None:
        status = "passed" if certificate["certified"] else "error" if certificate["empty"] else "failure"
        name = f"{certificate['constraint']} gap certified to be at most {certificate['tolerance']:g}"
        text = f"{name}: bound {certificate['bound']:.4f} at a confidence of {certificate['confidence']:g}"
        found.append({"id": "gap-certificate", "name": name, "status": status, "text": text})
    return found


def find_browser() -> str:
    """The program of a browser that prints: the one that ``SETMINUS_BROWSER`` names, or the first that is installed.

    Raises
    ------
    UserError
        If there is none.
    """
    named = os.environ.get("SETMINUS_BROWSER")
    for name in (named,) if named else BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    raise UserError(
        f"--pdf needs a browser, and SETMINUS_BROWSER={named} is no program"
        if named
        else "--pdf needs Chromium or Chrome, and none is installed",
        do="install Chromium, name a browser with SETMINUS_BROWSER, or print the page yourself: leave --pdf out.",
    )


def print_page(page: Path, pdf: Path) -> None:
    """Print a page of `write_page` to a PDF file.

    Parameters
    ----------
    page : Path
        The HTML file. It loads nothing from elsewhere.
    pdf : Path
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="setminus-", ignore_cleanup_errors=True) as profile:
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={profile}",
            # the figures are drawn by a script
            "--virtual-time-budget=30000",
            "--no-pdf-header-footer",
            f"--print-to-pdf={pdf.absolute()}",
            page.absolute().as_uri(),
        ]
        # the sandbox refuses to run as root, as in most containers; the page is ours and loads nothing
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")
        try:
            done = subprocess.run(command, capture_output=True, timeout=PRINT_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise UserError(
                f"{Path(browser).name} did not print the page within {PRINT_SECONDS} seconds",
                do="try again, or print the page yourself: leave --pdf out.",
            ) from error
    if done.returncode or not pdf.is_file() or not pdf.stat().st_size:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise UserError(
            f"{Path(browser).name} could not print the page: {last[0]}",
            do="print the page yourself: leave --pdf out.",
        )
