"""The cost of training beside scikit-learn's: equal steps, and ratios to the same run."""

import pytest

pytest.importorskip("torch")

from benchmarks import adapter_speed
from setminus.records import read_records


def test_steps_and_batches_are_equal_and_ratios_are_to_the_same_run(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(adapter_speed, "METHODS", ("auto", "vada_orthogonal"))
    path = tmp_path / "records.jsonl"
    metrics = adapter_speed.run(path, repeats=1, epochs=1)
    assert [*metrics] == [*adapter_speed.SHIFTS]
    for found in metrics.values():
        base = found["MLPClassifier"]
        # 31 batches of 64 rows and one of 16
        assert base["steps"] == 32
        assert found["vada_orthogonal"]["steps"] == 32
        for own in found.values():
            assert own["ratio"] == pytest.approx(own["seconds"] / base["seconds"])
    # where the features moved as well, "auto" adapts
    still, moved = (metrics[shift]["auto"]["steps"] for shift in adapter_speed.SHIFTS)
    assert moved > still
    [record] = read_records(path)
    assert record["metrics"] == metrics
    assert "| class frequencies | auto |" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_network_beside_is_trained_for_all_of_its_steps():
    X, y, domain = adapter_speed.domains(moved=False)
    model = adapter_speed.mlp(2).fit(X[domain > 0], y[domain > 0])
    # Adam counts its updates
    assert model._optimizer.t == 64
    assert model.n_iter_ == 2


def test_a_table_says_which_bars_are_met():
    own = {"seconds": 2.0, "steps": 32, "ratio": 2.9}
    metrics = {
        "class frequencies": {"MLPClassifier": {**own, "ratio": 1.0}, "auto": own, "vada": {**own, "ratio": 3.1}}
    }
    table = adapter_speed.table(metrics)
    assert "| class frequencies | auto | 2.00 | 32 | 2.90 | met |" in table
    assert "| class frequencies | vada | 2.00 | 32 | 3.10 | missed |" in table
