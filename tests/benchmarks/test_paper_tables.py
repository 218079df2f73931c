"""The paper's tables in docs and README, from records alone."""

from pathlib import Path

import pytest

from benchmarks import adaptation_tables, paper_tables, tables
from setminus.records import append_record
from tests.made_adaptation import made_record
from tests.made_tables import ROWS, made_records

ROOT = Path(__file__).parents[2]


EMPTY = "before\n" + "".join(f"<!-- table {n} -->\nold\n<!-- end of table {n} -->\n" for n in (3, 4)) + "after\n"


def written(folder, *names):
    for name in names:
        for record in made_records(name, seeds=3):
            append_record(folder / name / "records.jsonl", record)
    return folder


def test_the_page_holds_every_row_under_both_rules_beside_the_papers():
    page = paper_tables.write({"table4": made_records(), "table5": made_records("table5")})
    for label, *_ in ROWS.values():
        assert page.count(f"| {label} |") == 4
    first = next(line for line in page.splitlines() if line.startswith("| Vanilla |"))
    cells = [cell.strip() for cell in first.strip("|").split("|")]
    assert cells[2::2][:3] == ["84.5", "0.19", "0.20"]
    assert cells[1].startswith("84.2 ± 0.2 (83.")
    assert len(cells) == paper_tables.COLUMNS.splitlines()[0].count("|") - 1
    assert page.count("### Where we lose") == 2


def test_absent_records_leave_everything_as_it_is(tmp_path, capsys):
    readme = tmp_path / "README.md"
    readme.write_text(EMPTY)
    tables.run_paper(tmp_path / "results", tmp_path / "docs", readme)
    assert "no records" in capsys.readouterr().out
    assert readme.read_text() == EMPTY
    assert not (tmp_path / "docs").exists()


@pytest.mark.parametrize("names", [("table4",), ("table5",), ("table4", "table5")])
def test_what_there_is_is_written(tmp_path, names):
    results, readme = written(tmp_path / "results", *names), tmp_path / "README.md"
    readme.write_text(EMPTY)
    tables.run_paper(results, tmp_path / "docs", readme)
    page = (tmp_path / "docs" / "tables.md").read_text(encoding="utf-8")
    assert [name for name, title in paper_tables.TITLES.items() if f"## {title}" in page] == list(names)
    text = readme.read_text(encoding="utf-8")
    assert "old" not in text
    assert ("| Vanilla |" in text) == ("table4" in names)
    again = readme.read_text(), page
    tables.run_paper(results, tmp_path / "docs", readme)
    assert again == (readme.read_text(), (tmp_path / "docs" / "tables.md").read_text())


def test_the_committed_tables_are_what_the_records_say():
    """Whoever changes a number by hand, or forgets to make the tables again, is told."""
    found = paper_tables.read_tables(ROOT / "results")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for marks, numbers in paper_tables.briefs(found):
        assert tables.with_numbers(readme, numbers, marks) == readme
        assert tables.with_numbers(readme, "other\n", marks) != readme
    page = ROOT / "docs" / "tables.md"
    assert page.exists() == bool(found), "python -m benchmarks tables makes it from the records"
    if found:
        assert page.read_text(encoding="utf-8") == paper_tables.write(found)
    if "table3" in found:
        assert 5_000 < (ROOT / "docs" / "table3.png").stat().st_size < 150_000


def test_the_readme_has_the_pairs_with_several_seeds_and_what_is_gained_on_them():
    methods = {"vada": 0.5, "vada_iw": 0.4, "vada_orthogonal_em": 0.6, "vada_orthogonal_bbse": 0.55}
    records = [
        made_record(
            method, accuracy + 0.01 * seed, seed=seed, pair=pair, paper=None if pair == "mnist-usps" else accuracy
        )
        for method, accuracy in methods.items()
        for pair, seeds in (("svhn-mnist", 3), ("mnist-usps", 3), ("mnist-svhn", 1))
        for seed in range(seeds)
    ]
    text = adaptation_tables.brief(records)
    assert "| | svhn to mnist | mnist to usps |" in text and "mnist-svhn" not in text
    assert "| VADA | 51.0 ± 1.0 | 51.0 ± 1.0 |" in text and "DANN" not in text
    assert "| VADA + w_x \\ w_1 | 61.0 ± 1.0 | 61.0 ± 1.0 |" in text
    assert "| w_x \\ w_1 less VADA (95 % interval) | +10.0 (+10.0 to +10.0) | +10.0 (+10.0 to +10.0) |" in text
    assert "| the same in the paper, by `test_oracle` | +10.0 |  |" in text
    assert "at its shift of 70/30, 3 seeds: accuracy" in text
    more = [made_record("vada", 0.5, seed=seed, pair="mnist-usps") for seed in range(3, 6)]
    told = adaptation_tables.brief([*records, *more])
    assert "70/30, 3 seeds, 6 (3 of VADA + IW) on mnist to usps: accuracy" in told
    more += [{**one, "config": {**one["config"], "method": "vada_iw"}} for one in more]
    assert "70/30, 3 seeds, 6 on mnist to usps: accuracy" in adaptation_tables.brief([*records, *more])
    # of one estimate there is nothing to choose
    alone = adaptation_tables.brief([one for one in records if one["config"]["method"] != "vada_orthogonal_bbse"])
    assert "| VADA + w_x \\ w_1 | 61.0 ± 1.0 | 61.0 ± 1.0 |" in alone and "+10.0 (+10.0 to +10.0)" in alone
    assert adaptation_tables.brief([one for one in records if one["config"]["pair"] == "mnist-svhn"]) == ""
