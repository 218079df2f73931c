import errno
import os
import shutil
import signal
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

import setminus
from setminus import orthogonalize, orthogonalize_log
from setminus.core import orthogonalize as formula
from setminus.core.checks import OverlapWarning


def distributions(rng, *shape):
    return rng.dirichlet(np.ones(shape[-1]), size=shape[:-1])


def naive(full, principal, prior, strength=1.0):
    ratio = full * (prior / principal) ** strength
    return ratio / ratio.sum(-1, keepdims=True)


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**31),
    n_classes=st.integers(2, 6),
    leading=st.lists(st.integers(0, 4), max_size=3),
    strength=st.sampled_from([0.0, 0.3, 1.0, 1.7]),
    per_row=st.booleans(),
)
def test_equals_the_formula_for_any_shape(seed, n_classes, leading, strength, per_row):
    rng = np.random.default_rng(seed)
    full, principal = (distributions(rng, *leading, n_classes) for _ in range(2))
    prior = distributions(rng, *leading, n_classes) if per_row else distributions(rng, n_classes)
    expected = naive(full, principal, prior, strength)
    np.testing.assert_allclose(orthogonalize(full, principal, prior, strength=strength), expected, atol=1e-12)
    logs = orthogonalize_log(np.log(full), np.log(principal), np.log(prior), strength=strength)
    np.testing.assert_allclose(np.exp(logs), expected, atol=1e-12)


def test_forgetting_the_prior_changes_the_answer():
    full, principal, prior = np.array([[0.2, 0.8]]), np.array([[0.5, 0.5]]), [0.9, 0.1]
    assert abs(orthogonalize(full, principal, prior) - orthogonalize(full, principal, "uniform")).max() > 0.3
    with pytest.raises(TypeError, match="prior"):
        orthogonalize(full, principal)


def test_one_prior_row_is_shared_by_all_rows():
    rng = np.random.default_rng(0)
    full, principal, prior = distributions(rng, 5, 3), distributions(rng, 5, 3), distributions(rng, 3)
    np.testing.assert_array_equal(orthogonalize(full, principal, prior[None]), orthogonalize(full, principal, prior))


@pytest.mark.parametrize("tiny", [1e-160, 1e-300, 5e-324])
@pytest.mark.parametrize("strength", [0.5, 1.0, 3.0])
def test_tiny_principal_probabilities_give_finite_and_correct_answers(tiny, strength):
    full = np.array([[0.3, 0.7], [0.5, 0.5], [0.0, 1.0]])
    principal = np.array([[tiny, 1.0], [0.5, 0.5], [tiny, 1.0]])
    answer = orthogonalize(full, principal, [0.4, 0.6], strength=strength)
    # odds in logs, by hand
    log_odds = np.log(0.3 / 0.7) - strength * (np.log(tiny) - np.log(0.4 / 0.6))
    np.testing.assert_allclose(answer[0, 1], 1 / (1 + np.exp(np.minimum(log_odds, 700))), atol=1e-300)
    np.testing.assert_allclose(answer[1], naive(full[1], principal[1], np.array([0.4, 0.6]), strength), atol=1e-12)
    np.testing.assert_array_equal(answer[2], [0, 1])


def test_full_probability_of_exactly_zero_stays_zero_even_without_overlap():
    full, principal = np.array([[0.0, 0.4, 0.6]]), np.array([[0.0, 0.5, 0.5]])
    np.testing.assert_allclose(orthogonalize(full, principal, "uniform"), [[0, 0.4, 0.6]], atol=1e-15)


