"""From records to tables: a data frame with one row per record, means over seeds, and paired differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

__all__ = ["Record", "by_scale", "mean_spread", "paired_difference", "points", "spread", "to_frame"]

Record = dict[str, Any]


def to_frame(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """One row per record: ``name``, ``seed`` and ``seconds``, then the keys of ``config`` and of ``metrics``.

    A nested key is joined by a dot: ``prior.target``. Where both have the same key, the column holds the metric, and
    ``config.key`` the setting.

    Examples
    --------
    >>> config, metrics = {"method": "a"}, {"error": {"mean": 2}}
    >>> to_frame([{"name": "toy", "seed": 0, "seconds": 1.0, "config": config, "metrics": metrics}]).to_dict("records")
    [{'name': 'toy', 'seed': 0, 'seconds': 1.0, 'method': 'a', 'error.mean': 2}]
    """
    rows = []
    for record in records:
        config, metrics = _flat(record["config"]), _flat(record["metrics"])
        settings = {f"config.{key}" if key in metrics else key: value for key, value in config.items()}
        rows.append({**{key: record[key] for key in ("name", "seed", "seconds")}, **settings, **metrics})
    return pd.DataFrame(rows)


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


def mean_spread(frame: pd.DataFrame, by: str | Sequence[str], value: str) -> pd.DataFrame:
    """Mean, standard deviation and number of seeds of a metric in each group, in the order of their first rows.

    The standard deviation is that of a sample: NaN of one seed.

    Examples
    --------
    >>> frame = pd.DataFrame({"method": ["a", "a", "b"], "seed": [0, 1, 0], "accuracy": [0.5, 0.7, 0.9]})
    >>> mean_spread(frame, "method", "accuracy").round(3).to_dict("index")
    {'a': {'mean': 0.6, 'std': 0.141, 'seeds': 2}, 'b': {'mean': 0.9, 'std': nan, 'seeds': 1}}
    """
    groups = frame.groupby(by, sort=False, dropna=False)
    values = groups[value]
    return pd.DataFrame({"mean": values.mean(), "std": values.std(), "seeds": groups["seed"].nunique()})


def paired_difference(
    frame: pd.DataFrame, value: str, column: str, a: Any, b: Any, by: Sequence[str] = (), level: float = 0.95
) -> pd.DataFrame:
    """The metric of `a` minus that of `b` on the same seeds, with the interval of its mean by Student's t.

    `a` and `b` are two values of `column`, such as ``method``. Each group of the columns `by` is compared on its own
    and has a row (0 without any): ``difference``, ``low``, ``high`` (NaN of one seed) and ``seeds``, the number that
    both have.

    Examples
    --------
    >>> frame = pd.DataFrame({"method": [*"aaabbb"], "seed": [0, 1, 2] * 2, "accuracy": [3.0, 4.0, 5.0, 1.0, 3.0, 3.0]})
    >>> paired_difference(frame, "accuracy", "method", "a", "b").round(3).to_dict("records")
    [{'difference': 1.667, 'low': 0.232, 'high': 3.101, 'seeds': 3}]
    """
    keys = [*by, "seed"]
    of_a, of_b = (frame.loc[frame[column] == one, [*keys, value]].set_index(keys)[value] for one in (a, b))
    paired = (of_a - of_b).dropna()
    groups = paired.groupby(level=[*by], sort=False) if by else paired.groupby(np.zeros(len(paired), dtype=int))
    mean, seeds = groups.mean(), groups.size()
    reach = stats.t.ppf((1 + level) / 2, seeds - 1) * groups.std() / np.sqrt(seeds)
    return pd.DataFrame({"difference": mean, "low": mean - reach, "high": mean + reach, "seeds": seeds})


def spread(spreads: pd.DataFrame) -> list[str]:
    """Mean ± standard deviation in percent, of a frame from `mean_spread`."""
    return [
        f"{100 * mean:.1f}" + ("" if np.isnan(std) else f" ± {100 * std:.1f}")
        for mean, std in zip(spreads["mean"], spreads["std"], strict=True)
    ]


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


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{before}{key}.") if isinstance(value, Mapping) else {f"{before}{key}": value}
    return flat
