r"""A classifier for other class frequencies, without training: its probabilities minus the old prior plus the new one.

    corrected = calibrated \ source_prior = orthogonalize(full=calibrated, principal=source_prior, prior=target_prior)

The formula is that of the paper. The principal classifier is the one that knows nothing but the class frequencies of
the source, and the prior is that of the target. It is exact under label shift, where rows of a class are distributed
alike in both domains, if the probabilities are calibrated on the source and the target's frequencies are right.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, column_or_1d, validate_data

from setminus.adaptation.domain_rows import (
    DomainClassifier,
    SampleDomain,
    check_sample_domain,
    labels_of_one_kind,
    source_rows,
)
from setminus.adaptation.label_shift import (
    Calibrator,
    Estimator,
    black_box_prior,
    calibration_draws,
    calibrator,
    check_proportions,
    class_frequencies,
    confusion,
    maximum_likelihood_prior,
    mix_distance,
)
from setminus.core.orthogonalize import orthogonalize
from setminus.errors import UserError
from setminus.estimators.groups import as_rows
from setminus.estimators.principals import check_known_labels

__all__ = ["PriorCorrectedClassifier", "PriorCorrection", "prior_correction"]

Floats = NDArray[np.float64]
Prior = Estimator | ArrayLike
Shrinkage = float | Literal["auto"]

MIN_PROBA = 1e-6
"""Smaller probabilities count as this: a tree's exact 0 would have a logarithm of minus infinity."""
MIN_PRIOR = 1e-6
"""Smaller estimates count as this: a class without an estimated share is rare, not impossible."""
BOOTSTRAP_TOLERANCE = 1e-5
TYPICAL_BIAS, VARIANCE_WEIGHT = 0.2, 2.0
"""For the automatic shrinkage: the total variation distance of an estimate from the truth where the features of a class
shifted as well, which no estimate can detect, and the weight of the bootstrap variance. Chosen by the accuracy of
logistic regression on the development settings of ``python -m benchmarks adapters`` and variants of them."""
DIAGNOSTICS = ("disagreement", "condition_number", "balanced_accuracy", "log_likelihood_gain")


@dataclass(frozen=True)
class PriorCorrection:
    """What `prior_correction` found.

    Attributes
    ----------
    source_prior : ndarray of shape (C,)
        The class frequencies of the labelled source rows.
    target_prior : ndarray of shape (C,)
        Those of the target, estimated or known.
    target_prior_interval : ndarray of shape (2, C)
        Lower and upper end for each class, by a bootstrap of the target rows and of the calibration.
    assumed_prior : ndarray of shape (C,)
        Those that predictions assume: ``(1 - shrinkage) * target_prior + shrinkage * source_prior``.
    shrinkage : float
    estimates : dict of str to ndarray of shape (C,)
        The estimates by "em" and "bbse".
    calibrator : Calibrator
        From log-probabilities to calibrated ones.
    disagreement : float
        Total variation distance of the two estimates. Both are right under label shift; where the features of a class
        shifted too, they are usually wrong in different ways.
    condition_number : float
        Of the matrix p(prediction | class) on source rows: large where different mixes have almost the same
        predictions.
    balanced_accuracy : float
        Of the decisions on the source rows, before correction.
    log_likelihood_gain : float
        How much more likely the target's predictions are under the estimate by EM than under the source's class
        frequencies, in nats for each row.
    """

    source_prior: Floats
    target_prior: Floats
    target_prior_interval: Floats
    assumed_prior: Floats
    shrinkage: float
    estimates: Mapping[str, Floats]
    calibrator: Calibrator
    disagreement: float
    condition_number: float
    balanced_accuracy: float
    log_likelihood_gain: float

    def correct(self, proba: ArrayLike) -> Floats:
        """``orthogonalize(calibrated, source_prior, assumed_prior)`` of probabilities of shape (n, C)."""
        logits = _log(_check_proba("proba", proba, len(self.source_prior)))
        return corrected(self.calibrator.proba(logits), self.source_prior, self.assumed_prior)