class TestOverlap:
    full = np.array([[0.2, 0.8], [0.5, 0.5], [0.3, 0.7]])
    principal = np.array([[0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])

    def test_raise_says_how_many_rows_and_which_classes(self):
        with pytest.raises(ValueError, match=r"no overlap in 2 of 3 rows.*class 0, 1 is exactly 0"):
            orthogonalize(self.full, self.principal, "uniform")
        with np.errstate(divide="ignore"), pytest.raises(ValueError, match=r"no overlap in 2 of 3 rows"):
            orthogonalize_log(np.log(self.full), np.log(self.principal), "uniform")

    def test_rows_and_classes_are_counted_over_all_leading_axes(self):
        full = np.full((2, 3, 4), 0.25)
        principal = full.copy()
        principal[0, 1] = [0, 0.5, 0.5, 0]
        principal[1, :] = [1 / 3, 1 / 3, 1 / 3, 0]
        with pytest.raises(ValueError, match=r"no overlap in 4 of 6 rows.*class 0, 3 is exactly 0"):
            orthogonalize(full, principal, "uniform")
        priors = np.array([[0.5, 0.5], [1.0, 0.0], [0.5, 0.5]])
        with pytest.raises(ValueError, match="prior is 0 for class 1:"):
            orthogonalize(np.full((3, 2), 0.5), np.full((3, 2), 0.5), priors)

    def test_clip_is_finite_and_warn_warns(self):
        clipped = orthogonalize(self.full, self.principal, "uniform", on_violation="clip")
        np.testing.assert_allclose(clipped, [[0.2, 0.8], [1, 0], [0, 1]], atol=1e-12)
        with pytest.warns(OverlapWarning, match="2 of 3 rows"):
            warned = orthogonalize(self.full, self.principal, "uniform", on_violation="warn")
        np.testing.assert_array_equal(warned, clipped)

    def test_strength_zero_needs_no_overlap(self):
        np.testing.assert_allclose(orthogonalize(self.full, self.principal, "uniform", strength=0), self.full)


GOOD = np.array([[0.5, 0.5], [0.25, 0.75]])


@pytest.mark.parametrize(
    ("full", "principal", "prior", "message"),
    [
        ([[np.nan, 1.0], [0.5, 0.5]], GOOD, "uniform", "full has 1 values that are NaN"),
        (GOOD, [[-0.5, 1.5], [0.5, 0.5]], "uniform", "principal has 1 values that are negative"),
        (GOOD, [[0.5, 0.5], [0.5, 1.5]], "uniform", "principal has 1 values that are above 1"),
        (
            [[0.4, 0.4], [0.5, 0.5]],
            GOOD,
            "uniform",
            r"full has 1 rows that do not sum to 1 \(the first sums to 0.8\)",
        ),
        (GOOD, GOOD[:1], "uniform", r"principal has shape \(1, 2\), full has \(2, 2\)"),
        (GOOD, GOOD, [0.2, 0.3, 0.5], r"prior has shape \(3,\), full has \(2, 2\)"),
        (GOOD, GOOD, np.full((3, 2), 0.5), r"prior has shape \(3, 2\), full has \(2, 2\): expected \(2,\)"),
        (GOOD, GOOD, np.full((1, 2, 2), 0.5), r"prior has shape \(1, 2, 2\), full has \(2, 2\)"),
        (GOOD, GOOD, [0.2, 0.3, 0.5], r"expected \(2,\), one entry per class"),
        (np.full((2, 3, 2), 0.5), np.full((2, 3, 2), 0.5), [0.2, 0.3, 0.5], r"expected \(2,\), one entry per class"),
        (GOOD[..., :2].repeat(2, axis=1) / 2, GOOD.repeat(2, axis=1) / 2, [0.5, 0.5], r"expected \(4,\)"),
        (GOOD, GOOD, [0.5, 0.6], "prior has 1 rows that do not sum to 1"),
        (GOOD, GOOD, [1.0, 0.0], "prior is 0 for class 1"),
        (GOOD, GOOD, "empirical", "prior is 'empirical': expected class frequencies"),
        (
            GOOD,
            GOOD,
            None,
            r"^prior is None: pass the class frequencies p\(y\) of the principal's data, or 'uniform'\.$",
        ),
        (GOOD, GOOD, [0.5], "prior has shape"),
        (GOOD, GOOD, ["a", "b"], r"^prior has dtype <U1: expected class frequencies, one number per class\.$"),
        (GOOD[:, :1], GOOD[:, :1], "uniform", "one probability for each of 2 or more classes"),
        ([["a", "b"]], GOOD, "uniform", "full has dtype"),
        (0.5, 0.5, "uniform", "full is a single number"),
    ],
)
def test_bad_values_are_named(full, principal, prior, message):
    with pytest.raises(ValueError, match=message):
        orthogonalize(np.asarray(full), np.asarray(principal), prior)


def test_rounding_is_allowed_as_far_as_the_precision_asks():
    for dtype, allowed, refused in (np.float16, 5e-3, 5e-2), (np.float32, 5e-5, 5e-4), (np.float64, 5e-5, 5e-4):
        orthogonalize(np.array([[0.5, 0.5 + allowed]], dtype), np.array([[0.5, 0.5]], dtype), "uniform")
        with pytest.raises(ValueError, match="full has 1 rows that do not sum to 1"):
            orthogonalize(np.array([[0.5, 0.5 + refused]], dtype), np.array([[0.5, 0.5]], dtype), "uniform")


@pytest.mark.parametrize(
    "bad", [-1, float("nan"), float("inf"), np.float32("nan"), np.float16(-1), np.array(np.inf), "1", None]
)
def test_bad_strength(bad):
    with pytest.raises(ValueError, match="strength is"):
        orthogonalize(GOOD, GOOD, "uniform", strength=bad)
    with pytest.raises(ValueError, match="strength is"):
        orthogonalize_log(np.log(GOOD), np.log(GOOD), "uniform", strength=bad)


def test_one_strength_for_all_rows():
    principal = GOOD[::-1]
    expected = orthogonalize(GOOD, principal, "uniform", strength=0.5)
    for same in (np.float32(0.5), np.array(0.5)):
        np.testing.assert_array_equal(orthogonalize(GOOD, principal, "uniform", strength=same), expected)
    # as many as classes, which would be broadcast over them
    with pytest.raises(ValueError, match=r"strength has shape \(2,\): expected one number for all rows"):
        orthogonalize(GOOD, principal, "uniform", strength=np.array([0.5, 1.0]))


def test_hidden_values_of_masked_arrays_are_refused():
    hidden = np.ma.masked_array(GOOD, mask=[[True, False], [False, False]])
    for name, arrays in ("full", (hidden, GOOD)), ("principal", (GOOD, hidden)):
        with pytest.raises(ValueError, match=f"^{name} is a masked array with 1 hidden values"):
            orthogonalize(*arrays, "uniform")


def test_bad_words_and_bad_out():
    with pytest.raises(ValueError, match="on_violation is 'ignore'"):
        orthogonalize(GOOD, GOOD, "uniform", on_violation="ignore")
    with pytest.raises(ValueError, match="out is float32"):
        orthogonalize(GOOD, GOOD, "uniform", out=np.empty((2, 2), np.float32))
    with pytest.raises(ValueError, match=r"log_full.*above 0"):
        orthogonalize_log(GOOD, np.log(GOOD), "uniform")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([[np.nan, 0.0], [0.0, -np.inf]], "log_principal has 1 values that are NaN"),
        ([[0.5, 0.25], [0.0, -np.inf]], "log_principal has 2 values that are above 0:"),
        (np.log([[0.5, 0.4], [0.5, 0.5]]), r"exp\(log_principal\) has 1 rows that do not sum to 1"),
    ],
)
def test_bad_logs_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        orthogonalize_log(np.log(GOOD), np.asarray(bad), "uniform")


