"""The page of records that somebody else wrote: it is made, or the error names the file."""

import json

import pytest

from setminus.commands.report import record_files, write_records_page
from setminus.errors import UserError
from setminus.records import RecordError
from tests.made_translation import made_translation


@pytest.fixture
def files(tmp_path):
    """Two folders with a record each, of which the second is to be changed."""
    for name in ("good", "changed"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "audit.json").write_text(json.dumps(made_translation("keep")))
    return tmp_path


def change(files, *keys, to=None):
    record = holder = made_translation("keep")
    for key in keys[:-1]:
        holder = holder[key]
    if to is None:
        del holder[keys[-1]]
    else:
        holder[keys[-1]] = to
    # 1e400 is JSON, and no number that a browser knows
    text = json.dumps(record).replace("Infinity", "1e400")
    (files / "changed" / "audit.json").write_text(text)


def written(folder):
    return write_records_page(record_files(folder), folder / "page.html")


def test_records_as_they_should_be(files):
    assert written(files).read_text().count("<article") == 2


@pytest.mark.parametrize(
    ("keys", "to"),
    [
        (["task", "images"], None),
        (["metrics"], [1]),
        (["seconds"], "long"),
        (["metrics", "directions", "a_to_b", "changed"], "all"),
        (["metrics", "directions", "a_to_b", "changed"], float("inf")),
        (["metrics", "directions", "a_to_b", "changed"], 10**400),
        (["steps"], 3),
    ],
    ids=["missing", "list", "text", "text in a number's place", "infinite", "too large", "number"],
)
def test_a_value_that_is_missing_or_of_another_kind(files, keys, to):
    change(files, *keys, to=to)
    with pytest.raises(
        UserError, match=r"the page cannot show .*changed/audit.json', where a value is missing"
    ) as caught:
        written(files)
    assert "good" not in str(caught.value)
    assert not (files / "page.html").exists()


@pytest.mark.parametrize(
    ("keys", "to", "says"),
    [(["job"], "cooking", "no section shows the job cooking"), (["metrics", "samples", "a"], "x", "no base64|no PNG")],
)
def test_what_the_page_refuses_for_a_reason_keeps_the_reason(files, keys, to, says):
    change(files, *keys, to=to)
    with pytest.raises(RecordError, match=says):
        written(files)
