"""The work of `setminus fit`: read, split, fit, tune and audit, and the record of it."""

from __future__ import annotations

import warnings
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setminus.commands.filing import Filing
from setminus.errors import UserError
from setminus.progress import seconds_by_name, tracked
from setminus.records import Record, run_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sklearn.pipeline import Pipeline

    from setminus.commands.fit import FitConfig
    from setminus.commands.remaining_rows import RemainingRows
    from setminus.commands.table_roles import Rows
    from setminus.estimators.tuned import TunedOrthogonalClassifier
    from setminus.tables.columns import ColumnSummary
    from setminus.tables.reading import Table

__all__ = ["attribute_predictability", "fit_table", "frontier_points"]

CHOICES = (
    "constraint",
    "agg",
    "tolerance",
    "confidence",
    "constraint_over",
    "favorable",
    "scoring",
    "min_lead",
    "min_rate_ratio",
    "bins",
    "small_groups",
)
"""Settings that decide what counts as fair."""


def fit_table(config: FitConfig, command: str = "", filing: Filing | None = None) -> tuple[Any, Record]:
    """Fit a model that ignores columns of a table, and audit it; for the record, `command` is what the user typed.

    The model takes frames with the columns of the table, and its ``about_`` describes where it comes from. The record
    has the audits as numbers, and everything that the page shows.
    """
    from threadpoolctl import threadpool_limits

    # one thread: on a busy machine a second one costs minutes, on an idle one it saves seconds
    with threadpool_limits(1), seconds_by_name() as seconds:
        return _fit(config, seconds, command, filing or Filing())


