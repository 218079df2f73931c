"""What sets each method apart, by hand; all of them on the paper's network; resumed to the same bits."""

import copy
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import logsigmoid  # noqa: E402

from setminus.adaptation.adapter_parameters import WITH_PRIOR  # noqa: E402
from setminus.adaptation.domains import DomainData, LabelShift  # noqa: E402
from setminus.adaptation.methods import METHODS, AdaptationConfig, DirtT, VadaIw, VadaOrthogonal, principal_log_odds  # noqa: E402
from setminus.adaptation.small_networks import small_networks  # noqa: E402
from setminus.adaptation.vada import (  # noqa: E402
    Domains,
    VadaConfig,
    VadaNetworks,
    plain_discriminator_term,
    plain_domain_term,
)
from setminus.core.orthogonalize import orthogonalize  # noqa: E402
from setminus.nn.networks import AdaptationNetwork, DomainDiscriminator, seeded  # noqa: E402
from setminus.nn.training import TrainingConfig, train  # noqa: E402

LOSSES = VadaConfig(domain=0.1, source_vat=0.1, target_vat=0.1, target_entropy=0.1, vat_radius=0.5, vat_xi=1e-3)
CONFIG = AdaptationConfig(LOSSES, batch=16, warmup=4)
PRIORS = torch.tensor([0.8, 0.2], dtype=torch.float64), torch.tensor([0.3, 0.7], dtype=torch.float64)


def points(seed=0, n=40):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(n) % 2 * (torch.arange(n) % 4 > 1)
    source, target = torch.randn(2, n, 2, generator=generator)
    source[:, 0] += 3.0 * labels
    return DomainData(source, labels, target + 1, 2, source[:12], labels[:12])


def networks(seed=0):
    return seeded(seed, lambda: small_networks(2, 2, width=8))


def trained(method, steps=8, data=None, config=CONFIG, **options):
    task = METHODS[method](networks(), data or points(), config, 0, **options)
    outcome = train(task, TrainingConfig(steps=steps, log_every=1))
    return task, outcome


def weights_of(*modules):
    return torch.cat([weight.detach().reshape(-1) for module in modules for weight in module.parameters()])


def domains():
    generator = torch.Generator().manual_seed(1)
    source, target = torch.randn(2, 5, generator=generator)
    return Domains(source, target, torch.tensor([0, 1, 1, 0, 0]), torch.randn(5, 2, generator=generator))


def with_priors(task):
    task.prior.source.copy_(PRIORS[0])
    task.prior.target.copy_(PRIORS[1])
    return task


@pytest.mark.parametrize("method", METHODS)
def test_every_method_on_the_papers_network(method):
    def build():
        network = AdaptationNetwork(2, width=4, size=16)
        return VadaNetworks(network.encoder, network.head, DomainDiscriminator(network.n_features, width=5))

    generator = torch.Generator().manual_seed(0)
    source, target = torch.randn(2, 12, 3, 16, 16, generator=generator).tanh()
    data = DomainData(source, torch.arange(12) % 2, target, 2)
    seen = []
    config = AdaptationConfig(LOSSES, batch=6, warmup=1)
    task = METHODS[method](seeded(0, build), data, config, 0, watch=lambda task: {"rows": len(seen)})
    before = task.predict_proba(target)
    outcome = train(task, TrainingConfig(steps=3, log_every=1, evaluate_every=1))
    after = task.predict_proba(target)
    np.testing.assert_allclose(after.sum(axis=1), 1)
    assert not np.allclose(after, before)
    assert outcome.evaluations[-1]["rows"] == 0
    assert ("target_prior" in outcome.evaluations[-1]) == (method in WITH_PRIOR)
    if method in WITH_PRIOR:
        assert task.target_prior.sum() == pytest.approx(1)


def test_the_source_alone_never_sees_the_target():
    one, other = (trained("source_only", data=data)[0] for data in (points(), with_target(points(), 9.0)))
    assert torch.equal(weights_of(*one.predictor), weights_of(*other.predictor))
    one, other = (trained("vada", data=data)[0] for data in (points(), with_target(points(), 9.0)))
    assert not torch.equal(weights_of(*one.predictor), weights_of(*other.predictor))


def with_target(data, shift):
    return DomainData(data.source, data.source_labels, data.target + shift, 2, data.held_out, data.held_out_labels)


def test_before_the_warmup_ends_the_target_moves_the_discriminator_only():
    one, other = (trained("vada", steps=4, data=data)[0] for data in (points(), with_target(points(), 9.0)))
    assert torch.equal(weights_of(*one.predictor), weights_of(*other.predictor))
    assert not torch.equal(weights_of(one.networks.discriminator), weights_of(other.networks.discriminator))


