"""Table 1: colored digits, as its section of the page draws and tells it."""

from setminus_paper.report.style_transfer import charts, summary

__all__ = ["charts", "summary"]
