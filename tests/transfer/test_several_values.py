"""A factor of three values: the ratio is that of the closed form, and two values of one side may not be exchanged."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from setminus import OrthogonalTranslator  # noqa: E402
from setminus.datasets.two_factor_folder import LabelledImages  # noqa: E402
from setminus.nn.cyclegan import CycleGAN  # noqa: E402
from setminus.transfer.domain_classifiers import DomainByColumn, overlap_weights  # noqa: E402
from setminus.transfer.factor_classifiers import deal_out, fit_factor_classifiers  # noqa: E402
from setminus.transfer.transfer_task import OrthogonalRatio  # noqa: E402
from setminus.transfer.verdict import TranslationJudge  # noqa: E402
from tests.made_pictures import few_epochs  # noqa: E402, F401

COLORS = np.array([[220, 40, 40], [40, 200, 40], [40, 40, 220]], dtype=np.uint8)
GIVEN = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
"""The shares of the three values in each domain: the second one's are equal."""


def painted(n=600, size=16, seed=0):
    """Squares of three colors on grounds of three greys, both with the shares of `GIVEN`."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n // 2)
    ink, ground = (np.array([rng.choice(3, p=GIVEN[place]) for place in y]) for _ in range(2))
    x = np.empty((n, size, size, 3), dtype=np.uint8)
    x[:] = np.array([30, 120, 210])[ground][:, None, None, None]
    x[:, 4:12, 4:12] = COLORS[ink][:, None, None]
    return x, y, ink, ground


class Sees(torch.nn.Module):
    """The color in the middle, with certainty."""

    def forward(self, images):
        middle = (images[:, :, 8, 8] + 1) * 127.5
        return -0.05 * torch.cdist(middle, torch.tensor(COLORS, dtype=torch.float32))


def signed(x):
    return torch.from_numpy(x).permute(0, 3, 1, 2).float() / 127.5 - 1


def test_the_ratio_of_three_values_is_that_of_their_shares():
    x, _, ink, _ = painted(60)
    by_ink = DomainByColumn(Sees(), column_prior=np.full(3, 1 / 3), given_a=GIVEN[0], given_b=GIVEN[1])
    found = OrthogonalRatio(by_ink, clamp=None)(signed(x)).numpy()
    assert np.allclose(found, np.log(GIVEN[0] / GIVEN[1])[ink], atol=1e-3)
    # bounds hold the outer values and leave the one between
    bounded = OrthogonalRatio(by_ink, clamp=(0.5, 2.0))(signed(x)).numpy()
    assert np.allclose(bounded, np.log([2.0, 1.0, 0.5])[ink], atol=1e-3)


def test_under_the_weights_three_values_are_equally_frequent_in_each_place():
    _, y, ink, _ = painted()
    weights = overlap_weights(y, ink)
    for place in (0, 1):
        shares = np.bincount(ink[y == place], weights[y == place]) / weights[y == place].sum()
        assert np.allclose(shares, 1 / 3)
    assert not np.allclose(np.bincount(ink[y == 0]) / np.sum(y == 0), 1 / 3, atol=0.1)


class Exchanged(torch.nn.Module):
    """Squares of two colors exchanged, and nothing else."""

    def __init__(self, one, other):
        super().__init__()
        self.pair = torch.nn.Parameter(torch.tensor(COLORS[[one, other]], dtype=torch.float32) / 127.5 - 1)

    def forward(self, images):
        made = images.clone()
        middle = images[:, :, 8, 8]
        for here, there in (self.pair, self.pair.flip(0)):
            rows = (middle - here).abs().sum(1) < 0.05
            made[rows, :, 4:12, 4:12] = there[:, None, None]
        return made


def test_an_exchange_of_any_two_kept_values_is_seen():
    x, y, ink, _ = painted()
    parts = deal_out(LabelledImages(x, y, ink, ("red", "green", "blue")), 0.3, seed=0)
    classifiers = fit_factor_classifiers(*parts, "keep", width=8, steps=200, seed=0)
    assert classifiers.accuracy["judge_column"].accuracy > 0.95
    judge = TranslationJudge(classifiers, "keep", parts[1].a, parts[1].b)
    kept = {}
    for pair in ((0, 0), (0, 1), (1, 2), (0, 2)):
        networks = CycleGAN(*(Exchanged(*pair) for _ in range(2)), torch.nn.Identity(), torch.nn.Identity())
        kept[pair] = judge(networks)["a_to_b"]["kept"]
    assert kept[0, 0] > 0.95
    # of domain A 60 % are of the first value, 30 % of the second, 10 % of the third
    assert kept[0, 1] == pytest.approx(0.1, abs=0.08)
    assert kept[1, 2] == pytest.approx(0.6, abs=0.1)
    assert kept[0, 2] == pytest.approx(0.3, abs=0.1)


def test_both_factors_may_have_three_values(tmp_path):
    x, y, ink, ground = painted(300)
    names = np.array(["red", "green", "blue"])[ink]
    translator = OrthogonalTranslator(change="ink", keep="ground", steps=2, batch_size=4, width=4, device="cpu")
    translator.fit(x, y, {"ink": names, "ground": ground})
    factors = translator.report_["factors"]
    for name, shares in (("column", ink), ("kept", ground)):
        for place, letter in enumerate("ab"):
            counted = np.bincount(shares[y == place], minlength=3) / np.sum(y == place)
            # those more frequent in A come first
            assert np.allclose(factors[name][letter], counted, atol=0.05)
    assert translator.about_["values"] == ["red", "green", "blue"]
    loaded = OrthogonalTranslator.load(translator.save(tmp_path / "model"))
    assert np.array_equal(loaded.transform(x[:4]), translator.transform(x[:4]))
