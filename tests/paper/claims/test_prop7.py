import json

import numpy as np
import pytest
from scipy.optimize import minimize
from setminus_paper.claims import prop7
from setminus_paper.data.proposition_models import paper_example

from tests.paper.claims.committed import has_the_keys_of

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def metrics():
    found = {}
    for run in prop7.plan("quick", (0,)):
        [found[run.config["matrix"]]] = run.measure(run.seeds, n=1500)
    assert json.loads(json.dumps(found)) == found
    assert has_the_keys_of("prop7", {"matrix": "printed"}, found["printed"])
    return found


def rows(metrics, matrix):
    return [row for table in metrics[matrix]["penalties"].values() for row in table]


def test_both_readings_of_the_paper_s_number(metrics):
    assert metrics["transposed"]["condition"] == -2
    assert metrics["printed"]["condition"] == 104


def test_with_the_transposed_matrix_a_part_of_z1_beats_the_orthogonal_classifier(metrics):
    exact = metrics["transposed"]["exact"]
    assert exact["nested_cross_entropy"] == exact["orthogonal_cross_entropy"]
    assert exact["nested_squared_cosine"] < 1e-30
    assert exact["orthogonal_squared_cosine"] == pytest.approx(1 / 16)
    assert all(row["nested"] < row["orthogonal"] for row in rows(metrics, "transposed"))


@pytest.mark.parametrize("matrix", ["printed", "steep"])
def test_control_with_other_matrices_it_does_not(metrics, matrix):
    # steep has a negative condition too: below 0 is not enough
    assert metrics["steep"]["condition"] == -10
    exact = metrics[matrix]["exact"]
    assert exact["nested_squared_cosine"] > exact["orthogonal_squared_cosine"]
    assert all(row["nested"] > row["orthogonal"] for row in rows(metrics, matrix))


@pytest.mark.parametrize("matrix", ["transposed", "printed", "steep"])
def test_the_minimiser_is_never_the_orthogonal_classifier(metrics, matrix):
    for row in rows(metrics, matrix):
        assert row["trained"] < min(row["orthogonal"], row["nested"]) - 0.02
        assert row["trained_penalty"] < row["orthogonal_penalty"]
        assert row["trained_distance"] > 0.03
        assert row["trained_explained_by_z1"] > 0.1
    assert metrics[matrix]["setminus_distance"] < 1e-12
    assert metrics[matrix]["setminus_explained_by_z1"] < 0.01
    assert metrics[matrix]["nested_explained_by_z1"] == pytest.approx(1)


def losses(penalty, weight, n=500):
    model = paper_example()
    split = model.sample(n, seed=0)
    principal = model.gradients(split.x).principal
    tensors = [torch.tensor(values, dtype=torch.float64) for values in (split.x, split.y, principal)]
    return model, split, principal, prop7.PenalizedLoss(*tensors, penalty, weight)


@pytest.mark.parametrize("penalty", ["cosine", "dot"])
def test_the_loss_is_its_formula_in_numpy(penalty):
    model, split, principal, loss = losses(penalty, 3.0)
    z1, z2 = model.latents(split.x)
    gradients = model.gradients(split.x)
    slopes = prop7.exact_slopes(model)
    for name, proba in (("orthogonal", model.orthogonal(z2)), ("principal", model.principal(z1))):
        gradient = getattr(gradients, name)
        product = (gradient * principal).sum(axis=1)
        if penalty == "cosine":
            product /= np.linalg.norm(gradient, axis=1) * np.linalg.norm(principal, axis=1)
        expected = -np.log(proba[np.arange(len(proba)), split.y]).mean() + 3 * np.mean(product**2)
        found = loss(torch.tensor(np.r_[slopes[name], 0.0]))
        assert float(found) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("penalty", ["cosine", "dot"])
def test_the_minimiser_is_that_of_another_optimiser(penalty):
    model, _, _, loss = losses(penalty, 10.0)
    slopes = prop7.exact_slopes(model)
    starts = [np.r_[slopes[name], 0.0] for name in ("orthogonal", "full")]
    _, value = prop7.fit_penalized(loss, starts)
    found = [
        minimize(
            lambda p: float(loss(torch.tensor(p))), start, method="L-BFGS-B", options={"maxiter": 2000, "maxfun": 10**5}
        )
        for start in starts
    ]
    assert value == pytest.approx(min(one.fun for one in found), abs=1e-4)
    # the control: without penalty, and so without its cost, another value
    _, free = prop7.fit_penalized(losses(penalty, 0.0)[-1], starts)
    assert free < value - 1e-3


def test_explained_by_z1_is_the_share_of_the_variance():
    rng = np.random.default_rng(0)
    z1, other, y = rng.normal(size=(50_000, 1)), rng.normal(size=50_000), rng.integers(0, 2, 50_000)
    assert prop7.explained_by_z1(2 * z1[:, 0] + other + 7 * y, z1, y) == pytest.approx(0.8, abs=0.01)
    assert prop7.explained_by_z1(other + 7 * y, z1, y) < 0.001
