"""The ablation of table 3: one change at a time, and every seed a table of its own."""

import pytest

pytest.importorskip("torch")

from setminus_paper.adaptation import ablation
from setminus_paper.adaptation.settings import ABLATION, SIZES


def record(method, seed, accuracy):
    metrics = {"accuracy": accuracy, "row": {"label": method}}
    return {"name": "ablation", "seed": seed, "seconds": 1.0, "config": {"method": method}, "metrics": metrics}


def test_rows_differ_from_their_neighbours_in_one_setting():
    flat = {
        name: {
            **row.options["label_shift"],
            **{key: row.options.get(key) for key in ("discriminator", "target_classes")},
        }
        for name, row in ABLATION.items()
    }

    def changed(one, other):
        return {key for key in flat[one] if flat[one][key] != flat[other][key]}

    for estimator in ("pseudo_soft", "em", "bbse"):
        assert changed(f"{estimator}_full", f"{estimator}_orthogonal") == {"discriminator"}
    for discriminator in ("full", "orthogonal"):
        assert changed(f"em_{discriminator}", f"bbse_{discriminator}") == {"estimator"}
    assert changed("pseudo_soft_orthogonal", "pseudo_soft_orthogonal_hard") == {"target_classes"}


def test_every_seed_is_a_table_at_the_quick_size():
    runs = ablation.plan("quick", (0, 1))
    assert [run.config["method"] for run in runs] == 2 * [*ablation.METHODS]
    assert [run.seeds for run in runs] == [(40,)] * 8 + [(41,)] * 8
    assert all(run.config.items() >= {"shift": 0.85, **SIZES["quick"].config()}.items() for run in runs)


def test_gains_are_over_paired_seeds():
    records = [record("vada", seed, 0.5) for seed in (0, 1, 2)] + [record("em_full", seed, 0.6) for seed in (0, 1)]
    assert [text for *_, text in ablation.summary(records)] == [
        "50.0 on 3 seeds",
        "60.0 on 2 seeds, +10.0 (+10.0 to +10.0) over VADA",
    ]
    (chart,) = ablation.charts(records)
    assert chart.marks[0].y == [10.0]
