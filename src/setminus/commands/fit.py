"""``setminus fit``: train a model that ignores columns, tune it, audit it on held-out rows, write it with a page."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from setminus.commands.options import (
    Decimal,
    Encoding,
    Header,
    Ignore,
    Json,
    Label,
    Positive,
    Quiet,
    Seed,
    Trusted,
    finite,
    gap_key,
    typed_command,
)
from setminus.commands.outputs import check_outputs, usage
from setminus.core import Agg, Constraint
from setminus.errors import UserError
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, to_json, versions, write_json

if TYPE_CHECKING:
    from rich.text import Text
    from sklearn.pipeline import Pipeline

    from setminus.commands.table_roles import Roles, Rows
    from setminus.commands.terminal import Display
    from setminus.estimators.tuned import TunedOrthogonalClassifier
    from setminus.tables.columns import ColumnSummary
    from setminus.tables.numerals import DecimalSign

__all__ = ["FitConfig", "attribute_predictability", "fit", "fit_table", "frontier_points", "show_models"]

PrincipalKind = Literal["proxy", "group"]

# names short enough for three models in 80 columns
SHOWN = {
    "accuracy": "accuracy",
    "equalized odds, sum": "equalized_odds_sum",
    "equalized odds, max": "equalized_odds_max",
    "demographic parity": "demographic_parity",
}
MAX_RATES = 12
"""Rates by group beyond this are left to the page."""


def fit(
    table: Annotated[
        Path, typer.Argument(help="Table to learn from: CSV (also .gz), Parquet or Arrow.", show_default=False)
    ],
    label: Label,
    ignore: Ignore,
    out: Annotated[
        Path,
        typer.Option(
            help="Model file to write. audit.json and report.html are written to the same folder.", show_default=False
        ),
    ],
    positive: Positive = None,
    full: Annotated[
        str,
        typer.Option(
            help="Classifier to make fair: hist_gradient_boosting, logistic, or a saved model file, which is not "
            "trained again."
        ),
    ] = "hist_gradient_boosting",
    principal: Annotated[
        PrincipalKind,
        typer.Option(
            help="Whether new rows need the ignored columns. proxy: no, they are estimated from the features. "
            "group: yes."
        ),
    ] = "proxy",
    constraint: Annotated[
        Constraint,
        typer.Option(
            help="Gap between groups to keep small. equal_opportunity compares the recall of the --positive value, or "
            "of the second of two classes."
        ),
    ] = "equalized_odds",
    agg: Annotated[
        Agg,
        typer.Option(
            help="How equalized odds combines the gaps of the classes: their maximum, or their sum as in the paper."
        ),
    ] = "max",
    tolerance: Annotated[
        float, typer.Option(callback=finite, min=0, help="Largest gap allowed, as measured by cross-validation.")
    ] = 0.05,
    test: Annotated[
        Path | None, typer.Option(help="Table to evaluate on. By default some rows of TABLE are held out.")
    ] = None,
    test_size: Annotated[float, typer.Option(callback=finite, help="Fraction of the rows to hold out.")] = 0.25,
    seed: Seed = 0,
    header: Header = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = None,
    trust: Trusted = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a classifier that ignores columns such as sex, and audit it.

    Cross-validation chooses how much to remove (the strength) and the decision threshold: the most accurate pair
    whose gap between groups is within the tolerance. Held-out rows then compare the model before and after.

    Example: setminus fit adult.csv --label income --ignore sex --out model.skops
    """
    audit_file, page = out.parent / "audit.json", out.parent / "report.html"
    check_outputs(
        {"the model": out, "its audit record": audit_file, "its page": page},
        [table, Path(full), *([] if test is None else [test])],
    )
    import setminus
    from setminus.commands.terminal import Display
    from setminus.files import atomic_writes
    from setminus.report.page import write_page

    display = Display(quiet or json)
    config = FitConfig(
        table=str(table),
        label=label,
        ignore=tuple(ignore),
        positive=positive,
        full=full,
        principal=principal,
        constraint=constraint,
        agg=agg,
        tolerance=tolerance,
        test=None if test is None else str(test),
        test_size=test_size,
        seed=seed,
        header=header,
        encoding=encoding,
        decimal=decimal,
        trusted=tuple(trust or ()),
    )
    with listen(display):
        model, record = fit_table(config, typed_command())
        needs = "with the ignored columns" if record["task"]["groups_needed"] else "the ignored columns may be left out"
        record["usage"], record["usage_command"] = usage(out, needs)
        with (
            tracked("write the model, the audit and the page"),
            atomic_writes(audit_file, page, out) as (audit_part, page_part, model_part),
        ):
            write_json(audit_part, record)
            write_page(page_part, [record])
            setminus.save(model, model_part)
    if json:
        typer.echo(to_json(record))
        return
    display.columns(record["task"])
    show_models(record, display)
    display.say(f"model  {out}", f"audit  {audit_file}", f"page   {page.resolve()}")


