"""Each training of the library on a pretended device, where a forgotten ``.to(device)`` fails: as on the CPU."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.adaptation.domains import DomainData, LabelShift  # noqa: E402
from setminus.adaptation.methods import METHODS, AdaptationConfig, DirtT  # noqa: E402
from setminus.adaptation.small_networks import small_networks  # noqa: E402
from setminus.adaptation.small_training import train_small  # noqa: E402
from setminus.adaptation.vada import VadaConfig, VadaNetworks  # noqa: E402
from setminus.invariant.methods import METHODS as INVARIANT  # noqa: E402
from setminus.invariant.methods import fit_invariant  # noqa: E402
from setminus.nn.cyclegan import CycleGANWeights  # noqa: E402
from setminus.nn.head import OrthogonalHead  # noqa: E402
from setminus.nn.networks import AdaptationNetwork, DigitClassifier, DomainDiscriminator, PhotoClassifier, seeded  # noqa: E402
from setminus.nn.passes import device_of, prepare  # noqa: E402
from setminus.nn.training import TrainingConfig, train  # noqa: E402
from setminus.transfer.domain_classifiers import (  # noqa: E402
    ClassifierConfig,
    DomainByColumn,
    fit_domain_classifier,
    log_proba,
)
from setminus.transfer.networks import networks_for, translate  # noqa: E402
from setminus.transfer.transfer_task import (  # noqa: E402
    OrthogonalRatio,
    PairRatio,
    TransferConfig,
    TransferTask,
    log_ratios,
)
from tests.pretended_device import pretended_device  # noqa: E402

LOSSES = VadaConfig(domain=0.1, vat_xi=1e-3)


def on_both(measure):
    """What a measurement returns on the CPU, and on the pretended device."""
    here = measure("cpu")
    with pretended_device() as name:
        return here, measure(name)


def assert_same(measure, tolerance=1e-6):
    here, there = on_both(measure)
    assert len(here) == len(there) > 0
    for one, other in zip(here, there, strict=True):
        # gradients of subclasses of tensors are summed in another order
        np.testing.assert_allclose(np.asarray(other.cpu()), np.asarray(one), rtol=1e-4, atol=tolerance)


def trainer(device):
    def trained(task, config):
        settings = {**vars(config), "steps": min(config.steps, 3), "accelerator": device}
        return train(task, TrainingConfig(**settings))

    return trained


def states(*modules):
    return [part for module in modules for part in module.state_dict().values()]


def images(n=12, size=16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (n, 3, size, size), generator=generator, dtype=torch.uint8)


class TestTheDeviceItself:
    def test_is_as_strict_as_a_gpu(self):
        with pretended_device() as name:
            weight = torch.nn.Linear(3, 2).to(name).weight
            with pytest.raises(RuntimeError, match="same device"):
                weight + torch.ones(2, 3)
            with pytest.raises(RuntimeError, match="numpy"):
                weight.detach().numpy()
            with pytest.raises(TypeError, match="float64"):
                weight.double()
            # as on a GPU, a number of the CPU may stand beside, and rows may be numbered by the CPU
            assert (weight * torch.tensor(2.0)).device.type == name
            assert torch.equal(weight[torch.tensor([1])].cpu(), weight.cpu()[1:])

    def test_a_step_that_forgets_to_move_a_batch_fails(self):
        class Forgetful(METHODS["source_only"]):
            def step(self, loop):
                (x, _) = self.source_batches.at(loop.index)
                loop.update("classifier", self.networks.head(self.networks.encoder(x)).sum())

        def measure(device):
            task = Forgetful(seeded(0, lambda: small_networks(2, 2, 4)), points(), AdaptationConfig(batch=8), 0)
            train(task, TrainingConfig(2, accelerator=device))
            return states(task.networks.head)

        with pytest.raises(RuntimeError, match="same device"):
            on_both(measure)

    def test_what_is_not_trained_on_it_differs(self):
        with pytest.raises(AssertionError):
            assert_same(lambda device: [torch.tensor(float(device == "cpu"))])


def points(image=False):
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(24) % 3
    source, target = torch.randn(2, 24, *((3, 8, 8) if image else (2,)), generator=generator)
    return DomainData(source, labels, target, 3, source[:9], labels[:9])


def image_networks():
    def build():
        network = prepare(AdaptationNetwork(3, width=4, size=8))
        return VadaNetworks(network.encoder, network.head, DomainDiscriminator(network.n_features, width=5))

    return seeded(0, build)


METHODS_AND_OPTIONS = [
    *((name, {}) for name in METHODS),
    ("vada_orthogonal", {"label_shift": LabelShift("pseudo_hard"), "target_classes": "hard"}),
    ("vada_orthogonal", {"label_shift": LabelShift("pseudo_soft"), "discriminator": "orthogonal", "mass": 0.1}),
    ("vada_orthogonal", {"label_shift": LabelShift("bbse", every_epoch=True)}),
    ("vada_orthogonal", {"label_shift": LabelShift(known=(0.2, 0.3, 0.5))}),
]


@pytest.mark.parametrize(("method", "options"), METHODS_AND_OPTIONS)
@pytest.mark.parametrize("balanced", ["weights", "batches"])
def test_adaptation(method, options, balanced):
    def measure(device):
        config = AdaptationConfig(LOSSES, batch=8, warmup=1, estimate_every=1, balanced=balanced)
        task = METHODS[method](image_networks(), points(image=True), config, 0, **options)
        train(task, TrainingConfig(4, ema=0.9, accelerator=device))
        return [*states(*task.modules.values()), torch.from_numpy(task.predict_proba(points(image=True).target))]

    assert_same(measure)


def test_refinement():
    def measure(device):
        task = DirtT(image_networks(), points(image=True), AdaptationConfig(LOSSES, batch=8), 0)
        train(task, TrainingConfig(2, accelerator=device))
        return states(*task.modules.values())

    assert_same(measure)


@pytest.mark.parametrize("method", [*METHODS, "dirt_t"])
def test_adaptation_of_tables(method):
    def measure(device):
        networks = seeded(0, lambda: small_networks(2, 3, 4))
        config = AdaptationConfig(LOSSES, batch=8, warmup=1)
        task = ({**METHODS, "dirt_t": DirtT}[method])(networks, points(), config, 0)
        train_small(task, 3, 0, device, early_stopping=True)
        return [torch.from_numpy(task.predict_proba(points().target))]

    assert_same(measure)


@pytest.mark.parametrize("method", INVARIANT)
def test_principals_of_environments(method):
    sets = [(images(seed=seed), torch.arange(12) % 2) for seed in (0, 1)]

    def measure(device):
        network = prepare(seeded(0, lambda: DigitClassifier(width=4)))
        config = INVARIANT[method][1](steps=2, batch_size=4)
        return states(fit_invariant(method, sets, network, config, trainer=trainer(device)))

    assert_same(measure)


def domain_classifier(device, n_classes=2, **options):
    settings = ClassifierConfig(width=4, epochs=1, batch_size=4, average=0.9, **options)
    network = seeded(0, lambda: PhotoClassifier(n_classes, width=4))
    y = torch.arange(12) % n_classes
    return fit_domain_classifier(images(), y, settings, seed=0, network=network, trainer=trainer(device))


@pytest.mark.parametrize("options", [{}, {"shift": 2, "mixup": True}])
def test_classifiers_of_domains(options):
    def measure(device):
        fitted = domain_classifier(device, **options)
        assert device_of(fitted).type == device
        return [*states(fitted), log_proba(fitted, images())]

    assert_same(measure)


def ratio(device):
    groups = domain_classifier(device, n_classes=4)
    shares = [0.25] * 4
    column = DomainByColumn(groups, column_prior=shares, given_a=(0.4, 0.1, 0.4, 0.1), given_b=shares)
    return PairRatio(domain_classifier(device), column, full_prior=(0.4, 0.6))


@pytest.mark.parametrize("size", [16, 32])
@pytest.mark.parametrize(
    "options", [{}, {"plain_steps": 1}, {"overlap": True, "keep": 0.1, "penalty": 0.1, "decay_end": 4}]
)
def test_translation(size, options):
    def measure(device):
        networks = networks_for(size, 4, seed=0)
        a, b = images(size=size), images(size=size, seed=1)
        weights = CycleGANWeights(cycle_part=2)
        config = TransferConfig(batch_size=4, weights=weights, **options)
        judge = lambda made: {"mean": translate(made.a_to_b, a).mean().item()}  # noqa: E731
        task = TransferTask(networks, a, b, config, log_ratio=ratio(device), judge=judge)
        outcome = train(task, TrainingConfig(2, ema=0.9, accelerator=device))
        logged = torch.tensor([*outcome.history[-1].values(), outcome.evaluations[-1]["mean"]])
        return [logged, translate(networks.a_to_b, a), log_ratios(task.modules["log_ratio"], a)]

    # a bias before a normalisation has no gradient but rounding, by whose sign Adam moves it
    assert_same(measure, tolerance=1e-3)


def test_a_ratio_by_importance():
    assert_same(lambda device: [log_ratios(OrthogonalRatio(domain_classifier(device)), images())])


def test_cached_classifiers_move_with_the_networks_and_are_used_where_they_are():
    classifier = PairRatio(domain_classifier("cpu"), domain_classifier("cpu"))
    before = log_ratios(classifier, images())
    with pretended_device() as name:
        task = TransferTask(
            networks_for(16, 4, seed=0), images(), images(), TransferConfig(batch_size=4), log_ratio=classifier
        )
        train(task, TrainingConfig(1, accelerator=name))
        assert device_of(classifier).type == name
        np.testing.assert_array_equal(log_ratios(classifier, images()), before)


def test_the_formula_as_a_module():
    def measure(device):
        full, principal = (seeded(seed, lambda: torch.nn.Linear(3, 2)) for seed in (0, 1))
        head = OrthogonalHead(full, principal, prior=(0.3, 0.7)).to(device)
        return [head(torch.ones(2, 3).to(device))]

    assert_same(measure)


def test_a_checkpoint_resumes_on_the_device(tmp_path):
    def task():
        return METHODS["vada_iw"](image_networks(), points(image=True), AdaptationConfig(LOSSES, batch=8, warmup=1), 0)

    def measure(device):
        folder = tmp_path / device
        train(task(), TrainingConfig(2, ema=0.9, accelerator=device), folder=folder)
        resumed = task()
        train(resumed, TrainingConfig(4, ema=0.9, accelerator=device), folder=folder, resume=True)
        return states(*resumed.modules.values())

    assert_same(measure)
