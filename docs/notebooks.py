"""The tutorials as notebooks: the same text, code and pictures, made from the pages that the tests run.

A hook of mkdocs, see ``mkdocs.yml``.
"""

import ast
import base64
import doctest
import json
import re
from pathlib import Path

DOCS = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(>>> .*?)^```\n", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^):]+)\)")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]+\)")
INSTALL = 'This notebook is made from a page of the documentation. Its code needs `pip install "setminus[cli,nn]"`.'


def tutorials(nav):
    """The pages of the section "Tutorials", as paths below ``docs/``."""
    section = next(entries for part in nav for name, entries in part.items() if name == "Tutorials")
    return [path for entry in section for path in entry.values()]


def on_page_markdown(markdown, page, config, files):
    """Offer the notebook below the title of a tutorial."""
    if page.file.src_uri not in tutorials(config.nav):
        return markdown
    title, text = markdown.split("\n", 1)
    name = Path(page.file.src_uri).stem
    return f'{title}\n\n<a class="md-button notebook" href="{name}.ipynb" download>Download as a notebook</a>\n{text}'


def on_post_build(config):
    """Write the notebooks beside their pages."""
    for path in tutorials(config.nav):
        made = json.dumps(notebook(DOCS / path), indent=1, ensure_ascii=False)
        Path(config.site_dir, path).with_suffix(".ipynb").write_text(made + "\n", encoding="utf-8")


def notebook(page):
    """A page in the form of Jupyter's notebooks (nbformat 4.5)."""
    text, cells, end = page.read_text(encoding="utf-8"), [], 0
    for block in BLOCK.finditer(text):
        cells += [prose(text[end : block.start()], page.parent), *code(block[1])]
        end = block.end()
    cells.append(prose(text[end:], page.parent))
    cells = [cell for cell in cells if cell["source"]]
    cells.insert(1, {"cell_type": "markdown", "metadata": {}, "source": INSTALL})
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def prose(text, folder):
    """A cell of Markdown that holds its pictures; links between pages lead nowhere in a notebook."""
    attached = {}

    def attach(found):
        file = folder / found[2]
        attached[file.name] = {"image/png": base64.b64encode(file.read_bytes()).decode()}
        return f"![{found[1]}](attachment:{file.name})"

    source = LINK.sub(r"\1", PICTURE.sub(attach, text)).strip()
    cell = {"cell_type": "markdown", "metadata": {}, "source": source}
    return cell | ({"attachments": attached} if attached else {})


def code(block):
    """Cells of code, with the results that the tests expect; a cell ends where there is a result."""
    cells, source = [], ""
    examples = doctest.DocTestParser().get_examples(block)
    for example in examples:
        source += example.source
        if example.want or example is examples[-1]:
            cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
            cell["source"] = source.rstrip()
            if example.exc_msg:
                cell["metadata"] = {"tags": ["raises-exception"]}
            if example.want:
                cell["outputs"] = [output(example)]
            cells.append(cell)
            source = ""
    return cells


def output(example):
    """What is printed, the value of an expression, or the error."""
    if example.exc_msg:
        name, _, text = example.exc_msg.rstrip("\n").partition(": ")
        return {"output_type": "error", "ename": name.split(".")[-1], "evalue": text, "traceback": [example.exc_msg]}
    last = ast.parse(example.source).body[-1]
    printed = not isinstance(last, ast.Expr) or ast.unparse(last).startswith("print(")
    if printed:
        return {"output_type": "stream", "name": "stdout", "text": example.want}
    value = {"text/plain": example.want.rstrip("\n")}
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": value}
