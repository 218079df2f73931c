"""What classifiers of two domains share: decisions and accuracy, with skada's ``sample_domain`` in every method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from numpy.typing import NDArray

from setminus.adaptation.domain_rows import SampleDomain, Unknown, target_accuracy
from setminus.estimators.sklearn_bases import BaseEstimator, ClassifierMixin

__all__ = ["DomainClassifier"]


class DomainClassifier(ClassifierMixin, BaseEstimator):
    """`predict` and `score` from the `predict_proba` and `classes_` of a subclass."""

    classes_: NDArray[Any]
    predict_proba: Callable[..., NDArray[Any]]
    # skada's scorers pass these
    __metadata_request__fit: ClassVar = {"sample_domain": True}
    __metadata_request__predict: ClassVar = {"sample_domain": True, "allow_source": True}
    __metadata_request__predict_proba: ClassVar = {"sample_domain": True, "allow_source": True}
    __metadata_request__score: ClassVar = {"sample_domain": True, "sample_weight": True, "allow_source": True}

    def predict(self, X: Any, sample_domain: SampleDomain = None, *, allow_source: bool = True) -> NDArray[Any]:
        """The most probable class of target rows; parameters as in `predict_proba`."""
        codes = self.predict_proba(X, sample_domain).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def score(
        self,
        X: Any,
        y: Any,
        sample_domain: SampleDomain = None,
        *,
        sample_weight: Any = None,
        unknown: Unknown = "raise",
        allow_source: bool = True,
    ) -> float:
        """Accuracy on rows with labels.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, n_features)
        y : array of shape (n,)
            Rows with the label -1, which skada gives to target rows, are left out, if -1 is no class of the source.
        sample_domain, allow_source
            As in `predict_proba`.
        sample_weight : array of shape (n,), optional
        unknown : {"raise", "ignore"}, default="raise"
            What to do with rows of classes that the source lacks.
        """
        predicted = self.predict(X, sample_domain)
        return target_accuracy(y, predicted, self.classes_, sample_weight=sample_weight, unknown=unknown)
