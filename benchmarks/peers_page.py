"""The page ``docs/peers.md`` and its picture, from the records of ``peers`` and ``adapters`` alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import pandas as pd
from setminus_paper.pages import markdown_table
from setminus_paper.report.adaptation_frame import split, spread
from setminus_paper.tables import mean_spread, paired_difference, to_frame

from setminus.charts.chart import Chart, Line
from setminus.charts.picture import draw
from setminus.records import read_records

Record = dict[str, Any]

OURS = {False: "setminus tuned, proxy mixture", True: "setminus tuned, group"}
"""The row of ours to compare with, by whether the group is needed to predict."""
ADAPTER = "setminus vada_orthogonal"
METRICS = ("accuracy", "equalized_odds_sum", "equalized_odds_max", "demographic_parity", "auc", "log_loss")
ABOUT = {
    "Fairlearn ThresholdOptimizer": "randomised thresholds for each group",
    "Fairlearn ThresholdOptimizer, cross-fitted": "the same on out-of-fold scores of all rows",
    "Fairlearn ExponentiatedGradient": "a random mixture of refitted models",
    "AIF360 EqOdds": "labels flipped at random",
    "AIF360 CalibratedEqOdds": "scores of one group replaced at random; it equalizes a weighted error, not both rates",
    "OxonFair, group": "a threshold for each group",
    "OxonFair, group, cross-fitted": "the same on out-of-fold scores of all rows",
    "OxonFair, inferred groups": "a threshold for each group that a model infers",
    "OxonFair, inferred groups, cross-fitted": "the same on out-of-fold scores of all rows",
}
"""Each peer in a few words, in the order of the page."""
README_ROWS = (
    ("base", None),
    ("setminus tuned, proxy mixture", 0.02),
    ("setminus tuned, proxy mixture", 0.05),
    ("OxonFair, inferred groups", 0.05),
    ("Fairlearn ExponentiatedGradient", 0.02),
    ("Fairlearn ThresholdOptimizer", None),
)
LEFT_OUT = (
    *("AIF360 CalibratedEqOdds", "setminus formula, proxy mixture", "setminus formula, group"),
    *("setminus tuned, proxy score", "setminus importance weights"),
)
"""In the table only: the first is far outside the picture, the others are not the rows to use."""


def build(results: Path, docs: Path) -> list[Path]:
    """Write the page and its picture."""
    peers, adapters = (read_records(results / name / "records.jsonl") for name in ("peers", "adapters"))
    docs.mkdir(parents=True, exist_ok=True)
    page, picture = docs / "peers.md", docs / "peers.png"
    page.write_text(write(peers, adapters), encoding="utf-8")
    draw(charts(points_of(peers)), picture, columns=2)
    return [page, picture]


@dataclass(frozen=True, eq=False)
class Point:
    """A method at one tolerance: `values` has a row per seed and a column per metric."""

    name: str
    tolerance: float | None
    needs_attribute: bool
    deterministic: bool
    values: pd.DataFrame
    seconds: float

    @property
    def gap(self) -> float:
        """The mean summed equalized-odds gap."""
        return float(self.values["equalized_odds_sum"].mean())

    @property
    def accuracy(self) -> float:
        """The mean accuracy."""
        return float(self.values["accuracy"].mean())

    def text(self, metric: str) -> str:
        """Mean ± standard deviation over the splits."""
        values = self.values[metric]
        if values.isna().any():
            return ""
        std = f" ± {values.std():.3f}" if len(values) > 1 else ""
        return f"{values.mean():.4f}{std}" if metric == "accuracy" else f"{values.mean():.3f}{std}"


def points_of(records: Sequence[Record]) -> dict[str, list[Point]]:
    """The points of each method by rising tolerance: the base, ours, and the others in the order of the records.

    A method counts only with every seed that there is, so that all means are over the same splits.
    """
    frame = to_frame(records).drop_duplicates(["name", "tolerance", "seed"], keep="last").sort_values("seed")
    seeds = frame["seed"].nunique()
    points: dict[str, list[Point]] = {}
    order = list(dict.fromkeys(record["name"] for record in records))
    for (name, tolerance), own in frame.groupby(["name", "tolerance"], sort=True, dropna=False):
        if len(own) == seeds:
            asked = None if tolerance is None or np.isnan(tolerance) else float(tolerance)
            flags = bool(own["needs_attribute"].iloc[0]), bool(own["deterministic"].iloc[0])
            values = own.set_index("seed")[[*METRICS]].astype(float)
            points.setdefault(name, []).append(Point(name, asked, *flags, values, float(own["seconds"].median())))
    # the common base, then ours, then the others
    names = sorted(points, key=lambda name: (name != "base", not name.startswith("setminus"), order.index(name)))
    return {name: points[name] for name in names}


@dataclass(frozen=True)
class Comparison:
    """Our accuracy less a peer's at the peer's gap, its standard error, our smallest gap, and our AUC there."""

    accuracy: float
    error: float
    smallest_gap: float
    auc: float

    def outcome(self, gap: float) -> str:
        """Who is ahead, beyond two standard errors."""
        if gap < self.smallest_gap:
            return f"beyond our reach ({self.smallest_gap:.3f})"
        # written so that one seed, which has no error, is level
        clear = abs(self.accuracy) > 2 * self.error
        return "level" if not clear else "we win" if self.accuracy > 0 else "we lose"


def compare(peer: Point, points: dict[str, list[Point]]) -> Comparison:
    """Ours with the same knowledge of the group, on the straight line between its two points around the peer's gap.

    The line runs through the points of ours, the base included, that no other of ours beats in both means.
    """
    path: list[Point] = []
    for point in sorted(points[OURS[peer.needs_attribute]] + points["base"], key=lambda p: (p.gap, -p.accuracy)):
        if not path or point.accuracy > path[-1].accuracy:
            path.append(point)
    gaps = [point.gap for point in path]
    right = int(np.clip(np.searchsorted(gaps, peer.gap), 1, len(path) - 1))
    low, high = path[right - 1], path[right]
    share = float(np.clip((peer.gap - low.gap) / (high.gap - low.gap), 0, 1))
    between = (1 - share) * low.values + share * high.values
    ahead = between["accuracy"] - peer.values["accuracy"]
    mean = float(ahead.mean())
    if 0 < share < 1:
        # on a split where ours has the larger gap it gains by the slope: the noise of the gaps belongs to the error
        slope = (high.accuracy - low.accuracy) / (high.gap - low.gap)
        ahead = ahead - slope * (between["equalized_odds_sum"] - peer.values["equalized_odds_sum"])
    error = float(ahead.std() / np.sqrt(len(ahead))) if len(ahead) > 1 else float("nan")
    return Comparison(mean, error, gaps[0], float(between["auc"].mean()))


def write(peers: Sequence[Record], adapters: Sequence[Record] = ()) -> str:
    """The page as Markdown."""
    points = points_of(peers)
    names = ("setminus formula, group", "base")
    formula, base = (points[name][0].values.mean() if name in points else None for name in names)
    strengths = [record["metrics"]["strength"] for record in peers if record["name"] in OURS.values()]
    here = Path(__file__).parent
    # Markdown, not HTML: nothing in it comes from a user
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(here), undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"table": markdown_table, "number": format}
    values = {
        "seeds": len({record["seed"] for record in peers}),
        "rows": [_row(point) for path in points.values() for point in path],
        "comparisons": comparison_rows(points),
        "iterations": next((r["config"]["max_iter"] for r in peers if "max_iter" in r["config"]), "no"),
        "formula": formula,
        "base": base,
        "strengths": np.quantile(strengths, [0.1, 0.9]).tolist(),
        "adapters": adapter_tables(adapters) if adapters else None,
    }
    return environment.get_template("peers.md.j2").render(values).rstrip("\n") + "\n"


def readme_table(peers: Sequence[Record]) -> str:
    """A few rows of the page as Markdown, for the README."""
    points = points_of(peers)
    rows = [
        [
            point.name + ("" if point.tolerance is None else f", {point.tolerance:g} asked"),
            point.text("accuracy"),
            point.text("equalized_odds_sum"),
            point.text("auc") or "none",
            "yes" if point.needs_attribute else "no",
            "no" if point.deterministic else "yes",
        ]
        for name, tolerance in README_ROWS
        for point in points.get(name, [])
        if point.tolerance == tolerance
    ]
    heads = ["", "accuracy", "equalized odds gap, sum", "AUC", "needs sex", "random"]
    return markdown_table(rows, heads)


def comparison_rows(points: dict[str, list[Point]]) -> list[list[str]]:
    """Each peer at each of its gaps beside ours."""
    rows = []
    for name in (name for name in ABOUT if name in points):
        for point in points[name]:
            found, auc = compare(point, points), point.values["auc"].mean()
            rows.append(
                [
                    name,
                    ABOUT[name],
                    "" if point.tolerance is None else f"{point.tolerance:g}",
                    f"{point.gap:.3f}",
                    f"{found.accuracy:+.4f} ± {found.error:.4f}",
                    found.outcome(point.gap),
                    "" if np.isnan(auc) else f"{auc:.3f}",
                    f"{found.auc:.3f}",
                ]
            )
    return rows


def adapter_tables(records: Sequence[Record]) -> dict[str, Any]:
    """Accuracy of each adapter in each setting, and ours less each of the others over paired seeds."""
    frame = to_frame(records)
    frame["setting"] = frame["pair"].str.replace("-", " to ") + ", " + frame["shift"].map(split)
    order = frame.sort_values(["pair", "shift"], kind="stable")["setting"].drop_duplicates()
    names = sorted(dict.fromkeys(frame["name"]), key=lambda name: not name.startswith("setminus"))
    # a setting that some method lacks would compare means of different settings
    counts = frame.groupby("setting")["name"].nunique()
    settings = [setting for setting in order if counts[setting] == len(names)]
    frame = frame[frame["setting"].isin(settings)]
    spreads = mean_spread(frame, ["name", "setting"], "accuracy")
    spreads["text"] = spread(spreads)
    rows, gains = [], []
    for name in names:
        own, seconds = spreads.loc[name].loc[settings], frame[frame["name"] == name]["seconds"].median()
        rows.append([name, *own["text"], f"{100 * own['mean'].mean():.1f}", f"{seconds:.1f}"])
        # other settings of ours are no rivals
        if not name.startswith(ADAPTER):
            found = paired_difference(frame, "accuracy", "name", ADAPTER, name, by=["setting"]).loc[settings]
            gains.append([name, *map(_outcome, found.to_dict("records"))])
    return {
        "seeds": frame["seed"].nunique(),
        "rows": rows,
        "heads": ["method", *settings, "mean", "seconds"],
        "gains": gains,
        "gain_heads": ["`vada_orthogonal` less", *settings],
        "command": records[-1]["command"],
    }


def charts(points: dict[str, list[Point]]) -> list[Chart]:
    """Accuracy against the gap, without and with the group known when predicting."""
    made = []
    for known, title in ((False, "Group unknown when predicting"), (True, "Group known when predicting")):
        lines = []
        for name, path in points.items():
            if (path[0].needs_attribute == known or name == "base") and name not in LEFT_OUT:
                errors = [point.values["accuracy"].sem() for point in path]
                label = name + ("" if path[0].deterministic else " *")
                accuracies = [point.accuracy for point in path]
                low, high = ([a + sign * e for a, e in zip(accuracies, errors, strict=True)] for sign in (-1, 1))
                ends = {} if np.isnan(errors).any() else {"low": low, "high": high}
                lines.append(Line([point.gap for point in path], accuracies, label, **ends))
        caption = "Mean over splits; whiskers: standard error. * decides at random."
        made.append(Chart(title, "equalized-odds gap on test rows, sum", "accuracy on test rows", lines, caption))
    return made


def _row(point: Point) -> list[str]:
    asked = "" if point.tolerance is None else f"{point.tolerance:g}"
    flags = ["yes" if flag else "no" for flag in (point.needs_attribute, point.deterministic)]
    return [point.name, asked, *map(point.text, METRICS), *flags, f"{point.seconds:.1f}"]


def _outcome(found: dict[str, float]) -> str:
    clear = not found["low"] <= 0 <= found["high"]
    word = "level" if np.isnan(found["low"]) or not clear else "win" if found["difference"] > 0 else "lose"
    return f"{round(100 * found['difference'], 1) + 0.0:+.1f} {word}"
