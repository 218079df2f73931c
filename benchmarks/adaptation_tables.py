"""Table 3 beside the paper's, as a part of a page, from records alone."""

from __future__ import annotations

from typing import Any

from setminus_paper.report.adaptation_commands import repeat_commands
from setminus_paper.report.adaptation_estimates import ABOUT_DISTANCES, distance_table
from setminus_paper.report.adaptation_rows import (
    PAPER_SHIFT,
    RULES,
    Pair,
    Row,
    difference,
    pairs_of,
    spread,
    usual_seeds,
)
from setminus_paper.report.adaptation_standing import (
    ABOUT_GAINS,
    gain_tables,
    gains_by_shift,
    growth,
    order_of_rows,
    points,
    verdicts,
)

TITLE = "Table 3: adaptation between image sets whose classes come in another mix"

HEAD = """\
## Domain adaptation under label shift

Accuracy on the target's test images in percent, mean ± standard deviation over the seeds. The evaluation that counts is
picked without any label of the target, by the mutual information between an image and its predicted class, of those
after the domains met; beside it stands `test_oracle`, the best of all by the target's labels, which is how the paper
picked. Less VADA: the paired difference over the same seeds in points, with the 95 % interval of its mean where there
are several.

All pairs, methods and shifts have one size, and seeds that were not scored before it was set; but settings had been
changed after scores on lower seeds, and the test images are the same:
[how the settings of table 3 came about](how-table-3-was-set.md), with all that was measured before. Networks are small,
and so are most image sets here, parts of the original ones: below each pair stands how many images it has.
"""

COLUMNS = (
    "| row | accuracy, % | less VADA | `test_oracle`, % | paper, `test_oracle` | seeds | minutes |\n"
    "|---|---|---|---|---|---|---|"
)


BRIEF = {
    "source_only": "Source-Only",
    "dann": "DANN",
    "adda": "ADDA",
    "cycada": "CyCADA",
    "vada": "VADA",
    "vada_iw": "VADA + IW",
}
"""The rows of rivals that the README shows, and what it calls them."""

MARKS = "<!-- table 3 -->\n", "<!-- end of table 3 -->\n"


def brief(records: list[dict[str, Any]]) -> str:
    """The pairs with several seeds, for the README; nothing where there are none."""
    measured = pairs_of(records)
    pairs = [pair for pair in measured if pair.shift == PAPER_SHIFT and pair.repeated]
    if not pairs:
        return ""
    usual = usual_seeds(pairs)
    more = "".join(f", {_seeds(pair)} on {_in_words(pair)}" for pair in pairs if pair.n_seeds > usual)
    lines = [
        f"The paper's table 3, with small networks at its shift of 70/30, {usual} seeds{more}: accuracy on the "
        "target's test images in percent, mean ± standard deviation; evaluation and estimate are picked "
        "without target labels:",
        "",
        f"| | {' | '.join(map(_in_words, pairs))} |",
        f"|---{'|---' * len(pairs)}|",
    ]
    for method, label in BRIEF.items():
        cells = [spread(pair.rows[method]) if method in pair.rows else "" for pair in pairs]
        lines += [f"| {label} | {' | '.join(cells)} |"] if any(cells) else []
    lines += [
        f"| VADA + w_x \\ w_1 | {' | '.join(spread(pair.ours) if pair.ours else '' for pair in pairs)} |",
        f"| w_x \\ w_1 less VADA (95 % interval) | {' | '.join(map(_gain, pairs))} |",
        f"| the same in the paper, by `test_oracle` | {' | '.join(map(_paper_gain, pairs))} |",
        "",
    ]
    told = [*verdicts(pairs, RULES[0]), *(growth(name, gains) for name, gains in gains_by_shift(measured).items())]
    return "\n".join([*lines, _plain(" ".join(told)), ""])


def _seeds(pair: Pair) -> str:
    """How many it has, and which rows of the README have fewer."""
    fewer: dict[int, list[str]] = {}
    for method, label in BRIEF.items():
        if method in pair.rows and len(pair.rows[method].metrics) < pair.n_seeds:
            fewer.setdefault(len(pair.rows[method].metrics), []).append(label)
    told = "; ".join(f"{count} of {', '.join(labels)}" for count, labels in sorted(fewer.items()))
    return f"{pair.n_seeds}" + (f" ({told})" if told else "")


def _in_words(pair: Pair) -> str:
    return pair.name.replace("-", " to ")


def _gain(pair: Pair) -> str:
    vada = pair.rows.get("vada")
    found = difference(pair.ours, vada) if pair.ours and vada else None
    return "" if found is None else points(found)


def _paper_gain(pair: Pair) -> str:
    ours, vada = (row.paper if row else None for row in (pair.ours, pair.rows.get("vada")))
    return "" if ours is None or vada is None else f"{100 * (ours - vada):+.1f}"


def table(records: list[dict[str, Any]]) -> str:
    """A table for each pair, the words that follow from them, and the gain by shift."""
    measured = pairs_of(records)
    pairs = [pair for pair in measured if pair.shift == PAPER_SHIFT]
    lines = [f"### {TITLE}", "", *(f"- {_plain(text)}" for text in verdicts(pairs, RULES[0])), ""]
    for pair in pairs:
        lines += [f"#### {pair.name}", ""]
        lines += [f"Mind: {pair.other_source}.", ""] if pair.other_source else []
        lines += [f"Images: {pair.images}.", ""] if pair.images else []
        lines += [COLUMNS, *(_row(row, pair, records) for row in pair.rows.values()), ""]
        told, turned = order_of_rows(pair, RULES[0])
        lines += [f"{told}.", "", *(f"- {_plain(text)}" for text in turned), ""] if told else []
    heads, rows = distance_table(measured)
    if rows:
        lines += ["#### How far the estimates of the target's class frequencies are from the truth", ""]
        lines += [ABOUT_DISTANCES, "", *_markdown("pair", heads, rows), ""]
    by_shift = gains_by_shift(measured)
    if by_shift:
        lines += ["#### The gain by the shift", "", *(growth(name, gains) for name, gains in by_shift.items()), ""]
        lines += [ABOUT_GAINS, ""]
    for name, heads, rows in gain_tables(measured):
        lines += [*_markdown(name, heads, rows), ""]
    return "\n".join([*lines, "\n\n".join(f"`{command}`" for command in repeat_commands(records)), ""])


def _row(row: Row, pair: Pair, records: list[dict[str, Any]]) -> str:
    vada = pair.rows.get("vada")
    less = difference(row, vada) if vada is not None and vada is not row else None
    seconds = [
        one["seconds"]
        for one in records
        if (one["config"]["pair"], one["config"]["shift"], one["config"]["method"])
        == (pair.name, pair.shift, row.method)
    ]
    cells = [
        _plain(row.label) + (f": {row.picked}" if row.picked else ""),
        spread(row),
        "" if less is None else points(less),
        spread(row, "test_oracle"),
        "" if row.paper is None else f"{100 * row.paper:.1f}",
        str(len(row.metrics)),
        f"{sum(seconds) / len(seconds) / 60:.1f}" if seconds else "",
    ]
    return f"| {' | '.join(cells)} |"


def _markdown(corner: str, heads: list[str], rows: list[tuple[str, list[str]]]) -> list[str]:
    return [
        f"| {corner} | {' | '.join(heads)} |",
        f"|{'---|' * (1 + len(heads))}",
        *(f"| {_plain(name)} | {' | '.join(cells)} |" for name, cells in rows),
    ]


def _plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return text.replace("|", "\\|")
