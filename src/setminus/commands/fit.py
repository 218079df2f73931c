"""``setminus fit``: train a model that ignores columns, tune it, audit it on held-out rows, write it with a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from setminus.commands import options
from setminus.commands.filing import Filing, write_outputs
from setminus.commands.terminal import Display, beside, check_outputs, configured, finite, typed_command, usage
from setminus.core import Agg, Constraint, ConstraintOver
from setminus.errors import UserError
from setminus.progress import listen, tracked
from setminus.records import Record, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from setminus.commands.table_roles import Roles

__all__ = ["FitConfig", "fit", "show_models"]

PrincipalKind = Literal["proxy", "group"]

USEFUL, DATA = "Objective and limits", "Columns and groups"
"""Headings of options in the help."""


def _limit(text: str, most: float | None = None) -> Any:
    """An option with a number of at least 0."""
    return typer.Option(callback=finite, min=0, max=most, rich_help_panel=USEFUL, help=text)


def fit(
    table: Annotated[
        Path, typer.Argument(help="Table to learn from: CSV (also .gz), Parquet or Arrow.", show_default=False)
    ],
    label: options.Label,
    ignore: options.Ignore,
    out: Annotated[
        Path,
        typer.Option(
            help="Model file to write. For model.skops, model.audit.json and model.report.html are written beside it.",
            show_default=False,
        ),
    ],
    positive: options.Positive = None,
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
    interpolate: Annotated[
        bool,
        typer.Option(
            "--interpolate",
            help="With --principal group and two classes: near the threshold of a group, narrow strips of the "
            "score are selected and rejected alternately. Where the gap between large groups must be small, this is "
            "more accurate, but a slightly higher score is not always selected.",
        ),
    ] = False,
    constraint: Annotated[
        Constraint,
        typer.Option(
            help="Gap between groups to keep small. equal_opportunity compares the recall of the --positive value, or "
            "of the second of two classes."
        ),
    ] = "equalized_odds",
    agg: options.Aggregate = "max",
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
    favorable: options.Favorable = None,
    scoring: Annotated[
        str,
        typer.Option(
            rich_help_panel=USEFUL,
            help="What to maximise within the tolerance: accuracy, balanced_accuracy, f1, or another scorer of "
            "scikit-learn.",
        ),
    ] = "accuracy",
    cost_fp: Annotated[
        float | None, _limit("Cost of a false positive, with --cost-fn: minimise the mean cost instead of --scoring.")
    ] = None,
    cost_fn: Annotated[float | None, _limit("Cost of a false negative.")] = None,
    min_lead: Annotated[
        float,
        _limit(
            "Keep at least this share of the model's advantage over a constant decision. 0 allows a constant decision.",
            1,
        ),
    ] = 0.7,
    min_rate_ratio: Annotated[
        float,
        _limit(
            "Predict each class at least this often, as a share of how often the full classifier predicts it. "
            "Without this limit the gap could be closed by selecting fewer rows of every group. 0: no limit.",
            1,
        ),
    ] = 0.9,
    min_selection_rate: Annotated[float | None, _limit("Select at least this share of the rows.", 1)] = None,
    max_selection_rate: Annotated[float | None, _limit("Select at most this share of the rows.", 1)] = None,
    min_recall: Annotated[float | None, _limit("Keep at least this true positive rate.", 1)] = None,
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
            rich_help_panel=DATA,
            help="Column to learn from; all others are left out. Repeat the option, or separate names by commas.",
        ),
    ] = None,
    bins: options.Bins = None,
    constraint_over: Annotated[
        ConstraintOver,
        typer.Option(
            rich_help_panel=DATA,
            help="Groups to compare if --ignore names several columns. crossed: the combinations of the columns. each: "
            "the groups of each column by itself. both: all of these.",
        ),
    ] = "crossed",
    min_group_size: Annotated[
        int | None,
        typer.Option(
            min=1,
            rich_help_panel=DATA,
            help="Smallest number of rows in a group, for each label that the constraint compares. Default: 20, or 2 "
            "if fewer than two groups have 20.",
        ),
    ] = None,
    small_groups: Annotated[
        Literal["merge", "drop", "raise"],
        typer.Option(
            rich_help_panel=DATA,
            help="What to do with smaller groups. merge: make one group of them. drop: use them for training, not in "
            "gaps. raise: stop.",
        ),
    ] = "merge",
    test: Annotated[
        Path | None, typer.Option(help="Table to evaluate on. By default some rows of TABLE are held out.")
    ] = None,
    test_size: Annotated[float, typer.Option(callback=finite, help="Fraction of the rows to hold out.")] = 0.25,
    max_train_rows: Annotated[
        int,
        typer.Option(
            min=1000,
            help="Largest number of rows to learn from. All other rows of a Parquet or Arrow file choose the decision, "
            "certify it and evaluate it, a part at a time.",
        ),
    ] = 1_000_000,
    seed: options.Seed = 0,
    header: options.Header = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    trust: options.Trusted = None,
    card: options.Card = None,
    pdf: options.Pdf = None,
    approved_by: options.ApprovedBy = None,
    notes: options.Notes = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Train a classifier that ignores columns such as sex, and audit it.

    Cross-validation chooses how much to remove and the decision threshold: the most accurate choice that is certified
    to keep the gap between groups within the tolerance. Held-out rows then compare the model before and after.

    Example: setminus fit adult.csv --label income --ignore sex --out model.skops
    """
    config = configured(FitConfig, {**locals(), "confidence": confidence or None, "trusted": trust})
    audit_file, page = beside(out, "audit.json"), beside(out, "report.html")
    files = {"record": audit_file, "page": page, "card": card, "pdf": pdf, "model": out}
    check_outputs(files, [table, Path(full), test, notes], force=force)
    filing = Filing.of(approved_by, notes, pdf)
    from setminus.commands.fitting import fit_table
    from setminus.estimators.persistence import save

    display = Display(quiet or json)
    with listen(display):
        model, record = fit_table(config, typed_command(), filing)
        needs = "with the ignored columns" if record["task"]["groups_needed"] else "the ignored columns may be left out"
        record["usage"], record["usage_command"] = usage(out, needs, config.trusted)
        with tracked("write the model, the audit and the page"):
            write_outputs(record, files, lambda path: save(model, path))
    if json:
        typer.echo(to_json(record))
        return
    display.columns(record["task"])
    show_models(record, display)
    display.say(f"model  {out}", f"audit  {audit_file}", f"page   {page.resolve()}")
    display.say(*(f"{kind:<6} {path}" for kind, path in (("card", card), ("pdf", pdf)) if path is not None))


