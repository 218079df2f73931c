"""The pages ``docs/tables/*.md``: every table of the paper beside ours, from records alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from setminus.files import atomic_write
from setminus.records import read_records
from setminus_paper.pages import markdown_table, render
from setminus_paper.report import domain_adaptation as adaptation
from setminus_paper.report import fairness_tables as fairness
from setminus_paper.report import style_transfer as transfer
from setminus_paper.report.domain_adaptation import CHOSEN, ESTIMATES, PAPER_SHIFT, RULES
from setminus_paper.reproduce import draw_picture
from setminus_paper.tables import by_scale

__all__ = ["RECORDS", "build", "write"]

RECORDS = ("table1", "table2", "table6", "table3", "table4", "table5", "table5_split")

Tables = Mapping[str, Sequence[dict[str, Any]]]


def build(results: Path, docs: Path) -> list[Path]:
    """Write the pages, and the picture of table 3, from the records in ``results/NAME/records.jsonl``."""
    tables = read_tables(results)
    (docs / "tables").mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in write(tables).items():
        written.append(docs / "tables" / f"{name}.md")
        with atomic_write(written[-1]) as partial:
            partial.write_text(text, encoding="utf-8")
    picture = docs / "table3.png"
    drawn = "table3" in tables and draw_picture("table3", tables["table3"], picture)
    return [*written, picture] if drawn else written


def read_tables(results: Path) -> dict[str, list[dict[str, Any]]]:
    """The records of each table that has any."""
    files = {name: results / name / "records.jsonl" for name in RECORDS}
    return {name: read_records(path) for name, path in files.items() if path.exists()}


def write(tables: Tables) -> dict[str, str]:
    """The Markdown of each page that has records, by its name."""
    shown = {
        "transfer": {
            name: {scale: _transfer(own) for scale, own in by_scale(tables[name]).items()}
            for name in RECORDS[:3]
            if name in tables
        },
        "adaptation": {scale: _adaptation(own) for scale, own in by_scale(tables.get("table3", ())).items()},
        "fairness": {name: _fairness(tables[name]) for name in RECORDS[4:] if name in tables},
    }
    return {name: render(f"table_{name}.md.j2", **{name: own}) for name, own in shown.items() if own}


def _transfer(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    rows = transfer.rows_of(records)
    scores = transfer.scores_of(transfer.frame_of(records))
    heads = ["row"]
    for score in scores:
        heads += [transfer.SCORES[score], "paper"] if score in transfer.PUBLISHED else [transfer.SCORES[score]]
    lines = []
    for _, row in rows.iterrows():
        cells = [row.label]
        for score in scores:
            cells.append(transfer.text(score, row[score], row[f"{score}.std"]))
            cells += [transfer.paper_text(row, score)] if score in transfer.PUBLISHED else []
        steps = " and ".join(f"{one:,}" for one in row.steps)
        lines.append([*cells, row.seeds, steps, f"{row.minutes:.0f}"])
    # the shortest command names no part of the table
    command = min((one["command"] for one in reversed(records)), key=len)
    return {
        "table": markdown_table(lines, [*heads, "seeds", "steps", "minutes"]),
        "gains": [[one["score"], one["here"], one["paper"]] for one in transfer.gains(rows)],
        "notes": transfer.notes(records),
        "command": command,
    }


def _adaptation(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    frame = adaptation.frame_of(records)
    rows = adaptation.pair_rows(frame).xs(PAPER_SHIFT, level="shift")
    tables = {}
    for pair, own in rows.groupby(level="pair", sort=False):
        tables[pair] = [
            [
                row.label + (f": {row.picked}" if row.picked else ""),
                row[RULES[0]],
                row[f"{RULES[0]}.vada"],
                row[RULES[1]],
                row.paper_text,
                row.seeds,
                "" if method in (*ESTIMATES, CHOSEN) and row.minutes != row.minutes else f"{row.minutes:.1f}",
            ]
            for (_, method), row in own.iterrows()
        ]
    gains = adaptation.gain_rows(frame)
    return {
        "gains": gains[
            [
                *("pair", "seeds", "picked", "ours.vada", "paper", "ours.source_only"),
                *("papers.vada", "papers.source_only", "as_paper"),
            ]
        ].values.tolist(),
        "images": adaptation.images(frame),
        "tables": tables,
        "reversed": [[*one.values()] for one in adaptation.reversed_rows(frame)],
        "distances": adaptation.distances(frame),
        "shifts": adaptation.shift_rows(frame),
        "commands": adaptation.commands(records),
    }


def _fairness(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {"tables": {}, "order": {}}
    for rule in fairness.RULES:
        rows = fairness.rows_of(records, rule)
        lines = []
        for kind, title in fairness.KINDS.items():
            some = rows[rows.kind == kind]
            lines += [[f"**{title}**", *[""] * 10]] if len(some) else []
            for _, row in some.iterrows():
                cells = [row.label]
                for metric in fairness.METRICS:
                    cell = fairness.cells(row, metric)
                    cells += [cell["text"] + (f" ({cell['range']})" if cell["range"] else ""), cell["paper"]]
                needs = "yes" if row.needs_group else "no"
                lines.append([*cells, f"{row.auc:.3f}", needs, row.seeds, f"{row.seconds:.1f}"])
        made["tables"][rule] = lines
        made["order"][rule] = [
            [one["metric"], f"{one['inside']} of {one['numbers']}", *(one[key] for key in ORDER_KEYS)]
            for one in fairness.order(records, rule)
        ]
    made["comparison"] = [[*one.values()] for one in fairness.comparison(records)]
    return made


ORDER_KEYS = ("off", "pairs", "same", "unclear", "reversed")
