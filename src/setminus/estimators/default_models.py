"""The classifier that is used where none is given: gradient boosting, with text columns of a frame as categories."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

__all__ = ["default_classifier"]

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
