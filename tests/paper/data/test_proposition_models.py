import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import kstest, logistic, multivariate_normal, norm
from setminus_paper.data.proposition_models import (
    Diffeomorphism,
    EntangledModel,
    InputGradientModel,
    NonlinearModel,
    expectation_of_log_odds,
    paper_example,
)

from setminus.datasets.synthetic import GaussianModel

seeds = st.integers(0, 2**32 - 1)


@given(d=st.integers(2, 9), n_layers=st.integers(1, 5), seed=seeds)
@settings(deadline=None, max_examples=30)
def test_the_map_is_a_diffeomorphism(d, n_layers, seed):
    warp = Diffeomorphism.random(d, seed, n_layers)
    z = 2 * np.random.default_rng(seed).normal(size=(20, d))
    x = warp.forward(z)
    np.testing.assert_allclose(warp.inverse(x), z, atol=1e-11)
    np.testing.assert_allclose(warp.forward(warp.inverse(z)), z, atol=1e-11)
    step = 1e-5 * np.eye(d)
    jacobian = np.stack([(warp.forward(z + h) - warp.forward(z - h)) / 2e-5 for h in step], axis=2)
    # a volume that is never 0: each coupling scales by at least exp(-1/2) in each direction
    volume = np.abs(np.linalg.det(jacobian))
    assert volume.min() > 0.9 * np.exp(-0.5 * n_layers * (d - d // 2))


def test_a_wrong_inverse_is_noticed():
    z = np.random.default_rng(0).normal(size=(20, 4))
    warp, other = Diffeomorphism.random(4, seed=0), Diffeomorphism.random(4, seed=1)
    assert np.abs(other.inverse(warp.forward(z)) - z).max() > 0.1


@given(
    n_classes=st.integers(2, 5),
    n_z1=st.integers(1, 3),
    n_z2=st.integers(1, 3),
    seed=seeds,
    dependence=st.floats(0, 0.8),
)
@settings(deadline=None, max_examples=25)
def test_posteriors_equal_bayes_rule_on_the_latents(n_classes, n_z1, n_z2, seed, dependence):
    model = NonlinearModel.random(n_classes, n_z1, n_z2, seed, dependence)
    split = model.sample(20, seed)

    def bayes(z, coordinates):
        log_joint = np.log(model.prior) + np.column_stack(
            [
                multivariate_normal.logpdf(z, mean[coordinates], covariance[coordinates, coordinates])
                for mean, covariance in zip(model.latent.means, model.latent.covariances, strict=True)
            ]
        )
        joint = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        return joint / joint.sum(axis=1, keepdims=True)

    # the latents that were drawn, not those that the inverse finds
    drawn = np.column_stack([split.z1, split.z2])
    np.testing.assert_allclose(model.full(split.x), bayes(drawn, slice(None)), atol=1e-10)
    np.testing.assert_allclose(model.principal(split.z1), bayes(split.z1, slice(None, n_z1)), atol=1e-12)
    np.testing.assert_allclose(model.orthogonal(split.z2), bayes(split.z2, slice(n_z1, None)), atol=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_linear_function_of_x_is_a_latent(seed):
    warped, straight = NonlinearModel.random(2, 1, 1, seed), GaussianModel.random(2, 1, 1, seed, mixed=True)
    unexplained = []
    for model in (warped, straight):
        split = model.sample(5000, seed)
        design = np.column_stack([split.x, np.ones(len(split))])
        for latent in (split.z1, split.z2):
            left = latent - design @ np.linalg.lstsq(design, latent)[0]
            unexplained.append(left.var() / latent.var())
    assert min(unexplained[:2]) > 0.01
    assert max(unexplained[2:]) < 1e-20


def test_wrong_models_are_refused():
    rotations = np.stack([np.eye(3)])
    with pytest.raises(ValueError, match=r"stretches and shifts of shape \(1, 1, 2\)"):
        Diffeomorphism(rotations, np.zeros((1, 2, 1)), np.zeros((1, 1, 2)))
    with pytest.raises(ValueError, match="need 2 or more dimensions"):
        Diffeomorphism.random(1, seed=0)
    with pytest.raises(ValueError, match="give both the same number, and the latents no mixing"):
        NonlinearModel(GaussianModel.random(2, 1, 1, seed=0), Diffeomorphism.random(3, seed=0))
    with pytest.raises(ValueError, match="give both the same number, and the latents no mixing"):
        NonlinearModel(GaussianModel.random(2, 1, 1, seed=0, mixed=True), Diffeomorphism.random(2, seed=0))


def density(model, z1, rest, label):
    """p(z1, rest | y), written out with scipy."""
    sign = 1 if label else -1
    bend, width = 1.5 * np.sin(z1), np.exp(0.6 * np.tanh(z1))
    center = sign * model.u_shift + (model.mismatch * z1 if label else 0)
    return norm.pdf(z1, sign * model.z1_shift) * logistic.pdf((rest - bend) / width, center) / width


@pytest.mark.parametrize("mismatch", [0.0, 0.8])
def test_full_principal_and_rest_equal_bayes_rule_with_scipy(mismatch):
    model = EntangledModel(mismatch=mismatch)
    x = model.sample(8, seed=0).x
    joint = np.column_stack([model.prior[label] * density(model, *x.T, label) for label in (0, 1)])
    np.testing.assert_allclose(model.full(x), joint / joint.sum(axis=1, keepdims=True), atol=1e-13)
    for place, found in ((0, model.principal(x[:, 0])), (1, model.rest(x[:, 1]))):
        for row, proba in zip(x, found, strict=True):

            def along(other, label, row=row, place=place):
                z1, rest = (row[0], other) if place == 0 else (other, row[1])
                return density(model, z1, rest, label)

            marginal = [model.prior[label] * quad(along, -30, 30, args=(label,), limit=200)[0] for label in (0, 1)]
            np.testing.assert_allclose(proba, np.array(marginal) / sum(marginal), atol=1e-6)


def test_the_orthogonal_posterior_is_that_of_the_hidden_variable():
    model = EntangledModel()
    split = model.sample(50, seed=0)
    np.testing.assert_allclose(model.hidden(split.x), split.z2[:, 0], atol=1e-12)
    joint = model.prior * np.column_stack([logistic.pdf(split.z2[:, 0], center) for center in (-0.8, 0.8)])
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.orthogonal(split.z2[:, 0]), expected, atol=1e-13)


@pytest.mark.parametrize("mismatch", [0.0, 0.8])
def test_the_conditional_cdf_is_uniform_in_its_own_class(mismatch):
    model = EntangledModel(mismatch=mismatch)
    split = model.sample(20_000, seed=1)
    for label in (0, 1):
        own = split.x[split.y == label]
        assert kstest(model.conditional_cdf(own, label), "uniform").pvalue > 1e-3
        # the control: that of the other class is not
        assert kstest(model.conditional_cdf(own, 1 - label), "uniform").pvalue < 1e-6


def test_no_orthogonal_posterior_where_none_exists():
    with pytest.raises(ValueError, match="an orthogonal variable exists only where it is 0"):
        EntangledModel(mismatch=0.1).orthogonal([0.0])


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


def test_wrong_gradient_models_are_refused():
    for mean1, mean2, inverse in ((2, 2, (2, 2)), (3, 2, (2, 2)), (2, 0, (2, 2))):
        with pytest.raises(ValueError, match="mean2 must be shorter than mean1"):
            InputGradientModel(np.ones(mean1), np.ones(mean2), np.ones(inverse))
