"""What an error says, in two parts."""

import pytest

from setminus.tables.errors import TableError, check_names, check_unique, shown


@pytest.mark.parametrize(
    ("said", "problem", "advice"),
    [
        ("prior is None: pass p(y).", "prior is None", "Pass p(y)."),
        ("...no: go on: there.", "...no", "Go on: there."),
        ("it is empty.", "it is empty", "Mend the values, and try again."),
    ],
)
def test_an_error_of_the_library_becomes_two_parts(said, problem, advice):
    error = TableError.of(ValueError(said))
    assert (error.problem, error.advice) == (problem, advice)
    assert TableError.of(error) is error


def test_a_table_of_many_columns_names_twelve_of_them():
    names = [f"c{k:02}" for k in range(14)]
    with pytest.raises(TableError) as caught:
        check_names(["something else"], names, "t.csv")
    assert caught.value.problem == "t.csv has no column 'something else'"
    assert caught.value.advice == f"It has {', '.join(map(repr, names[:12]))} and 2 more."
    with pytest.raises(TableError) as caught:
        check_names(["something else"], names[:12], "t.csv", what="class")
    assert caught.value.problem == "t.csv has no class 'something else'"
    assert caught.value.advice == f"It has {', '.join(map(repr, names[:12]))}."


def test_case_and_spaces_do_not_hide_the_nearest_name():
    with pytest.raises(TableError, match=r"Did you mean ' Income'\?"):
        check_names(["INCOME "], ["age", " Income"], "t.csv")


def test_the_most_frequent_of_repeated_names_is_told():
    check_unique(["a", "b"], "t.csv")
    check_unique([], "t.csv")
    with pytest.raises(TableError, match=r"t\.csv has 3 columns called 'b'\. Give each .* name of its own, please\."):
        check_unique(["a", "b", "a", "b", "b"], "t.csv", ", please")


def test_what_is_shown_is_cut_at_sixty_characters():
    assert shown("x" * 60) == repr("x" * 60)
    assert shown("x" * 61) == repr("x" * 60 + "...")
