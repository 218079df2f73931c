"""The documentation as a site: it builds, its links hold, nothing comes from elsewhere, the reference is complete."""

import doctest
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import setminus

pytest.importorskip("material", reason="the site is built with the dependency group docs")

ROOT = Path(__file__).parents[1]
MAX_WORDS = {"tables.md": 1300, "laboratory.md": 1400}
"""More than the 1,200 of other pages: both are generated, and to be split."""


class Links(HTMLParser):
    """The ids of a page, what it links to and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.ids |= {found[key] for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.loads.append(found["href"])
        elif tag in ("img", "script", "iframe", "source") and found.get("src"):
            self.loads.append(found["src"])


def broken(pages, folder):
    """Links and resources of the pages that lead nowhere, or that are loaded from elsewhere."""
    found = []
    for path, page in pages.items():
        for link in [*page.links, *page.loads]:
            to = urlsplit(link)
            if to.scheme or to.netloc:
                if link in page.loads and to.scheme != "data":
                    found.append((path.name, link))
                continue
            target = (path.parent / unquote(to.path)).resolve() if to.path else path
            target = target / "index.html" if target.is_dir() else target
            lost = not target.is_relative_to(folder) or not target.exists()
            if lost or (to.fragment and target in pages and unquote(to.fragment) not in pages[target].ids):
                found.append((path.name, link))
    return found


@pytest.fixture(scope="module")
def pages(site):
    return {path: Links(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_of_the_site_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site, pages):
    assert len(pages) > 20
    assert broken(pages, site) == []


@pytest.mark.parametrize(
    "wrong",
    [
        '<a href="missing.html">',
        '<a href="index.html#missing">',
        '<script src="https://elsewhere.org/x.js">',
        '<a href="../../x">',
    ],
)
def test_a_broken_link_is_found(site, pages, wrong):
    assert len(broken(pages | {site / "changed.html": Links(wrong)}, site)) == 1


def test_the_reference_has_every_public_name(pages):
    ids = set().union(*(page.ids for path, page in pages.items() if path.parent.name == "api"))
    assert [name for name in setminus.__all__ if f"setminus.{name}" not in ids] == []


def test_the_reference_has_every_command_with_its_options(site):
    from setminus.commands import build_app

    text = (site / "reference" / "command.html").read_text(encoding="utf-8")
    app = build_app()
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    names = {f"setminus {command.name or command.callback.__name__}" for command in app.registered_commands}
    for name, group in groups.items():
        names |= {f"setminus {name} {one.name or one.callback.__name__}" for one in group.registered_commands}
    assert len(names) > 10
    headings = {re.sub("<[^>]*>", "", heading).strip() for heading in re.findall(r"<h2[^>]*>(.*?)<a", text)}
    assert names <= headings
    assert "--fail-above" in text and "--tolerance" in text


def test_no_page_is_long(site):
    """Words without code, and without what is folded and loaded when it is opened."""
    long = {}
    for path in (ROOT / "docs").rglob("*.md"):
        text = (site / path.relative_to(ROOT / "docs")).with_suffix(".html").read_text(encoding="utf-8")
        shown = re.sub(
            r"<(pre|table)\b.*?</\1>", "", text[text.index("<article") : text.index("</article>")], flags=re.DOTALL
        )
        long[path.name] = len(re.sub("<[^>]*>", " ", shown).split())
    assert {name: words for name, words in long.items() if words > MAX_WORDS.get(name, 1200)} == {}


def test_each_long_table_is_a_file_of_its_own(site):
    text = (site / "tables.html").read_text(encoding="utf-8")
    parts = re.findall(r'data-part="([^"]*)"', text)
    assert (
        len(parts) > 15 and max(table.count("<tr>") for table in re.findall("<table>.*?</table>", text, re.DOTALL)) < 11
    )
    assert all("<table>" in (site / part).read_text() or "<ul>" in (site / part).read_text() for part in parts)


def test_each_tutorial_is_a_notebook_with_the_code_that_its_page_runs_and_its_pictures(site):
    made = sorted(site.rglob("*.ipynb"))
    assert len(made) == 4
    for file in made:
        cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
        text = (ROOT / "docs" / file.relative_to(site)).with_suffix(".md").read_text(encoding="utf-8")
        code = "\n".join(cell["source"] for cell in cells if cell["cell_type"] == "code")
        assert code == "".join(example.source for example in doctest.DocTestParser().get_examples(text)).rstrip()
        assert ">>>" not in code and len(code) > 500
        pictures = [name for cell in cells for name in cell.get("attachments", {})]
        assert pictures == [Path(found).name for found in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)] != []


def unknown_options(text):
    """Options in the shell lines of a page that the named command does not have."""
    from typer.main import get_command

    from setminus.commands import build_app

    found = []
    blocks = "\n".join(re.findall(r"^```(?:console|bash)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    for line in re.findall(r"^(?:\$ )?setminus ((?:.*\\\n)*.*)$", blocks, re.MULTILINE):
        command, words = get_command(build_app()), line.replace("\\\n", " ").split()
        while words and hasattr(command, "commands"):
            command = command.commands.get(words.pop(0))
        if command is None:
            found.append(line)
            continue
        known = {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]}
        found += [word for word in words if word.startswith("--") and word.split("=")[0] not in known | {"--help"}]
    return found


@pytest.mark.parametrize("path", [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")], ids=lambda path: path.name)
def test_shell_lines_name_commands_and_options_that_exist(path):
    assert unknown_options(path.read_text(encoding="utf-8")) == []


def test_a_wrong_command_or_option_is_found():
    lines = ["fit a.csv --lable y", "fits a.csv", "transfer fit a b \\\n    --keeps hair --out m"]
    text = "setminus says\n```\n" + "".join(f"setminus {line}\n" for line in lines) + "```\n"
    assert unknown_options(text) == ["--lable", "fits a.csv", "--keeps"]
