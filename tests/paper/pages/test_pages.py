"""Templates are filled strictly, and tables are Markdown whatever their cells hold."""

import sys
from types import ModuleType

import jinja2
import pandas as pd
import pytest
from setminus_paper import pages


def test_numbers_and_tables_are_filled_in(tmp_path):
    page = tmp_path / "page.md.j2"
    page.write_text('{{ share | number(".1%") }}\n{{ [(1, "a")] | table(["n", "name"]) }}\n\n\n')
    assert pages.render(page, share=0.5) == "50.0%\n| n | name |\n|---|---|\n| 1 | a |\n"


def test_a_missing_value_is_an_error(tmp_path):
    page = tmp_path / "page.md.j2"
    page.write_text("{{ accuracy }}")
    with pytest.raises(jinja2.UndefinedError, match="accuracy"):
        pages.render(page)


def test_a_frame_keeps_whole_numbers_whole_and_gaps_empty():
    frame = pd.DataFrame({"seeds": [3, 10], "std": [0.5, float("nan")]})
    assert pages.markdown_table(frame, ["seeds", "deviation"]).splitlines()[2:] == ["| 3 | 0.5 |", "| 10 |  |"]


def test_cells_cannot_break_the_table():
    assert pages.markdown_table([("p(y|x)", "w_x \\ w_1")], ["a", "b"]).splitlines()[-1] == r"| p(y\|x) | w_x \\ w_1 |"


def test_only_the_pages_that_show_an_experiment_are_written(monkeypatch, tmp_path):
    def page(name, *records):
        module = ModuleType(name)
        module.RECORDS, module.build = records, lambda results, docs: [docs / f"{name}.md", results / records[0]]
        monkeypatch.setitem(sys.modules, name, module)

    page("one_page", "prop1", "prop2")
    page("other_page", "table1")
    monkeypatch.setattr(pages, "PAGES", ("one_page", "other_page"))
    found = pages.rebuild(["prop2", "prop3"], tmp_path / "results", tmp_path / "docs")
    assert found == [tmp_path / "docs" / "one_page.md", tmp_path / "results" / "prop1"]
