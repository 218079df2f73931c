"""``setminus monitor``: what changed between the rows a model was certified on and new ones, and whether it matters."""

from __future__ import annotations

import json as json_format
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from setminus.commands import ExitCode, options
from setminus.commands.terminal import Display, check_outputs, configured, echo, finite, typed_command
from setminus.core import Agg, Constraint
from setminus.errors import UserError
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, run_record, to_json, write_json

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from setminus.auditing.audit import Audit

__all__ = ["MonitorConfig", "monitor", "monitor_tables"]

MAX_ESTIMATED = 20_000
"""The class mix is estimated from this many random rows of each file: more hardly change it."""

N_DRAWS = 2000
"""Simulated samples behind the noise of a distance."""

VERDICTS = {
    "confirmed": "The certificate still applies: the new rows certify a {name} gap of at most {tolerance:g} again.",
    "no sign": "No sign against the certificate: nothing drifted above its limit. Without labels, the {name} gap "
    "itself cannot be measured.",
    "not confirmed": "The certificate is not confirmed: the {name} gap of the new rows is {gap:.3f}, but its upper "
    "bound {bound:.3f} is above {tolerance:g}. More labelled rows are needed.",
    "drifted": "The certificate may no longer apply: {drifted} drifted above the limit. Label new rows, and compare "
    "the groups on them.",
    "in doubt": "The certificate is in doubt: the {name} gap of the new rows is {gap:.3f} ({low:.3f} to {high:.3f}), "
    "above {tolerance:g}.",
    "broken": "The certificate no longer applies: the {name} gap of the new rows is {gap:.3f} "
    "({low:.3f} to {high:.3f}), above {tolerance:g}.",
    "none": "There is no certificate to keep: {source} certify no {name} gap of at most {tolerance:g}.",
    "undefined": "The {name} gap of the new rows is undefined: some group has no rows of a label.",
}
"""The line that says whether the certificate still applies."""


