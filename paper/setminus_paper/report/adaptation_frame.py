"""Records of table 3 as a data frame, with the row of the chosen estimate, and differences of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import linear_regression
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from setminus_paper.tables import paired_difference, to_frame

__all__ = ["CHOSEN", "ESTIMATES", "PAPERS", "PAPER_SHIFT", "RULES", "difference", "frame_of", "gains_by_shift", "trend"]

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


def _chosen(own: pd.DataFrame) -> pd.DataFrame:
    """The rows of the estimate with the most information over the seeds that all have; it uses no target label."""
    wide = own[own.method.isin(ESTIMATES)].pivot(index="seed", columns="method", values="mutual_information").dropna()
    if wide.shape[1] < 2 or not len(wide):
        return own[:0]
    best = wide.mean()[[method for method in ESTIMATES if method in wide]].idxmax()
    rows = own[(own.method == best) & own.seed.isin(wide.index)].copy()
    rows["method"], rows["label"], rows["picked"] = CHOSEN, "VADA + w_x \\ w_1 (chosen estimate)", ESTIMATES[best]
    rows["seconds"] = np.nan
    return rows
