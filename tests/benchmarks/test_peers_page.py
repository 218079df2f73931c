"""The pages of the peers, from records made by hand and from the committed ones."""

from pathlib import Path

import pytest

from benchmarks import peers_page
from benchmarks.fairness_sets import SETS
from benchmarks.frontiers import points_of
from benchmarks.peers import key
from benchmarks.peers_page import OURS, behind_rows, by_set_rows, compared, promise_rows, summary_rows
from benchmarks.resuming import existing_keys
from setminus.records import append_record, read_records
from tests.benchmarks.peer_records import PEER, with_peer

ROOT = Path(__file__).parents[2]


@pytest.fixture
def three_sets():
    records = [*with_peer(0.85, 0.04), *with_peer(0.88, 0.04, data="law-2"), *with_peer(0.8652, 0.04, data="crime")]
    return compared(points_of(records), OURS)


def test_the_summary_counts_sets(three_sets):
    ((peer, known, _, sets, above, level, below, mean),) = summary_rows(three_sets)
    assert (peer, known, sets, above, level, below) == (PEER, "no", "3", "1", "1", "1")
    assert float(mean) == pytest.approx(0, abs=0.02)


def test_every_set_has_a_cell_and_losses_stand_out(three_sets):
    ((peer, adult, law, crime),) = by_set_rows(three_sets)
    assert (peer, adult, law, crime) == (PEER, "+1.5 above", "-1.5 **below**", "-0.0")


def test_each_gap_behind_is_listed(three_sets):
    ((name, peer, asked, gap, _, outcome, splits),) = behind_rows(three_sets)
    assert (name, peer, asked, gap, outcome, splits) == ("law-2", PEER, "0.01", "0.040", "below", "5")


def test_a_promise_is_kept_where_the_gap_on_test_rows_is_within_the_tolerance():
    sets = points_of([*with_peer(0.85, 0.04, tolerance=0.05), *with_peer(0.85, 0.06, tolerance=0.05, data="crime")])
    rows = {row[0]: row[1:] for row in promise_rows(sets)}
    assert rows[PEER] == ["", "50 % of 10"]
    assert rows[OURS[False]] == ["100 % of 10", "0 % of 10"]


def test_promises_of_a_certificate_are_counted_where_it_is_given():
    records = with_peer(0.85, 0.04, tolerance=0.05)
    for found in records:
        if found["name"] == PEER:
            found["metrics"] |= {
                "certified": found["seed"] < 2,
                "equalized_odds_max": 0.04 + 0.02 * (found["seed"] > 2),
            }
    rows = {row[0]: row[1:] for row in promise_rows(points_of(records))}
    assert rows[PEER][1] == "60 % of 5"
    assert rows[f"{PEER}, where certified"][1] == "100 % of 2"
    assert f"{OURS[False]}, where certified" not in rows


def test_the_pages_and_the_pictures_are_made_from_records_alone(tmp_path):
    pytest.importorskip("vl_convert")
    for r in with_peer(0.865, 0.04):
        append_record(tmp_path / "peers" / "records.jsonl", r)
    page, details, picture = peers_page.build(tmp_path, tmp_path / "docs")
    assert "up to 5 seeds" in page.read_text(encoding="utf-8")
    assert f"peers/{picture.name}" in details.read_text(encoding="utf-8")
    assert 5_000 < picture.stat().st_size < 250_000


def test_again_removes_only_what_is_named(tmp_path):
    path = tmp_path / "records.jsonl"
    for r in with_peer(0.865, 0.04):
        append_record(path, r)
    everything = existing_keys(path, key)
    kept = existing_keys(path, key, again="setminus")
    assert {name for _, _, name, _ in everything - kept} == set(OURS.values())
    assert len(read_records(path)) == len(kept)


def test_the_committed_pages_are_what_the_records_say():
    found = read_records(ROOT / "results" / "peers" / "records.jsonl")
    if {record["config"]["set"] for record in found if record["name"] in OURS.values()} != {*SETS}:
        pytest.skip("the run on all sets is not complete: python -m benchmarks peers")
    pages = peers_page.write(found)
    assert [*pages] == ["peers.md", "peers-sets.md", "peers-unseen.md"]
    assert {name: (ROOT / "docs" / name).read_text(encoding="utf-8") for name in pages} == pages
    assert peers_page.readme_table(found) in (ROOT / "README.md").read_text(encoding="utf-8")
