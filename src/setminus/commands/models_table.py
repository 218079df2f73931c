"""What `fit` and `demo` print of audited models: before and after side by side, and what the fit ended with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from setminus.commands.terminal import Display
from setminus.records import Record

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["show_models"]

# names short enough for three models in 80 columns
SHOWN = {
    "accuracy": "accuracy",
    "equalized odds, sum": "equalized_odds_sum",
    "equalized odds, max": "equalized_odds_max",
    "demographic parity": "demographic_parity",
}
SHORT = {"TPR": "true_positive_rate", "FPR": "false_positive_rate", "selected": "selection_rate"}
MAX_RATES = 6
"""Rates of more groups are left to the page."""


def show_models(record: Record, display: Display) -> None:
    """The audits of a fairness record side by side, what was chosen, and whether it kept the tolerance."""
    from setminus.auditing.plot import label_name
    from setminus.core.gaps import gap_key
    from setminus.report.fairness import GAPS

    models = record["metrics"]["models"]
    rows: list[list[str | Text]] = [
        [title, *(_interval(model["audit"][key]) for model in models)] for title, key in SHOWN.items()
    ]
    rates = models[0]["audit"]["group_rates"]
    one_label = len(rates) == len({str(rate["group"]) for rate in rates})
    for short, key in SHORT.items():
        for rate in _named(models, rates, key):
            cells = [
                row[key]
                for model in models
                for row in model["audit"]["group_rates"]
                if row["group"] == rate["group"] and row["label"] == rate["label"]
            ]
            of = "" if one_label else f" of {rate['label']}"
            rows.append([f"{short}{of}, {label_name(rate['group'])}", *map(_interval, cells)])
    level = f"{100 * models[0]['audit']['confidence']:g} % intervals"
    heads = (f"{record['task']['rows']['test']:,} test rows, {level}", *(model["title"] for model in models))
    display.table(heads, rows)
    if len(rates) > MAX_RATES:
        display.say("Of many groups, those with the lowest and the highest rates are shown; the page has all.")
    groupings = record["metrics"].get("groupings", [])
    if len(groupings) > 1:
        gap = GAPS[gap_key(record["config"]["constraint"], record["config"]["agg"])]
        display.table(
            (f"{gap} between the groups of", "before", "after"),
            [[one["title"], _interval(one["before"]), _interval(one["after"])] for one in groupings],
        )
    display.say("", *_outcome(record), "")


def _named(models: Sequence[Record], rates: Sequence[Record], key: str) -> list[Record]:
    """The groups whose rates are shown: all, or of many those with the lowest and the highest one of some model."""
    if len(rates) <= MAX_RATES:
        return [*rates]
    ends = []
    for model in models:
        known = [row for row in model["audit"]["group_rates"] if row[key]["value"] is not None]
        ordered = sorted(known, key=lambda row: row[key]["value"])
        ends += [(row["group"], row["label"]) for row in (*ordered[:1], *ordered[-1:])]
    return [rate for rate in rates if (rate["group"], rate["label"]) in ends]


def _interval(interval: dict[str, Any]) -> Text:
    from rich.text import Text

    if interval["value"] is None:
        return Text("n/a")
    return Text.assemble(f"{interval['value']:.3f} ", (f"{interval['low']:.3f}-{interval['high']:.3f}", "dim"))


def _outcome(record: Record) -> list[str]:
    from setminus.core.gaps import gap_key
    from setminus.report.fairness import GAPS
    from setminus.report.page import outcome_text

    frontier, after = record["metrics"]["frontier"], record["metrics"]["models"][-1]["audit"]
    chosen, tolerance = frontier["chosen"], frontier["tolerance"]
    threshold = f", threshold {chosen['threshold']:.2f}" if "threshold" in chosen else ""
    bounded = gap_key(record["config"]["constraint"], record["config"]["agg"])
    gap = after[bounded]["value"]
    measured = "n/a" if gap is None else f"{gap:.3f}"
    kept = gap is not None and gap <= tolerance
    lines = [
        outcome_text(record),
        f"Strength {chosen['strength']:g}{threshold}. The {GAPS[bounded].lower()} is "
        f"{chosen['gap']:.3f} in cross-validation and {measured} on the test rows; the tolerance is {tolerance:g}"
        + ("." if kept else ", which the test rows exceed."),
    ]
    if any(row["selection_rate"]["value"] == 0 for row in after["group_rates"]):
        lines.append(
            "Note: for at least one group, some class is never predicted. Allow a larger gap, or choose another "
            "constraint."
        )
    return [*lines, *(f"Warning: {warning}" for warning in record.get("warnings", []))]
