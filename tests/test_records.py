"""A record that was written is read back, whatever happened to the file in between."""

import json
import logging
import subprocess
import sys

import numpy as np
import pytest

from setminus.records import append_record, read_record, read_records, versions, write_json


def record(name="toy", **more):
    return {
        "name": name,
        "config": {"strength": 1.0},
        "seed": 0,
        "versions": versions(),
        "metrics": {"accuracy": 0.9},
        "seconds": 0.5,
        **more,
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs" / "toy" / "records.jsonl"


def test_what_is_written_is_read_back_in_order(path):
    written = [record("first"), record("second", note="line\nbreak, \u2028, <b> and ü")]
    for one in written:
        append_record(path, one)
    assert read_records(path) == written
    assert path.read_text().count("\n") == 2


def test_numpy_values_become_plain_ones(path):
    append_record(path, record(metrics={"curve": np.array([0.5, 1.0]), "n": np.int64(3)}))
    assert read_records(path)[0]["metrics"] == {"curve": [0.5, 1.0], "n": 3}


def test_a_torn_last_line_is_ignored_and_said_so(path, caplog):
    append_record(path, record("whole"))
    line = json.dumps(record("torn"))
    for cut in (1, len(line) // 2, len(line) - 1):
        path.write_text(json.dumps(record("whole")) + "\n" + line[:cut])
        with caplog.at_level(logging.WARNING):
            assert [read["name"] for read in read_records(path)] == ["whole"]
        assert "line 2" in caplog.text
        caplog.clear()


def test_a_record_after_a_torn_line_does_not_break_the_file(path):
    append_record(path, record("whole"))
    with path.open("a") as file:
        file.write('{"name": "torn", "conf')
    append_record(path, record("after"))
    assert [read["name"] for read in read_records(path)] == ["whole", "after"]


def test_a_whole_last_line_without_line_break_is_kept(path):
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record("by hand")))
    append_record(path, record("after"))
    assert [read["name"] for read in read_records(path)] == ["by hand", "after"]


@pytest.mark.parametrize(
    "broken",
    [
        '{"name": ',
        "",
        "3",
        '{"name": "table3"}',
        "[" * 100_000,
        json.dumps(record(metrics={"accuracy": float("nan")})),
        json.dumps(record(metrics=[0.9])),
        json.dumps(record(config=None)),
        f'{{"seed": {"1" * 5000}}}',
    ],
    ids=["cut", "empty", "number", "keys", "deep", "nan", "list", "null", "long number"],
)
def test_a_corrupt_line_that_is_not_the_last_is_refused(path, broken):
    path.parent.mkdir(parents=True)
    path.write_text(f"{json.dumps(record())}\n{broken}\n{json.dumps(record())}\n")
    with pytest.raises(ValueError, match="line 2 is no record"):
        read_records(path)


def test_bytes_that_are_no_text_are_refused(path):
    path.parent.mkdir(parents=True)
    path.write_bytes(json.dumps(record()).encode("utf-16"))
    for read in (read_records, read_record):
        with pytest.raises(ValueError, match=r"no text in UTF-8: restore"):
            read(path)


def test_one_record_in_a_file_of_its_own(path):
    path.parent.mkdir(parents=True)
    write_json(path, record(job="audit"))
    assert read_record(path) == record(job="audit")
    for broken in ("", "[]", '{"job": NaN}', json.dumps(record())):
        path.write_text(broken)
        with pytest.raises(ValueError, match="is no record: expected what"):
            read_record(path)


def test_a_run_killed_while_it_writes_leaves_whole_lines(path):
    code = (
        "import sys\nfrom setminus.records import append_record\n"
        "record = dict(name='x' * 5000, config={}, seed=0, versions={}, metrics={}, seconds=0)\n"
        "print('ready', flush=True)\n"
        "while True: append_record(sys.argv[1], record)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True) as run:
        run.stdout.readline()
        while not path.exists() or path.stat().st_size < 50_000:
            assert run.poll() is None
        run.kill()
    append_record(path, record("after"))
    names = [read["name"] for read in read_records(path)]
    assert len(names) > 5
    assert set(names) == {"x" * 5000, "after"}


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"name": "toy"}, "has no config, seed, versions, metrics, seconds"),
        (record(metrics={"accuracy": float("nan")}), "NaN or an infinity"),
    ],
)
def test_what_no_reader_could_use_is_not_written(path, bad, says):
    with pytest.raises(ValueError, match=says):
        append_record(path, bad)
    assert not path.exists()


def test_what_is_no_json_is_not_written(path):
    with pytest.raises(TypeError, match=r"object.* cannot be written as JSON"):
        append_record(path, record(model=object()))


def test_versions_name_what_is_missing():
    assert versions("no-such-package")["no-such-package"] == "not installed"
    assert versions()["numpy"] == np.__version__


def test_what_must_not_be_passed_on_is_kept_beside(path):
    append_record(path, record(metrics={"accuracy": 0.9, "beside": {"samples": "a face"}}))
    assert "a face" not in path.read_text()
    assert read_records(path)[0]["metrics"] == {"accuracy": 0.9, "samples": "a face"}
    (kept,) = (path.parent / "beside").iterdir()
    kept.unlink()
    assert read_records(path)[0]["metrics"] == {"accuracy": 0.9}


@pytest.mark.parametrize("mark", ["../secret", "0123456789abcdeF", "", 7])
def test_a_record_from_elsewhere_leads_to_no_other_file(path, mark):
    append_record(path, record(beside=mark))
    (path.parent / "secret.json").write_text('{"accuracy": 1.0}')
    assert read_records(path)[0]["metrics"] == {"accuracy": 0.9}
