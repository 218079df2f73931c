"""``setminus adapt``: a model for a table without labels, whose class frequencies may differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from setminus.adaptation.adapter_parameters import Estimate, Method, PredictPrior, check_parameters
from setminus.commands import ExitCode, options
from setminus.commands.filing import write_outputs
from setminus.commands.terminal import Display, beside, check_outputs, configured, finite, typed_command, usage
from setminus.progress import listen, seconds_by_name, tracked
from setminus.records import Record, run_record, to_json

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

    from setminus.adaptation.evidence import TargetScores
    from setminus.adaptation.label_shift import Estimator
    from setminus.adaptation.prior_correction import PriorCorrectedClassifier
    from setminus.commands.table_roles import Domains

__all__ = [
    "AdaptConfig",
    "AdaptMethod",
    "adapt",
    "adapt_tables",
    "another_seed",
    "automatic_model",
    "compared",
    "corrected_model",
    "fitted",
    "requested_model",
]

Floats = NDArray[np.float64]
TINY = np.finfo(np.float64).tiny

AdaptMethod = Literal[Method, "corrected"]
"""The last is no adapter: the source's model, corrected for the target's class frequencies."""
N_SEEDS = 2**32
"""How many random states numpy has."""
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
    label: options.Label,
    out: Annotated[
        Path,
        typer.Option(
            help="Model file to write. For model.skops, model.adaptation.json and model.report.html are written beside "
            "it.",
            show_default=False,
        ),
    ],
    positive: options.Positive = None,
    method: Annotated[
        AdaptMethod,
        typer.Option(
            help="auto: choose between a linear model corrected for the target's class frequencies and networks with "
            "or without adaptation, by evidence that needs no target labels. vada_orthogonal: align the domains class "
            "by class. vada, dann: align all rows. vada_iw: align all rows, with class weights. source_only: no "
            "adaptation. corrected: a linear model, corrected for the target's class frequencies without training."
        ),
    ] = "auto",
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
            help="Class frequencies that the predicted probabilities assume. auto: the target's for --method auto, "
            "otherwise equal. equal: uniform. target: the estimated ones; use them if a class is rare."
        ),
    ] = "auto",
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps.")] = 1000,
    seed: options.Seed = 0,
    header: options.Header = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Adapt a model from a labelled table to a table whose rows and class frequencies differ.

    Prints the class frequencies of both tables, compares the adapted model with two models without adaptation, and
    recommends one. A few labels in the target make the comparison stronger: leave the label of the other rows empty.
    Exit code 1: the adapted model is not recommended.

    Example: setminus adapt hospital_a.csv hospital_b.csv --label outcome --out adapted.skops
    """
    config = configured(AdaptConfig, locals())
    file, page = beside(out, "adaptation.json"), beside(out, "report.html")
    files = {"record": file, "page": page, "model": out}
    check_outputs(files, [source, target], force=force)
    from setminus.estimators.persistence import save

    display = Display(quiet or json)
    with listen(display):
        model, record = adapt_tables(config, typed_command())
        record["usage"], record["usage_command"] = usage(out)
        with tracked("write the model, the record and the page"):
            write_outputs(record, files, lambda path: save(model, path))
    if json:
        typer.echo(to_json(record))
    else:
        display.columns(record["task"])
        _show(record, display)
        display.say(f"model   {out}", f"record  {file}", f"page    {page.resolve()}")
    if record["metrics"]["recommended"] != "adapted":
        raise typer.Exit(ExitCode.NOT_RECOMMENDED)


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
    for name, mix in metrics["predicted"].items():
        if name != "adapted":
            display.say(f"{100 * mix['agreement']:.1f} % of the target rows get the same class from the model {name!r}")
    if metrics["kept"]:
        display.say(f"kept by auto: {metrics['kept']['kept']}, because {metrics['kept']['reason']}")
    display.say("", metrics["verdict"], f"Recommended model: {metrics['recommended']}.")
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
    method : str
        See `OrthogonalAdapter`; or "corrected", a `PriorCorrectedClassifier` of logistic regression.
    label_shift, shrinkage, predict_prior, steps
        See `OrthogonalAdapter`.
    seed : int
    header, encoding, decimal
        See `open_table`.
    """

    source: str
    target: str
    label: str
    positive: str | None = None
    method: AdaptMethod = "auto"
    label_shift: Estimate = "em"
    shrinkage: float = 0.0
    predict_prior: PredictPrior = "auto"
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
    from sklearn.pipeline import Pipeline

    from setminus.commands.table_roles import Roles, read_domains
    from setminus.tables.reading import open_table

    roles = Roles(config.label, (), config.positive)
    model = requested_model(config)
    with tracked(f"read {Path(config.source).name} and {Path(config.target).name}"):
        opened = partial(open_table, header=config.header, encoding=config.encoding, decimal=config.decimal)
        domains = read_domains(opened(config.source), opened(config.target), roles)
    with tracked("fit without adaptation, and correct for the class frequencies"):
        corrected = fitted(corrected_model(config), domains)
    with tracked(f"adapt by {config.method}"):
        fitted(model, domains)
    with tracked("adapt once more, with another seed"):
        other = another_seed(model, domains, config.seed)
    automatic = None
    # the corrected model needs no torch: without it, other checks decide
    if config.method != "auto" and find_spec("torch"):
        with tracked("adapt by auto, to compare"):
            automatic = fitted(automatic_model(config), domains)
    record = run_record(
        "adapt",
        "adapted_table",
        config,
        command=command,
        task=domains.about,
        metrics=compared(domains, corrected, model, other, automatic),
        steps=seconds,
        packages=("pyarrow", "torch"),
    )
    pipeline = Pipeline([("encoder", domains.encoder), ("adapter", model)])
    pipeline.about_ = {key: record[key] for key in ("config", "versions", "command", "task")}
    return pipeline, record


def requested_model(config: AdaptConfig) -> Any:
    """The model that was asked for, with its parameters checked."""
    from setminus.adaptation.adapter import OrthogonalAdapter

    if config.method == "corrected":
        return corrected_model(config)
    adapter = OrthogonalAdapter(
        config.method,
        label_shift=config.label_shift,
        shrinkage=config.shrinkage,
        predict_prior=config.predict_prior,
        steps=config.steps,
        random_state=config.seed,
    )
    check_parameters(adapter.get_params())
    return adapter


def automatic_model(config: AdaptConfig) -> Any:
    """The model of the method "auto", beside which the others are judged."""
    from setminus.adaptation.adapter import OrthogonalAdapter

    return OrthogonalAdapter(steps=config.steps, random_state=config.seed)


def corrected_model(config: AdaptConfig) -> PriorCorrectedClassifier:
    """Logistic regression, corrected for the target's class frequencies."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from setminus.adaptation.prior_correction import PriorCorrectedClassifier

    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    prior: Estimator = "bbse" if config.label_shift == "bbse" else "em"
    return PriorCorrectedClassifier(linear, prior, random_state=config.seed)


