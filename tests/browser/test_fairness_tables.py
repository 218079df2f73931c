"""A fairness table as a reader meets it: clouds, means and bars are drawn, and nothing is asked of the network."""

import pytest

from tests.made_tables import ROWS


@pytest.fixture
def page(opened):
    return opened("table_records")


def count(page, chart, selector):
    return page.page.locator(f"#figure-0-chart-{chart} {selector}").count()


def test_seeds_and_means_are_drawn_and_named_once(page):
    # six families of the paper, of nine rows with four seeds each
    assert count(page, 0, ".mark-symbol path") == 9 * 4 + 9
    assert page.page.locator("figure:has(#figure-0-chart-0) .legend li").count() == 6
    assert count(page, 3, ".mark-symbol path") == len(ROWS) * 5
    assert page.page.locator("#figure-0-seconds-0 .mark-rect.role-mark path").count() == len(ROWS)
    assert not page.problems
    assert not page.requests


def test_the_cells_hold_the_means(page, table_records):
    cell = page.page.locator('[data-method="vanilla"][data-rule="validation"] [data-metric="eo_gap"]')
    gaps = [r["metrics"]["validation"]["eo_gap"] for r in table_records if r["config"]["method"] == "vanilla"]
    assert float(cell.get_attribute("data-value")) == pytest.approx(sum(gaps) / 4)


def test_a_phone_scrolls_the_table_and_not_the_page(opened):
    page = opened("table_records", width=380).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 380
