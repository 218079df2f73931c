"""``setminus demo``: the tour. Its first part is here; the others come with the package setminus-paper."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from setminus.commands.terminal import Display, check_folder, echo
from setminus.datasets.sources import DataUnavailableError
from setminus.errors import MissingExtraError, UserError
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, append_record, read_records, run_record

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier

    from setminus.datasets.split import Split
    from setminus.estimators.orthogonal import OrthogonalClassifier
    from setminus.estimators.tuned import TunedOrthogonalClassifier

__all__ = ["Part", "demo"]

Records = list[dict[str, Any]]
Summary = list[tuple[str, str, str]]

USAGE = """\
from setminus import ProxyPrincipal, TunedOrthogonalClassifier

model = TunedOrthogonalClassifier(
    your_model, ProxyPrincipal(), constraint="{constraint}", agg="{agg}", tolerance={tolerance:g}
)
model.fit(X, y, sensitive_features=sex)
model.predict(X_new)  # sex is not needed here"""

SETTINGS: dict[str, Any] = {"tolerance": 0.05, "constraint": "equalized_odds", "agg": "max", "cv": 5}
"""The gap that the tuned classifier may leave on the training file, and the folds that strength and threshold are
chosen on."""


@dataclass(frozen=True)
class Part:
    """One part of the tour; those beside fairness are entry points of the group ``setminus.demo``.

    Attributes
    ----------
    title : str
        Above its numbers in the terminal.
    check : callable
        Raises where the part cannot run on this machine: a package or its data is missing.
    run : callable
        From the folder of the tour, the seed and the display to the part's records.
    summary : callable
        From the records to rows: what, what was expected, what was measured.
    """

    title: str
    check: Callable[[], None]
    run: Callable[[Path, int, Display], Records]
    summary: Callable[[Records], Summary]


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the page and its records.")] = Path("report"),
    parts: Annotated[
        str | None,
        typer.Option(
            help="Parts to run, separated by commas: fairness, theory, digits, adaptation. The last two train networks "
            "and take most of the time. All but fairness need the package setminus-paper.",
            show_default="all",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed of fairness and digits. The other parts use fixed seeds.")
    ] = 0,
    picture: Annotated[Path | None, typer.Option(help="PNG or SVG file for a picture of the fairness result.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the path of the page.")] = False,
) -> None:
    """Take a tour on real data: a fair model of census data, the theory, colored digits, and domain adaptation.

    Trained networks are kept: a second tour to the same folder takes less than a minute.

    Example: setminus demo

    Example: setminus demo --parts fairness,theory
    """
    wanted = _find_parts(parts)
    check_folder(out, "--out")
    if picture is not None:
        if "fairness" not in wanted:
            raise UserError("the picture is of the part fairness, which is left out", do="add it to --parts.")
        if picture.suffix.lower() not in (".png", ".svg"):
            raise UserError(f"--picture is {picture.name!r}", expected="a name that ends in .png or .svg")
        check_folder(picture.parent, "--picture")

    display = Display(quiet)
    measured: dict[str, Records] = {}
    failure: Exception | None = None
    for name, part in wanted.items():
        if not _can_run(part, display, needed=parts is not None):
            continue
        try:
            with listen(display):
                measured[name] = part.run(out, seed, display)
        except DataUnavailableError:
            raise
        except UserError as error:
            # the page of the other parts is still written
            failure = error
    if measured:
        with listen(display):
            _show(measured, wanted, out, picture, display)
    if failure is not None:
        raise failure


def _find_parts(given: str | None) -> dict[str, Part]:
    """The parts that are asked for by names between commas, in the order of the tour; all by default."""
    known = {"fairness": FAIRNESS} | {point.name: point.load() for point in entry_points(group="setminus.demo")}
    wanted = list(known) if given is None else [name.strip() for name in given.split(",")]
    for name in wanted:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
            raise UserError(f"the tour has no part {name!r}", do=f"{advice}")
    return {name: part for name, part in known.items() if name in wanted}


def _can_run(part: Part, display: Display, *, needed: bool) -> bool:
    """Whether a part can be had on this machine; if not, why not is said in a line."""
    try:
        part.check()
    except (DataUnavailableError, MissingExtraError) as error:
        if needed:
            raise
        display.warn(f"Left out: {error.lines[0]}")
        return False
    return True


def _fairness(out: Path, seed: int, display: Display) -> Records:
    from threadpoolctl import threadpool_limits

    # a second thread saves two seconds on an idle machine, and costs minutes on a busy one
    with threadpool_limits(1), seconds_by_name() as seconds:
        append_record(out / "records.jsonl", _fair_model(seed, seconds))
    # the page sees nothing but what the files hold
    return read_records(out / "records.jsonl")[-1:]


