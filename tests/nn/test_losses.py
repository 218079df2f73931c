"""Each loss against numbers worked out by hand, and the paper's claim on what the orthogonal loss wants."""

import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.core.orthogonalize import orthogonalize  # noqa: E402
from setminus.nn.losses import (  # noqa: E402  # noqa: E402
    conditional_entropy,
    cycle_loss,
    domain_discriminator_loss,
    domain_encoder_loss,
    gan_discriminator_loss,
    gan_generator_loss,
    identity_loss,
    log_density_ratio,
    orthogonal_generator_loss,
    orthogonal_logits,
    virtual_adversarial_loss,
)


def logits_of(*proba):
    return torch.tensor([math.log(p / (1 - p)) for p in proba], dtype=torch.float64)


def log_rows(*proba_of_a):
    return torch.tensor([[p, 1 - p] for p in proba_of_a], dtype=torch.float64).log()


def test_gan_losses_by_hand():
    real, fake = logits_of(0.8, 0.5), logits_of(0.25, 0.1, 0.5)
    discriminator = -(math.log(0.8) + math.log(0.5)) / 2 - (math.log(0.75) + math.log(0.9) + math.log(0.5)) / 3
    assert gan_discriminator_loss(real, fake).item() == pytest.approx(discriminator, abs=1e-12)
    generator = -(math.log(0.25) + math.log(0.1) + math.log(0.5)) / 3
    assert gan_generator_loss(fake).item() == pytest.approx(generator, abs=1e-12)


def test_domain_losses_by_hand():
    source, target = logits_of(0.9, 0.6), logits_of(0.3)
    discriminator = -(math.log(0.9) + math.log(0.6)) / 2 - math.log(0.7)
    assert domain_discriminator_loss(source, target).item() == pytest.approx(discriminator, abs=1e-12)
    encoder = -(math.log(0.1) + math.log(0.4)) / 2 - math.log(0.3)
    assert domain_encoder_loss(source, target).item() == pytest.approx(encoder, abs=1e-12)


def test_an_undecided_discriminator_costs_the_same_on_both_sides():
    half = torch.zeros(5)
    for loss in (gan_discriminator_loss, domain_discriminator_loss, domain_encoder_loss):
        assert loss(half, half).item() == pytest.approx(2 * math.log(2))
    assert gan_generator_loss(half).item() == pytest.approx(math.log(2))


def test_a_sure_discriminator_gives_finite_losses_and_a_full_gradient():
    fake = torch.tensor([-200.0], requires_grad=True)
    gan_generator_loss(fake).backward()
    assert fake.grad.item() == pytest.approx(-1)
    # the saturating form has none left, which is why it is not the one used
    saturated = torch.tensor([-200.0], requires_grad=True)
    (-torch.nn.functional.softplus(saturated)).mean().backward()
    assert saturated.grad.item() == pytest.approx(0, abs=1e-12)
    assert gan_discriminator_loss(-fake.detach(), fake.detach()).item() == pytest.approx(0)
    source, target = torch.tensor([200.0], requires_grad=True), torch.tensor([-200.0], requires_grad=True)
    domain_encoder_loss(source, target).backward()
    assert (source.grad.item(), target.grad.item()) == (1, -1)


def test_density_ratio_by_hand():
    # 0.9 / 0.1 = 9 against 0.6 / 0.4 = 1.5
    ratio = log_density_ratio(log_rows(0.9), log_rows(0.6), "uniform", "uniform").exp()
    assert ratio.item() == pytest.approx(9 / 1.5)


def test_density_ratio_is_free_of_the_priors():
    rng = np.random.default_rng(0)
    p_z1, q_z1, p_z2, q_z2 = rng.dirichlet(np.ones(4), size=4)
    p_x, q_x = np.outer(p_z1, p_z2), np.outer(q_z1, q_z2)
    p_1, q_1 = (np.broadcast_to(z1[:, None], (4, 4)) for z1 in (p_z1, q_z1))
    expected = np.broadcast_to(np.log(p_z2 / q_z2), (4, 4)).ravel()

    def classifier(p, q, share):
        joint = np.stack([share * p.ravel(), (1 - share) * q.ravel()], axis=1)
        return torch.tensor(joint / joint.sum(1, keepdims=True)).log()

    for full_share, principal_share in ((0.5, 0.5), (0.3, 0.3), (0.2, 0.9)):
        full, principal = classifier(p_x, q_x, full_share), classifier(p_1, q_1, principal_share)
        priors = [full_share, 1 - full_share], [principal_share, 1 - principal_share]
        answer = log_density_ratio(full, principal, *priors)
        np.testing.assert_allclose(answer.numpy(), expected, atol=1e-12)
        forgotten = log_density_ratio(full, principal, "uniform", "uniform")
        # equal domains for both, whichever they are, cancel; the negative control is when they differ
        assert np.allclose(forgotten.numpy(), expected) == (full_share == principal_share)
        orthogonal = orthogonalize(full.exp(), principal.exp(), priors[1])
        odds = orthogonal[:, 0].log() - orthogonal[:, 1].log() - math.log(full_share / (1 - full_share))
        np.testing.assert_allclose(answer.numpy(), odds.numpy(), atol=1e-12)