@dataclass(frozen=True)
class FitConfig:
    """The options of `fit`, by name: what to fit, on which data, and how large the gap between groups may be.

    `confidence` is None without a certificate, `trusted` is ``--trust``. The settings that
    `TunedOrthogonalClassifier` has under the same name are described there, `interpolate` by `GroupPrincipal`.
    """

    table: str
    label: str
    ignore: tuple[str, ...]
    positive: str | None = None
    full: str = "hist_gradient_boosting"
    principal: PrincipalKind = "proxy"
    interpolate: bool = False
    constraint: Constraint = "equalized_odds"
    agg: Agg = "max"
    tolerance: float = 0.05
    confidence: float | None = 0.95
    uncertified: Literal["warn", "raise"] = "warn"
    favorable: str | None = None
    scoring: str = "accuracy"
    cost_fp: float | None = None
    cost_fn: float | None = None
    min_lead: float = 0.7
    min_rate_ratio: float = 0.9
    min_selection_rate: float | None = None
    max_selection_rate: float | None = None
    min_recall: float | None = None
    level_up: bool = False
    drop: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    bins: tuple[str, ...] = ()
    constraint_over: ConstraintOver = "crossed"
    min_group_size: int | None = None
    small_groups: Literal["merge", "drop", "raise"] = "merge"
    test: str | None = None
    test_size: float = 0.25
    max_train_rows: int = 1_000_000
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
            raise UserError(f"both costs and --scoring {self.scoring} were given", do="give one of them.")
        return {"fp": self.cost_fp, "fn": self.cost_fn}

    def check(self) -> None:
        """Raise for settings that contradict each other, before any file is read."""
        from sklearn.metrics import get_scorer_names

        from setminus.commands.table_roles import check_limit
        from setminus.tables.columns import check_names

        check_limit("--tolerance", self.tolerance, self.agg)
        if self.interpolate and self.principal != "group":
            raise UserError(
                "--interpolate without --principal group",
                do="add --principal group, if new rows have the ignored columns: the bands are those of known groups.",
            )
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