FAIRNESS = Part("Census data", check=lambda: None, run=_fairness, summary=lambda records: [])


def _show(
    measured: dict[str, Records], parts: dict[str, Part], out: Path, picture: Path | None, display: Display
) -> None:
    """The page, the picture, and the numbers in the terminal; then the path of the page."""
    from setminus.commands.fit import show_models
    from setminus.report.page import write_page

    with tracked("write the page"):
        page = write_page(out / "index.html", [record for records in measured.values() for record in records])
    if picture is not None and "fairness" in measured:
        from setminus.report.fairness import draw_picture

        with tracked("draw the picture"):
            draw_picture(measured["fairness"][0], picture)
    for name, records in measured.items():
        if name == "fairness":
            show_models(records[0], display)
        else:
            display.table((parts[name].title, "paper, or exact", "measured"), parts[name].summary(records))
    echo(page.resolve())


def _fair_model(seed: int, seconds: dict[str, float]) -> Record:
    """The record of a model on Adult, made to ignore sex in two ways, with the audits of all three on the test file."""
    from sklearn.frozen import FrozenEstimator

    from setminus.commands.fitting import attribute_predictability, frontier_points
    from setminus.datasets.tabular import load_adult
    from setminus.estimators.orthogonal import OrthogonalClassifier
    from setminus.estimators.principals import GroupPrincipal, ProxyPrincipal
    from setminus.estimators.tuned import TunedOrthogonalClassifier

    with tracked("read UCI Adult"):
        train, test = load_adult(encoding="raw")
    boosting = _boosting(train, seed)
    with tracked("fit gradient boosting without sex: the model you already have"):
        base = boosting.fit(train.x, train.y)
    with tracked("apply the paper's formula, sex known at predict time"):
        formula = OrthogonalClassifier(FrozenEstimator(base), GroupPrincipal())
        formula.fit(train.x, train.y, sensitive_features=train.z1)
    with (
        tracked(f"tune strength and threshold: {SETTINGS['cv']} folds, sex unknown at predict time"),
        # the page has them
        warnings.catch_warnings(action="ignore", category=UserWarning),
    ):
        tuned = TunedOrthogonalClassifier(
            _boosting(train, seed),
            ProxyPrincipal(_boosting(train, seed)),
            **SETTINGS,
            random_state=seed,
        ).fit(train.x, train.y, sensitive_features=train.z1)
    with tracked("audit all three on the test file"):
        models = _audits(base, formula, tuned, test, seed)
        predicted = attribute_predictability(tuned.model_.principals_[0].attribute_model_, test.x, test.z1)
    settings = {"seed": seed, **SETTINGS}
    record = run_record(
        "demo",
        "fairness",
        settings,
        command=f"setminus demo --seed {seed}",
        task=_task(train, test),
        metrics={
            "attribute_predictability": predicted,
            "models": models,
            "frontier": frontier_points(tuned),
            "choice": tuned.choice_,
            "certificate": None if tuned.certificate_ is None else tuned.certificate_.as_dict(),
            "strength": tuned.strength_,
            "threshold": tuned.threshold_,
        },
        steps=seconds,
        seed=seed,
    )
    return {**record, "warnings": tuned.warnings_, "usage": USAGE.format(**settings)}


def _boosting(train: Split, seed: int) -> HistGradientBoostingClassifier:
    from sklearn.ensemble import HistGradientBoostingClassifier

    categorical = np.isin(train.feature_names, train.categorical)
    return HistGradientBoostingClassifier(categorical_features=categorical, random_state=seed)


def _audits(
    base: Any, formula: OrthogonalClassifier, tuned: TunedOrthogonalClassifier, test: Split, seed: int
) -> list[Record]:
    """Before, by the formula, and tuned: what each is, and its audit."""
    from setminus.auditing.audit import audit

    sex = np.asarray(test.z1)
    full_proba = base.predict_proba(test.x)
    scores: list[tuple[str, str, dict[str, Any]]] = [
        ("before", "Gradient boosting as it is; sex is not among its features.", {"proba": full_proba}),
        (
            "formula",
            "The paper's formula at strength 1; sex is needed at predict time. The formula is meant for a model that "
            "uses sex: this one only infers it from other features, so that the formula removes too much.",
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
        "ignored_columns": ["sex"],
        "rows": {"train": len(train), "test": len(test)},
        "features": list(train.feature_names),
    }
