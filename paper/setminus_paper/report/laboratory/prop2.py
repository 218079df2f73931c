"""Proposition 2: where the orthogonal and the plain GAN loss lead the generator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from setminus.report.charts.chart import Bars, Chart, Line, Mark

__all__ = ["charts", "summary"]

Record = dict[str, Any]


def charts(records: Sequence[Record]) -> list[Chart]:
    """The way to the minimum on the first model, and what z2 is there."""
    first = {_setting(record): record["metrics"] for record in sorted(records, key=lambda r: r["seed"], reverse=True)}
    assumed = first[0.5, 0.0]
    lines: list[Mark] = [_line(assumed["orthogonal"], "orthogonal loss"), _line(assumed["plain"], "plain loss")]
    others = {_words(*setting): found["orthogonal"] for setting, found in first.items() if found is not assumed}
    lines += [_line(found, f"orthogonal loss, {words}") for words, found in others.items()]
    broken = "; ".join(f"{words}, {found['to_transfer']:.1g}" for words, found in others.items())
    values = [str(value) for value in range(len(assumed["z2"]["P"]))]
    names = {"P": "domain A", "Q": "domain B", "orthogonal": "made, orthogonal loss", "plain": "made, plain loss"}
    return [
        Chart(
            "Distance of what is made from Q(z1) P(z2)",
            "iteration",
            "total variation",
            lines,
            y_scale="log",
            caption=(
                "The paper: the orthogonal loss is least at Q(z1) P(z2) alone. Seen: it ends "
                f"{assumed['orthogonal']['to_transfer']:.1g} from it (worst of all starts), the plain loss "
                f"{assumed['plain']['to_transfer']:.2f}. With an assumption broken: {broken}."
            ),
        ),
        Chart(
            "How often z2 takes each value",
            "value of z2",
            "probability",
            [Bars(values, assumed["z2"][key], name) for key, name in names.items()],
            caption=(
                "The paper: the orthogonal loss keeps z2 as in domain A, the plain one makes it that of domain B. "
                f"Seen: largest differences of {_apart(assumed, 'orthogonal', 'P'):.1g} and "
                f"{_apart(assumed, 'plain', 'Q'):.1g}."
            ),
        ),
    ]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, expected, measured), the measured one the worst over models and starts."""
    rows = []
    for setting in sorted({_setting(record) for record in records}, key=lambda pair: (pair[1], pair[0])):
        found = [record["metrics"] for record in records if _setting(record) == setting]
        words = _words(*setting)
        value = min(m["orthogonal"]["value_exact"] for m in found)
        off = max(abs(m["orthogonal"]["value"] - m["orthogonal"]["value_exact"]) for m in found)
        printed = "-log 2" if math.isclose(value, -math.log(2)) else "-log(1 + p(A) / p(B)), the paper: -log 2"
        rows.append((f"least orthogonal loss, {words}", f"{value:.6f} = {printed}", f"off by {off:.1g}"))
        place = max(m["orthogonal"]["to_transfer"] for m in found)
        expected = "0" if setting[1] == 0 else "> 0: the assumption is broken"
        rows.append((f"its distance from Q(z1) P(z2), {words}", expected, f"{place:.2g}"))
        if setting == (0.5, 0.0):
            plain = max(m["plain"]["to_q"] for m in found)
            rows.append(("plain loss: distance from Q(z1) Q(z2)", "0", f"{plain:.2g}"))
            away = [m["plain"]["to_transfer"] for m in found]
            rows.append(("plain loss: distance from Q(z1) P(z2)", "> 0", f"{min(away):.2f} to {max(away):.2f}"))
    return rows


def _setting(record: Record) -> tuple[float, float]:
    return record["config"]["share_a"], record["config"]["dependence"]


def _words(share: float, dependence: float) -> str:
    domains = "domains alike" if share == 0.5 else f"domain A {share:.0%}"
    return domains if dependence == 0 else "z1 and z2 dependent"


def _apart(metrics: dict[str, Any], loss: str, domain: str) -> float:
    z2 = metrics["z2"]
    return float(max(abs(made - had) for made, had in zip(z2[loss], z2[domain], strict=True)))


def _line(found: dict[str, Any], name: str) -> Line:
    path = found["path"]
    return Line(list(range(len(path))), path, name, markers=False)
