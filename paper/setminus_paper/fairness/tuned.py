r"""w_x \ w_1 with strength and threshold picked on the validation rows, under a bound on equalized odds."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np

from setminus.core.orthogonalize import log_setminus
from setminus.estimators.frontier import gap_of
from setminus.estimators.search import Problem, search
from setminus.estimators.tuned import STRENGTHS
from setminus_paper.fairness.orthogonal import label_given_group, label_prior
from setminus_paper.fairness.predictions import Part, Predictions
from setminus_paper.fairness.proxy import proxy_principals
from setminus_paper.fairness.training import EPOCHS
from setminus_paper.fairness.trials import Codes, Floats, Trials
from setminus_paper.fairness.vanilla import vanilla

__all__ = ["TOLERANCE", "logs", "picked", "tuned"]

TOLERANCE = 0.05


def tuned(
    trials: Trials,
    *,
    principal: Literal["group", "proxy"] = "group",
    tolerance: float = TOLERANCE,
    epochs: int = EPOCHS,
) -> Predictions:
    """The search of `TunedOrthogonalClassifier` on the network's probabilities of the validation rows.

    Parameters
    ----------
    trials : Trials
    principal : {"group", "proxy"}
        p(y | u) with the groups known when predicting, or what x betrays of them.
    tolerance : float
        The summed equalized-odds gap to keep on the validation rows.
    epochs : int
        Of the networks.

    Returns
    -------
    Predictions
        With the settings "strength" and "threshold".
    """
    full = vanilla(trials, epochs=epochs)
    seconds = full.seconds
    if principal == "group":
        group_proba, seed = label_given_group(trials), np.arange(len(trials.seeds))[:, None]
        validation, test = (group_proba[seed, trials.u[rows]] for rows in (trials.validation, trials.test))
    else:
        validation, test, more = proxy_principals(trials, epochs=epochs)
        seconds += more
    start = time.perf_counter()
    proba = {"validation": full.on_validation.proba.copy(), "test": full.test.proba.copy()}
    settings = {name: np.empty(proba["test"].shape[:2]) for name in ("strength", "threshold")}
    log_prior = np.log(label_prior(trials))
    for k, epoch in np.ndindex(*proba["test"].shape[:2]):
        rows = trials.validation[k]
        log_full, log_principal = logs(proba["validation"][k, epoch]), np.log(validation[k])
        strength, threshold = picked(log_full, log_principal, log_prior[k], trials.y[rows], trials.u[rows], tolerance)
        settings["strength"][k, epoch], settings["threshold"][k, epoch] = strength, threshold
        for name, principal_proba in (("validation", validation), ("test", test)):
            log_proba = log_setminus(logs(proba[name][k, epoch]), np.log(principal_proba[k]), log_prior[k], strength)
            proba[name][k, epoch] = np.exp(log_proba[:, 1])
    seconds += (time.perf_counter() - start) / len(trials.seeds)
    cut = settings["threshold"][..., None]
    return Predictions(Part.of(proba["validation"], cut), Part.of(proba["test"], cut), seconds, settings)


def picked(
    log_full: Floats, log_principal: Floats, log_prior: Floats, y: Codes, u: Codes, tolerance: float
) -> tuple[float, float]:
    """The strength and the threshold of the highest accuracy within the tolerance."""
    gap = gap_of("equalized_odds", "sum")
    problem = Problem(y, u, np.arange(2), 2, np.ones(len(y)), gap)

    def best_of(strength: float) -> tuple[float, float, float, float]:
        found = search(problem, strength, log_setminus(log_full, log_principal, log_prior, strength))
        point = found.best(tolerance)
        # ordered by what counts first: within the tolerance, then the accuracy, then the smaller change
        over = max(float(found.gap[point]) - tolerance, 0.0)
        return over, -float(found.score[point]), strength, float(found.threshold[point])

    _, _, strength, threshold = min(map(best_of, STRENGTHS))
    return strength, threshold


def logs(proba: Floats) -> Floats:
    """Both labels' log-probabilities, from that of label 1."""
    logs: Floats = np.log(np.maximum(np.stack([1 - proba, proba], axis=-1), np.finfo(np.float64).tiny))
    return logs
