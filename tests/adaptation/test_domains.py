"""When the target's class frequencies are estimated, from which rows, and what a resumed training keeps."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.adaptation.domains import DomainData, LabelShift, TargetPrior, _spread, class_logits, estimated_prior  # noqa: E402
from setminus.nn.networks import AdaptationNetwork, seeded  # noqa: E402

IDENTITY = torch.nn.Identity()


def logistic(scale=1.0):
    """The exact log odds of class 1 for unit normals at -1 and 1 with equal classes, times `scale`."""
    head = torch.nn.Linear(1, 2)
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[-scale], [scale]]))
        head.bias.zero_()
    return head


def normals(shares=(0.3, 0.8), n=2000, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = [(torch.arange(n) < share * n).long() for share in shares]
    source, target = (2.0 * y[:, None] - 1 + torch.randn(n, 1, generator=generator) for y in labels)
    return DomainData(source, labels[0], target, 2, source, labels[0])


@pytest.mark.parametrize("estimator", ["em", "bbse"])
def test_both_estimators_find_the_shift_by_a_classifier_that_is_too_sure(estimator):
    data, head = normals(), logistic(scale=5.0)
    found = estimated_prior(IDENTITY, head, data, LabelShift(estimator))
    assert found[1] == pytest.approx(0.8, abs=0.04)
    # the negative control: its own decisions do not
    assert (head(data.target).argmax(1) == 1).float().mean() < 0.75


@pytest.mark.parametrize("estimator", ["em", "bbse"])
def test_a_class_with_few_rows_is_not_lost_where_not_all_rows_are_looked_at(estimator):
    data = normals(shares=(0.001, 0.001))
    order = torch.arange(2000).roll(100)
    # two rows of 2,000, none among the ten that are evenly spread
    assert data.source_labels.sum() == 2 and data.source_labels[order][_spread(2000, 10)].sum() == 0
    data = DomainData(data.source[order], data.source_labels[order], data.target, 2)
    found = estimated_prior(IDENTITY, logistic(), data, LabelShift(estimator, rows=10))
    assert found.sum() == pytest.approx(1) and np.all(found >= 0)


def test_pseudo_labels_are_no_estimate_of_a_moment():
    with pytest.raises(ValueError, match="estimator is 'pseudo_soft': expected em or bbse"):
        estimated_prior(IDENTITY, logistic(), normals(n=50), LabelShift("pseudo_soft"))


def test_once_is_at_the_end_of_the_warmup():
    data, head = normals(n=200), logistic()
    prior = TargetPrior(data, LabelShift("em"), start=3, epoch=2)
    for step in range(3):
        prior.update(step, IDENTITY, head, data)
        assert torch.equal(prior.target, prior.source)
    prior.update(3, IDENTITY, head, data)
    first = prior.target.clone()
    assert first[1] > 0.6
    prior.update(5, IDENTITY, logistic(-1.0), data)
    assert torch.equal(prior.target, first)


def test_every_epoch_with_momentum():
    data = normals(n=200)
    prior = TargetPrior(data, LabelShift("bbse", every_epoch=True, momentum=0.5), start=0, epoch=4)
    prior.update(0, IDENTITY, logistic(), data)
    first = prior.target.clone()
    other = torch.nn.Linear(1, 2)
    with torch.no_grad():
        other.weight.copy_(torch.tensor([[-1.0], [1.0]]))
        other.bias.copy_(torch.tensor([1.5, 0.0]))
    prior.update(3, IDENTITY, other, data)
    assert torch.equal(prior.target, first)
    prior.update(4, IDENTITY, other, data)
    second = torch.from_numpy(estimated_prior(IDENTITY, other, data, prior.config))
    torch.testing.assert_close(prior.target, (first + second) / 2)


def test_shrinkage_is_the_share_of_equal_frequencies_in_every_estimate():
    data = normals(n=200)
    plain = estimated_prior(IDENTITY, logistic(), data, LabelShift("bbse"))
    config = LabelShift("bbse", every_epoch=True, momentum=0.5, shrinkage=0.25)
    prior = TargetPrior(data, config, start=0, epoch=4)
    for step in (0, 4):
        # not more with every estimate: momentum keeps what is shrunk already
        prior.update(step, IDENTITY, logistic(), data)
        np.testing.assert_allclose(prior.target.numpy(), 0.75 * plain + 0.125)
    none = TargetPrior(data, LabelShift("bbse", shrinkage=0.0), start=0, epoch=4)
    none.update(0, IDENTITY, logistic(), data)
    np.testing.assert_array_equal(none.target.numpy(), plain)


@pytest.mark.parametrize(("estimator", "expected"), [("pseudo_hard", [0.0, 1.0]), ("pseudo_soft", [0.25, 0.75])])
def test_pseudo_labels_are_those_of_the_last_epoch(estimator, expected):
    data = normals(n=50)
    prior = TargetPrior(data, LabelShift(estimator), start=2, epoch=2)
    for step in range(5):
        prior.update(step, IDENTITY, logistic(), data)
        # what is said before the last epoch is said of class 0
        proba = torch.tensor([[0.9, 0.1]] if step < 2 else [[0.25, 0.75]])
        prior.observe(proba.log().expand(8, 2))
    np.testing.assert_allclose(prior.target.numpy(), expected, atol=1e-6)


def test_the_estimate_is_part_of_the_state():
    data = normals(n=100)
    prior, again = (TargetPrior(data, LabelShift("em"), start=0, epoch=2) for _ in range(2))
    prior.update(0, IDENTITY, logistic(), data)
    again.load_state_dict(prior.state_dict())
    assert torch.equal(again.target, prior.target)
    assert not torch.equal(again.target, again.source)


def test_rows_are_normalised_among_themselves_and_nothing_is_remembered():
    network = seeded(0, lambda: AdaptationNetwork(3, width=4, size=16))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    images = torch.randn(6, 3, 16, 16, generator=torch.Generator().manual_seed(0)).sort(0).values
    own = class_logits(network.encoder, network.head, images, own_statistics=True)
    running = class_logits(network.encoder, network.head, images)
    assert not torch.allclose(own, running, atol=1e-3)
    torch.testing.assert_close(running, network.eval()(images).detach())
    network.train()
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert torch.equal(own, class_logits(network.encoder, network.head, images, own_statistics=True))
    assert network.encoder.training


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "mlls"}, "estimator is 'mlls': expected one of em, bbse, pseudo_hard, pseudo_soft"),
        ({"momentum": 1.0}, r"momentum is 1\.0"),
        ({"shrinkage": 1.5}, r"shrinkage is 1\.5: expected a share in \[0, 1\]"),
        ({"shrinkage": float("nan")}, "shrinkage is nan"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        LabelShift(**options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": torch.zeros(0, 1)}, "the target domain has no rows"),
        ({"source": torch.zeros(0, 1), "source_labels": torch.zeros(0).long()}, "the source domain has no rows"),
        ({"target": torch.zeros(4, 2)}, r"source rows have shape \(1,\), target rows \(2,\)"),
        ({"source_labels": torch.tensor([0, 1, 0])}, r"source has 4 rows, its labels have shape \(3,\)"),
        ({"source_labels": torch.tensor([0, 0, 0, 0])}, "source has no rows of class 1"),
        ({"source_labels": torch.tensor([0, 1, 2, 0])}, "expected classes from 0 to 1"),
        ({"source_labels": torch.tensor([0, 1, 0, 1]).int()}, r"labels of source are of torch\.int32: expected int64"),
        ({"target": torch.zeros(4, 1).byte()}, r"target is of torch\.uint8: expected numbers that networks take"),
        ({"held_out": torch.zeros(2, 1)}, "held_out and held_out_labels belong together"),
        (
            {"held_out": torch.zeros(2, 3), "held_out_labels": torch.tensor([0, 1])},
            r"source rows have shape \(1,\), held_out rows \(3,\)",
        ),
    ],
)
def test_data_is_checked(change, message):
    data = {"source": torch.zeros(4, 1), "source_labels": torch.tensor([0, 1, 0, 1]), "target": torch.zeros(4, 1)}
    with pytest.raises(ValueError, match=message):
        DomainData(**{**data, **change}, n_classes=2)
