"""What to type for the records of table 3, as a whole or in the parts in which they were measured."""

from __future__ import annotations

from collections.abc import Sequence

from setminus_paper.report.adaptation_rows import CHOSEN, PAPER_SHIFT, Record, pairs_of, usual_seeds

__all__ = ["repeat_commands"]


def repeat_commands(records: Sequence[Record]) -> list[str]:
    """The command of all records; where they were measured in parts, that of the table and those of what is beyond it.

    Beyond it are other shifts than the paper's, and pairs or methods with more seeds than are usual.
    """
    commands = {record["command"] for record in records}
    if len(commands) == 1:
        return [*commands]
    pairs = pairs_of(records)
    usual = usual_seeds(pairs)
    beyond: dict[tuple[int, str, tuple[str, ...]], list[float]] = {}
    of_some = set()
    for pair in pairs:
        seeds = {method: len(row.metrics) for method, row in pair.rows.items() if method != CHOSEN}
        for count in sorted({*seeds.values()}):
            if pair.shift == PAPER_SHIFT and count <= usual:
                continue
            part = count, pair.name, tuple(method for method in seeds if seeds[method] == count)
            beyond.setdefault(part, []).append(pair.shift)
            if len({*seeds.values()}) > 1:
                of_some.add(part)
    start = f"setminus reproduce table3 --scale {records[-1]['config']['scale']} --seeds"
    table = [f"{start} {usual}"] if any(pair.shift == PAPER_SHIFT for pair in pairs) else []
    for (count, name, methods), shifts in beyond.items():
        chosen = f" --methods {','.join(methods)}" if (count, name, methods) in of_some else ""
        table.append(f"{start} {count} --pairs {name} --shifts {','.join(map(str, sorted(shifts)))}{chosen}")
    return table
