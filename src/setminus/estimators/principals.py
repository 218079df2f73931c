"""Principal classifiers for an attribute that must be ignored, and the fitting of parts.

A part is a full, a principal or an attribute model; `fit_part` passes it the weights and groups that it can take.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import narwhals as nw
import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder, StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_is_fitted, has_fit_parameter

from setminus.core.checks import check_weights, group_name
from setminus.errors import UserError
from setminus.estimators.groups import UNSEEN, Groups, check_every_class, group_frequencies, rows_with_groups
from setminus.estimators.sklearn_bases import BaseEstimator, ClassifierMixin

__all__ = [
    "GroupPrincipal",
    "ProxyPrincipal",
    "calibrated",
    "check_classes",
    "check_known_labels",
    "default_classifier",
    "fit_part",
    "needs_groups",
    "strip_place",
    "takes_groups",
]


def takes_groups(method: Any) -> bool:
    """Whether a method has the keyword `sensitive_features`.

    Examples
    --------
    >>> from setminus import GroupPrincipal
    >>> takes_groups(GroupPrincipal().fit), takes_groups(print)
    (True, False)
    """
    return "sensitive_features" in inspect.signature(method).parameters


def needs_groups(part: Any) -> bool:
    """Whether a principal needs the groups to predict.

    Examples
    --------
    >>> from setminus import GroupPrincipal, ProxyPrincipal
    >>> needs_groups(GroupPrincipal()), needs_groups(ProxyPrincipal())
    (True, False)
    """
    return hasattr(part, "predict_proba") and takes_groups(part.predict_proba)


def calibrated(estimator: Any, method: str | None) -> Any:
    """The estimator, with a calibration of its probabilities where `method` is given."""
    if method is None:
        return estimator
    if method not in ("sigmoid", "isotonic", "temperature"):
        raise UserError(f"calibration is {method!r}", expected="None, 'sigmoid', 'isotonic' or 'temperature'")
    return CalibratedClassifierCV(estimator, method=method)


def fit_part(role: str, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None, groups: Any = None) -> Any:
    """A fitted clone of `estimator`; a frozen one is returned unchanged.

    `role` is its name in an error message. The weights reach the estimator, or the last step of a pipeline; an
    estimator that cannot take weights is refused. The groups are passed where `fit` takes them.
    """
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params") or isinstance(estimator, type):
        raise TypeError(
            f"{role} is {estimator!r}: expected a scikit-learn classifier, or FrozenEstimator(a fitted model)."
        )
    part = clone(estimator)
    keywords: dict[str, Any] = {}
    if sample_weight is not None and not isinstance(part, FrozenEstimator):
        keywords[_weight_keyword(role, part)] = sample_weight
    if groups is not None and takes_groups(part.fit):
        keywords["sensitive_features"] = groups
    part.fit(X, y, **keywords)
    if not hasattr(part, "predict_proba"):
        raise TypeError(
            f"{role} is {type(part).__name__}, which has no predict_proba: the method divides probabilities. "
            "Wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    return part


def check_classes(role: str, found: NDArray[Any], classes: NDArray[Any], other: str = "full") -> None:
    """Raise unless both have the same classes."""
    if len(found) != len(classes) or not np.array_equal(found, classes):
        raise UserError(
            f"{role} has {len(found)} classes {found}, {other} has {len(classes)} {classes}",
            do="fit both on the same y.",
        )


def check_known_labels(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise unless every label of y is a class of the frozen full classifier, whose classes must be sorted."""
    unknown = np.setdiff1d(y, classes).tolist()
    if unknown or not np.array_equal(np.unique(classes), classes):
        raise UserError(
            f"y holds {np.unique(y).tolist()[:10]}, the frozen full classifier has the classes "
            f"{np.asarray(classes).tolist()}",
            do="pass labels of these classes, and a model whose classes_ are sorted.",
        )


