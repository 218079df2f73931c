"""Scoring files larger than memory: arrow on one machine, Dask and Spark beyond it."""

from typing import Literal

__all__ = ["Engine"]

Engine = Literal["arrow", "dask", "spark"]
