"""The classifier of colored digits: its sizes, that it learns, and what it refuses."""

import pytest

torch = pytest.importorskip("torch")

from setminus.nn.networks.classifiers import DigitClassifier  # noqa: E402
from setminus.nn.networks.initialization import seeded  # noqa: E402


def test_the_sizes_are_the_paper_s():
    network = DigitClassifier()
    convolutions = [m for m in network.modules() if isinstance(m, torch.nn.Conv2d)]
    assert [(m.in_channels, m.out_channels, m.stride[0]) for m in convolutions] == [
        (3, 64, 1),
        (64, 128, 2),
        (128, 128, 1),
    ]
    assert (network.head.in_features, network.head.out_features) == (128, 2)


@pytest.mark.parametrize("size", [16, 28, 32])
def test_any_size_gives_logits(size):
    assert DigitClassifier(5, width=4)(torch.zeros(3, 3, size, size)).shape == (3, 5)


def test_it_learns_a_color():
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(32) % 2
    images = torch.rand(32, 3, 16, 16, generator=generator)
    images[:, 0] += 0.5 * labels[:, None, None]
    network = seeded(0, lambda: DigitClassifier(width=4))
    losses = []
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for _ in range(30):
        losses.append(torch.nn.functional.cross_entropy(network(images), labels))
        optimizer.zero_grad()
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < 0.1 < 0.5 < losses[0]


def test_channels_at_the_end_are_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"move the channels to the front: images.permute\(0, 3, 1, 2\)"):
        DigitClassifier(width=4)(torch.zeros(2, 28, 28, 3))
    with pytest.raises(ValueError, match=r"expected \(n, 3, height, width\); pass a batch of images with 3 channels"):
        DigitClassifier(width=4)(torch.zeros(2, 1, 28, 28))