def test_logs_may_be_above_zero_as_far_as_the_precision_asks():
    for dtype, allowed in (np.float16, 5e-3), (np.float64, 5e-5):
        log_full = np.array([[allowed, -np.inf]], dtype)
        answer = orthogonalize_log(log_full, np.log(GOOD[:1]).astype(dtype), "uniform")
        np.testing.assert_array_equal(answer, [[0, -np.inf]])


def test_out_may_be_the_input_itself():
    rng = np.random.default_rng(0)
    full, principal = distributions(rng, 100, 3), distributions(rng, 100, 3)
    principal[7] = [1e-320, 0.5, 0.5]
    expected = orthogonalize(full, principal, "uniform")
    answer = orthogonalize(full, principal, "uniform", out=full)
    assert answer is full
    np.testing.assert_array_equal(answer, expected)


def test_lists_and_integers_are_taken_as_float64():
    answer = orthogonalize([[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]], [0.5, 0.5])
    assert answer.dtype == np.float64
    np.testing.assert_array_equal(answer, np.eye(2))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_dtype_stays(dtype):
    rng = np.random.default_rng(0)
    full, principal = (distributions(rng, 20, 3).astype(dtype) for _ in range(2))
    assert orthogonalize(full, principal, [0.2, 0.3, 0.5]).dtype == dtype
    logs = orthogonalize_log(log_softmax(full, -1).astype(dtype), log_softmax(principal, -1).astype(dtype), "uniform")
    assert logs.dtype == dtype


