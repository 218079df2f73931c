"""The numbers of a translation's report against pictures whose answer is known, and the word that follows from them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus.nn.cyclegan import CycleGAN  # noqa: E402
from setminus.transfer.factor_classifiers import deal_out, fit_factor_classifiers  # noqa: E402
from setminus.transfer.verdict import TranslationJudge, edge_correlation, kernel_distance, verdict  # noqa: E402
from tests.made_pictures import folder_squares  # noqa: E402

GOOD = {"changed": 0.95, "kept": 0.95, "matched": 0.95, "grain": 1.1}


@pytest.mark.parametrize(
    ("scores", "halfway", "word"),
    [
        ({}, {}, "good"),
        ({"changed": 0.85}, {}, "train longer"),
        ({"changed": 0.88, "kept": 0.85}, {}, "good"),
        ({"distance": 0.1}, {}, "good"),
        ({"distance": 0.15}, {}, "train longer"),
        ({"kept": 0.84}, {}, "train longer"),
        ({"kept": 0.8}, {}, "train longer"),
        ({"kept": 0.31}, {"kept": 0.31}, "do not use"),
        ({"kept": 0.6}, {"kept": 0.4}, "train longer"),
        ({"matched": 0.6}, {"matched": 0.6}, "do not use"),
        ({"matched": 0.6}, {"matched": 0.5}, "train longer"),
        ({"grain": 1.3}, {}, "train longer"),
        ({"grain": 0.75}, {}, "train longer"),
        ({"grain": 0.5}, {}, "train longer"),
    ],
)
def test_the_word(scores, halfway, word):
    last = {**GOOD, **scores}
    assert verdict(last, [{**last, **halfway}, {**last, **halfway}, last]) == word


def test_structure_is_one_for_other_colors_and_near_nothing_for_noise():
    rng = np.random.default_rng(0)
    pictures = np.zeros((8, 3, 32, 32), dtype=np.float32)
    for k, (top, left) in enumerate(rng.integers(4, 18, size=(8, 2))):
        pictures[k, :, top : top + 10, left : left + 10] = 1
    recolored = -0.5 * pictures + 0.2
    noise = rng.normal(size=pictures.shape).astype(np.float32)
    assert edge_correlation(pictures, recolored) == pytest.approx(np.ones(8), abs=1e-5)
    assert np.abs(edge_correlation(pictures, noise)).max() < 0.2
    assert edge_correlation(pictures, np.zeros_like(pictures)).tolist() == [0.0] * 8


def test_structure_sees_edges_between_colors_of_the_same_light():
    pictures = np.zeros((1, 3, 16, 16), dtype=np.float32)
    pictures[:, 0, 4:12, 4:12], pictures[:, 1] = 1, 1 - np.pad(np.ones((8, 8)), 4)
    assert np.ptp(pictures.mean(axis=1)) == 0
    assert edge_correlation(pictures, pictures[:, ::-1]) == pytest.approx(1)


class Painter(torch.nn.Module):
    """Squares painted with a share of a color: not at all where the share is 0."""

    def __init__(self, share, color):
        super().__init__()
        self.share, self.color = share, torch.nn.Parameter(color)

    def forward(self, images):
        made = images.clone()
        square = (slice(None), slice(None), slice(3, 9), slice(3, 9))
        made[square] = (1 - self.share) * images[square] + self.share * self.color
        return made


def painters(share, images):
    """Generators with the mean colors of the squares with each domain's own value."""
    own = [(images.y == place) & (images.z == place) for place in (1, 0)]
    means = [images.x[rows, 5, 5].mean(axis=0) / 127.5 - 1 for rows in own]
    colors = [torch.tensor(mean, dtype=torch.float32)[:, None, None] for mean in means]
    return CycleGAN(*(Painter(share, color) for color in colors), torch.nn.Identity(), torch.nn.Identity())


@pytest.fixture(scope="module")
def judged():
    images, _ = folder_squares("digit")
    parts = deal_out(images, 0.2, seed=0)
    classifiers = fit_factor_classifiers(*parts, "change", width=8, steps=200, seed=0)
    return TranslationJudge(classifiers, "change", parts[1].a, parts[1].b), images


