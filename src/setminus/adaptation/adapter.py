"""Adaptation to a target without labels, as a scikit-learn classifier for tables and embeddings."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from setminus.adaptation.adapter_parameters import (
    WITH_PRIOR,
    Discriminator,
    Estimate,
    Method,
    PredictPrior,
    check_parameters,
)
from setminus.errors import MissingExtraError, UserError

__all__ = [
    "OrthogonalAdapter",
    "Unknown",
    "held_out_rows",
    "known_rows",
    "labels_of_one_kind",
    "source_rows",
    "target_accuracy",
]

if TYPE_CHECKING:
    from setminus.adaptation.small_networks import Adapted


Floats = NDArray[np.float64]

Unknown = Literal["raise", "ignore"]
MAX_NAMED = 10
"""Classes that an error lists, at most."""
_TINY = np.finfo(np.float64).tiny


class OrthogonalAdapter(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""A classifier for a target domain without labels, whose class frequencies may differ from the source's.

    Adversarial adaptation makes the features of both domains look alike. Where the class frequencies differ, it aligns
    rows of one class with rows of another. Here the encoder plays against ``w_x \ w_1``, a discriminator of domains
    from which the prediction by the class alone is removed, so that each class is aligned with itself.

    Parameters
    ----------
    method : {"vada_orthogonal", "vada", "vada_iw", "dann", "source_only"}, default="vada_orthogonal"
        The method above; VADA, which aligns all rows; VADA with importance weights; domain adversarial training; no
        adaptation. All share the parameters below.
    label_shift : {"em", "bbse", "pseudo"}, default="em"
        How "vada_orthogonal" and "vada_iw" estimate the target's class frequencies: by maximum likelihood or by
        black-box shift estimation, both once, from the classifier before adaptation; or by the classifier's own
        decisions in the last epoch, as in the paper.
    shrinkage : float in [0, 1], default=0.0
        Shrink that estimate toward equal frequencies (0 to 1). 0.5 is a safeguard where a classifier of the source
        makes many errors on the target, which bias its estimate.
    predict_prior : {"equal", "target"}, default="equal"
        For "vada_orthogonal": the class frequencies that predictions assume. Its network is trained with equal class
        weights, so that a class that is rare in the source is learned, and predicts for equal frequencies. "target"
        multiplies its probabilities by `target_prior_`: better where a class is rare in the target, if that estimate
        is reliable. It may be changed after fitting.
    discriminator : {"orthogonal", "full"}, default="orthogonal"
        For "vada_orthogonal": the discriminating network learns the orthogonal part, or the full classifier as in the
        paper, from which the class is removed for the encoder. The first trains more stably.
    hidden_size : int, default=64
        Units of each hidden layer.
    steps : int, default=1000
        Number of training steps; the first fifth is on the source alone.
    batch_size : int, default=64
        Rows of each domain in a step.
    learning_rate : float, default=1e-3
    domain_weight, source_smoothness, target_smoothness, target_entropy : float
        Weights of the losses added to the source's cross entropy.
    radius : float, default=0.3
        Radius within which predictions should stay constant, in standard deviations of a feature.
    held_out : float, default=0.2
        The fraction of source rows that are held out for "em" and "bbse"; none if a class has fewer than three.
    refine_steps : int, default=0
        Steps of DIRT-T on the target after adaptation.
    random_state : int, RandomState instance or None, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The classes of the source.
    source_prior_, target_prior_ : ndarray of shape (C,)
        Class frequencies of the source, and their estimate for the target, shrunk by `shrinkage`. For methods without
        an estimate: the frequencies of their predictions. Without target rows: those of the source.
    layers_ : list of (weight, bias)
        The network as arrays: prediction needs no torch.
    mean_, scale_ : ndarray of shape (n_features,)
        The mean of the source rows, and the deviation within a domain, by which all rows are standardised.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 0, 1], [80, 20, 20, 80])
    >>> sample_domain = np.repeat([1, -1], 100)
    >>> X = rng.normal(scale=0.3, size=(200, 2)) + np.column_stack([2.0 * y, 0.5 * (sample_domain < 0)])
    >>> adapter = OrthogonalAdapter(steps=100).fit(X, y, sample_domain=sample_domain)
    >>> adapter.target_prior_.round(1)
    array([0.2, 0.8])
    """

    def __init__(
        self,
        method: Method = "vada_orthogonal",
        *,
        label_shift: Estimate = "em",
        shrinkage: float = 0.0,
        predict_prior: PredictPrior = "equal",
        discriminator: Discriminator = "orthogonal",
        hidden_size: int = 64,
        steps: int = 1000,
        batch_size: int = 64,
        learning_rate: float = 1e-3,
        domain_weight: float = 0.1,
        source_smoothness: float = 0.1,
        target_smoothness: float = 0.1,
        target_entropy: float = 0.1,
        radius: float = 0.3,
        held_out: float = 0.2,
        refine_steps: int = 0,
        random_state: Any = 0,
    ):
        self.method = method
        self.label_shift = label_shift
        self.shrinkage = shrinkage
        self.predict_prior = predict_prior
        self.discriminator = discriminator
        self.hidden_size = hidden_size
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.domain_weight = domain_weight
        self.source_smoothness = source_smoothness
        self.target_smoothness = target_smoothness
        self.target_entropy = target_entropy
        self.radius = radius
        self.held_out = held_out
        self.refine_steps = refine_steps
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sample_domain: ArrayLike | None = None) -> OrthogonalAdapter:
        """Learn from labelled rows of the source and rows of the target.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Rows of both domains.
        y : array of shape (n,)
            Labels; those of target rows are ignored and may be anything.
        sample_domain : array of int of shape (n,), optional
            Positive for source rows, negative for target rows, as in skada. Without it all rows are source rows, and
            nothing is adapted.
        """
        check_parameters(self.get_params(deep=False))
        if y is None:
            raise UserError(
                "OrthogonalAdapter requires y to be passed, but the target y is None", do="label the source."
            )
        X = validate_data(self, X, dtype=np.float64)
        # dtype object: numpy would turn numbers into text beside a text label of the target
        labels = column_or_1d(np.array(y, dtype=object) if isinstance(y, list | tuple) else y, warn=True)
        if len(labels) != len(X):
            raise UserError(f"X has {len(X)} rows, y has {len(labels)}", expected="the same number")
        of_source = self._source_rows(len(X), sample_domain)
        source_labels = labels_of_one_kind(labels[of_source])
        check_classification_targets(source_labels)
        self.classes_, codes = np.unique(source_labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise UserError(
                f"the source has one class only, {self.classes_.tolist()[0]!r}",
                expected="two or more",
            )
        self.source_prior_ = np.bincount(codes) / len(codes)
        self.mean_ = X[of_source].mean(axis=0)
        # of both domains: a feature that is almost constant in the source may be far away in the target
        domains = [rows for rows in (X[of_source], X[~of_source]) if len(rows)]
        scale = np.sqrt(np.mean([rows.var(axis=0) for rows in domains], axis=0))
        self.scale_ = np.where(scale > 0, scale, 1.0)
        source, target = self._standardised(X[of_source]), self._standardised(X[~of_source])
        fitted = self._adapt(source, codes, target)
        self.layers_ = fitted.layers
        self.target_prior_ = self.source_prior_
        if len(target):
            decided = self._logits(target).argmax(axis=1)
            counted = np.bincount(decided, minlength=len(self.classes_)) / len(target)
            self.target_prior_ = counted if fitted.target_prior is None else fitted.target_prior
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of target rows, in the order of `classes_`, for the class frequencies of `predict_prior`."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        # again: predict_prior may be changed after fitting
        check_parameters(self.get_params(deep=False))
        logits = self._logits(self._standardised(X))
        if self.predict_prior == "target":
            # at least tiny: a row may be certain of a class with an estimate of 0
            logits += np.log(np.maximum(self.target_prior_, _TINY))
        proba: Floats = softmax(logits, axis=1)
        return proba

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of target rows."""
        codes = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, unknown: Unknown = "raise") -> float:
        """Accuracy on target rows.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of shape (n,)
        sample_weight : array of shape (n,), optional
        unknown : {"raise", "ignore"}, default="raise"
            What to do with rows of classes that the source lacks.
        """
        return target_accuracy(y, self.predict(X), self.classes_, sample_weight=sample_weight, unknown=unknown)

    def _source_rows(self, n: int, sample_domain: ArrayLike | None) -> NDArray[np.bool_]:
        if sample_domain is None:
            if self.method != "source_only":
                warnings.warn(
                    "sample_domain is missing: all rows are taken as source rows, and nothing is adapted. Pass "
                    "sample_domain= with negative numbers for target rows, or method='source_only'.",
                    UserWarning,
                    stacklevel=3,
                )
            return np.ones(n, dtype=bool)
        of_source = source_rows(sample_domain, n)
        if of_source.all() and self.method != "source_only":
            raise UserError(
                "the target domain has no rows",
                do="sample_domain must be negative for rows to adapt to; without any, use method='source_only'.",
            )
        return of_source

    def _adapt(self, source: Floats, codes: NDArray[np.int64], target: Floats) -> Adapted:
        try:
            import torch
        except ImportError as error:
            raise MissingExtraError("fitting an OrthogonalAdapter", "torch", extra="nn") from error

        from setminus.adaptation.domains import DomainData, LabelShift
        from setminus.adaptation.methods import AdaptationConfig
        from setminus.adaptation.small_networks import adapted
        from setminus.adaptation.vada import VadaConfig

        random = check_random_state(self.random_state)
        method = self.method if len(target) else "source_only"
        x, labels = torch.from_numpy(source).float(), torch.from_numpy(codes).long()
        held = torch.zeros(len(x), dtype=torch.bool)
        if method in WITH_PRIOR and self.label_shift != "pseudo":
            held = torch.from_numpy(held_out_rows(codes, self.held_out, random))
        data = DomainData(
            x[~held],
            labels[~held],
            # without a target the source takes its place: "source_only" does not use it
            torch.from_numpy(target).float() if len(target) else x,
            len(self.classes_),
            x[held] if held.any() else None,
            labels[held] if held.any() else None,
        )
        losses = VadaConfig(
            domain=self.domain_weight,
            source_vat=self.source_smoothness,
            target_vat=self.target_smoothness,
            target_entropy=self.target_entropy,
            # a step of this length in each of the standardised features
            vat_radius=self.radius * source.shape[1] ** 0.5,
            vat_xi=1e-3,
        )
        config = AdaptationConfig(losses, self.learning_rate, self.batch_size, warmup=self.steps // 5)
        return adapted(
            method,
            data,
            config,
            label_shift=LabelShift(
                "pseudo_hard" if self.label_shift == "pseudo" else self.label_shift, shrinkage=self.shrinkage
            ),
            discriminator=self.discriminator,
            width=self.hidden_size,
            steps=self.steps,
            refine_steps=self.refine_steps if len(target) else 0,
            seed=int(random.randint(2**31 - 1)),
        )

    def _standardised(self, X: Floats) -> Floats:
        rows: Floats = (X - self.mean_) / self.scale_
        return rows

    def _logits(self, x: Floats) -> Floats:
        for weight, bias in self.layers_[:-1]:
            x = np.maximum(x @ weight + bias, 0.0)
        weight, bias = self.layers_[-1]
        logits: Floats = x @ weight + bias
        return logits


def labels_of_one_kind(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of source rows, without the object dtype that they have beside missing labels of the target.

    Examples
    --------
    >>> labels_of_one_kind(np.array([1, 0], dtype=object)).dtype
    dtype('int64')
    """
    listed = labels.tolist()
    missing = sum(map(_is_missing, listed))
    if missing:
        raise UserError(
            f"{missing} of {len(labels)} source rows have no label",
            do="label them, leave them out, or mark them as target rows by a negative sample_domain.",
        )
    words = sum(isinstance(label, str) for label in listed)
    if 0 < words < len(listed):
        raise UserError(
            f"{words} of {len(labels)} labels of the source are words, the others are not", expected="one kind for all"
        )
    return np.array(listed) if labels.dtype == object else labels


def _is_missing(label: Any) -> bool:
    try:
        # NaN does not equal itself
        return label is None or bool(label != label)
    except TypeError:
        # pandas' NA has no truth value
        return True


def source_rows(sample_domain: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Mask of the source rows, by skada's convention: positive for any source, negative for any target.

    Examples
    --------
    >>> source_rows([1, 3, -2], 3)
    array([ True,  True, False])
    """
    domains = np.asarray(sample_domain)
    if domains.shape != (n,) or domains.dtype.kind not in "iuf":
        raise UserError(
            f"sample_domain has shape {domains.shape} of {domains.dtype}, X has {n} rows",
            expected=f"({n},), positive numbers for source rows and negative ones for target rows",
        )
    # `not all` also catches NaN
    if not np.all((domains > 0) | (domains < 0)):
        raise UserError("sample_domain has zeros or NaN", expected="positive for source, negative for target rows")
    of_source: NDArray[np.bool_] = domains > 0
    if not of_source.any():
        raise UserError("the source domain has no rows", do="sample_domain must be positive for labelled rows.")
    return of_source


def held_out_rows(codes: NDArray[np.int64], share: float, random: np.random.RandomState) -> NDArray[np.bool_]:
    """Mask of a random share of the rows of each class, at least one and never all; none if a class has under three.

    Examples
    --------
    >>> codes = np.repeat([0, 1], [40, 10])
    >>> np.bincount(codes[held_out_rows(codes, 0.2, np.random.RandomState(0))])
    array([8, 2])
    """
    held = np.zeros(len(codes), dtype=bool)
    counts = np.bincount(codes)
    if counts.min() < 3:
        return held
    for k, count in enumerate(counts):
        rows = random.permutation(np.flatnonzero(codes == k))
        held[rows[: min(max(round(share * count), 1), count - 1)]] = True
    return held


def known_rows(labels: ArrayLike, classes: ArrayLike, *, unknown: Unknown = "raise") -> NDArray[np.bool_]:
    """Mask of the target rows whose class the source has; other classes raise an error unless ignored.

    Examples
    --------
    >>> known_rows(["cat", "frog"], ["cat", "dog"], unknown="ignore")
    array([ True, False])
    """
    if unknown not in get_args(Unknown):
        raise UserError(f"unknown is {unknown!r}", expected="'raise' or 'ignore'")
    truth = np.asarray(labels)
    known: NDArray[np.bool_] = np.isin(truth, np.asarray(classes))
    if unknown == "raise" and not known.all():
        # by their text: labels of several kinds have no order, and NaN does not equal itself
        unseen = sorted({repr(label): label for label in truth[~known].tolist()}.values(), key=str)[:MAX_NAMED]
        raise UserError(
            f"{int((~known).sum())} of {len(truth)} rows have classes that the source lacks, {unseen}",
            do="they cannot be predicted. Leave these rows out, or pass unknown='ignore' to score the others only.",
        )
    if not known.any():
        raise UserError("no row has a class that the source has", expected="at least one that can be scored")
    return known


def target_accuracy(
    labels: ArrayLike,
    predicted: ArrayLike,
    classes: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    unknown: Unknown = "raise",
) -> float:
    """Accuracy on target rows, over the classes of the source.

    Examples
    --------
    >>> target_accuracy([0, 1, 1, 2], [0, 1, 0, 0], [0, 1], unknown="ignore")
    0.6666666666666666
    """
    truth, answers = np.asarray(labels), np.asarray(predicted)
    if truth.ndim != 1 or truth.shape != answers.shape:
        raise UserError(f"labels have shape {truth.shape}, predicted {answers.shape}", expected="(n,) for both")
    known = known_rows(truth, classes, unknown=unknown)
    weights = np.ones(len(truth)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != truth.shape or not (np.all(weights >= 0) and 0 < weights[known].sum() < np.inf):
        raise UserError(
            f"sample_weight has shape {weights.shape} and sum {weights.sum():g} for {len(truth)} rows",
            expected=f"({len(truth)},), none negative, and some above 0 on rows that are scored",
        )
    return float(np.average(truth[known] == answers[known], weights=weights[known]))
