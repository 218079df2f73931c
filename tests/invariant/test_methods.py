import pytest

torch = pytest.importorskip("torch")

from setminus.invariant.environments import EnvironmentConfig  # noqa: E402
from setminus.invariant.gradient_matching import FishConfig, MldgConfig, meta_risk  # noqa: E402
from setminus.invariant.methods import METHODS, fit_invariant  # noqa: E402
from setminus.invariant.trm import TrmConfig  # noqa: E402
from setminus.nn.networks import seeded  # noqa: E402

SPURIOUS = [(1.0, 0.5), (0.8, 0.7), (-0.9, 2.0)]
"""Mean and noise of the second feature: where its sign turns it varies most, hence curvature is largest there."""

FULL_BATCH = {"batch_size": 1000, "steps": 150, "momentum": 0.0, "decay_at": 10_000}
# rates are far above the paper's: at 0.1 all three end where ERM ends
CONFIGS = {
    "mldg": MldgConfig(**FULL_BATCH, inner_rate=1.5),
    "fish": FishConfig(**FULL_BATCH, rate=1.8, meta_rate=0.1),
    "trm": TrmConfig(**FULL_BATCH | {"steps": 75}, inner_rate=0.5, inner_steps=10, ascent=0.3),
}


def spurious_share(network):
    invariant, spurious = network.weights.abs()
    return float(spurious / invariant)


@pytest.fixture(scope="module", params=range(2))
def problem(request, environment):
    """The environments of a seed."""
    seed = request.param
    return [environment(*kind, 10 * seed + place) for place, kind in enumerate(SPURIOUS)]


@pytest.mark.parametrize("method", sorted(CONFIGS))
def test_the_spurious_feature_counts_at_most_half_as_much_as_for_erm(problem, parts, method):
    erm = spurious_share(fit_invariant("erm", problem, parts(), EnvironmentConfig(**FULL_BATCH, rate=0.5)))
    found = spurious_share(fit_invariant(method, problem, parts(), CONFIGS[method]))
    assert erm > 0.1
    assert found < erm / 2


def population(background):
    """Colored digits as rows: (z1, z2) in signs, each combination as often as its probability says, times 400."""
    right, own = 0.95, (1 + background) / 2
    counts = [round(200 * p * q) for p in (right, 1 - right) for q in (own, 1 - own)]
    signs = torch.tensor([[1.0, 1], [1, -1], [-1, 1], [-1, -1]], dtype=torch.float64)
    x = signs.repeat_interleave(torch.tensor(counts), dim=0)
    return torch.cat([-x, x]), torch.arange(2).repeat_interleave(len(x))


def minimised(objective):
    network = torch.nn.Linear(2, 2, bias=False).double()
    torch.nn.init.zeros_(network.weight)
    optimizer = torch.optim.LBFGS(network.parameters(), max_iter=500, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = objective(network)
        loss.backward()
        return loss

    optimizer.step(closure)
    return (network.weight[1] - network.weight[0]).detach()


def test_on_the_papers_two_environments_mldg_at_the_papers_rate_is_pooled_erm():
    """Its penalty acts through differences in curvature, which these environments hardly have; a large one does act."""
    environments = [population(0.8), population(0.4)]

    def both_ways(inner_rate, beta):
        def objective(network):
            first, second = environments
            return meta_risk(network, [first], second, inner_rate, beta) + meta_risk(
                network, [second], first, inner_rate, beta
            )

        return minimised(objective)

    pooled = torch.log(torch.tensor([0.95 / 0.05, 0.8 / 0.2], dtype=torch.float64))
    torch.testing.assert_close(both_ways(0.0, 1.0), pooled, rtol=1e-3, atol=0)
    torch.testing.assert_close(both_ways(0.1, 1.0), pooled, rtol=1e-2, atol=0)
    digit, background = both_ways(15.0, 10.0)
    assert background / digit < 0.5 * pooled[1] / pooled[0]


def test_the_same_seed_gives_the_same_bits(environment, parts):
    environments = [environment(1.0, 1.0, 0, 64), environment(0.0, 1.0, 1, 64)]
    for method, (_, config) in METHODS.items():
        one, same, other = (
            fit_invariant(method, environments, parts(), config(steps=3, batch_size=16, seed=seed)).weights
            for seed in (0, 0, 1)
        )
        assert torch.equal(one, same)
        assert not torch.equal(one, other)


@pytest.mark.parametrize("method", sorted(METHODS))
def test_batch_statistics_are_those_of_all_environments(environment, method):
    class Normalized(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.head = torch.nn.BatchNorm1d(2, affine=False), torch.nn.Linear(2, 2)

        def forward(self, x):
            return self.head(self.encoder(x))

    environments = [environment(1.0, 0.1, 0, 512), environment(0.0, 5.0, 1, 512)]
    config = METHODS[method][1](steps=2, batch_size=32)
    network = fit_invariant(method, environments, seeded(0, Normalized), config)
    rows = torch.cat([x for x, _ in environments])
    torch.testing.assert_close(network.encoder.running_var, rows.var(dim=0))
    assert not network.training


def test_what_cannot_be_fitted_is_refused_in_words(environment, parts):
    one = environment(1.0, 1.0, 0, 8)
    with pytest.raises(ValueError, match="no method is called 'irm'; the known ones are"):
        fit_invariant("irm", [one, one], parts())
    with pytest.raises(ValueError, match="'fish' was given a MldgConfig: give a FishConfig"):
        fit_invariant("fish", [one, one], parts(), MldgConfig())
    with pytest.raises(ValueError, match=r'1 environment was given.*use "erm" for one'):
        fit_invariant("mldg", [one], parts())
    with pytest.raises(ValueError, match=r"environment 1 has inputs of shape .* expected one int64 label"):
        fit_invariant("erm", [one, (one[0], one[1].float())], parts())
    with pytest.raises(ValueError, match="expected the same in all environments"):
        fit_invariant("erm", [one, (one[0][:, :1], one[1])], parts())