def _fit(config: FitConfig, seconds: dict[str, float], command: str, filing: Filing) -> tuple[Any, Record]:
    from sklearn.frozen import FrozenEstimator

    from setminus.core.gaps import gap_key
    from setminus.estimators.cautions import OPTIONS, Caution, NotCertified
    from setminus.estimators.persistence import model_errors

    # wrong options are refused before the file is read
    config.check()
    edges, costs = config.edges, config.costs
    with tracked(f"read {Path(config.table).name}"):
        train, test, fresh = _train_and_test(config, edges)
        columns = train.features(config.roles)
    model = _model(config, columns, train.X.column_names)
    model.set_params(bins=edges or None, costs=costs)
    labels = config.roles.class_names
    if isinstance(model.full, FrozenEstimator):
        with model_errors(Path(config.full).name):
            by_model = partial(_labelled, model.full.classes_, config)
            _, labels = train.labelled_by(model.full.classes_, config.roles, Path(config.full).name)
            train, test = by_model(train), by_model(test)
            fresh = None if fresh is None else replace(fresh, change=by_model)
    model.favorable_label = _favorable(config, train.y, labels)
    features = list(model.full.feature_names_in_) if isinstance(model.full, FrozenEstimator) else _kept(columns)
    if isinstance(model.full, FrozenEstimator):
        # here, where it is clear who fails
        with model_errors(Path(config.full).name):
            model.full.predict_proba(train.X.select(features))
    visible = [*dict.fromkeys([*features, *(model.sensitive_columns or ())])]
    how = f"tune on {model.cv} folds" if fresh is None else f"tune on {fresh.n_rows:,} other rows"
    with (
        tracked(f"fit, remove {', '.join(config.ignore)}, {how}"),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", UserWarning)
        keyword = {} if model.sensitive_columns else {"sensitive_features": train.groups}
        try:
            if fresh is None:
                model.fit(train.X.select(visible), train.y, **keyword)
            else:
                counted = fresh.fit(model, train, visible)
                train = replace(train, notes=(*train.notes, fresh.note(counted, len(test))))
        except NotCertified as error:
            raise NotCertified(error.caution, OPTIONS) from None
    test, notes = _known_only(test, model)
    with tracked(f"audit before and after on {len(test):,} rows"):
        audited = _audits(model, test.X.select(visible), train, test, config)
        # of several groupings the crossing is shown in full; the others by their gaps
        title, models = audited[-1] if config.constraint_over != "each" else audited[0]
        predicted = _predictability(model, test.X.select(visible), test)
    bounded = gap_key(config.constraint, config.agg)
    record = run_record(
        "fit",
        "fairness",
        config,
        command=command,
        task={
            "data": Path(config.table).name,
            "label": config.roles.question,
            "labels": labels,
            "ignored": ", ".join(config.ignore),
            "ignored_columns": [*config.ignore],
            "rows": {
                "train": len(train),
                "test": len(test),
                "unknown_group": models[-1]["audit"]["n_unknown_group"],
            },
            "features": features,
            "columns": [asdict(column) for column in columns],
            "favorable": None if model.favorable_label is None else str(model.favorable_label),
            "groups": model.groups_.names,
            "notes": [*train.notes, *model.groups_.notes(missing=False), *notes],
            # a table to predict for may leave the sign open
            "decimal": None if train.decimal is None else train.decimal._asdict(),
            "groups_needed": model.sensitive_columns is not None,
        },
        metrics={
            "attribute_predictability": predicted,
            "models": models,
            "frontier": frontier_points(model),
            "strength": model.strength_,
            "threshold": getattr(model, "threshold_", None),
            "choice": model.choice_,
            "certificate": None if model.certificate_ is None else model.certificate_.as_dict(),
            "groupings": [
                {"title": name, **{one["title"]: one["audit"][bounded] for one in entries}} for name, entries in audited
            ],
            "grouping": title,
        },
        steps=seconds,
        packages=("pyarrow",),
    )
    record["provenance"] = filing.provenance(
        command,
        record["config"],
        CHOICES,
        {"table": config.table, "test table": config.test, "full classifier": config.full},
    )
    # those on groups are among the notes
    said = [
        one.message.text(OPTIONS, labels) if isinstance(one.message, Caution) else str(one.message)
        for one in caught
        if issubclass(one.category, UserWarning)
    ]
    about_groups = {f"{note}." for note in model.groups_.notes()}
    record["warnings"] = [one for one in dict.fromkeys(said) if one not in about_groups]
    model.about_ = {key: record[key] for key in ("config", "versions", "command", "task")}
    model.about_["test"] = {
        name: {key: entry["audit"][key] for key in ("accuracy", bounded)}
        for name, entry in zip(("before", "after"), models, strict=True)
    }
    return model, record


def _train_and_test(
    config: FitConfig, edges: dict[str | int, Sequence[float]]
) -> tuple[Rows, Rows, RemainingRows | None]:
    """Rows to learn from and to evaluate on; of a large file also the rows that remain."""
    from setminus.commands.remaining_rows import draw
    from setminus.commands.table_roles import check_bins, read_rows, split_rows, without_rare_labels
    from setminus.estimators.groupings import Groupings, needed_labels
    from setminus.tables.columns import check_names
    from setminus.tables.reading import open_table

    def opened(path: str) -> Table:
        return open_table(path, header=config.header, encoding=config.encoding, decimal=config.decimal)

    table = opened(config.table)
    fresh: RemainingRows | None = None
    if table.format != "csv" and (table.n_rows or 0) > config.max_train_rows:
        train, held_out, fresh = draw(table, config)
    else:
        train = without_rare_labels(read_rows(table, config.roles), config.roles)
    check_bins(edges, train.groups)
    if config.test is None and fresh is not None:
        return train, held_out, fresh
    if config.test is None:
        known = Groupings(
            config.constraint_over, least=config.min_group_size, small=config.small_groups, bins=edges or None
        )
        needed = needed_labels(config.constraint, len(np.unique(train.y)))
        return *split_rows(train, config.test_size, config.seed, known, needed), None
    other = opened(config.test).like(train.decimal)
    if other.format != "csv" and (other.n_rows or 0) > config.max_train_rows:
        _, test, _ = draw(other, config)
    else:
        test = read_rows(other, config.roles)
    train = replace(train, notes=(*train.notes, *(f"{Path(config.test).name}: {note}" for note in test.notes)))
    check_names(train.X.column_names, test.X.column_names, Path(config.test).name)
    new = sorted(set(test.y.tolist()) - set(train.y.tolist()))
    if new:
        raise UserError(
            f"the label {config.label!r} has the value {new[0]!r} in {Path(config.test).name} only",
            do="give test rows with the classes of the training rows.",
        )
    return train, test, fresh


def _labelled(classes: Any, config: FitConfig, rows: Rows) -> Rows:
    """The rows with labels among the classes of a saved model."""
    return rows.labelled_by(classes, config.roles, Path(config.full).name)[0]


def _favorable(config: FitConfig, y: Any, labels: dict[str, str]) -> Any:
    """The class that `--favorable` names, in the words of the file."""
    if config.favorable is None:
        return None
    from setminus.tables.columns import check_names

    named = {labels.get(str(label), str(label)): label for label in np.unique(y).tolist()}
    name = str(config.roles.favorable_name)
    # a rare label is left out
    check_names([name], [*named], f"the label {config.label!r}", what="value")
    return named[name]


def _sensitive(model: TunedOrthogonalClassifier, rows: Rows) -> Any:
    """The groups of rows, from where the model had them."""
    return rows.groups if model.sensitive_columns is None else rows.X.select([*model.sensitive_columns])


def _known_only(test: Rows, model: TunedOrthogonalClassifier) -> tuple[Rows, list[str]]:
    """The test rows without those of groups that the training rows lack, and a note on these."""
    from setminus.estimators.groups import UNSEEN

    unseen = model.groups_.crossed.codes(_sensitive(model, test)) == UNSEEN
    if not unseen.any():
        return test, []
    if unseen.all():
        raise UserError("no test row is in a group of the training rows", do="check the ignored columns of both files.")
    return test.take(np.flatnonzero(~unseen)), [
        f"{unseen.sum():,} test rows are in groups that training did not have, and were left out"
    ]


def _kept(columns: list[ColumnSummary]) -> list[str]:
    kept = [column.name for column in columns if column.kept]
    if not kept:
        raise UserError("no column is left to learn from", do="every column is constant, or names rows.")
    return kept


def _model(config: FitConfig, columns: list[ColumnSummary], present: list[str]) -> TunedOrthogonalClassifier:
    from sklearn.frozen import FrozenEstimator

    from setminus.commands.table_roles import split_names
    from setminus.estimators.persistence import load, model_errors
    from setminus.estimators.principals import GroupPrincipal, ProxyPrincipal
    from setminus.estimators.tuned import TunedOrthogonalClassifier
    from setminus.tables.columns import check_names

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
                f"the model in {config.full} does not hold the names of its columns",
                do="fit it on a frame, and save it again.",
            )
        with model_errors(Path(config.full).name):
            check_names(saved.feature_names_in_, present, Path(config.table).name)
            dropped = [name for name in split_names(config.drop, present) if name in {*saved.feature_names_in_}]
            if dropped:
                raise UserError(
                    f"{Path(config.full).name} was fitted on the column {dropped[0]!r}, which --drop leaves out",
                    do="keep the column, or fit the model without it.",
                )
            sees_groups = not {*saved.feature_names_in_}.isdisjoint(config.ignore)
        full = FrozenEstimator(saved)
        # the proxy learns from what the model sees, less the groups: both are given the same frame
        columns = [column for column in columns if column.name in set(saved.feature_names_in_)]
    pipeline = _pipeline("logistic" if config.full == "logistic" else "hist_gradient_boosting", columns, config.seed)
    grouped = config.principal == "group"
    return TunedOrthogonalClassifier(
        pipeline if full is None else full,
        GroupPrincipal(interpolate=config.interpolate) if grouped else ProxyPrincipal(pipeline),
        constraint=config.constraint,
        agg=config.agg,
        tolerance=config.tolerance,
        confidence=config.confidence,
        uncertified=config.uncertified,
        scoring=config.scoring,
        min_lead=config.min_lead,
        min_rate_ratio=config.min_rate_ratio,
        min_selection_rate=config.min_selection_rate,
        max_selection_rate=config.max_selection_rate,
        min_recall=config.min_recall,
        levelling="up" if config.level_up else None,
        constraint_over=config.constraint_over,
        min_group_size=config.min_group_size,
        small_groups=config.small_groups,
        # where the model takes the groups, they are in the table when it predicts, too
        sensitive_columns=[*dict.fromkeys(config.ignore)] if grouped or sees_groups else None,
        random_state=config.seed,
    )


