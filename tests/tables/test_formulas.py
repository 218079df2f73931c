"""Text that a spreadsheet would run gets an apostrophe, which can be taken away again."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setminus.tables.formulas import neutralized, original_words
from setminus.tables.reading import open_table
from setminus.tables.writing import writing

words = st.text(alphabet="'=+-@\t\r\n\uff1d1.,e a", max_size=8)


def written(column):
    return neutralized(pa.table({"c": column}))["c"].to_pylist()


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ('=HYPERLINK("http://x","y")', '\'=HYPERLINK("http://x","y")'),
        ("+1+1", "'+1+1"),
        ("-1+1", "'-1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-", "'-"),
        ("+49 170", "'+49 170"),
        ("-3.5", "-3.5"),
        ("+7", "+7"),
        ("-1,5", "-1,5"),
        ("-1e-3", "-1e-3"),
        ("'=1", "''=1"),
        ("'quoted'", "'quoted'"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_what_a_spreadsheet_would_run_is_set_apart(text, safe):
    assert written([text, None, "x"]) == [safe, None, "x"]
    assert list(neutralized(pa.table({text: [1]})).column_names) == [safe]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_kind_of_text(kind):
    array = pa.array(["=1", "x"], kind)
    assert written(array) == ["'=1", "x"]
    if kind != pa.string_view():
        assert written(array.dictionary_encode()) == ["'=1", "x"]
    assert written(pa.array([-1, 2])) == [-1, 2]


@given(texts=st.lists(words, min_size=1, max_size=10))
def test_the_way_back_is_exact(texts):
    safe = written(texts)
    assert len({*safe}) == len({*texts})
    # a word that nobody knows says that the column is not as it was
    back = original_words([*safe, "'=never seen"], set())
    assert [back[word] for word in safe] == texts


def test_words_that_are_known_stay():
    assert original_words(["'=a", "b"], ["'=a", "b", "=a"]) == {"'=a": "'=a", "b": "b"}
    assert original_words(["'=a", "b"], ["=a", "b"]) == {"'=a": "=a", "b": "b"}
    assert original_words(["'-3.5"], []) == {"'-3.5": "-3.5"}


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.arrow"])
def test_a_file_of_formulas(name, tmp_path):
    # in a later block only, and in a column of codes, which an Arrow file wants to be the same in every block
    blocks = [pa.array(["x", "y"]), pa.array(["=1", "y"])]
    if name != "t.arrow":
        blocks = [block.dictionary_encode() for block in blocks]
    for neutralize in (False, True):
        with writing(tmp_path / name, neutralize=neutralize) as writer:
            for block in blocks:
                writer.write(pa.table({"@c": block, "n": [-1.5, 2]}))
        table = open_table(tmp_path / name, header=True)
        safe = neutralize and name.startswith(("t.csv", "t.tsv"))
        assert table.names == ("'@c" if safe else "@c", "n")
        assert table.read().column(0).to_pylist() == ["x", "y", "'=1" if safe else "=1", "y"]
        assert table.read()["n"].to_pylist() == [-1.5, 2] * 2