def fitted(model: Any, domains: Domains) -> Any:
    """The model, fitted to the rows of both domains and the labels of the source."""
    of_both = (len(domains.source), len(domains.target))
    # the labels of target rows are placeholders, which no model reads
    labels = np.concatenate([domains.classes[domains.codes], np.full(of_both[1], domains.classes[0])])
    rows = np.concatenate([domains.source, domains.target])
    return model.fit(rows, labels, sample_domain=np.repeat([1, -1], of_both))


def another_seed(model: Any, domains: Domains, seed: int) -> Any:
    """The model, fitted with the next seed; itself where its training has nothing random in it."""
    from sklearn.base import clone

    if len(getattr(model, "layers_", ())) == 1:
        return model
    return fitted(clone(model).set_params(random_state=(seed + 1) % N_SEEDS), domains)


def compared(
    domains: Domains, corrected: PriorCorrectedClassifier, model: Any, other: Any, automatic: Any = None
) -> Record:
    """Compare an adapted model with models without adaptation: class frequencies, accuracy where known, the checks.

    Parameters
    ----------
    domains : Domains
    corrected : PriorCorrectedClassifier
        The model of the source, `classifier_`, and its correction.
    model, other : classifier
        The adapted model, and the same with another seed.
    automatic : classifier, optional
        The model of the method "auto", if that is another one.

    Returns
    -------
    dict
        The metrics of a record.
    """
    from setminus.adaptation.evidence import AdaptationEvidence, TargetScores, adaptation_findings, adaptation_verdict
    from setminus.adaptation.label_shift import class_frequencies

    n_classes = len(domains.classes)
    frequencies = partial(class_frequencies, n_classes=n_classes)
    estimates = _estimates(corrected, model, other)
    assumed, kept = _assumed(model), getattr(model, "evidence_", None)
    used = next(iter(estimates.values()))
    delivered = model.predict_proba(domains.target)
    decided = {
        "source only": corrected.classifier_.predict_proba(domains.target).argmax(axis=1),
        "corrected": corrected.predict_proba(domains.target).argmax(axis=1),
        "adapted": delivered.argmax(axis=1),
    }
    expected = None
    if automatic is not None:
        by_auto = automatic.predict_proba(domains.target)
        expected = {name: float(by_auto[np.arange(len(by_auto)), codes].mean()) for name, codes in decided.items()}
        decided["auto"] = by_auto.argmax(axis=1)
    after, again = decided["adapted"], other.predict_proba(domains.target).argmax(axis=1)
    auc, auc_error = _domain_auc(domains, used)
    evidence = AdaptationEvidence(
        method=getattr(model, "method", "corrected"),
        shrinkage=_shrunk(model),
        classes=tuple(domains.classes.tolist()),
        drift=domains.unseen,
        recall=corrected.diagnostics_["balanced_accuracy"],
        n_held=len(domains.codes),
        auc=auc,
        auc_error=auc_error,
        source_mix=frequencies(domains.codes),
        estimates=estimates,
        answers=_given(delivered, (used if kept is None else assumed) / np.maximum(assumed, TINY)).mean(axis=0),
        decided=frequencies(after),
        agreement=float(np.mean(after == again)),
        corrected=frequencies(decided["corrected"]),
        least=corrected.target_prior_interval_[0],
        assumed=None if kept is None else assumed,
        trust=kept and kept["trust"],
        unexplained=kept and kept["unexplained"],
        column_error=kept and kept["column_error"],
        expected_accuracy=expected,
    )
    mixes = {"source": evidence.source_mix, "target, estimated": used}
    if (_shrunk(model) or kept) and "the model" in estimates:
        mixes["target, assumed"] = model.target_prior_ if hasattr(model, "method") else model.assumed_prior_
    mixes |= {"target, decided": evidence.decided}
    others = [name for name in decided if name != "adapted"]
    mixes |= {f"target, decided by {name}": frequencies(decided[name]) for name in others}
    mixes |= {f"estimated by {name}": mix for name, mix in list(estimates.items())[1:]}
    scores = None
    if len(domains.labelled):
        right = {name: int(np.sum(codes[domains.labelled] == domains.truth)) for name, codes in decided.items()}
        reference = max(others, key=lambda name: right[name])
        both = (decided[reference][domains.labelled], after[domains.labelled])
        scores = TargetScores.of(domains.truth, *both, n_classes, reference)
        mixes["target, labelled rows"] = scores.mix
    findings = adaptation_findings(evidence, scores)
    verdict = adaptation_verdict(findings, scores, evidence.decisive)
    return {
        "mixes": {name: np.asarray(mix).tolist() for name, mix in mixes.items()},
        "accuracy": _accuracies(right, scores) if scores else {},
        "predicted": {name: {"agreement": float(np.mean(codes == after))} for name, codes in decided.items()},
        "kept": kept and {name: kept[name] for name in ("kept", "reason", "trust")},
        "measures": evidence.measures,
        "verdict": verdict.text,
        "recommended": verdict.recommended,
        "findings": [asdict(finding) for finding in findings],
    }


