"""Tables 1, 2 and 6 from records: scores of each method beside the paper's, notes on the settings, curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from setminus.charts.chart import Chart, Line
from setminus.charts.vega import figures
from setminus.report.page import same_experiment
from setminus_paper.pages import render
from setminus_paper.published import TABLE1
from setminus_paper.report.sample_grids import sample_grids
from setminus_paper.reproduce import title_of
from setminus_paper.tables import mean_spread, to_frame

__all__ = ["SCORES", "charts", "notes", "rows_of", "scores_of", "style_transfer_section", "summary"]

Record = dict[str, Any]

PLAIN, ORTHOGONAL = "vanilla", "orthogonal_oracle"
ORDER = tuple(TABLE1)
SCORES = {
    "z1": "Z1 accuracy, oracle",
    "z2": "Z2 accuracy, oracle",
    "z1_measured": "Z1, measured",
    "z2_measured": "Z2, measured",
    "fid": "FID, lower is better",
}
"""Columns: the key in the metrics of a record, and the heading."""
PUBLISHED = ("z1", "z2", "fid")
"""Scores that the paper has."""
CHANGES = {"table1": ("the digit's color changes", "the background stays")}
FACES = ("the sex changes", "the hair color stays")


def frame_of(records: Sequence[Record]) -> pd.DataFrame:
    """One row per method and seed, the methods in the paper's order, others behind them."""
    frame = to_frame(records)
    place = [ORDER.index(method) if method in ORDER else len(ORDER) for method in frame.method]
    return frame.iloc[np.argsort(place, kind="stable")]


def scores_of(frame: pd.DataFrame) -> list[str]:
    """The scores for which a record has a number."""
    return [score for score in SCORES if score in frame]


def rows_of(records: Sequence[Record]) -> pd.DataFrame:
    """One row per method, indexed by it: label, seeds, steps, minutes, and each score with ``.std`` and ``.paper``."""
    frame = frame_of(records)
    groups = frame.groupby("method", sort=False)
    found = pd.DataFrame(
        {
            "label": groups["row.label"].first(),
            "seeds": groups.size(),
            "steps": groups["translation.steps"].agg(lambda steps: sorted({*steps})),
            "minutes": groups["seconds"].mean() / 60,
        }
    )
    for score in scores_of(frame):
        spread = mean_spread(frame, "method", score)
        paper = f"row.paper.{score}"
        found[score], found[f"{score}.std"] = spread["mean"], spread["std"]
        found[f"{score}.paper"] = groups[paper].first() if paper in frame else np.nan
    return found


def text(score: str, value: float, std: float = float("nan")) -> str:
    """A number as the tables write it.

    Examples
    --------
    >>> text("z1", 0.949, 0.0123), text("fid", 39.7), text("z1", float("nan"))
    ('94.9 ± 1.2 %', '39.7', 'not measured')
    """
    if np.isnan(value):
        return "not measured"
    factor, unit = (1, "") if score == "fid" else (100, " %")
    return f"{factor * value:.1f}{'' if np.isnan(std) else f' ± {factor * std:.1f}'}{unit}"


def paper_text(row: pd.Series, score: str) -> str:
    """The paper's number, or nothing."""
    return "" if np.isnan(row[f"{score}.paper"]) else text(score, row[f"{score}.paper"])


def gains(rows: pd.DataFrame) -> list[dict[str, str]]:
    r"""``w_x \ w_1 (Oracle)`` less plain CycleGAN in both accuracies, in points, and the same in the paper."""
    if not {PLAIN, ORTHOGONAL} <= {*rows.index}:
        return []
    both = rows.loc[ORTHOGONAL], rows.loc[PLAIN]
    return [
        {
            "score": SCORES[score],
            **{
                key: "" if np.isnan(gain) else f"{100 * gain:+.1f}"
                for key, end in (("here", ""), ("paper", ".paper"))
                for gain in [both[0][f"{score}{end}"] - both[1][f"{score}{end}"]]
            },
        }
        for score in ("z1", "z2")
    ]


