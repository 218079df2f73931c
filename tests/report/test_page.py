"""The page holds what the record says, asks nobody for anything, and runs nothing that data bring along."""

import json
from html.parser import HTMLParser

import pytest
from jsonschema import ValidationError

from setminus.errors import UserError
from setminus.report import page as page_module
from setminus.report.page import build_page, write_page
from tests.vega_schema import vega_lite_schema

VOID = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """Tags with their attributes, the visible text, and whether elements are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.words, self.scripts = [], [], [], []
        self.feed(html)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif not self.open or self.open[-1] != "style":
            self.words.append(data)

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    def addresses(self):
        return [
            (tag, value)
            for tag, attributes in self.tags
            for name, value in attributes.items()
            if name in {"src", "href", "srcset", "action", "data"}
        ]

    def figures(self):
        return json.loads(next(script for script in self.scripts if script.startswith("{")))


@pytest.fixture(scope="module")
def page(record):
    return Page(build_page([record]))


@pytest.fixture(scope="module")
def hostile(hostile_record):
    return Page(build_page([hostile_record]))


def paths(value, path=()):
    """Every text of a dictionary, and the keys that lead to it."""
    if isinstance(value, str):
        yield path, value
    for key, item in value.items() if isinstance(value, dict) else ():
        yield from paths(item, (*path, key))
    for item in value if isinstance(value, list) else ():
        yield from paths(item, path)


def test_it_says_what_the_record_holds(page, record):
    before, after = (model["audit"] for model in record["metrics"]["models"])
    for audit in before, after:
        assert f"{audit['equalized_odds_sum']['value']:.3f}" in page.text
        assert f"{audit['accuracy']['low']:.3f} to {audit['accuracy']['high']:.3f}" in page.text
    for finding in after["findings"]:
        assert finding["evidence"][1:] in page.text
    for text in (record["command"], record["usage"].split("  ")[0], record["task"]["label"], "3.11"):
        assert text in page.text


def test_it_loads_nothing_from_anywhere(page):
    # only places on the page itself
    assert all(tag == "a" and value.startswith("#") for tag, value in page.addresses())
    (policy,) = [meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "http" not in policy
    # the negative control: the parser sees an address where there is one
    assert Page('<script src="https://example.org/x.js"></script>').addresses() == [
        ("script", "https://example.org/x.js")
    ]


def test_the_drawing_script_is_there_once_and_the_page_is_small(page, record):
    assert sum(len(script) > 500_000 for script in page.scripts) == 1
    assert len(build_page([record])) < 1_500_000


def test_every_figure_has_a_place_and_a_description(page):
    places = {attributes["id"]: attributes for attributes in page.of("div") if attributes.get("class") == "plot"}
    assert {f"figure-{name}" for name in page.figures()} == {*places}
    assert len(places) >= 8
    assert all(place["role"] == "img" and place["aria-label"] for place in places.values())


def test_figures_keep_to_the_schema(page):
    for figure in page.figures().values():
        vega_lite_schema().validate(figure)
    with pytest.raises(ValidationError):
        vega_lite_schema().validate({**figure, "width": "wide"})


def test_nothing_may_evaluate_text(page):
    (policy,) = [meta["content"] for meta in page.of("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert "unsafe-eval" not in policy
    assert any("ast: true" in script for script in page.scripts)


def test_table_headers_have_a_scope(page):
    headers = page.of("th")
    assert headers
    assert all(header.get("scope") in {"row", "col"} for header in headers)
    assert page.of("html")[0]["lang"] == "en"
    assert len(page.of("h1")) == 1


def test_names_from_data_stay_text(hostile, page):
    assert len(hostile.of("script")) == len(page.of("script"))
    assert hostile.of("b") == []
    assert hostile.text.count("<script>alert(1)</script>") > 10
    assert "<b>bold</b> & co" in hostile.text
    # the negative control: unescaped, the same name would be an element
    assert Page("<p><b>bold</b></p>").of("b")


def test_names_reach_figures_as_data_and_titles_only(hostile):
    places = {path[-1] for path, text in paths(hostile.figures()) if "alert" in text or "<b>" in text}
    assert places <= {"label", "y", "title", "domain"} and "label" in places
    assert "label" in {path[-1] for path, _ in paths({"data": {"label": "alert"}})}


def test_no_text_ends_the_script_around_the_figures(hostile_record):
    html = build_page([hostile_record])
    start = html.index('id="figures">')
    assert "<" not in html[start : html.index("</script>", start)].removeprefix('id="figures">')


def test_many_groups_and_classes_have_a_page(crowded_record):
    crowded = Page(build_page([crowded_record]))
    for figure in crowded.figures().values():
        vega_lite_schema().validate(figure)
    # four classes, before and after
    assert sum("scores-" in name for name in crowded.figures()) == 8
    assert "the 6 largest of 8 groups and the 4 most frequent of 5 classes; the tables have all" in crowded.text
    labels = {(row.get("data-group"), row.get("data-label")) for row in crowded.of("tr")}
    assert {(group, str(label)) for group in "abcdefgh" for label in range(5)} <= labels


def test_an_undefined_rate_is_said_to_be_so(record):
    gone = {"value": None, "low": None, "high": None}
    holed = json.loads(json.dumps(record))
    holed["metrics"]["models"][0]["audit"]["group_rates"][0]["true_positive_rate"] = gone
    assert "n/a" in Page(build_page([holed])).text


def test_two_records_are_two_sections(record, hostile_record):
    both = Page(build_page([record, hostile_record]))
    assert len(both.of("h1")) == 2
    ids = [attributes["id"] for _, attributes in both.tags if "id" in attributes]
    assert len(ids) == len({*ids})


def test_what_has_no_section_is_refused(record):
    with pytest.raises(
        UserError, match=r"no section shows the job cooking: expected one of adapted_table, audit, .*laboratory"
    ):
        build_page([{**record, "job": "cooking"}])
    with pytest.raises(UserError, match="there are no records"):
        build_page([])


def test_a_page_is_written_whole_or_not_at_all(record, tmp_path):
    target = write_page(tmp_path / "deep" / "index.html", [record])
    first = target.read_text()
    with pytest.raises(ValueError, match="no section"):
        write_page(target, [{**record, "job": "cooking"}])
    assert target.read_text() == first
    assert [path.name for path in target.parent.iterdir()] == ["index.html"]


def test_the_script_is_kept_among_the_caches(record, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    page_module.vega_script.cache_clear()
    first = page_module.vega_script()
    (kept,) = (tmp_path / "setminus").iterdir()
    assert kept.read_text() == first
    # one that was cut short is made again
    kept.write_text(first[:1000])
    page_module.vega_script.cache_clear()
    assert page_module.vega_script() == first
    # and where nothing can be kept, there is a page all the same
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept))
    page_module.vega_script.cache_clear()
    assert page_module.vega_script() == first
