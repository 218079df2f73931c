"""Tables of style transfer in docs, from records alone."""

from benchmarks import paper_tables, transfer_tables
from setminus.records import append_record
from tests.made_tables import made_records
from tests.made_transfers import made_digits, made_faces


def cells(text, label):
    line = next(line for line in text.splitlines() if line.startswith(f"| {label} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_digits_are_measured_and_faces_have_a_fid():
    text = transfer_tables.table("table1", [made_digits("vanilla", 0, 0.9, 0.2), made_digits("vanilla", 1, 0.8, 0.4)])
    assert cells(text, "Vanilla")[1:] == [
        *("85.0 ± 7.1 %", "90.2 %", "30.0 ± 14.1 %", "14.3 %", "84.0 ± 7.1 %", "30.0 ± 14.1 %"),
        *("2", "20", "1"),
    ]
    assert "Images of faces" not in text
    text = transfer_tables.table("table2", [made_faces("vanilla", steps=2000), made_faces("orthogonal_trm", steps=800)])
    assert cells(text, "Vanilla")[1:] == ["80.0 %", "90.2 %", "70.0 %", "14.3 %", "12.5", "38.5", "1", "2,000", "1"]
    assert cells(text, "w_x \\ w_1 (TRM, last layer)")[-2] == "800"
    assert "Images of faces stay beside the records" in text
    heads = next(line for line in text.splitlines() if line.startswith("| row |"))
    assert heads.count("|") == len(cells(text, "Vanilla")) + 1


def test_the_page_has_the_tables_that_there_are(tmp_path):
    append_record(tmp_path / "table6" / "records.jsonl", made_faces("vanilla", name="table6"))
    found = paper_tables.read_tables(tmp_path)
    page = paper_tables.write(found)
    assert [name for name, title in paper_tables.TITLES.items() if title in page] == ["table6"]
    assert "## Fairness" not in page
    page = paper_tables.write({**found, "table4": made_records()})
    assert page.index("## Style transfer") < page.index("### Table 6") < page.index("## Fairness")
    assert "`table6` and `table4`" in page
    assert paper_tables.brief(found) == ""
