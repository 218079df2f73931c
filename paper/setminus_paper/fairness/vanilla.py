"""w_x by empirical risk minimisation, nothing done about fairness: the full classifier of all that follows."""

from __future__ import annotations

from functools import lru_cache

from setminus_paper.fairness.predictions import Predictions
from setminus_paper.fairness.training import EPOCHS, FairTask, trained
from setminus_paper.fairness.trials import Trials

__all__ = ["vanilla"]


def vanilla(trials: Trials, *, epochs: int = EPOCHS) -> Predictions:
    """The paper's network on cross entropy.

    Parameters
    ----------
    trials : Trials
    epochs : int

    Returns
    -------
    Predictions
    """
    return _remembered(trials, epochs)


# every method without training of its own starts from it
@lru_cache(maxsize=2)
def _remembered(trials: Trials, epochs: int) -> Predictions:
    return trained(FairTask(trials), epochs)