@dataclass(frozen=True)
class FitConfig:
    """What to fit, on which data, and how large the gap between groups may be.

    Parameters
    ----------
    table : str
        The table to learn from.
    label : str
        The column to predict.
    ignore : tuple of str
        The columns that predictions must not depend on.
    positive : str, optional
        The value of the label that counts as 1.
    full : str
        "hist_gradient_boosting", "logistic", or the path of a saved model to take as it is.
    principal : {"proxy", "group"}
        Whether the ignored columns are unknown when the model predicts, or known.
    constraint, agg, tolerance
        See `TunedOrthogonalClassifier`.
    test : str, optional
        A table to evaluate on; without it, `test_size` of the rows are held out.
    test_size : float
    seed : int
    header : bool, optional
        Whether the first line of the files holds column names; detected by default.
    encoding : str
    decimal : str, optional
        The decimal sign of the files; detected from all rows by default.
    trusted : tuple of str
        Types that a saved `full` may hold, see `setminus.load`.
    """

    table: str
    label: str
    ignore: tuple[str, ...]
    positive: str | None = None
    full: str = "hist_gradient_boosting"
    principal: PrincipalKind = "proxy"
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
        from setminus.commands.table_roles import Roles

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
    from threadpoolctl import threadpool_limits

    # one thread: on a busy machine a second one costs minutes, on an idle one it saves seconds
    with threadpool_limits(1), seconds_by_name() as seconds:
        return _fit(config, seconds, command)


def _fit(config: FitConfig, seconds: dict[str, float], command: str) -> tuple[Any, Record]:
    from sklearn.frozen import FrozenEstimator

    from setminus.commands.table_roles import group_names
    from setminus.estimators.groups import Groups
    from setminus.estimators.persistence import model_errors
    from setminus.estimators.principals import ProxyPrincipal

    with tracked(f"read {Path(config.table).name}"):
        train, test = _train_and_test(config)
        columns = train.features(config.roles)
        known = Groups(least=2)
        codes = np.unique(train.y, return_inverse=True)[1].astype(np.intp)
        train_groups = group_names(known, train.groups, known.learn(train.groups, codes))
        test_groups = group_names(known, test.groups)
        test, test_groups, notes = _known_only(test, test_groups)
    model = _model(config, columns, train.X.column_names)
    features = list(model.full.feature_names_in_) if isinstance(model.full, FrozenEstimator) else _kept(columns)
    if isinstance(model.full, FrozenEstimator):
        # here, where it is clear who fails
        with model_errors(Path(config.full).name):
            model.full.predict_proba(train.X.select(features))
    visible = [*dict.fromkeys([*features, *(model.sensitive_columns or ())])]
    X, X_test = train.X.select(visible), test.X.select(visible)
    with tracked(f"fit, remove {', '.join(config.ignore)}, tune on {model.cv} folds"):
        keyword = {} if model.sensitive_columns else {"sensitive_features": train_groups}
        model.fit(X, train.y, **keyword)
    with tracked(f"audit before and after on {len(test):,} rows"):
        models = _audits(model, X_test, test.y, test_groups, config.seed)
        proxy = model.model_.principals_[0]
        by_proxy = isinstance(proxy, ProxyPrincipal)
        predicted = attribute_predictability(proxy.attribute_model_, X_test, test_groups) if by_proxy else None
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
            "ignored_columns": [*config.ignore],
            "rows": {"train": len(train), "test": len(test)},
            "features": features,
            "columns": [asdict(column) for column in columns],
            "notes": [*train.notes, *notes],
            # a table to predict for may leave the sign open
            "decimal": None if train.decimal is None else train.decimal._asdict(),
            "groups_needed": model.sensitive_columns is not None,
        },
        "metrics": {
            "attribute_predictability": predicted,
            "models": models,
            "frontier": frontier_points(model),
            "strength": model.strength_,
            "threshold": getattr(model, "threshold_", None),
        },
        "steps": seconds,
        "seconds": sum(seconds.values()),
    }
    model.about_ = {key: record[key] for key in ("config", "versions", "command", "task")}
    bounded = gap_key(config.constraint, config.agg)
    model.about_["test"] = {
        name: {key: entry["audit"][key] for key in ("accuracy", bounded)}
        for name, entry in zip(("before", "after"), models, strict=True)
    }
    return model, record


def _train_and_test(config: FitConfig) -> tuple[Rows, Rows]:
    from setminus.commands.table_roles import read_rows, split_rows
    from setminus.tables.columns import check_names
    from setminus.tables.reading import open_table

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


