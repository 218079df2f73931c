"""From a labelled table and one without labels to a model for the second, whose class mix may be another."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

from setminus.applications.domain_adaptation.adapter import OrthogonalAdapter
from setminus.applications.domain_adaptation.adapter_parameters import Estimate, PredictPrior
from setminus.applications.domain_adaptation.calibration import calibrator
from setminus.applications.domain_adaptation.findings import Judged, adaptation_findings, adaptation_verdict
from setminus.applications.domain_adaptation.label_shift import (
    black_box_prior,
    class_frequencies,
    confusion,
    maximum_likelihood_prior,
)
from setminus.applications.domain_adaptation.sample_domains import held_out_rows
from setminus.auditing.intervals import rate_interval
from setminus.experiments.fairness_record import Step, Stopwatch
from setminus.experiments.records import Record, versions
from setminus.jobs.domain_tables import Domains, read_domains
from setminus.tables.errors import TableError
from setminus.tables.reading import open_table

__all__ = ["AdaptConfig", "Adapting", "adapt_tables"]

Adapting = Literal["vada_orthogonal", "vada", "vada_iw", "dann"]
Codes = NDArray[np.int64]

HELD_OUT = 0.2
"""The share of source rows that the model without adaptation does not learn from, so that it can be judged by them."""


@dataclass(frozen=True)
class AdaptConfig:
    """What to adapt, to what, and how.

    Parameters
    ----------
    source, target : str
        The file with labels, and the one without. Labels that stand in the second are scored with, never learned from.
    label : str
        The column to predict.
    method, label_shift, shrinkage, predict_prior, steps
        See `OrthogonalAdapter`.
    seed : int
    header, encoding
        See `open_table`.
    """

    source: str
    target: str
    label: str
    method: Adapting = "vada_orthogonal"
    label_shift: Estimate = "em"
    shrinkage: float = 0.0
    predict_prior: PredictPrior = "equal"
    steps: int = 1000
    seed: int = 0
    header: bool | None = None
    encoding: str = "utf-8"


def adapt_tables(config: AdaptConfig, step: Step = nullcontext, command: str = "") -> tuple[Pipeline, Record]:
    """Fit a model for rows like those of the target, and say how far it can be trusted.

    Parameters
    ----------
    config : AdaptConfig
    step : callable
        A progress display, see `Step`.
    command : str
        What the user typed, for the record.

    Returns
    -------
    model : Pipeline
        Fitted; takes frames with the columns of the tables. ``model.about_`` says where it comes from.
    record : dict
        Everything that the page shows.

    Raises
    ------
    TableError
        Where the tables cannot be used as asked.
    """
    try:
        return _adapt(config, Stopwatch(step), command)
    except ValueError as error:
        raise TableError.of(error) from error


def _adapt(config: AdaptConfig, timed: Stopwatch, command: str) -> tuple[Pipeline, Record]:
    with timed(f"read {Path(config.source).name} and {Path(config.target).name}"):
        opened = partial(open_table, header=config.header, encoding=config.encoding)
        domains = read_domains(opened(config.source), opened(config.target), config.label)
    adapter = OrthogonalAdapter(
        config.method,
        label_shift=config.label_shift,
        shrinkage=config.shrinkage,
        predict_prior=config.predict_prior,
        steps=config.steps,
        random_state=config.seed,
    )
    with timed("fit without adaptation"):
        plain = clone(adapter).set_params(method="source_only", predict_prior="equal")
        held = held_out_rows(domains.codes, HELD_OUT, check_random_state(config.seed))
        plain.fit(domains.source[~held], domains.classes[domains.codes[~held]], sample_domain=np.ones((~held).sum()))
    with timed(f"adapt by {config.method}"):
        _fitted(adapter, domains)
    with timed("adapt once more, with another seed"):
        other = _fitted(clone(adapter).set_params(random_state=config.seed + 1), domains)
    record: Record = {
        "name": "adapt",
        "job": "adapted_table",
        "config": asdict(config),
        "seed": config.seed,
        "versions": versions("pyarrow", "torch"),
        "command": command,
        "task": domains.about,
        "metrics": _metrics(domains, plain, held, adapter, other),
        "steps": timed.seconds,
        "seconds": sum(timed.seconds.values()),
    }
    model = Pipeline([("encoder", domains.encoder), ("adapter", adapter)])
    model.about_ = {key: record[key] for key in ("config", "versions", "command", "task")}
    return model, record


def _fitted(adapter: OrthogonalAdapter, domains: Domains) -> OrthogonalAdapter:
    of_both = (len(domains.source), len(domains.target))
    # what stands there for target rows is not looked at
    labels = np.concatenate([domains.classes[domains.codes], np.full(of_both[1], domains.classes[0])])
    rows = np.concatenate([domains.source, domains.target])
    return adapter.fit(rows, labels, sample_domain=np.repeat([1, -1], of_both))


def _metrics(
    domains: Domains,
    plain: OrthogonalAdapter,
    held: NDArray[np.bool_],
    adapter: OrthogonalAdapter,
    other: OrthogonalAdapter,
) -> Record:
    """How often each class comes in each domain, what labelled target rows say, and whether to trust it."""
    n_classes, codes = len(domains.classes), domains.codes[held]
    seen, before = _decided(plain, domains.source[held]), _decided(plain, domains.target)
    after, again = _decided(adapter, domains.target), _decided(other, domains.target)
    estimates = {
        "EM": _by_likelihood(plain, domains, held),
        "BBSE": black_box_prior(confusion(seen, codes, n_classes), class_frequencies(before, n_classes)),
    }
    # of a method without an estimate of its own there are only its decisions, which agree with themselves
    estimated = adapter.target_prior_ if adapter.method in ("vada_orthogonal", "vada_iw") else estimates["EM"]
    mixes = {
        "source": class_frequencies(domains.codes, n_classes),
        "target, estimated": estimated,
        "target, decided": class_frequencies(after, n_classes),
        "target, decided without adaptation": class_frequencies(before, n_classes),
    }
    judged = None
    if len(domains.labelled):
        judged = Judged.of(domains.truth, before[domains.labelled], after[domains.labelled], n_classes)
        mixes["target, labelled rows"] = np.array(judged.mix)
    findings = adaptation_findings(
        recall=float(np.mean([np.mean(seen[codes == k] == k) for k in range(n_classes)])),
        n_classes=n_classes,
        source_mix=mixes["source"],
        estimates=estimates,
        target_mix=estimated,
        decided=mixes["target, decided"],
        alike=float(np.mean(after == again)),
        judged=judged,
    )
    return {
        "mixes": {name: mix.tolist() for name, mix in mixes.items()},
        "accuracy": _accuracies(judged) if judged else {},
        "verdict": adaptation_verdict(findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _decided(model: OrthogonalAdapter, rows: NDArray[np.float64]) -> Codes:
    codes: Codes = model.predict_proba(rows).argmax(axis=1)
    return codes


def _by_likelihood(plain: OrthogonalAdapter, domains: Domains, held: NDArray[np.bool_]) -> NDArray[np.float64]:
    least = np.finfo(np.float64).tiny
    logits, target = (
        np.log(np.maximum(plain.predict_proba(rows), least)) for rows in (domains.source[held], domains.target)
    )
    codes = domains.codes[held]
    calibrated = calibrator(logits, codes).proba(target)
    return maximum_likelihood_prior(calibrated, class_frequencies(codes, len(domains.classes)))


def _accuracies(judged: Judged) -> dict[str, Any]:
    counts = {"without adaptation": judged.before, "adapted": judged.after}
    return {name: asdict(rate_interval(right / judged.n, judged.n)) for name, right in counts.items()}
