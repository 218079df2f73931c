"""Table 3 from records: a data frame, the row of the chosen estimate, gains over VADA, and the tables of the pages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from statistics import fmean, linear_regression
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from setminus.adaptation.label_shift import mix_distance
from setminus_paper.tables import mean_spread, paired_difference, to_frame

__all__ = [
    "CHOSEN",
    "ESTIMATES",
    "KEY",
    "PAPERS",
    "PAPER_SHIFT",
    "RULES",
    "by_scale",
    "commands",
    "difference",
    "distances",
    "frame_of",
    "from_equal",
    "gain_rows",
    "gains_by_shift",
    "images",
    "mean_interval",
    "ours",
    "pair_rows",
    "points",
    "reversed_rows",
    "shift_rows",
    "split",
    "spread",
    "summary",
    "trend",
]

Record = dict[str, Any]

RULES = ("information", "test_oracle")
"""The selected evaluation of a run: without labels of the target, or by them. Columns of the frame."""
PAPER_SHIFT = 0.7
"""Shares of the two halves of the classes in the paper: 70 and 30 percent, reversed on the target."""
ESTIMATES = {
    "vada_orthogonal_em": "EM",
    "vada_orthogonal_bbse": "BBSE",
    "vada_orthogonal_shrunk": "shrunk pseudo-labels",
    "vada_orthogonal_pseudo": "pseudo-labels",
}
"""The rows that differ in the estimate of the target's class frequencies."""
PAPERS = "vada_orthogonal_pseudo"
"""The paper's estimate."""
CHOSEN = "vada_orthogonal_chosen"
"""The row that stands for `ESTIMATES` on a pair: that with the most information, the same for all seeds. The best
estimate of each seed would compare the best of several networks with one of VADA's."""
ORDER = ("source_only", "dann", "adda", "cycada", "vada", "vada_iw", *ESTIMATES, CHOSEN)
KEY = ["pair", "shift", "method"]


