"""Two folders to a translation, which goes on where it was stopped, and with nothing else."""

import base64
import io
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

from setminus.nn.networks import DigitClassifier  # noqa: E402
from setminus.transfer import fitting  # noqa: E402
from setminus.transfer.factor_classifiers import deal_out  # noqa: E402
from setminus.transfer.fitting import (  # noqa: E402
    TranslationConfig,
    fit_translation,
    strip_png,
)
from tests.made_pictures import folder_squares  # noqa: E402

TINY = TranslationConfig(
    "change", steps=6, batch_size=8, width=4, every=3, judged=16, classifier_width=2, classifier_steps=60
)


@pytest.fixture(scope="module")
def images():
    return folder_squares(n=200)[0]


def weights(made):
    return [weight for network in (made.translator.a_to_b, made.translator.b_to_a) for weight in network.parameters()]


class StopError(Exception):
    pass


@pytest.mark.parametrize("at", [0, 3])
def test_a_stopped_training_goes_on_to_the_same_bits(images, tmp_path, at):
    whole = fit_translation(images, TINY)
    looks = []

    def stop(step, values):
        if step > at:
            raise StopError

    with pytest.raises(StopError):
        fit_translation(images, TINY, folder=tmp_path, observers=[stop])
    assert (tmp_path / "classifiers").is_dir() and (tmp_path / "training").is_dir() == (at > 0)
    again = fit_translation(images, TINY, folder=tmp_path, resume=True, look=lambda step, grid: looks.append(step))
    assert all(torch.equal(one, other) for one, other in zip(weights(whole), weights(again), strict=True))
    assert looks == ([3, 6] if at == 0 else [6])
    assert again.scores == whole.scores
    assert [one["step"] for one in again.outcome.evaluations] == [3, 6]


def test_a_longer_training_goes_on_and_one_with_other_settings_does_not(images, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "_seconds_per_step", lambda trial, training: 10.0)
    estimates = []
    for steps in (6, 7):
        config = replace(TINY, steps=steps, baseline=True)
        checked = lambda classifiers, seconds: estimates.append(seconds)  # noqa: E731
        fit_translation(images, config, folder=tmp_path, resume=True, checked=checked)
    # plain CycleGAN has as many; then one more step of either
    assert estimates == [120.0, 20.0]
    with pytest.raises(ValueError, match="another rate, role"):
        fit_translation(images, replace(TINY, rate=1e-3, role="keep"), folder=tmp_path, resume=True)
    with pytest.raises(ValueError, match="another images"):
        fit_translation(replace(images, z=1 - images.z), TINY, folder=tmp_path, resume=True)


def test_looks_show_the_same_pictures_in_four_rows(images):
    grids = {}
    made = fit_translation(images, TINY, look=grids.__setitem__)
    assert sorted(grids) == [3, 6]
    for grid in grids.values():
        assert grid.shape == (4 * 12, 8 * 12, 3) and grid.dtype == np.uint8
    # rows of pictures stay, rows of translations do not
    assert np.array_equal(grids[3][:12], grids[6][:12]) and np.array_equal(grids[3][24:36], grids[6][24:36])
    assert not np.array_equal(grids[3][12:24], grids[6][12:24])
    assert list(made.strips) == ["a", "a_to_b", "b", "b_to_a"]


def test_a_ready_principal_takes_the_place_of_the_columns(images):
    ready = DigitClassifier(width=2)
    made = fit_translation(images, TINY, principal=ready)
    assert made.classifiers.modules["principal"] is ready and "column" not in made.classifiers.modules
    with pytest.raises(ValueError, match=r"gives \(2, 10\)"):
        fit_translation(images, TINY, principal=DigitClassifier(10, width=2))
    with pytest.raises(ValueError, match="with a factor to keep"):
        fit_translation(images, replace(TINY, role="keep"), principal=ready)


def test_parts_share_no_image_and_each_has_both_folders():
    images, _ = folder_squares(n=100)
    x = np.arange(100, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 2, 3), dtype=np.uint8)
    train, held_out = deal_out(replace(images, x=x), 0.2, seed=0)
    numbers = [set(part.x[:, 0, 0, 0].tolist()) for part in (train, held_out)]
    assert not numbers[0] & numbers[1] and len(numbers[0] | numbers[1]) == 100
    assert len(held_out.a) > 5 and len(held_out.b) > 5
    two = replace(images, x=x[:4], y=np.array([0, 0, 1, 1]), z=np.array([0, 1, 0, 1]))
    assert [(len(part.a), len(part.b)) for part in deal_out(two, 0.2, seed=0)] == [(1, 1), (1, 1)]
    with pytest.raises(ValueError, match="between 0 and 1"):
        deal_out(images, 1.0, seed=0)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"role": "swap"}, "role is 'swap'"),
        ({"steps": 0, "every": 0}, "steps is 0, every is 0"),
        ({"width": 0}, "width is 0"),
        ({"clamp": 0.5}, "clamp"),
        ({"rate": 0.0}, "rate"),
    ],
)
def test_settings_that_make_no_sense(wrong, words):
    with pytest.raises(ValueError, match=words):
        replace(TINY, **wrong)


def test_the_pixels_come_back():
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    back = np.asarray(Image.open(io.BytesIO(base64.b64decode(strip_png(images)))))
    assert back.shape == (4, 15, 3)
    assert np.array_equal(back[:, 5:10], images[1])


@pytest.mark.parametrize(
    "images", [np.zeros((0, 4, 4, 3), np.uint8), np.zeros((2, 4, 4, 1), np.uint8), np.zeros((2, 4, 4, 3))]
)
def test_what_is_no_color_image_is_refused(images):
    with pytest.raises(ValueError, match=r"expected uint8 of shape \(n, height, width, 3\)"):
        strip_png(images)


def test_the_generators_of_the_best_evaluation_are_kept(images, monkeypatch):
    # A to B is best after 3 of 9 steps, B to A about as good after 6 and 9
    merits = {3: (1.5, 0.5), 6: (1.0, 1.7), 9: (1.4499, 1.65)}
    states = {}

    def judged(judge, networks):
        step = 3 * (len(states) + 1)
        states[step] = {
            one: {k: v.clone() for k, v in getattr(networks, one).state_dict().items()} for one in fitting.DIRECTIONS
        }
        usual = {"changed": 0.5, "kept": 0.5, "matched": 1.0, "grain": 1.0}
        return {one: {**usual, "merit": found} for one, found in zip(fitting.DIRECTIONS, merits[step], strict=True)}

    monkeypatch.setattr(fitting.TranslationJudge, "__call__", judged)
    monkeypatch.setattr(fitting, "merit", lambda scores: scores["merit"])
    made = fit_translation(images, replace(TINY, steps=9, every=3))
    assert [made.scores[one]["step"] for one in fitting.DIRECTIONS] == [3, 9]
    for direction, step in (("a_to_b", 3), ("b_to_a", 9)):
        kept = getattr(made.translator, direction).state_dict()
        assert all(torch.equal(kept[name], value) for name, value in states[step][direction].items())
        assert not all(torch.equal(kept[name], value) for name, value in states[6][direction].items())
