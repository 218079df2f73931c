"""The page as a reader meets it: in a browser, offline, by mouse, by keyboard, in the dark, on a phone, on paper."""

from itertools import pairwise

import pytest

RECORDS = ["plain", "hostile", "crowded", "audited", "toy_records"]

# every text that is seen, with its contrast to what is behind it
CONTRASTS = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (rgb(colour)[3] === 255) return colour;
    }
    return "white";
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility() || element.closest("script, noscript, .hidden")) continue;
    const style = getComputedStyle(element), svg = element instanceof SVGElement;
    const pair = [svg ? style.fill : style.color, behind(element)].map((c) => luminance(rgb(c)));
    found.push([text, (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05)]);
  }
  return found;
}
"""


def hover(page, figure, text):
    """Move the mouse over the point of a figure whose label has this text, and return the label."""
    place = page.locator(f"#figure-0-{figure}")
    place.scroll_into_view_if_needed()
    page.mouse.move(0, 0)
    x, y = place.evaluate(
        """(place, text) => {
          const points = [...place.querySelectorAll(".mark-symbol path, .mark-rect path")];
          const found = points.find(({__data__: item}) => item && String(item.tooltip).includes(text));
          const box = found.getBoundingClientRect();
          return [box.x + box.width / 2, box.y + box.height / 2];
        }""",
        text,
    )
    page.mouse.move(x - 40, y - 40)
    page.mouse.move(x, y)
    label = page.locator("#tip:not([hidden])")
    label.wait_for(timeout=60_000)
    return label.text_content()


@pytest.mark.parametrize("name", RECORDS)
def test_it_opens_without_an_error_and_asks_nobody(opened, name):
    page = opened(name)
    assert page.problems == []
    assert page.requests == []
    sizes = page.page.eval_on_selector_all(".plot", "all => all.map(p => p.querySelector('svg').clientWidth)")
    assert len(sizes) >= (5 if name == "toy_records" else 9)
    assert min(sizes) > 150


def test_requests_errors_and_dialogs_would_be_noticed(browser, opened):
    control = type(opened("plain"))(browser.new_page())
    control.page.set_content(
        "<img src='https://example.org/x.png'><script>console.error('heard'); alert('seen'); nobody()</script>"
    )
    control.page.wait_for_load_state()
    assert control.requests == ["https://example.org/x.png"]
    assert {"heard", "a dialog said seen"} < {*control.problems}
    assert any("nobody is not defined" in problem for problem in control.problems)
    control.page.close()


@pytest.mark.parametrize("name", ["plain", "crowded"])
def test_the_frontier_shows_strength_and_decision_of_the_chosen_point(opened, name, request):
    page = opened(name).page
    chosen = request.getfixturevalue(name)["metrics"]["frontier"]["chosen"]
    page.mouse.move(0, 0)
    assert page.locator("#tip").is_hidden()
    label = hover(page, "frontier-0", "chosen")
    assert f"strength {chosen['strength']:.2f}" in label
    decision = f"threshold {chosen['threshold']:.3f}" if "threshold" in chosen else f"{chosen['offsets'][1]:g}"
    assert decision in label
    assert f"{chosen['gap']:.4g}" in label


def test_text_is_never_evaluated_as_code(opened, browser, tmp_path):
    page = opened("plain").page
    code = "try { Function('return 1')(); window.ran = true } catch (error) { window.ran = error.name }"
    policy = page.locator("meta[http-equiv]").evaluate("one => one.outerHTML")
    found = []
    for head in (policy, ""):
        (tmp_path / "tried.html").write_text(
            f"<!doctype html><html><head>{head}</head><body><script>{code}</script></body></html>"
        )
        control = browser.new_page()
        control.goto((tmp_path / "tried.html").as_uri())
        found.append(control.evaluate("window.ran"))
        control.close()
    assert found == ["EvalError", True]


def test_the_keyboard_reaches_what_the_mouse_does(opened, plain):
    page = opened("plain").page
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    page.keyboard.press("Tab")
    skip = page.locator(":focus")
    assert skip.text_content() == "Skip to the content"
    assert skip.bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"

    best, *_ = points = plain["metrics"]["frontier"]["best"]
    said = page.locator("#spoken")
    page.locator("#figure-0-frontier-0").focus()
    assert said.text_content() == ""
    page.keyboard.press("ArrowRight")
    first = f"strength {best['strength']:.2f}, threshold {best['threshold']:.3f}"
    said.filter(has_text=first).wait_for(state="attached", timeout=60_000)
    for _ in points:
        page.keyboard.press("ArrowRight")
    said.filter(has_text="before, ").wait_for(state="attached", timeout=60_000)
    assert page.locator("#tip").is_visible() and page.locator(".plot .at").count() == 1
    page.keyboard.press("Escape")
    assert said.text_content() == ""
    assert page.locator("#tip").is_hidden() and page.locator(".plot .at").count() == 0


def test_names_from_a_table_stay_text(opened, hostile):
    page = opened("hostile").page
    assert page.locator("b").count() == 0
    assert page.locator("script").count() == opened("plain").page.locator("script").count()
    groups = sorted({row["group"] for row in hostile["metrics"]["models"][0]["audit"]["group_rates"]})
    entries = page.locator(".legend").first.locator("li").all_text_contents()
    assert [entry.strip() for entry in entries][1:] == groups
    for group in groups:
        assert group in hover(page, "rates-0-0", group)
        assert group in hover(page, "reliability-0-1", group)
    assert page.locator("b").count() == 0
    assert opened("hostile").problems == []
    # the negative control: the same name as markup
    page.evaluate("name => { document.getElementById('tip').innerHTML = name; }", "<b>x</b>")
    assert page.locator("b").count() == 1
    page.evaluate("document.getElementById('tip').textContent = ''")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["plain", "audited", "toy_records"])
def test_every_text_stands_out(opened, name, scheme):
    page = opened(name).page
    page.emulate_media(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    if name == "plain":
        hover(page, "frontier-0", "chosen")
    found = page.evaluate(CONTRASTS)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    channels = [int(part) for part in background.removeprefix("rgb(").removesuffix(")").split(",")]
    assert (max(channels) < 64) if scheme == "dark" else (min(channels) > 240)
    assert len(found) > (200 if name == "toy_records" else 300)
    assert [pair for pair in found if pair[1] < 4.5] == []
    # the negative control: grey on the same page
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p id=faint style=color:#777>faint</p>')")
    assert [text for text, ratio in page.evaluate(CONTRASTS) if ratio < 4.5] == ["faint"]
    page.evaluate("document.getElementById('faint').remove()")
    page.emulate_media(color_scheme="light")


@pytest.mark.parametrize("name", ["hostile", "crowded", "toy_records"])
def test_a_phone_scrolls_in_one_direction(opened, name):
    page = opened(name, width=360).page
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert opened(name, width=360).problems == []
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p id=wide style=width:400px>wide</p>')")
    assert page.evaluate("document.documentElement.scrollWidth") > 360
    page.evaluate("document.getElementById('wide').remove()")


@pytest.mark.parametrize("name", ["plain", "crowded", "toy_records"])
def test_figures_fit_the_sheet_when_printed(opened, name):
    page = opened(name).page
    each = "p => [p.querySelector('svg').clientWidth, p.clientWidth]"
    widths = f"[...document.querySelectorAll('.plot')].map({each})"
    on_screen = page.evaluate(widths)
    page.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = {widths}; }})")
    sheet = page.pdf(format="A4")
    assert sheet.startswith(b"%PDF")
    printed = page.evaluate("printed")
    assert all(figure <= place + 1 for figure, place in printed)
    # but for charts to scale, of which the toy has one
    assert sum(abs(figure - place) > 1 for figure, place in printed) == (name == "toy_records")
    # narrower than on the screen, so that the check has something to check
    assert max(place for _, place in printed) < max(place for _, place in on_screen)
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    page.emulate_media(media="screen")
    assert page.locator("nav").is_visible()


@pytest.mark.parametrize("name", RECORDS)
def test_a_screen_reader_finds_its_way(opened, name):
    page = opened(name).page
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(one => +one.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    plots = page.eval_on_selector_all(
        ".plot",
        """all => all.map(one => ({
          label: one.ariaLabel, focusable: one.tabIndex === 0, role: one.role,
          tables: one.closest("section").querySelectorAll("details table").length,
        }))""",
    )
    assert all(plot["focusable"] and plot["role"] == "img" and plot["tables"] for plot in plots)
    # what it shows, in numbers
    assert all(any(character.isdigit() for character in plot["label"]) for plot in plots)
    unnamed = "all => all.filter(one => !one.ariaLabel || one.tabIndex !== 0).length"
    assert page.eval_on_selector_all(".scroll, pre", unnamed) == 0
    links = page.eval_on_selector_all("a", "all => all.map(one => document.querySelector(one.getAttribute('href')))")
    assert all(link is not None for link in links)
