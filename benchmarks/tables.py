"""The comparison as a page, from its records alone: a table, a picture, and a sentence for each peer.

The paper's tables are written beside it, see `paper_tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from setminus_paper.figures import draw_picture

from benchmarks import adapter_tables, paper_tables
from benchmarks.picture import draw
from benchmarks.points import OURS, Point, lead, points_of
from setminus.records import read_records

PEERS = {
    "Fairlearn ThresholdOptimizer": "randomised thresholds for each group",
    "Fairlearn ThresholdOptimizer, cross-fitted": "the same on out-of-fold scores of all rows",
    "Fairlearn ExponentiatedGradient": "a random mixture of refitted models; the group is not needed to predict",
    "AIF360 EqOdds": "labels flipped at random",
    "AIF360 CalibratedEqOdds": "scores of one group replaced at random; it equalizes a weighted error, not both rates",
    "OxonFair, group": "a threshold for each group",
    "OxonFair, group, cross-fitted": "the same on out-of-fold scores of all rows",
    "OxonFair, inferred groups": "a threshold for each group that a model infers",
    "OxonFair, inferred groups, cross-fitted": "the same on out-of-fold scores of all rows",
}
"""What each does, in a few words, in the order of the page."""

HEAD = """\
# Beside other libraries

Made by `python -m benchmarks tables` from `results/peers/records.jsonl` and `results/adapters/records.jsonl`; do not
edit.

## One model, less of a group

