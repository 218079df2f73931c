"""Table 3 as a reader meets it: every class and domain is drawn, and nothing is asked of the network."""

import pytest


@pytest.fixture
def page(opened):
    return opened("adaptation_records")


def test_features_are_drawn_in_colors_of_classes_and_shapes_of_domains(page):
    place = page.page.locator("#figure-0-features-1")
    points = place.locator(".mark-symbol path")
    assert points.count() == 300
    figure = place.locator("xpath=..")
    assert [name.strip() for name in figure.locator(".legend li").all_text_contents()] == ["source", "target"]
    fills = points.evaluate_all("all => all.map(one => getComputedStyle(one).fill)")
    assert len({*fills}) == 10
    assert len({*points.evaluate_all("all => all.map(one => one.__data__.shape)")}) == 2
    assert page.page.locator("[aria-label^='Classes of'] li").count() == 10
    assert not page.problems
    assert not page.requests


def test_a_point_names_its_class(page):
    page.page.locator("#figure-0-features-1").focus()
    page.page.keyboard.press("ArrowRight")
    page.page.locator("#spoken").filter(has_text="0, source").wait_for(state="attached", timeout=60_000)


def test_a_phone_scrolls_the_table_and_not_the_page(opened):
    page = opened("adaptation_records", width=380).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