def monitor(
    reference: Annotated[
        Path,
        typer.Argument(
            help="Scored table from the time of the certificate, such as the test rows: CSV, Parquet or Arrow.",
            show_default=False,
        ),
    ],
    new: Annotated[
        Path,
        typer.Argument(
            help="Scored table of new rows, with the same columns. Labels may be missing.", show_default=False
        ),
    ],
    ignore: Annotated[
        list[str],
        typer.Option(help="Column whose groups are compared. Repeat the option for several.", show_default=False),
    ],
    label: Annotated[
        str | None,
        typer.Option(help="Column with the true labels. Some or all new rows may lack them.", show_default=False),
    ] = None,
    score: options.Score = None,
    prediction: Annotated[
        str | None, typer.Option(help="Column with the decisions. By default `prediction`, if there is one.")
    ] = None,
    positive: options.Positive = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            help="Record of `setminus fit`, model.audit.json: its certificate, tolerance, constraint and confidence "
            "are used. Without it, the certificate is computed from the reference rows."
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(callback=finite, min=0, max=1, help="Largest gap allowed between the groups.")
    ] = 0.05,
    constraint: Annotated[
        Constraint, typer.Option(help="Gap to limit. Without labels it is demographic_parity.")
    ] = "equalized_odds",
    agg: options.Aggregate = "max",
    confidence: options.Confidence = 0.95,
    max_drift: Annotated[
        float,
        typer.Option(
            callback=finite,
            min=0,
            max=1,
            help="Largest distance allowed between the scores, the group shares and the class mixes of the two files, "
            "and largest share of unseen values in a column.",
        ),
    ] = 0.1,
    out: Annotated[Path | None, typer.Option(help="JSON file to write the result to.")] = None,
    seed: options.Seed = 0,
    header: options.Header = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Compare new rows of a deployed model with those of its certificate.

    Prints the drift of the scores, of the group shares, of the class mix and of the columns, the gaps where there are
    labels, and one line that says whether the certificate still applies. Exits with code 1 if a drift or the gap is
    above its limit.

    Example: setminus monitor test_scored.parquet week_12_scored.parquet --label income --ignore sex
    """
    config = configured(MonitorConfig, locals())
    check_outputs({"record": out}, [reference, new, certificate], force=force)
    display = Display(quiet or json)
    with listen(display):
        record = monitor_tables(config, typed_command())
    if out is not None:
        from setminus.files import atomic_write

        with atomic_write(out) as partial:
            write_json(partial, record)
    found = record["metrics"]
    if json:
        typer.echo(to_json(record))
    display.table(
        ("drift", "distance", "noise", "limit", "largest change"),
        [
            [
                one["what"],
                f"{one['distance']:.3f}",
                "" if one["noise"] is None else f"{one['noise']:.3f}",
                f"{one['limit']:g}",
                " ".join(filter(None, ("above the limit." if one["above"] else "", one["detail"]))),
            ]
            for one in found["drift"]
        ],
    )
    display.table(
        (f"{found['gap_name']} gap", "value", f"{100 * config.confidence:g} % interval", "rows"),
        [
            [which, *_gap_cells(found["gaps"][which]), f"{found['gaps'][which]['rows']:,}"]
            for which in ("reference", "new")
        ],
    )
    display.say("", *(f"Note: {note}" for note in record["task"]["notes"]))
    if found["verdict"]["exit_code"] == ExitCode.DONE:
        display.say(found["verdict"]["text"])
        return
    echo(found["verdict"]["text"], err=True)
    raise typer.Exit(found["verdict"]["exit_code"])


def _gap_cells(gap: dict[str, Any]) -> tuple[str, str]:
    if gap["value"] is None:
        return "n/a", ""
    return f"{gap['value']:.3f}", f"{gap['low']:.3f} to {gap['high']:.3f}"


@dataclass(frozen=True)
class MonitorConfig:
    """Which files to compare, and what may change.

    Parameters
    ----------
    reference, new : str
        Scored tables.
    ignore : tuple of str
    label : str, optional
    score : tuple of str
    prediction, positive : str, optional
        See `AuditConfig`.
    certificate : str, optional
        A record of ``setminus fit``, whose certificate, tolerance, constraint and confidence are used.
    tolerance : float
    constraint, agg : str
    confidence, max_drift : float
    seed : int
    header : bool, optional
    encoding : str
    decimal : str, optional
    """

    reference: str
    new: str
    ignore: tuple[str, ...]
    label: str | None = None
    score: tuple[str, ...] = ()
    prediction: str | None = None
    positive: str | None = None
    certificate: str | None = None
    tolerance: float = 0.05
    constraint: Constraint = "equalized_odds"
    agg: Agg = "max"
    confidence: float = 0.95
    max_drift: float = 0.1
    seed: int = 0
    header: bool | None = None
    encoding: str = "utf-8"
    decimal: str | None = None


@dataclass(frozen=True)
class _Scored:
    """The rows of one file: the labels are None where a row has none."""

    name: str
    X: pa.Table
    groups: pa.Table
    proba: NDArray[np.float64] | None
    decisions: NDArray[Any] | None
    words: NDArray[Any] | None
    values: tuple[str, ...]
    classes: list[Any]
    taken: set[str]
    """Columns of scores, decisions, labels and groups: all others are features."""

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which rows have a label."""
        if self.words is None:
            return np.zeros(len(self.X), dtype=bool)
        return np.array([word is not None for word in self.words], dtype=bool)

    def codes(self, positive: str | None) -> NDArray[Any]:
        """The labels of the labelled rows, in the terms of `classes`."""
        words = np.array([] if self.words is None else self.words[self.labelled].tolist(), dtype=str)
        return words if positive is None else (words == positive).astype(np.int64)