def notes(records: Sequence[Record]) -> list[str]:
    """The notes on a table that its settings require, a text each; see the template ``transfer_notes.md.j2``."""
    frame, rows = frame_of(records), rows_of(records)
    metrics = [record["metrics"] for record in records]
    features = [one["fid_features"] for one in metrics if one.get("fid_features")]
    ratios = []
    for label, one in zip(frame["row.label"], frame.get("log_ratio.mean", [None] * len(frame)), strict=True):
        if "groups" in metrics[0] and isinstance(one, list):
            a, other_a, other_b, b = one
            hair, sex = (a - other_a + other_b - b) / 2, (a + other_a - other_b - b) / 2
            ratios.append({"label": label, "hair": f"{hair:.1f}", "sex": f"{sex:.1f}"})
    config = records[-1]["config"]
    lengths = sorted({*frame["translation.steps"]})
    found = render(
        "transfer_notes.md.j2",
        name=records[0]["name"],
        config=config,
        scales={record["config"].get("scale") for record in records},
        steps=" to ".join(f"{one:,}" for one in dict.fromkeys((lengths[0], lengths[-1]))),
        lengths=len(lengths),
        features=list(dict.fromkeys(features)),
        inception=all("inception" in one.lower() for one in features),
        judges={z: float(np.mean([one["judges"][z] for one in metrics])) for z in ("z1", "z2")},
        agreement=float(frame["agreement"].mean()) if "agreement" in frame else None,
        judges_by_group={
            group: {z: min(one[z][group] for one in by_group) for z in ("z1", "z2")}
            for by_group in [[one["judges_by_group"] for one in metrics if "judges_by_group" in one]]
            for group in (by_group[0]["z1"] if by_group else ())
        },
        importance=next((one["importance"] for one in metrics if one.get("importance")), None),
        groups=next((one["groups"] for one in metrics if "groups" in one), None),
        ratios=ratios,
        single=bool((rows.seeds == 1).any()),
        of_groups=any(one.get("row", {}).get("of_groups") for one in metrics),
        last_layer=any("last layer" in label for label in rows.label),
    )
    return [line.removeprefix("- ") for line in found.splitlines() if line.startswith("- ")]


def summary(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of each score of each method that the paper has: quantity, the paper's, ours."""
    rows = rows_of(records)
    return [
        (
            f"{row.label}: {'FID' if score == 'fid' else f'{score.upper()} accuracy'}",
            paper_text(row, score),
            text(score, row[score], row[f"{score}.std"]),
        )
        for _, row in rows.iterrows()
        for score in PUBLISHED
        if score in rows
    ]


def charts(records: Sequence[Record]) -> list[Chart]:
    """Both accuracies and the generators' loss by step, a line for each method, the mean over its seeds."""
    changes, stays = CHANGES.get(records[0]["name"], FACES)
    by_method = frame_of(records).groupby("method", sort=False)
    over_seeds = " Mean over seeds." if any(len(own) > 1 for _, own in by_method) else ""
    made = []
    for name, title, caption in (
        ("z1", f"Z1: {changes}", "Share of held-out images whose z1 differs from that before."),
        ("z2", f"Z2: {stays}", "Share of held-out images whose z2 is the same as before."),
    ):
        lines = [_line(own, "curves", name) for _, own in by_method]
        made.append(Chart(title, "step", f"{name.upper()} accuracy", lines, caption=f"{caption}{over_seeds}"))
    lines = [_line(own, "losses", "generators") for _, own in by_method]
    caption = f"Adversarial, cycle and identity terms together, on one batch.{over_seeds}"
    return [*made, Chart("The generators' loss", "step", "loss", lines, caption=caption, y_scale="log")]


def style_transfer_section(records: Sequence[Record]) -> dict[str, Any]:
    """The values of the template ``style_transfer.html.j2`` for all records of one table at one scale."""
    name, scale = same_experiment(records[0])
    rows, samples = rows_of(records), sample_grids(records)
    scores = scores_of(frame_of(records))
    seeds, minutes = len({record["seed"] for record in records}), sum(record["seconds"] for record in records) / 60
    plots = figures(charts(records), "curve")
    return {
        "template": "style_transfer.html.j2",
        "package": "setminus_paper.report",
        "brief": True,
        "headings": {
            "scores": ("Scores", "What changes, and what stays"),
            "samples": ("Images", "The same images in every row" if samples else "Images"),
            "curves": ("Training", "Scores and loss during training"),
            "repeat": ("Repeat", "Run it again"),
        },
        "task": {"data": f"{name}, {scale} scale" if scale else name},
        "rows": f"{seeds} seed{'s' if seeds > 1 else ''}, {minutes:.0f} min",
        "duration": f"{minutes:.0f} min",
        "title": title_of(name),
        "name": name,
        "headline": records[-1].get("claim", ""),
        "score_heads": [SCORES[score] for score in scores],
        "scores": [
            {
                "method": method,
                "label": row.label,
                "seeds": row.seeds,
                "steps": " and ".join(f"{steps:,}" for steps in row.steps),
                "cells": [
                    {
                        "metric": score,
                        "value": None if np.isnan(row[score]) else row[score],
                        "text": text(score, row[score], row[f"{score}.std"]),
                        "paper": paper_text(row, score) or None,
                    }
                    for score in scores
                ],
            }
            for method, row in rows.iterrows()
        ],
        "gains": gains(rows),
        "notes": notes(records),
        "samples": samples,
        "plots": plots,
        "command": records[-1]["command"],
        "figures": plots,
    }


def _line(own: pd.DataFrame, group: str, name: str) -> Line:
    steps = own[f"{group}.step"].iloc[0]
    # a run with other steps has no place on this line
    values = [one for one, at in zip(own[f"{group}.{name}"], own[f"{group}.step"], strict=True) if at == steps]
    return Line(steps, np.mean(values, axis=0).round(4).tolist(), own["row.label"].iloc[0], markers=False)
