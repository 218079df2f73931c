"""The picture comes from the record alone, in the promised size."""

import pytest
from PIL import Image

from setminus.report.picture import draw_picture


@pytest.mark.parametrize("which", ["record", "hostile_record"])
def test_the_picture_is_readable_and_small(which, request, tmp_path):
    draw_picture(request.getfixturevalue(which), tmp_path / "picture.png")
    with Image.open(tmp_path / "picture.png") as image:
        assert image.width == 1200
        assert len(image.convert("L").getcolors()) > 10
    assert (tmp_path / "picture.png").stat().st_size < 150_000


def test_the_same_record_gives_the_same_picture(record, tmp_path):
    pictures = [tmp_path / "a.png", tmp_path / "b.png"]
    for picture in pictures:
        draw_picture(record, picture)
    assert pictures[0].read_bytes() == pictures[1].read_bytes()
