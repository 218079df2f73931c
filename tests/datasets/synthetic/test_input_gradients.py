import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from setminus.datasets.synthetic.input_gradients import InputGradientModel, expectation_of_log_odds, paper_example


def random_model(k, m, curved, seed):
    rng = np.random.default_rng(seed)
    inverse = rng.normal(size=(k, k)) + 3 * np.eye(k)
    return InputGradientModel(rng.normal(size=k), rng.normal(size=m), inverse, curved)


models = st.integers(2, 5).flatmap(
    lambda k: st.builds(random_model, st.just(k), st.integers(1, k - 1), st.booleans(), st.integers(0, 2**32 - 1))
)


@given(models)
@settings(deadline=None, max_examples=25)
def test_latents_and_posteriors(model):
    split = model.sample(10, seed=0)
    z1, z2 = model.latents(split.x)
    np.testing.assert_allclose(z1, split.z1, atol=1e-8)
    np.testing.assert_allclose(z2, split.z2, atol=1e-12)
    m = len(model.mean2)
    z, mean = np.concatenate([z1, z2], axis=1), np.r_[model.mean1, model.mean2]
    for found, values, center in (
        (model.full(split.x), z, mean),
        (model.principal(z1), z1, model.mean1),
        (model.orthogonal(z2), z2, model.mean2),
        (model.nested(z1), z1[:, :m], model.mean1[:m]),
    ):
        logs = [multivariate_normal.logpdf(values, sign * center) for sign in (-1, 1)]
        np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(logs[0] - logs[1])), atol=1e-11)
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-12)


@given(models)
@settings(deadline=None, max_examples=25)
def test_gradients_equal_finite_differences(model):
    x = model.sample(5, seed=0).x
    step = 1e-6

    def probabilities(points):
        z1, z2 = model.latents(points)
        return [proba[:, 1] for proba in (model.principal(z1), model.orthogonal(z2), model.nested(z1))]

    ends = [(probabilities(x + h), probabilities(x - h)) for h in step * np.eye(x.shape[1])]
    for place, gradient in enumerate(model.gradients(x)):
        expected = np.column_stack([(high[place] - low[place]) / (2 * step) for high, low in ends])
        np.testing.assert_allclose(gradient, expected, atol=1e-6 * max(1, np.abs(expected).max()))


@given(models)
@settings(deadline=None, max_examples=25)
def test_the_condition_is_what_the_product_of_principal_and_nested_adds(model):
    # gradients of P(y=1) are slopes p (1 - p) times those of the log-odds
    x = model.sample(5, seed=0).x
    z1, _ = model.latents(x)
    gradients, m = model.gradients(x), len(model.mean2)
    slopes = [proba.prod(axis=1) for proba in (model.principal(z1), model.nested(z1))]
    product = (gradients.principal * gradients.nested).sum(axis=1)
    expected = 4 * slopes[0] * slopes[1] * (model.mean1[:m] @ model.mean1[:m] + model.condition(x))
    np.testing.assert_allclose(product, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("curved", [False, True])
def test_the_expected_product_is_the_mean_of_a_sample_for_any_map(curved):
    model = InputGradientModel(np.array([0.5, 0.2, 0.7]), np.array([0.6, -0.1]), np.diag([1.0, 2.0, 3.0]), curved)
    gradients = model.gradients(model.sample(200_000, seed=0).x)
    products = (gradients.principal * gradients.orthogonal).sum(axis=1)
    error = products.std() / np.sqrt(len(products))
    assert abs(products.mean() - model.expected_product()) < 4 * error
    assert model.expected_product() > 50 * error


def test_expectations_equal_those_of_a_sample():
    mean = np.array([0.4, -0.9])
    rng = np.random.default_rng(0)
    log_odds = 2 * (mean + rng.normal(size=(400_000, 2))) @ mean
    assert expectation_of_log_odds(np.cos, mean) == pytest.approx(np.cos(log_odds).mean(), abs=0.005)


def test_the_printed_value_belongs_to_the_transposed_matrix():
    matrix = np.array([[2, -3, 3], [1, -1, 5], [1, -1, 1]])
    x = np.zeros((1, 5))
    np.testing.assert_array_equal(paper_example(as_printed=True).inverse, matrix)
    np.testing.assert_array_equal(paper_example().inverse, matrix.T)
    # in whole numbers: sums over the first two of the three rows or columns
    assert (matrix @ matrix.T)[:, :2].sum() == paper_example(as_printed=True).condition(x) == 104
    assert (matrix.T @ matrix)[:, :2].sum() == paper_example().condition(x) == -2


def test_wrong_models_are_refused():
    for mean1, mean2, inverse in ((2, 2, (2, 2)), (3, 2, (2, 2)), (2, 0, (2, 2))):
        with pytest.raises(ValueError, match="mean2 must be shorter than mean1"):
            InputGradientModel(np.ones(mean1), np.ones(mean2), np.ones(inverse))
