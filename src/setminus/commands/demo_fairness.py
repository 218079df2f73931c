"""The first part of the tour: a model on real census data, made to ignore sex, and what that cost and brought."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from setminus.auditing.audit import audit
from setminus.commands.fairness_record import attribute_predictability, frontier_points
from setminus.core import Agg, Constraint
from setminus.datasets.split import Split
from setminus.datasets.tabular import load_adult
from setminus.estimators.orthogonal import OrthogonalClassifier
from setminus.estimators.principals import GroupPrincipal, ProxyPrincipal
from setminus.estimators.tuned import TunedOrthogonalClassifier
from setminus.progress import seconds_by_name, tracked
from setminus.records import Record, versions

__all__ = ["DemoConfig", "run_demo"]

USAGE = """\
from setminus import ProxyPrincipal, TunedOrthogonalClassifier

model = TunedOrthogonalClassifier(
    your_model, ProxyPrincipal(), constraint="{constraint}", agg="{agg}", tolerance={tolerance:g}
)
model.fit(X, y, sensitive_features=sex)
model.predict(X_new)  # sex is not needed here"""


@dataclass(frozen=True)
class DemoConfig:
    """What the tour may vary.

    Parameters
    ----------
    seed : int
    tolerance : float
        The gap that the tuned classifier may leave on the training file.
    constraint, agg : str
        Which gap, see `TunedOrthogonalClassifier`.
    cv : int
        Folds behind the choice of strength and threshold.
    """

    seed: int = 0
    tolerance: float = 0.05
    constraint: Constraint = "equalized_odds"
    agg: Agg = "sum"
    cv: int = 5


def run_demo(config: DemoConfig | None = None) -> Record:
    """Fit a model on Adult, make it ignore sex in two ways, and audit all three on the test file.

    Parameters
    ----------
    config : DemoConfig, optional

    Returns
    -------
    dict
        A record with everything that the page shows.

    Raises
    ------
    DataUnavailableError
        Where Adult is neither here nor to be had.
    """
    # a second thread saves two seconds on an idle machine, and costs minutes on a busy one
    with threadpool_limits(1), seconds_by_name() as seconds:
        return _run(config or DemoConfig(), seconds)


def _run(config: DemoConfig, seconds: dict[str, float]) -> Record:
    with tracked("read UCI Adult"):
        train, test = load_adult(encoding="raw")
    boosting = _boosting(train, config.seed)
    with tracked("fit gradient boosting without sex: the model you already have"):
        base = boosting.fit(train.x, train.y)
    with tracked("subtract what sex says: the paper's formula"):
        formula = OrthogonalClassifier(FrozenEstimator(base), GroupPrincipal())
        formula.fit(train.x, train.y, sensitive_features=train.z1)
    with tracked(f"tune strength and threshold: {config.cv} folds, sex unknown at predict time"):
        tuned = TunedOrthogonalClassifier(
            _boosting(train, config.seed),
            ProxyPrincipal(_boosting(train, config.seed)),
            constraint=config.constraint,
            agg=config.agg,
            tolerance=config.tolerance,
            cv=config.cv,
            random_state=config.seed,
        ).fit(train.x, train.y, sensitive_features=train.z1)
    with tracked("audit all three on the test file"):
        models = _audits(base, formula, tuned, test, config.seed)
        predictability = attribute_predictability(tuned.model_.principals_[0].attribute_model_, test.x, test.z1)
    return {
        "name": "demo",
        "job": "fairness",
        "config": asdict(config),
        "seed": config.seed,
        "versions": versions(),
        "command": f"setminus demo --seed {config.seed}",
        "task": _task(train, test),
        "usage": USAGE.format(**asdict(config)),
        "metrics": {
            "attribute_predictability": predictability,
            "models": models,
            "frontier": frontier_points(tuned),
            "strength": tuned.strength_,
            "threshold": tuned.threshold_,
        },
        "steps": seconds,
        "seconds": sum(seconds.values()),
    }


def _boosting(train: Split, seed: int) -> HistGradientBoostingClassifier:
    categorical = np.isin(train.feature_names, train.categorical)
    return HistGradientBoostingClassifier(categorical_features=categorical, random_state=seed)


def _audits(
    base: Any, formula: OrthogonalClassifier, tuned: TunedOrthogonalClassifier, test: Split, seed: int
) -> list[Record]:
    """Before, by the formula, and tuned: what each is, and its audit."""
    sex = np.asarray(test.z1)
    full_proba = base.predict_proba(test.x)
    scores: list[tuple[str, str, dict[str, Any]]] = [
        ("before", "Gradient boosting as it is; sex is not among its features.", {"proba": full_proba}),
        (
            "formula",
            "The paper's formula at strength 1; sex is needed at predict time. It is meant for a model that sees sex: "
            "from this one, which only guesses it, more is taken out than was in.",
            {
                "proba": formula.predict_proba(test.x, sensitive_features=sex),
                "full_proba": full_proba,
                "principal_proba": formula.principals_[0].predict_proba(test.x, sensitive_features=sex),
            },
        ),
        (
            "tuned",
            f"Strength {tuned.strength_:g} and threshold {tuned.threshold_:.2f}, chosen by cross-validation; "
            "sex is not needed at predict time.",
            {
                "proba": tuned.predict_proba(test.x),
                "y_pred": tuned.predict(test.x),
                "full_proba": tuned.model_.full_.predict_proba(test.x),
                "principal_proba": tuned.model_.principals_[0].predict_proba(test.x),
            },
        ),
    ]
    return [
        {
            "title": title,
            "about": about,
            "audit": audit(test.y, sensitive_features=sex, random_state=seed, **inputs).to_dict(),
        }
        for title, about, inputs in scores
    ]


def _task(train: Split, test: Split) -> dict[str, Any]:
    return {
        "data": "UCI Adult",
        "label": "income above 50K a year",
        "labels": {"0": "up to 50K", "1": "above 50K"},
        "ignored": "sex",
        "rows": {"train": len(train), "test": len(test)},
        "features": list(train.feature_names),
    }
