"""Every array and number of a reviewed estimator, changed one at a time: what passes the checks does not end a process.

This is how the list of types that "compute with numpy" was tried: an estimator whose compiled code took an attribute
without looking would be killed here. Of many places a sample is changed; ``SETMINUS_FUZZ=1``, as in
``make test-all``, changes six times as many.
"""

import copy
import functools
import os
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils import all_estimators
from threadpoolctl import threadpool_limits

from setminus.estimators.model_contents import _reviewed, check_contents
from tests.made_models import outcome

# those without a fit of their own: FrozenEstimator holds another estimator, as a pipeline does
ESTIMATORS = [
    made
    for _, made in all_estimators()
    if f"{made.__module__}.{made.__name__}" in _reviewed()["ObjectNode"] and made.__name__ != "FrozenEstimator"
]
MEMORY = 4 << 30
MAX_PLACES = 60 if "SETMINUS_FUZZ" in os.environ else 10
METHODS = ("predict_proba", "predict", "decision_function", "transform", "apply", "decision_path")


def fitted(made):
    from tests.estimators.test_model_contents import fitted

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(made)


def places(part, found, seen):
    """Where an attribute or an item is an array or a number, in an estimator and in what it holds."""
    if id(part) in seen:
        return found
    seen.add(id(part))
    inner = part if isinstance(part, dict | list) else getattr(part, "__dict__", {})
    for key, value in inner.items() if isinstance(inner, dict) else enumerate(inner):
        if isinstance(value, np.ndarray | int | float) and not isinstance(value, bool):
            found.append((inner, key))
        elif isinstance(value, tuple):
            for one in value:
                places(one, found, seen)
        elif not isinstance(value, type | functools.partial | str):
            places(value, found, seen)
        if isinstance(value, np.ndarray) and value.dtype == object:
            for one in value.ravel().tolist():
                places(one, found, seen)
    return found


def variants(value):
    if not isinstance(value, np.ndarray):
        return [-1, 0, 1, value + 1, 1 << 40]
    shapes = [value[:0], value[:1], np.concatenate([value, value, value])] if value.ndim else []
    if value.dtype.kind in "iuf":
        with np.errstate(all="ignore"):
            shapes += [np.full(value.shape, one).astype(value.dtype) for one in (-1, 0, 1000, (1 << 31) - 1)]
            shapes += [value.astype(np.int64) + (1 << 40), value[::-1].copy() if value.ndim else value + 1]
    return shapes


def use_changed(made, log):
    """Change, check and use; the log has what is in work."""
    warnings.simplefilter("ignore")
    model, rows = fitted(made)
    inputs = [rows]
    if isinstance(rows, np.ndarray) and rows.ndim == 2:
        inputs += [scipy.sparse.csr_array(rows), rows[:, :1], rows.astype(np.uint8)]
    used = 0
    with threadpool_limits(1):
        n_places = len(places(model, [], set()))
        for at in range(0, n_places, 1 + n_places // MAX_PLACES):
            container, key = places(model, [], set())[at]
            for option in variants(container[key]):
                changed = copy.deepcopy(model)
                container, key = places(changed, [], set())[at]
                container[key] = option
                log.write_text(f"{key} {option!r}"[:200])
                try:
                    check_contents(changed)
                except Exception:
                    continue
                used += 1
                for method in METHODS:
                    for given in inputs:
                        try:
                            getattr(changed, method)(given)
                        except Exception:
                            continue
    log.write_text(f"used {used}")


@pytest.mark.parametrize("made", ESTIMATORS, ids=lambda made: made.__name__)
def test_no_attribute_leads_out_of_memory(made, tmp_path):
    code = outcome(use_changed, made, tmp_path / "log", seconds=120, memory=MEMORY)
    assert code == 0, (code, (tmp_path / "log").read_text())
    assert (tmp_path / "log").read_text().startswith("used ")


def test_a_type_that_is_not_on_the_list_is_killed(tmp_path):
    """The control: this one makes a sparse matrix of as many rows as its parts predict, and scipy does not look."""
    assert OneVsRestClassifier not in ESTIMATORS
    assert outcome(use_changed, OneVsRestClassifier, tmp_path / "log", seconds=120, memory=MEMORY) < 0
