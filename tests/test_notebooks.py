"""Each tutorial's notebook is its page, and runs in Jupyter with the results that it shows."""

import doctest
import importlib.util
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="notebooks are run with the dependency group dev")
nbformat = pytest.importorskip("nbformat")
yaml = pytest.importorskip("yaml")
pytest.importorskip("ipykernel")

DOCS = Path(__file__).parents[1] / "docs"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
SPEC = importlib.util.spec_from_file_location("notebooks", DOCS / "notebooks.py")
notebooks = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(notebooks)
NAV = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]


def results(cell):
    """What a cell shows: what it prints, its value or its error."""
    texts = []
    for out in cell.get("outputs", []):
        if out.output_type == "stream" and out.name == "stdout":
            texts.append(out.text)
        elif out.output_type == "execute_result":
            texts.append(out.data["text/plain"])
        elif out.output_type == "error":
            texts.append(f"{out.ename}: {out.evalue}")
    return "".join(f"{text.rstrip()}\n" for text in texts)


def run(page, folder):
    """The cells of a page whose results are others than it says, after all of its notebook ran in one fresh kernel."""
    made = nbformat.from_dict(notebooks.notebook(page))
    expected = [results(cell) for cell in made.cells]
    assert any(expected)
    nbformat.validate(made)
    nbclient.NotebookClient(made, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    check = doctest.OutputChecker().check_output
    return [
        cell.source for cell, want in zip(made.cells, expected, strict=True) if not check(want, results(cell), FLAGS)
    ]


@pytest.mark.parametrize("page", notebooks.tutorials(NAV))
def test_a_notebook_has_the_code_and_the_results_of_its_page(page):
    """So it runs as the page does, whose doctest runs with all others."""
    made = nbformat.from_dict(notebooks.notebook(DOCS / page))
    nbformat.validate(made)
    cells = [cell for cell in made.cells if cell.cell_type == "code"]
    examples = doctest.DocTestParser().get_examples((DOCS / page).read_text(encoding="utf-8"))
    assert "".join(f"{cell.source}\n" for cell in cells) == "".join(example.source for example in examples) != ""
    # Jupyter names an error without its module
    wanted = [(e.exc_msg or e.want).removeprefix("setminus.errors.").rstrip() for e in examples if e.want]
    assert [results(cell).rstrip() for cell in cells if cell.outputs] == wanted != []


def test_a_notebook_runs_and_has_the_results_that_it_shows(tmp_path):
    assert run(DOCS / "make-your-model-fair.md", tmp_path) == []


def test_another_result_and_an_error_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n```python\n>>> x = 2\n>>> x + 1\n4\n>>> print(x)\n2\n\n```\n")
    assert run(page, tmp_path) == ["x = 2\nx + 1"]
    page.write_text("# Page\n\n```python\n>>> 1 / 0\n0\n\n```\n")
    with pytest.raises(nbclient.exceptions.CellExecutionError, match="ZeroDivisionError"):
        run(page, tmp_path)
    page.write_text(
        "# Page\n\n```python\n>>> 1 / 0\nTraceback (most recent call last):\nZeroDivisionError: so\n\n```\n"
    )
    assert run(page, tmp_path) == ["1 / 0"]
