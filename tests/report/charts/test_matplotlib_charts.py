"""Charts as a picture: every mark is drawn, and the same charts give the same file."""

import subprocess
import sys
from itertools import pairwise

import pytest
from matplotlib.colors import to_hex
from matplotlib.image import imread
from setminus_paper.figures import charts_of

from setminus.report.charts import matplotlib_charts
from setminus.report.charts.chart import Bars, Chart, Line, Points, Rule
from setminus.report.charts.matplotlib_charts import draw
from setminus.report.charts.signs import kind_colours


@pytest.fixture
def axes(monkeypatch):
    """Draw one chart, and look at what is on its axes instead of at the file."""

    def drawn(chart):
        kept = []
        monkeypatch.setattr(matplotlib_charts, "save_figure", lambda figure, path: kept.extend(figure.axes))
        draw([chart], "unused.png")
        return kept

    return drawn


def test_the_same_charts_give_the_same_picture(toy_records, tmp_path):
    charts = charts_of(toy_records)
    for name in ("one.png", "two.png"):
        draw(charts, tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    draw(charts[:1], tmp_path / "other.png")
    assert imread(tmp_path / "other.png").shape[1] < imread(tmp_path / "one.png").shape[1]


def test_every_mark_is_in_the_legend_of_its_chart(toy_records, axes):
    for chart in charts_of(toy_records):
        (legend,) = [one.get_legend() for one in axes(chart) if one.get_legend()]
        assert len(legend.get_texts()) == len(chart.marks)
        assert legend.get_title().get_text() == chart.title


def test_numbers_and_scales_are_those_of_the_chart(axes):
    (found,) = axes(Chart("t", "n", "gap", [Line([1, 10], [0.5, None], "a"), Rule(0.1, "r")], y_scale="log"))
    assert found.get_yscale() == "log"
    assert found.get_xscale() == "linear"
    assert found.lines[0].get_xydata()[0].tolist() == [1, 0.5]
    assert [*found.lines[1].get_ydata()] == [0.1, 0.1]


def test_bars_stand_beside_each_other_above_their_names(axes):
    (found,) = axes(Chart("t", "n", "gap", [Bars(["a", "b"], [1, 2], "one"), Bars(["a", "b"], [3, 4], "two")]))
    assert [label.get_text() for label in found.get_xticklabels()] == ["a", "b"]
    ends = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in found.patches)
    assert [bar.get_height() for bar in found.patches] == [1, 2, 3, 4]
    assert all(right <= left + 1e-9 for (_, right), (left, _) in pairwise(ends))


def test_points_of_several_kinds_have_their_colors_and_one_name(axes):
    (found,) = axes(Chart("t", "x", "y", [Points([0, 1], [0, 1], "here", [1, 0])], kinds=("a", "b")))
    points, shape = found.collections
    assert [to_hex(colour) for colour in points.get_facecolors()] == kind_colours(2)[::-1]
    assert len(shape.get_offsets()) == 0
    assert [text.get_text() for text in found.get_legend().get_texts()] == ["here"]


def test_a_dollar_begins_no_formula(tmp_path):
    draw([Chart("$\\broken", "$\\broken$", "y", [Points([0], [0], "$\\frac$")])], tmp_path / "one.png")
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ValueError, match="broken"):
        # the negative control
        patch.setattr(matplotlib_charts, "_plain", lambda text: text)
        draw([Chart("t", "$\\broken$", "y", [Points([0], [0], "a")])], tmp_path / "two.png")


def test_nothing_to_draw_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no charts came"):
        draw([], tmp_path / "none.png")


def test_without_matplotlib_it_says_what_to_install():
    hidden = (
        "import sys; sys.modules['matplotlib'] = sys.modules['matplotlib.figure'] = None\n"
        "from setminus.report.charts.matplotlib_charts import draw\ndraw([], 'x.png')"
    )
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True)
    assert 'pip install "setminus[cli]"' in done.stderr
