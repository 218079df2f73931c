import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, logistic, norm

from setminus.datasets.synthetic.entangled import EntangledModel


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
