"""The pages ``docs/peers*.md`` and their pictures, from the records of ``peers``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from setminus_paper.pages import markdown_table, render

from benchmarks.fairness_sets import SETS
from benchmarks.frontiers import (
    BASE,
    FLOOR,
    GAP,
    MIN_SPLITS,
    Comparison,
    Point,
    Points,
    comparisons,
    points_of,
    pooled,
    verdict,
)
from benchmarks.frontiers import CERTIFIED as CERTIFICATE
from setminus.charts.chart import Chart, Line
from setminus.charts.picture import draw
from setminus.records import read_records

Record = dict[str, Any]
Compared = dict[str, dict[str, list[Comparison]]]
"""Comparisons by set and peer."""

OURS = {False: "setminus", True: "setminus, group"}
"""The method of ours to compare with, by whether the group is known when predicting."""
CERTIFIED = {False: "setminus, 95 %", True: "setminus, group, 95 %"}
"""The same with a certificate."""
INTERPOLATED = {True: "setminus, group, interpolated"}
"""The same with bands around the thresholds of known groups."""
PEERS = {
    "Fairlearn ExponentiatedGradient": "a random mixture of refitted models",
    "OxonFair, inferred groups": "a threshold for each group that a model infers; at most 4 groups",
    "LinearPost (written here)": "linear in p(u, y given x), by a linear program",
    "Fairlearn ThresholdOptimizer": "random choice between thresholds of each group",
    "error-parity": "the same with a tolerance",
    "AIF360 EqOdds": "labels changed at random; 2 groups",
    "AIF360 CalibratedEqOdds": "scores of one group replaced at random; equalizes a weighted error; 2 groups",
    "OxonFair, group": "a threshold for each group; at most 4 groups",
    "LinearPost (written here), group": "linear in p(u, y given x), by a linear program",
}
"""Each peer in a few words, in the order of the page: first those that do not need the group when predicting."""
LEFT_OUT = ("AIF360 CalibratedEqOdds", "setminus formula", "setminus formula, group")
"""In the tables only: the first is far outside the pictures, the others are not the methods to use."""


def build(results: Path, docs: Path) -> list[Path]:
    """Write the pages, and a picture for each set of development and test."""
    peers = read_records(results / "peers" / "records.jsonl")
    (docs / "peers").mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in write(peers).items():
        written.append(docs / name)
        written[-1].write_text(text, encoding="utf-8")
    for name, points in _by_role(points_of(peers))[0].items():
        written.append(docs / "peers" / f"{name}.png")
        draw(charts(name, points), written[-1], columns=2)
    return written


def write(peers: Sequence[Record]) -> dict[str, str]:
    """The pages as Markdown, by name: the summary, all rows of every set, and the sets that no setting has seen."""
    sets, unseen = _by_role(points_of(peers))
    values = {
        **_values(sets, peers),
        "names": [*sets],
        "by_set": by_set_rows(compared(sets, OURS)),
        "times": time_rows(sets),
        "formula": _formula(sets),
        "iterations": next((r["config"]["max_iter"] for r in peers if "max_iter" in r["config"]), "no"),
        "details": [
            {"name": name, "about": SETS[name].about, "role": SETS[name].role, "rows": [*_rows(points)]}
            for name, points in sets.items()
        ],
    }
    pages = {"peers.md": values, "peers-sets.md": values}
    if unseen:
        pages["peers-unseen.md"] = _values(unseen, peers)
    templates = {name: Path(__file__).parent / f"{name.replace('-', '_')}.j2" for name in pages}
    return {name: render(templates[name], **own) for name, own in pages.items()}


def _values(sets: Mapping[str, Points], peers: Sequence[Record]) -> dict[str, Any]:
    """What two of the pages say of their sets."""
    certified = any(CERTIFIED[False] in points for points in sets.values())
    return {
        "sets": [_set_row(name, points, peers) for name, points in sets.items()],
        "least": MIN_SPLITS,
        "splits": max(len(point.values) for points in sets.values() for path in points.values() for point in path),
        "summary": summary_rows(compared(sets, OURS)),
        "certified": summary_rows(compared(sets, CERTIFIED)) if certified else None,
        "interpolated": summary_rows(compared(sets, INTERPOLATED)),
        "behind": behind_rows(compared(sets, OURS)),
        "promises": promise_rows(sets),
        "tolerances": [f"{t:g}" for t in sorted({r["config"]["tolerance"] for r in peers} - {None})],
    }


def _by_role(sets: Mapping[str, Points]) -> tuple[dict[str, Points], dict[str, Points]]:
    """The sets of development and test, and those that no setting has seen."""
    unseen = {name: points for name, points in sets.items() if SETS[name].role == "unseen"}
    return {name: points for name, points in sets.items() if name not in unseen}, unseen


def readme_table(peers: Sequence[Record]) -> str:
    """The summary of the unseen sets as Markdown, for the README: with bands where the group is known."""
    _, unseen = _by_role(points_of(peers))
    rows = []
    for peer, known, random, _, *counts, mean in summary_rows(compared(unseen, {**OURS, **INTERPOLATED})):
        flags = [word for word, flag in (("group", known), ("random", random)) if flag == "yes"]
        rows.append([peer.removesuffix(", group") + (f" ({', '.join(flags)})" if flags else ""), *counts, mean])
    return markdown_table(rows, ["peer", "ours above", "level", "below", "mean difference, points"])


def compared(sets: Mapping[str, Points], ours: Mapping[bool, str]) -> Compared:
    """The comparisons with each peer on each set that both have on enough splits."""
    found: Compared = {name: {} for name in sets}
    for name, points in sets.items():
        for one in comparisons(points, ours):
            if len(one.difference) >= MIN_SPLITS:
                found[name].setdefault(one.peer.name, []).append(one)
    return found


def summary_rows(compared: Compared) -> list[list[str]]:
    """For each peer, on how many sets ours is above or below it at the same gap."""
    rows = []
    for peer in PEERS:
        found = [own[peer] for own in compared.values() if peer in own]
        if found:
            outcomes = [verdict(pooled(own)) for own in found]
            mean = 100 * np.nanmean([pooled(own).mean() for own in found])
            point = found[0][0].peer
            flags = ["yes" if flag else "no" for flag in (point.needs_attribute, not point.deterministic)]
            counts = [str(outcomes.count(word)) for word in ("above", "level", "below")]
            rows.append([peer, *flags, str(len(found)), *counts, f"{mean:+.2f}"])
    return rows


def by_set_rows(compared: Compared) -> list[list[str]]:
    """For each peer and set, the mean difference in points over the gaps that both reach."""
    rows = []
    for peer in PEERS:
        if any(peer in own for own in compared.values()):
            rows.append([peer, *(_cell(own[peer]) if peer in own else "" for own in compared.values())])
    return rows


def _cell(found: Sequence[Comparison]) -> str:
    difference = pooled(found)
    if difference.empty:
        return "not reached"
    mark = {"above": " above", "below": " **below**", "level": ""}[verdict(difference)]
    return f"{100 * difference.mean():+.1f}{mark}"


def behind_rows(compared: Compared) -> list[list[str]]:
    """Every single gap of a peer where ours is below it, or that ours does not reach."""
    rows = []
    for peer in PEERS:
        for name, own in compared.items():
            for one in own.get(peer, []):
                if one.outcome in ("below", "not reached"):
                    asked = "" if one.peer.tolerance is None else f"{one.peer.tolerance:g}"
                    ahead = f"{100 * one.mean:+.2f} ± {100 * one.error:.2f}"
                    outcome = "below" if one.reached else f"not reached (ours {one.smallest_gap:.3f})"
                    rows.append([name, peer, asked, f"{one.peer.gap:.3f}", ahead, outcome, str(len(one.difference))])
    return rows


def promise_rows(sets: Mapping[str, Points]) -> list[list[str]]:
    """For each method and tolerance, the share of splits of all sets whose gap on test rows is within it.

    A method that certifies its tolerance has a second row, of the splits where it does so.
    """
    kept: dict[str, dict[float, list[bool]]] = {}
    for points in sets.values():
        for point in (point for path in points.values() for point in path):
            if point.tolerance is not None:
                within = point.values[GAP] <= point.tolerance
                kept.setdefault(point.name, {}).setdefault(point.tolerance, []).extend(within)
                if point.values[CERTIFICATE].notna().any():
                    sure = kept.setdefault(f"{point.name}, where certified", {})
                    sure.setdefault(point.tolerance, []).extend(within[point.values[CERTIFICATE] == 1])
    tolerances = sorted({tolerance for own in kept.values() for tolerance in own})
    rows = []
    for name in sorted(kept, key=lambda name: (not name.startswith("setminus"), name)):
        shares = [kept[name].get(tolerance) for tolerance in tolerances]
        rows.append([name, *("" if not own else f"{100 * np.mean(own):.0f} % of {len(own)}" for own in shares)])
    return rows


def time_rows(sets: Mapping[str, Points]) -> list[list[str]]:
    """The median over sets of the seconds of each method, and of their ratio to the base model's."""
    names = dict.fromkeys(name for points in sets.values() for name in points)
    rows = []
    for name in names:
        own = [(points[name][0].seconds, points[BASE][0].seconds) for points in sets.values() if points.get(name)]
        seconds, bases = np.array(own).T
        rows.append([name, f"{np.median(seconds):.1f}", f"{np.median(seconds / bases):.0f}"])
    return rows


