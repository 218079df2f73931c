"""The section on table 3: every pair and method beside the paper's, the shift, classes, frequencies and features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from setminus.charts.chart import Chart, kind_colours
from setminus.charts.vega import Figure, figures
from setminus.report.page import same_experiment
from setminus_paper.figures import title_of
from setminus_paper.report.adaptation_charts import (
    MANY_CLASSES,
    class_chart,
    feature_charts,
    frequency_charts,
    gain_charts,
    shift_charts,
    signs_of,
)
from setminus_paper.report.adaptation_commands import repeat_commands
from setminus_paper.report.adaptation_estimates import ABOUT_DISTANCES, distance_table
from setminus_paper.report.adaptation_rows import (
    CHOSEN,
    PAPER_SHIFT,
    RULES,
    Pair,
    Record,
    Row,
    difference,
    pairs_of,
    spread,
)
from setminus_paper.report.adaptation_standing import (
    ABOUT_GAINS,
    gain_tables,
    gains_by_shift,
    growth,
    order_of_rows,
    points,
    split,
    verdicts,
)

__all__ = ["ABOUT_RULES", "charts", "domain_adaptation_section", "summary"]

HEADINGS = {
    "information": ("Table", "Every method beside the paper's"),
    "test_oracle": ("Paper's protocol", "The same by the paper's own protocol"),
    "shift": ("Shift", "The more the classes shift"),
    "classes": ("Classes", "Accuracy on each class"),
    "frequencies": ("Frequencies", "The target's class frequencies, estimated"),
    "features": ("Features", "Features, before and after"),
    "repeat": ("Repeat", "Run it again"),
}
ABOUT_RULES = {
    "information": (
        "Rule information: of a run's evaluations after the domains met, that one counts at which its answers on "
        "target images are at once sure and varied (the mutual information of image and predicted class is largest). "
        "No label of the target has a say in it, as none would be there in practice. By the same measure, in the mean "
        "over seeds, the last row chooses one of the estimates of the target's class frequencies for a pair."
    ),
    "test_oracle": (
        "Rule test_oracle: that evaluation counts which is best on the labelled test images of the target, as in the "
        "code behind the paper. Nobody has that choice in practice, and it flatters every row; it is here so that the "
        "paper's numbers are compared like for like. The chosen estimates are those of the table above."
    ),
}
ABOUT_TABLE = (
    "Accuracy on the target's test images in percent, mean ± standard deviation over seeds; below it the difference to "
    "VADA over the same seeds in points, with the 95 % interval of its mean, and the paper's number. Of one seed there "
    "is neither deviation nor interval."
)
ABOUT_ESTIMATES = (
    "The row of pseudo-labels has the paper's own estimate and discriminator: this learns all that tells domains "
    "apart, and a target image counts for its most probable class. In the other rows of estimates, which are ours, it "
    "learns the orthogonal part alone, and a target image counts for each class by its probability."
)
NO_SOURCE_VAT = " Smoothness on the source has weight 0, which saves its passes; in the paper it has 1 on most pairs."
PAPER_SIZE = (
    "The paper has 64 channels (192 for CIFAR and STL), 30 epochs of all images, and 64 of each domain in a step at a "
    "rate of 0.001."
)


def charts(records: Sequence[Record]) -> list[Chart]:
    """What is gained on each pair, and accuracy and gain against the shift where several were measured."""
    pairs = pairs_of(records)
    return [*gain_charts(_as_the_paper(pairs)), *shift_charts(pairs)]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (what, paper, measured): by the selection without target labels, and by the paper's with them."""
    told = []
    for pair in pairs_of(records):
        for row in pair.rows.values():
            paper = "" if row.paper is None else f"{100 * row.paper:.1f}"
            what = f"{pair.name}, {split(pair.shift)}, {row.label}: accuracy, %"
            told.append((what, paper, f"{spread(row)}; test_oracle {spread(row, 'test_oracle')}"))
    return told


def domain_adaptation_section(records: Sequence[Record]) -> dict[str, Any]:
    """What the template ``domain_adaptation.html.j2`` shows of table 3.

    Parameters
    ----------
    records : sequence of dict
        All of one scale, their job "domain_adaptation".

    Returns
    -------
    dict
        Names of the template.
    """
    name, scale = same_experiment(records[0])
    every = pairs_of(records)
    pairs = _as_the_paper(every)
    # those with one seed are in the table only: it is long enough
    close = [pair for pair in pairs if pair.repeated] or pairs
    duration = f"{sum(record['seconds'] for record in records) / 60:.0f} min"
    views = {pair.name: feature_charts(pair) for pair in close}
    parts = {
        "information": gain_charts(pairs),
        "shift": shift_charts(every),
        "classes": [chart for chart in map(class_chart, close) if chart],
        "frequencies": [chart for pair in close for chart in frequency_charts(pair)],
        "features": [chart for some in views.values() for chart in some],
    }
    signs = signs_of(every)
    plots = {part: figures(some, part, signs) for part, some in parts.items()}
    shown = {*RULES, "repeat", *(part for part, some in parts.items() if some)}
    return {
        "template": "domain_adaptation.html.j2",
        "package": "setminus_paper.report",
        "brief": True,
        "headings": {key: names for key, names in HEADINGS.items() if key in shown},
        "task": {"data": f"{name}, {scale} scale" if scale else name},
        "rows": f"{len(pairs)} pair{'s' if len(pairs) > 1 else ''}, {_seeds(*every)}, {duration}",
        "title": f"{title_of(name)}: domain adaptation under label shift",
        "headline": f"The paper's claim: {records[-1].get('claim', '')}",
        "about_table": ABOUT_TABLE,
        "blocks": [_block(rule, pairs) for rule in RULES],
        "notes": _notes(records, pairs),
        "distances": dict(zip(("heads", "rows"), distance_table(every), strict=True), about=ABOUT_DISTANCES),
        "growth": [growth(pair, gains) for pair, gains in gains_by_shift(every).items()],
        "gains": [
            dict(zip(("pair", "heads", "rows"), table, strict=True), about=ABOUT_GAINS) for table in gain_tables(every)
        ],
        "plots": plots,
        "views": [_view(pair, some, plots["features"]) for pair, some in views.items() if some],
        "duration": duration,
        "command": "\n".join(repeat_commands(records)),
        "figures": [plot for some in plots.values() for plot in some],
    }