def prior_correction(
    source_proba: ArrayLike,
    y: ArrayLike,
    target_proba: ArrayLike,
    prior: Prior = "em",
    *,
    shrinkage: Shrinkage = "auto",
    n_bootstrap: int = 200,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> PriorCorrection:
    r"""Estimate the target's class frequencies from a classifier's probabilities, and correct these for them.

    Parameters
    ----------
    source_proba : array of shape (n, C)
        Probabilities of labelled source rows that the classifier was not trained on (held out, or by
        `cross_val_predict`).
    y : array of shape (n,)
        Their labels; column k belongs to ``np.unique(y)[k]``.
    target_proba : array of shape (m, C)
        Probabilities of target rows.
    prior : {"em", "bbse"} or array of shape (C,), default="em"
        How the target's class frequencies are estimated: by maximum likelihood on calibrated probabilities, or from
        the confusion matrix of the decisions; or these frequencies, where they are known.
    shrinkage : float in [0, 1] or "auto", default="auto"
        The weight of the source's class frequencies in those that are used: 0 trusts the estimate.
        "auto" is the expected squared error of the estimate (0.2**2, a typical bias where the features of a class
        shifted too, plus twice its bootstrap variance) over its squared distance from the source's frequencies, at
        most 1: a small estimated change is not trusted, a large one is. Distances are total variations.
    n_bootstrap : int, default=200
        Replicates for `target_prior_interval` and for "auto".
    confidence : float, default=0.95
        Of the interval of each class.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    PriorCorrection

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1], [800, 200])
    >>> logit = np.where(y == 1, 1, -1) + rng.normal(size=1000)
    >>> proba = 1 / (1 + np.exp(-2 * logit - np.log(0.2 / 0.8)))
    >>> source_proba = np.column_stack([1 - proba, proba])
    >>> target_proba = source_proba[rng.choice(1000, 2000, p=np.where(y == 1, 0.8 / 200, 0.2 / 800))]

    Three lines:

    >>> correction = prior_correction(source_proba, y, target_proba)
    >>> correction.target_prior.round(1)
    array([0.2, 0.8])
    >>> corrected_proba = correction.correct(target_proba)

    The same by the formula of the paper, ``calibrated \ source_prior``:

    >>> calibrated = correction.calibrator.proba(np.log(target_proba))
    >>> principal = np.tile(correction.source_prior, (2000, 1))
    >>> np.allclose(corrected_proba, orthogonalize(calibrated, principal, correction.assumed_prior))
    True
    """
    classes, codes = np.unique(column_or_1d(y), return_inverse=True)
    source = _check_proba("source_proba", source_proba, len(classes))
    target = _check_proba("target_proba", target_proba, len(classes))
    if len(source) != len(codes):
        raise UserError(f"source_proba has {len(source)} rows, y has {len(codes)}", expected="the same number")
    return _correction(
        _log(source), codes, _log(target), prior, shrinkage, n_bootstrap, confidence, check_random_state(random_state)
    )


def corrected(calibrated: Floats, source_prior: Floats, assumed_prior: Floats) -> Floats:
    """Probabilities for the source's class frequencies, changed to those for others."""
    principal = np.broadcast_to(source_prior, calibrated.shape)
    answer: Floats = orthogonalize(calibrated, principal, _positive(assumed_prior))
    return answer


def _correction(
    source: Floats,
    codes: NDArray[np.int64],
    target: Floats,
    prior: Prior,
    shrinkage: Shrinkage,
    n_bootstrap: int,
    confidence: float,
    random: np.random.RandomState,
) -> PriorCorrection:
    """`prior_correction` of logits."""
    n_classes = source.shape[1]
    known = _check_prior(prior, n_classes)
    _check_numbers(shrinkage, n_bootstrap, confidence)
    source_prior = class_frequencies(codes, n_classes)
    fitted = calibrator(source, codes)
    calibrated, decided = fitted.proba(target), target.argmax(axis=1)
    joint = confusion(source.argmax(axis=1), codes, n_classes)
    estimates = {
        "em": maximum_likelihood_prior(calibrated, source_prior),
        "bbse": black_box_prior(joint, class_frequencies(decided, n_classes)),
    }
    gain = np.mean(np.log(calibrated @ (estimates["em"] / source_prior)))
    if known is not None:
        found, interval, weight = known, np.tile(known, (2, 1)), 0.0
    else:
        found = estimates["em" if prior == "em" else "bbse"]
        rng = np.random.default_rng(random.randint(2**31 - 1))
        if prior == "em":
            replicates = _em_replicates(fitted, source, target, source_prior, estimates["em"], n_bootstrap, rng)
        else:
            replicates = _bbse_replicates(joint, len(codes), decided, n_bootstrap, rng)
        interval = np.quantile(replicates, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
        weight = _auto_shrinkage(found, source_prior, replicates) if shrinkage == "auto" else float(shrinkage)
    return PriorCorrection(
        source_prior=source_prior,
        target_prior=found,
        target_prior_interval=interval,
        assumed_prior=(1 - weight) * found + weight * source_prior,
        shrinkage=weight,
        estimates=estimates,
        calibrator=fitted,
        disagreement=mix_distance(*estimates.values()),
        condition_number=float(np.linalg.cond(joint / source_prior)),
        balanced_accuracy=float(np.mean(np.diag(joint) / source_prior)),
        log_likelihood_gain=float(gain),
    )


def _em_replicates(
    fitted: Calibrator,
    source: Floats,
    target: Floats,
    source_prior: Floats,
    estimate: Floats,
    n: int,
    rng: np.random.Generator,
) -> Floats:
    draws = calibration_draws(fitted, source, n, rng)
    rows = len(target)
    return np.array(
        [
            maximum_likelihood_prior(
                draw.proba(target),
                source_prior,
                sample_weight=rng.multinomial(rows, np.full(rows, 1 / rows)),
                start=_positive(estimate),
                tolerance=BOOTSTRAP_TOLERANCE,
            )
            for draw in draws
        ]
    )


def _bbse_replicates(
    joint: Floats, n_source: int, decided: NDArray[np.int64], n: int, rng: np.random.Generator
) -> Floats:
    n_classes = len(joint)
    source_prior = joint.sum(axis=0)
    counts = np.round(source_prior * n_source).astype(int)
    predictions = class_frequencies(decided, n_classes)
    replicates = []
    for _ in range(n):
        # within each class: the class frequencies of the source are known
        given_label = np.array(
            [rng.multinomial(counts[k], joint[:, k] / source_prior[k]) / counts[k] for k in range(n_classes)]
        ).T
        observed = rng.multinomial(len(decided), predictions) / len(decided)
        replicates.append(black_box_prior(given_label * source_prior, observed))
    return np.array(replicates)


def _auto_shrinkage(estimate: Floats, source_prior: Floats, replicates: Floats) -> float:
    """The weight of the source's frequencies: squared error of the estimate over its squared distance from them."""
    variance = float(np.mean([mix_distance(replicate, estimate) ** 2 for replicate in replicates]))
    distance = mix_distance(estimate, source_prior)
    error = TYPICAL_BIAS**2 + VARIANCE_WEIGHT * variance
    return min(error / distance**2, 1.0) if distance > 0 else 1.0


def _check_prior(prior: Prior, n_classes: int) -> Floats | None:
    """The known frequencies; None where they are to be estimated."""
    if isinstance(prior, str):
        if prior not in ("em", "bbse"):
            raise UserError(f"prior is {prior!r}", expected="'em', 'bbse' or the target's class frequencies")
        return None
    return check_proportions("prior", prior, n_classes)


def _check_numbers(shrinkage: Any, n_bootstrap: Any, confidence: Any, cv: Any = 2) -> None:
    if not (isinstance(shrinkage, str) and shrinkage == "auto"):
        _check_number("shrinkage", shrinkage, Real, lambda value: 0 <= value <= 1, "'auto' or a share in [0, 1]")
    _check_number("n_bootstrap", n_bootstrap, Integral, lambda value: value >= 2, "a whole number from 2 on")
    _check_number("confidence", confidence, Real, lambda value: 0 < value < 1, "a number between 0 and 1")
    _check_number("cv", cv, Integral, lambda value: value >= 2, "a whole number from 2 on")


def _check_number(name: str, value: Any, kind: type, holds: Callable[[Any], bool], expected: str) -> None:
    # True is an integer to Python; NaN fails every comparison
    if isinstance(value, bool) or not isinstance(value, kind) or not holds(value):
        raise UserError(f"{name} is {value!r}", expected=expected)


def _check_proba(name: str, proba: ArrayLike, n_classes: int) -> Floats:
    values = np.asarray(proba, dtype=np.float64)
    if values.ndim != 2 or len(values) == 0 or values.shape[1] != n_classes:
        raise UserError(f"{name} has shape {values.shape}", expected=f"(n, {n_classes}), a column for each class")
    # written so that NaN fails
    if not (np.all(values >= 0) and np.all(np.abs(values.sum(axis=1) - 1) <= 1e-4)):
        raise UserError(f"{name} has rows that are no probabilities", expected="rows of 0 or more that sum to 1")
    return values


def _log(proba: Floats) -> Floats:
    logs: Floats = np.log(np.maximum(proba, MIN_PROBA))
    return logs


def _positive(prior: Floats) -> Floats:
    raised = np.maximum(prior, MIN_PRIOR)
    scaled: Floats = raised / raised.sum()
    return scaled


class PriorCorrectedClassifier(DomainClassifier):
    r"""Any classifier, corrected for the class frequencies of a target without labels.

    ``corrected = orthogonalize(calibrated, source_prior_, assumed_prior_)``: the calibrated probabilities of the
    classifier, minus what the source's class frequencies say, for the target's frequencies. It is the paper's
    formula with the source's prior as the principal classifier. No network is trained.

    Parameters
    ----------
    classifier : classifier
        With `predict_proba` or `decision_function`. It is fitted to the source rows, and once for each fold to
        calibrate it on rows that it was not fitted to. ``FrozenEstimator(model)`` takes a fitted model as it is and
        calibrates it on the source rows of `fit`, which should not be its training rows.
    prior : {"em", "bbse"} or array of shape (C,), default="em"
        How the target's class frequencies are estimated, or these frequencies in the order of `classes_`.
    shrinkage : float in [0, 1] or "auto", default="auto"
        The weight of the source's class frequencies in `assumed_prior_`; see `prior_correction`.
    cv : int, default=5
        Folds of the calibration; fewer where a class has fewer rows.
    n_bootstrap : int, default=200
        Replicates for `target_prior_interval_` and ``shrinkage="auto"``.
    confidence : float, default=0.95
        Of each interval.
    random_state : int, RandomState instance or None, default=0
        Of the folds and the bootstrap.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    classifier_ : the fitted classifier
    source_prior_, target_prior_ : ndarray of shape (C,)
        Class frequencies of the source and of the target, the latter estimated or known.
    target_prior_interval_ : ndarray of shape (2, C)
        Lower and upper end for each class. It covers the error of sampling, not that of features that shifted within a
        class: for that see `diagnostics_`.
    assumed_prior_ : ndarray of shape (C,)
        Those that predictions assume: ``(1 - shrinkage_) * target_prior_ + shrinkage_ * source_prior_``.
    shrinkage_ : float
    estimates_ : dict of str to ndarray of shape (C,)
        The estimates by "em" and "bbse".
    diagnostics_ : dict of str to float
        "disagreement", "condition_number", "balanced_accuracy" and "log_likelihood_gain", each without target labels;
        see `PriorCorrection`.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 0, 1], [800, 200, 200, 800])
    >>> sample_domain = np.repeat([1, -1], 1000)
    >>> X = rng.normal(size=(2000, 3)) + y[:, None]
    >>> model = PriorCorrectedClassifier(LogisticRegression()).fit(X, y, sample_domain)
    >>> model.target_prior_.round(1)
    array([0.2, 0.8])
    >>> plain = LogisticRegression().fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > plain.score(X[1000:], y[1000:]) + 0.1)
    True

    The same by the formula of the paper, from the calibrated probabilities for the source's class frequencies:

    >>> calibrated = PriorCorrectedClassifier(LogisticRegression(), model.source_prior_).fit(X, y, sample_domain)
    >>> principal = np.tile(model.source_prior_, (2000, 1))
    >>> by_formula = orthogonalize(calibrated.predict_proba(X), principal, model.assumed_prior_)
    >>> np.allclose(model.predict_proba(X), by_formula)
    True
    """

    classes_: NDArray[Any]
    classifier_: Any
    source_prior_: Floats
    target_prior_: Floats
    assumed_prior_: Floats
    target_prior_interval_: Floats
    shrinkage_: float
    estimates_: dict[str, Floats]
    diagnostics_: dict[str, Any]
    calibration_: Floats

    def __init__(
        self,
        classifier: Any,
        prior: Prior = "em",
        *,
        shrinkage: Shrinkage = "auto",
        cv: int = 5,
        n_bootstrap: int = 200,
        confidence: float = 0.95,
        random_state: Any = 0,
    ):
        self.classifier = classifier
        self.prior = prior
        self.shrinkage = shrinkage
        self.cv = cv
        self.n_bootstrap = n_bootstrap
        self.confidence = confidence
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_domain: SampleDomain = None) -> PriorCorrectedClassifier:
        """Fit and calibrate the classifier on source rows, estimate the class frequencies of the target rows.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Rows of both domains.
        y : array of shape (n,)
            Labels; those of target rows are ignored and may be anything.
        sample_domain : array of int of shape (n,), optional
            Positive for source rows, negative for target rows, as in skada. Without it all rows are source rows, and
            `prior` must be an array, or nothing is corrected.
        """
        _check_numbers(self.shrinkage, self.n_bootstrap, self.confidence, self.cv)
        if y is None:
            raise UserError(
                "PriorCorrectedClassifier requires y to be passed, but the target y is None", do="label the source."
            )
        X = as_rows(X)
        validate_data(self, X, skip_check_array=True)
        labels = column_or_1d(np.array(y, dtype=object) if isinstance(y, list | tuple) else y, warn=True)
        n = _num_samples(X)
        if len(labels) != n:
            raise UserError(f"X has {n} rows, y has {len(labels)}", expected="the same number")
        of_source = np.ones(n, dtype=bool) if sample_domain is None else source_rows(sample_domain, n)
        if of_source.all() and isinstance(self.prior, str):
            warnings.warn(
                "no target rows: nothing is corrected. Pass sample_domain= with negative numbers for target rows, or "
                "prior= with the class frequencies of the target.",
                UserWarning,
                stacklevel=2,
            )
        source_labels = labels_of_one_kind(labels[of_source])
        check_classification_targets(source_labels)
        self.classes_, codes = np.unique(source_labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise UserError(f"the source has one class only, {self.classes_.tolist()[0]!r}", expected="two or more")
        source, target = (_safe_indexing(X, np.flatnonzero(rows)) for rows in (of_source, ~of_source))
        random = check_random_state(self.random_state)
        known = _check_prior(self.prior, len(self.classes_))
        held_out = self._fit_classifier(source, source_labels, codes, random)
        if of_source.all():
            self.source_prior_ = class_frequencies(codes, len(self.classes_))
            fitted = calibrator(held_out, codes)
            self.target_prior_ = self.source_prior_ if known is None else known
            self.assumed_prior_ = self.target_prior_
            self.target_prior_interval_ = np.tile(self.target_prior_, (2, 1))
            self.shrinkage_, self.estimates_, self.diagnostics_ = float(known is None), {}, {}
        else:
            found = _correction(
                held_out,
                codes,
                self._logits(target),
                self.prior,
                self.shrinkage,
                self.n_bootstrap,
                self.confidence,
                random,
            )
            fitted = found.calibrator
            self.source_prior_, self.target_prior_ = found.source_prior, found.target_prior
            self.assumed_prior_ = found.assumed_prior
            self.target_prior_interval_ = found.target_prior_interval
            self.shrinkage_, self.estimates_ = found.shrinkage, dict(found.estimates)
            self.diagnostics_ = {name: getattr(found, name) for name in DIAGNOSTICS}
        self.calibration_ = np.array([fitted.scale, *fitted.bias])
        return self

    def predict_proba(self, X: Any, sample_domain: SampleDomain = None, *, allow_source: bool = True) -> Floats:
        """Probabilities for the target's class frequencies, in the order of `classes_`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
        sample_domain : array of int of shape (n,) or int, optional
            As skada passes it. It is checked and not used: rows of every domain get the target's prediction.
        allow_source : bool, default=True
            As skada passes it; not used.
        """
        check_is_fitted(self)
        X = as_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        check_sample_domain(sample_domain, _num_samples(X))
        calibrated = Calibrator(float(self.calibration_[0]), self.calibration_[1:]).proba(self._logits(X))
        return corrected(calibrated, self.source_prior_, self.assumed_prior_)

    def _fit_classifier(
        self, source: Any, labels: NDArray[Any], codes: NDArray[np.int64], random: np.random.RandomState
    ) -> Floats:
        """Fit the classifier; return logits of the source rows, from models that were not fitted to them."""
        if isinstance(self.classifier, FrozenEstimator):
            check_is_fitted(self.classifier)
            check_known_labels(labels, self.classifier.classes_)
            absent = np.setdiff1d(self.classifier.classes_, self.classes_).tolist()
            if absent:
                raise UserError(
                    f"the source rows have no row of class {absent}, which the frozen classifier knows",
                    do="pass labelled rows of every class.",
                )
            self.classifier_ = self.classifier
            return self._logits(source)
        rarest = int(np.bincount(codes).argmin())
        count = int(np.bincount(codes)[rarest])
        if count < 2:
            raise UserError(
                f"the source has one row of class {self.classes_.tolist()[rarest]!r}",
                expected="at least two of each class, to calibrate on rows that the classifier was not fitted to",
            )
        folds = StratifiedKFold(min(self.cv, count), shuffle=True, random_state=random.randint(2**31 - 1))
        held_out = np.empty((len(codes), len(self.classes_)))
        for learned, held in folds.split(np.zeros(len(codes)), codes):
            self.classifier_ = clone(self.classifier).fit(_safe_indexing(source, learned), labels[learned])
            held_out[held] = self._logits(_safe_indexing(source, held))
        self.classifier_ = clone(self.classifier).fit(source, labels)
        return held_out

    def _logits(self, X: Any) -> Floats:
        """Log-probabilities of the classifier, or its decision function."""
        if hasattr(self.classifier_, "predict_proba"):
            return _log(np.asarray(self.classifier_.predict_proba(X), dtype=np.float64))
        if not hasattr(self.classifier_, "decision_function"):
            raise TypeError(
                f"classifier is {type(self.classifier_).__name__}, which has neither predict_proba nor "
                "decision_function: pass a classifier that scores its classes."
            )
        scores = np.asarray(self.classifier_.decision_function(X), dtype=np.float64)
        return np.column_stack([-scores / 2, scores / 2]) if scores.ndim == 1 else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.classifier, "__sklearn_tags__"):
            inner = get_tags(self.classifier)
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
        return tags
