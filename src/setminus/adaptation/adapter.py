"""Adaptation to a target without labels, as a scikit-learn classifier for tables and embeddings."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import softmax
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from setminus.adaptation.adapter_parameters import (
    WITH_PRIOR,
    Device,
    Discriminator,
    Estimate,
    Method,
    PredictPrior,
    check_parameters,
)
from setminus.adaptation.automatic import MASS, Layers, Trainer, choose, common_scale, network_logits
from setminus.adaptation.domain_rows import (
    DomainClassifier,
    SampleDomain,
    check_sample_domain,
    held_out_rows,
    labels_of_one_kind,
    source_rows,
)
from setminus.adaptation.label_shift import calibrator, check_proportions, class_frequencies, prior_from_logits
from setminus.errors import MissingExtraError, UserError

__all__ = ["OrthogonalAdapter"]

if TYPE_CHECKING:
    from setminus.adaptation.small_networks import Adapted


Floats = NDArray[np.float64]

VAT_EVERY = 4
"""Steps between two that have the smoothness losses, which take nearly half of a step; see `AdaptationConfig`."""
_TINY = np.finfo(np.float64).tiny


class OrthogonalAdapter(DomainClassifier):
    r"""A classifier for a target domain without labels, whose class frequencies may differ from the source's.

    Adversarial adaptation makes the features of both domains look alike. Where the class frequencies differ, it aligns
    rows of one class with rows of another. Here the encoder plays against ``w_x \ w_1``, a discriminator of domains
    from which the prediction by the class alone is removed, so that each class is aligned with itself.

    Parameters
    ----------
    method : {"auto", "vada_orthogonal", "vada", "vada_iw", "dann", "source_only"}, default="auto"
        "auto" corrects logistic regression for the target's class frequencies as far as evidence without target labels
        supports their estimate, which it moves toward the source's by its error; otherwise it averages a linear model
        and networks for equal frequencies, with the method above if that passes its checks; see `evidence_`.
        "vada_orthogonal" is the method above alone. The others are VADA, which aligns all rows; VADA with importance
        weights; domain adversarial training; no adaptation. All share the parameters below.
    label_shift : {"em", "bbse", "pseudo"}, default="em"
        How "vada_orthogonal" and "vada_iw" estimate the target's class frequencies: by maximum likelihood or by
        black-box shift estimation, both once, from the classifier before adaptation; or by the classifier's own
        decisions in the last epoch, as in the paper.
    shrinkage : float in [0, 1], default=0.0
        Shrink that estimate toward equal frequencies (0 to 1). 0.5 is a safeguard where a classifier of the source
        makes many errors on the target, which bias its estimate.
    target_prior : array of shape (C,), optional
        The target's class frequencies in the order of `classes_`, where they are known: used instead of an estimate.
    predict_prior : {"auto", "equal", "target"}, default="auto"
        The class frequencies that predictions assume; "auto" is "target" for the method "auto", and "equal" for the
        others. The network is trained with equal class weights, so that a class that is rare in the source is learned,
        and predicts for equal frequencies. "target" multiplies its probabilities by `target_prior_`: better where a
        class is rare in the target, if that estimate is reliable. It may be changed after fitting, except that
        "source_only" needs it at fit: its network is then calibrated, and the frequencies estimated, on held-out source
        rows. "vada" and "dann" need `target_prior`.
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
    early_stopping : bool, default=True
        Stop adaptation before `steps` where the predictions for the target hardly change any more, and the loss on
        held-out source rows has stopped falling. No label of the target is used.
    device : {"cpu", "cuda", "mps", "auto"}, default="cpu"
        Where to train; predictions are on the CPU.
    random_state : int, RandomState instance or None, default=0

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The classes of the source.
    source_prior_, target_prior_ : ndarray of shape (C,)
        Class frequencies of the source, and those of the target: `target_prior`, or their estimate, shrunk by
        `shrinkage`; for "auto" those that predictions assume, which are nearer to the source's than its estimate; for
        methods without an estimate the frequencies of their predictions. Without target rows: those of the source.
    estimated_ : bool
        Whether `target_prior_` is an estimate or known, instead of the frequencies of the predictions.
    layers_ : list of (weight, bias)
        The network as arrays: prediction needs no torch.
    evidence_ : dict
        For "auto": which model was `kept` ("linear", "networks", their "average", "adapted", or a "blend" of a
        `corrected` and an `uncorrected` one), the `reason`, and the numbers: the `estimate` of the target's
        frequencies, its `trust` from 0 to 1, and those that decided; see the page "Why adaptation can hurt".
    mean_, scale_ : ndarray of shape (n_features,)
        The mean of the source rows, and the deviation within a domain, by which all rows are standardised; for "auto"
        one deviation for all columns if they have one unit.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat([0, 1, 0, 1], [80, 20, 20, 80])
    >>> sample_domain = np.repeat([1, -1], 100)
    >>> X = rng.normal(scale=0.3, size=(200, 2)) + np.column_stack([2.0 * y, 0.5 * (sample_domain < 0)])
    >>> adapter = OrthogonalAdapter(steps=100).fit(X, y, sample_domain=sample_domain)
    >>> adapter.target_prior_.round(1)
    array([0.3, 0.7])
    >>> np.round(adapter.evidence_["estimate"], 1)
    array([0.2, 0.8])
    """

    classes_: NDArray[Any]
    source_prior_: NDArray[np.float64]
    target_prior_: NDArray[np.float64]
    mean_: NDArray[np.float64]
    scale_: NDArray[np.float64]
    layers_: Layers
    estimated_: bool

    # models of earlier versions have no value of these
    target_prior: ArrayLike | None = None
    early_stopping: bool = False
    device: Device = "cpu"
    evidence_: dict[str, Any]

    def __init__(
        self,
        method: Method = "auto",
        *,
        label_shift: Estimate = "em",
        shrinkage: float = 0.0,
        target_prior: ArrayLike | None = None,
        predict_prior: PredictPrior = "auto",
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
        early_stopping: bool = True,
        device: Device = "cpu",
        random_state: Any = 0,
    ):
        self.method = method
        self.label_shift = label_shift
        self.shrinkage = shrinkage
        self.target_prior = target_prior
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
        self.early_stopping = early_stopping
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_domain: SampleDomain = None) -> OrthogonalAdapter:
        """Learn from labelled rows of the source and rows of the target.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
            Rows of both domains. A sparse matrix is made dense.
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
        X = self._rows(X, reset=True)
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
        known = None
        if self.target_prior is not None:
            known = check_proportions("target_prior", self.target_prior, len(self.classes_))
        self.source_prior_ = np.bincount(codes) / len(codes)
        self.mean_ = X[of_source].mean(axis=0, dtype=np.float64)
        # of both domains: a feature that is almost constant in the source may be far away in the target
        domains = [rows for rows in (X[of_source], X[~of_source]) if len(rows)]
        scale = np.sqrt(np.mean([rows.var(axis=0, dtype=np.float64) for rows in domains], axis=0))
        automatic = self.method == "auto" and len(domains) == 2
        if hasattr(self, "evidence_"):
            # of an earlier fit
            del self.evidence_
        self.scale_ = common_scale(scale) if automatic else np.where(scale > 0, scale, 1.0)
        source, target = self._standardised(X[of_source]), self._standardised(X[~of_source])
        random = check_random_state(self.random_state)
        if automatic:
            return self._choose(source, codes, target, known, random)
        held = self._held_out(codes, target, random)
        fitted = self._adapt(source, codes, target, held, random)
        self.layers_ = fitted.layers
        self.target_prior_ = self.source_prior_
        if len(target):
            decided = self._logits(target).argmax(axis=1)
            counted = np.bincount(decided, minlength=len(self.classes_)) / len(target)
            self.target_prior_ = counted if fitted.target_prior is None else fitted.target_prior
            if self.method == "source_only" and held.any():
                self.target_prior_ = self._calibrate(source[held], codes[held], target)
        if known is not None:
            self.target_prior_ = known
        corrects = self.method == "source_only" and self.predict_prior == "target"
        self.estimated_ = self.method in WITH_PRIOR or corrects or known is not None
        return self

    def predict_proba(self, X: Any, sample_domain: SampleDomain = None, *, allow_source: bool = True) -> Floats:
        """Probabilities of target rows, in the order of `classes_`, for the class frequencies of `predict_prior`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        sample_domain : array of int of shape (n,) or int, optional
            As skada passes it. It is checked and not used: rows of every domain get the target's prediction.
        allow_source : bool, default=True
            As skada passes it; not used.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        check_sample_domain(sample_domain, len(X))
        # again: predict_prior may be changed after fitting
        check_parameters(self.get_params(deep=False))
        logits = self._logits(self._standardised(X)) + self._log_prior()
        proba: Floats = softmax(logits, axis=1)
        return proba

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _rows(self, X: Any, *, reset: bool) -> Floats:
        rows = validate_data(self, X, dtype=(np.float64, np.float32), accept_sparse="csr", reset=reset)
        dense: Floats = rows.toarray() if issparse(rows) else rows
        return dense

    def _held_out(self, codes: NDArray[np.int64], target: Floats, random: np.random.RandomState) -> NDArray[np.bool_]:
        """Mask of the source rows that the network is not trained on, where frequencies are estimated from them."""
        corrects = self.method == "source_only" and self.predict_prior == "target"
        estimates = self.label_shift != "pseudo" and self.target_prior is None and len(target) > 0
        if estimates and (self.method in WITH_PRIOR or corrects):
            return held_out_rows(codes, self.held_out, random)
        return np.zeros(len(codes), dtype=bool)

    def _choose(
        self,
        source: Floats,
        codes: NDArray[np.int64],
        target: Floats,
        known: Floats | None,
        random: np.random.RandomState,
    ) -> OrthogonalAdapter:
        """Fit by the method "auto"."""
        held = held_out_rows(codes, self.held_out, random)

        def fold_networks(folds: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> list[Layers]:
            from setminus.adaptation.small_networks import fold_networks

            return fold_networks(
                source,
                codes,
                folds,
                width=self.hidden_size,
                steps=self.steps,
                batch=self.batch_size,
                rate=self.learning_rate,
                seed=int(random.randint(2**31 - 1)),
                device=self.device,
            )

        def adapted(prior: Floats | None) -> Layers:
            return self._adapt(
                source, codes, target, held, random, method="vada_orthogonal", known=prior, mass=MASS
            ).layers

        def single() -> Layers:
            # without targets' rows or held-out ones: the network of the method "source_only"
            return self._adapt(source, codes, target, np.zeros_like(held), random, method="source_only").layers

        # the regularisation that scikit-learn's default has on the rows as they came, unless that is weaker
        one_unit = bool(np.all(self.scale_ == self.scale_[0]))
        fitted = choose(
            source,
            codes,
            target,
            Trainer(fold_networks, adapted, single, held),
            strength=min(float(self.scale_[0]) ** 2, 1.0) if one_unit else 1.0,
            known=known,
            seed=int(random.randint(2**31 - 1)),
        )
        self.layers_, self.target_prior_, self.evidence_ = fitted.layers, fitted.target_prior, fitted.evidence
        self.estimated_ = True
        return self

    def _calibrate(self, held: Floats, codes: NDArray[np.int64], target: Floats) -> Floats:
        """Calibrate the network for equal class frequencies, by its last layer; return the target's frequencies."""
        source_logits, target_logits = self._logits(held), self._logits(target)
        n_classes = len(self.classes_)
        fitted = calibrator(source_logits, codes)
        estimate = prior_from_logits(
            source_logits, codes, target_logits, "bbse" if self.label_shift == "bbse" else "em"
        )
        weight, bias = self.layers_[-1]
        for_equal = fitted.bias - np.log(class_frequencies(codes, n_classes))
        self.layers_ = [*self.layers_[:-1], (fitted.scale * weight, fitted.scale * bias + for_equal)]
        return (1 - self.shrinkage) * estimate + self.shrinkage / n_classes

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

    def _adapt(
        self,
        source: Floats,
        codes: NDArray[np.int64],
        target: Floats,
        held_out: NDArray[np.bool_],
        random: np.random.RandomState,
        *,
        method: Method | None = None,
        known: ArrayLike | None = None,
        mass: float = 0.0,
    ) -> Adapted:
        try:
            import torch
        except ImportError as error:
            raise MissingExtraError("fitting an OrthogonalAdapter", "torch", extra="nn") from error

        from setminus.adaptation.domains import DomainData, LabelShift
        from setminus.adaptation.methods import AdaptationConfig
        from setminus.adaptation.small_networks import adapted
        from setminus.adaptation.vada import VadaConfig

        method = (method or self.method) if len(target) else "source_only"
        known = self.target_prior if known is None else known
        x, labels = torch.from_numpy(source).float(), torch.from_numpy(codes).long()
        held = torch.from_numpy(held_out)
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
        config = AdaptationConfig(
            losses, self.learning_rate, self.batch_size, warmup=self.steps // 5, vat_every=VAT_EVERY
        )
        return adapted(
            method,
            data,
            config,
            label_shift=LabelShift(
                "pseudo_hard" if self.label_shift == "pseudo" else self.label_shift,
                shrinkage=self.shrinkage,
                known=None if known is None else tuple(np.asarray(known, float).tolist()),
            ),
            discriminator=self.discriminator,
            width=self.hidden_size,
            steps=self.steps,
            refine_steps=self.refine_steps if len(target) else 0,
            seed=int(random.randint(2**31 - 1)),
            device=self.device,
            mass=mass,
            early_stopping=self.early_stopping,
        )

    def _standardised(self, X: Floats) -> Floats:
        # of the precision of X
        rows: Floats = (X - self.mean_.astype(X.dtype)) / self.scale_.astype(X.dtype)
        return rows

    def _log_prior(self) -> Floats:
        """The log of the class frequencies that predictions assume, 0 for equal ones."""
        if not (self.predict_prior == "target" or (self.predict_prior == "auto" and hasattr(self, "evidence_"))):
            return np.zeros(len(self.classes_))
        # models of earlier versions have an estimate
        if not getattr(self, "estimated_", True):
            raise UserError(
                "predict_prior was 'equal' at fit: method 'source_only' did not estimate the target's frequencies",
                do="fit again with predict_prior='target'.",
            )
        # at least tiny: a row may be certain of a class with an estimate of 0
        logs: Floats = np.log(np.maximum(self.target_prior_, _TINY))
        return logs

    def _logits(self, x: Floats) -> Floats:
        return network_logits(self.layers_, x)