def _pipeline(kind: str, columns: list[ColumnSummary], seed: int) -> Pipeline:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from setminus.tables.encoding import TableEncoder

    _kept(columns)
    kinds = {column.name: column.kind for column in columns if column.kept}
    if kind == "logistic":
        return make_pipeline(TableEncoder("onehot", kinds=kinds), LogisticRegression(max_iter=1000))
    categorical = np.array([column.kind == "category" for column in columns if column.kept])
    boosting = HistGradientBoostingClassifier(categorical_features=categorical, random_state=seed)
    return make_pipeline(TableEncoder("ordinal", kinds=kinds), boosting)


def _audits(
    model: TunedOrthogonalClassifier, X: Any, train: Rows, test: Rows, config: FitConfig
) -> list[tuple[str, list[Record]]]:
    """The audits before and after, for each grouping by its title."""
    from setminus.auditing.audit import audit
    from setminus.estimators.groupings import Groupings
    from setminus.estimators.principals import GroupPrincipal

    full, principals, _ = model.model_._parts(X, None)
    grouped = isinstance(model.model_.principals_[0], GroupPrincipal)
    chosen = f"strength {model.strength_:g}"
    if hasattr(model, "threshold_"):
        chosen += f" and threshold {model.threshold_:.2f}"
    known = "the groups are read from the table" if grouped else "the groups are not needed"
    classes = model.classes_.tolist()
    # audits refer to the last class
    order = [*range(len(classes))]
    if model.favorable_label is not None:
        order.sort(key=lambda k: classes[k] == model.favorable_label)
    after = {
        "proba": model.predict_proba(X)[:, order],
        "y_pred": model.predict(X),
        "full_proba": full[:, order],
        "principal_proba": principals[0][:, order],
    }
    entries: list[tuple[str, str, dict[str, Any]]] = [
        ("before", "The full classifier, unchanged.", {"proba": full[:, order]}),
        ("after", f"Tuned: {chosen}. To predict, {known}.", after),
    ]
    # impact ratios are of the groups as they are, small ones too
    grouped_by = Groupings("both", least=1, small=None, bins=config.edges or None)
    grouped_by.learn(train.groups, np.zeros(len(train), dtype=np.intp), needed=[])
    settings: dict[str, Any] = {
        "classes": [classes[k] for k in order],
        "favorable_label": model.favorable_label,
        "attributes": dict(grouped_by.named_each(test.groups)),
        "random_state": config.seed,
    }
    if config.confidence is not None:
        settings |= {name: getattr(config, name) for name in ("constraint", "agg", "tolerance", "confidence")}
    return [
        (
            title,
            [
                {
                    "title": name,
                    "about": about,
                    "audit": audit(test.y, sensitive_features=groups, **settings, **scores).to_dict(),
                }
                for name, about, scores in entries
            ],
        )
        for title, groups in model.groups_.named_each(_sensitive(model, test))
    ]


