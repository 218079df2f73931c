"""An experiment's figures as a reader meets them: each mark is drawn, and each can be asked."""

import pytest


@pytest.fixture
def page(opened):
    page = opened("toy_records").page
    page.mouse.move(0, 0)
    return page


def count(page, chart, selector):
    return page.locator(f"#figure-0-chart-{chart} {selector}").count()


def test_every_kind_of_mark_is_drawn(page):
    # lines with error bars, points and a rule; a band, an area and an upright rule
    assert count(page, 0, ".scatterlayer .trace") == 2
    assert count(page, 0, ".yerror") == 4
    assert count(page, 0, ".shapelayer path") == 1
    assert count(page, 1, ".fills path") == 2
    assert count(page, 1, ".shapelayer path") == 1
    # one of four bars has no height that is known
    heights = page.locator("#figure-0-chart-2 .barlayer .point path").evaluate_all(
        "all => all.map(one => one.getBBox().height)"
    )
    assert sum(height > 10 for height in heights) == 3
    assert count(page, 3, ".barlayer .point") == 2
    assert count(page, 4, ".heatmaplayer image") == 1
    assert count(page, 4, ".contourlines path") == 1


def test_every_figure_names_its_marks_as_text(page):
    names = [page.locator(f"#figure-0-chart-{i} .legendtext").all_text_contents() for i in range(5)]
    assert names == [
        ["measured <i>", "each", "truth $x (0.5)"],
        ["measured <i>", "allowed", "one (1)"],
        ["ours", "theirs"],
        ["rows"],
        ["probability = 0.5", "rows"],
    ]
    assert page.locator("main b, main i, .plot tspan[style*='font-style']").count() == 0


def test_a_square_chart_has_one_scale(page):
    scales = page.evaluate(
        """() => [0, 4].map(i => {
          const {xaxis, yaxis} = document.getElementById("figure-0-chart-" + i)._fullLayout;
          return Math.abs(xaxis._m / yaxis._m);
        })"""
    )
    assert scales[1] == pytest.approx(1, abs=0.01)
    # the negative control: a chart that is not square
    assert abs(scales[0] - 1) > 0.1


def test_the_mouse_reads_a_surface_and_the_keyboard_passes_it_by(page):
    plane = page.locator("#figure-0-chart-4")
    plane.scroll_into_view_if_needed()
    x, y = plane.evaluate(
        """place => {
          const {xaxis, yaxis} = place._fullLayout, box = place.getBoundingClientRect();
          return [box.x + xaxis._offset + xaxis.d2p(1), box.y + yaxis._offset + yaxis.d2p(2)];
        }"""
    )
    page.mouse.move(x - 60, y + 60)
    page.mouse.move(x - 3, y + 3)
    label = plane.locator(".hoverlayer .hovertext")
    label.filter(has_text="probability 1.000").wait_for(timeout=60_000)
    page.mouse.move(0, 0)
    plane.focus()
    page.keyboard.press("ArrowRight")
    page.locator("#spoken").filter(has_text="rows").wait_for(state="attached", timeout=60_000)
    page.keyboard.press("Escape")


def test_the_numbers_are_below_each_figure(page, toy_records):
    cells = (
        page.locator("figure")
        .first.locator("tbody tr")
        .evaluate_all("rows => rows.map(row => [...row.children].map(cell => cell.textContent))")
    )
    values = [f"{record['metrics']['value']:g}" for record in toy_records]
    assert [row[2] for row in cells if row[0] == "each"] == values
    expected = page.locator("section:has(> h2#numbers-0) tbody td").all_text_contents()
    assert expected == ["more than 0", "1.25"]
