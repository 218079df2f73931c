"""``setminus reproduce``: from a name to records, a table, a picture and a page; again and again."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from setminus_paper.reproduce import EXPERIMENTS, VIEWS

from setminus.records import read_records
from tests.made_tables import made_records
from tests.made_transfers import made_digits


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_name_becomes_records_a_table_a_picture_and_a_page(command, toy, tmp_path):
    done = command("reproduce", "toy", "--out", tmp_path)
    assert done.code == 0, done.err
    assert files(tmp_path) == ["toy/index.html", "toy/records.jsonl", "toy/toy.png"]
    assert "paper, or exact" in done.out
    assert "more than 0" in done.out
    assert done.out.splitlines()[-1] == str(tmp_path / "toy" / "index.html")
    assert "toy" in done.err
    assert len(read_records(tmp_path / "toy" / "records.jsonl")) == 4


def test_the_command_again_does_only_what_is_missing(command, toy, tmp_path):
    options = ["--out", tmp_path, "--methods", "halves", "--no-page", "--jobs", 1, "--quiet"]
    first = command("reproduce", "toy", *options, "--seeds", 2)
    path = tmp_path / "toy" / "records.jsonl"
    assert (first.out.strip(), first.err) == (str(path), "")
    before = path.read_text()
    command("reproduce", "toy", *options, "--seeds", 2)
    assert path.read_text() == before
    command("reproduce", "toy", *options, "--seeds", 3)
    assert path.read_text().startswith(before)
    assert [record["seed"] for record in read_records(path)] == [0, 1, 2]
    assert files(tmp_path) == ["toy/records.jsonl"]


def test_the_page_is_made_again_from_the_records_of_several_experiments(command, toy, tmp_path):
    command("reproduce", "toy", "--out", tmp_path, "--no-page", "--jobs", 1)
    command("reproduce", "toy", "--out", tmp_path, "--no-page", "--jobs", 1, "--scale", "paper")
    done = command("report", tmp_path)
    assert done.out.strip() == str(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.count("<h1") == 2
    assert page.count("Numbers of this figure") == 10


def test_a_device_that_is_not_here_is_refused_before_any_run(command, toy, tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = command("reproduce", "toy", "--out", tmp_path, "--device", "cuda")
    assert done.code == 2 and "which this machine does not have" in done.err
    assert files(tmp_path) == []
    assert command("reproduce", "toy", "--out", tmp_path, "--device", "auto", "--no-page").code == 0


def test_several_names_have_a_page_of_all(command, toy, tmp_path):
    done = command("reproduce", "toy", "theorem1", "--out", tmp_path, "--jobs", 1, "--seeds", 1)
    assert done.code == 0, done.err
    assert {"index.html", "toy/index.html", "theorem1/index.html"} < {*files(tmp_path)}
    assert done.out.splitlines()[-1] == str(tmp_path / "index.html")
    page = (tmp_path / "index.html").read_text()
    assert page.index("toy, quick scale") < page.index("theorem1, quick scale")
    assert page.count("<h1") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["toi"], ["there is no experiment 'toi'", "Did you mean 'toy'?"]),
        (["toy", "--methods", "halfs"], ["toy has no method 'halfs'", "Did you mean 'halves'?"]),
        (["toy", "--methods", ""], ["toy has no method ''", "Did you mean 'halves' or 'wholes'?"]),
        (["toy", "--shifts", "0.5,0.9"], ["toy does not shift a class mix", "Leave out 0.5, 0.9."]),
        (
            ["toy", "--shifts", "0.5;x"],
            ["--shifts 0.5;x is not a list of shares", "Give numbers separated by commas, such as 0.5,0.7,0.95."],
        ),
    ],
)
def test_mistakes_are_answered_in_two_lines_before_any_work(command, toy, tmp_path, arguments, said):
    done = command("reproduce", *arguments, "--out", tmp_path / "runs")
    assert (done.code, done.out) == (2, "")
    wrong, remedy = done.err.strip().splitlines()
    assert wrong == f"Error: {said[0]}."
    assert remedy == said[1]
    assert files(tmp_path) == []


def test_the_documentation_is_rebuilt_from_the_records(command, toy, tmp_path, monkeypatch):
    def build(results, docs):
        (docs / "toy.md").write_text(str(len(read_records(results / "toy" / "records.jsonl"))))
        return [docs / "toy.md"]

    module = SimpleNamespace(RECORDS=("toy",), build=build)
    monkeypatch.setattr("setminus_paper.pages.PAGES", ("toy_page",))
    monkeypatch.setitem(sys.modules, "toy_page", module)
    done = command("reproduce", "toy", "--out", tmp_path / "runs", "--docs", tmp_path / "docs", "--jobs", 1)
    assert done.code == 0, done.err
    assert files(tmp_path) == ["docs/toy.md", "runs/toy/records.jsonl"]
    assert (tmp_path / "docs" / "toy.md").read_text() == "4"
    assert done.out.splitlines()[-1] == str(tmp_path / "docs" / "toy.md")


def test_records_alone_are_enough(command, toy, tmp_path):
    none = command("reproduce", "toy", "--out", tmp_path, "--no-run")
    assert (none.code, files(tmp_path)) == (2, [])
    assert none.err.splitlines()[-1] == "Leave out --no-run to measure it."
    command("reproduce", "toy", "--out", tmp_path, "--seeds", 1, "--no-page", "--jobs", 1)
    before = (tmp_path / "toy" / "records.jsonl").read_text()
    assert command("reproduce", "toy", "--out", tmp_path, "--seeds", 2, "--no-run").code == 0
    assert (tmp_path / "toy" / "records.jsonl").read_text() == before
    assert files(tmp_path) == ["toy/index.html", "toy/records.jsonl", "toy/toy.png"]


def test_a_run_that_fails_is_reported_with_its_config_and_where_to_look(command, toy, tmp_path, monkeypatch):
    plan = toy.plan

    def half_broken(*arguments, **more):
        good, bad = plan(*arguments, **more)
        return [good, type(bad)("toy", bad.config, bad.seeds, toy.raises)]

    monkeypatch.setattr(toy, "plan", half_broken)
    done = command("reproduce", "toy", "--out", tmp_path, "--jobs", 1)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert 'failed    toy {"scale": "quick", "method": "wholes"}, seeds 0, 1: ZeroDivisionError' in done.err
    assert "What the others measured is kept" in done.err.splitlines()[-1]
    log = (tmp_path / "toy" / "failed.log").read_text()
    assert "in raises" in log
    assert len(read_records(tmp_path / "toy" / "records.jsonl")) == 3
    monkeypatch.setattr(toy, "plan", plan)
    assert command("reproduce", "toy", "--out", tmp_path, "--jobs", 1, "--no-page").code == 0
    assert files(tmp_path) == ["toy/records.jsonl"]


def test_a_table_of_the_paper_is_shown_beside_it(command, toy, tmp_path, monkeypatch):
    made = made_records(methods=("vanilla", "laftr_0.1", "laftr_0.5", "tuned_proxy"), seeds=2)
    monkeypatch.setitem(EXPERIMENTS, "table4", "toy_experiment")
    monkeypatch.setattr("setminus_paper.reproduce.execute", lambda *_, **__: made)
    (tmp_path / "table4").mkdir()
    monkeypatch.setattr("setminus.commands.terminal.Console.width", 160)
    done = command("reproduce", "table4", "--out", tmp_path)
    assert done.code == 0, done.err
    assert "Table 4" in done.out
    vanilla = next(line for line in done.out.splitlines() if line.startswith("  Vanilla"))
    assert "84.5, 0.19, 0.20" in vanilla
    assert "±" in vanilla
    assert files(tmp_path) == ["table4/index.html", "table4/table4.png"]


def test_figures_of_a_table_are_drawn_from_its_records(command, toy, tmp_path, monkeypatch):
    made = [made_digits("vanilla"), made_digits("orthogonal_oracle")]
    monkeypatch.setitem(EXPERIMENTS, "table1", "toy_experiment")
    for name in ("fig3", "fig4"):
        monkeypatch.setitem(VIEWS, name, EXPERIMENTS[name])
        monkeypatch.setitem(EXPERIMENTS, name, "toy_experiment")
    monkeypatch.setattr("setminus_paper.reproduce.records_of", lambda name: "table1")
    monkeypatch.setattr("setminus_paper.reproduce.execute", lambda *_, **__: made)
    done = command("reproduce", "fig3", "fig4", "table1", "--out", tmp_path)
    assert done.code == 0, done.err
    names = ("fig3/fig3.png", "fig3/index.html", "fig4/fig4.png", "fig4/index.html")
    assert files(tmp_path) == [*names, "table1/index.html", "table1/table1.png"]
    assert "Figure 3" in done.out
    assert done.out.count(str(tmp_path / "table1" / "records.jsonl")) == 3
    # one experiment is no reason for a page of all
    assert not (tmp_path / "index.html").exists()


def test_help_teaches(command):
    text = " ".join(command("reproduce", "--help").out.split())
    for word in (
        "fig2a",
        "table4",
        "laboratory",
        "--scale",
        "quick|large|paper",
        "--device",
        "Example: setminus reproduce fig2a",
        "after a stop",
    ):
        assert word in text


def test_a_real_claim_in_a_process_of_its_own(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from setminus.commands import main; main()", "reproduce", "theorem1", "--seeds", "1"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "Theorem 1" in done.stdout
    assert files(tmp_path) == [f"runs/theorem1/{name}" for name in ("index.html", "records.jsonl", "theorem1.png")]
    for line in (tmp_path / "runs" / "theorem1" / "records.jsonl").read_text().splitlines():
        assert json.loads(line)["command"] == "setminus reproduce theorem1 --scale quick --seeds 1"