# names short enough for three models in 80 columns
SHOWN = {
    "accuracy": "accuracy",
    "equalized odds, sum": "equalized_odds_sum",
    "equalized odds, max": "equalized_odds_max",
    "demographic parity": "demographic_parity",
}
SHORT = {"TPR": "true_positive_rate", "FPR": "false_positive_rate", "selected": "selection_rate"}
MAX_RATES = 6
"""Rates of more groups are left to the page."""


def show_models(record: Record, display: Display) -> None:
    """The audits of a fairness record side by side, what was chosen, and whether it kept the tolerance."""
    from setminus.auditing.plot import label_name
    from setminus.core.gaps import gap_key
    from setminus.report.fairness import GAPS

    models = record["metrics"]["models"]
    rows: list[list[str | Text]] = [
        [title, *(_interval(model["audit"][key]) for model in models)] for title, key in SHOWN.items()
    ]
    rates = models[0]["audit"]["group_rates"]
    one_label = len(rates) == len({str(rate["group"]) for rate in rates})
    for short, key in SHORT.items():
        for rate in _named(models, rates, key):
            cells = [
                row[key]
                for model in models
                for row in model["audit"]["group_rates"]
                if row["group"] == rate["group"] and row["label"] == rate["label"]
            ]
            of = "" if one_label else f" of {rate['label']}"
            rows.append([f"{short}{of}, {label_name(rate['group'])}", *map(_interval, cells)])
    level = f"{100 * models[0]['audit']['confidence']:g} % intervals"
    heads = (f"{record['task']['rows']['test']:,} test rows, {level}", *(model["title"] for model in models))
    display.table(heads, rows)
    if len(rates) > MAX_RATES:
        display.say("Of many groups, those with the lowest and the highest rates are shown; the page has all.")
    groupings = record["metrics"].get("groupings", [])
    if len(groupings) > 1:
        gap = GAPS[gap_key(record["config"]["constraint"], record["config"]["agg"])]
        display.table(
            (f"{gap} between the groups of", "before", "after"),
            [[one["title"], _interval(one["before"]), _interval(one["after"])] for one in groupings],
        )
    display.say("", *_outcome(record), "")


def _named(models: Sequence[Record], rates: Sequence[Record], key: str) -> list[Record]:
    """The groups whose rates are shown: all, or of many those with the lowest and the highest one of some model."""
    if len(rates) <= MAX_RATES:
        return [*rates]
    ends = []
    for model in models:
        known = [row for row in model["audit"]["group_rates"] if row[key]["value"] is not None]
        ordered = sorted(known, key=lambda row: row[key]["value"])
        ends += [(row["group"], row["label"]) for row in (*ordered[:1], *ordered[-1:])]
    return [rate for rate in rates if (rate["group"], rate["label"]) in ends]


def _interval(interval: dict[str, Any]) -> Text:
    from rich.text import Text

    if interval["value"] is None:
        return Text("n/a")
    return Text.assemble(f"{interval['value']:.3f} ", (f"{interval['low']:.3f}-{interval['high']:.3f}", "dim"))


def _outcome(record: Record) -> list[str]:
    from setminus.core.gaps import gap_key
    from setminus.report.fairness import GAPS
    from setminus.report.page import outcome_text

    frontier, after = record["metrics"]["frontier"], record["metrics"]["models"][-1]["audit"]
    chosen, tolerance = frontier["chosen"], frontier["tolerance"]
    threshold = f", threshold {chosen['threshold']:.2f}" if "threshold" in chosen else ""
    bounded = gap_key(record["config"]["constraint"], record["config"]["agg"])
    gap = after[bounded]["value"]
    measured = "n/a" if gap is None else f"{gap:.3f}"
    kept = gap is not None and gap <= tolerance
    lines = [
        outcome_text(record),
        f"Strength {chosen['strength']:g}{threshold}. The {GAPS[bounded].lower()} is "
        f"{chosen['gap']:.3f} on the tuning rows and {measured} on the test rows; the tolerance is {tolerance:g}"
        + ("." if kept else ", which the test rows exceed."),
    ]
    if any(row["selection_rate"]["value"] == 0 for row in after["group_rates"]):
        lines.append(
            "Note: for at least one group, some class is never predicted. Allow a larger gap, or choose another "
            "constraint."
        )
    return [*lines, *(f"Warning: {warning}" for warning in record.get("warnings", []))]
