"""The base classes of scikit-learn with types: it has none, and a subclass of an unknown class is unknown itself."""
# ruff: noqa: D102

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    import numpy as np
    from numpy.typing import NDArray

    class BaseEstimator:
        """Parameters that are the arguments of ``__init__``."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def __sklearn_tags__(self) -> Any: ...
        def __sklearn_clone__(self) -> Self: ...

    class ClassifierMixin:
        """The accuracy as the score."""

        def score(self, X: Any, y: Any, *args: Any, **kwargs: Any) -> float: ...
        def __sklearn_tags__(self) -> Any: ...

    class TransformerMixin:
        """Fit and transform in one call."""

        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[np.float64]: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

__all__ = ["BaseEstimator", "ClassifierMixin", "TransformerMixin"]