def _weight_keyword(role: str, part: Any) -> str:
    """The keyword of `fit` for weights; with metadata routing, `part` is set to request them."""
    routed = sklearn.get_config()["enable_metadata_routing"]
    if isinstance(part, Pipeline):
        name, last = part.steps[-1]
        keyword = _weight_keyword(role, last)
        if not routed:
            return f"{name}__{keyword}"
        for _, step in part.steps[:-1]:
            if hasattr(step, "fit") and has_fit_parameter(step, "sample_weight"):
                step.set_fit_request(sample_weight=False)
        return keyword
    # a frozen model is not fitted, only its calibration is
    inner = part.estimator if isinstance(part, CalibratedClassifierCV) else None
    fitted = inner is not None and not isinstance(inner, FrozenEstimator)
    if fitted and _weight_keyword(role, inner) != "sample_weight":
        raise UserError(
            f"{role} is a calibrated Pipeline, whose steps get no weights from the calibration",
            do="calibrate its last "
            "step instead, make_pipeline(..., CalibratedClassifierCV(...)), or leave the weights away.",
        )
    if not has_fit_parameter(part, "sample_weight"):
        raise UserError(
            f"{role} is {type(part).__name__}, whose fit takes no sample_weight", do="leave the weights away."
        )
    if routed:
        part.set_fit_request(sample_weight=True)
    return "sample_weight"


Proba = NDArray[np.float64]


