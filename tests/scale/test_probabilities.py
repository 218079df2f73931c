from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setminus import orthogonalize
from setminus.scale.probabilities import ProbabilityScorer
from setminus.tables.errors import TableError
from setminus.tables.reading import open_table

THREE = ProbabilityScorer(["f0", "f1", "f2"], ["p0", "p1", "p2"], [0.2, 0.3, 0.5])


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    full, principal = rng.dirichlet([1, 2, 3], (2, 50))
    return pa.table({f"{name}{k}": p[:, k] for name, p in (("f", full), ("p", principal)) for k in range(3)})


def stacked(rows, letter):
    return np.column_stack([rows[f"{letter}{k}"].to_numpy() for k in range(3)])


@pytest.mark.parametrize("strength", [0, 0.5, 1])
def test_it_is_the_formula(rows, strength):
    scores = replace(THREE, strength=strength, name="fair").score(rows)
    assert scores.column_names == ["fair_0", "fair_1", "fair_2"]
    expected = orthogonalize(stacked(rows, "f"), stacked(rows, "p"), THREE.prior, strength=strength)
    np.testing.assert_array_equal(np.column_stack([column.to_numpy() for column in scores.columns]), expected)


def test_one_column_is_the_second_class():
    p, q = np.random.default_rng(0).uniform(0.01, 0.99, (2, 20))
    rows = pa.table({"p": p, "p0": 1 - p, "q": q, "q0": 1 - q})
    both = ProbabilityScorer(["p0", "p"], ["q0", "q"], [0.4, 0.6]).score(rows)
    for principal in (["q"], ["q0", "q"]):
        one = ProbabilityScorer(["p"], principal, [0.4, 0.6]).score(rows)
        assert one.column_names == ["orthogonal"]
        np.testing.assert_array_equal(one["orthogonal"], both["orthogonal_1"])


def test_any_kind_of_number(rows):
    narrow = rows.cast(pa.schema([(name, pa.float32()) for name in rows.column_names]))
    assert THREE.score(narrow).schema.types == [pa.float64()] * 3
    sure = pa.table({"p": [1, 0], "q": pa.chunked_array([[0.5], [0.25]])})
    assert ProbabilityScorer(["p"], ["q"], "uniform").score(sure)["orthogonal"].to_pylist() == [1, 0]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"full": ["f0", "f1", "f3"]}, r"no column 'f3'\. It has 'f0', 'f1'"),
        ({"full": "f0"}, "full is 'f0'"),
        ({"principal": []}, r"principal is \[\]"),
        ({"full": ["f0", "f1"]}, "full names 2 classes and principal 3"),
        ({"full": ["f0", "f1", "word"]}, "column 'word' holds string, not probabilities"),
        ({"prior": [0.5, 0.5]}, r"prior has shape \(2,\)"),
        ({"prior": [0.5, 0.5, 0.5]}, "prior has 1 rows that do not sum to 1"),
        ({"prior": "even"}, "prior is 'even'"),
        ({"strength": -1}, "strength is -1"),
        ({"on_violation": "ignore"}, "on_violation is 'ignore'"),
    ],
)
def test_what_cannot_work_is_refused_before_the_work(rows, change, match, tmp_path):
    pq.write_table(rows.append_column("word", pa.array(["x"] * 50)), tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet")
    assert THREE.columns(table) == ["f0", "f1", "f2", "p0", "p1", "p2"]
    with pytest.raises(TableError, match=match):
        replace(THREE, **change).columns(table)
