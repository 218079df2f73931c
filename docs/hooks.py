"""What the site adds to the pages of ``docs/``: the reference, made from the package itself, and links into it.

mkdocs calls the functions ``on_*`` while it builds (``hooks`` in ``mkdocs.yml``).
"""

import os
import re
from collections import defaultdict
from pathlib import Path

from mkdocs.structure.files import File

import setminus

ROOT = Path(__file__).parents[1]

API = {
    "estimators": "Classifiers",
    "auditing": "Audit",
    "core": "Formula, gaps and certificates",
    "adaptation": "Adaptation",
    "transfer": "Style transfer",
    "export": "Export",
    "nn": "Torch",
    "invariant": "Principals from environments",
}
"""The title of each subpackage with public names; those of one module share a page."""

MODULES = ("nn", "invariant")
"""Subpackages whose modules are public: the ``__all__`` of each lists its names."""

PROJECT = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security": "SECURITY.md"}
"""Pages of the repository's root that the site has, too."""

CODE = re.compile(r"^( *)(```|~~~).*?^\1\2", re.DOTALL | re.MULTILINE)


def on_config(config):
    """List the pages of the API and of the commands in the navigation, where their places are empty."""
    lists = {
        "API": [{title: [*pages]} for title, pages in api_pages().items()],
        "The command": [*command_pages()],
    }
    for section in config.nav:
        for entries in section.values():
            for entry in entries:
                if entry in ({name: []} for name in lists):
                    entry |= {name: lists[name] for name in entry}
    return config


def on_files(files, config):
    """Add the pages that are made, not written."""
    made = command_pages()
    for pages in api_pages().values():
        made |= pages
    for name, source in PROJECT.items():
        made[f"project/{name}.md"] = moved((ROOT / source).read_text(encoding="utf-8"), "project")
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Link the public names in a page to their reference."""
    if page.file.src_uri.startswith("reference/api/"):
        return markdown
    return linked(markdown)


def api_pages():
    """The API reference by the title of each subpackage: the paths of its pages and their Markdown."""
    shown = defaultdict(dict)
    for name in setminus.__all__:
        home, module = setminus._HOMES[name].split(".")
        shown[home].setdefault(module, []).append(name)
    for home in MODULES:
        files = sorted((ROOT / "src" / "setminus" / home).glob("[a-z]*.py"))
        shown[home] = {file.stem: [f"{home}.{file.stem}"] for file in files}
    return {
        API.get(home, home): {f"reference/api/{home}/{module}.md": api_page(names) for module, names in pages.items()}
        for home, pages in sorted(shown.items(), key=lambda one: [*API, *shown].index(one[0]))
    }


def api_page(names):
    """The Markdown for a few names; a name alone is the title."""
    head, level = f"---\ntitle: {', '.join(names)}\n---\n\n", 1
    if len(names) > 1:
        head, level = f"{head}# {', '.join(names)}\n\n", 2
    return head + "\n\n".join(f"::: setminus.{name}\n    options:\n      heading_level: {level}" for name in names)


def command_pages():
    """What ``--help`` prints: the paths and the Markdown of a page for all commands, and of one for each."""
    pages = {}
    for words, text in command_helps():
        name = " ".join(["setminus", *words])
        part = f"\n\n```text\n{text}\n```"
        if not words:
            about = 'What `--help` prints for each command. `pip install "setminus[cli]"` installs it.'
            pages["reference/command.md"] = f"# The command\n\n{about}\n\n## {name}{part}"
        elif len(words) == 1:
            pages[f"reference/command/{words[0]}.md"] = f"# {name}{part}"
        else:
            pages[f"reference/command/{words[0]}.md"] += f"\n\n## {name}{part}"
    return pages


def command_helps():
    """Yield the words of each command, groups before their members, and its help as plain text."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from setminus.commands import build_app

    app = build_app()
    plain = {"COLUMNS": "104", "NO_COLOR": "1", "TERM": "dumb"}

    def walk(command, words):
        done = CliRunner(env=os.environ | plain).invoke(app, [*words, "--help"], prog_name="setminus")
        if done.exit_code:
            raise RuntimeError(f"setminus {' '.join(words)} --help ended with {done.exit_code}: {done.output}")
        yield words, "\n".join(line.rstrip() for line in done.output.strip("\n").splitlines())
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, [*words, name])

    yield from walk(get_command(app), [])


def moved(text, folder):
    """A page of the root, with links that hold from a folder of ``docs/``."""

    def link(found):
        target = found[1]
        if target in PROJECT.values():
            return f"]({next(name for name, source in PROJECT.items() if source == target)}.md)"
        return f"]({os.path.relpath(target.removeprefix('docs/'), folder)})" if target.startswith("docs/") else found[0]

    return re.sub(r"\]\(([^)#:]+)\)", link, text)


def linked(markdown):
    """Markdown whose inline code links to the reference where it is a public name that is no everyday word."""
    names = "|".join(name for name in setminus.__all__ if re.search("[A-Z_]", name) or name == "orthogonalize")
    mention = re.compile(rf"(?<![\[`\w])`({names})`(?![`\]])")
    done, end = [], 0
    for block in [*CODE.finditer(markdown), None]:
        text = markdown[end : block.start() if block else None]
        lines = (
            line if line.startswith("#") else mention.sub(r"[`\1`][setminus.\1]", line) for line in text.split("\n")
        )
        done.append("\n".join(lines))
        if block:
            done.append(block[0])
            end = block.end()
    return "".join(done)
