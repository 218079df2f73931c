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
    "estimators": ("Classifiers", "Estimators for scikit-learn, and the files they are saved to."),
    "auditing": ("Audit", "What a score does to groups, with intervals and a verdict."),
    "core": ("Formula, gaps and certificates", "Functions on arrays: the method, the metrics and the theory."),
    "adaptation": ("Adaptation", "Another class mix, or another domain, without labels."),
    "transfer": ("Style transfer", "Change one factor of a picture, keep another."),
    "export": ("Export", "Models out of Python: ONNX and SQL."),
}
"""The title and the purpose of the page for the public names of each subpackage."""

MODULES = {
    "nn": ("Torch", "The formula as a module, and the losses, networks and training loop of the paper."),
    "invariant": ("Principals from environments", "Principal networks by ERM, MLDG, TRM and Fish."),
}
"""Subpackages whose modules are public: the ``__all__`` of each lists its names."""

PROJECT = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security": "SECURITY.md"}
"""Pages of the repository's root that the site has, too."""

CODE = re.compile(r"^( *)(```|~~~).*?^\1\2", re.DOTALL | re.MULTILINE)


def on_config(config):
    """List the pages of the API in the navigation, where it says "API"."""
    for section in config.nav:
        for entries in section.values():
            for entry in entries:
                if isinstance(entry, dict) and "API" in entry:
                    entry["API"] = [f"reference/api/{name}.md" for name in api_pages()]
    return config


def on_files(files, config):
    """Add the pages that are made, not written."""
    made = {f"reference/api/{name}.md": text for name, text in api_pages().items()}
    made["reference/command.md"] = command_page()
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
    """The API reference in Markdown: a page for each subpackage that has public names."""
    homes = defaultdict(list)
    for name in setminus.__all__:
        homes[setminus._HOMES[name].split(".")[0]].append(f"setminus.{name}")
    pages = {}
    for home in sorted(homes, key=[*API, *homes].index):
        names = homes[home]
        title, purpose = API.get(home, (home.capitalize(), ""))
        pages[home] = "\n\n".join([f"# {title}", purpose, *(f"::: {name}" for name in names)])
    for home, (title, purpose) in MODULES.items():
        files = sorted((ROOT / "src" / "setminus" / home).glob("[a-z]*.py"))
        pages[home] = "\n\n".join([f"# {title}", purpose, *(f"::: setminus.{home}.{file.stem}" for file in files)])
    return pages


def command_page():
    """Every command with what its ``--help`` prints."""
    parts = ["# The command", 'What `--help` prints for each command. `pip install "setminus[cli]"` installs it.']
    for words, text in command_helps():
        name = " ".join(["setminus", *words])
        parts.append(f"## {name}\n\n```text\n{text}\n```")
    return "\n\n".join(parts)


def command_helps():
    """Yield the words of each command, groups before their members, and its help as plain text."""
    from typer.main import get_command
    from typer.testing import CliRunner

    from setminus.commands import build_app

    app = build_app()
    plain = {"COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb"}

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
