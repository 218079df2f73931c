import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setminus.errors import UserError
from setminus.scale.drawing import draw_rows, gather
from setminus.tables.reading import open_table

N = 3000


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(0)
    label = np.array(["no"] * N, dtype=object)
    label[2000:] = "yes"  # sorted, as files often are
    group = np.array(["a", "b", None], dtype=object)[rng.choice(3, N, p=[0.9, 0.08, 0.02])]
    rows = pa.table({"id": np.arange(N), "label": pa.array(label), "group": pa.array(group)})
    path = tmp_path_factory.mktemp("drawing") / "rows.parquet"
    pq.write_table(rows, path, row_group_size=700)
    return open_table(path)


def test_samples_are_disjoint_and_have_their_share_of_every_combination(table):
    rows = table.read()
    cells = np.array(
        [f"{y} {z}" for y, z in zip(*(rows[name].to_pylist() for name in ("label", "group")), strict=True)]
    )
    samples = draw_rows(table, ["label", "group"], [600, 300, 900])
    everyone = np.concatenate(samples)
    assert len(np.unique(everyone)) == len(everyone)
    for sample, size in zip(samples, (600, 300, 900), strict=True):
        assert (np.diff(sample) > 0).all() and sample.min() >= 0 and sample.max() < N
        for cell in np.unique(cells):
            assert abs((cells[sample] == cell).sum() - size * (cells == cell).mean()) <= 1
    # negative control: without strata the shares differ by chance
    loose = np.random.default_rng(0).choice(N, 600, replace=False)
    assert max(abs((cells[loose] == cell).sum() - 600 * (cells == cell).mean()) for cell in np.unique(cells)) > 1


def test_every_row_is_as_likely(table):
    drawn = np.zeros((2, N))
    for seed in range(200):
        for k, sample in enumerate(draw_rows(table, ["label"], [300, 600], seed)):
            drawn[k, sample] += 1
    for counts, share in zip(drawn, (0.1, 0.2), strict=True):
        sd = np.sqrt(200 * share * (1 - share))
        assert abs(counts - 200 * share).max() < 5 * sd
        # and in every fifth of the file
        assert abs(counts.reshape(5, -1).sum(axis=1) / (N / 5) - 200 * share).max() < 5 * sd / np.sqrt(N / 5)
        assert counts.std() == pytest.approx(sd, rel=0.1)


def test_a_seed_is_a_sample(table):
    first, again, other = (draw_rows(table, ["label"], [100], seed)[0] for seed in (0, 0, 1))
    assert (first == again).all() and (first != other).any()


def test_all_rows_may_be_drawn(table):
    samples = draw_rows(table, ["label"], [N // 3, N - N // 3])
    assert abs(sum(map(len, samples)) - N) <= 2
    assert len(np.unique(np.concatenate(samples))) == sum(map(len, samples))


def test_rows_are_gathered_in_their_order(table):
    places = [np.array([0, 699, 700, 2999]), np.array([5]), np.array([], dtype=np.int64)]
    rows = table.read()
    for found, place in zip(gather(table, places), places, strict=True):
        assert found.to_pylist() == rows.take(place).to_pylist()


def test_columns_of_too_many_values_are_refused(table, monkeypatch):
    monkeypatch.setattr("setminus.scale.cells.MAX_CELLS", 1000)
    with pytest.raises(UserError, match=r"rows\.parquet has more than 1,000 combinations of id"):
        draw_rows(table, ["id"], [10])