def test_the_clamp_is_on_the_ratio_itself():
    log_full, log_principal = log_rows(0.999, 0.5, 0.001).requires_grad_(), log_rows(0.5, 0.6, 0.5)
    clamped = log_density_ratio(log_full, log_principal, "uniform", "uniform", clamp=(0.1, 9))
    np.testing.assert_allclose(clamped.exp().detach().numpy(), [9, 1 / 1.5, 0.1])
    clamped.sum().backward()
    assert (log_full.grad[:, 0] != 0).tolist() == [False, True, False]


def test_orthogonal_logits_are_the_papers_phi():
    d, r = torch.tensor([0.3, 0.9, 0.5], dtype=torch.float64), torch.tensor([0.5, 4.0, 1.0], dtype=torch.float64)
    for direction, ratio in (("a_to_b", r), ("b_to_a", 1 / r)):
        phi = d * ratio / ((1 - d) + d * ratio)
        torch.testing.assert_close(orthogonal_logits(logits_of(*d), r.log(), direction).sigmoid(), phi)
        expected = -phi.log().mean()
        torch.testing.assert_close(orthogonal_generator_loss(logits_of(*d), r.log(), direction), expected)


@pytest.mark.parametrize("direction", ["a_to_b", "b_to_a"])
@pytest.mark.parametrize("clamp", [None, (0.1, 9)])
def test_a_principal_that_is_the_full_one_gives_exactly_the_plain_loss(direction, clamp):
    rng = torch.Generator().manual_seed(0)
    log_full = torch.randn(50, 2, generator=rng).log_softmax(-1)
    fake_logits = torch.randn(50, 1, 3, 3, generator=rng)
    log_ratio = log_density_ratio(log_full, log_full, [0.3, 0.7], [0.3, 0.7], clamp=clamp)
    loss, plain = orthogonal_generator_loss(fake_logits, log_ratio, direction), gan_generator_loss(fake_logits)
    assert loss.item() == plain.item()
    # the negative control: another principal gives another loss
    other = log_density_ratio(log_full, log_full.flip(1), [0.3, 0.7], [0.3, 0.7], clamp=clamp)
    assert abs(orthogonal_generator_loss(fake_logits, other, direction).item() - plain.item()) > 1e-3


def test_each_patch_uses_the_ratio_of_its_image():
    logits, log_ratio = torch.zeros(3, 1, 2, 2), torch.tensor([1.0, 2.0, 3.0])
    moved = orthogonal_logits(logits, log_ratio, "a_to_b")
    assert moved.shape == logits.shape
    assert moved[:, 0, 1, 1].tolist() == [1, 2, 3]
    assert orthogonal_logits(logits, log_ratio, "b_to_a")[:, 0, 0, 0].tolist() == [-1, -2, -3]


def test_the_best_generator_keeps_z2():
    """Proposition 2 on four cells: against the best D, Q(z1) P(z2) is the optimum, and under the plain loss Q is."""
    p_z2, q_z1, q_z2 = np.array([0.7, 0.3]), np.array([0.2, 0.8]), np.array([0.1, 0.9])
    q = torch.tensor(np.outer(q_z1, q_z2).ravel())
    wanted = torch.tensor(np.outer(q_z1, p_z2).ravel())
    log_ratio = torch.tensor(np.log(np.tile(p_z2 / q_z2, 2)))

    def phi_of(made, log_ratio):
        return orthogonal_logits(q.log() - made.log(), log_ratio, "a_to_b").sigmoid()

    torch.testing.assert_close(phi_of(wanted, log_ratio), torch.full((4,), 0.5, dtype=torch.float64))
    # what proposition 2 minimises: -2 log 2 plus a divergence, zero only where phi is one half
    rng = np.random.default_rng(0)
    for made in torch.tensor(rng.dirichlet(np.ones(4), size=200)):
        minimum = (wanted * (1 - phi_of(wanted, log_ratio)).log()).sum()
        assert (made * (1 - phi_of(made, log_ratio)).log()).sum() >= minimum - 1e-12
    assert (phi_of(q, torch.zeros(4)) - 0.5).abs().max() < 1e-12
    assert (phi_of(q, log_ratio) - 0.5).abs().max() > 0.2


