"""Grids of images: the same ones in every row, and a picture of them pixel by pixel."""

import numpy as np
import pytest
from PIL import Image
from setminus_paper.claims import fig3, fig4
from setminus_paper.report.sample_grids import draw_grids, sample_grids

from tests.made_transfers import made_digits, made_faces, png


def test_each_domain_has_its_images_and_what_each_method_made_of_them():
    a, b = sample_grids([made_digits("orthogonal_oracle"), made_digits("vanilla")])
    assert [strip.label for strip in a.strips] == ["Input", "Vanilla", "w_x \\ w_1 (Oracle)"]
    assert (a.title, b.title) == ("From domain A to B", "From domain B to A")
    assert a.strips[1].png == png("blue")
    assert b.strips[1].png == png("red")
    assert sample_grids([made_faces("vanilla")]) == []


def test_the_seed_is_one_that_most_methods_have():
    records = [made_digits("vanilla", seed) for seed in (0, 1, 2, 3)]
    records += [made_digits("orthogonal_oracle", seed) for seed in (1, 2)]
    assert sample_grids(records)[0].seed == 1
    assert sample_grids(records, seed="last")[0].seed == 2


def test_a_method_that_had_other_images_is_left_out():
    other = made_digits("orthogonal_oracle")
    other["metrics"]["samples"]["b"] = png("white")
    for grid in sample_grids([made_digits("vanilla"), other]):
        assert [strip.label for strip in grid.strips] == ["Input", "Vanilla"]


@pytest.mark.parametrize("text", ["not base64!", "PHNjcmlwdD4="])
def test_samples_that_are_no_png_are_refused(text):
    record = made_digits("vanilla")
    record["metrics"]["samples"]["a"] = text
    with pytest.raises(ValueError, match="samples are no"):
        sample_grids([record])


def test_the_picture_shows_each_pixel_as_a_square(tmp_path):
    draw_grids(sample_grids([made_digits("vanilla", label="$x_1")]), tmp_path / "grid.png", scale=5)
    with Image.open(tmp_path / "grid.png") as image:
        pixels = np.asarray(image.convert("RGB"))
    # four pixels by two, five times as large
    assert (pixels == (0, 0, 255)).all(axis=2).sum() == (pixels == (255, 0, 0)).all(axis=2).sum() == 20 * 10
    with pytest.raises(ValueError, match="there are no images"):
        draw_grids([], tmp_path / "none.png")


def test_figure_3_has_the_first_domain_and_figure_4_both(tmp_path):
    records = [made_digits("vanilla", seed) for seed in (0, 250)]
    blue, red = [], []
    for module in (fig3, fig4):
        module.draw(records, tmp_path / "figure.png")
        with Image.open(tmp_path / "figure.png") as image:
            pixels = np.asarray(image.convert("RGB"))
        blue.append((pixels == (0, 0, 255)).all(axis=2).any())
        red.append((pixels == (255, 0, 0)).all(axis=2).any())
    assert (blue, red) == ([True, True], [False, True])
