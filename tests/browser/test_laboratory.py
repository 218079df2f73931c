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
    # a line with points and error bars, points and a rule
    assert count(page, 0, ".mark-line path") == 1
    assert count(page, 0, ".mark-symbol path") == 8
    assert count(page, 0, ".mark-rule.role-mark line") == 4 + 1
    # a band, an area and an upright rule
    assert count(page, 1, ".mark-area path") == 2
    assert count(page, 1, ".mark-rule.role-mark line") == 1
    # one of four bars has no height that is known
    heights = page.locator("#figure-0-chart-2 .mark-rect.role-mark path").evaluate_all(
        "all => all.map(one => one.getBBox()).filter(({width}) => width > 20).map(({height}) => height)"
    )
    assert sum(height > 10 for height in heights) == 3
    assert count(page, 3, ".mark-rect.role-mark path") == 2
    assert count(page, 4, ".mark-rect.role-mark path") == 9
    assert count(page, 4, ".mark-line path") == 1


def test_every_figure_names_its_marks_as_text(page):
    names = [
        [name.strip() for name in page.locator(f"figure:has(#figure-0-chart-{i}) .legend li").all_text_contents()]
        for i in range(5)
    ]
    assert names == [
        ["measured <i>", "each", "truth $x (0.5)"],
        ["measured <i>", "allowed", "one (1)"],
        ["ours", "theirs"],
        ["rows"],
        ["probability, 0 (light) to 1 (dark)", "probability = 0.5", "rows"],
    ]
    assert page.locator("main b, main i").count() == 0


def test_a_square_chart_has_one_scale(page):
    # the plane is 2 wide and 4 high
    width, height = page.locator("#figure-0-chart-4 .background").first.evaluate(
        "one => [one.getBBox().width, one.getBBox().height]"
    )
    assert height / width == pytest.approx(2, abs=0.05)


def test_the_mouse_reads_a_surface_and_the_keyboard_passes_it_by(page):
    plane = page.locator("#figure-0-chart-4")
    plane.scroll_into_view_if_needed()
    box = plane.locator(".mark-rect.role-mark path").last.bounding_box()
    page.mouse.move(box["x"] - 60, box["y"] + 60)
    page.mouse.move(box["x"] + box["width"] - 4, box["y"] + 4)
    page.locator("#tip:not([hidden])").filter(has_text="probability 1.000").wait_for(timeout=60_000)
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
