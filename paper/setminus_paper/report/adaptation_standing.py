"""What table 3 says: where the orthogonal discriminator gains, whether more with the shift, and whose order differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from statistics import linear_regression

from setminus_paper.report.adaptation_rows import (
    CHOSEN,
    CONFIDENCE,
    ESTIMATES,
    PAPERS,
    Difference,
    Pair,
    Row,
    difference,
    over_seeds,
)

__all__ = [
    "ABOUT_GAINS",
    "Gain",
    "gain_tables",
    "gains_by_shift",
    "growth",
    "order_of_rows",
    "points",
    "split",
    "trend",
    "verdicts",
]

ABOUT_GAINS = (
    "Less VADA in points, with the 95 % interval of the mean over seeds; the last column has the rise of a line "
    "through all shifts. The first row may have another estimate at each shift, each other its own throughout."
)


@dataclass(frozen=True)
class Gain:
    r"""A row of ``w_x \ w_1`` less VADA, at one shift."""

    shift: float
    own: Row
    vada: Row
    found: Difference

    def by_seed(self) -> dict[int, float]:
        """Of each seed that both rows have."""
        own, vada = self.own.accuracies(), self.vada.accuracies()
        return {seed: own[seed] - vada[seed] for seed in own if seed in vada}


def points(found: Difference) -> str:
    """A difference in points of percent, with its interval where it has one.

    Examples
    --------
    >>> points(Difference(0.0213, -0.004, 0.0466)), points(Difference(-0.01, None, None))
    ('+2.1 (-0.4 to +4.7)', '-1.0')
    """
    ends = "" if found.low is None or found.high is None else f" ({_signed(found.low)} to {_signed(found.high)})"
    return _signed(found.mean) + ends


def split(shift: float) -> str:
    """A shift as the shares of both halves of the classes.

    Examples
    --------
    >>> split(0.85)
    '85/15'
    """
    return f"{100 * shift:.0f}/{100 - 100 * shift:.0f}"


def verdicts(pairs: Sequence[Pair], rule: str) -> list[str]:
    r"""On how many pairs ``w_x \ w_1`` is above VADA and above no adaptation, a sentence for each number of seeds.

    Where the chosen estimate is not the paper's, a second one says the same of the paper's own.

    Parameters
    ----------
    pairs : sequence of Pair
        At the paper's shift.
    rule : str
    """
    told = []
    for repeated, seeds in ((True, "several seeds, by the mean over these"), (False, "one seed each")):
        some = [pair for pair in pairs if pair.repeated == repeated]
        ours = {pair.name: pair.ours for pair in some}
        papers = {pair.name: pair.rows.get(PAPERS) for pair in some}
        above, above_by_the_papers = (
            [_above(some, rows, rival, rule) for rival in ("vada", "source_only")] for rows in (ours, papers)
        )
        if any(above):
            told.append(f"Of the pairs with {seeds}, w_x \\ w_1 is {', and '.join(filter(None, above))}.")
        if any(above_by_the_papers) and any(row and row.picked not in ("", ESTIMATES[PAPERS]) for row in ours.values()):
            found = ", and ".join(filter(None, above_by_the_papers))
            told.append(f"By the paper's own estimate, {ESTIMATES[PAPERS]}, it is {found}.")
    return told


def order_of_rows(pair: Pair, rule: str) -> tuple[str, list[str]]:
    """How many comparisons of two rows come out as in the paper, and a sentence for each that does not.

    The estimates of the target's class frequencies are one row in the paper: the chosen one stands for them.
    """
    rows = [row for row in pair.rows.values() if row.paper is not None]
    if CHOSEN in pair.rows:
        rows = [row for row in rows if row.method not in ESTIMATES]
    count, turned = 0, []
    for upper, lower in permutations(rows, 2):
        found = difference(upper, lower, rule)
        if found is None or not (upper.paper or 0.0) > (lower.paper or 0.0):
            continue
        count += 1
        if found.mean <= 0:
            turned.append(_turned(pair, upper, lower, found))
    if not count:
        return "", []
    return f"{count - len(turned)} of {count} comparisons of two rows come out as in the paper", turned


def gains_by_shift(pairs: Sequence[Pair]) -> dict[str, list[Gain]]:
    r"""Of each pair with several shifts, what the row that stands for ``w_x \ w_1`` gains at each, the smallest first.

    That is the chosen estimate, or the first that was measured at several shifts.
    """
    return {name: by_method[0] for name, by_method in _curves(pairs).items()}


def gain_tables(pairs: Sequence[Pair]) -> list[tuple[str, list[str], list[tuple[str, list[str]]]]]:
    r"""What each estimate gains over VADA by the shift, where it is the same one throughout, beside the chosen one.

    Returns
    -------
    list of (str, list of str, list of (str, list of str))
        Of each pair with several shifts its name, the heads of the columns behind the row's, and the rows. A shift at
        which an estimate was not measured is empty.
    """
    tables = []
    for name, by_method in _curves(pairs).items():
        shifts = sorted({gain.shift for gains in by_method for gain in gains})
        rows = []
        for gains in by_method:
            told = {gain.shift: points(gain.found) for gain in gains}
            rise = trend(gains)
            cells = [*(told.get(shift, "") for shift in shifts), "" if rise is None else points(rise)]
            rows.append((gains[0].own.label, cells))
        tables.append((name, [*map(split, shifts), "rise with every 10 points"], rows))
    return tables


def trend(gains: Sequence[Gain], confidence: float = CONFIDENCE) -> Difference | None:
    """What is gained with every 10 points of shift, by a line for each seed that all shifts have, if there are any."""
    by_seed = [gain.by_seed() for gain in gains]
    seeds = set.intersection(*({*one} for one in by_seed))
    shifts = [gain.shift for gain in gains]
    rises = [0.1 * linear_regression(shifts, [one[seed] for one in by_seed]).slope for seed in sorted(seeds)]
    return over_seeds(rises, confidence) if rises else None


def growth(name: str, gains: Sequence[Gain]) -> str:
    """Whether the gain over VADA grows with the shift, in words."""
    first, last = gains[0], gains[-1]
    listed = ", ".join(f"{points(gain.found)} at {split(gain.shift)}" for gain in gains)
    told = [f"On {name}, {first.own.label} less {first.vada.label}, in points: {listed}."]
    if first.shift == 0.5:
        if first.found.low is None:
            told.append("Without a shift, one seed does not tell whether they agree.")
        else:
            agree = "differ beyond" if first.found.clear else "agree within"
            told.append(f"Without a shift they {agree} the noise of the seeds.")
    back = [
        f"from {split(before.shift)} to {split(after.shift)}"
        for before, after in pairwise(gains)
        if after.found.mean <= before.found.mean
    ]
    if back:
        whole = "larger" if last.found.mean > first.found.mean else "not larger"
        told.append(
            f"By the means, the gain does not grow {' and '.join(back)}; at {split(last.shift)} it is {whole} than at "
            f"{split(first.shift)}."
        )
    else:
        told.append("By the means, the gain grows with each step of the shift.")
    rise = trend(gains)
    if rise is not None:
        told.append(f"A line through all shifts rises by {points(rise)} points with every 10 points of shift.")
    return " ".join(told)


def _curves(pairs: Sequence[Pair]) -> dict[str, list[list[Gain]]]:
    r"""Of each pair, the gains of the rows of ``w_x \ w_1`` that were measured at several shifts, the chosen first."""
    found: dict[str, list[list[Gain]]] = {}
    for name in dict.fromkeys(pair.name for pair in pairs):
        some = sorted((pair for pair in pairs if pair.name == name), key=lambda pair: pair.shift)
        curves = [_curve(some, method) for method in (CHOSEN, *ESTIMATES)]
        if several := [gains for gains in curves if len(gains) > 1]:
            found[name] = several
    return found


def _curve(pairs: Sequence[Pair], method: str) -> list[Gain]:
    gains = []
    for pair in pairs:
        own, vada = pair.rows.get(method), pair.rows.get("vada")
        gain = difference(own, vada) if own and vada else None
        if own and vada and gain:
            gains.append(Gain(pair.shift, own, vada, gain))
    return gains


def _above(pairs: Sequence[Pair], rows: Mapping[str, Row | None], rival: str, rule: str) -> str:
    """On how many pairs a row of each is above its rival."""
    found = {}
    for pair in pairs:
        own = rows[pair.name]
        gain = difference(own, pair.rows[rival], rule) if own and rival in pair.rows else None
        if gain is not None:
            found[pair.name] = gain
    if not found:
        return ""
    label = next(pair.rows[rival].label for pair in pairs if rival in pair.rows)
    won = [name for name, gain in found.items() if gain.mean > 0]
    lost = [f"{name} ({points(gain)})" for name, gain in found.items() if gain.mean <= 0]
    told = f"above {label} on {len(won)} of {len(found)}"
    if any(gain.low is not None for gain in found.values()):
        told += f" (on {sum(found[name].clear for name in won)} with an interval above 0)"
    return told + (f", not on {', '.join(lost)}" if lost else "")


def _turned(pair: Pair, upper: Row, lower: Row, found: Difference) -> str:
    """A row that is below another here, or level with it, and above it in the paper."""
    expected = (upper.paper or 0.0) - (lower.paper or 0.0)
    beyond = "beyond" if found.clear else "within"
    noise = "of one seed" if found.low is None else f"{beyond} the noise of the seeds"
    return (
        f"On {pair.name} {upper.label} less {lower.label} is {points(found)} points here, {noise}; {_signed(expected)} "
        "in the paper."
    )


def _signed(value: float) -> str:
    # adding 0 makes a zero of minus zero
    return f"{round(100 * value, 1) + 0.0:+.1f}"
