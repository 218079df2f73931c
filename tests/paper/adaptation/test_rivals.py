"""CyCADA: what each phase may touch, its semantic term, resumed to the same bits, and a problem that it solves."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus_paper.adaptation.rivals import (  # noqa: E402
    Adda,
    Cycada,
    semantic_loss,
)
from torch import nn  # noqa: E402

from setminus.adaptation.domains import DomainData  # noqa: E402
from setminus.adaptation.methods import AdaptationConfig, Dann, SourceOnly  # noqa: E402
from setminus.adaptation.vada import VadaConfig, VadaNetworks  # noqa: E402
from setminus.nn.networks import AdaptationNetwork, DomainDiscriminator, seeded  # noqa: E402
from setminus.nn.training import TrainingConfig, train  # noqa: E402
from tests.adaptation.test_methods import CONFIG as POINTS  # noqa: E402
from tests.adaptation.test_methods import networks, points, weights_of  # noqa: E402

CONFIG = AdaptationConfig(VadaConfig(domain=0.1), batch=4, warmup=2)
SMALL = {"width": 4, "discriminator_width": 4}
CLASSIFIER, TRANSLATORS = {"encoder", "head", "discriminator"}, {"generators", "image_discriminators"}


def bars(n, seed, ink, ground):
    """Upright ones are class 0, lying ones class 1."""
    generator = torch.Generator().manual_seed(seed)
    labels, places = torch.arange(n) % 2, torch.randint(2, 12, (n,), generator=generator).tolist()
    images = torch.tensor(ground).view(3, 1, 1).repeat(n, 1, 16, 16)
    for image, lying, place in zip(images, labels.tolist(), places, strict=True):
        bar = slice(place, place + 3)
        (image[:, bar] if lying else image[..., bar]).copy_(torch.tensor(ink).view(3, 1, 1))
    return (images + 0.05 * torch.randn(images.shape, generator=generator)).clamp(-1, 1), labels


def colored(n=12):
    """White on black, and yellow on blue."""
    source, labels = bars(n, 0, (0.9, 0.9, 0.9), (-0.9, -0.9, -0.9))
    target, target_labels = bars(n, 1, (0.9, 0.9, -0.9), (-0.9, -0.5, 0.9))
    return DomainData(source, labels, target, 2), target_labels.numpy()


def papers_networks():
    def build():
        network = AdaptationNetwork(2, width=4, size=16)
        return VadaNetworks(network.encoder, network.head, DomainDiscriminator(network.n_features, width=5))

    return seeded(0, build)


def plain_networks():
    """Without normalisations, dropout and noise: colors that it does not know mislead it."""

    def build():
        convolutions = nn.Conv2d(3, 8, 3, 2, 1), nn.LeakyReLU(0.1), nn.Conv2d(8, 8, 3, 2, 1), nn.LeakyReLU(0.1)
        head = nn.Sequential(nn.Flatten(), nn.Linear(128, 2))
        return VadaNetworks(nn.Sequential(*convolutions), head, DomainDiscriminator(128, width=16))

    return seeded(0, build)


def states(task):
    return {
        name: torch.cat([part.double().flatten() for part in module.state_dict().values()])
        for name, module in task.modules.items()
    }


class Watched(Cycada):
    """Keeps which modules each step changed, running statistics included."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.changed = []

    def step(self, loop):
        before = states(self)
        super().step(loop)
        after = states(self)
        self.changed.append({name for name in before if not torch.equal(before[name], after[name])} - {"schedule"})


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_each_phase_touches_its_own_networks_only(precision):
    task = Watched(papers_networks(), colored()[0], CONFIG, 0, **SMALL)
    outcome = train(task, TrainingConfig(steps=8, log_every=1, precision=precision))
    assert task.changed == [CLASSIFIER] * 2 + [TRANSLATORS] * 3 + [CLASSIFIER] * 3
    losses = [set(entry) - {"step"} for entry in outcome.history]
    assert losses[0] == losses[-1] == {"classifier", "discriminator", "source_class", "domain"}
    assert losses[2] == {"generators", "discriminators", "cycle", "semantic_a_to_b", "semantic_b_to_a"}


def test_the_phases_are_a_share_of_the_steps_that_follow_the_warmup():
    task = Watched(papers_networks(), colored()[0], CONFIG, 0, translation=0.25, **SMALL)
    train(task, TrainingConfig(steps=10))
    assert task.changed == [CLASSIFIER] * 2 + [TRANSLATORS] * 2 + [CLASSIFIER] * 6


