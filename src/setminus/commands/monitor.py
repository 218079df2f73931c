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
    from numpy.typing import NDArray

    from setminus.auditing.audit import Audit
    from setminus.commands.monitored import MonitoredRows

__all__ = ["MonitorConfig", "monitor", "monitor_tables"]

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
            "and largest share of unseen values in a column. A distance counts only if it is above its noise as well: "
            "rows without any drift exceed one of these noise levels with a probability of at most 1 - confidence.",
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
    """The options of `monitor`, by name: which files to compare, and what may change."""

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


def monitor_tables(config: MonitorConfig, command: str = "") -> Record:
    """Compare two scored tables; for the record, `command` is what the user typed.

    ``record["metrics"]`` has ``"drift"`` (a list), ``"gaps"``, and the ``"verdict"`` with its ``"exit_code"``.
    """
    from setminus.commands.monitored import find_drift, read_monitored
    from setminus.core.gaps import gap_key

    config, promised = _with_certificate(config)
    with seconds_by_name() as seconds:
        with tracked(f"read {Path(config.reference).name} and {Path(config.new).name}"):
            old = read_monitored(config.reference, config)
            new = read_monitored(config.new, config, old)
        with tracked("compare"):
            drift, notes = find_drift(old, new, config)
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


def _audit(rows: MonitoredRows, config: MonitorConfig, constraint: Constraint) -> Audit:
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
    groups = rows.named_groups
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


def _decided(rows: MonitoredRows) -> NDArray[Any]:
    """The decisions, or the most probable classes."""
    if rows.decisions is not None:
        return rows.decisions
    assert rows.proba is not None  # noqa: S101 - one of both was read
    decided: NDArray[Any] = np.asarray(rows.classes)[rows.proba.argmax(axis=1)]
    return decided


def _is_certified(rows: MonitoredRows, config: MonitorConfig) -> bool:
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
