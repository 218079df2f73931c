"""The section of an experiment holds its claim, its figures and its numbers, from records alone."""

import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from setminus_paper.figures import laboratory_section, reduce_colors
from setminus_paper.reproduce import draw_picture, title_of

from setminus.report.page import build_page, made_by


def test_it_holds_what_the_records_say(toy, toy_records):
    section = laboratory_section(toy_records)
    assert section["headline"] == toy.CLAIM
    assert section["command"] == "setminus reproduce toy --scale quick"
    assert section["rows"].startswith("seeds: 2, ")
    assert [plot.id for plot in section["figures"]] == [f"chart-{i}" for i in range(5)]
    assert section["plots"] == section["figures"]
    assert section["summary"] == [("mean <b>value</b>", "more than 0", "1.25")]


def test_what_has_the_same_name_looks_the_same_in_all_figures(toy_records):
    legends = [figure.legend for figure in laboratory_section(toy_records)["figures"]]
    colours = [entry["colour"] for legend in legends for entry in legend if entry["name"] == "measured <i>"]
    assert len(colours) == 2 and len({*colours}) == 1


def test_how_it_was_made_adds_up_all_runs(toy_records):
    made = made_by([{**record, "seconds": 1.5} for record in toy_records])
    assert made["seed"] == "0, 1"
    assert made["steps"] == {"method halves": 3.0, "method wholes": 3.0}
    assert made["seconds"] == 6.0


def test_every_command_that_measured_a_part_is_named_once(toy_records):
    parts = [{**record, "command": f"reproduce --seeds {n // 2}"} for n, record in enumerate(toy_records)]
    assert made_by(parts)["commands"] == ["reproduce --seeds 0", "reproduce --seeds 1"]
    page = build_page(parts)
    assert "<code>reproduce --seeds 0</code>, <code>reproduce --seeds 1</code> with" in page


def test_settings_within_others_are_named_where_they_differ(toy_records):
    sizes = [{"steps": 10 * (k + 1), "rate": 0.1} for k in range(2)]
    records = [{**toy_records[0], "config": {"scale": "quick", "size": size}, "seconds": 1.0} for size in sizes]
    assert made_by(records)["steps"] == {"size steps 10": 1.0, "size steps 20": 1.0}


def test_the_page_has_one_section_for_each_experiment_and_scale(toy_records, record):
    other = [{**one, "config": {**one["config"], "scale": "paper"}} for one in toy_records]
    mixed = [one for pair in zip(toy_records, other, strict=True) for one in pair]
    html = build_page([record, *mixed])
    assert html.count("<h1") == 3
    assert html.count("toy, quick scale") == html.count("toy, paper scale") == 1
    # their list of contents is one link each, the other's has its parts
    assert html.count('class="brief"') == 2
    assert 'href="#figures-1"' not in html
    assert 'href="#compare-0"' in html
    alone = build_page(toy_records)
    assert 'href="#figures-0"' in alone
    assert 'class="brief"' not in alone


def test_text_of_records_and_charts_is_escaped(toy_records):
    html = build_page(toy_records)
    start = html.index("<main")
    body = html[start : html.index("</main>")]
    assert "<b>" not in body
    assert "<i>" not in body
    for text in (
        "A seed and &lt;b&gt;a half",
        "Values &lt;b&gt;by&lt;/b&gt; seed",
        "mean &lt;b&gt;value",
        "&amp; so on",
    ):
        assert text in body


@pytest.mark.parametrize("name", ["nowhere", "figures", "os", "..page", "toy.x"])
def test_a_record_cannot_name_any_module(toy, toy_records, name):
    with pytest.raises(ValueError, match="there is no experiment"):
        build_page([{**record, "name": name} for record in toy_records])


def test_a_picture_with_fewer_colors_looks_the_same(toy, toy_records, tmp_path):
    path = tmp_path / "toy.png"
    draw_picture("toy", toy_records, path)
    before, size = np.asarray(Image.open(path).convert("RGB")).astype(int), path.stat().st_size
    reduce_colors(path)
    after = np.asarray(Image.open(path).convert("RGB")).astype(int)
    assert path.stat().st_size < size / 2
    assert np.abs(after - before).mean() < 1


def test_names_in_words():
    assert [title_of(name) for name in ("fig1", "table10", "theorem1", "label_shift")] == [
        "Figure 1",
        "Table 10",
        "Theorem 1",
        "Label shift",
    ]


def test_charts_are_loaded_when_they_are_needed():
    loaded = (
        "import setminus.report.page, sys\n"
        "print(*(m for m in sys.modules if m.startswith('setminus_paper.claims') or m == 'torch'))"
    )
    out = subprocess.check_output([sys.executable, "-c", loaded], text=True).split()
    assert out == []
