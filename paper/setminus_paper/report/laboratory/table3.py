"""Table 3: domain adaptation, as its section of the page draws and tells it."""

from setminus_paper.report.domain_adaptation import charts, summary

__all__ = ["charts", "summary"]
