from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from setminus.datasets import tabular
from setminus.datasets.sources import DataUnavailableError, available, read_bytes
from setminus.datasets.tabular import german_table, load_adult, load_german

pytestmark = pytest.mark.data
# a second is saved each time that the files are not read again
adult_table = cache(tabular.adult_table)


@pytest.fixture(autouse=True, scope="module")
def real_data():
    try:
        for source in (source for source in available() if source.path.startswith("tabular/")):
            read_bytes(source.name)
    except DataUnavailableError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tabular, "adult_table", adult_table)
        yield
    adult_table.cache_clear()


@pytest.fixture(scope="module")
def adult():
    return load_adult()


def test_adult_has_the_counts_of_the_paper(adult):
    train, test = adult
    assert train.x.shape == (30_162, 102)
    assert test.x.shape == (15_060, 102)
    assert train.feature_names == test.feature_names
    assert set(np.unique(train.x)) == set(np.unique(test.x)) == {0.0, 1.0}
    assert (train.y.sum(), test.y.sum()) == (7_508, 3_700)
    assert np.sum(train.z1 == "Male") == 20_380
    assert set(test.z1) == {"Female", "Male"}


def test_sex_is_not_among_the_features(adult):
    def says_sex(split):
        # columns that take one value for men and another one for everyone else
        male = split.z1 == "Male"
        return [
            name
            for name, column in zip(split.feature_names, split.x.T, strict=True)
            if np.ptp(column[male]) == np.ptp(column[~male]) == 0 and column[male][0] != column[~male][0]
        ]

    for split in (*adult, *load_adult(encoding="raw")):
        assert not says_sex(split)
        assert not [name for name in split.feature_names if name.startswith("sex")]
    # the negative control
    _, test = adult
    x = np.column_stack([test.x, test.z1 == "Male"])
    assert says_sex(replace(test, x=x, feature_names=(*test.feature_names, "sex"))) == ["sex"]


def test_onehot_is_the_table_row_by_row(adult):
    _, test = adult
    train_table, table = adult_table("train", drop_missing=True), adult_table("test", drop_missing=True)
    medians = {name: np.median(values) for name, values in train_table.items() if values.dtype.kind == "f"}
    for row in (0, 7_000, 15_059):
        on = {name for name, value in zip(test.feature_names, test.x[row], strict=True) if value}
        expected = {f"{name}={values[row]}" for name, values in table.items() if values.dtype.kind == "U"}
        expected -= {f"sex={table['sex'][row]}", f"income={table['income'][row]}"}
        expected |= {f"{name}>{median:g}" for name, median in medians.items() if table[name][row] > median}
        assert on == expected


def test_raw_keeps_every_row_and_marks_what_is_missing():
    train, test = load_adult(encoding="raw")
    assert train.x.shape == (32_561, 13)
    assert test.x.shape == (16_281, 13)
    assert train.categorical == (
        "workclass",
        "education",
        "marital-status",
        "occupation",
        "relationship",
        "race",
        "native-country",
    )
    for split, part in ((train, "train"), (test, "test")):
        table = adult_table(part)
        for name, column in zip(split.feature_names, split.x.T, strict=True):
            if name in split.categorical:
                missing = np.isnan(column)
                decoded = np.array(split.categories[name])[column[~missing].astype(int)]
                np.testing.assert_array_equal(decoded, table[name][~missing])
                np.testing.assert_array_equal(missing, table[name] == "?")
            else:
                np.testing.assert_array_equal(column, table[name])
    assert np.isnan(train.x).any(axis=1).sum() == 32_561 - 30_162


def test_missing_rows_can_be_dropped_or_kept_under_both_encodings(adult):
    dropped, _ = load_adult(encoding="raw", drop_missing=True)
    assert len(dropped) == 30_162
    assert not np.isnan(dropped.x).any()
    kept, _ = load_adult(encoding="onehot", drop_missing=False)
    workclass = [name.startswith("workclass=") for name in kept.feature_names]
    np.testing.assert_array_equal(kept.x[:, workclass].sum(axis=1), adult_table()["workclass"] != "?")


def test_the_plain_table_becomes_a_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(adult_table("test"))
    assert frame.shape == (16_281, 15)
    assert set(frame["income"]) == set(adult_table("train")["income"]) == {"<=50K", ">50K"}
    assert frame["hours-per-week"].between(1, 99).all()


def test_german_has_the_counts_of_the_paper():
    split = load_german()
    assert split.x.shape == (1_000, 58)
    assert split.y.sum() == 300
    assert set(split.z1) == {"age<=33", "age>33"}
    assert np.sum(split.z1 == "age>33") == 484
    assert not [name for name in split.feature_names if name.startswith("age")]


def test_german_raw_is_the_table():
    split, table = load_german(encoding="raw", seed=None), german_table()
    assert split.x.shape == (1_000, 19)
    np.testing.assert_array_equal(split.x[:, split.feature_names.index("amount")], table["amount"])
    codes = split.x[:, split.feature_names.index("purpose")].astype(int)
    np.testing.assert_array_equal(np.array(split.categories["purpose"])[codes], table["purpose"])
    np.testing.assert_array_equal(split.y == 1, table["credit"] == "2")


def test_the_seed_of_german_only_orders_the_rows():
    plain, first, again, other = (load_german(seed=seed) for seed in (None, 0, 0, 1))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.array_equal(first.x, other.x)

    def rows(split):
        return sorted(map(tuple, np.column_stack([split.x, split.y, split.z1 == "age>33"])))

    assert rows(first) == rows(plain)


def test_unknown_choices_are_refused():
    with pytest.raises(ValueError, match="encoding is 'dummy': it must be 'onehot' or 'raw'"):
        load_german(encoding="dummy")
    with pytest.raises(ValueError, match="part is 'dev': it must be 'train' or 'test'"):
        adult_table("dev")