def test_methods_of_the_family_share_their_warmup():
    first, *others = (weights_of(*trained(m, steps=4)[0].predictor) for m in ("vada", "vada_iw", "vada_orthogonal"))
    assert all(torch.equal(first, other) for other in others)
    # the next step is where they part
    first, *others = (weights_of(*trained(m, steps=5)[0].predictor) for m in ("vada", "vada_iw", "vada_orthogonal"))
    assert not any(torch.equal(first, other) for other in others)


@pytest.mark.parametrize("method", ["vada_iw", "vada_orthogonal"])
def test_until_the_first_estimate_a_method_is_vada_with_all_of_its_losses(method):
    config = replace(CONFIG, warmup=0, first_estimate=4)
    for steps, same in ((4, True), (6, False)):
        plain, estimating = (trained(name, steps=steps, config=config)[0] for name in ("vada", method))
        close = torch.allclose(weights_of(*plain.predictor), weights_of(*estimating.predictor), atol=1e-5)
        assert close == same
    # the losses of the target count from the first step on
    assert not torch.equal(weights_of(*plain.predictor), weights_of(*trained("vada", steps=6)[0].predictor))


def test_the_rate_falls_over_the_second_half_where_it_comes_to_rest():
    data, made = points(), networks()
    task = METHODS["vada"](made, data, replace(CONFIG, decay_end=8), 0)
    assert [task.rate(step) for step in (0, 4, 6, 8)] == [1, 1, 0.5, 0]
    assert METHODS["vada"](made, data, CONFIG, 0).rate(10**6) == 1


@pytest.mark.parametrize("method", ["vada_iw", "vada_orthogonal"])
def test_estimates_are_as_often_as_asked_or_each_epoch(method):
    data, made = points(), networks()
    assert METHODS[method](made, data, replace(CONFIG, estimate_every=5), 0).prior.epoch == 5
    assert METHODS[method](made, data, CONFIG, 0).prior.epoch == len(data.target) // CONFIG.batch


@pytest.mark.parametrize("every", [1, 4])
def test_smoothness_every_few_steps_has_the_same_weight_on_average(every):
    config = replace(CONFIG, warmup=0, vat_every=every)
    task = METHODS["vada"](networks(), points(), config, 0)
    shares = [task.losses(step).target_vat for step in range(8)]
    assert np.mean(shares) == pytest.approx(config.losses.target_vat)
    assert np.count_nonzero(shares) == 8 // every


def test_dann_is_vada_without_its_regularisers():
    _, outcome = trained("dann")
    assert {"source_class", "domain"} <= set(outcome.history[-1])
    assert not {"source_vat", "target_vat"} & set(outcome.history[-1])
    last = outcome.history[-1]
    assert last["classifier"] == pytest.approx(last["source_class"] + 0.1 * last["domain"], rel=1e-5)


def test_balanced_weights_undo_the_classes_of_the_source():
    data = points()
    task = METHODS["vada"](networks(), data, CONFIG, 0)
    np.testing.assert_allclose(task.class_weights(0).double().numpy() * data.source_prior, 0.5, rtol=1e-6)
    assert METHODS["vada"](networks(), data, AdaptationConfig(balanced=None), 0).class_weights(0) is None


@pytest.mark.parametrize("method", sorted({*METHODS} - {"cycada"}))
def test_every_method_learns_from_balanced_batches(method):
    task, outcome = trained(method, config=replace(CONFIG, balanced="batches"))
    _, labels = task.source_batches.at(0)
    assert torch.bincount(labels).tolist() == [8, 8]
    assert all(np.isfinite(value) for entry in outcome.history for value in entry.values())
    other, _ = trained(method)
    assert not torch.equal(weights_of(*task.predictor), weights_of(*other.predictor))


def test_balanced_batches_leave_the_game_about_domains_over_the_source_as_it_is():
    data = points()
    seen = []

    class Watched(METHODS["vada"]):
        def domain_term(self, domains):
            seen.append(domains)
            return super().domain_term(domains)

    task = Watched(networks(), data, replace(CONFIG, balanced="batches"), 0)
    train(task, TrainingConfig(steps=3))
    assert task.class_weights(0) is None
    for rows in seen:
        shares = [rows.source_weights[rows.source_labels == k].sum() / len(rows.source_labels) for k in range(2)]
        np.testing.assert_allclose(shares, data.source_prior, rtol=1e-6)
        term = -(rows.source_weights * logsigmoid(-rows.source_logits)).mean() - logsigmoid(rows.target_logits).mean()
        torch.testing.assert_close(plain_domain_term(rows), term)
        # the negative control: unweighted, it is another
        assert not torch.isclose(plain_domain_term(replace(rows, source_weights=None)), term)
    assert METHODS["vada"](networks(), data, CONFIG, 0).source_weights(data.source_labels) is None


