"""Table 3 in the terminal: the numbers beside the paper's, and what is gained as a picture."""

from setminus_paper.report.domain_adaptation import charts, summary

from tests.made_adaptation import made_record

RECORDS = [
    made_record("vada", 0.6, paper=0.9),
    made_record("vada", 0.8, seed=1, paper=0.9),
    made_record("vada_orthogonal_em", 0.9),
    made_record("vada", 0.5, shift=0.95, paper=0.9),
    made_record("vada_orthogonal_em", 0.8, shift=0.95),
]


def test_means_over_seeds_stand_beside_the_paper_at_its_own_shift_only():
    assert summary(RECORDS[:4]) == [
        ("svhn-mnist, 70/30, VADA: accuracy, %", "90.0", "70.0 ± 14.1; test_oracle 72.0 ± 14.1"),
        ("svhn-mnist, 70/30, VADA + w_x \\ w_1 (EM): accuracy, %", "", "90.0; test_oracle 92.0"),
        ("svhn-mnist, 95/5, VADA: accuracy, %", "", "50.0; test_oracle 52.0"),
    ]


def test_gains_for_the_pairs_and_curves_for_several_shifts():
    titles = [chart.title for chart in charts(RECORDS)]
    assert titles == [
        "What w_x \\ w_1 gains over VADA, several seeds",
        "svhn-mnist: accuracy against the shift",
        "svhn-mnist: gain over VADA",
    ]
    assert len(charts(RECORDS[:3])) == 1