UCI Adult, sex not among the features; both files pooled, split 70 to 30 by {seeds} seeds; every method has the same
gradient boosting (scikit-learn's, as it comes) as its base and sees the 30 % only to be measured. Whatever a method
chooses, it chooses on the 70 %: ours out of fold, the others on 30 % of them held out, as their documentation has it;
"cross-fitted" rows give a peer our out-of-fold scores, to tell the method from the better use of the rows. Mean ±
standard deviation over the {seeds} splits. A sampling error of about 0.02 is in every gap of one split: the women who
earn more than 50K are few.

![Accuracy against the summed equalized-odds gap, one line for each method](peers.png)
"""

COLUMNS = (
    "| method | asked gap | accuracy | EO, sum | EO, max | DP | AUC | log-loss | group at predict | same input, same "
    "answer | fit, s |\n|---|---|---|---|---|---|---|---|---|---|---|"
)

NOTES = """\
EO is |difference of true positive rates| + |difference of false positive rates| ("sum"), or the larger one ("max"); DP
the difference of selection rates. The asked gap is the sum out of fold, for ExponentiatedGradient the max on its
training rows. AUC and log-loss are of the probabilities that a method gives: of ThresholdOptimizer and
ExponentiatedGradient that is the chance that its coin says 1, of OxonFair its shifted scores, normalised; clipped to
[1e-6, 1 - 1e-6]. Seconds are on one thread and count every model that the method needs; one fit serves all tolerances
of a method, except for ExponentiatedGradient, which was cut at {iterations} iterations. They are
medians, on a machine with other work.
"""

EXPLANATION = """\
Accuracy of ours less the peer's, at the peer's own summed gap on test, ± standard error over splits; "level" is within
two of them. Ours is the tuned row with the same knowledge of the group when predicting (proxy mixture or group), on the
straight line between its points that no other of its points beats.
"""


BRIEF = (
    ("base", None),
    ("setminus tuned, proxy mixture", 0.02),
    ("setminus tuned, proxy mixture", 0.05),
    ("setminus tuned, group", 0.05),
    ("OxonFair, inferred groups", 0.05),
    ("OxonFair, group", 0.05),
    ("Fairlearn ExponentiatedGradient", 0.02),
    ("Fairlearn ThresholdOptimizer", None),
    ("AIF360 EqOdds", None),
)
"""The rows that the README shows of the many."""

MARKS = "<!-- numbers -->\n", "<!-- end of numbers -->\n"


def run(records: Path, docs: Path, readme: Path | None = None, adapters: Path | None = None) -> None:
    """Write peers.md and peers.png, and a README's numbers between their marks; `adapters` are records, too."""
    found = read_records(records)
    points = points_of(found)
    if readme is not None:
        text = readme.read_text(encoding="utf-8")
        readme.write_text(with_numbers(text, brief(found, points)), encoding="utf-8")
    docs.mkdir(parents=True, exist_ok=True)
    draw(points, docs / "peers.png")
    page = docs / "peers.md"
    adapted = read_records(adapters) if adapters is not None and adapters.exists() else []
    page.write_text(write(found, points, adapted), encoding="utf-8")
    print(f"wrote {page} and {docs / 'peers.png'}")


def run_paper(results: Path, docs: Path, readme: Path | None = None) -> None:
    """Write tables.md, and a README's rows of it between their marks, as far as there are records."""
    found = paper_tables.read_tables(results)
    if not found:
        print(f"no records of the paper's tables in {results}: setminus reproduce fairness makes them")
        return
    if readme is not None:
        text = readme.read_text(encoding="utf-8")
        for part, numbers in paper_tables.briefs(found):
            text = with_numbers(text, numbers, part)
        readme.write_text(text, encoding="utf-8")
    docs.mkdir(parents=True, exist_ok=True)
    (docs / "tables.md").write_text(paper_tables.write(found), encoding="utf-8")
    print(f"wrote {docs / 'tables.md'}")
    if "table3" in found and draw_picture("table3", found["table3"], docs / "table3.png"):
        print(f"wrote {docs / 'table3.png'}")


def with_numbers(text: str, numbers: str, marks: tuple[str, str] = MARKS) -> str:
    """A text with other numbers between its marks."""
    before, rest = text.split(marks[0])
    _, after = rest.split(marks[1])
    return f"{before}{marks[0]}{numbers}{marks[1]}{after}"


def brief(records: list[dict[str, Any]], points: dict[str, list[Point]]) -> str:
    """A few rows of the page, for the README."""
    seeds = len({record["seed"] for record in records})
    shown = [point for name, tolerance in BRIEF for point in points.get(name, []) if point.tolerance == tolerance]
    rows = [
        f"| {point.name}{'' if point.tolerance is None else f', {point.tolerance:g} asked'} | "
        f"{_cell(point, 'accuracy')} | {_cell(point, 'equalized_odds_sum')} | {_cell(point, 'auc') or 'none'} | "
        f"{'yes' if point.needs_attribute else 'no'} | {'no' if point.deterministic else 'yes'} |"
        for point in shown
    ]
    head = (
        f"UCI Adult, gradient boosting that does not see sex, {seeds} random splits, mean ± standard deviation on the "
        "test rows:\n\n| | accuracy | equalized odds gap, sum | AUC | needs sex to predict | decides by chance |\n"
        "|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(rows) + "\n"


def write(records: list[dict[str, Any]], points: dict[str, list[Point]], adapted: Sequence[dict[str, Any]] = ()) -> str:
    """The page; `adapted` are the records of adapters."""
    seeds = len({record["seed"] for record in records})
    rows = [_row(point) for path in points.values() for point in path]
    iterations = next((r["config"]["max_iter"] for r in records if "max_iter" in r["config"]), "no")
    return "\n".join(
        [
            HEAD.format(seeds=seeds),
            COLUMNS,
            *rows,
            "",
            NOTES.format(iterations=iterations),
            "### Where we win and lose",
            "",
            EXPLANATION,
            *(_verdict(name, points) for name in PEERS if name in points),
            "",
            _formula(records, points),
            "",
            *([adapter_tables.section(adapted)] if adapted else []),
        ]
    )


def _row(point: Point) -> str:
    asked = "" if point.tolerance is None else f"{point.tolerance:g}"
    metrics = ("accuracy", "equalized_odds_sum", "equalized_odds_max", "demographic_parity", "auc", "log_loss")
    cells = [_cell(point, metric) for metric in metrics]
    flags = ["yes" if flag else "no" for flag in (point.needs_attribute, point.deterministic)]
    return f"| {point.name} | {asked} | {' | '.join([*cells, *flags])} | {np.median(point.seconds):.1f} |"


def _cell(point: Point, metric: str) -> str:
    values = point.metrics[metric]
    if np.isnan(values).any():
        return ""
    spread = f" ± {values.std(ddof=1):.3f}" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}" if metric != "accuracy" else f"{values.mean():.4f}{spread}"


def _verdict(name: str, points: dict[str, list[Point]]) -> str:
    """One sentence: at which of its points the peer is behind, ahead of or level with ours."""
    path = points[name]
    parts = []
    for point in path:
        ours = lead(point, points)
        number = f"{ours.accuracy:+.4f} ± {ours.error:.4f}"
        if point.gap < ours.smallest_gap:
            parts.append(f"at {point.gap:.3f} beyond our reach, which ends at {ours.smallest_gap:.3f} ({number})")
            continue
        # written so that one seed, which has no error, is level
        far = abs(ours.accuracy) > 2 * ours.error
        word = "level" if not far else "we win" if ours.accuracy > 0 else "we lose"
        parts.append(f"at {point.gap:.3f} {word} ({number})")
    traits = [] if path[0].deterministic else ["answers drawn at random"]
    auc, same = path[-1].metrics["auc"].mean(), lead(path[-1], points).auc
    if auc < same - 0.005:
        traits.append(f"AUC of its probabilities {auc:.3f}, of ours {same:.3f}")
    tail = f"; {', '.join(traits)}" if traits else ""
    return f"- **{name}**, {PEERS[name]}: {'; '.join(parts)}{tail}."


def _formula(records: list[dict[str, Any]], points: dict[str, list[Point]]) -> str:
    """What the page says of the paper's formula as it stands."""
    formula, base = "setminus formula, group", "base"
    if formula not in points or base not in points:
        return ""
    before, after = (points[name][0].metrics for name in (base, formula))
    strengths = [r["metrics"]["strength"] for r in records if r["name"] in OURS.values()]
    low, high = np.quantile(strengths, [0.1, 0.9])
    return (
        "The paper's formula at strength 1 is not the one to use for equalized odds here: it takes the "
        f"demographic-parity gap from {before['demographic_parity'].mean():.3f} to "
        f"{after['demographic_parity'].mean():.3f}, but the summed equalized odds from "
        f"{before['equalized_odds_sum'].mean():.3f} to {after['equalized_odds_sum'].mean():.3f}. It takes out all that "
        "sex says of income, where the base, which does not see sex, has put in a part of it. The strengths that "
        f"tuning chose lie between {low:.2f} and {high:.2f} (10 % and 90 % quantile)."
    )
