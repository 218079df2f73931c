"""The checks of an audit for other programs: JUnit XML for test reports, SARIF for code scanning."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from setminus.errors import printable

__all__ = ["junit", "sarif"]

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def junit(record: dict[str, Any]) -> str:
    """The checks as JUnit XML: a gap above its limit is a failure, one that cannot be judged an error.

    Parameters
    ----------
    record : dict
        Of ``setminus audit``.

    Returns
    -------
    str
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
    """The checks as SARIF 2.1.0: a result for each, of kind "pass" or with the level "error" at the table's file.

    Parameters
    ----------
    record : dict
        Of ``setminus audit``.

    Returns
    -------
    dict
        Ready for JSON.
    """
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