@pytest.mark.parametrize(
    ("arguments", "clamp", "message"),
    [
        ((log_rows(0.5)[:, :1], log_rows(0.5), "uniform", "uniform"), None, r"log_full has shape \(1, 1\)"),
        ((log_rows(0.5), log_rows(0.5, 0.5), "uniform", "uniform"), None, r"log_principal \(2, 2\): expected \(n, 2\)"),
        (
            (log_rows(0.5), log_rows(0.5), [0.5, 0.6], "uniform"),
            None,
            r"full_prior is \[0.5, 0.6\]: expected the shares",
        ),
        ((log_rows(0.5), log_rows(0.5), "uniform", [1, 0]), None, r"principal_prior is \[1, 0\]"),
        ((log_rows(0.5), log_rows(0.5), "uniform", "equal"), None, "principal_prior is 'equal'.*or 'uniform'"),
        ((log_rows(0.5), log_rows(0.5), None, "uniform"), None, "full_prior is None"),
        ((log_rows(0.5), log_rows(0.5), [math.nan, 0.5], "uniform"), None, "full_prior is"),
        ((log_rows(0.5), log_rows(0.5), "uniform", "uniform"), (9, 0.1), r"clamp is \(9, 0.1\)"),
        ((log_rows(0.5), log_rows(0.5), "uniform", "uniform"), (-2, 2), r"bounds on r itself"),
    ],
)
def test_refused_ratios(arguments, clamp, message):
    with pytest.raises(ValueError, match=message):
        log_density_ratio(*arguments, clamp=clamp)


def test_refused_orthogonal_logits():
    with pytest.raises(ValueError, match="direction is 'ab': expected 'a_to_b' or 'b_to_a'"):
        orthogonal_logits(torch.zeros(2), torch.zeros(2), "ab")
    # it would broadcast to (3, 3) in silence
    with pytest.raises(ValueError, match=r"log_ratio has shape \(3, 1\), logits have \(3,\)"):
        orthogonal_logits(torch.zeros(3), torch.zeros(3, 1), "a_to_b")
    with pytest.raises(ValueError, match="expected one ratio per image"):
        orthogonal_logits(torch.zeros(4, 1), torch.zeros(3), "a_to_b")


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("loss", [cycle_loss, identity_loss])
def test_consistency_by_hand(loss):
    a, b = torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0], [4.0]])
    # |1 - 1| and |0 - 2|, then |3 - 0| and |4 - 4|
    assert loss(a, torch.tensor([[1.0, 0.0]]), b, torch.tensor([[3.0], [4.0]])).item() == 1 + 1.5
    assert loss(a, a, b, b).item() == 0


def test_consistency_refuses_images_that_do_not_pair():
    a = torch.zeros(4, 3)
    with pytest.raises(ValueError, match=r"b_again has shape \(1, 3\), its original \(4, 3\)"):
        cycle_loss(a, a, a, a[:1])
    with pytest.raises(ValueError, match=r"a_from_a has shape \(3,\)"):
        identity_loss(a, a[0], a, a)


def test_entropy_by_hand():
    logits = torch.tensor([[0.25, 0.75], [0.5, 0.5]], dtype=torch.float64).log()
    by_hand = (-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) + math.log(2)) / 2
    assert conditional_entropy(logits).item() == pytest.approx(by_hand, abs=1e-12)
    # logits and log-probabilities are the same to it
    assert conditional_entropy(logits + 3).item() == pytest.approx(by_hand, abs=1e-12)


@pytest.mark.parametrize("n_classes", [2, 5, 43])
def test_entropy_lies_between_none_and_log_c(n_classes):
    assert conditional_entropy(torch.zeros(3, n_classes)).item() == pytest.approx(math.log(n_classes))
    sure = 1000 * torch.nn.functional.one_hot(torch.arange(2), n_classes).float()
    assert conditional_entropy(sure.requires_grad_()).item() == 0
    conditional_entropy(sure).backward()
    assert torch.isfinite(sure.grad).all()


