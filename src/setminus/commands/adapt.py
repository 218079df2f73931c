"""``setminus adapt``: a model for a table without labels, whose class frequencies may differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from setminus.adaptation.adapter_parameters import WITH_PRIOR, Estimate, Method, PredictPrior, check_parameters
from setminus.commands.options import (
    Decimal,
    Encoding,
    Header,
    Json,
    Label,
    Positive,
    Quiet,
    Seed,
    finite,
    typed_command,
)
from setminus.commands.outputs import check_outputs, usage
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, to_json, versions, write_json

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from setminus.adaptation.adapter import OrthogonalAdapter
    from setminus.adaptation.evidence import TargetScores
    from setminus.adaptation.label_shift import Estimator
    from setminus.commands.table_roles import Domains
    from setminus.commands.terminal import Display

__all__ = ["AdaptConfig", "adapt", "adapt_tables"]

Floats = NDArray[np.float64]

HELD_OUT = 0.2
"""Fraction of the source rows on which the model without adaptation is evaluated, instead of trained."""
N_SEEDS = 2**32
"""How many random states numpy has."""
ESTIMATORS: dict[str, Estimator] = {"EM": "em", "BBSE": "bbse"}
MAX_DOMAIN_ROWS = 5_000
"""Rows of each domain, at most, for the classifier of domains."""


def adapt(
    source: Annotated[
        Path,
        typer.Argument(help="Table with labels to learn from: CSV (also .gz), Parquet or Arrow.", show_default=False),
    ],
    target: Annotated[
        Path,
        typer.Argument(
            help="Table to adapt to, with the same columns. If it has labels, they are used for evaluation only.",
            show_default=False,
        ),
    ],
    label: Label,
    out: Annotated[
        Path,
        typer.Option(
            help="Model file to write. adaptation.json and report.html are written to the same folder.",
            show_default=False,
        ),
    ],
    positive: Positive = None,
    method: Annotated[
        Method,
        typer.Option(
            help="vada_orthogonal: align the domains class by class. vada, dann: align all rows. vada_iw: align all "
            "rows, with class weights. source_only: no adaptation."
        ),
    ] = "vada_orthogonal",
    label_shift: Annotated[
        Estimate,
        typer.Option(
            help="How the class frequencies of the target are estimated. em: maximum likelihood. bbse: from the "
            "confusion matrix. pseudo: from the predicted labels, as in the paper."
        ),
    ] = "em",
    shrinkage: Annotated[
        float,
        typer.Option(callback=finite, min=0, max=1, help="Shrink the estimated frequencies toward uniform (0 to 1)."),
    ] = 0.0,
    predict_prior: Annotated[
        PredictPrior,
        typer.Option(
            help="Class frequencies that the predicted probabilities assume. equal: uniform. target: the estimated "
            "ones, for when a class is rare."
        ),
    ] = "equal",
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps.")] = 1000,
    seed: Seed = 0,
    header: Header = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Adapt a model from a labelled table to a table whose rows and class frequencies differ.

    Prints the class frequencies of both tables and checks whether the adapted model can be trusted. A few labels in
    the target make these checks stronger: leave the label of the other rows empty.

    Example: setminus adapt hospital_a.csv hospital_b.csv --label outcome --out adapted.skops
    """
    file, page = out.parent / "adaptation.json", out.parent / "report.html"
    check_outputs({"the model": out, "its record": file, "its page": page}, [source, target])
    import setminus
    from setminus.commands.terminal import Display
    from setminus.files import atomic_writes
    from setminus.report.page import write_page

    display = Display(quiet or json)
    config = AdaptConfig(
        source=str(source),
        target=str(target),
        label=label,
        positive=positive,
        method=method,
        label_shift=label_shift,
        shrinkage=shrinkage,
        predict_prior=predict_prior,
        steps=steps,
        seed=seed,
        header=header,
        encoding=encoding,
        decimal=decimal,
    )
    with listen(display):
        model, record = adapt_tables(config, typed_command())
        record["usage"], record["usage_command"] = usage(out)
        with (
            tracked("write the model, the record and the page"),
            atomic_writes(file, page, out) as (record_part, page_part, model_part),
        ):
            write_json(record_part, record)
            write_page(page_part, [record])
            setminus.save(model, model_part)
    if json:
        typer.echo(to_json(record))
        return
    display.columns(record["task"])
    _show(record, display)
    display.say(f"model   {out}", f"record  {file}", f"page    {page.resolve()}")


