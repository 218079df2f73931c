"""From a labelled table and one without labels to a model for the second, whose class mix may be another."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from setminus.adaptation.adapter import OrthogonalAdapter, held_out_rows
from setminus.adaptation.adapter_parameters import (
    WITH_PRIOR,
    Estimate,
    Method,
    PredictPrior,
    check_parameters,
)
from setminus.adaptation.evidence import AdaptationEvidence, TargetScores, adaptation_findings, adaptation_verdict
from setminus.adaptation.label_shift import Estimator, class_frequencies, prior_from_logits
from setminus.auditing.rates import rate_interval
from setminus.commands.domain_tables import Domains, read_domains
from setminus.commands.rows import Roles
from setminus.progress import seconds_by_name, tracked
from setminus.records import Record, versions
from setminus.tables.reading import open_table

__all__ = ["AdaptConfig", "adapt_tables"]

Floats = NDArray[np.float64]

HELD_OUT = 0.2
"""The share of source rows that the model without adaptation does not learn from, so that it can be judged by them."""
MOST_SEEDS = 2**32
"""Of numpy's random states."""
ESTIMATORS: dict[str, Estimator] = {"EM": "em", "BBSE": "bbse"}
MOST_TOLD = 5_000
"""Rows of each domain, at most, that a classifier learns to tell apart."""


@dataclass(frozen=True)
class AdaptConfig:
    """What to adapt, to what, and how.

    Parameters
    ----------
    source, target : str
        The file with labels, and the one without. Labels that stand in the second are scored with, never learned from.
    label : str
        The column to predict.
    positive : str, optional
        The value of the label that counts against all others.
    method, label_shift, shrinkage, predict_prior, steps
        See `OrthogonalAdapter`.
    seed : int
    header, encoding, decimal
        See `open_table`.
    """

    source: str
    target: str
    label: str
    positive: str | None = None
    method: Method = "vada_orthogonal"
    label_shift: Estimate = "em"
    shrinkage: float = 0.0
    predict_prior: PredictPrior = "equal"
    steps: int = 1000
    seed: int = 0
    header: bool | None = None
    encoding: str = "utf-8"
    decimal: str | None = None


def adapt_tables(config: AdaptConfig, command: str = "") -> tuple[Pipeline, Record]:
    """Fit a model for rows like those of the target, and say how far it can be trusted.

    Parameters
    ----------
    config : AdaptConfig
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
    UserError
        Where the tables cannot be used as asked.
    """
    # one thread, as in `fit_table`
    with threadpool_limits(1), seconds_by_name() as seconds:
        return _adapt(config, seconds, command)