def by_scale(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each size: networks of two sizes do not share a table.

    Examples
    --------
    >>> [*by_scale([{"config": {"scale": "quick"}}, {"config": {"scale": "large"}}])]
    ['quick', 'large']
    """
    parts: dict[str, list[Record]] = {}
    for record in records:
        parts.setdefault(record["config"]["scale"], []).append(record)
    return parts


def frame_of(records: Sequence[Record]) -> pd.DataFrame:
    """One row per pair, shift, method and seed, and rows of the chosen estimate; pairs with several seeds first.

    Columns: pair, shift, method, seed, label, picked (the chosen estimate), paper, the accuracy by each of `RULES`,
    mutual_information, seconds, and metrics, the metrics of the record.
    """
    given = to_frame(records)
    paper = pd.to_numeric(given["row.paper"]) if "row.paper" in given else np.nan
    frame = pd.DataFrame(
        {
            **{name: given[name] for name in ("pair", "shift", "method", "seed", "seconds")},
            "label": given["row.label"],
            "picked": "",
            "paper": np.where(given["shift"] == PAPER_SHIFT, paper, np.nan),
            RULES[0]: given["accuracy"],
            RULES[1]: given["test_oracle.accuracy"],
            "mutual_information": given["information"],
            "metrics": [record["metrics"] for record in records],
        }
    )
    places = {key: place for place, key in enumerate(dict.fromkeys(zip(frame["pair"], frame["shift"], strict=True)))}
    # of a seed that was measured again, the last record counts
    frame = frame.drop_duplicates(["pair", "shift", "method", "seed"], keep="last")
    frame = pd.concat([frame, *(_chosen(own) for _, own in frame.groupby(["pair", "shift"], sort=False))])
    most = frame.groupby(["pair", "shift", "method"])["seed"].transform("nunique")
    repeated = most.groupby([frame["pair"], frame["shift"]]).transform("max") > 1
    known = {method: place for place, method in enumerate(ORDER)}
    keys = zip(
        ~repeated,
        [places[key] for key in zip(frame["pair"], frame["shift"], strict=True)],
        [known.get(method, len(known)) for method in frame.method],
        strict=True,
    )
    order = sorted(range(len(frame)), key=list(keys).__getitem__)
    return frame.iloc[order].reset_index(drop=True)


def ours(own: pd.DataFrame) -> str:
    r"""The row that stands for ``w_x \ w_1`` among the rows of a pair: the chosen one, or the only estimate."""
    return next((method for method in (CHOSEN, *ESTIMATES) if method in {*own.method}), "")


def difference(frame: pd.DataFrame, one: str, other: str, rule: str = RULES[0]) -> pd.DataFrame:
    """One method less another over paired seeds, by pair and shift: difference, low, high (95 %) and seeds."""
    return paired_difference(frame, rule, "method", one, other, by=["pair", "shift"])


def gains_by_shift(frame: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    r"""Of each pair with several shifts, the gains of each row of ``w_x \ w_1`` over VADA, indexed by the shift."""
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for pair, own in frame.groupby("pair", sort=False):
        for method in (CHOSEN, *ESTIMATES):
            gains = difference(own, method, "vada").droplevel("pair").sort_index()
            if len(gains) > 1:
                found.setdefault(pair, {})[method] = gains
    return found


def trend(frame: pd.DataFrame, pair: str, method: str, level: float = 0.95) -> tuple[float, float, float] | None:
    """The slope of the gain over VADA per 10 points of shift, by a line for each seed that all shifts have."""
    own = frame[frame["pair"] == pair]
    wide = own[own.method.isin([method, "vada"])].pivot(index=["shift", "seed"], columns="method", values=RULES[0])
    if method not in wide or "vada" not in wide:
        return None
    gains = (wide[method] - wide["vada"]).dropna().unstack("seed").dropna(axis=1)
    slopes = [0.1 * linear_regression([*gains.index], gains[seed].tolist()).slope for seed in gains]
    return mean_interval(slopes, level) if slopes else None


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """The mean of values with its interval by Student's t; NaN ends for one value."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    reach = float(stdtrit(len(values) - 1, (1 + level) / 2) * np.std(values, ddof=1) / len(values) ** 0.5)
    return mean, mean - reach, mean + reach


def points(value: float, low: float = float("nan"), high: float = float("nan")) -> str:
    """A difference in points of percent, with its interval where it has one.

    Examples
    --------
    >>> points(0.0213, -0.004, 0.0466), points(-0.01)
    ('+2.1 (-0.4 to +4.7)', '-1.0')
    """
    # adding 0 makes a zero of minus zero
    mean, *ends = (f"{round(100 * one, 1) + 0.0:+.1f}" for one in (value, low, high))
    return mean if np.isnan(low) else f"{mean} ({ends[0]} to {ends[1]})"


def spread(spreads: pd.DataFrame) -> list[str]:
    """Mean ± standard deviation in percent, of a frame from `mean_spread`."""
    return [
        f"{100 * mean:.1f}" + ("" if np.isnan(std) else f" ± {100 * std:.1f}")
        for mean, std in zip(spreads["mean"], spreads["std"], strict=True)
    ]


def split(shift: float) -> str:
    """A shift as the shares of both halves of the classes.

    Examples
    --------
    >>> split(0.85)
    '85/15'
    """
    return f"{100 * shift:.0f}/{100 - 100 * shift:.0f}"


def from_equal(truth: Sequence[float]) -> float:
    """The `mix_distance` of equal frequencies from the truth."""
    return mix_distance([1 / len(truth)] * len(truth), truth)


def pair_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """One row per pair, shift and method, indexed by these: texts of both rules, the paper's number, seeds, minutes."""
    first = frame.groupby(KEY, sort=False).last()
    found = first[["label", "picked", "paper"]].copy()
    for rule in RULES:
        # fmean is exact: the last digit must not depend on the order of the sum
        spreads = mean_spread(frame, KEY, rule).assign(mean=frame.groupby(KEY, sort=False)[rule].agg(fmean))
        found[rule], found[f"{rule}.value"] = spread(spreads), spreads["mean"]
        found[f"{rule}.vada"] = ""
        for method in {*frame.method} - {"vada"}:
            gains = difference(frame, method, "vada", rule)
            index = pd.MultiIndex.from_tuples([(*place, method) for place in gains.index], names=KEY)
            found.loc[index, f"{rule}.vada"] = [points(*gain) for gain in gains[["difference", "low", "high"]].values]
    found["seeds"] = mean_spread(frame, KEY, RULES[0])["seeds"]
    found["minutes"] = frame.groupby(KEY, sort=False)["seconds"].mean() / 60
    found["paper_text"] = ["" if np.isnan(one) else f"{100 * one:.1f}" for one in found.paper]
    return found


def gain_rows(frame: pd.DataFrame, rule: str = RULES[0]) -> pd.DataFrame:
    r"""One row per pair at the paper's shift: ``w_x \ w_1`` less VADA and less no adaptation, in points.

    `ours` is the chosen estimate, `papers` the paper's own; `as_paper` of `compared` comparisons of two rows have the
    order of the paper.
    """
    own = frame[frame["shift"] == PAPER_SHIFT]
    # of each pair, whether the rows that the paper compares have its order here
    ordered: dict[str, list[bool]] = {}
    for pair, _, _, _, here, _ in _comparisons(frame, rule):
        ordered.setdefault(pair, []).append(here[0] > 0)
    lines = []
    for pair, some in own.groupby("pair", sort=False):
        method = ours(some)
        line: dict[str, Any] = {"pair": pair, "seeds": some.groupby("method")["seed"].nunique().max()}
        for who, one in (("ours", method), ("papers", PAPERS)):
            for rival in ("vada", "source_only"):
                gains = difference(some, one, rival, rule) if one else pd.DataFrame()
                line[f"{who}.{rival}"] = points(*gains[["difference", "low", "high"]].iloc[0]) if len(gains) else ""
        line["picked"] = (some[some.method == method]["picked"].iloc[0] or ESTIMATES[method]) if method else ""
        line["paper"] = _paper_gain(some, method)
        line["as_paper"] = f"{sum(ordered[pair])} of {len(ordered[pair])}" if pair in ordered else ""
        lines.append(line)
    return pd.DataFrame(lines)


def reversed_rows(frame: pd.DataFrame, rule: str = RULES[0]) -> list[dict[str, str]]:
    """Comparisons of two rows whose order is not the paper's: pair, comparison, the difference here and there."""
    return [
        {
            "pair": pair,
            "comparison": f"{labels[upper]} less {labels[lower]}",
            "here": points(*found),
            "paper": points(expected),
            "clear": "one seed" if np.isnan(found[1]) else "no" if found[1] <= 0 <= found[2] else "yes",
        }
        for pair, labels, upper, lower, found, expected in _comparisons(frame, rule)
        if found[0] <= 0
    ]


def distances(frame: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: of 100 target images, how many need another class for an estimate to be true, mean over seeds."""
    known = [method for method in ESTIMATES if method in {*frame.method}]
    rows = []
    for (pair, shift), own in frame[frame.method.isin(known)].groupby(["pair", "shift"], sort=False):
        priors = [metrics["prior"] for metrics in own.metrics]
        source = np.mean([mix_distance(prior["source"], prior["target"]) for prior in priors])
        equal = np.mean([from_equal(prior["target"]) for prior in priors])
        estimates = [own[own.method == method].metrics.map(_estimate_distance).mean() for method in known]
        numbers = ["" if np.isnan(one) else f"{100 * one:.0f}" for one in (source, equal, *estimates)]
        rows.append([f"{pair}, {split(shift)}", *numbers])
    return ["pair", "source's", "equal", *(ESTIMATES[method] for method in known)], rows


def shift_rows(frame: pd.DataFrame) -> list[tuple[list[str], list[list[str]]]]:
    """Heads and rows of each pair with several shifts: the gain of each estimate over VADA at each, and its slope."""
    tables = []
    for pair, by_method in gains_by_shift(frame).items():
        shifts = sorted({shift for gains in by_method.values() for shift in gains.index})
        rows = []
        for method, gains in by_method.items():
            texts = {shift: points(*gain) for shift, gain in gains[["difference", "low", "high"]].iterrows()}
            slope = trend(frame, pair, method)
            label = frame[frame.method == method]["label"].iloc[-1]
            rows.append([label, *(texts.get(shift, "") for shift in shifts), points(*slope) if slope else ""])
        tables.append(([pair, *map(split, shifts), "slope per 10 points of shift"], rows))
    return tables


def commands(records: Sequence[Record]) -> list[str]:
    """The commands that repeat the records: that of the table, and those of more seeds or other shifts."""
    given = {record["command"] for record in records}
    if len(given) == 1:
        return [*given]
    frame = frame_of(records)
    own = frame[frame.method != CHOSEN]
    seeds = own.groupby(KEY, sort=False)["seed"].nunique()
    most = seeds.groupby(level=["pair", "shift"], sort=False).max()
    several = most[(most > 1) & (most.index.get_level_values("shift") == PAPER_SHIFT)]
    usual = int(several.min()) if len(several) else 1
    shifts_of: dict[tuple[int, str, tuple[str, ...]], list[float]] = {}
    partial = set()
    for (pair, shift), counts in seeds.groupby(level=["pair", "shift"], sort=False):
        for count in sorted({*counts}):
            if shift != PAPER_SHIFT or count > usual:
                part = count, pair, tuple(counts.index.get_level_values("method")[counts == count])
                shifts_of.setdefault(part, []).append(shift)
                partial |= {part} if counts.nunique() > 1 else set()
    start = f"setminus reproduce table3 --scale {records[-1]['config']['scale']} --seeds"
    lines = [f"{start} {usual}"] if (frame["shift"] == PAPER_SHIFT).any() else []
    for (count, pair, methods), shifts in shifts_of.items():
        chosen = f" --methods {','.join(methods)}" if (count, pair, methods) in partial else ""
        lines.append(f"{start} {count} --pairs {pair} --shifts {','.join(map(str, sorted(shifts)))}{chosen}")
    return lines


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (quantity, paper, measured): by the selection without target labels, and by the paper's with them."""
    return [
        (
            f"{pair}, {split(shift)}, {row.label}: accuracy, %",
            row.paper_text,
            f"{row[RULES[0]]}; {RULES[1]} {row[RULES[1]]}",
        )
        for part in by_scale(records).values()
        for (pair, shift, _), row in pair_rows(frame_of(part)).iterrows()
    ]


def images(frame: pd.DataFrame) -> list[list[str]]:
    """Of each pair: images of the source, held out, of the target and scored, and what the paper had as source."""
    own = frame[frame["shift"] == PAPER_SHIFT]
    rows = []
    for pair, some in own.groupby("pair", sort=False):
        counts: dict[str, int] = next((metrics["rows"] for metrics in some.metrics if "rows" in metrics), {})
        others = [metrics["row"].get("other_source", "") for metrics in some.metrics]
        numbers = [f"{counts[key]:,}" if key in counts else "" for key in ("source", "held_out", "target", "scored")]
        rows.append([pair, *numbers, next(filter(None, others), "")])
    return rows


def _chosen(own: pd.DataFrame) -> pd.DataFrame:
    """The rows of the estimate with the most information over the seeds that all have; it uses no target label."""
    if any(metrics["selection"] == "last" for metrics in own.metrics):
        # the estimate is fixed, and so is the evaluation
        return own[:0]
    wide = own[own.method.isin(ESTIMATES)].pivot(index="seed", columns="method", values="mutual_information").dropna()
    if wide.shape[1] < 2 or not len(wide):
        return own[:0]
    best = wide.mean()[[method for method in ESTIMATES if method in wide]].idxmax()
    rows = own[(own.method == best) & own.seed.isin(wide.index)].copy()
    rows["method"], rows["label"], rows["picked"] = CHOSEN, "VADA + w_x \\ w_1 (chosen estimate)", ESTIMATES[best]
    rows["seconds"] = np.nan
    return rows


def _comparisons(frame: pd.DataFrame, rule: str) -> list[tuple[Any, ...]]:
    """Pairs of rows with an order in the paper: the upper one there, the lower, and the difference here and there."""
    found = []
    own = frame[(frame["shift"] == PAPER_SHIFT) & frame.paper.notna()]
    for pair, some in own.groupby("pair", sort=False):
        # the estimates are one row in the paper: the chosen one stands for them
        if CHOSEN in {*some.method}:
            some = some[~some.method.isin(ESTIMATES)]
        first = some.groupby("method", sort=False).last()
        for upper, lower in permutations(first.index, 2):
            expected = first.paper[upper] - first.paper[lower]
            if not expected > 0:
                continue
            gains = difference(some, upper, lower, rule)
            if len(gains):
                values = tuple(gains[["difference", "low", "high"]].iloc[0])
                found.append((pair, first.label, upper, lower, values, expected))
    return found


def _paper_gain(some: pd.DataFrame, method: str) -> str:
    papers = [some[some.method == one]["paper"] for one in (method, "vada")]
    known = all(len(one) and one.notna().all() for one in papers)
    return points(papers[0].iloc[0] - papers[1].iloc[0]) if known else ""


def _estimate_distance(metrics: dict[str, Any]) -> float:
    place, prior = metrics["curves"]["step"].index(metrics["step"]), metrics["prior"]
    return mix_distance(prior["estimated"][place], prior["target"])