def test_weights_are_over_the_classes_that_the_batches_have():
    task = with_priors(VadaIw(networks(), points(), replace(CONFIG, balanced="batches"), 0))
    rows = replace(domains(), source_weights=task.source_weights(domains().source_labels))
    torch.testing.assert_close(task.class_weights(CONFIG.warmup), 2 * PRIORS[1].float())
    w = 2 * PRIORS[1].float()[rows.source_labels]
    encoder = -(w * logsigmoid(-rows.source_logits)).mean() - logsigmoid(rows.target_logits).mean()
    torch.testing.assert_close(task.domain_term(rows), encoder)


def test_the_orthogonal_terms_weigh_source_rows_too():
    weights = torch.tensor([0.4, 1.6, 1.6, 0.4, 0.4])
    rows = replace(domains(), source_weights=weights)
    known = torch.nn.functional.one_hot(rows.source_labels, 2).double()
    source = principal_log_odds(known, *PRIORS).float()
    target = principal_log_odds(rows.target_class_logits.softmax(1), *PRIORS).float()
    full = with_priors(VadaOrthogonal(networks(), points(), CONFIG, 0))
    orthogonal = with_priors(VadaOrthogonal(networks(), points(), CONFIG, 0, discriminator="orthogonal"))
    torch.testing.assert_close(
        full.domain_term(rows),
        -(weights * logsigmoid(source - rows.source_logits)).mean() - logsigmoid(rows.target_logits - target).mean(),
    )
    torch.testing.assert_close(
        orthogonal.discriminator_term(rows),
        -(weights * logsigmoid(rows.source_logits + source)).mean() - logsigmoid(-rows.target_logits - target).mean(),
    )


def test_importance_weights_in_every_term_of_the_source():
    task = with_priors(VadaIw(networks(), points(), CONFIG, 0))
    rows = replace(domains(), source_weights=task.source_weights(domains().source_labels))
    weights = (PRIORS[1] / PRIORS[0]).float()
    w = weights[rows.source_labels]
    encoder = -(w * logsigmoid(-rows.source_logits)).mean() - logsigmoid(rows.target_logits).mean()
    discriminator = -(w * logsigmoid(rows.source_logits)).mean() - logsigmoid(-rows.target_logits).mean()
    torch.testing.assert_close(task.domain_term(rows), encoder)
    torch.testing.assert_close(task.discriminator_term(rows), discriminator)
    torch.testing.assert_close(task.class_weights(CONFIG.warmup), weights)
    # w is a ratio of distributions: the source's mean of it is 1
    assert float(PRIORS[0].float() @ weights) == pytest.approx(1)


def test_importance_weights_of_a_batch_whose_classes_are_estimated_as_absent():
    task = with_priors(VadaIw(networks(), points(), CONFIG, 0))
    task.prior.target.copy_(torch.tensor([1.0, 0.0]))
    weights = task.class_weights(CONFIG.warmup)
    logits, absent = torch.randn(4, 2, generator=torch.Generator().manual_seed(0)), torch.ones(4, dtype=torch.int64)
    cross_entropy = torch.nn.functional.cross_entropy
    assert torch.isnan(cross_entropy(logits, absent, torch.tensor([1.0, 0.0])))
    torch.testing.assert_close(cross_entropy(logits, absent, weights), cross_entropy(logits, absent))
    # beside a class that is there they count for nothing
    some = torch.tensor([0, 1, 0, 1])
    torch.testing.assert_close(cross_entropy(logits, some, weights), cross_entropy(logits[::2], some[::2]))


@pytest.mark.parametrize("target_classes", ["soft", "hard"])
def test_the_orthogonal_term_is_the_formula_of_the_core(target_classes):
    r"""y is the domain, z1 the class: full \ principal with p(domain) of a half, by the core's own function."""
    task = with_priors(VadaOrthogonal(networks(), points(), CONFIG, 0, target_classes=target_classes))
    rows = domains()
    of_class = (PRIORS[0] / (PRIORS[0] + PRIORS[1])).numpy()
    said = rows.target_class_logits.double().softmax(1).numpy()
    if target_classes == "hard":
        said = np.eye(2)[said.argmax(axis=1)]
    principals = of_class[rows.source_labels.numpy()], said @ of_class
    logs = []
    for logits, principal, domain in zip((rows.source_logits, rows.target_logits), principals, (0, 1), strict=True):
        full = logits.double().sigmoid().numpy()
        both = [np.column_stack([p, 1 - p]) for p in (full, principal)]
        orthogonal = orthogonalize(*both, [0.5, 0.5])
        logs.append(np.log(orthogonal[:, 1 - domain]).mean())
    assert float(task.domain_term(rows)) == pytest.approx(-sum(logs), rel=1e-5)
    assert float(plain_domain_term(rows)) != pytest.approx(-sum(logs), rel=1e-3)
    torch.testing.assert_close(task.discriminator_term(rows), plain_discriminator_term(rows))


