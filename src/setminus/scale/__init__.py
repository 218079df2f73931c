"""Scoring files larger than memory: arrow on one machine, Dask beyond it."""

from typing import Literal

__all__ = ["Engine"]

Engine = Literal["arrow", "dask"]