def _show(record: Record, display: Display) -> None:
    """The class frequencies, the accuracy where there are labels, the verdict, and the checks that failed."""
    from setminus.report.adapted_table import DRAWN, mix_rows

    metrics = record["metrics"]
    # the page has the others, too
    heads = [name for name in DRAWN if name in metrics["mixes"]]
    shares = [(name, *(f"{100 * some[head]:.1f} %" for head in heads)) for name, some in mix_rows(record)]
    display.table((record["task"]["label"], *heads), shares)
    for name, found in metrics["accuracy"].items():
        ends = f"{100 * found['low']:.1f} to {100 * found['high']:.1f}"
        display.say(f"accuracy on labelled target rows, {name}: {100 * found['value']:.1f} % ({ends})")
    display.say("", metrics["verdict"])
    for finding in metrics["findings"]:
        if finding["status"] != "ok":
            display.say(f"{finding['status']}  {finding['name']}? {finding['evidence']}. {finding['advice']}")
    display.say("")


@dataclass(frozen=True)
class AdaptConfig:
    """What to adapt, to which table, and how.

    Parameters
    ----------
    source, target : str
        The table with labels, and the one without. Labels in the second are used for evaluation only.
    label : str
        The column to predict.
    positive : str, optional
        The value of the label that counts as 1; all others count as 0.
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
    """Fit a model for rows like those of the target, and check whether it can be trusted.

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
    from threadpoolctl import threadpool_limits

    # one thread, as in `fit_table`
    with threadpool_limits(1), seconds_by_name() as seconds:
        return _adapt(config, seconds, command)