def charts(name: str, points: Points) -> list[Chart]:
    """Accuracy against the gap on one set, without and with the group known when predicting."""
    made = []
    for known, title in ((False, "group unknown when predicting"), (True, "group known when predicting")):
        lines = []
        for method, path in points.items():
            if (path[0].needs_attribute == known or method == BASE) and method not in LEFT_OUT:
                errors = [point.values["accuracy"].sem() for point in path]
                label = method + ("" if path[0].deterministic else " *")
                accuracies = [point.accuracy for point in path]
                low, high = ([a + sign * e for a, e in zip(accuracies, errors, strict=True)] for sign in (-1, 1))
                ends = {} if np.isnan(errors).any() else {"low": low, "high": high}
                lines.append(Line([point.gap for point in path], accuracies, label, **ends))
        caption = "Mean over splits; whiskers: standard error. * decides at random."
        made.append(
            Chart(f"{name}: {title}", "equalized-odds gap on test rows", "accuracy on test rows", lines, caption)
        )
    return made


def _set_row(name: str, points: Points, records: Sequence[Record]) -> list[str]:
    groups = next(record["config"]["groups"] for record in records if record["config"]["set"] == name)
    (base,) = points[BASE]
    numbers = [f"{base.accuracy:.3f}", f"{base.gap:.3f}", f"{base.values[FLOOR].mean():.3f}"]
    return [name, SETS[name].about, str(groups), SETS[name].role, *numbers]


