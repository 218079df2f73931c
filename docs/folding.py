"""The long tables of some pages: folded, and each loaded when it is opened.

A hook of mkdocs, see ``mkdocs.yml``; ``site.js`` loads them.
"""

import html
import re
from pathlib import Path

PAGES = (
    *("tables/transfer.md", "tables/adaptation.md", "tables/fairness.md"),
    *("laboratory.md", "laboratory/limits.md", "laboratory/numbers.md"),
    *("peers.md", "peers-sets.md", "adapters.md", "project/security.md"),
)
"""Pages with long tables: most are made from records."""
MAX_ROWS = 10
"""A table with more rows than this is folded."""
MAX_WORDS = {"<table>": 200, "<ul>": 60}
"""A table, or a list of notes, with more words than this is folded."""
PART = re.compile(
    r"<details>\s*<summary>(?P<summary>.*?)</summary>(?P<body>.*?)</details>"
    r"|<table>.*?</table>"
    r"|<ul>.*?</ul>",
    re.DOTALL,
)
ALONE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><link rel="stylesheet" href="{css}"></head>
<body class="md-typeset">{body}</body></html>
"""

_parts = {}


def on_pre_build(config):
    """Forget the parts of an earlier build."""
    _parts.clear()


def on_page_markdown(markdown, page, config, files):
    """Read what a page folds itself as Markdown, too."""
    return markdown.replace("<details><summary>", "<details markdown><summary>") if page.file.src_uri in PAGES else None


def on_page_content(content, page, config, files):
    """Move the long parts of a page to files of their own; load pictures when they are reached."""
    content = content.replace("<img ", '<img loading="lazy" ')
    if page.file.src_uri not in PAGES:
        return content
    target, number = Path(page.file.dest_uri), 0

    def fold(found):
        nonlocal number
        title, body = named(found, content[: found.start()])
        if found[0].startswith("<ul>") and target.parts[0] != "tables":
            return found[0]
        if title is None:
            return found[0]
        number += 1
        part = target.with_name(f"{target.stem}.{number}.html")
        css = "../" * (len(part.parts) - 1) + "site.css"
        _parts[part] = ALONE.format(title=html.escape(title), css=css, body=body)
        link = f'<p><a href="{part.name}">Open it alone</a></p>'
        return f'<details class="table" data-part="{part.name}"><summary>{html.escape(title)}</summary>{link}</details>'

    return PART.sub(fold, content)


def on_post_build(config):
    """Write the parts."""
    for part, text in _parts.items():
        Path(config.site_dir, part).write_text(text, encoding="utf-8")


def named(found, before):
    """The line that stands for a part, and the part; no line for a short one, which stays."""
    part = found[0]
    if found["summary"]:
        return plain(found["summary"]), found["body"]
    rows, words = part.count("<tr>") - 1, len(re.sub("<[^>]*>", " ", part).split())
    if rows <= MAX_ROWS and words <= MAX_WORDS[re.match("<[a-z]+>", part)[0]]:
        return None, part
    if part.startswith("<ul>"):
        return "Notes", part
    *_, heading = re.findall(r"<h[1-4][^>]*>(.*?)(?:<a class=\"headerlink|</h)", before, re.DOTALL)
    return f"{plain(heading)}: {rows} rows", part


def plain(text):
    """HTML as text."""
    return html.unescape(re.sub("<[^>]+>", "", text)).strip()
