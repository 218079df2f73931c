"""Charts as a picture: every mark is named, the same charts give the same file, and a notebook shows it."""

import base64
import io
import struct
import subprocess
import sys

import numpy as np
import pytest
import vl_convert
from PIL import Image
from setminus_paper.figures import charts_of

from setminus.charts.chart import Chart, Line, Points, Rule
from setminus.charts.picture import draw, plot


def size(png):
    assert png.startswith(b"\x89PNG")
    return struct.unpack(">II", png[16:24])


def test_the_same_charts_give_the_same_picture(toy_records, tmp_path):
    charts = charts_of(toy_records)
    for name in ("one.png", "two.png"):
        draw(charts, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    draw(charts[:1], tmp_path / "other.png")
    assert size((tmp_path / "other.png").read_bytes())[0] < size((tmp_path / "one.png").read_bytes())[0]


def test_a_file_is_small_and_has_the_same_pixels(tmp_path):
    made = plot([Chart("t", "x", "y", [Points([0, 1], [0, 1], "a")])])
    full = vl_convert.vegalite_to_png(made.spec, scale=1.5)
    assert len(made.png()) < len(full) / 2
    with Image.open(io.BytesIO(made.png())) as ours, Image.open(io.BytesIO(full)) as theirs:
        assert (np.asarray(ours) == np.asarray(theirs)).all()


def test_titles_legends_and_odd_names_are_written_as_they_are(toy_records):
    svg = plot(charts_of(toy_records)).svg()
    for text in ("Values &lt;b&gt;by&lt;/b&gt; seed", "truth $x (0.5)", "measured &lt;i&gt;", "probability = 0.5"):
        assert text in svg
    assert "<b>" not in svg


def test_a_legend_is_not_repeated_beside_the_same():
    chart = Chart("t", "x", "y", [Line([0, 1], [0, 1], "ours")])
    assert plot([chart, chart]).svg().count(">ours<") == 1
    other = Chart("t", "x", "y", [Line([0, 1], [0, 1], "ours"), Rule(0.5, "truth")])
    assert plot([chart, other]).svg().count(">ours<") == 2


def test_a_notebook_shows_it():
    made = plot([Chart("t", "x", "y", [Points([0], [0], "a")])], title="of all")
    bundle = made._repr_mimebundle_()
    assert size(base64.b64decode(bundle["image/png"]))[0] > 300
    assert "save" in bundle["text/plain"]
    assert ">of all<" in made.svg()


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there are no charts"):
        draw([], tmp_path / "none.png")
    with pytest.raises(ValueError, match=r"ends in \.png or \.svg"):
        draw([Chart("t", "x", "y", [])], tmp_path / "none.jpg")
    assert not [*tmp_path.iterdir()]


def test_without_vl_convert_it_says_what_to_install():
    hidden = (
        "import sys; sys.modules['vl_convert'] = None\n"
        "from setminus.charts.chart import Chart\nfrom setminus.charts.picture import draw\n"
        "draw([Chart('t', 'x', 'y', [])], 'x.png')"
    )
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True)
    assert 'pip install "setminus[cli]"' in done.stderr
