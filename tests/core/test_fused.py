"""The compiled pass and the blocked one give the same answers, and send the same rows back for a second look."""

import numpy as np
import pytest

from setminus import orthogonalize
from setminus.core import fused


@pytest.fixture(params=["compiled", "blocked"])
def path(request, monkeypatch):
    monkeypatch.setattr(fused, "COMPILED_FROM", 0)
    monkeypatch.setattr(fused, "BLOCK", 64)
    if request.param == "compiled":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(fused, "_compiled", lambda n_classes, easy: None)
    return request.param


def problem(n_classes, dtype=np.float64, n=501):
    rng = np.random.default_rng(n_classes)
    full, principal = rng.dirichlet(np.ones(n_classes), size=(2, n)).astype(dtype)
    return full, principal, rng.dirichlet(np.ones(n_classes))


def in_logs(full, principal, prior, strength):
    with np.errstate(divide="ignore"):
        score = np.log(full) - strength * (np.log(principal) - np.log(prior))
    score -= score.max(-1, keepdims=True)
    return np.exp(score) / np.exp(score).sum(-1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 3, 10])
@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equals_logs(path, n_classes, strength, dtype):
    full, principal, prior = problem(n_classes, dtype)
    tight = 1e-12 if dtype is np.float64 else 1e-5
    expected = in_logs(full.astype(np.float64), principal.astype(np.float64), prior, strength)
    answer = orthogonalize(full, principal, prior, strength=strength)
    assert answer.dtype == dtype
    np.testing.assert_allclose(answer, expected, atol=tight)
    per_row = np.tile(prior, (len(full), 1))
    np.testing.assert_allclose(orthogonalize(full, principal, per_row, strength=strength), expected, atol=tight)


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("strength", [1.0, 2.0])
def test_hard_rows_among_easy_ones(path, n_classes, strength):
    full, principal, prior = problem(n_classes)
    principal[3, 0], principal[400, 1] = 1e-300, 1e-200
    principal /= principal.sum(-1, keepdims=True)
    full[10] = np.eye(n_classes)[0]
    full[11, :] = principal[11, :] = np.eye(n_classes)[1]
    expected = in_logs(np.delete(full, 11, 0), np.delete(principal, 11, 0), prior, strength)
    answer = orthogonalize(full, principal, prior, strength=strength)
    np.testing.assert_allclose(np.delete(answer, 11, 0), expected, atol=1e-12)
    np.testing.assert_array_equal(answer[11], np.eye(n_classes)[1])


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("strength", [1.0, 2.0])
@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN"), (-0.5, "negative"), (0.0, "no overlap in 1 of 501"), (3.0, "above 1")],
)
def test_one_bad_value_anywhere_is_found(path, n_classes, strength, value, message):
    full, principal, prior = problem(n_classes)
    principal[500, n_classes - 1] = value
    if value == 0:
        principal[500] /= principal[500].sum()
    with pytest.raises(ValueError, match=message):
        orthogonalize(full, principal, prior, strength=strength)
    full[250, 0] += 0.01
    with pytest.raises(ValueError, match="full has 1 rows that do not sum to 1"):
        orthogonalize(full, principal, prior, strength=strength)


def test_strided_input_and_output(path):
    full, principal, prior = problem(4)
    expected = orthogonalize(full, principal, prior)
    wide = np.zeros((len(full), 8))
    answer = orthogonalize(np.asfortranarray(full), principal[::1], prior, out=wide[:, ::2])
    np.testing.assert_allclose(answer, expected, atol=1e-15)
    np.testing.assert_array_equal(wide[:, ::2], answer)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_change_nothing(path, threads, monkeypatch):
    full, principal, prior = problem(2)
    expected = orthogonalize(full, principal, prior)
    monkeypatch.setenv("SETMINUS_THREADS", threads)
    np.testing.assert_array_equal(orthogonalize(full, principal, prior), expected)
