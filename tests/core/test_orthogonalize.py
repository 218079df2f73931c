import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax

from setminus import orthogonalize, orthogonalize_log
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
    for call in (lambda: orthogonalize(hidden, GOOD, "uniform"), lambda: orthogonalize(GOOD, hidden, "uniform")):
        with pytest.raises(ValueError, match="is a masked array with 1 hidden values"):
            call()


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
