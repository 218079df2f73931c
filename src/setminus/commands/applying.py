"""Scores for a file: by a model, or by subtracting columns that hold probabilities already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from setminus.errors import UserError
from setminus.scale.scorers import ModelScorer, ProbabilityScorer, Scorer
from setminus.scale.scoring import Scored, score_file
from setminus.tables.reading import open_table

__all__ = ["apply_file"]


def apply_file(
    files: Sequence[Path],
    out: Path,
    *,
    full: str | None = None,
    principal: str | None = None,
    prior: str | None = None,
    strength: float = 1.0,
    engine: Literal["arrow", "dask"] = "arrow",
    scheduler: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
    decimal: str | None = None,
    neutralize: bool | None = None,
    trusted: tuple[str, ...] = (),
    strict: bool = False,
) -> Scored:
    """Score a file and write it with its scores.

    Parameters
    ----------
    files : sequence of Path
        A model and a table, or a table alone where `full`, `principal` and `prior` are given.
    out : Path
    full, principal : str, optional
        Columns of probabilities, separated by commas; one column is that of the second of two classes.
    prior : str, optional
        Class frequencies by commas, or "uniform".
    strength, engine, scheduler, header, encoding, decimal, neutralize, trusted, strict
        See `score_file` and `open_table`.

    Returns
    -------
    Scored
    """
    ready = full is not None or principal is not None or prior is not None
    if len(files) != (1 if ready else 2):
        raise UserError(
            f"{len(files)} files came",
            do="give the table alone with --full, --principal and --prior." if ready else "give a model and a table.",
        )
    if ready and strict:
        raise UserError("--strict came without a model", do="leave it away: columns of probabilities had no training.")
    table = open_table(files[-1], header=header, encoding=encoding, decimal=decimal)
    scorer: Scorer
    if ready:
        if full is None or principal is None or prior is None:
            raise UserError(
                "ready probabilities need three things", do="give --full COLUMNS --principal COLUMNS --prior NUMBERS."
            )
        names = table.names
        scorer = ProbabilityScorer(_columns(full, names), _columns(principal, names), _prior(prior), strength)
    else:
        scorer = ModelScorer(files[0], trusted)
        table = table.like(scorer.decimal())
    return score_file(
        table,
        out,
        scorer,
        neutralize=neutralize,
        engine=engine,
        scheduler=scheduler,
        strict=strict,
    )


def _columns(text: str, names: Sequence[str]) -> list[str]:
    # a column whose name has a comma in it is still one column
    return [text] if text in names else [name.strip() for name in text.split(",")]


def _prior(text: str) -> list[float] | str:
    if text == "uniform":
        return text
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise UserError(f"the prior is {text!r}", do="give class frequencies such as 0.7,0.3, or uniform.") from None
