import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from setminus.datasets.synthetic.gaussian import GaussianModel
from setminus.datasets.synthetic.nonlinear import Diffeomorphism, NonlinearModel

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
