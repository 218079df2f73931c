"""The written-out gradients against automatic differentiation of the same losses."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from setminus.adaptation import small_training  # noqa: E402
from setminus.adaptation.domains import DomainData, LabelShift  # noqa: E402
from setminus.adaptation.methods import METHODS, AdaptationConfig, DirtT  # noqa: E402
from setminus.adaptation.small_networks import small_networks  # noqa: E402
from setminus.adaptation.small_training import LOOK_EVERY, LOOKS, train_small, weights_of  # noqa: E402
from setminus.adaptation.vada import VadaConfig  # noqa: E402
from setminus.nn.networks import seeded  # noqa: E402
from setminus.nn.training import NotFiniteError, TrainingConfig, train  # noqa: E402
from setminus.progress import listen  # noqa: E402

STEPS, MAX_STEPS, WARMUP = 12, 700, 3
# a difference of finite size: that of the default is close to the rounding of float32
LOSSES = VadaConfig(domain=0.5, source_vat=0.7, target_entropy=0.3, target_vat=0.9, vat_radius=0.5, vat_xi=0.1)


def made(seed=0, n_classes=3):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(90, 5, generator=generator)
    y = torch.arange(90) % 7 % n_classes
    return DomainData(x, y, torch.randn(70, 5, generator=generator) + 0.5, n_classes, x[:40].flip(1), y[:40])


def task_of(method, config=None, **options):
    networks = seeded(1, lambda: small_networks(5, 3, width=8))
    config = config or AdaptationConfig(LOSSES, rate=1e-2, batch=16, warmup=WARMUP, vat_every=2)
    return METHODS[method](networks, made(), config, 7, **options)


def vector_of(task):
    return torch.cat([part.detach().flatten() for part in weights_of(*task.predictor)])


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("source_only", {}),
        ("dann", {}),
        ("vada", {}),
        ("vada_iw", {}),
        ("vada_iw", {"label_shift": LabelShift("em")}),
        ("vada_orthogonal", {}),
        ("vada_orthogonal", {"discriminator": "orthogonal", "mass": 10.0}),
        ("vada_orthogonal", {"target_classes": "hard", "label_shift": LabelShift("pseudo_soft")}),
        ("vada_orthogonal", {"label_shift": LabelShift(known=(0.2, 0.3, 0.5)), "mass": 1.0}),
    ],
)
@pytest.mark.parametrize("balanced", ["weights", "batches", None])
def test_steps_are_those_of_automatic_differentiation(method, options, balanced):
    config = AdaptationConfig(LOSSES, rate=1e-2, batch=16, warmup=WARMUP, vat_every=2, balanced=balanced, decay_end=20)
    slow, quick, fresh = (task_of(method, config, **options) for _ in range(3))
    train(slow, TrainingConfig(STEPS, seed=3))
    train_small(quick, STEPS, seed=3)
    torch.testing.assert_close(vector_of(quick), vector_of(slow), rtol=0, atol=2e-4)
    assert (vector_of(quick) - vector_of(fresh)).abs().max() > 5e-2
    if quick.target_prior is not None:
        assert abs(quick.target_prior - slow.target_prior).max() < 1e-4


@pytest.mark.parametrize("name", ["domain", "source_vat", "target_entropy", "target_vat"])
def test_every_loss_of_weight_0_is_left_out_and_otherwise_counts(name):
    none = VadaConfig(**{**vars(LOSSES), name: 0.0})
    config = AdaptationConfig(none, rate=1e-2, batch=16)
    slow, quick = (task_of("vada", config) for _ in range(2))
    other = task_of("vada", AdaptationConfig(LOSSES, rate=1e-2, batch=16))
    train(slow, TrainingConfig(STEPS, seed=3))
    train_small(quick, STEPS, seed=3)
    train_small(other, STEPS, seed=3)
    torch.testing.assert_close(vector_of(quick), vector_of(slow), rtol=0, atol=2e-4)
    assert (vector_of(quick) - vector_of(other)).abs().max() > 1e-3


def test_refinement_with_a_teacher_that_is_renewed():
    tasks = []
    for _ in range(2):
        config = AdaptationConfig(LOSSES, rate=1e-2, batch=16)
        networks = seeded(1, lambda: small_networks(5, 3, width=8))
        tasks.append(DirtT(networks, made(), config, 7, anchor=0.5, teacher_every=5))
    train(tasks[0], TrainingConfig(STEPS, seed=3))
    train_small(tasks[1], STEPS, seed=3)
    torch.testing.assert_close(vector_of(tasks[1]), vector_of(tasks[0]), rtol=0, atol=2e-4)


def test_weights_that_are_not_finite_are_refused():
    with pytest.raises(NotFiniteError, match="lower the learning rate"):
        train_small(task_of("vada", AdaptationConfig(LOSSES, rate=1e30, batch=16)), STEPS, seed=0)


def steps_until_settled(data, rate=1e-2, warmup=50, early_stopping=True):
    done = []
    networks = seeded(1, lambda: small_networks(data.source.shape[1], data.n_classes, width=8))
    task = METHODS["vada"](networks, data, AdaptationConfig(LOSSES, rate=rate, batch=16, warmup=warmup), 7)
    with listen(lambda event: done.append(event.done)):
        train_small(task, MAX_STEPS, seed=3, early_stopping=early_stopping)
    return done[-1]


def clear_classes(held_out=True):
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(120) % 2
    x = 0.3 * torch.randn(120, 2, generator=generator) + 4.0 * y[:, None]
    rest = (x[80:], y[80:]) if held_out else (None, None)
    return DomainData(x[:80], y[:80], x + 0.2, 2, *rest)


@pytest.mark.parametrize("held_out", [True, False])
def test_a_training_that_has_settled_stops(held_out, monkeypatch):
    data = clear_classes(held_out)
    if held_out:
        # the loss of classes that are clear falls for ever
        assert steps_until_settled(data, rate=1e-3) > 500
        monkeypatch.setattr(small_training, "cross_entropy", lambda *_: torch.tensor(1.0))
    # the first look is after the warm-up, and four more have to be like it
    assert steps_until_settled(data) == 50 + LOOKS * LOOK_EVERY + LOOK_EVERY
    assert steps_until_settled(data, warmup=400) == 400 + LOOKS * LOOK_EVERY + LOOK_EVERY
    assert steps_until_settled(data, early_stopping=False) == MAX_STEPS


def test_a_training_whose_predictions_still_change_goes_on():
    # labels by chance, learned in leaps
    assert steps_until_settled(made(n_classes=2), rate=0.3) == MAX_STEPS
