"""The VADA step against its equation, whose statistics are remembered, and what it learns."""

import copy

import pytest

torch = pytest.importorskip("torch")

from setminus.adaptation.vada import VadaConfig, VadaNetworks, vada_step  # noqa: E402
from setminus.nn.losses import domain_encoder_loss  # noqa: E402
from setminus.nn.networks import (  # noqa: E402
    AdaptationNetwork,
    DomainDiscriminator,
    mlp,
    seeded,
)
from setminus.nn.passes import adam  # noqa: E402

LABELS = torch.tensor([0, 1, 2, 0])


def small():
    classifier = AdaptationNetwork(3, width=4, size=16, dropout=0.0, noise=0.0)
    return VadaNetworks(classifier.encoder, classifier.head, DomainDiscriminator(classifier.n_features, width=5))


def images(shift=2.0):
    # contrast differs over the image: InstanceNorm takes out what is the same everywhere
    x = torch.randn(2, 4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    x[1, ..., 8:] *= 1 + shift
    return x


def updater(networks, lr=1e-3):
    optimizers = {
        "classifier": adam([*networks.encoder.parameters(), *networks.head.parameters()], lr),
        "discriminator": adam(networks.discriminator.parameters(), lr),
    }

    def update(name, loss):
        optimizers[name].zero_grad()
        loss.backward()
        optimizers[name].step()

    return update


def losses_of(networks, source, target, **options):
    """The losses that a step would go down, without going."""
    losses = {}
    terms = vada_step(networks, source, LABELS, target, losses.__setitem__, **options)
    return terms, losses


def test_the_terms_by_hand():
    networks, (source, target) = seeded(0, small), images()
    weights = torch.tensor([1.0, 2.0, 5.0])
    config = VadaConfig(domain=0.3, source_class=0.5, source_vat=0.0, target_entropy=0.7, target_vat=0.0)
    terms, losses = losses_of(networks, source, target, config=config, class_weights=weights)
    assert set(terms) == {"discriminator", "source_class", "target_entropy", "domain"}
    source_features, target_features = networks.encoder(source), networks.encoder(target)
    log_source = networks.head(source_features).log_softmax(1)
    nll = -log_source[torch.arange(4), LABELS]
    source_class = (weights[LABELS] * nll).sum() / weights[LABELS].sum()
    target_proba = networks.head(target_features).softmax(1)
    entropy = -(target_proba * target_proba.log()).sum(1).mean()
    d_source = networks.discriminator(source_features).sigmoid()
    d_target = networks.discriminator(target_features).sigmoid()
    domain = -(1 - d_source).log().mean() - d_target.log().mean()
    torch.testing.assert_close(terms["source_class"], source_class.detach())
    torch.testing.assert_close(terms["target_entropy"], entropy.detach())
    torch.testing.assert_close(terms["domain"], domain.detach())
    torch.testing.assert_close(losses["discriminator"], -d_source.log().mean() - (1 - d_target).log().mean())
    torch.testing.assert_close(losses["classifier"], 0.5 * source_class + 0.7 * entropy + 0.3 * domain)


def test_each_vat_term_enters_with_its_weight():
    source, target = images()
    networks = seeded(0, small)
    kept = {"domain": 0.0, "source_class": 0.0, "target_entropy": 0.0}
    terms, losses = losses_of(networks, source, target, config=VadaConfig(**kept, source_vat=2.0, target_vat=3.0))
    assert terms["source_vat"] > 0
    assert terms["target_vat"] > 0
    torch.testing.assert_close(losses["classifier"].detach(), 2 * terms["source_vat"] + 3 * terms["target_vat"])


def test_each_player_gets_its_own_gradients():
    networks, (source, target) = seeded(0, small), images()
    _, losses = losses_of(networks, source, target)
    losses["discriminator"].backward()
    assert all(w.grad is None for part in (networks.encoder, networks.head) for w in part.parameters())
    assert all(w.grad is not None for w in networks.discriminator.parameters())
    networks.discriminator.zero_grad()
    losses["classifier"].backward()
    assert all(w.grad is not None for part in (networks.encoder, networks.head) for w in part.parameters())
    assert all(w.grad is None and w.requires_grad for w in networks.discriminator.parameters())


def test_what_has_weight_0_takes_no_backward_pass():
    networks, (source, target) = seeded(0, small), images()
    reached = {}
    for entropy in (0.0, 0.1):
        target = target.detach().requires_grad_()
        config = VadaConfig(domain=0.0, source_vat=0.0, target_vat=0.0, target_entropy=entropy)
        _, losses = losses_of(networks, source, target, config=config)
        losses["classifier"].backward()
        reached[entropy] = target.grad is not None
    assert reached == {0.0: False, 0.1: True}


def test_a_step_whose_weights_are_all_0_changes_nothing():
    networks, (source, target) = seeded(0, small), images()
    config = VadaConfig(domain=0.0, source_class=0.0, source_vat=0.0, target_vat=0.0, target_entropy=0.0)
    _, losses = losses_of(networks, source, target, config=config)
    losses["classifier"].backward()
    assert losses["classifier"] == 0
    assert all(weight.grad.abs().max() == 0 for weight in networks.encoder.parameters())


def test_the_encoder_meets_the_discriminator_after_its_update():
    networks, (source, target) = seeded(0, small), images()
    terms = vada_step(networks, source, LABELS, target, updater(networks, lr=0.1))
    frozen_again = seeded(0, small)
    before, _ = losses_of(frozen_again, source, target)
    assert not torch.isclose(terms["domain"], before["domain"], rtol=0.01)
    # what it should have met: the updated discriminator on the features of the first encoder
    logits = [networks.discriminator(frozen_again.encoder(x)) for x in (source, target)]
    torch.testing.assert_close(terms["domain"], domain_encoder_loss(*logits).detach())


def test_under_one_autocast_too():
    """Autocast remembers weights it has cast: an update within it must be seen nevertheless."""
    networks, (source, target) = seeded(0, small), images()
    with torch.autocast("cpu", torch.bfloat16):
        low = vada_step(networks, source, LABELS, target, updater(networks, lr=0.1))
    networks = seeded(0, small)
    full = vada_step(networks, source, LABELS, target, updater(networks, lr=0.1))
    stale, _ = losses_of(seeded(0, small), source, target)
    assert abs(low["domain"] - full["domain"]) < 0.05 * abs(stale["domain"] - full["domain"])


def test_only_target_images_as_they_are_enter_the_running_statistics():
    source, target = images()
    networks = seeded(0, small)
    expected, wrong = copy.deepcopy(networks), copy.deepcopy(networks)
    losses_of(networks, source, target)
    expected.head(expected.encoder(target))
    wrong.head(wrong.encoder(source))
    wrong.head(wrong.encoder(target))
    pairs = zip(*((*part.encoder.buffers(), *part.head.buffers()) for part in (networks, expected, wrong)), strict=True)
    checked = [(torch.equal(ours, right), torch.equal(ours, not_right)) for ours, right, not_right in pairs]
    assert all(right for right, _ in checked)
    assert not any(not_right for _, not_right in checked)


def test_each_domain_has_its_own_batch_statistics():
    source, target = images()
    networks = seeded(0, small)
    alone, _ = losses_of(networks, source, target)
    other, _ = losses_of(networks, source, target.flip(0) * torch.linspace(0.1, 3, 16))
    torch.testing.assert_close(alone["source_class"], other["source_class"])
    assert not torch.isclose(alone["target_entropy"], other["target_entropy"], rtol=1e-5, atol=0)


def test_the_domain_term_can_be_another():
    networks, (source, target) = seeded(0, small), images()
    seen = []

    def term(domains):
        seen.append(domains)
        return domain_encoder_loss(domains.source_logits - 1, domains.target_logits - 1)

    terms, _ = losses_of(networks, source, target, domain_term=term)
    plain, _ = losses_of(networks, source, target)
    (domains,) = seen
    assert domains.source_logits.shape == domains.target_logits.shape == (4,)
    assert torch.equal(domains.source_labels, LABELS)
    assert domains.target_class_logits.shape == (4, 3)
    assert not domains.target_class_logits.requires_grad
    assert not torch.isclose(terms["domain"], plain["domain"])


def test_it_carries_classes_over_a_turn():
    """Two classes of points; those of the target are turned. Source alone errs there, VADA does not."""

    def points(n, turn, seed):
        generator = torch.Generator().manual_seed(seed)
        labels = torch.arange(n) % 2
        x = 0.35 * torch.randn(n, 2, generator=generator) * torch.tensor([0.6, 1.0])
        x[:, 0] += 2.0 * labels - 1
        angle = torch.tensor(turn)
        spin = torch.tensor([[angle.cos(), angle.sin()], [-angle.sin(), angle.cos()]])
        return x @ spin, labels

    source, labels = points(128, 0.0, 0)
    target, target_labels = points(128, 1.2, 1)

    def accuracy(config):
        def build():
            features = torch.nn.Sequential(mlp((2, 32, 16)), torch.nn.ReLU())
            return VadaNetworks(features, mlp((16, 2)), torch.nn.Sequential(mlp((16, 32, 1)), torch.nn.Flatten(0)))

        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            networks = build()
            update = updater(networks, lr=5e-3)
            for _ in range(150):
                vada_step(networks, source, labels, target, update, config=config)
        guessed = networks.head(networks.encoder(target)).argmax(1)
        return (guessed == target_labels).float().mean().item()

    alone = VadaConfig(domain=0.0, source_vat=0.0, target_entropy=0.0, target_vat=0.0)
    adapted = VadaConfig(domain=0.1, source_vat=0.1, target_entropy=0.1, target_vat=0.1, vat_radius=0.5, vat_xi=1e-3)
    scores = accuracy(alone), accuracy(adapted)
    assert scores[0] < 0.92 < 0.97 < scores[1], scores


def test_weights_below_zero_are_refused():
    with pytest.raises(ValueError, match=r"target_vat is -0\.1: expected a weight of 0 or more"):
        VadaConfig(target_vat=-0.1)
