"""From a table to a fair model: train, subtract, tune, audit on rows held out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import threadpool_limits

from setminus.auditing.audit import audit
from setminus.commands.fairness_record import attribute_predictability, frontier_points
from setminus.commands.rows import Roles, Rows, group_names, read_rows, split_rows
from setminus.core import Agg, Constraint
from setminus.errors import UserError
from setminus.estimators.groups import Groups
from setminus.estimators.persistence import load, model_errors
from setminus.estimators.principals import GroupPrincipal, ProxyPrincipal
from setminus.estimators.tuned import TunedOrthogonalClassifier
from setminus.progress import seconds_by_name, tracked
from setminus.records import Record, versions
from setminus.tables.columns import ColumnSummary, check_names
from setminus.tables.encoding import TableEncoder
from setminus.tables.numerals import DecimalSign
from setminus.tables.reading import open_table

__all__ = ["FitConfig", "fit_table"]


@dataclass(frozen=True)
class FitConfig:
    """What to fit, on what, and how fair.

    Parameters
    ----------
    table : str
        The file to learn from.
    label : str
        The column to predict.
    ignore : tuple of str
        The columns that must not matter.
    positive : str, optional
        The value of the label that counts as 1.
    full : str
        "hist_gradient_boosting", "logistic", or the path of a saved model to take as it is.
    principal : {"proxy", "group"}
        Whether the groups are unknown when the model is used, or known.
    constraint, agg, tolerance
        See `TunedOrthogonalClassifier`.
    test : str, optional
        A file to judge by; without it, `test_size` of the rows are held out.
    test_size : float
    seed : int
    header : bool, optional
        Whether the files have a first line of column names; guessed by default.
    encoding : str
    decimal : str, optional
        The decimal sign of the files; all rows decide by default.
    trusted : tuple of str
        Types that a saved `full` may hold, see `setminus.load`.
    """

    table: str
    label: str
    ignore: tuple[str, ...]
    positive: str | None = None
    full: str = "hist_gradient_boosting"
    principal: Literal["proxy", "group"] = "proxy"
    constraint: Constraint = "equalized_odds"
    agg: Agg = "max"
    tolerance: float = 0.05
    test: str | None = None
    test_size: float = 0.25
    seed: int = 0
    header: bool | None = None
    encoding: str = "utf-8"
    decimal: str | None = None
    trusted: tuple[str, ...] = ()

    @property
    def roles(self) -> Roles:
        """Which column is what."""
        return Roles(self.label, self.ignore, self.positive)


def fit_table(config: FitConfig, command: str = "") -> tuple[Any, Record]:
    """Fit a model that ignores columns of a table, and audit it.

    Parameters
    ----------
    config : FitConfig
    command : str
        What the user typed, for the record.

    Returns
    -------
    model : TunedOrthogonalClassifier
        Fitted; takes frames with the columns of the table. ``model.about_`` says where it comes from.
    record : dict
        Everything that the page shows, and the audits as numbers.

    Raises
    ------
    UserError
        Where the table cannot be used as asked.
    """
    # one thread: on a busy machine a second one costs minutes, on an idle one it saves seconds
    with threadpool_limits(1), seconds_by_name() as seconds:
        return _fit(config, seconds, command)


def _fit(config: FitConfig, seconds: dict[str, float], command: str) -> tuple[Any, Record]:
    with tracked(f"read {Path(config.table).name}"):
        train, test = _train_and_test(config)
        columns = train.features(config.roles)
        known = Groups(least=2)
        codes = np.unique(train.y, return_inverse=True)[1].astype(np.intp)
        train_groups = group_names(known, train.groups, known.learn(train.groups, codes))
        test_groups = group_names(known, test.groups)
        test, test_groups, notes = _known_only(test, test_groups, train)
    model = _model(config, columns, train.X.column_names)
    features = list(model.full.feature_names_in_) if isinstance(model.full, FrozenEstimator) else _kept(columns)
    if isinstance(model.full, FrozenEstimator):
        # here, where it is clear who fails
        with model_errors(Path(config.full).name):
            model.full.predict_proba(train.X.select(features))
    visible = [*dict.fromkeys([*features, *(model.sensitive_columns or ())])]
    X, X_test = train.X.select(visible), test.X.select(visible)
    with tracked(f"fit, subtract {', '.join(config.ignore)}, tune on {model.cv} folds"):
        keyword = {} if model.sensitive_columns else {"sensitive_features": train_groups}
        model.fit(X, train.y, **keyword)
    with tracked(f"audit before and after on {len(test):,} rows"):
        models = _audits(model, X_test, test.y, test_groups, config.seed)
        proxy = model.model_.principals_[0]
        predictability = None
        if isinstance(proxy, ProxyPrincipal):
            predictability = attribute_predictability(proxy.attribute_model_, X_test, test_groups)
    record: Record = {
        "name": "fit",
        "job": "fairness",
        "config": asdict(config),
        "seed": config.seed,
        "versions": versions("pyarrow"),
        "command": command,
        "task": {
            "data": Path(config.table).name,
            "label": config.roles.question,
            "labels": config.roles.class_names,
            "ignored": ", ".join(config.ignore),
            "rows": {"train": len(train), "test": len(test)},
            "features": features,
            "columns": [asdict(column) for column in columns],
            "notes": [*train.notes, *notes],
            # a table to predict for may leave the sign open
            "decimal": None if train.decimal is None else train.decimal._asdict(),
            "groups_needed": model.sensitive_columns is not None,
        },
        "metrics": {
            "attribute_predictability": predictability,
            "models": models,
            "frontier": frontier_points(model),
            "strength": model.strength_,
            "threshold": getattr(model, "threshold_", None),
        },
        "steps": seconds,
        "seconds": sum(seconds.values()),
    }
    model.about_ = {key: record[key] for key in ("config", "versions", "command", "task")}
    bounded = config.constraint + (f"_{config.agg}" if config.constraint == "equalized_odds" else "")
    model.about_["test"] = {
        name: {key: entry["audit"][key] for key in ("accuracy", bounded)}
        for name, entry in zip(("before", "after"), models, strict=True)
    }
    return model, record


def _train_and_test(config: FitConfig) -> tuple[Rows, Rows]:
    def rows(path: str, decimal: DecimalSign | None = None) -> Rows:
        table = open_table(path, header=config.header, encoding=config.encoding, decimal=config.decimal)
        return read_rows(table.like(decimal), config.roles)

    if config.test is None:
        return split_rows(rows(config.table), config.test_size, config.seed)
    train = rows(config.table)
    test = rows(config.test, train.decimal)
    train = replace(train, notes=(*train.notes, *(f"{Path(config.test).name}: {note}" for note in test.notes)))
    check_names(train.X.column_names, test.X.column_names, Path(config.test).name)
    new = sorted(set(test.y.tolist()) - set(train.y.tolist()))
    if new:
        raise UserError(
            f"the label {config.label!r} has the value {new[0]!r} in {Path(config.test).name} only",
            do="give test rows with the classes of the training rows.",
        )
    return train, test


def _known_only(test: Rows, groups: Any, train: Rows) -> tuple[Rows, Any, list[str]]:
    """The test rows of groups that were there at fit time, and a note of the others."""
    unknown = groups == ""
    if not unknown.any():
        return test, groups, []
    if unknown.all():
        raise UserError("no test row is in a group of the training rows", do="check the ignored columns of both files.")
    keep = np.flatnonzero(~unknown)
    return test.take(keep), groups[keep], [f"{unknown.sum():,} test rows are in groups that training did not have"]


def _kept(columns: list[ColumnSummary]) -> list[str]:
    kept = [column.name for column in columns if column.kept]
    if not kept:
        raise UserError("no column is left to learn from", do="every one is constant, or names rows.")
    return kept


def _model(config: FitConfig, columns: list[ColumnSummary], present: list[str]) -> TunedOrthogonalClassifier:
    full: Any = None
    sees_groups = False
    if config.full not in ("hist_gradient_boosting", "logistic"):
        if not Path(config.full).is_file():
            raise UserError(
                f"--full is {config.full!r}, and there is no such file",
                do="give hist_gradient_boosting, logistic, or the path of a saved model.",
            )
        saved = load(config.full, trusted=config.trusted)
        if not hasattr(saved, "feature_names_in_"):
            raise UserError(
                f"the model in {config.full} does not say which columns it takes",
                do="fit it on a frame, and save it again.",
            )
        with model_errors(Path(config.full).name):
            check_names(saved.feature_names_in_, present, Path(config.table).name)
            sees_groups = not {*saved.feature_names_in_}.isdisjoint(config.ignore)
        full = FrozenEstimator(saved)
        # the proxy learns from what the model sees, less the groups: both are given the same frame
        columns = [column for column in columns if column.name in set(saved.feature_names_in_)]
    pipeline = _pipeline("logistic" if config.full == "logistic" else "hist_gradient_boosting", columns, config.seed)
    grouped = config.principal == "group"
    return TunedOrthogonalClassifier(
        pipeline if full is None else full,
        GroupPrincipal() if grouped else ProxyPrincipal(pipeline),
        constraint=config.constraint,
        agg=config.agg,
        tolerance=config.tolerance,
        # where the model takes the groups, they are in the table when it predicts, too
        sensitive_columns=[*dict.fromkeys(config.ignore)] if grouped or sees_groups else None,
        random_state=config.seed,
    )


def _pipeline(kind: str, columns: list[ColumnSummary], seed: int) -> Pipeline:
    _kept(columns)
    kinds = {column.name: column.kind for column in columns if column.kept}
    if kind == "logistic":
        return make_pipeline(TableEncoder("onehot", kinds=kinds), LogisticRegression(max_iter=1000))
    categorical = np.array([column.kind == "category" for column in columns if column.kept])
    boosting = HistGradientBoostingClassifier(categorical_features=categorical, random_state=seed)
    return make_pipeline(TableEncoder("ordinal", kinds=kinds), boosting)


def _audits(model: TunedOrthogonalClassifier, X: Any, y: Any, groups: Any, seed: int) -> list[Record]:
    full, principals = model.model_._parts(X, None)
    grouped = isinstance(model.model_.principals_[0], GroupPrincipal)
    chosen = f"strength {model.strength_:g}"
    if hasattr(model, "threshold_"):
        chosen += f" and threshold {model.threshold_:.2f}"
    known = "the groups are read from the table" if grouped else "the groups are not needed"
    entries: list[tuple[str, str, dict[str, Any]]] = [
        ("before", "The full classifier as it is.", {"proba": full}),
        (
            "after",
            f"With {chosen}, chosen by cross-validation; at predict time {known}.",
            {
                "proba": model.predict_proba(X),
                "y_pred": model.predict(X),
                "full_proba": full,
                "principal_proba": principals[0],
            },
        ),
    ]
    classes = model.classes_.tolist()
    return [
        {
            "title": title,
            "about": about,
            "audit": audit(y, sensitive_features=groups, classes=classes, random_state=seed, **scores).to_dict(),
        }
        for title, about, scores in entries
    ]
