"""What progress looks like: lines that are drawn over on a terminal, and a few plain lines elsewhere."""

import inspect
import io
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import MISSING, dataclass, fields
from importlib import import_module
from pathlib import Path

import pytest

from setminus.commands import terminal as module
from setminus.commands.terminal import Display, check_folder, check_outputs, configured
from setminus.errors import UserError
from setminus.progress import listen, tracked

REDRAWN = 0.3
"""Seconds after which a terminal shows what was reported."""


@pytest.fixture(autouse=True)
def draws(monkeypatch):
    """A terminal that can draw over its lines."""
    monkeypatch.setenv("TERM", "xterm")


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test sets."""
    now = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    return now


def shown(work, terminal=False, quiet=False):
    display = Display(quiet)
    display.progress.file = io.StringIO()
    display.progress._force_terminal = display.progress.is_interactive = terminal
    display.progress.width = 120
    with listen(display):
        work()
    return display.progress.file.getvalue()


def test_without_a_terminal_a_line_every_ten_seconds_and_one_at_the_end(clock):
    def work():
        with tracked("adapt"), tracked("train", total=40, unit="steps") as steps:
            for _ in range(40):
                clock[0] += 1
                steps.advance()

    assert shown(work).splitlines() == [
        "  10.0 s  adapt: train, 10 of 40 steps, about 30 s left",
        "  20.0 s  adapt: train, 20 of 40 steps, about 20 s left",
        "  30.0 s  adapt: train, 30 of 40 steps, about 10 s left",
        "  40.0 s  adapt: train, 40 of 40 steps",
        "  40.0 s  adapt",
    ]
    assert shown(work, quiet=True) == shown(work, quiet=True, terminal=True) == ""


@pytest.mark.parametrize("terminal", [False, True])
def test_rows_are_shown_with_their_rate(clock, terminal):
    def work():
        with tracked("score", total=5_000_000, unit="rows") as rows:
            clock[0] += 20
            rows.advance(2_000_000)

    drawn = shown(work, terminal)
    assert "2,000,000 of 5,000,000 rows" in drawn and "100,000 rows/s" in drawn
    assert terminal or "about 30 s left" in drawn


def test_what_failed_has_no_time():
    def work():
        with pytest.raises(ValueError), tracked("fit"):
            raise ValueError

    assert shown(work) == ""
    assert " s  fit" not in shown(work, terminal=True)


def test_a_terminal_shows_each_piece_of_work_with_its_count_and_losses():
    def work():
        with tracked("outer"), tracked("train", total=40, unit="steps") as steps:
            steps.advance(40, "critic 0.25")
            time.sleep(REDRAWN)

    drawn = shown(work, terminal=True)
    for part in ("outer", "train", "40 of 40 steps", "critic 0.25", " s  outer"):
        assert part in drawn


@pytest.mark.parametrize("name", ["[/b]", "[red]loss", "a [b", "a\x1b[2Kb"])
@pytest.mark.parametrize("terminal", [False, True])
def test_names_are_text(name, terminal):
    def work():
        with tracked(name, total=1, unit=name) as one:
            one.advance(detail=name)

    drawn = shown(work, terminal)
    assert name.replace("\x1b", "\\x1b") in drawn
    assert terminal or "\x1b" not in drawn


def test_deep_work_is_left_out():
    def work(depth=0):
        with tracked(f"level {depth}", total=1) as one:
            if depth < module.MAX_LINES:
                work(depth + 1)
            one.advance()
            time.sleep(REDRAWN if depth == module.MAX_LINES else 0)

    drawn = shown(work, terminal=True)
    assert f"level {module.MAX_LINES - 1}" in drawn
    assert f"level {module.MAX_LINES}" not in drawn


COMMAND = [sys.executable, "-c", "from setminus.commands import main; main()"]


@pytest.fixture
def table(people, tmp_path):
    path = tmp_path / "people.csv"
    people.to_csv(path, index=False)
    return path


@pytest.fixture
def scored(people, tmp_path):
    path = tmp_path / "scored.csv"
    people.assign(p=(people["skill"] > 0) * 0.5 + 0.2).to_csv(path, index=False)
    return path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


FIT = ("--label", "income", "--ignore", "sex")


def refused(done, *words):
    assert done.code == 2
    assert "Traceback" not in done.err
    for word in words:
        assert word in done.err


@pytest.mark.parametrize("name", ["model.report.html", "model.audit.json"])
def test_a_table_beside_the_model_is_not_overwritten_by_the_page(command, table, tmp_path, name):
    odd = table.rename(tmp_path / name)
    before = contents(tmp_path)
    refused(command("fit", odd, *FIT, "--out", tmp_path / "model.skops"), "is an input", name)
    refused(command("adapt", odd, odd, "--label", "income", "--out", odd), "is an input")
    assert contents(tmp_path) == before


def test_a_link_to_the_table_is_the_table(command, table, tmp_path):
    before = table.read_bytes()
    (tmp_path / "link.csv").symlink_to(table)
    os.link(table, tmp_path / "hard.skops")
    for out in ("link.csv", "hard.skops"):
        refused(command("fit", table, *FIT, "--out", tmp_path / out), "is an input")
    assert table.read_bytes() == before


def test_an_audit_and_its_page_are_two_files(command, scored, tmp_path):
    audit = ("audit", scored, *FIT, "--score", "p", "--positive", "high")
    refused(command(*audit, "--out", tmp_path / "x", "--page", tmp_path / "x"), "is both", "--out, --page")
    refused(command(*audit, "--page", scored), "is an input")
    assert not (tmp_path / "x").exists()
    assert command(*audit, "--out", tmp_path / "x", "--page", tmp_path / "y").code == 0
    assert (tmp_path / "x").read_text().startswith("{")
    assert (tmp_path / "y").read_text().lstrip().lower().startswith("<!doctype")


def test_records_are_not_overwritten_by_their_page(command, scored, tmp_path):
    record = tmp_path / "audit.json"
    audit = ("audit", scored, *FIT, "--score", "p", "--positive", "high")
    assert command(*audit, "--out", record).code == 0
    before = record.read_bytes()
    refused(command("report", record, "--out", record), "is an input")
    refused(command("report", tmp_path, "--out", record), "is an input")
    assert record.read_bytes() == before
    assert command("report", record).code == 0


@pytest.mark.parametrize("value", ["inf", "nan", "-1"])
def test_a_tolerance_that_bounds_nothing_costs_no_model(command, table, tmp_path, value):
    (tmp_path / "model.skops").write_text("old")
    done = command("fit", table, *FIT, "--out", tmp_path / "model.skops", "--tolerance", value)
    refused(done, "tolerance")
    assert (tmp_path / "model.skops").read_text() == "old"


def test_an_audit_against_infinity_is_refused(command, scored):
    audit = ("audit", scored, *FIT, "--score", "p", "--positive", "high")
    refused(command(*audit, "--fail-above", "nan"), "fail-above")
    assert command(*audit, "--fail-above", "0").code == 1


@pytest.mark.parametrize("option", ["--score", "--prediction"])
def test_the_label_does_not_judge_itself(command, scored, option):
    common = ("audit", scored, *FIT, "--positive", "high")
    refused(command(*common, "--score", "p", option, "income"), "is both the label and the")


@pytest.mark.parametrize("name", ["fit", "audit", "monitor", "adapt"])
def test_every_field_of_a_config_is_an_option_with_its_default(name):
    """A default that differs between the command and Python would be a second truth."""
    module = import_module(f"setminus.commands.{name}")
    kind = getattr(module, f"{name.capitalize()}Config")
    options = {one.name: one.default for one in inspect.signature(getattr(module, name)).parameters.values()}
    options |= {"trusted": options.get("trust")}
    given = {field: "x" if value is inspect.Parameter.empty else value for field, value in options.items()}
    config = configured(kind, {**given, "ignore": ["sex"]})
    assert getattr(config, "ignore", ("sex",)) == ("sex",)
    for one in fields(kind):
        assert one.default is MISSING or getattr(config, one.name) == one.default, one.name


def test_a_config_holds_plain_values():
    @dataclass
    class Config:
        table: str
        drop: tuple[str, ...] = ()
        test: str | None = None

    assert configured(Config, {"table": Path("t.csv"), "drop": ["a"], "test": None}) == Config("t.csv", ("a",))
    assert configured(Config, {"table": Path("t.csv"), "drop": None, "test": None, "more": 1}) == Config("t.csv")


def test_outputs_are_checked_against_each_other_and_the_inputs(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    check_outputs({"a": one, "b": two}, [tmp_path / "three"])
    with pytest.raises(UserError, match="is both the a and the b"):
        check_outputs({"a": one, "b": tmp_path / "x" / ".." / "one"})
    with pytest.raises(UserError, match="is a folder"):
        check_outputs({"a": tmp_path})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, "table") for name in ("test.csv", "TEST.TSV", "test.csv.gz", "test.parquet")),
        *(("page.html", "page"), ("audit.json", "record"), ("model.skops", "model")),
    ],
)
def test_no_output_takes_the_name_of_another_kind(tmp_path, name, kind):
    path = tmp_path / name
    for own in ("model", "page", "record", "table"):
        if own == kind:
            check_outputs({own: path})
        else:
            with pytest.raises(UserError, match=f"has the name of a {kind}, and would hold a {own}"):
                check_outputs({own: path})
    check_outputs({"model": tmp_path / f"{name}.skops", "anything": path, "page": None}, [None])


def test_the_write_test_follows_no_link_and_leaves_nothing(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / ".setminus-write-test").symlink_to(victim)
    check_folder(folder, "--out")
    assert victim.read_text() == "precious"
    assert [path.name for path in folder.iterdir()] == [".setminus-write-test"]


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 3 MB, where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "setminus-test", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_keeps_the_old_model_with_its_page(command, table, small_disk):
    fit = ("fit", table, *FIT, "--full", "logistic", "--out", small_disk / "model.skops")
    names = ["model.audit.json", "model.report.html", "model.skops"]
    for name in names:
        (small_disk / name).write_text("old")
    # the page alone takes more than is left
    refused(command(*fit, "--force"), "No space left")
    assert contents(small_disk) == dict.fromkeys(names, b"old")
    assert sorted(path.name for path in small_disk.iterdir()) == names


def test_nothing_is_overwritten_without_being_told(command, table, scored, tmp_path):
    fit = ("fit", table, *FIT, "--full", "logistic")
    audit = ("audit", scored, *FIT, "--score", "p", "--positive", "high")
    subtract = ("apply", scored, "--full", "p", "--principal", "p", "--prior", "uniform")
    for name, run in {
        "one.skops": (*fit, "--out", tmp_path / "one.skops"),
        "two.audit.json": (*fit, "--out", tmp_path / "two.skops"),
        "three.report.html": (*fit, "--out", tmp_path / "three.skops"),
        "four.csv": (*subtract, "--out", tmp_path / "four.csv"),
        "five.json": (*audit, "--out", tmp_path / "five.json"),
        "six.html": (*audit, "--page", tmp_path / "six.html"),
        "m.adaptation.json": ("adapt", table, table, "--label", "income", "--out", tmp_path / "m.skops"),
    }.items():
        (tmp_path / name).write_text("evidence")
        refused(command(*run), f"{tmp_path / name} exists, and would be overwritten by", "--force")
        assert (tmp_path / name).read_text() == "evidence"
    done = command(*audit, "--out", tmp_path / "five.json", "--force")
    assert done.code == 0, done.err
    assert (tmp_path / "five.json").read_text() != "evidence"


def test_two_models_in_a_folder_keep_their_own_evidence(command, table, tmp_path):
    for name, tolerance in (("strict", 0.01), ("loose", 0.5)):
        more = ("--full", "logistic", "--tolerance", tolerance, "--out", tmp_path / f"{name}.skops")
        assert command("fit", table, *FIT, *more, "--quiet").code == 0
    kept = {name: json.loads((tmp_path / f"{name}.audit.json").read_text()) for name in ("strict", "loose")}
    assert {name: record["config"]["tolerance"] for name, record in kept.items()} == {"strict": 0.01, "loose": 0.5}
    assert command("report", tmp_path).code == 0
    assert (tmp_path / "report.html").read_text().count("<article") == 2


def audit_into(command_line, scored, *more):
    shell = " ".join([*(f"'{word}'" for word in COMMAND), "audit", f"'{scored}'", *FIT, "--score p --positive high"])
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {shell} {' '.join(more)} {command_line}"], capture_output=True, text=True
    )


@pytest.mark.skipif(os.name != "posix", reason="pipes of a shell")
def test_a_reader_that_goes_away_does_not_change_the_verdict(scored):
    assert audit_into("| true", scored, "--json").returncode == 0
    done = audit_into("| true", scored, "--json", "--fail-above 0")
    assert done.returncode == 1
    assert "is above 0" in done.stderr
    assert "Broken" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_cannot_be_printed_is_no_success(scored):
    done = audit_into("> /dev/full", scored, "--json")
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


NASTY = "\x1b[2J\x1b]0;owned\x07\r\u202e\x9b31m"


def test_names_from_a_table_cannot_drive_the_terminal(command, people, tmp_path):
    odd = people.rename(columns={"job": f"job{NASTY}"}).assign(
        sex=people["sex"].replace("m", f"m{NASTY}"), income=people["income"].replace("high", f"high{NASTY}")
    )
    path, model = tmp_path / "odd.parquet", tmp_path / "model.skops"
    odd.assign(p=0.2 + 0.5 * (people["skill"] > 0)).to_parquet(path)
    scored = tmp_path / "scored.parquet"
    runs = [
        ("fit", path, *FIT, "--full", "logistic", "--out", model),
        ("fit", path, *FIT, "--full", "logistic", "--out", model, "--json"),
        ("info", model),
        ("info", model, "--json"),
        ("apply", model, path, "--out", scored),
        ("audit", scored, *FIT),
        ("audit", scored, *FIT, "--json"),
        ("audit", path, "--label", "incom", "--ignore", "sex"),
        ("fit", path, *FIT, "--out", model, "--positive", "hi"),
    ]
    for arguments in runs:
        done = command(*arguments)
        shown = done.out + done.err
        assert "Traceback" not in shown
        assert not {"\x1b", "\x07", "\r", "\x9b", "\u202e"} & {*shown}, arguments
    assert [command(*run).code for run in runs[-2:]] == [2, 2]


def test_an_output_may_be_a_link_but_not_to_itself(tmp_path):
    link, loop = tmp_path / "link", tmp_path / "loop"
    link.symlink_to("new/file")
    loop.symlink_to("loop")
    check_outputs({"a": link})
    assert (tmp_path / "new").is_dir()
    with pytest.raises(UserError, match="is a link that leads to itself"):
        check_outputs({"a": loop})


def test_many_columns_that_are_alike_share_a_line(capsys):
    def column(name, kind="number", use="as a number"):
        return {"name": name, "kind": kind, "missing": 0.0, "use": use, "warning": None}

    columns = [column(f"pixel {k}") for k in range(800)] + [column("id", "identifier", "left out: it names rows")]
    Display().columns({"columns": columns, "notes": []})
    shown = capsys.readouterr().out.strip().splitlines()
    assert len(shown) == 3 and "id" in shown[1] and "pixel 0 and 799 more" in shown[2]
    Display().columns({"columns": columns[:3], "notes": []})
    assert [line.split("  ")[0] for line in capsys.readouterr().out.strip().splitlines()[1:]] == [
        "pixel 0",
        "pixel 1",
        "pixel 2",
    ]