def _adapt(config: AdaptConfig, seconds: dict[str, float], command: str) -> tuple[Pipeline, Record]:
    roles = Roles(config.label, (), config.positive)
    adapter = OrthogonalAdapter(
        config.method,
        label_shift=config.label_shift,
        shrinkage=config.shrinkage,
        predict_prior=config.predict_prior,
        steps=config.steps,
        random_state=config.seed,
    )
    check_parameters(adapter.get_params())
    with tracked(f"read {Path(config.source).name} and {Path(config.target).name}"):
        opened = partial(open_table, header=config.header, encoding=config.encoding, decimal=config.decimal)
        domains = read_domains(opened(config.source), opened(config.target), roles)
    with tracked("fit without adaptation"):
        plain = clone(adapter).set_params(method="source_only", predict_prior="equal")
        held = held_out_rows(domains.codes, HELD_OUT, check_random_state(config.seed))
        plain.fit(domains.source[~held], domains.classes[domains.codes[~held]], sample_domain=np.ones((~held).sum()))
    with tracked(f"adapt by {config.method}"):
        _fitted(adapter, domains)
    with tracked("adapt once more, with another seed"):
        other = _fitted(clone(adapter).set_params(random_state=(config.seed + 1) % MOST_SEEDS), domains)
    record: Record = {
        "name": "adapt",
        "job": "adapted_table",
        "config": asdict(config),
        "seed": config.seed,
        "versions": versions("pyarrow", "torch"),
        "command": command,
        "task": domains.about,
        "metrics": _metrics(domains, plain, held, adapter, other),
        "steps": seconds,
        "seconds": sum(seconds.values()),
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
    n_classes = len(domains.classes)
    frequencies = partial(class_frequencies, n_classes=n_classes)
    estimates = _estimates(domains, plain, held, adapter, other)
    used = next(iter(estimates.values()))
    delivered = adapter.predict_proba(domains.target)
    # as the adapted model, with or without the new mix in its answers
    for_target = adapter.method == "vada_iw" or adapter.predict_prior == "target"
    before = _given(plain.predict_proba(domains.target), adapter.target_prior_ if for_target else None).argmax(axis=1)
    after, again = delivered.argmax(axis=1), other.predict_proba(domains.target).argmax(axis=1)
    seen = AdaptationEvidence(
        method=adapter.method,
        shrinkage=adapter.shrinkage,
        classes=tuple(domains.classes.tolist()),
        drift=domains.strange,
        recall=_recall(plain, domains.source[held], domains.codes[held]),
        n_held=int(held.sum()),
        auc=_told_apart(domains, used),
        source_mix=frequencies(domains.codes),
        estimates=estimates,
        answers=_given(delivered, _instead(adapter, used) if for_target else used).mean(axis=0),
        decided=frequencies(after),
        agreement=float(np.mean(after == again)),
    )
    mixes = {"source": seen.source_mix, "target, estimated": used}
    if adapter.shrinkage and adapter.method in WITH_PRIOR:
        mixes["target, assumed"] = adapter.target_prior_
    mixes |= {"target, decided": seen.decided, "target, decided without adaptation": frequencies(before)}
    mixes |= {f"estimated by {name}": mix for name, mix in list(estimates.items())[1:]}
    judged = None
    if len(domains.labelled):
        judged = TargetScores.of(domains.truth, before[domains.labelled], after[domains.labelled], n_classes)
        mixes["target, labelled rows"] = judged.mix
    findings = adaptation_findings(seen, judged)
    return {
        "mixes": {name: np.asarray(mix).tolist() for name, mix in mixes.items()},
        "accuracy": _accuracies(judged) if judged else {},
        "verdict": adaptation_verdict(findings),
        "findings": [asdict(finding) for finding in findings],
    }


def _estimates(
    domains: Domains,
    plain: OrthogonalAdapter,
    held: NDArray[np.bool_],
    adapter: OrthogonalAdapter,
    other: OrthogonalAdapter,
) -> dict[str, Floats]:
    """The target's class frequencies, first as the adapted model has them, before they were shrunk."""
    least = np.finfo(np.float64).tiny
    logits = [np.log(np.maximum(plain.predict_proba(rows), least)) for rows in (domains.source[held], domains.target)]
    by_plain = {
        f"{name} without adaptation": prior_from_logits(logits[0], domains.codes[held], logits[1], estimator)
        for name, estimator in ESTIMATORS.items()
    }
    # a method without an estimate of its own has its decisions only; of one that is shrunk to nothing nothing is left
    if adapter.method not in WITH_PRIOR or adapter.shrinkage == 1:
        return by_plain
    equal = adapter.shrinkage / len(domains.classes)
    own, again = ((model.target_prior_ - equal) / (1 - adapter.shrinkage) for model in (adapter, other))
    return {"the model": own, **by_plain, "another seed": again}


def _instead(adapter: OrthogonalAdapter, mix: Floats) -> Floats | None:
    """What to multiply answers for the model's own mix by, so that they are for another; None where that is it."""
    return mix / adapter.target_prior_ if adapter.shrinkage else None


def _given(proba: Floats, mix: Floats | None) -> Floats:
    """Probabilities for equally frequent classes as those for a mix."""
    joint = proba if mix is None else proba * np.maximum(mix, np.finfo(np.float64).tiny)
    scaled: Floats = joint / joint.sum(axis=1, keepdims=True)
    return scaled


def _recall(model: OrthogonalAdapter, rows: Floats, codes: NDArray[np.int64]) -> float:
    return float(balanced_accuracy_score(codes, model.predict_proba(rows).argmax(axis=1)))


def _told_apart(domains: Domains, mix: Floats) -> float:
    """The AUC of a classifier of domains on half of the rows, with the source's weighted to a class mix."""
    rng = np.random.default_rng(0)
    shares = class_frequencies(domains.codes, len(domains.classes))
    weights = [(mix / shares)[domains.codes], np.ones(len(domains.target))]
    some = [rng.permutation(len(weight))[:MOST_TOLD] for weight in weights]
    X = np.concatenate([domains.source[some[0]], domains.target[some[1]]])
    y = np.repeat([0, 1], [len(rows) for rows in some])
    w = np.concatenate([weight[rows] / weight[rows].mean() for weight, rows in zip(weights, some, strict=True)])
    learn = np.concatenate([np.arange(len(rows)) % 2 == 0 for rows in some])
    model = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=8, random_state=0)
    model.fit(X[learn], y[learn], sample_weight=w[learn])
    auc = roc_auc_score(y[~learn], model.predict_proba(X[~learn])[:, 1], sample_weight=w[~learn])
    return float(auc)


def _accuracies(judged: TargetScores) -> dict[str, Any]:
    counts = {
        "without adaptation": judged.before,
        "adapted": judged.after,
        "always the most frequent class": judged.most_frequent,
    }
    return {name: asdict(rate_interval(right / judged.n, judged.n)) for name, right in counts.items()}