def test_a_whole_change_counts_and_half_of_one_does_not(judged):
    judge, images = judged
    nothing, half, whole = (judge(painters(share, images)) for share in (0.0, 0.5, 1.0))
    for direction in ("a_to_b", "b_to_a"):
        assert nothing[direction]["changed"] < 0.05
        assert half[direction]["changed"] < 0.5
        assert whole[direction]["changed"] > 0.9
        assert whole[direction]["kept"] > 0.9


def test_a_perfect_translation_is_near_the_other_domain_although_it_keeps_the_ground(judged):
    judge, images = judged
    good, idle = (judge.distances(painters(share, images)) for share in (1.0, 0.0))
    for direction in ("a_to_b", "b_to_a"):
        low, high = good[direction]["distance_interval"]
        assert low < good[direction]["distance"] < high < 1
        assert good[direction]["distance"] < 0.3 and low < 0.1
        assert idle[direction]["distance"] == pytest.approx(1, abs=1e-3)


class Noise(torch.nn.Module):
    def __init__(self, network, scale):
        super().__init__()
        self.network, self.scale = network, scale

    def forward(self, images):
        made = self.network(images)
        return made + self.scale * torch.randn(made.shape, generator=torch.Generator().manual_seed(0))


def test_noise_that_no_classifier_minds_is_grain(judged):
    judge, images = judged
    clean = painters(1.0, images)
    noisy = CycleGAN(*(Noise(one, 0.2) for one in (clean.a_to_b, clean.b_to_a)), *(torch.nn.Identity(),) * 2)
    for direction in ("a_to_b", "b_to_a"):
        scores = {name: judge(networks)[direction] for name, networks in (("clean", clean), ("noisy", noisy))}
        assert 0.8 < scores["clean"]["grain"] < 1.25
        assert scores["noisy"]["grain"] > 2
        assert verdict(scores["clean"]) == "good" != verdict(scores["noisy"])


class Sides:
    """Sees one factor in which half of a picture is brighter, the upper or the left one, another in how red it is."""

    def __init__(self, half):
        self.half, self.modules = half, {}

    def log_probas(self, images):
        upper, left = (slice(0, 8), slice(None)), (slice(None), slice(0, 8))
        part = images[(..., *(upper if self.half == "upper" else left))].mean(dim=(1, 2, 3))
        seen = {"column": part - images.mean(dim=(1, 2, 3)), "rest": images[:, 0].mean(dim=(1, 2))}
        return {name: torch.stack([-one, one], dim=1).log_softmax(1).numpy() for name, one in seen.items()}


@pytest.mark.parametrize(("half", "mirrors"), [("upper", True), ("left", False)])
def test_pictures_are_not_mirrored_where_a_factor_is_a_direction(half, mirrors):
    images = torch.randint(256, (2, 40, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    assert TranslationJudge(Sides(half), "change", *images).mirrors() is mirrors


def test_translations_of_other_pictures_do_not_match():
    rng = np.random.default_rng(0)
    pictures = rng.normal(size=(60, 3, 8, 8)).astype(np.float32)
    own = edge_correlation(pictures, 1 - pictures) > edge_correlation(pictures, np.roll(1 - pictures, 1, axis=0))
    other = np.roll(pictures, 7, axis=0)
    strange = edge_correlation(pictures, other) > edge_correlation(pictures, np.roll(other, 1, axis=0))
    assert own.mean() == 1 and 0.25 < strange.mean() < 0.75


def test_the_distance_and_its_weights_against_sums_over_pairs():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(4, 3)) + 0.5
    v, w = rng.random(5), rng.random(4)
    scaled_x, scaled_y = x / y.std(axis=0), y / y.std(axis=0)

    usual = np.median([((one - other) ** 2).sum() for i, one in enumerate(scaled_y) for other in scaled_y[:i]])

    def mean(one, other, weights, same):
        pairs = [(i, j) for i in range(len(one)) for j in range(len(other)) if not (same and i == j)]
        kernels = [np.exp(-((one[i] - other[j]) ** 2).sum() / (2 * usual)) for i, j in pairs]
        return np.average(kernels, weights=[weights[0][i] * weights[1][j] for i, j in pairs])

    exact = mean(scaled_x, scaled_x, (v, v), True) + mean(scaled_y, scaled_y, (w, w), True)
    exact -= 2 * mean(scaled_x, scaled_y, (v, w), False)
    distance, (low, high) = kernel_distance((x, v), (y, w))
    assert distance == pytest.approx(exact, rel=1e-4)
    assert low < high
