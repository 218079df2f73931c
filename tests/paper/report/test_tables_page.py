"""The pages of the tables are what the committed records say, and show the tables that have records."""

from pathlib import Path

import pytest
from setminus_paper.report import tables_page

from setminus.records import append_record
from tests.made_tables import ROWS, made_records
from tests.made_transfers import made_faces

ROOT = Path(__file__).parents[3]


def cells(text, label):
    line = next(line for line in text.splitlines() if line.startswith(f"| {label} |"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_the_committed_pages_are_what_the_records_say():
    pages = tables_page.write(tables_page.read_tables(ROOT / "results"))
    assert [*pages] == ["transfer", "adaptation", "fairness"]
    assert {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "tables").iterdir()} == pages
    assert 5_000 < (ROOT / "docs" / "table3.png").stat().st_size < 400_000


def test_every_row_of_the_fairness_tables_is_there_under_both_rules():
    page = tables_page.write({"table4": made_records(), "table5": made_records("table5")})["fairness"]
    for label, *_ in ROWS.values():
        assert page.count("| {} |".format(label.replace("\\", "\\\\"))) >= 4
    found = cells(page, "Vanilla")
    assert found[2:7:2] == ["84.5", "0.19", "0.20"] and found[1].startswith("84.2 ± 0.2 (83.")


def test_the_pages_have_the_tables_that_have_records(tmp_path):
    append_record(tmp_path / "table6" / "records.jsonl", made_faces("vanilla", name="table6"))
    (page,) = tables_page.build(tmp_path, tmp_path / "docs")
    text = page.read_text(encoding="utf-8")
    assert page.stem == "transfer" and "## Table 6" in text and "## Table 2" not in text
    assert cells(text, "Vanilla")[1:] == ["80.0 %", "90.2 %", "70.0 %", "14.3 %", "12.5", "38.5", "1", "20", "1"]


@pytest.mark.parametrize("name", tables_page.RECORDS)
def test_the_pages_read_the_records_of_each_table(name):
    assert name in tables_page.read_tables(ROOT / "results")
