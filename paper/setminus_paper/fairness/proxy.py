"""The principal classifier without the group: ``w_1(x) = sum over u of p(u | x) p(y | u)``, p(u | x) by the network."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from setminus_paper.fairness.measuring import best_epochs
from setminus_paper.fairness.orthogonal import label_given_group, without
from setminus_paper.fairness.predictions import Predictions
from setminus_paper.fairness.training import EPOCHS, FairTask, trained
from setminus_paper.fairness.trials import Floats, Trials
from setminus_paper.fairness.vanilla import vanilla

__all__ = ["attribute_network", "orthogonal_proxy", "proxy_principals"]


# several rows use it
@lru_cache(maxsize=2)
def attribute_network(trials: Trials, epochs: int) -> Predictions:
    """p(u | x): the paper's network, trained to tell the group instead of the label."""
    return trained(FairTask(trials, target=trials.u), epochs)


def proxy_principals(trials: Trials, *, epochs: int = EPOCHS) -> tuple[Floats, Floats, float]:
    """The principal classifier on validation and test rows, each (seeds, rows, 2), and the seconds that it took.

    Of the epochs of p(u | x) each seed takes the one that tells the groups of its validation rows best.
    """
    attribute = attribute_network(trials, epochs)
    y, u = trials.y[trials.validation], trials.u[trials.validation]
    # the group is what is predicted here: it stands where the label does elsewhere
    epoch = best_epochs(attribute.on_validation, u, y)
    seed = np.arange(len(trials.seeds))
    group_proba = label_given_group(trials)

    def mixture(proba: Floats) -> Floats:
        second = proba[seed, epoch]
        mixed: Floats = np.stack([1 - second, second], axis=-1) @ group_proba
        return mixed

    return mixture(attribute.on_validation.proba), mixture(attribute.test.proba), attribute.seconds


def orthogonal_proxy(trials: Trials, *, epochs: int = EPOCHS) -> Predictions:
    """The paper's formula where the groups are not known when predicting.

    Parameters
    ----------
    trials : Trials
    epochs : int
        Of both networks.

    Returns
    -------
    Predictions
    """
    validation, test, seconds = proxy_principals(trials, epochs=epochs)
    found = without(vanilla(trials, epochs=epochs), validation, test, trials)
    return Predictions(found.validation, found.test, found.seconds + seconds)