class _AttributePrincipal(ClassifierMixin, BaseEstimator):
    """The groups, and the class frequencies p(y | u) in each group."""

    classes_: NDArray[Any]
    group_proba_: NDArray[np.float64]
    class_prior_: NDArray[np.float64]
    predict_proba: Callable[..., NDArray[Any]]
    smoothing: float

    def _learn_groups(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, groups: Groups
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        if sensitive_features is None:
            raise UserError(
                f"{type(self).__name__} needs the groups",
                do="pass sensitive_features= to fit, or set sensitive_columns= "
                "on the classifier around it, which reads them from X.",
            )
        if not 0 <= self.smoothing < np.inf:
            raise UserError(f"smoothing is {self.smoothing}", expected="a finite number of rows >= 0")
        if groups.n_bins < 2:
            raise UserError(f"n_bins is {groups.n_bins}", expected="at least 2, or there is one group and no principal")
        check_classification_targets(y)
        self.classes_, y_codes = np.unique(np.asarray(y), return_inverse=True)
        if len(y_codes) == 0:
            raise UserError("y has no rows", expected="at least one of each class in each group")
        if len(self.classes_) < 2:
            raise UserError(f"y has one class only, {self.classes_.tolist()[0]!r}", expected="two or more")
        weights = check_weights(sample_weight, len(y_codes))
        weights = np.ones(len(y_codes)) if weights is None else weights
        self.groups_ = groups
        codes = groups.learn(sensitive_features, y_codes)
        if X is not None and _num_samples(X) != len(codes):
            raise UserError(
                f"X has {_num_samples(X)} rows, sensitive_features {len(codes)}", expected="the same number"
            )
        if self.smoothing == 0:
            # elsewhere a class that a group lacks has the pseudo-rows
            check_every_class(codes, y_codes, groups.labels, self.classes_, weights)
        shape = len(groups.labels), len(self.classes_)
        self.group_proba_ = group_frequencies(codes, y_codes, shape, weights, self.smoothing)
        self.class_prior_ = np.bincount(y_codes, weights) / weights.sum()
        return codes, y_codes, weights

    def predict(self, X: Any, **groups: Any) -> NDArray[Any]:
        """The most probable class by the attribute alone."""
        proba = self.predict_proba(X, **groups)
        labels: NDArray[Any] = self.classes_[np.argmax(proba, axis=1)]
        return labels


STRIP = 0.01
"""Width of a strip in nats of the log-odds: narrow beside the bands, so that a strip's rows have the same labels
throughout, and wide beside the rounding of a score."""


def strip_place(full_proba: Proba) -> Proba:
    """The place of each row in its strip of the log-odds of two classes, from -1 to 1.

    Examples
    --------
    >>> odds = np.array([0.0025, 0.0075, 0.0125])
    >>> strip_place(np.column_stack([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))])).round(6)
    array([-0.5,  0.5, -0.5])
    """
    log_proba = np.log(np.maximum(full_proba, np.finfo(np.float64).tiny))
    place: Proba = 2 * np.mod((log_proba[:, 1] - log_proba[:, 0]) / STRIP, 1) - 1
    return place


class GroupPrincipal(_AttributePrincipal):
    """The classifier that knows the group and nothing else: p(y | u) by counting.

    ``p(y | u) = (n[u, y] + smoothing * p(y)) / (n[u] + smoothing)``

    Several sensitive columns are crossed: each combination that occurs is a group. A number with more than 20
    values is cut at quantiles.

    Parameters
    ----------
    smoothing : float, default=1.0
        Number of pseudo-rows with frequencies p(y) that are added to each group; keeps small groups near p(y).
    n_bins : int, default=5
        Quantile bins of a continuous sensitive column.
    unseen : {"raise", "prior"}, default="raise"
        A group at predict time that was not there at fit time: an error that names it, or p(y). A row whose group is
        missing is not counted by `fit`, and gets p(y).
    interpolate : bool, default=False
        `TunedOrthogonalClassifier` may give each group a band of scores around its threshold, in which narrow strips of
        the score are selected in turn. With one threshold a group's true and false positive rates lie on its ROC
        curve; with a band they can lie on a chord below it, where the curves of two groups differ but their rates must
        not. Other libraries draw lots there; here the same score and group always get the same decision. Two persons
        of one group whose scores in the band differ slightly can be decided differently, and the higher score is not
        always selected. For two classes.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    groups_ : the groups; ``groups_.labels`` names them
    group_proba_ : ndarray of shape (G, C)
        p(y | u).
    class_prior_ : ndarray of shape (C,)
        p(y).

    Examples
    --------
    >>> sex, y = ["f", "f", "m", "m", "m", "m"], [0, 1, 0, 1, 1, 1]
    >>> principal = GroupPrincipal(smoothing=0).fit(None, y, sensitive_features=sex)
    >>> principal.predict_proba(None, sensitive_features=["m", "f"])
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """

    # a model file of version 0.2.0 has none
    interpolate: bool = False

    def __init__(
        self,
        *,
        smoothing: float = 1.0,
        n_bins: int = 5,
        unseen: Literal["raise", "prior"] = "raise",
        interpolate: bool = False,
    ):
        self.smoothing = smoothing
        self.n_bins = n_bins
        self.unseen = unseen
        self.interpolate = interpolate

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> GroupPrincipal:
        """Count the classes in each group; X is not used."""
        if self.unseen not in ("raise", "prior"):
            raise UserError(f"unseen is {self.unseen!r}", expected="'raise' or 'prior'")
        X, y, sensitive_features, sample_weight = rows_with_groups(X, y, sensitive_features, sample_weight)
        self._learn_groups(X, y, sensitive_features, sample_weight, Groups(self.n_bins))
        if self.interpolate and len(self.classes_) != 2:
            raise UserError(
                f"there are {len(self.classes_)} classes",
                expected="two: interpolate makes a band around a threshold",
                do="leave it out.",
            )
        return self

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Proba:
        """p(y | u) of each row's group; X is not used."""
        check_is_fitted(self)
        if sensitive_features is None:
            raise UserError(
                "GroupPrincipal needs the groups at predict time",
                do="pass sensitive_features=, or set sensitive_columns= "
                "on the classifier around it, which reads them from X, or use ProxyPrincipal, which does without.",
            )
        codes = self.groups_.codes(sensitive_features)
        if X is not None and _num_samples(X) != len(codes):
            raise UserError(
                f"X has {_num_samples(X)} rows, sensitive_features {len(codes)}", expected="the same number"
            )
        if self.unseen == "raise" and (codes == UNSEEN).any():
            known = ", ".join(repr(group_name(label)) for label in self.groups_.labels[:10])
            raise UserError(
                f"unseen group {self.groups_.unseen(sensitive_features, codes)} in {int((codes == UNSEEN).sum())} rows",
                do=f"at fit time there were {known}. Fit on data with that group, or set unseen='prior'.",
            )
        proba: Proba = np.where(codes[:, None] < 0, self.class_prior_, self.group_proba_[codes])
        return proba

    def group_features(self, full_proba: Proba, X: Any, *, sensitive_features: Any = None) -> Proba:
        """One column for each group: 1 for the rows of the group. An unseen group has zeros.

        With `interpolate`, one more for each group: the row's place in its strip, from -1 to 1.
        """
        codes = self.groups_.codes(sensitive_features)
        features: Proba = (codes[:, None] == np.arange(len(self.groups_.labels))).astype(np.float64)
        return np.hstack([features, features * strip_place(full_proba)[:, None]]) if self.interpolate else features


JOINT_FOLDS = 2
"""Folds of the out-of-fold p(u | x) that p(u | x, y) is learned from: each costs a fit of the attribute model."""

JOINT_ROWS = 20_000
"""Rows at most that learn from the scores of other rows' attribute model, where there are more than `max_rows`."""

NEWTON_GROUPS = 12
"""Groups up to which p(u | x, y) is fitted by Newton's method."""

RARE_ROWS = 20
"""Rows of a rare group that a part of the rows has at least, where there are as many."""


class ProxyPrincipal(_AttributePrincipal):
    """The classifier that predicts y from the group as estimated from X: no attribute is needed at predict time.

    An attribute model learns p(u | x), and

    - ``method="joint"``: the principal is that of "mixture". A logistic regression on out-of-fold log p(u | x) and the
      label learns p(u | x, y) as well, and `TunedOrthogonalClassifier` uses it: how much more likely each pair of
      group and label is for a row than on average, ``p(u, y | x) / p(u, y)``, with p(y | x) from the full classifier.
      The most accurate decisions under a bound on equalized odds or demographic parity depend on these ratios.
    - ``method="mixture"``: ``principal(x) = sum_u p(u | x) * p(y | u)``. A heuristic: p(y | u) averaged over the
      groups that x may belong to. It equals p(y | z1) for some z1 only if y and x are independent given u. It is close
      to `GroupPrincipal` where x predicts the group well; elsewhere it is close to p(y), which removes nothing. It
      works well with a tuned strength.
    - ``method="score"``: ``principal(x) = p(y | s(x))`` with ``s(x)`` the out-of-fold p(u | x): a principal
      classifier in the paper's sense, with z1 = s(x). It removes all that the score predicts of y. That is more than
      the group predicts of y, where the features that predict the group also predict y.

    Parameters
    ----------
    attribute_model : classifier, default=HistGradientBoostingClassifier()
        Predicts the group from X, by default with text columns of a frame as categories; `FrozenEstimator` takes a
        fitted one as it is.
    method : {"joint", "mixture", "score"}, default="joint"
    smoothing : float, default=1.0
        See `GroupPrincipal`.
    n_bins : int, default=5
        Quantile bins of a continuous sensitive column.
    cv : int, default=5
        Folds of the out-of-fold scores of ``method="score"``.
    max_rows : int or None, default=50000
        Of more rows, a random part of this size trains the attribute model, and up to 20,000 others train what the
        method learns from its scores: no out-of-fold scores are needed. None takes all.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
    attribute_model_ : the fitted p(u | x)
    group_proba_ : ndarray of shape (G, C)
        p(y | u).
    class_prior_ : ndarray of shape (C,)
    """

    attribute_model_: Any
    joint_model_: Any
    score_model_: Any

    group_prior_: Proba
    _order: list[int]

    def __init__(
        self,
        attribute_model: Any = None,
        *,
        method: Literal["joint", "mixture", "score"] = "joint",
        smoothing: float = 1.0,
        n_bins: int = 5,
        cv: int = 5,
        max_rows: int | None = 50_000,
    ):
        self.attribute_model = attribute_model
        self.method = method
        self.smoothing = smoothing
        self.n_bins = n_bins
        self.cv = cv
        self.max_rows = max_rows

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None) -> ProxyPrincipal:
        """Fit p(u | x), and what the method learns from it."""
        if self.method not in ("joint", "mixture", "score"):
            raise UserError(f"method is {self.method!r}", expected="'joint', 'mixture' or 'score'")
        X, y, sensitive_features, sample_weight = rows_with_groups(X, y, sensitive_features, sample_weight)
        codes, y_codes, weights = self._learn_groups(X, y, sensitive_features, sample_weight, Groups(self.n_bins))
        labels = self.groups_.labels
        if len(labels) < 2:
            raise UserError(
                f"sensitive_features holds one group only, {group_name(labels[0])!r}", expected="two or more"
            )
        # a tuple cannot be a class label
        names = np.array([group_name(label) if isinstance(label, tuple) else label for label in labels])
        model = default_classifier(X) if self.attribute_model is None else self.attribute_model
        attribute = names[codes]
        self.group_prior_ = np.bincount(codes, weights, minlength=len(labels)) / weights.sum()
        train, others = self._parts_of(codes)
        self.attribute_model_ = fit_part(
            "attribute_model",
            model,
            X if others is None else _safe_indexing(X, train),
            attribute[train],
            sample_weight=None if sample_weight is None else np.asarray(sample_weight)[train],
        )
        found = np.asarray(self.attribute_model_.classes_)
        if set(found.tolist()) != set(names.tolist()):
            raise UserError(
                f"attribute_model has the classes {found.tolist()}, sensitive_features holds {names.tolist()}",
                do="fit it on the same groups. TunedOrthogonalClassifier merges small ones, unless min_group_size=1.",
            )
        self._order = [found.tolist().index(name) for name in names.tolist()]
        if self.method == "mixture":
            return self
        # scores of rows that their attribute model has not seen
        if others is None:
            folds = JOINT_FOLDS if self.method == "joint" else self.cv
            proba = self._out_of_fold(model, X, attribute, sample_weight, folds)
            others = np.arange(len(codes))
        else:
            proba = self.attribute_model_.predict_proba(_safe_indexing(X, others))[:, self._order]
        weights = weights[others]
        if self.method == "joint":
            features = _with_label(proba, y_codes[others], len(self.classes_))
            # Newton's steps are few where log-odds of groups are much alike, but their matrix grows with groups^4
            solver = "newton-cholesky" if len(labels) <= NEWTON_GROUPS else "lbfgs"
            joint = LogisticRegression(solver=solver, max_iter=1000, tol=1e-5)
            self.joint_model_ = joint.fit(features, codes[others], weights)
        else:
            bins = KBinsDiscretizer(20, strategy="uniform")
            head = make_pipeline(bins, LogisticRegression(max_iter=1000))
            kept = None if sample_weight is None else weights
            self.score_model_ = fit_part("score model", head, _score(proba), np.asarray(y)[others], sample_weight=kept)
        return self

    def predict_proba(self, X: Any) -> Proba:
        """The principal probabilities of each row, from X alone."""
        return self._principal(self._attribute(X))

    def group_features(self, full_proba: Proba, X: Any) -> Proba:
        """``p(u, y | x) / p(u, y)`` for each pair of label and group; p(u | x) for the other methods."""
        return self._features(full_proba, self._attribute(X))

    def predict_with_features(self, full_proba: Proba, X: Any) -> tuple[Proba, Proba]:
        """`predict_proba` and `group_features`: the attribute model, which may be slow, predicts once."""
        attribute_proba = self._attribute(X)
        return self._principal(attribute_proba), self._features(full_proba, attribute_proba)

    def _attribute(self, X: Any) -> Proba:
        check_is_fitted(self)
        proba: Proba = self.attribute_model_.predict_proba(X)[:, self._order]
        return proba

    def _principal(self, attribute_proba: Proba) -> Proba:
        if self.method != "score":
            proba: Proba = attribute_proba @ self.group_proba_
        else:
            proba = self.score_model_.predict_proba(_score(attribute_proba))
        return proba

    def _features(self, full_proba: Proba, attribute_proba: Proba) -> Proba:
        if self.method != "joint":
            return attribute_proba
        pairs = self.group_prior_[:, None] * self.group_proba_  # p(u, y)
        n, n_classes = full_proba.shape
        lifts = []
        for k in range(n_classes):
            given = _with_label(attribute_proba, np.full(n, k), n_classes)
            lifts.append(full_proba[:, [k]] * self.joint_model_.predict_proba(given) / pairs[:, k])
        return np.hstack(lifts)

    def _parts_of(self, codes: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
        """The rows that train the attribute model, and others where these are not all."""
        if self.max_rows is None or len(codes) <= self.max_rows:
            return np.arange(len(codes)), None
        shuffled = np.random.default_rng(0).permutation(len(codes))
        by_group = shuffled[np.argsort(codes[shuffled], kind="stable")]
        sizes = np.bincount(codes)
        place = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        wanted = np.maximum(sizes * self.max_rows / len(codes), np.minimum(RARE_ROWS, sizes / 2))
        # the rows of a group in two parts; rare groups have as many rows in the second as in the first
        more = np.maximum(wanted * min(1, JOINT_ROWS / self.max_rows), np.minimum(wanted, RARE_ROWS))
        first, second = place < wanted[codes[by_group]], place < (wanted + more)[codes[by_group]]
        return np.sort(by_group[first]), np.sort(by_group[second & ~first])

    def _out_of_fold(self, model: Any, X: Any, attribute: NDArray[Any], sample_weight: Any, cv: int) -> Proba:
        if isinstance(model, FrozenEstimator):
            proba: Proba = model.predict_proba(X)[:, self._order]
            return proba
        proba = np.empty((len(attribute), len(self._order)))
        for train, test in StratifiedKFold(cv, shuffle=True, random_state=0).split(attribute, attribute):
            weights = None if sample_weight is None else np.asarray(sample_weight)[train]
            rows, labels = _safe_indexing(X, train), attribute[train]
            fitted = fit_part("attribute_model", model, rows, labels, sample_weight=weights)
            proba[test] = fitted.predict_proba(_safe_indexing(X, test))
        return proba[:, self._order]


def _with_label(attribute_proba: Proba, y_codes: NDArray[Any], n_classes: int) -> Proba:
    """Log-odds of each group against the last, the label, and their products."""
    log_proba = np.log(np.clip(attribute_proba, 1e-3, 1))
    odds = log_proba[:, :-1] - log_proba[:, -1:]
    label = (y_codes[:, None] == np.arange(1, n_classes)).astype(np.float64)
    products = (odds[:, :, None] * label[:, None, :]).reshape(len(odds), -1)
    return np.hstack([odds, label, products])


def _score(attribute_proba: Proba) -> Proba:
    """Log-odds of each group against the last, no further than 3 from even.

    Beyond that the group is certain, and the exact value differs between folds.
    """
    log_proba = np.log(np.clip(attribute_proba, 1e-6, 1))
    score: Proba = np.clip(log_proba[:, :-1] - log_proba[:, -1:], -3, 3)
    return score


MAX_LEVELS = 250
"""Levels of a category at most, the rare ones together: gradient boosting takes 255."""


def default_classifier(X: Any, random_state: int = 0) -> Any:
    """Gradient boosting for X; columns of a frame that hold neither numbers nor truth values are categories.

    Parameters
    ----------
    X : array or frame of shape (n, d)
    random_state : int, default=0

    Returns
    -------
    classifier
        Not fitted. It takes unseen categories and missing values.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [30, 30] * 50, "job": ["miner", "nurse"] * 50})
    >>> model = default_classifier(people).fit(people, ["m", "f"] * 50)
    >>> model.predict(people[:2]).tolist()
    ['m', 'f']
    >>> default_classifier([[1.0]])
    HistGradientBoostingClassifier(random_state=0)
    """
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    if not isinstance(frame, nw.DataFrame):
        return HistGradientBoostingClassifier(random_state=random_state)
    kinds = {name: frame[:, at].dtype for at, name in enumerate(frame.columns)}
    words = [name for name, kind in kinds.items() if not (kind.is_numeric() or kind == nw.Boolean)]
    if not words:
        return HistGradientBoostingClassifier(random_state=random_state)
    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=MAX_LEVELS,
    )
    # the categories come first, then the other columns
    return make_pipeline(
        # scaled, which changes no split: passed through as they are, columns of arrow would not become numbers
        make_column_transformer((encoder, words), remainder=StandardScaler()),
        HistGradientBoostingClassifier(categorical_features=[*range(len(words))], random_state=random_state),
    )
