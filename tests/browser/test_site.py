"""The built site in a browser: its navigation, its search and its narrow and dark forms."""

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Nothing: the test's output is not a log."""


@pytest.fixture(scope="module")
def address(site):
    """Where the site is served: its search is a worker, which a page from a file may not start."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def page(browser, address):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(60_000)
    asked, problems = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{address}/index.html")
    yield page
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert problems == []
    page.close()


def test_the_navigation_leads_to_every_section(page):
    sections = page.locator(".md-tabs__link")
    names = sections.all_inner_texts()
    assert names == ["Get started", "Tutorials", "How-to", "Explanation", "Reference", "Paper", "Benchmarks"]
    titles = set()
    for place in range(len(names)):
        sections.nth(place).click()
        page.wait_for_load_state()
        titles.add(page.locator("h1").first.inner_text())
    assert len(titles) == len(names)


def test_the_search_finds_a_public_name_and_opens_its_reference(page):
    page.locator("input.md-search__input").click()
    page.keyboard.type("PriorCorrectedClassifier")
    found = page.locator(".md-search-result__link").first
    found.wait_for()
    page.locator(".md-search-result__link[href*='reference/api/adaptation']").first.click()
    page.wait_for_url("**/reference/api/adaptation.html**")


def test_no_page_is_wider_than_a_telephone_and_a_long_table_is_loaded_when_it_is_opened(page, address):
    page.set_viewport_size({"width": 400, "height": 800})
    for name in "tables", "peers", "reference/command", "reference/api/core", "explanation/formula":
        page.goto(f"{address}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, name
    page.goto(f"{address}/tables.html")
    folded = page.locator("details.table", has_text="mnist-usps").first
    assert folded.locator("table").count() == 0
    folded.locator("summary").click()
    folded.locator("table").wait_for()
    assert page.locator("details.table table").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