def _estimates(corrected: PriorCorrectedClassifier, model: Any, other: Any) -> dict[str, Floats]:
    """The target's class frequencies, first as the adapted model estimates them, before they were shrunk."""
    linear = {
        "EM without adaptation": corrected.estimates_["em"],
        "BBSE without adaptation": corrected.estimates_["bbse"],
    }
    if not hasattr(model, "method"):
        return {"the model": model.target_prior_, **linear, "another seed": other.target_prior_}
    if model.method == "auto":
        own, again = (np.array(one.evidence_["estimate"]) for one in (model, other))
        return {"the model": own, **linear, "another seed": again}
    # without an estimate of its own, or shrunk to uniform, a model has no frequencies to compare
    if not model.estimated_ or model.shrinkage == 1:
        return linear
    equal = model.shrinkage / len(model.classes_)
    own, again = ((one.target_prior_ - equal) / (1 - model.shrinkage) for one in (model, other))
    return {"the model": own, **linear, "another seed": again}


def _assumed(model: Any) -> Floats:
    """The class frequencies that a model's probabilities assume."""
    if not hasattr(model, "method"):
        assumed: Floats = model.assumed_prior_
        return assumed
    for_target = model.method == "vada_iw" or model.predict_prior == "target"
    for_target |= model.method == "auto" and model.predict_prior == "auto"
    return model.target_prior_ if for_target else np.full(len(model.classes_), 1 / len(model.classes_))


def _shrunk(model: Any) -> float:
    return float(model.shrinkage if hasattr(model, "method") else model.shrinkage_)


def _given(proba: Floats, factor: Floats) -> Floats:
    """Probabilities for some class frequencies, changed to those for others by their ratio."""
    joint = proba * np.maximum(factor, TINY)
    scaled: Floats = joint / joint.sum(axis=1, keepdims=True)
    return scaled


def _domain_auc(domains: Domains, mix: Floats) -> tuple[float, float]:
    """The AUC of a classifier of domains on held-out rows, and its standard error where the domains are alike.

    The source is weighted to the given class frequencies.
    """
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
    # weighted rows count as fewer equal ones
    counts = [w[rows].sum() ** 2 / np.sum(w[rows] ** 2) for rows in (~learn & (y == 0), ~learn & (y == 1))]
    error = np.sqrt((sum(counts) + 1) / (12 * counts[0] * counts[1]))
    return float(auc), float(error)


def _accuracies(right: dict[str, int], scores: TargetScores) -> dict[str, Any]:
    from setminus.auditing.rates import rate_interval

    counts = {**right, "always the most frequent class": scores.most_frequent}
    return {name: asdict(rate_interval(count / scores.n, scores.n)) for name, count in counts.items()}