def attribute_predictability(attribute_model: Any, X: Any, groups: Any) -> dict[str, float | None]:
    """How well a model predicts the ignored attribute from the other features, on test rows."""
    from sklearn.metrics import roc_auc_score

    groups = np.asarray(groups)
    names, counts = np.unique(groups, return_counts=True)
    proba = attribute_model.predict_proba(X)
    # of more than two groups the mean of each against the others; none where the test rows lack a group
    auc = None
    if len(names) == proba.shape[1]:
        score = proba[:, 1] if len(names) == 2 else proba / proba.sum(axis=1, keepdims=True)
        auc = float(roc_auc_score(groups, score, multi_class="ovr"))
    return {
        "auc": auc,
        "accuracy": float(np.mean(attribute_model.predict(X) == groups)),
        "largest_group": float(counts.max() / counts.sum()),
    }


def _predictability(model: TunedOrthogonalClassifier, X: Any, test: Rows) -> dict[str, float | None] | None:
    """How well the proxy of a fitted model predicts the groups; None where the principal is another one."""
    from setminus.core.checks import group_name
    from setminus.estimators.principals import ProxyPrincipal

    fitted = model.model_
    proxy = fitted.principals_[0]
    if not isinstance(proxy, ProxyPrincipal):
        return None
    codes = proxy.groups_.codes(fitted._groups(X, None if model.sensitive_columns else test.groups))
    inside = np.flatnonzero(codes >= 0)
    names = np.array([group_name(label) if isinstance(label, tuple) else label for label in proxy.groups_.labels])
    return attribute_predictability(
        proxy.attribute_model_, fitted._principal_view(X, proxy).take(inside), names[codes[inside]]
    )


def frontier_points(tuned: TunedOrthogonalClassifier) -> dict[str, Any]:
    """The non-dominated points of the search, the chosen one, and the model as it was."""
    searched = tuned.frontier_
    binary = searched.offsets.shape[1] == 2
    untouched = np.flatnonzero(searched.strength == searched.strength.min())
    untouched = untouched[np.argmin(np.abs(searched.offsets[untouched]).sum(axis=1))]

    def point(index: Any) -> dict[str, Any]:
        found: dict[str, Any] = {name: float(getattr(searched, name)[index]) for name in ("strength", "score", "gap")}
        if binary:
            return {**found, "threshold": float(searched.threshold[index])}
        return {**found, "offsets": searched.offsets[index].tolist()}

    return {
        "best": [point(index) for index in searched.pareto()],
        "chosen": point(searched.chosen),
        "untouched": point(untouched),
        "searched": searched.n_tried,
        "score_name": searched.score_name,
        "tolerance": tuned.tolerance,
    }
