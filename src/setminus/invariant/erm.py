"""Empirical risk minimisation: one risk on all rows, wherever they come from.

On a set where only z1 tells the label this gives the oracle's principal classifier, p(y|z1). On pooled environments
it takes whatever predicts on average, and is what the other methods are compared with.
"""

from __future__ import annotations

from setminus.invariant.environment_task import EnvironmentTask, pooled, risk
from setminus.nn.training import Loop

__all__ = ["Erm"]


class Erm(EnvironmentTask):
    """Minimise the mean risk over the environments' rows."""

    fewest = 1

    def step(self, loop: Loop) -> None:
        """Go down ``risk(network, pooled rows)``."""
        loop.update("network", risk(self.network, pooled(self.drawn(loop))))
