"""The rows of the fairness tables: what each is called, what it calls, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Literal

from setminus.datasets.tabular import Encoding
from setminus_paper.fairness import peers
from setminus_paper.fairness.boosting import boosting, tuned_boosting
from setminus_paper.fairness.folded import tuned_on_folds
from setminus_paper.fairness.laftr import laftr
from setminus_paper.fairness.lmifr import lmifr
from setminus_paper.fairness.orthogonal import orthogonal
from setminus_paper.fairness.predictions import Predictions
from setminus_paper.fairness.proxy import orthogonal_proxy
from setminus_paper.fairness.rebias import rebias
from setminus_paper.fairness.trials import Trials
from setminus_paper.fairness.tuned import tuned
from setminus_paper.fairness.vanilla import vanilla

__all__ = ["METHODS", "Method"]


@dataclass(frozen=True)
class Method:
    """A row.

    Attributes
    ----------
    name, label : str
        For commands and records, and for readers.
    fit : callable
        From `Trials` to `Predictions`.
    kind : "paper", "ours" or "peer"
        A row of the paper's tables, one beyond them, or another library's.
    needs_group : bool
        Whether the group has to be known when predicting.
    encoding : {"onehot", "raw"}
        Of the table.
    package : str, optional
        What has to be installed.
    """

    name: str
    label: str
    fit: Callable[[Trials], Predictions]
    kind: Literal["paper", "ours", "peer"] = "paper"
    needs_group: bool = False
    encoding: Encoding = "onehot"
    package: str | None = None

    @property
    def installed(self) -> bool:
        """Whether the package that it needs is there."""
        return self.package is None or find_spec(self.package) is not None


_ROWS = (
    Method("vanilla", "Vanilla", vanilla),
    Method("laftr_0.1", "LAFTR (0.1)", partial(laftr, gamma=0.1)),
    Method("laftr_0.5", "LAFTR (0.5)", partial(laftr, gamma=0.5)),
    Method("lmifr_0.05", "L-MIFR (0.05)", partial(lmifr, budget=0.05)),
    Method("lmifr_0.1", "L-MIFR (0.1)", partial(lmifr, budget=0.1)),
    Method("rebias_50", "ReBias (50)", partial(rebias, gamma=50.0)),
    Method("rebias_100", "ReBias (100)", partial(rebias, gamma=100.0)),
    Method("orthogonal", "w_x \\ w_1", orthogonal, needs_group=True),
    Method("orthogonal_uniform", "w_x \\ w_1, uniform prior", partial(orthogonal, prior="uniform"), needs_group=True),
    Method("orthogonal_proxy", "w_x \\ proxy", orthogonal_proxy, "ours"),
    Method("tuned", "w_x \\ w_1, tuned", tuned, "ours", needs_group=True),
    Method("tuned_proxy", "w_x \\ proxy, tuned", partial(tuned, principal="proxy"), "ours"),
    Method("tuned_folds", "w_x \\ w_1, tuned on folds", tuned_on_folds, "ours", needs_group=True),
    Method("tuned_folds_proxy", "w_x \\ proxy, tuned on folds", partial(tuned_on_folds, principal="proxy"), "ours"),
    Method(
        "tuned_folds_0.04",
        "w_x \\ w_1, tuned on folds to 0.04",
        partial(tuned_on_folds, tolerance=0.04),
        "ours",
        needs_group=True,
    ),
    Method(
        "tuned_folds_proxy_0.04",
        "w_x \\ proxy, tuned on folds to 0.04",
        partial(tuned_on_folds, principal="proxy", tolerance=0.04),
        "ours",
    ),
    Method("boosting", "gradient boosting", boosting, "ours", encoding="raw"),
    Method("boosting_tuned_proxy", "gradient boosting \\ proxy, tuned", tuned_boosting, "ours", encoding="raw"),
    Method(
        "threshold_optimizer",
        "Fairlearn ThresholdOptimizer",
        peers.threshold_optimizer,
        "peer",
        needs_group=True,
        package="fairlearn",
    ),
    Method(
        "exponentiated_gradient",
        "Fairlearn ExponentiatedGradient",
        peers.exponentiated_gradient,
        "peer",
        package="fairlearn",
    ),
    Method("aif360", "AIF360 EqOdds", peers.eq_odds_flips, "peer", needs_group=True, package="aif360"),
    Method("oxonfair", "OxonFair", peers.oxonfair, "peer", needs_group=True, package="oxonfair"),
    Method("leace", "LEACE", peers.leace, "peer", package="concept_erasure"),
)

METHODS: dict[str, Method] = {method.name: method for method in _ROWS}
"""All rows by name, in the order of the tables."""