def monitor_tables(config: MonitorConfig, command: str = "") -> Record:
    """Compare two scored tables.

    Parameters
    ----------
    config : MonitorConfig
    command : str
        What the user typed, for the record.

    Returns
    -------
    dict
        ``record["metrics"]`` has ``"drift"`` (a list), ``"gaps"``, and the ``"verdict"`` with its ``"exit_code"``.

    Raises
    ------
    UserError
        Where the files cannot be compared.
    """
    from setminus.core.gaps import gap_key

    config, promised = _with_certificate(config)
    with seconds_by_name() as seconds:
        with tracked(f"read {Path(config.reference).name} and {Path(config.new).name}"):
            old = _read(config.reference, config)
            new = _read(config.new, config, old)
        with tracked("compare"):
            drift, notes = _drift(old, new, config)
        with tracked("audit"):
            # selection rates need no labels
            judged = config.constraint == "demographic_parity" or bool(new.labelled.any())
            constraint: Constraint = config.constraint if judged else "demographic_parity"
            audits = {which: _audit(rows, config, constraint) for which, rows in (("reference", old), ("new", new))}
            source = f"the rows of {Path(str(config.certificate)).name}"
            if promised is None:
                source, promised = "the reference rows", _is_certified(old, config)
    key = gap_key(constraint, config.agg)
    if not judged:
        notes.append("the new rows have no labels: only selection rates are compared")
    gaps = {which: {**_interval(getattr(one, key)), "rows": one.n} for which, one in audits.items()}
    verdict = _verdict(config, drift, audits["new"], gaps["new"], judged, promised, source)
    return run_record(
        "monitor",
        "monitor",
        config,
        command=command,
        task={
            "reference": Path(config.reference).name,
            "new": Path(config.new).name,
            "label": config.label,
            "ignored": ", ".join(config.ignore),
            "rows": {"reference": len(old.X), "new": len(new.X), "new_labelled": int(new.labelled.sum())},
            "notes": notes,
        },
        metrics={
            "drift": drift,
            "gap_name": constraint.replace("_", " "),
            "gaps": gaps,
            "certified": promised,
            "verdict": verdict,
        },
        steps=seconds,
        packages=("pyarrow",),
    )


def _with_certificate(config: MonitorConfig) -> tuple[MonitorConfig, bool | None]:
    """The settings of a record of ``setminus fit``, and whether it was certified; None without a record."""
    if config.certificate is None:
        return config, None
    try:
        record = json_format.loads(Path(config.certificate).read_text(encoding="utf-8"))
        found, settings = record["metrics"]["certificate"], record["config"]
        names = ("tolerance", "constraint", "agg", "confidence")
        known = {name: settings[name] for name in names if settings[name] is not None}
        return replace(config, **known), found is not None and bool(found["certified"])
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise UserError(
            f"{config.certificate} is no record of setminus fit", do="give the file that it wrote: model.audit.json"
        ) from error


