"""Table 3 beside the paper's numbers, from records."""

from setminus.report.charts.chart import Bars, Line
from setminus.report.laboratory.table3 import charts, summary


def record(method, accuracy, *, seed=0, shift=0.7, paper=0.9):
    row = {"label": method.upper(), "paper": paper}
    metrics = {"row": row, "accuracy": accuracy, "test_oracle": {"accuracy": accuracy + 0.05}}
    return {"config": {"pair": "a-b", "method": method, "shift": shift}, "seed": seed, "metrics": metrics}


RECORDS = [
    record("vada", 0.6),
    record("vada", 0.8, seed=1),
    record("orthogonal", 0.9, paper=None),
    record("vada", 0.5, shift=0.95),
]


def test_means_over_seeds_stand_beside_the_paper_at_its_own_shift_only():
    assert summary(RECORDS) == [
        ("a-b, 70/30, VADA: accuracy, %", "90.0", "70.0 ± 10.0; test_oracle 75.0 ± 10.0"),
        ("a-b, 70/30, ORTHOGONAL: accuracy, %", "", "90.0; test_oracle 95.0"),
        ("a-b, 95/5, VADA: accuracy, %", "", "50.0; test_oracle 55.0"),
    ]


def test_bars_for_the_pair_and_a_line_for_the_method_with_several_shifts():
    bars, curve = charts(RECORDS)
    assert [(mark.name, list(mark.x)) for mark in bars.marks if isinstance(mark, Bars)] == [
        ("ours", ["VADA", "ORTHOGONAL"]),
        ("paper, test_oracle", ["VADA"]),
    ]
    (line,) = [mark for mark in curve.marks if isinstance(mark, Line)]
    assert (list(line.x), list(line.y)) == ([70, 95], [0.7, 0.5])
    assert len(charts(RECORDS[:3])) == 1
