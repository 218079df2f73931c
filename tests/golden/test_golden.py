"""No number of the commands and of the generated documents changes unnoticed.

`commands.json` holds the numbers that the commands give for the inputs of `inputs.py`, `documents.json` those of the
generated tables in README.md and docs/. Names of keys, rows and pages are free. Write both files anew with

    OPENBLAS_CORETYPE=Haswell OMP_NUM_THREADS=1 python -m tests.golden

only where a number is meant to change, and give the reason in the commit.
"""

import copy
import json
from pathlib import Path

import pytest

from tests.golden import commands, documents, inputs

HERE = Path(__file__).parent
COMMANDS, DOCUMENTS = (json.loads((HERE / name).read_text()) for name in ("commands.json", "documents.json"))
TABLES = [(name, place) for name, found in DOCUMENTS.items() if name != "README.md" for place in range(len(found))]


def tolerance(job):
    """Plain numerics agree to six digits; why trained networks do not is said at `TRAINED`."""
    # the largest difference seen between two machines is 5.4e-3, after four steps
    return 2e-2 if job.startswith(commands.TRAINED) else 1e-6


@pytest.fixture(scope="module")
def tables():
    return [table["rows"] for page in documents.documents() for table in documents.tables(page.read_text())]


def test_commands_give_the_same_numbers(tmp_path):
    pytest.importorskip("torch")
    inputs.write_inputs(tmp_path / "inputs")
    found = commands.run(tmp_path / "inputs", tmp_path / "outputs")
    changes = {job: commands.changes(expected, found[job], tolerance(job)) for job, expected in COMMANDS.items()}
    assert {job: some for job, some in changes.items() if some} == {}


def test_the_models_are_worth_comparing():
    """A model that subtracts nothing would hide a change of the formula."""
    assert all(COMMANDS[f"info {name}"]["strength"] > 0 for name in commands.FITS)


@pytest.mark.parametrize("job", COMMANDS)
def test_a_changed_number_is_detected_and_a_changed_name_is_not(job):
    expected, near = COMMANDS[job], tolerance(job)
    assert commands.changes(expected, expected, near) == []
    assert commands.changes(expected, renamed(expected), near) == []
    numbers = list(leaves(expected))
    for path in numbers[:: max(len(numbers) // 5, 1)]:
        changed = copy.deepcopy(expected)
        *above, last = path
        holder = changed
        for key in above:
            holder = holder[key]
        holder[last] += 10 * near * max(abs(holder[last]), 1e-2)
        assert commands.changes(expected, changed, near), path


def test_a_changed_number_under_a_changed_name_is_detected():
    job = "fit text by group"
    changed = copy.deepcopy(COMMANDS[job])
    changed["metrics"]["models"][1]["audit"]["log_loss"] *= 1.0001
    assert commands.changes(COMMANDS[job], renamed(changed), tolerance(job))


@pytest.mark.parametrize(("name", "place"), TABLES)
def test_documents_keep_the_numbers_of_their_tables(name, place, tables):
    table = DOCUMENTS[name][place]
    held = any(documents.holds_rows(table["rows"], rows) for rows in tables)
    assert held, f"no page holds the numbers of table {place + 1} of {name}, under {table['heading']!r}"


def test_the_readme_shows_no_number_that_the_documents_did_not_have():
    known = {number for found in DOCUMENTS.values() for table in found for row in table["rows"] for number in row}
    shown = documents.tables((documents.ROOT / "README.md").read_text())
    assert shown
    assert {n for table in shown for row in table["rows"] for n in row if "." in n} <= known


@pytest.mark.parametrize(("name", "place"), TABLES)
def test_a_changed_or_missing_number_of_a_table_is_detected(name, place, tables):
    rows = DOCUMENTS[name][place]["rows"]
    row = len(rows) // 2
    for other in ([*rows[row][:-1], "12.345"], rows[row][:-1]):
        changed = [*rows[:row], other, *rows[row + 1 :]]
        others = [changed if documents.holds_rows(rows, one) else one for one in tables]
        assert not any(documents.holds_rows(rows, one) for one in others)
    assert documents.holds_rows(rows, [["7"], *([*one[:1], "0.5", *one[1:]] for one in rows)])


def renamed(value):
    if isinstance(value, dict):
        return {f"new_{key}": renamed(one) for key, one in value.items()}
    return [renamed(one) for one in value] if isinstance(value, list) else value


def leaves(value, path=()):
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(one, dict | list):
            yield from leaves(one, (*path, key))
        else:
            yield (*path, key)