def _as_the_paper(pairs: Sequence[Pair]) -> list[Pair]:
    return [pair for pair in pairs if pair.shift == PAPER_SHIFT]


def _block(rule: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The tables of a rule, pairs with several seeds in one and the others in the next, and what they say."""
    groups = [[pair for pair in pairs if pair.repeated], [pair for pair in pairs if not pair.repeated]]
    orders = [(pair.name, *order_of_rows(pair, rule)) for pair in pairs]
    return {
        "rule": rule,
        "about": ABOUT_RULES[rule],
        "verdicts": verdicts(pairs, rule),
        "tables": [_table(some, rule) for some in groups if some],
        "orders": [
            {"pair": name, "told": told, "turned": turned, "about": pair.other_source}
            for pair, (name, told, turned) in zip(pairs, orders, strict=True)
            if told
        ],
    }


def _table(pairs: Sequence[Pair], rule: str) -> dict[str, Any]:
    methods = dict.fromkeys(method for pair in pairs for method in pair.rows)
    ordered = [method for method in methods if method != CHOSEN] + [CHOSEN] * (CHOSEN in methods)
    rows = []
    for method in ordered:
        known = [pair.rows[method] for pair in pairs if method in pair.rows]
        cells = [_cell(pair.rows[method], pair, rule) if method in pair.rows else None for pair in pairs]
        rows.append({"method": method, "label": known[0].label, "cells": cells})
    heads = [
        {"name": pair.name, "seeds": _seeds(pair), "images": pair.images, "about": pair.other_source} for pair in pairs
    ]
    return {"heads": heads, "rows": rows}


def _cell(row: Row, pair: Pair, rule: str) -> dict[str, Any]:
    vada = pair.rows.get("vada")
    found = difference(row, vada, rule) if vada and row is not vada else None
    return {
        "pair": pair.name,
        "value": row.mean(rule),
        "text": spread(row, rule),
        "against": "" if found is None else points(found),
        "paper": "" if row.paper is None else f"{100 * row.paper:.1f}",
        "picked": row.picked,
        "seeds": "" if len(row.metrics) == pair.n_seeds else _counted(len(row.metrics)),
    }


def _seeds(*pairs: Pair) -> str:
    """How many the rows of some pairs have."""
    counts = sorted({len(row.metrics) for pair in pairs for row in pair.rows.values()})
    return (f"{counts[0]} to " if len(counts) > 1 else "") + _counted(counts[-1])


def _counted(seeds: int) -> str:
    return f"{seeds} seed{'s' if seeds > 1 else ''}"


def _notes(records: Sequence[Record], pairs: Sequence[Pair]) -> list[str]:
    """On how the runs differ from the paper's."""
    config = records[-1]["config"]
    told = [_size(config)] if config.get("steps") and config.get("most_rows") else []
    least = {"the domain loss": config.get("domain"), "entropy and smoothness on the target": config.get("target")}
    raised = [f"at least {weight:g} for {loss}" for loss, weight in least.items() if weight]
    weights = "The weights of the losses are the paper's, the same for all methods"
    weights += f", but {' and '.join(raised)}: steps are fewer." if raised else "."
    told.append(f"{weights}{NO_SOURCE_VAT if config.get('source_vat') == 0 else ''}")
    told.append(ABOUT_ESTIMATES)
    return [*told, *(f"{pair.name}: {pair.other_source}." for pair in pairs if pair.other_source)]


def _size(config: dict[str, Any]) -> str:
    return (
        f"The network has {config['width']} channels, and is trained for {config['steps']:,} steps on at most "
        f"{config['most_rows']:,} images of each domain before the shift, with {config['batch']} of each in a step at "
        f"a rate of {config['rate']:g}. {PAPER_SIZE}"
    )


def _view(pair: str, drawn: Sequence[Chart], plots: Sequence[Figure]) -> dict[str, Any]:
    """The features of a pair, and the colour of each class where they are few enough to be told apart by it."""
    kinds = drawn[0].kinds if len(drawn[0].kinds) <= MANY_CLASSES else ()
    colours = zip(kinds, kind_colours(len(kinds)), strict=True)
    return {
        "pair": pair,
        "plots": [plot for plot in plots if any(plot.chart is chart for chart in drawn)],
        "legend": [{"name": name, "colour": colour} for name, colour in colours],
        "n_classes": len(drawn[0].kinds),
    }