def _read(path: str, config: MonitorConfig, like: _Scored | None = None) -> _Scored:
    """Read a scored file; the second one by what the first one holds."""
    import pyarrow as pa

    from setminus.commands.scored_columns import PREFIX, ScoredColumns
    from setminus.commands.table_roles import MAX_CLASSES, Roles, read_groups
    from setminus.tables.columns import check_names, coded_text, to_numbers, to_text
    from setminus.tables.reading import open_table

    opened = open_table(path, header=config.header, encoding=config.encoding, decimal=config.decimal)
    table, data = opened.load()
    name = table.path.name
    if data.num_rows == 0:
        raise UserError(f"{name} has no rows", do="give a table with rows.")
    check_names(config.ignore, table.names, name)
    groups, _ = read_groups(data, config.ignore)
    judged = config.prediction or ("prediction" if "prediction" in table.names else None)
    if config.label is None:
        named = list(config.score) or [column for column in table.names if column.startswith(PREFIX)]
        check_names([*named, *filter(None, [judged])], table.names, name)
        if judged is None:
            raise UserError("without --label, the decisions are needed", do="name them: --prediction COLUMN")
        proba = np.column_stack([to_numbers(data.column(one), one) for one in named]) if named else None
        if proba is not None and np.isnan(proba).any():
            raise UserError(f"{name} has rows without a score", do="leave those rows out, or score them.")
        decided = to_text(data.column(judged))
        if decided.null_count:
            raise UserError(f"{decided.null_count:,} rows have no decision in {judged}", do="leave those rows out.")
        decisions = np.array(decided.to_pylist(), dtype=str)
        classes = sorted({*decisions.tolist(), *(like.classes if like else ())})
        taken = {*named, judged, *config.ignore}
        return _Scored(name, coded_text(data), groups, proba, decisions, None, (), classes, taken)
    roles = Roles(config.label, config.ignore, config.positive)
    if like is None:
        check_names([config.label], table.names, name)
    words = to_text(data.column(config.label)) if config.label in table.names else None
    known = [] if words is None else words.unique().drop_null().to_pylist()
    values = tuple(sorted(known)) if like is None else like.values
    if like is None and (len(values) < 2 or (config.positive is None and len(values) > MAX_CLASSES)):
        raise UserError(
            f"the label {config.label!r} of {name} has {len(values)} values",
            expected=f"2 to {MAX_CLASSES}",
            do="name the one that counts: --positive VALUE." if len(values) > 2 else "",
        )
    if like is None and config.positive is not None:
        check_names([config.positive], values, f"the label {config.label!r}", what="value")
    listed = None if words is None else np.array(words.to_pylist(), dtype=object)
    strange = sorted({*known} - {*values})
    if strange:
        raise UserError(
            f"the label {config.label!r} of {name} has the value {strange[0]!r}", expected=f"one of {values}"
        )
    columns = ScoredColumns(table, roles, values, pa.chunked_array([np.ones(data.num_rows, dtype=bool)]))
    X = coded_text(data)
    scores = columns.scores(config.score) if config.score or columns.has_scores else {}
    if not scores and judged is None:
        raise UserError(f"{name} has neither scores nor decisions", do="name them: --score or --prediction COLUMN")
    return _Scored(
        name,
        X,
        groups,
        columns.proba(X, scores) if scores else None,
        columns.decisions(X, judged, own=config.prediction is not None)[0] if judged else None,
        listed,
        values,
        columns.classes,
        {*scores.values(), *filter(None, [judged]), config.label, *config.ignore},
    )


# ---- what changed


def _drift(old: _Scored, new: _Scored, config: MonitorConfig) -> tuple[list[dict[str, Any]], list[str]]:
    """The distances of the two files, and notes."""
    rng = np.random.default_rng(config.seed)
    found, notes = [], []

    def add(what: str, distance: float, noise: float | None, detail: str = "") -> None:
        above = distance > config.max_drift and (noise is None or distance > noise)
        found.append(
            {
                "what": what,
                "distance": float(distance),
                "noise": None if noise is None else float(noise),
                "limit": config.max_drift,
                "above": bool(above),
                "detail": detail,
            }
        )

    if old.proba is not None and new.proba is not None:
        if old.proba.shape[1] != new.proba.shape[1]:
            raise UserError("the two files have scores of different classes", do="name the same columns: --score")
        add("scores", *_score_distance(old.proba, new.proba, config.confidence))
    if old.decisions is not None and new.decisions is not None:
        add("decisions", *_share_distance(old.decisions, new.decisions, config.confidence, rng))
    named = _group_names(old, new)
    add("group shares", *_share_distance(*named, config.confidence, rng))
    if new.labelled.any():
        labels = old.codes(config.positive), new.codes(config.positive)
        add("class mix", *_share_distance(*labels, config.confidence, rng))
    if config.label is not None and old.proba is not None and new.proba is not None:
        distance, noise, mix = _estimated_mix(old, new, config, rng)
        add("class mix, estimated", distance, noise, mix)
    columns, note = _unseen(old, new)
    notes += note
    if columns is not None:
        add("unseen values", columns[0], None, columns[1])
    return found, notes