def test_the_warmup_is_that_of_dann_and_the_third_phase_is_dann_on_translated_images():
    data, _ = colored()
    cycada, dann = (method(papers_networks(), data, CONFIG, 0) for method in (Cycada, Dann))
    for task in (cycada, dann):
        train(task, TrainingConfig(steps=2))
    ours, theirs = states(cycada), states(dann)
    assert all(torch.equal(ours[name], theirs[name]) for name in CLASSIFIER)

    class Translating(Dann):
        def step(self, loop):
            if loop.index >= 4:
                # what `loop.batch` takes from
                with torch.no_grad():
                    images = torch.cat([cycada.translators.a_to_b(batch) for batch in data.source.split(4)])
                self.source_batches.tensors = (images, data.source_labels)
                super().step(loop)
            elif loop.index < 2:
                super().step(loop)

    # dropout draws as often in the second phase of one as of the other only where there is none
    cycada, dann = (method(plain_networks(), data, CONFIG, 0) for method in (Cycada, Translating))
    for task in (cycada, dann):
        train(task, TrainingConfig(steps=6))
    ours, theirs = states(cycada), states(dann)
    for name in CLASSIFIER:
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-4, atol=1e-6)
    plain = Dann(plain_networks(), data, CONFIG, 0)
    train(plain, TrainingConfig(steps=4))
    assert (states(plain)["encoder"] - ours["encoder"]).abs().max() > 1e-4


def test_a_translation_takes_the_classes_as_they_are():
    data, _ = colored()
    rare = torch.arange(12) >= 10
    shifted = DomainData(data.source, rare.long(), data.target, 2)
    task = Cycada(papers_networks(), shifted, replace(CONFIG, balanced="batches"), 0, **SMALL)
    epoch = range(len(task.images))
    assert sum(int(rare[task.images.rows(step)].sum()) for step in epoch) == 2
    assert sum(int(task.source_batches.at(step)[1].sum()) for step in epoch) == 6
    train(task, TrainingConfig(steps=6))


def test_the_semantic_term_is_its_equation():
    """Minus the mean log-probability that the classifier gives its own decision, once the image is translated."""
    networks, (data, _) = papers_networks(), colored()
    translated = data.source.flip(2).requires_grad_()
    before = {name: value.clone() for name, value in networks.encoder.state_dict().items()}
    loss = semantic_loss(networks.encoder, networks.head, data.source, translated)
    loss.backward()

    reference = papers_networks()
    for module in (*reference.encoder.modules(), *reference.head.modules()):
        # dropout and noise are off, batches have statistics of their own
        module.training = isinstance(module, nn.BatchNorm2d)
    with torch.no_grad():
        decided = reference.head(reference.encoder(data.source)).numpy().argmax(axis=1)
        logits = reference.head(reference.encoder(translated)).double().numpy()
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    assert loss.item() == pytest.approx(-logs[np.arange(len(logs)), decided].mean(), rel=1e-5)
    # the negative control: the labels matter
    assert loss.item() != pytest.approx(-logs[np.arange(len(logs)), 1 - decided].mean(), rel=1e-3)

    assert translated.grad.abs().sum() > 0
    assert all(weight.grad is None for weight in (*networks.encoder.parameters(), *networks.head.parameters()))
    assert all(torch.equal(before[name], value) for name, value in networks.encoder.state_dict().items())
    assert networks.encoder.training and networks.head.training


def test_the_semantic_term_counts_in_both_directions_with_its_weight():
    def first_translation(semantic):
        task = Cycada(papers_networks(), colored()[0], CONFIG, 0, semantic=semantic, **SMALL)
        return train(task, TrainingConfig(steps=3, log_every=1)).history[2]

    without, with_it = first_translation(0.0), first_translation(2.0)
    expected = without["generators"] + 2 * (without["semantic_a_to_b"] + without["semantic_b_to_a"])
    assert with_it["generators"] == pytest.approx(expected, rel=1e-5)
    assert without["semantic_a_to_b"] != pytest.approx(without["semantic_b_to_a"], rel=1e-3)


class Killed(Exception):
    pass


@pytest.mark.parametrize("at", [1, 4, 7])
def test_a_training_killed_in_any_phase_resumes_to_the_same_bits(at, tmp_path):
    def run(folder, observers=()):
        task = Cycada(papers_networks(), colored()[0], CONFIG, 0, **SMALL)
        config = TrainingConfig(steps=8, log_every=1, checkpoint_every=1)
        outcome = train(task, config, folder=folder, resume=True, observers=observers)
        return states(task), outcome.history

    def kill(step, values):
        if step == at + 1:
            raise Killed

    whole, history = run(None)
    with pytest.raises(Killed):
        run(tmp_path, [kill])
    resumed, resumed_history = run(tmp_path)
    assert resumed_history == history
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert not torch.equal(whole["encoder"], states(Cycada(papers_networks(), colored()[0], CONFIG, 0))["encoder"])