def _known_only(test: Rows, groups: Any) -> tuple[Rows, Any, list[str]]:
    """The test rows of groups that the training rows have, and a note on the others."""
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
        raise UserError("no column is left to learn from", do="every column is constant, or names rows.")
    return kept


def _model(config: FitConfig, columns: list[ColumnSummary], present: list[str]) -> TunedOrthogonalClassifier:
    from sklearn.frozen import FrozenEstimator

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


def _audits(model: TunedOrthogonalClassifier, X: Any, y: Any, groups: Any, seed: int) -> list[Record]:
    from setminus.auditing.audit import audit
    from setminus.estimators.principals import GroupPrincipal

    full, principals = model.model_._parts(X, None)
    grouped = isinstance(model.model_.principals_[0], GroupPrincipal)
    chosen = f"strength {model.strength_:g}"
    if hasattr(model, "threshold_"):
        chosen += f" and threshold {model.threshold_:.2f}"
    known = "the groups are read from the table" if grouped else "the groups are not needed"
    entries: list[tuple[str, str, dict[str, Any]]] = [
        ("before", "The full classifier, unchanged.", {"proba": full}),
        (
            "after",
            f"With {chosen}, chosen by cross-validation. To predict, {known}.",
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


def attribute_predictability(attribute_model: Any, X: Any, groups: Any) -> dict[str, float | None]:
    """How well a model predicts the ignored attribute from the other features, on test rows."""
    from sklearn.metrics import roc_auc_score

    groups = np.asarray(groups)
    names, counts = np.unique(groups, return_counts=True)
    proba = attribute_model.predict_proba(X)
    # with more groups than two, or one that the test rows lack, there is no single AUC
    auc = float(roc_auc_score(groups, proba[:, 1])) if len(names) == proba.shape[1] == 2 else None
    return {
        "auc": auc,
        "accuracy": float(np.mean(attribute_model.predict(X) == groups)),
        "largest_group": float(counts.max() / counts.sum()),
    }


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
        "gap_name": searched.gap_name,
        "constraint": tuned.constraint,
        "agg": tuned.agg,
        "tolerance": tuned.tolerance,
    }


def show_models(record: Record, display: Display) -> None:
    """The audits of a fairness record side by side, what was chosen, and whether it kept the tolerance."""
    models = record["metrics"]["models"]
    rows: list[list[str | Text]] = [
        [title, *(_interval(model["audit"][key]) for model in models)] for title, key in SHOWN.items()
    ]
    rates = models[0]["audit"]["group_rates"]
    one_label = len(rates) == len({str(rate["group"]) for rate in rates})
    for rate in rates[:MAX_RATES]:
        cells = [
            row["true_positive_rate"]
            for model in models
            for row in model["audit"]["group_rates"]
            if row["group"] == rate["group"] and row["label"] == rate["label"]
        ]
        of = "" if one_label else f" of {rate['label']}"
        rows.append([f"TPR{of}, {rate['group']}", *map(_interval, cells)])
    level = f"{100 * models[0]['audit']['confidence']:g} % intervals"
    heads = (f"{record['task']['rows']['test']:,} test rows, {level}", *(model["title"] for model in models))
    display.table(heads, rows)
    if len(rates) > MAX_RATES:
        display.say(f"and {len(rates) - MAX_RATES} more rates on the page")
    display.say("", *_outcome(record), "")


def _interval(interval: dict[str, Any]) -> Text:
    from rich.text import Text

    if interval["value"] is None:
        return Text("n/a")
    return Text.assemble(f"{interval['value']:.3f} ", (f"{interval['low']:.3f}-{interval['high']:.3f}", "dim"))


def _outcome(record: Record) -> list[str]:
    frontier, after = record["metrics"]["frontier"], record["metrics"]["models"][-1]["audit"]
    chosen, tolerance = frontier["chosen"], frontier["tolerance"]
    threshold = f", threshold {chosen['threshold']:.2f}" if "threshold" in chosen else ""
    gap = after[gap_key(frontier["constraint"], frontier["agg"])]["value"]
    measured = "n/a" if gap is None else f"{gap:.3f}"
    kept = gap is not None and gap <= tolerance
    lines = [
        f"Strength {chosen['strength']:g}{threshold}. The {frontier['gap_name'].replace('_', ' ')} gap is "
        f"{chosen['gap']:.3f} in cross-validation and {measured} on the test rows; the tolerance is {tolerance:g}"
        + ("." if kept else ", which the test rows exceed.")
    ]
    if any(row["selection_rate"]["value"] == 0 for row in after["group_rates"]):
        lines.append(
            "Note: for at least one group, some class is never predicted. Allow a larger gap, or choose another "
            "constraint."
        )
    return lines
