"""Scoring files larger than memory: arrow on one machine, Dask beyond it."""
