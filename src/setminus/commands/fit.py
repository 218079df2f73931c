"""``setminus fit``: train a model that ignores columns, tune it, audit it on held-out rows, write it with a page."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from setminus.commands.terminal import (
    Bins,
    Decimal,
    Display,
    Encoding,
    Favorable,
    Force,
    Header,
    Ignore,
    Json,
    Label,
    Positive,
    Quiet,
    Seed,
    Trusted,
    beside,
    check_outputs,
    finite,
    typed_command,
    usage,
)
from setminus.core import Agg, Constraint, ConstraintOver
from setminus.errors import UserError
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, run_record, to_json, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text
    from sklearn.pipeline import Pipeline

    from setminus.commands.table_roles import Roles, Rows
    from setminus.estimators.tuned import TunedOrthogonalClassifier
    from setminus.tables.columns import ColumnSummary
    from setminus.tables.numerals import DecimalSign

__all__ = ["FitConfig", "attribute_predictability", "fit", "fit_table", "frontier_points", "show_models"]

PrincipalKind = Literal["proxy", "group"]

USEFUL, DATA = "What the model must remain good for", "Columns and groups"
"""Headings of options in the help."""

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
            help="Model file to write. For model.skops, model.audit.json and model.report.html are written beside it.",
            show_default=False,
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
        float, typer.Option(callback=finite, min=0, help="Largest gap allowed between the groups.")
    ] = 0.05,
    confidence: Annotated[
        float,
        typer.Option(
            callback=finite,
            min=0,
            max=0.9999,
            help="Confidence that a certified model's gap on new rows is within the tolerance. 0: no certificate; the "
            "gap on new rows is then often larger.",
        ),
    ] = 0.95,
    uncertified: Annotated[
        Literal["warn", "raise"],
        typer.Option(
            help="If no model can be certified: warn and take the one most likely within the tolerance, or stop."
        ),
    ] = "warn",
    favorable: Favorable = None,
    scoring: Annotated[
        str,
        typer.Option(
            rich_help_panel=USEFUL,
            help="What to maximise within the tolerance: accuracy, balanced_accuracy, f1, or another scorer of "
            "scikit-learn.",
        ),
    ] = "accuracy",
    cost_fp: Annotated[
        float | None,
        typer.Option(
            callback=finite,
            min=0,
            rich_help_panel=USEFUL,
            help="Cost of a false positive, with --cost-fn: minimise the mean cost instead of --scoring.",
        ),
    ] = None,
    cost_fn: Annotated[
        float | None,
        typer.Option(callback=finite, min=0, rich_help_panel=USEFUL, help="Cost of a false negative."),
    ] = None,
    min_lead: Annotated[
        float,
        typer.Option(
            callback=finite,
            min=0,
            max=1,
            rich_help_panel=USEFUL,
            help="Share of the model's lead over a constant decision to keep. 0 admits constant decisions.",
        ),
    ] = 0.5,
    min_selection_rate: Annotated[
        float | None,
        typer.Option(
            callback=finite, min=0, max=1, rich_help_panel=USEFUL, help="Select at least this share of the rows."
        ),
    ] = None,
    max_selection_rate: Annotated[
        float | None,
        typer.Option(
            callback=finite, min=0, max=1, rich_help_panel=USEFUL, help="Select at most this share of the rows."
        ),
    ] = None,
    min_recall: Annotated[
        float | None,
        typer.Option(
            callback=finite, min=0, max=1, rich_help_panel=USEFUL, help="Keep at least this true positive rate."
        ),
    ] = None,
    level_up: Annotated[
        bool,
        typer.Option(
            "--level-up", rich_help_panel=USEFUL, help="Close the gap without lowering any group's true positive rate."
        ),
    ] = False,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=DATA,
            help="Column to leave out, such as an outcome that is known only afterwards. Repeat the option, or "
            "separate names by commas.",
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=DATA, help="Column to learn from; all others are left out. Several: as for --drop."
        ),
    ] = None,
    bins: Bins = None,
    constraint_over: Annotated[
        ConstraintOver,
        typer.Option(
            rich_help_panel=DATA,
            help="Groups to compare if --ignore names several columns: of their combinations (crossed), of each "
            "column, or both.",
        ),
    ] = "crossed",
    min_group_size: Annotated[
        int,
        typer.Option(
            min=1,
            rich_help_panel=DATA,
            help="Smallest number of rows in a group, for each label that the constraint compares.",
        ),
    ] = 10,
    small_groups: Annotated[
        Literal["merge", "drop", "raise"],
        typer.Option(
            rich_help_panel=DATA,
            help="Groups with fewer rows. merge: make one group of them. drop: they train the model and count in no "
            "gap. raise: stop.",
        ),
    ] = "merge",
    test: Annotated[
        Path | None, typer.Option(help="Table to evaluate on. By default some rows of TABLE are held out.")
    ] = None,
    test_size: Annotated[float, typer.Option(callback=finite, help="Fraction of the rows to hold out.")] = 0.25,
    seed: Seed = 0,
    header: Header = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = None,
    trust: Trusted = None,
    force: Force = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train a classifier that ignores columns such as sex, and audit it.

    Cross-validation chooses how much to remove and the decision threshold: the most accurate choice that is certified
    to keep the gap between groups within the tolerance. Held-out rows then compare the model before and after.

    Example: setminus fit adult.csv --label income --ignore sex --out model.skops
    """
    audit_file, page = beside(out, "audit.json"), beside(out, "report.html")
    check_outputs(
        {"the model": out, "its audit record": audit_file, "its page": page},
        [table, Path(full), *([] if test is None else [test])],
        force=force,
    )
    from setminus.estimators.persistence import save
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
        confidence=confidence or None,
        uncertified=uncertified,
        favorable=favorable,
        scoring=scoring,
        cost_fp=cost_fp,
        cost_fn=cost_fn,
        min_lead=min_lead,
        min_selection_rate=min_selection_rate,
        max_selection_rate=max_selection_rate,
        min_recall=min_recall,
        level_up=level_up,
        drop=tuple(drop or ()),
        features=tuple(features or ()),
        bins=tuple(bins or ()),
        constraint_over=constraint_over,
        min_group_size=min_group_size,
        small_groups=small_groups,
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
        record["usage"], record["usage_command"] = usage(out, needs, config.trusted)
        with (
            tracked("write the model, the audit and the page"),
            atomic_writes(audit_file, page, out) as (audit_part, page_part, model_part),
        ):
            write_json(audit_part, record)
            write_page(page_part, [record])
            save(model, model_part)
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
    constraint, agg, tolerance, confidence, uncertified, scoring, min_lead, min_selection_rate, max_selection_rate, \
    min_recall, constraint_over, min_group_size, small_groups
        See `TunedOrthogonalClassifier`.
    favorable : str, optional
        The value of the label that is good for a person.
    cost_fp, cost_fn : float, optional
        Both or none: costs of the two errors.
    level_up : bool
        Whether the true positive rate may fall in no group.
    drop, features : tuple of str
        Columns to leave out, and the only ones to learn from; several names may stand in one text, between commas.
    bins : tuple of str
        Edges of ignored columns of numbers, as ``AGE=40,62``.
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
    confidence: float | None = 0.95
    uncertified: Literal["warn", "raise"] = "warn"
    favorable: str | None = None
    scoring: str = "accuracy"
    cost_fp: float | None = None
    cost_fn: float | None = None
    min_lead: float = 0.5
    min_selection_rate: float | None = None
    max_selection_rate: float | None = None
    min_recall: float | None = None
    level_up: bool = False
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    bins: tuple[str, ...] = ()
    constraint_over: ConstraintOver = "crossed"
    min_group_size: int = 10
    small_groups: Literal["merge", "drop", "raise"] = "merge"
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

        return Roles(self.label, self.ignore, self.positive, self.drop, self.features, self.favorable)

    @property
    def edges(self) -> dict[str | int, Sequence[float]]:
        """The edges in `bins`, by column."""
        from setminus.commands.table_roles import read_bins

        return read_bins(self.bins, self.ignore)

    @property
    def costs(self) -> dict[str, float] | None:
        """The costs of the two errors."""
        if self.cost_fp is None and self.cost_fn is None:
            return None
        if self.cost_fp is None or self.cost_fn is None:
            raise UserError("one of --cost-fp and --cost-fn is missing", do="give both: only their ratio matters.")
        if self.scoring != "accuracy":
            raise UserError(f"the costs and --scoring {self.scoring} are two aims", do="give one of them.")
        return {"fp": self.cost_fp, "fn": self.cost_fn}

    def check(self) -> None:
        """Raise for settings that contradict each other, before any file is read."""
        from sklearn.metrics import get_scorer_names

        from setminus.commands.table_roles import check_limit
        from setminus.tables.columns import check_names

        check_limit("--tolerance", self.tolerance, self.agg)
        check_names([self.scoring], get_scorer_names(), "scikit-learn", what="scorer")
        low, high = self.min_selection_rate, self.max_selection_rate
        if low is not None and high is not None and low > high:
            raise UserError(
                f"--min-selection-rate {low:g} is above --max-selection-rate {high:g}", do="exchange or change them."
            )
        if self.uncertified == "raise" and self.confidence is None:
            raise UserError("--uncertified raise needs a --confidence", do="give one, such as 0.95.")
        if self.test is not None and Path(self.test).exists() and Path(self.test).samefile(self.table):
            raise UserError(
                f"--test is {self.test}, the table that the model learns from",
                do="give other rows, or leave --test out: some rows are then held out.",
            )


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

    from setminus.core.gaps import gap_key
    from setminus.estimators.persistence import model_errors

    # wrong options are refused before the file is read
    config.check()
    edges, costs = config.edges, config.costs
    with tracked(f"read {Path(config.table).name}"):
        train, test = _train_and_test(config, edges)
        columns = train.features(config.roles)
    model = _model(config, columns, train.X.column_names)
    model.set_params(bins=edges or None, costs=costs)
    labels = config.roles.class_names
    if isinstance(model.full, FrozenEstimator):
        with model_errors(Path(config.full).name):
            train, labels = train.labelled_by(model.full.classes_, config.roles, Path(config.full).name)
            test, _ = test.labelled_by(model.full.classes_, config.roles, Path(config.full).name)
    model.favorable_label = _favorable(config, train.y, labels)
    features = list(model.full.feature_names_in_) if isinstance(model.full, FrozenEstimator) else _kept(columns)
    if isinstance(model.full, FrozenEstimator):
        # here, where it is clear who fails
        with model_errors(Path(config.full).name):
            model.full.predict_proba(train.X.select(features))
    visible = [*dict.fromkeys([*features, *(model.sensitive_columns or ())])]
    with (
        tracked(f"fit, remove {', '.join(config.ignore)}, tune on {model.cv} folds"),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always", UserWarning)
        keyword = {} if model.sensitive_columns else {"sensitive_features": train.groups}
        model.fit(train.X.select(visible), train.y, **keyword)
    test, notes = _known_only(test, model)
    with tracked(f"audit before and after on {len(test):,} rows"):
        audited = _audits(model, test.X.select(visible), test, config)
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
            "rows": {"train": len(train), "test": len(test)},
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
    # those on groups are among the notes
    said = [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
    about_groups = {f"{note}." for note in model.groups_.notes()}
    record["warnings"] = [one for one in dict.fromkeys([*said, *model.warnings_]) if one not in about_groups]
    model.about_ = {key: record[key] for key in ("config", "versions", "command", "task")}
    model.about_["test"] = {
        name: {key: entry["audit"][key] for key in ("accuracy", bounded)}
        for name, entry in zip(("before", "after"), models, strict=True)
    }
    return model, record


def _train_and_test(config: FitConfig, edges: dict[str | int, Sequence[float]]) -> tuple[Rows, Rows]:
    from setminus.commands.table_roles import check_bins, read_rows, split_rows, without_rare_labels
    from setminus.estimators.groupings import Groupings, needed_labels
    from setminus.tables.columns import check_names
    from setminus.tables.reading import open_table

    def rows(path: str, decimal: DecimalSign | None = None) -> Rows:
        table = open_table(path, header=config.header, encoding=config.encoding, decimal=config.decimal)
        return read_rows(table.like(decimal), config.roles)

    train = without_rare_labels(rows(config.table), config.roles)
    check_bins(edges, train.groups)
    if config.test is None:
        known = Groupings(
            config.constraint_over, least=config.min_group_size, small=config.small_groups, bins=edges or None
        )
        needed = needed_labels(config.constraint, len(np.unique(train.y)))
        return split_rows(train, config.test_size, config.seed, known, needed)
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
                f"the model in {config.full} does not say which columns it takes",
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
        GroupPrincipal() if grouped else ProxyPrincipal(pipeline),
        constraint=config.constraint,
        agg=config.agg,
        tolerance=config.tolerance,
        confidence=config.confidence,
        uncertified=config.uncertified,
        scoring=config.scoring,
        min_lead=config.min_lead,
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


def _audits(model: TunedOrthogonalClassifier, X: Any, test: Rows, config: FitConfig) -> list[tuple[str, list[Record]]]:
    """The audits before and after, for each grouping by its title."""
    from setminus.auditing.audit import audit
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
        ("after", f"With {chosen}, chosen by cross-validation. To predict, {known}.", after),
    ]
    settings: dict[str, Any] = {"classes": [classes[k] for k in order], "random_state": config.seed}
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
    # with more groups than two, or one that the test rows lack, there is no single AUC
    auc = float(roc_auc_score(groups, proba[:, 1])) if len(names) == proba.shape[1] == 2 else None
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


def show_models(record: Record, display: Display) -> None:
    """The audits of a fairness record side by side, what was chosen, and whether it kept the tolerance."""
    from setminus.core.gaps import gap_key
    from setminus.report.fairness import GAPS

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
    groupings = record["metrics"].get("groupings", [])
    if len(groupings) > 1:
        gap = GAPS[gap_key(record["config"]["constraint"], record["config"]["agg"])]
        display.table(
            (f"{gap} between the groups of", "before", "after"),
            [[one["title"], _interval(one["before"]), _interval(one["after"])] for one in groupings],
        )
    display.say("", *_outcome(record), "")


def _interval(interval: dict[str, Any]) -> Text:
    from rich.text import Text

    if interval["value"] is None:
        return Text("n/a")
    return Text.assemble(f"{interval['value']:.3f} ", (f"{interval['low']:.3f}-{interval['high']:.3f}", "dim"))


def _outcome(record: Record) -> list[str]:
    from setminus.core.gaps import gap_key
    from setminus.report.fairness import GAPS

    frontier, after = record["metrics"]["frontier"], record["metrics"]["models"][-1]["audit"]
    chosen, tolerance = frontier["chosen"], frontier["tolerance"]
    threshold = f", threshold {chosen['threshold']:.2f}" if "threshold" in chosen else ""
    bounded = gap_key(record["config"]["constraint"], record["config"]["agg"])
    gap = after[bounded]["value"]
    measured = "n/a" if gap is None else f"{gap:.3f}"
    kept = gap is not None and gap <= tolerance
    lines = [
        *_promise(record["metrics"], tolerance),
        f"Strength {chosen['strength']:g}{threshold}. The {GAPS[bounded].lower()} is "
        f"{chosen['gap']:.3f} in cross-validation and {measured} on the test rows; the tolerance is {tolerance:g}"
        + ("." if kept else ", which the test rows exceed."),
    ]
    if any(row["selection_rate"]["value"] == 0 for row in after["group_rates"]):
        lines.append(
            "Note: for at least one group, some class is never predicted. Allow a larger gap, or choose another "
            "constraint."
        )
    return [*lines, *(f"Warning: {warning}" for warning in record.get("warnings", []))]


def _promise(metrics: dict[str, Any], tolerance: float) -> list[str]:
    """What is promised of the gap on new rows; nothing where nothing was asked."""
    certificate = metrics.get("certificate")
    if certificate is None:
        return []
    level = f"{100 * certificate['confidence']:g} %"
    bound = f"the upper bound of the gap is {certificate['bound']:.3f} at {level} confidence"
    alone = metrics["choice"] == "left alone"
    if certificate["certified"]:
        kept = "Left alone: the model as it was keeps the tolerance" if alone else "Certified"
        return [f"{kept}. For new rows {bound}, the tolerance is {tolerance:g}."]
    if alone:
        return [f"Left alone: the gap of the model as it was is what equal groups would show by chance; {bound}."]
    return [f"Not certified: {bound}, the tolerance is {tolerance:g}."]