def _adapt(config: AdaptConfig, seconds: dict[str, float], command: str) -> tuple[Pipeline, Record]:
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline
    from sklearn.utils import check_random_state

    from setminus.adaptation.adapter import OrthogonalAdapter, held_out_rows
    from setminus.commands.table_roles import Roles, read_domains
    from setminus.tables.reading import open_table

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
        other = _fitted(clone(adapter).set_params(random_state=(config.seed + 1) % N_SEEDS), domains)
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
    # the labels of target rows are placeholders, which the adapter does not read
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
    """The class frequencies of both domains, the accuracy on labelled target rows, and the checks."""
    from setminus.adaptation.evidence import AdaptationEvidence, TargetScores, adaptation_findings, adaptation_verdict
    from setminus.adaptation.label_shift import class_frequencies

    n_classes = len(domains.classes)
    frequencies = partial(class_frequencies, n_classes=n_classes)
    estimates = _estimates(domains, plain, held, adapter, other)
    used = next(iter(estimates.values()))
    delivered = adapter.predict_proba(domains.target)
    # with the same class frequencies as the adapted model
    for_target = adapter.method == "vada_iw" or adapter.predict_prior == "target"
    before = _given(plain.predict_proba(domains.target), adapter.target_prior_ if for_target else None).argmax(axis=1)
    after, again = delivered.argmax(axis=1), other.predict_proba(domains.target).argmax(axis=1)
    evidence = AdaptationEvidence(
        method=adapter.method,
        shrinkage=adapter.shrinkage,
        classes=tuple(domains.classes.tolist()),
        drift=domains.unseen,
        recall=_recall(plain, domains.source[held], domains.codes[held]),
        n_held=int(held.sum()),
        auc=_domain_auc(domains, used),
        source_mix=frequencies(domains.codes),
        estimates=estimates,
        answers=_given(delivered, _instead(adapter, used) if for_target else used).mean(axis=0),
        decided=frequencies(after),
        agreement=float(np.mean(after == again)),
    )
    mixes = {"source": evidence.source_mix, "target, estimated": used}
    if adapter.shrinkage and adapter.method in WITH_PRIOR:
        mixes["target, assumed"] = adapter.target_prior_
    mixes |= {"target, decided": evidence.decided, "target, decided without adaptation": frequencies(before)}
    mixes |= {f"estimated by {name}": mix for name, mix in list(estimates.items())[1:]}
    scores = None
    if len(domains.labelled):
        scores = TargetScores.of(domains.truth, before[domains.labelled], after[domains.labelled], n_classes)
        mixes["target, labelled rows"] = scores.mix
    findings = adaptation_findings(evidence, scores)
    return {
        "mixes": {name: np.asarray(mix).tolist() for name, mix in mixes.items()},
        "accuracy": _accuracies(scores) if scores else {},
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
    from setminus.adaptation.label_shift import prior_from_logits

    least = np.finfo(np.float64).tiny
    logits = [np.log(np.maximum(plain.predict_proba(rows), least)) for rows in (domains.source[held], domains.target)]
    by_plain = {
        f"{name} without adaptation": prior_from_logits(logits[0], domains.codes[held], logits[1], estimator)
        for name, estimator in ESTIMATORS.items()
    }
    # without an estimate of its own, or shrunk to uniform, a model has no frequencies to compare
    if adapter.method not in WITH_PRIOR or adapter.shrinkage == 1:
        return by_plain
    equal = adapter.shrinkage / len(domains.classes)
    own, again = ((model.target_prior_ - equal) / (1 - adapter.shrinkage) for model in (adapter, other))
    return {"the model": own, **by_plain, "another seed": again}


def _instead(adapter: OrthogonalAdapter, mix: Floats) -> Floats | None:
    """The factor from predictions for the model's own class frequencies to those for others; None where it is 1."""
    return mix / adapter.target_prior_ if adapter.shrinkage else None


def _given(proba: Floats, mix: Floats | None) -> Floats:
    """Probabilities for equally frequent classes, changed to those for other class frequencies."""
    joint = proba if mix is None else proba * np.maximum(mix, np.finfo(np.float64).tiny)
    scaled: Floats = joint / joint.sum(axis=1, keepdims=True)
    return scaled


def _recall(model: OrthogonalAdapter, rows: Floats, codes: NDArray[np.int64]) -> float:
    from sklearn.metrics import balanced_accuracy_score

    return float(balanced_accuracy_score(codes, model.predict_proba(rows).argmax(axis=1)))


def _domain_auc(domains: Domains, mix: Floats) -> float:
    """The AUC of a classifier of domains on held-out rows; the source is weighted to the given class frequencies."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    from setminus.adaptation.label_shift import class_frequencies

    rng = np.random.default_rng(0)
    shares = class_frequencies(domains.codes, len(domains.classes))
    weights = [(mix / shares)[domains.codes], np.ones(len(domains.target))]
    some = [rng.permutation(len(weight))[:MAX_DOMAIN_ROWS] for weight in weights]
    X = np.concatenate([domains.source[some[0]], domains.target[some[1]]])
    y = np.repeat([0, 1], [len(rows) for rows in some])
    w = np.concatenate([weight[rows] / weight[rows].mean() for weight, rows in zip(weights, some, strict=True)])
    learn = np.concatenate([np.arange(len(rows)) % 2 == 0 for rows in some])
    model = HistGradientBoostingClassifier(max_iter=50, max_leaf_nodes=8, random_state=0)
    model.fit(X[learn], y[learn], sample_weight=w[learn])
    auc = roc_auc_score(y[~learn], model.predict_proba(X[~learn])[:, 1], sample_weight=w[~learn])
    return float(auc)


def _accuracies(scores: TargetScores) -> dict[str, Any]:
    from setminus.auditing.rates import rate_interval

    counts = {
        "without adaptation": scores.before,
        "adapted": scores.after,
        "always the most frequent class": scores.most_frequent,
    }
    return {name: asdict(rate_interval(right / scores.n, scores.n)) for name, right in counts.items()}