def test_a_training_made_longer_keeps_its_translation(tmp_path):
    for steps in (6, 20):
        task = Watched(papers_networks(), colored()[0], CONFIG, 0, **SMALL)
        train(task, TrainingConfig(steps=steps), folder=tmp_path, resume=True)
    assert task.changed == [CLASSIFIER] * 14


def test_seeds_are_all_that_is_random():
    one, same, other = (states(Cycada(papers_networks(), colored()[0], CONFIG, seed)) for seed in (3, 3, 4))
    assert torch.equal(one["generators"], same["generators"])
    assert not torch.equal(one["generators"], other["generators"])


def test_translation_solves_what_misleads_the_classifier_of_the_source():
    data, target_labels = colored(128)
    # without the game about features: what is gained comes from the images
    config = AdaptationConfig(VadaConfig(domain=0.0), batch=16, warmup=40)
    options = {"width": 8, "discriminator_width": 8, "translation": 0.75}

    def accuracy(method, **options):
        task = method(plain_networks(), data, config, 0, **options)
        train(task, TrainingConfig(steps=400))
        return (task.predict_proba(data.target).argmax(axis=1) == target_labels).mean()

    adapted = accuracy(Cycada, translation_rate=3e-3, **options)
    # the negative control: generators that learn nothing carry nothing over
    unlearned = accuracy(Cycada, translation_rate=1e-9, **options)
    assert max(accuracy(SourceOnly), unlearned) + 0.1 < adapted
    assert adapted > 0.9


def with_images(images):
    return DomainData(images, torch.arange(len(images)) % 2, images, 2)


@pytest.mark.parametrize(
    ("data", "config", "options", "message"),
    [
        (with_images(torch.zeros(4, 7)), CONFIG, {}, r"source rows have shape \(4, 7\): CyCADA translates images"),
        (with_images(torch.zeros(4, 3, 18, 18)), CONFIG, {}, "the images are 18 x 18: expected .* multiples of 4"),
        (with_images(torch.zeros(4, 3, 4, 4)), CONFIG, {}, "the images are 4 x 4: expected sides of 8 or more"),
        (with_images(torch.zeros(4, 3, 16, 20)), CONFIG, {}, "the images are 16 x 20: expected 16 x 16"),
        (with_images(torch.full((4, 3, 16, 16), 255.0)), CONFIG, {}, r"in \[255, 255\]: expected \[-1, 1\]"),
        (with_images(torch.full((4, 3, 16, 16), torch.nan)), CONFIG, {}, r"in \[nan, nan\]: expected \[-1, 1\]"),
        (colored()[0], AdaptationConfig(), {}, "warmup is 0: CyCADA starts from a classifier of the source"),
        (colored()[0], CONFIG, {"translation": 1.0}, r"translation is 1\.0"),
        (colored()[0], CONFIG, {"semantic": -1.0}, r"semantic is -1\.0"),
        (colored()[0], CONFIG, {"cycle": -1.0}, r"cycle is -1\.0"),
    ],
)
def test_what_cannot_be_translated_is_refused_before_training(data, config, options, message):
    with pytest.raises(ValueError, match=message):
        Cycada(papers_networks(), data, config, 0, **options)


def test_adda_holds_the_classifier_and_moves_the_copy():
    task = Adda(networks(), points(), POINTS, 0)
    train(task, TrainingConfig(steps=4))
    classifier, copied = weights_of(task.networks.encoder, task.networks.head), weights_of(task.target_encoder)
    assert torch.equal(copied, weights_of(task.networks.encoder))
    task = Adda(networks(), points(), POINTS, 0)
    train(task, TrainingConfig(steps=9))
    assert torch.equal(classifier, weights_of(task.networks.encoder, task.networks.head))
    assert not torch.equal(copied, weights_of(task.target_encoder))
    with pytest.raises(ValueError, match="warmup is 0: ADDA starts from a classifier of the source"):
        Adda(networks(), points(), AdaptationConfig(), 0)


def test_a_resumed_training_has_the_same_bits(tmp_path):
    whole = Adda(networks(), points(), POINTS, 0)
    train(whole, TrainingConfig(steps=9, log_every=1))
    for steps in (6, 9):
        task = Adda(networks(), points(), POINTS, 0)
        train(task, TrainingConfig(steps=steps, log_every=1), folder=tmp_path / "run", resume=True)
    assert torch.equal(weights_of(*task.predictor), weights_of(*whole.predictor))