def _score_distance(old: NDArray[np.float64], new: NDArray[np.float64], confidence: float) -> tuple[float, float, str]:
    """The largest distance of the distribution functions (Kolmogorov-Smirnov) of a class, and that of equal ones."""
    from scipy.stats import ks_2samp

    columns = range(old.shape[1]) if old.shape[1] > 2 else [old.shape[1] - 1]
    distance = max(float(ks_2samp(old[:, k], new[:, k], method="asymp").statistic) for k in columns)
    # the level is shared by the classes
    level = (1 - confidence) / len(columns)
    noise = np.sqrt(-np.log(level / 2) / 2 * (1 / len(old) + 1 / len(new)))
    return distance, float(noise), ""


def _share_distance(
    old: NDArray[Any], new: NDArray[Any], confidence: float, rng: np.random.Generator
) -> tuple[float, float, str]:
    """The total variation distance of shares, and that which equal ones exceed by chance."""
    values, codes = np.unique([*map(str, old), *map(str, new)], return_inverse=True)
    counts = [np.bincount(part, minlength=len(values)) for part in (codes[: len(old)], codes[len(old) :])]
    shares = [count / max(count.sum(), 1) for count in counts]
    pooled = (counts[0] + counts[1]) / len(codes)
    drawn = [rng.multinomial(len(part), pooled, N_DRAWS) / max(len(part), 1) for part in (old, new)]
    noise = np.quantile(np.abs(drawn[0] - drawn[1]).sum(axis=1) / 2, confidence)
    most = int(np.abs(shares[0] - shares[1]).argmax())
    detail = f"{values[most]}: {shares[0][most]:.1%} to {shares[1][most]:.1%}"
    return float(np.abs(shares[0] - shares[1]).sum() / 2), float(noise), detail


def _group_names(old: _Scored, new: _Scored) -> tuple[NDArray[Any], NDArray[Any]]:
    """The groups of both files by the bins and names of the first; None for a row without one."""
    from setminus.commands.table_roles import group_names
    from setminus.estimators.groups import Groups

    known = Groups()
    codes = known.learn(old.groups, np.zeros(len(old.X), dtype=np.intp))
    names = group_names(known, old.groups, codes), group_names(known, new.groups)
    return names[0], np.array(["unseen" if name == "" else name for name in names[1]], dtype=object)


def _estimated_mix(
    old: _Scored, new: _Scored, config: MonitorConfig, rng: np.random.Generator
) -> tuple[float, float, str]:
    """The class mix of the new rows as estimated without their labels (EM), against that of the reference.

    The noise is the half width of the widest interval.
    """
    from setminus.adaptation.label_shift import mix_distance
    from setminus.adaptation.prior_correction import prior_correction

    assert old.proba is not None and new.proba is not None  # noqa: S101 - the caller looked
    labels, proba = old.codes(config.positive), old.proba[old.labelled]
    kept = _some(len(labels), rng)
    target = new.proba[_some(len(new.proba), rng)]
    if len(np.unique(labels[kept])) < len(old.classes):
        raise UserError(f"{old.name} lacks rows of some class", do="give more labelled rows of the reference.")
    found = prior_correction(
        proba[kept], labels[kept], target, shrinkage=0.0, confidence=config.confidence, random_state=config.seed
    )
    low, high = found.target_prior_interval
    most = int(np.abs(found.target_prior - found.source_prior).argmax())
    names = old.values if config.positive is None else (f"not {config.positive}", config.positive)
    detail = (
        f"{names[most]}: {found.source_prior[most]:.1%} to {found.target_prior[most]:.1%} "
        f"({low[most]:.1%} to {high[most]:.1%})"
    )
    return mix_distance(found.target_prior, found.source_prior), float((high - low).max() / 2), detail


