"""The documentation as a site: it builds, its links hold, nothing comes from elsewhere, the reference is complete."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import setminus

pytest.importorskip("material", reason="the site is built with the dependency group docs")

ROOT = Path(__file__).parents[1]
MAX_WORDS = 1300
MADE = ("tables.md", "laboratory.md", "laboratory/numbers.md", "peers.md", "peers-sets.md", "adapters.md")
"""Written by generators: long tables, which the site folds."""
LONG = {
    "adapt-when-the-class-mix-changes.md",
    "translate-style-keep-what-matters.md",
    "why-adaptation-can-hurt.md",
}
"""Tutorials of more words, to be split."""


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


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_a_page_is_short_enough_to_be_read(path):
    name = path.relative_to(ROOT / "docs").as_posix()
    if name not in MADE and name not in LONG:
        assert len(path.read_text(encoding="utf-8").split()) <= MAX_WORDS


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
