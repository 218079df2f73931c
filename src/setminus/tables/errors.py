"""The error of a table, for callers that have not been moved to `UserError` yet."""

from __future__ import annotations

from setminus.errors import UserError

__all__ = ["TableError"]


class TableError(UserError):
    """A table that cannot be used as asked."""

    def __init__(self, problem: str, advice: str, *_: str):
        super().__init__(problem, do=advice)
        self.problem, self.advice = problem, advice

    @classmethod
    def of(cls, error: ValueError) -> TableError:
        """An error of the library in the two parts."""
        if isinstance(error, TableError):
            return error
        if isinstance(error, UserError):
            wrong, remedy = error.lines
            return cls(wrong.rstrip("."), remedy)
        problem, _, advice = str(error).partition(": ")
        return cls(problem.rstrip("."), advice[:1].upper() + advice[1:] or "Mend the values, and try again.")
