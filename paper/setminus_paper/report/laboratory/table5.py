"""Table 5: German credit, as its section of the page draws and tells it."""

from setminus_paper.report.fairness_tables import charts, summary

__all__ = ["charts", "summary"]
