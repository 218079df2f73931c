"""Planted translations score what they must, by classifiers and by the colors themselves."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus_paper.transfer.evaluation import TransferJudge, measured_latents, oracle_latents, score  # noqa: E402

from setminus.datasets.colored_digits import BACKGROUND_COLORS, DIGIT_COLORS  # noqa: E402
from setminus.nn.cyclegan import CycleGAN  # noqa: E402
from setminus.transfer.networks import image_tensor, signed, translate  # noqa: E402


class Repainted(torch.nn.Module):
    """Paints each pixel in the other color of its kind, for the kinds that are asked for: a planted translation."""

    def __init__(self, digit, background):
        super().__init__()
        pairs = [*([DIGIT_COLORS] if digit else []), *([BACKGROUND_COLORS] if background else [])]
        self.pairs = [signed(torch.from_numpy(pair)) for pair in pairs]
        self.place = torch.nn.Parameter(torch.zeros(()))

    def forward(self, images):
        pixels = images.permute(0, 2, 3, 1)
        painted = pixels.clone()
        for one, other in self.pairs:
            for old, new in ((one, other), (other, one)):
                painted[(pixels - old).abs().amax(-1) < 1e-4] = new
        return painted.permute(0, 3, 1, 2)


@pytest.fixture(scope="module")
def judge(exact, squares):
    split, x = squares
    by_oracle = oracle_latents(exact["principal"], exact["orthogonal"])
    return TransferJudge(x[split.y == 0], x[split.y == 1], oracle=by_oracle, measured=measured_latents)


def networks(**painted):
    return CycleGAN(Repainted(**painted), Repainted(**painted), torch.nn.Identity(), torch.nn.Identity())


@pytest.mark.parametrize(
    ("painted", "z1", "z2"),
    [
        ({"digit": True, "background": False}, 1, 1),
        ({"digit": False, "background": False}, 0, 1),
        ({"digit": True, "background": True}, 1, 0),
        ({"digit": False, "background": True}, 0, 0),
    ],
)
def test_a_planted_translation_scores_what_it_does(judge, painted, z1, z2):
    found = judge(networks(**painted))
    for way in ("oracle", "measured"):
        expected = {"z1": z1, "z2": z2}
        assert found[way] == {**expected, "a_to_b": expected, "b_to_a": expected}
    assert found["agreement"] == 1


def test_each_direction_counts_by_itself(judge):
    parts = Repainted(digit=True, background=False), Repainted(digit=False, background=True)
    found = judge(CycleGAN(*parts, torch.nn.Identity(), torch.nn.Identity()))["oracle"]
    assert found["a_to_b"] == {"z1": 1, "z2": 1}
    assert found["b_to_a"] == {"z1": 0, "z2": 0}
    share = len(judge.real["a_to_b"]) / sum(len(images) for images in judge.real.values())
    assert found["z1"] == found["z2"] == pytest.approx(share)


def test_where_classifiers_and_colors_differ_they_do_not_agree(exact, squares):
    split, x = squares
    mistaken = oracle_latents(exact["orthogonal"], exact["principal"])
    judge = TransferJudge(x[split.y == 0], x[split.y == 1], oracle=mistaken, measured=measured_latents)
    found = judge(networks(digit=True, background=False))
    assert (found["oracle"]["z1"], found["oracle"]["z2"]) == (0, 0)
    # they see the same where, after the translation, digit and background have the colors of one domain
    assert found["agreement"] == pytest.approx(np.mean(split.z1 != split.z2))


def test_an_image_that_lost_its_digit_has_neither_changed_nor_stayed(squares):
    split, x = squares
    blank = torch.from_numpy(np.broadcast_to(BACKGROUND_COLORS[0], (len(x), 8, 8, 3)).copy())
    after = measured_latents(signed(image_tensor(blank.numpy())))
    found = score((split.z1, split.z2), after)
    assert found.z1 == 0
    assert found.z2 == pytest.approx(np.mean(split.z2 == 0))


def test_translation_in_parts_is_translation(squares):
    _, x = squares
    generator = Repainted(digit=True, background=True)
    with torch.no_grad():
        assert torch.equal(translate(generator, x), generator(signed(x)))


def test_what_does_not_fit_is_refused(squares):
    split, x = squares
    with pytest.raises(ValueError, match="before has 600 and 600 images, after 2 and 600"):
        score((split.z1, split.z2), (split.z1[:2], split.z2))
    with pytest.raises(ValueError, match="no way to find the latents was given"):
        TransferJudge(x, x)
