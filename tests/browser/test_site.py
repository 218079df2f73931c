"""The built site in a browser: its navigation, its search and its narrow and dark forms."""

import functools
import re
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
    page.locator(".md-search-result__link[href*='reference/api/adaptation/prior_correction']").first.click()
    page.wait_for_url("**/reference/api/adaptation/prior_correction.html**")
    assert "PriorCorrectedClassifier" in page.locator("h1").first.inner_text()


LAID_OUT = """async () => {
  const pictures = [...document.querySelectorAll("article img")]
  pictures.forEach((picture) => { picture.loading = "eager" })
  await Promise.all(pictures.map((picture) => picture.decode().catch(() => {})))
  return {
    wide: document.documentElement.scrollWidth > innerWidth,
    broken: pictures.some((picture) => !picture.naturalWidth),
    empty: document.querySelector("article").innerText.length < 200,
  }
}"""


@pytest.fixture
def telephone(browser):
    """A narrow page; without scripts, which are the same on all pages, the next one opens four times as fast."""
    page = browser.new_page(viewport={"width": 400, "height": 800}, java_script_enabled=False)
    page.set_default_timeout(60_000)
    yield page
    page.close()


def test_every_page_of_the_navigation_has_text_and_pictures_and_fits_a_telephone(page, telephone, site, address):
    links = "[...document.querySelectorAll('.md-nav--primary a.md-nav__link')].map((one) => one.href.split('#')[0])"
    found = {url.removeprefix(f"{address}/") for url in page.evaluate(links)}
    made = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    # what is folded into a page is no page of its own
    assert found == {name for name in made if not re.search(r"\.\d+\.html|404\.html", name)}
    # of the reference, one of each kind: all are made alike
    alike = [name for name in found if re.match(r"reference/(api|command)/", name)]
    faults = {}
    for name in sorted(found.difference(alike) | {"reference/api/estimators/tuned.html", "reference/command/fit.html"}):
        # with its style sheet: a page without one is wide
        telephone.goto(f"{address}/{name}", wait_until="load")
        faults[name] = [kind for kind, fault in telephone.evaluate(LAID_OUT).items() if fault]
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_a_page_that_is_wide_or_empty_or_lacks_a_picture_is_found(telephone):
    telephone.set_content("<article><img src='missing.png'><div style='width: 3000px'>x</div></article>")
    assert telephone.evaluate(LAID_OUT) == {"wide": True, "broken": True, "empty": True}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground_in_both_schemes(browser, address, scheme):
    page = browser.new_page(color_scheme=scheme)
    page.goto(f"{address}/index.html")
    colors = page.evaluate("['color', 'backgroundColor'].map((one) => getComputedStyle(document.body)[one])")
    text, ground = (sum(map(float, re.findall(r"[\d.]+", color)[:3])) / (3 * 255) for color in colors)
    page.close()
    assert text < 0.3 < 0.9 < ground if scheme == "light" else ground < 0.3 < 0.7 < text


def test_a_long_table_is_loaded_when_it_is_opened(page, address):
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{address}/tables/adaptation.html")
    folded = page.locator("details.table", has_text="mnist-usps").first
    assert folded.locator("table").count() == 0
    folded.locator("summary").click()
    folded.locator("table").wait_for()
    assert page.locator("details.table table").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