def _some(n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.arange(n) if n <= MAX_ESTIMATED else np.sort(rng.choice(n, MAX_ESTIMATED, replace=False))


def _unseen(old: _Scored, new: _Scored) -> tuple[tuple[float, str] | None, list[str]]:
    """The largest share of new rows whose value of a column the reference did not have, with the columns in words."""
    from setminus.tables.columns import describe
    from setminus.tables.drift import column_drift, drift_text
    from setminus.tables.encoding import TableEncoder

    features = old.X.select([name for name in old.X.column_names if name not in old.taken])
    kinds = {column.name: column.kind for column in describe(features) if column.kept}
    absent = [name for name in kinds if name not in new.X.column_names]
    notes = [f"{new.name} has no column {name!r}" for name in absent]
    if not kinds:
        return None, notes
    drift = column_drift(new.X, TableEncoder(kinds=kinds).fit(features).columns_)
    worst = max((part.fraction for part in drift.values()), default=0.0)
    return (worst, drift_text(drift)), notes


# ---- whether it matters


def _audit(rows: _Scored, config: MonitorConfig, constraint: Constraint) -> Audit:
    """The audit of the labelled rows, or of the decisions of all rows where only selection rates are compared."""
    from setminus.auditing.audit import audit

    settings: dict[str, Any] = {
        "constraint": constraint,
        "agg": config.agg,
        "tolerance": config.tolerance,
        "confidence": config.confidence,
        "random_state": config.seed,
    }
    decisions = _decided(rows)
    groups = _named_groups(rows.groups)
    if constraint == "demographic_parity":
        return audit(y_pred=decisions, sensitive_features=groups, classes=rows.classes, **settings)
    kept = rows.labelled
    return audit(
        rows.codes(config.positive),
        sensitive_features=groups[kept],
        classes=rows.classes,
        y_pred=decisions[kept],
        **settings,
    )


def _decided(rows: _Scored) -> NDArray[Any]:
    """The decisions, or the most probable classes."""
    if rows.decisions is not None:
        return rows.decisions
    assert rows.proba is not None  # noqa: S101 - one of both was read
    decided: NDArray[Any] = np.asarray(rows.classes)[rows.proba.argmax(axis=1)]
    return decided


def _named_groups(groups: pa.Table) -> NDArray[Any]:
    from setminus.commands.table_roles import group_names
    from setminus.estimators.groups import Groups

    known = Groups()
    return group_names(known, groups, known.learn(groups, np.zeros(len(groups), dtype=np.intp)))


def _is_certified(rows: _Scored, config: MonitorConfig) -> bool:
    """Whether the reference rows certify the gap."""
    if config.constraint != "demographic_parity" and not rows.labelled.any():
        return False
    found = _audit(rows, config, config.constraint).certificate
    return found is not None and found.certified


def _interval(interval: Any) -> dict[str, float | None]:
    values = {name: float(getattr(interval, name)) for name in ("value", "low", "high")}
    return {name: None if np.isnan(value) else value for name, value in values.items()}


def _verdict(
    config: MonitorConfig,
    drift: Sequence[dict[str, Any]],
    result: Audit,
    gap: dict[str, Any],
    judged: bool,
    promised: bool,
    source: str,
) -> dict[str, Any]:
    """The line on the certificate, and the exit code."""
    drifted = [one["what"] for one in drift if one["above"]]
    bound = result.certificate.bound if result.certificate is not None else np.nan
    if judged and gap["value"] is None:
        status, code = "undefined", ExitCode.UNJUDGED
    elif judged and gap["value"] > config.tolerance:
        status, code = "broken" if gap["low"] > config.tolerance else "in doubt", ExitCode.DRIFTED
    elif drifted:
        status, code = "drifted", ExitCode.DRIFTED
    elif not promised:
        status, code = "none", ExitCode.DONE
    elif not judged:
        status, code = "no sign", ExitCode.DONE
    else:
        again = result.certificate is not None and result.certificate.certified
        status, code = "confirmed" if again else "not confirmed", ExitCode.DONE
    values = {
        "name": config.constraint.replace("_", " "),
        "tolerance": config.tolerance,
        "gap": gap["value"],
        "low": gap["low"],
        "high": gap["high"],
        "bound": bound,
        "drifted": ", ".join(drifted),
        "source": source,
    }
    return {"status": status, "text": VERDICTS[status].format(**values), "exit_code": int(code)}