def test_both_forms_are_one_where_the_discriminator_is_the_same():
    full = with_priors(VadaOrthogonal(networks(), points(), CONFIG, 0))
    orthogonal = with_priors(VadaOrthogonal(networks(), points(), CONFIG, 0, discriminator="orthogonal"))
    rows = domains()
    known = torch.nn.functional.one_hot(rows.source_labels, 2).double()
    moved = Domains(
        rows.source_logits - principal_log_odds(known, *PRIORS).float(),
        rows.target_logits - principal_log_odds(rows.target_class_logits.softmax(1), *PRIORS).float(),
        rows.source_labels,
        rows.target_class_logits,
    )
    torch.testing.assert_close(orthogonal.domain_term(moved), full.domain_term(rows))
    torch.testing.assert_close(orthogonal.discriminator_term(moved), full.discriminator_term(rows))


def test_without_a_shift_the_orthogonal_term_is_the_plain_one():
    task = VadaOrthogonal(networks(), points(), CONFIG, 0)
    torch.testing.assert_close(task.domain_term(domains()), plain_domain_term(domains()))


def test_a_class_estimated_at_zero_stays_finite():
    log_odds = principal_log_odds(torch.eye(2), torch.tensor([0.5, 0.5]), torch.tensor([0.0, 1.0]))
    torch.testing.assert_close(log_odds.exp(), torch.tensor([500.0, 0.5]), rtol=1e-3, atol=0)


@pytest.mark.parametrize("name", ["estimate_every", "decay_end"])
@pytest.mark.parametrize("steps", [0, -5])
def test_a_schedule_without_steps_is_refused(name, steps):
    with pytest.raises(ValueError, match=f"{name} is {steps}: expected at least one step, or None"):
        AdaptationConfig(**{name: steps})


def test_dirt_t_becomes_surer_and_its_anchor_holds():
    def entropy(anchor, steps):
        built = copy.deepcopy(start)
        task = DirtT(built, points(), AdaptationConfig(LOSSES, batch=16), 0, anchor=anchor, teacher_every=1000)
        train(task, TrainingConfig(steps=steps))
        proba = task.predict_proba(points().target)
        return -(proba * np.log(proba)).sum(axis=1).mean(), weights_of(*task.predictor)

    start = trained("vada")[0].networks
    before, free, held = entropy(0.01, 1), entropy(0.01, 60), entropy(100.0, 60)
    assert free[0] < held[0]
    assert free[0] < before[0] - 0.02
    with pytest.raises(ValueError, match="teacher_every is 0"):
        DirtT(start, points(), CONFIG, 0, teacher_every=0)


@pytest.mark.parametrize("method", ["vada_orthogonal", "vada_iw", "vada"])
def test_a_resumed_training_has_the_same_bits(method, tmp_path):
    options = {"label_shift": LabelShift("pseudo_soft")} if method in WITH_PRIOR else {}
    whole, _ = trained(method, steps=9, **options)
    for steps in (6, 9):
        task = METHODS[method](networks(), points(), CONFIG, 0, **options)
        train(task, TrainingConfig(steps=steps, log_every=1), folder=tmp_path / "run", resume=True)
    assert torch.equal(weights_of(*task.predictor), weights_of(*whole.predictor))
    if method in WITH_PRIOR:
        np.testing.assert_array_equal(task.target_prior, whole.target_prior)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AdaptationConfig(rate=0.0), r"rate is 0\.0"),
        (lambda: AdaptationConfig(balanced="rows"), "balanced is 'rows': expected 'weights', 'batches' or None"),
        (lambda: VadaOrthogonal(networks(), points(), CONFIG, 0, target_classes="firm"), "target_classes is 'firm'"),
        (lambda: VadaOrthogonal(networks(), points(), CONFIG, 0, discriminator="w"), "discriminator is 'w'"),
    ],
)
def test_options_are_checked(call, message):
    with pytest.raises(ValueError, match=message):
        call()