@pytest.fixture(params=["compiled", "blocked"])
def path(request, monkeypatch):
    monkeypatch.setattr(formula, "COMPILED_FROM", 0)
    monkeypatch.setattr(formula, "BLOCK", 64)
    if request.param == "compiled":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr(formula, "_compiled", lambda n_classes, power, shared: None)
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


@pytest.mark.parametrize("n_classes", [2, 5])
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
@pytest.mark.parametrize("strength", [0.05, 0.3, 1.7, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("per_row", [False, True])
def test_exact_over_the_whole_safe_range(path, n_classes, strength, dtype, per_row):
    """Against extended precision, with principal probabilities from 1 down to the smallest safe one."""
    rng = np.random.default_rng(n_classes)
    floor = formula._floor(np.dtype(dtype), strength)
    principal = np.exp(rng.uniform(np.log(2 * floor), 0, size=(300, n_classes)))
    principal[:, 0] += 1 - principal.sum(axis=-1).clip(max=1)
    principal = (principal / principal.sum(axis=-1, keepdims=True)).astype(dtype).clip(min=2 * floor)
    full = rng.dirichlet(np.ones(n_classes), size=300).astype(dtype)
    prior = rng.dirichlet(np.full(n_classes, 9.0), size=300 if per_row else None).astype(dtype)
    out = np.empty_like(full)
    assert formula.orthogonalize_rows(full, principal, prior, strength, out)
    wide = [a.astype(np.longdouble) for a in (full, principal, prior)]
    expected = wide[0] * (wide[2] / wide[1]) ** np.longdouble(strength if path == "blocked" else dtype(strength))
    expected /= expected.sum(axis=-1, keepdims=True)
    # by logs, a power has the rounding error of its logarithm, which is up to 360 in double precision and 44 in single
    units = 8 if path == "compiled" else 8 + 2 * abs(np.log(floor)) * strength
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(out, expected.astype(float), rtol=units * eps, atol=np.finfo(dtype).tiny / eps)


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


def plain(full, principal, prior, strength=1.0):
    """Whether the pass vouches for its answer, which is then the formula's."""
    out = np.empty_like(full)
    vouched = formula.orthogonalize_rows(full, principal, np.asarray(prior, full.dtype), strength, out)
    if vouched:
        expected = in_logs(*(np.asarray(a, np.float64) for a in (full, principal, prior)), strength)
        np.testing.assert_allclose(out, expected, atol=1e-12 if full.dtype == np.float64 else 1e-2)
    return vouched


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("strength", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("per_row", [False, True])
class TestPlain:
    """A row that is no distribution, or so small that products leave the range, is never vouched for."""

    @pytest.fixture
    def given(self, path, n_classes, per_row):
        full, principal, prior = problem(n_classes, n=41)
        principal = 0.9 * principal + 0.1 / n_classes
        return full, principal, np.tile(prior, (41, 1)) if per_row else prior

    def test_distributions_are(self, given, strength):
        full, principal, prior = given
        assert plain(full, principal, prior, strength)
        full[7] = np.eye(len(full[7]))[0]
        assert plain(full, principal, prior, strength)

    @pytest.mark.parametrize("row", [0, 20, 40])
    def test_sums_are_looked_at(self, given, strength, row):
        full, principal, prior = given
        for array in (full, principal):
            array[row, 0] += 1e-3
            assert not plain(full, principal, prior, strength)
            array[row, 0] -= 2e-3
            assert not plain(full, principal, prior, strength)
            array[row, 0] += 1e-3
        # rounding is not
        full[row, 0] += 2e-5
        principal[row, -1] -= 2e-5
        assert plain(full / full.sum(-1, keepdims=True), principal, prior, strength)

    @pytest.mark.parametrize("row", [0, 40])
    def test_signs_and_small_values_are_looked_at(self, given, strength, row):
        full, principal, prior = given
        for k in (0, -1):
            changed = full.copy()
            changed[row, k - 1] += changed[row, k] + 1e-5
            changed[row, k] = -1e-5
            assert not plain(changed, principal, prior, strength)
            changed = principal.copy()
            changed[row, k - 1] += changed[row, k]
            changed[row, k] = 1e-155
            assert not plain(full, changed, prior, strength)
            changed[row, k] = 0
            assert not plain(full, changed, prior, strength)
            changed[row, k] = np.nan
            assert not plain(full, changed, prior, strength)

    def test_a_tiny_prior_is(self, given, strength):
        full, principal, prior = given
        tiny = prior.copy()
        tiny[..., 0] = 1e-155
        assert not plain(full, principal, tiny, strength)


def test_small_values_down_to_the_root_of_the_smallest_are_easy(path):
    full, principal = np.array([[0.5, 0.5]]), np.array([[1e-153, 1.0]])
    assert plain(full, principal, [0.5, 0.5])
    assert not plain(full, np.array([[1e-154, 1.0]]), [0.5, 0.5])


def test_half_precision_and_no_rows_are_plain(path):
    rng = np.random.default_rng(0)
    full, principal = rng.dirichlet(np.full(3, 3.0), size=(2, 60)).astype(np.float16)
    assert abs(full.astype(float).sum(-1) - 1).max() > 1e-4
    assert plain(full, principal, np.full(3, 1 / 3))
    assert formula.orthogonalize_rows(*np.empty((2, 0, 3)), np.ones(3) / 3, 1.0, np.empty((0, 3))) is True


def test_a_power_that_leaves_the_range_is_not_vouched_for(path):
    full, principal = np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([[0.5, 0.5], [1e-100, 1.0]])
    assert plain(full, principal, [0.5, 0.5], 1.0)
    assert not plain(full, principal, [0.5, 0.5], 4.0)
    np.testing.assert_allclose(orthogonalize(full, principal, [0.5, 0.5], strength=4.0), [[0.5, 0.5], [1, 0]])


def test_compiled_loops_are_used_for_large_straight_arrays_only(monkeypatch):
    pytest.importorskip("numba")
    asked = []
    compiled = formula._compiled
    monkeypatch.setattr(formula, "_compiled", lambda *kind: asked.append(kind) or compiled(*kind))
    monkeypatch.setattr(formula, "COMPILED_FROM", 150)
    full, principal, prior = problem(5, n=30)
    orthogonalize(full[:29], principal[:29], prior)
    orthogonalize(np.asfortranarray(full), principal, prior)
    orthogonalize(full.astype(np.float16), principal.astype(np.float16), prior)
    assert asked == []
    orthogonalize(full, principal, prior)
    orthogonalize(full, principal, prior, strength=0.5)
    orthogonalize(full, principal, np.tile(prior, (30, 1)))
    assert asked == [(5, False, True), (5, True, True), (5, False, False)]


def test_threads_are_as_many_as_asked_for_or_allowed(monkeypatch):
    monkeypatch.setenv("SETMINUS_THREADS", "7")
    assert formula._threads() == 7
    monkeypatch.setenv("SETMINUS_THREADS", "0")
    assert formula._threads() == 1
    monkeypatch.delenv("SETMINUS_THREADS")
    if hasattr(os, "sched_getaffinity"):
        assert formula._threads() == len(os.sched_getaffinity(0))
        monkeypatch.delattr(os, "sched_getaffinity")
    assert formula._threads() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert formula._threads() == 1


def test_strided_input_and_output(path):
    full, principal, prior = problem(4)
    expected = orthogonalize(full, principal, prior)
    wide = np.zeros((len(full), 8))
    answer = orthogonalize(np.asfortranarray(full), principal[::1], prior, out=wide[:, ::2])
    np.testing.assert_allclose(answer, expected, atol=1e-15)
    np.testing.assert_array_equal(wide[:, ::2], answer)
    # axes in another order: rows of the output do not follow each other, whatever is done
    swapped = np.zeros((3, 167, 4)).swapaxes(0, 1)
    cube = [a.reshape(167, 3, 4) for a in (full, principal)]
    assert orthogonalize(*cube, prior, out=swapped) is swapped
    np.testing.assert_allclose(swapped.reshape(-1, 4), expected, atol=1e-15)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_change_nothing(path, threads, monkeypatch):
    full, principal, prior = problem(2)
    expected = orthogonalize(full, principal, prior)
    monkeypatch.setenv("SETMINUS_THREADS", threads)
    np.testing.assert_array_equal(orthogonalize(full, principal, prior), expected)


def test_a_number_of_threads_is_a_number(path, monkeypatch):
    monkeypatch.setenv("SETMINUS_THREADS", "many")
    with pytest.raises(ValueError, match="SETMINUS_THREADS is 'many': expected a whole number of threads"):
        orthogonalize(*problem(2))


LARGE = """
import os, sys, time
import numpy as np
from setminus import orthogonalize
from setminus.core import orthogonalize as formula
if "blocked" in sys.argv:
    formula._compiled = lambda n_classes, power, shared: None
full, principal = np.random.default_rng(0).dirichlet([1, 1], size=(2, formula.COMPILED_FROM // 2 + 1))

def answer():
    return orthogonalize(full, principal, "uniform")

expected = answer()
"""
FORKED = """
def forked(deeper):
    child = os.fork()
    if child == 0:
        right = np.array_equal(answer(), expected) and (forked(deeper - 1) if deeper else True)
        sys.exit(0 if right else 1)
    return os.waitpid(child, 0)[1] == 0

sys.exit(0 if forked(deeper=1) else 1)
"""
POOLED = """
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    answers = [pool.apply_async(answer) for _ in range(4)]
    sys.exit(0 if all(np.array_equal(one.get(), expected) for one in answers) else 1)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("way", ["compiled", "blocked"])
@pytest.mark.parametrize("script", [FORKED, POOLED], ids=["a child and its child", "a pool of children"])
def test_a_forked_child_has_threads_of_its_own(script, way):
    """The parent has predicted: its threads are not in the child, which would wait for them for ever."""
    if way == "compiled":
        pytest.importorskip("numba")
    # two threads on any machine, and a process of its own: this one may have threads that must not be forked
    environment = {**os.environ, "SETMINUS_THREADS": "2"}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", LARGE + script, way]
    with subprocess.Popen(command, env=environment, start_new_session=True) as parent:
        try:
            assert parent.wait(timeout=120) == 0
        except subprocess.TimeoutExpired:
            os.killpg(parent.pid, signal.SIGKILL)  # with the children that wait
            pytest.fail("a child waits for threads that it does not have")


@pytest.mark.parametrize("workers", ["threads", "loky"])
def test_called_by_several_workers_at_once(workers, monkeypatch):
    monkeypatch.setenv("SETMINUS_THREADS", "2")
    full, principal, _ = problem(2, n=formula.COMPILED_FROM // 2 + 1)
    calls = [(full, principal, [prior, 1 - prior]) for prior in (0.2, 0.4, 0.6, 0.8)]
    expected = [orthogonalize(*call) for call in calls]
    if workers == "threads":
        with ThreadPool(4) as pool:
            found = pool.starmap(orthogonalize, calls)
    else:
        found = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(orthogonalize)(*call) for call in calls)
    np.testing.assert_array_equal(found, expected)


UNCACHED = """
import numba
assert formula.__file__.startswith(sys.argv[1]), formula.__file__
assert isinstance(formula._compiled(2, False, True), numba.core.dispatcher.Dispatcher)
np.testing.assert_allclose(expected.sum(axis=-1), 1)
try:
    from setminus.core import fused
    numba.njit(cache=True)(fused._binary_rows)
except RuntimeError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs /dev/null")
def test_compiles_where_no_folder_can_be_written(tmp_path):
    """Neither beside the package nor at home; by obstacles that stop root too, which ignores permissions."""
    pytest.importorskip("numba")
    copy = tmp_path / "setminus"
    shutil.copytree(Path(setminus.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "core" / "__pycache__").write_text("a file where a folder would have to be")
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-B", "-c", LARGE + UNCACHED, str(tmp_path)]
    done = subprocess.run(command, env=environment, timeout=240, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # the obstacles are there: numba alone gives up
    assert "no locator available" in done.stdout


def test_compiles_where_the_disk_is_full(tmp_path, monkeypatch):
    numba = pytest.importorskip("numba")
    tries = []

    def full_disk(*_):
        tries.append(1)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full_disk)
    formula._compiled.cache_clear()
    try:
        answer = orthogonalize(*problem(2, n=formula.COMPILED_FROM // 2 + 1))
        np.testing.assert_allclose(answer.sum(axis=-1), 1)
    finally:
        formula._compiled.cache_clear()
    assert tries
