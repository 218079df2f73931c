"""Proposition 1: what each candidate says about the label, beside what it gives away of z1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setminus.report.charts.chart import Chart, Mark, Points, Rule

__all__ = ["charts", "summary"]

Record = dict[str, Any]

# six signs can be told apart: kinds that make the same point share one
GROUPS = {
    "z2 and its functions": ("z2", "function of z2", "noisy channel of z2"),
    "may see z1, independent of it given y": ("corner", "mixture of corners"),
    "the same, climbed to a maximum": ("climb of I(z; y | z1)", "climb of I(z; y)"),
    "any function or channel of x": ("function of x", "noisy channel of x", "z1"),
    "x itself": ("x",),
}


def charts(records: Sequence[Record]) -> list[Chart]:
    """Both informations about the label against I(z; z1 | y), on the first model."""
    metrics = min(records, key=lambda record: record["seed"])["metrics"]
    beyond, alone = _cloud(metrics, "gain"), _cloud(metrics, "information")
    return [
        Chart(
            "Beyond z1",
            "I(z; z1 | y) in nats",
            "I(z; y | z1) in nats",
            [*beyond, Rule(metrics["gain_z2"], "z2")],
            caption=(
                "The paper: at 0 on the left, z2 is highest. "
                f"Seen: the best of {metrics['n_independent']} candidates there is {metrics['gain_excess']:.1g} above "
                f"z2; of all {metrics['n_candidates']}, {metrics['gain_highest'] - metrics['gain_z2']:.1g} above. x "
                f"itself differs from z2 by {abs(metrics['gain_x'] - metrics['gain_z2']):.1g}: for this information "
                "the constraint chooses among maximisers rather than lowering the maximum."
            ),
        ),
        Chart(
            "On its own",
            "I(z; z1 | y) in nats",
            "I(z; y) in nats",
            [*alone, Rule(metrics["information_z2"], "z2")],
            caption=(
                "Not in the paper: the same without z1 in the condition. x says "
                f"{metrics['information_x'] - metrics['information_z2']:.3g} nats more about the label than z2, at "
                f"{metrics['leak_x']:.3g} nats of I(z; z1 | y). The best independent candidate is "
                f"{metrics['information_excess']:.1g} above z2."
            ),
        ),
    ]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, expected, measured); where models differ, the range over them."""
    found = [record["metrics"] for record in records]
    independent, all_of_them = (sum(m[name] for m in found) for name in ("n_independent", "n_candidates"))
    without = max(abs(m["gain_x"] - m["gain_z2"]) for m in found)
    return [
        ("candidates independent of z1 given y", "", f"{independent} of {all_of_them}"),
        ("I(z2; y | z1), in nats", _range(m["gain_exact"] for m in found), _range(m["gain_z2"] for m in found)),
        ("best independent candidate above z2, I(z; y | z1)", "0", f"{max(m['gain_excess'] for m in found):.1g}"),
        ("corners of the polytope that do look at z1", "", _range(m["corners_that_see_z1"] for m in found)),
        ("climbs that end at z2's value", "", _range(m["climbs_at_maximum"] for m in found)),
        ("x against z2 in I(z; y | z1), without the constraint", "0 (data processing)", f"{without:.1g}"),
        ("best independent candidate above z2, I(z; y)", "0", f"{max(m['information_excess'] for m in found):.1g}"),
        ("x above z2 in I(z; y)", "> 0", _range(m["information_x"] - m["information_z2"] for m in found)),
        ("I(x; z1 | y), what rules x out", "> 0", _range(m["leak_x"] for m in found)),
    ]


def _cloud(metrics: dict[str, Any], name: str) -> list[Mark]:
    clouds: list[Mark] = []
    for group, kinds in GROUPS.items():
        columns = [metrics["candidates"][kind] for kind in kinds]
        x = [abs(value) for column in columns for value in column["leak"]]
        clouds.append(Points(x, [value for column in columns for value in column[name]], group))
    return clouds


def _range(values: Any) -> str:
    every = list(values)
    low, high = f"{min(every):.4g}", f"{max(every):.4g}"
    return low if low == high else f"{low} to {high}"