def kl(p_logits, q_logits):
    log_p, log_q = p_logits.log_softmax(-1), q_logits.log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def test_vat_of_a_constant_classifier_is_zero():
    constant = torch.nn.Linear(5, 3)
    torch.nn.init.zeros_(constant.weight)
    x = normal(8, 5, dtype=torch.float32)
    loss = virtual_adversarial_loss(constant, x)
    assert loss.item() == 0
    loss.backward()
    assert torch.isfinite(constant.weight.grad).all()
    assert virtual_adversarial_loss(torch.nn.Linear(5, 3), x).item() > 0


def test_vat_by_hand_on_two_classes():
    """With one log odds v @ x the worst direction is v itself, whatever the start: the curvature has rank one."""
    v, x = normal(6), normal(4, 6, seed=1)

    def classifier(x):
        return torch.stack([torch.zeros(len(x), dtype=x.dtype), x @ v], dim=1)

    toward = 0.5 * v / v.norm()
    candidates = torch.stack([kl(classifier(x), classifier(x + s * toward)) for s in (1, -1)])
    losses = [
        virtual_adversarial_loss(classifier, row, radius=0.5, xi=1e-4, clean_logits=classifier(row))
        for row in x[:, None]
    ]
    # both signs have the same curvature; which one comes out is the start's choice
    gap = (torch.stack(losses) - candidates).abs().min(0).values
    assert gap.max() < 1e-6
    a_random_step = 0.5 * torch.nn.functional.normalize(normal(4, 6, seed=2), dim=1)
    assert kl(classifier(x), classifier(x + a_random_step)).mean() < torch.stack(losses).mean()


def test_vat_climbs_with_power_steps_to_the_largest_curvature():
    weight, x = normal(10, 3), normal(1, 10, seed=1)

    def classifier(x):
        return x @ weight

    p = classifier(x).softmax(-1)[0]
    fisher = weight @ (torch.diag(p) - torch.outer(p, p)) @ weight.T
    top = torch.linalg.eigvalsh(fisher)[-1]
    radius = 1e-3
    few, many = (
        virtual_adversarial_loss(
            classifier, x, radius=radius, xi=1e-5, power_steps=k, generator=torch.Generator().manual_seed(3)
        )
        for k in (1, 30)
    )
    assert many.item() == pytest.approx(0.5 * radius**2 * top.item(), rel=1e-2)
    assert 0 < few <= many * (1 + 1e-2)


def test_vat_step_has_the_radius_in_every_row():
    steps, x = [], normal(5, 2, 3, 3, dtype=torch.float32)
    weight = normal(18, 4, seed=1, dtype=torch.float32)

    def classifier(inputs):
        steps.append((inputs - x).flatten(1).norm(dim=1).detach())
        return inputs.flatten(1) @ weight

    virtual_adversarial_loss(classifier, x, xi=1e-2)
    clean, probe, final = steps
    assert clean.max() == 0
    torch.testing.assert_close(probe, torch.full((5,), 1e-2), rtol=1e-3, atol=0)
    torch.testing.assert_close(final, torch.full((5,), 3.5), rtol=1e-5, atol=0)
    steps.clear()
    virtual_adversarial_loss(classifier, x, clean_logits=x.flatten(1) @ weight)
    assert len(steps) == 2


def test_vat_reaches_the_weights_by_its_last_pass_alone():
    network = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).double()
    x = normal(7, 5).requires_grad_()
    one, two = (
        virtual_adversarial_loss(network, x, xi=1e-4, generator=torch.Generator().manual_seed(4)) for _ in range(2)
    )
    assert one.item() == two.item()
    assert all(p.grad is None for p in network.parameters())
    one.backward()
    assert x.grad is None
    assert all(p.grad.abs().sum() > 0 for p in network.parameters())
    clean_logits = network(x).detach().requires_grad_()
    virtual_adversarial_loss(network, x, clean_logits=clean_logits).backward()
    assert clean_logits.grad is None
    with torch.no_grad():
        read = virtual_adversarial_loss(network, x, xi=1e-4, generator=torch.Generator().manual_seed(4))
    assert read.item() == one.item()


@pytest.mark.parametrize("wrong", [{"radius": 0}, {"xi": -1e-6}, {"power_steps": 0}])
def test_vat_refuses_steps_that_go_nowhere(wrong):
    with pytest.raises(ValueError, match="expected positive lengths and 1 or more"):
        virtual_adversarial_loss(lambda x: x, torch.zeros(2, 2), **wrong)
