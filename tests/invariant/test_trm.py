import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import cross_entropy  # noqa: E402

from setminus.invariant.environments import EnvironmentConfig, risk  # noqa: E402
from setminus.invariant.methods import fit_invariant  # noqa: E402
from setminus.invariant.trm import Trm, TrmConfig, beyond_hull, encoder_of, fit_head, transfer_surrogate  # noqa: E402
from setminus.nn.training import TrainingConfig, train  # noqa: E402


def best_head(own):
    """A head without redundant directions would be unique; a little start at zero picks the smallest."""
    head = torch.nn.Linear(2, 2, bias=False).double()
    torch.nn.init.zeros_(head.weight)
    fit_head(head, own, steps=500, rate=1.5)
    return head


def test_the_surrogate_has_the_gradient_of_the_transfer_risk(environment):
    """Against finite differences in which the head is fitted anew for each change of the features."""
    (x, y), (other, labels) = (
        (x.double(), y) for x, y in (environment(1.0, 1.0, 0, 60), environment(-0.5, 1.0, 1, 60))
    )
    encoder = torch.tensor([[1.0, 0.2], [-0.3, 0.8]], dtype=torch.float64)

    def transfer_risk(matrix):
        return float(risk(best_head((x @ matrix, y)), (other @ matrix, labels)).detach())

    def gradient(matching):
        matrix = encoder.clone().requires_grad_()
        head = best_head((x @ encoder, y))
        transfer, own = cross_entropy(head(other @ matrix), labels), cross_entropy(head(x @ matrix), y)
        transfer_surrogate(head, transfer, own, (x @ encoder, y), matching, 500, 1.5).backward()
        return matrix.grad

    step = 1e-5
    numeric = torch.zeros(2, 2, dtype=torch.float64)
    for place in range(4):
        change = torch.zeros(4, dtype=torch.float64)
        change[place] = step
        up, down = transfer_risk(encoder + change.view(2, 2)), transfer_risk(encoder - change.view(2, 2))
        numeric.view(-1)[place] = (up - down) / (2 * step)
    # an invertible encoder loses nothing that a head cannot put back: the true gradient is nought, the direct part not
    torch.testing.assert_close(gradient(1.0), numeric, atol=1e-5, rtol=0)
    assert float(gradient(0.0).norm()) > 0.05 > 1e-4 > float(numeric.norm())


def test_with_identical_environments_it_is_erm(parts, environment):
    same = environment(0.5, 1.0, 0, 300)
    shared = {"steps": 75, "batch_size": 300, "momentum": 0.0, "weight_decay": 0.0, "rate": 1.0}
    erm = fit_invariant("erm", [same, same], parts(), EnvironmentConfig(**shared))
    config = TrmConfig(**shared, inner_steps=5, inner_rate=0.5)
    trm = fit_invariant("trm", [same, same], parts(), config)
    other = fit_invariant("trm", [same, environment(-0.5, 1.0, 0, 300)], parts(), config)
    torch.testing.assert_close(trm.weights, erm.weights, atol=0.02, rtol=0)
    assert float((other.weights - erm.weights).abs().max()) > 0.1


def test_the_worst_environment_gains_weight(parts, environment):
    environments = [environment(*kind, seed, 200) for seed, kind in enumerate([(1.0, 0.5), (1.0, 0.5), (-1.0, 0.5)])]
    task = Trm(environments, parts(), TrmConfig(batch_size=200, inner_steps=5, ascent=1.0))
    train(task, TrainingConfig(steps=10))
    weights = task.transfer.weights
    torch.testing.assert_close(weights.sum(dim=1), torch.ones(3))
    assert torch.equal(weights.diagonal(), torch.zeros(3))
    assert weights[0, 2] > 0.9 > 0.1 > weights[0, 1]


def test_the_worst_pair_takes_the_weight_of_all_others(parts, environment):
    """The head of the noisy environment does well on the others; theirs do badly on it."""
    environments = [environment(*kind, seed, 200) for seed, kind in enumerate([(1.0, 0.5), (0.0, 2.0)])]
    found = {}
    for worst_pair in (False, True):
        config = TrmConfig(batch_size=200, inner_steps=20, inner_rate=0.5, ascent=5.0, worst_pair=worst_pair)
        task = Trm(environments, parts(), config)
        train(task, TrainingConfig(steps=10))
        found[worst_pair] = task.transfer.weights.sum(dim=1)
    torch.testing.assert_close(found[False], torch.ones(2))
    assert float(found[True].sum()) == pytest.approx(2)
    assert found[True][0] > 1.8


def test_beyond_the_hull_weights_are_bounded_below_and_keep_their_sum():
    corners = torch.eye(3)
    stretched = beyond_hull(corners, 0.5)
    torch.testing.assert_close(stretched.sum(dim=1), torch.ones(3))
    assert float(stretched.min()) == pytest.approx(-0.5)
    assert torch.equal(beyond_hull(corners, 0.0), corners)


def test_the_supremum_beyond_the_hull_is_smallest_where_risks_agree():
    """By hand for two environments: weights (1 + b, -b) or (-b, 1 + b), whichever is larger, is the mean risk plus
    (b + 1/2) times the gap."""
    risks = torch.tensor([0.15, 0.21])
    suprema = (beyond_hull(torch.eye(2), 2.0) @ risks).max()
    assert float(suprema) == pytest.approx(0.18 + 2.5 * 0.06)
    assert float((torch.eye(2) @ risks).max()) == pytest.approx(0.21)


def test_a_network_in_one_piece_is_refused():
    with pytest.raises(ValueError, match="Linear without `head` and `encoder` or `features`"):
        encoder_of(torch.nn.Linear(2, 2))
