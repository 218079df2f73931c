"""The documentation as a site: it builds, its links hold, nothing comes from elsewhere, the reference is complete."""

import ast
import doctest
import json
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import setminus

pytest.importorskip("material", reason="the site is built with the dependency group docs")

ROOT = Path(__file__).parents[1]
MAX_WORDS = {"": 1200, "reference/api/": 1400, "project/changelog": float("inf")}
"""The most words of a page, by how its path begins: the longest beginning counts. A changelog only grows."""


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


def lacking(pages, names):
    """Names without an entry in the reference."""
    ids = set().union(*(page.ids for path, page in pages.items() if "api" in path.parts))
    return [name for name in names if f"setminus.{name}" not in ids]


def test_the_reference_has_every_public_name(pages):
    assert len(setminus.__all__) > 20
    assert lacking(pages, [*setminus.__all__, "no_such_name"]) == ["no_such_name"]


def test_the_reference_has_every_public_name_of_the_torch_modules(pages):
    files = [file for home in ("nn", "invariant") for file in (ROOT / "src" / "setminus" / home).glob("[a-z]*.py")]
    assert len(files) > 8
    for file in files:
        names = ast.literal_eval(re.search(r"^__all__ = (\[.*?\])$", file.read_text(), re.DOTALL | re.MULTILINE)[1])
        assert lacking(pages, [f"{file.parent.name}.{file.stem}.{name}" for name in names]) == []


def undocumented(site, commands):
    """Commands, and options of theirs, that their pages do not name."""
    found = []
    for words, command in commands:
        page = site / "reference" / "command" / f"{words[0]}.html"
        text = unescape(re.sub("<[^>]*>", "", page.read_text(encoding="utf-8"))) if page.exists() else ""
        part = text.partition(f"Usage: setminus {' '.join(words)} [OPTIONS]")[2].partition("Usage: ")[0]
        options = [one for parameter in command.params for one in parameter.opts if one.startswith("--")]
        found += [" ".join([*words, one]) for one in options if not re.search(rf"{one}(?![\w-])", part)]
        found += [] if part else [" ".join(words)]
    return found


def test_the_reference_has_every_command_with_every_option(site):
    from typer.main import get_command

    from setminus.commands import build_app

    def walk(command, words):
        for name, inner in getattr(command, "commands", {}).items():
            yield [*words, name], inner
            yield from walk(inner, [*words, name])

    commands = [*walk(get_command(build_app()), [])]
    assert len(commands) > 10
    assert undocumented(site, commands) == []
    audit = next(command for words, command in commands if words == ["audit"])
    audit.params[-1].opts = ["--fail-aboves"]
    assert undocumented(site, [(["audit"], audit)]) == ["audit --fail-aboves"]
    assert undocumented(site, [(["audits"], audit)])[-1] == "audits"


def words(page):
    """How many words of a page are shown at once: its text and tables, without code and what is folded away."""
    shown = page[page.index("<article") : page.index("</article>")]
    return len(re.sub("<[^>]*>", " ", re.sub(r"<pre\b.*?</pre>", "", shown, flags=re.DOTALL)).split())


def test_no_page_is_long(site, pages):
    long = {}
    for path in pages:
        name, text = path.relative_to(site).as_posix(), path.read_text(encoding="utf-8")
        most = MAX_WORDS[max((start for start in MAX_WORDS if name.startswith(start)), key=len)]
        if "<article" in text and words(text) > most:
            long[name] = words(text)
    assert long == {}


def test_words_of_text_and_tables_count_and_code_does_not():
    assert words("x y<article><p>one <b>two</b></p><table><td>three</td></table><pre>four</pre></article>z") == 3


def test_each_long_table_is_a_file_of_its_own(site):
    for name in "transfer", "adaptation", "fairness":
        text = (site / "tables" / f"{name}.html").read_text(encoding="utf-8")
        parts = re.findall(r'data-part="([^"]*)"', text)
        assert len(parts) > 2
        assert max((table.count("<tr>") for table in re.findall("<table>.*?</table>", text, re.DOTALL)), default=0) < 12
        opened = [(site / "tables" / part).read_text(encoding="utf-8") for part in parts]
        assert all("<table>" in one or "<ul>" in one for one in opened)


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