def _rows(points: Points) -> Iterator[list[str]]:
    for name in sorted(points, key=lambda name: (name != BASE, not name.startswith("setminus"))):
        for point in points[name]:
            asked = "" if point.tolerance is None else f"{point.tolerance:g}"
            kept = "" if point.kept is None else f"{100 * point.kept:.0f} %"
            metrics = [_spread(point, metric) for metric in ("accuracy", "balanced_accuracy", "selection_rate", GAP)]
            auc = _spread(point, "auc")
            yield [name, asked, *metrics, kept, auc, f"{point.seconds:.1f}", str(len(point.values))]


def _spread(point: Point, metric: str) -> str:
    """Mean ± standard deviation over the splits."""
    values = point.values[metric]
    if values.isna().any():
        return ""
    return f"{values.mean():.3f}" + (f" ± {values.std():.3f}" if len(values) > 1 else "")


def _formula(sets: Mapping[str, Points]) -> dict[str, Any] | None:
    """Mean metrics on Adult of the base model and of the paper's formula at strength 1."""
    adult = sets.get("adult", {})
    names = (BASE, "setminus formula, group")
    if not all(name in adult for name in names):
        return None
    base, formula = (adult[name][0].values.mean().to_dict() for name in names)
    return {"base": base, "formula": formula}
