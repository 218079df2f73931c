"""The section says what this run did, not what runs usually do."""

import pytest

from setminus.report.page import build_page


def words(record):
    html = build_page([record])
    return " ".join(html[: html.index("<script>")].split())


@pytest.mark.parametrize(
    ("gap_name", "key", "title"),
    [
        ("equalized_odds (sum)", "equalized_odds_sum", "Equalized odds gap (sum)"),
        ("equalized_odds (max)", "equalized_odds_max", "Equalized odds gap (max)"),
        ("demographic_parity", "demographic_parity", "Demographic parity gap"),
        ("equal_opportunity", "equal_opportunity", "Equal opportunity gap"),
    ],
)
def test_the_gap_that_was_bounded_comes_first(altered, gap_name, key, title):
    altered["metrics"]["frontier"]["gap_name"] = gap_name
    page = words(altered)
    cards = page[page.index('<ul class="cards">') :]
    assert cards.index(f"{title}; 0 is fair") < cards.index("Strength")
    after = altered["metrics"]["models"][-1]["audit"][key]["value"]
    assert f'data-metric="{key}" data-value="{after}"' in cards[: cards.index("</ul>")]
    assert f'{title} <span class="tag">bounded</span>' in page


def test_what_the_features_betray_is_told_where_it_is_known(altered):
    assert "a classifier tells plain ignored with" in words(altered)
    assert "; AUC" in words(altered)
    altered["metrics"]["betrayed"]["auc"] = None
    assert "; AUC" not in words(altered)
    assert "they speak of it all the same" in words(altered)
    altered["metrics"]["betrayed"]["accuracy"] = 0.6
    assert "Here they hardly do" in words(altered)
    altered["metrics"]["betrayed"] = None
    assert "may speak of it all the same" in words(altered)


def test_whether_the_model_sees_and_needs_what_it_ignores(altered):
    task = altered["task"]
    assert "never among its 2 features" in words(altered)
    assert "does not need plain ignored" in words(altered)
    task["ignored"] = "sex, age"
    assert "It is among its 2 features" in words(altered)
    task["groups_needed"] = True
    assert "the model needs sex, age of each row" in words(altered)


def test_a_tolerance_that_could_not_be_kept_is_admitted(altered):
    assert "none keeps the tolerance" not in words(altered)
    altered["metrics"]["frontier"]["chosen"]["gap"] = 0.06
    assert "none keeps the tolerance of 0.05" in words(altered)


def test_a_gap_that_came_back_on_the_test_rows_is_admitted(altered):
    gap = altered["metrics"]["models"][-1]["audit"]["equalized_odds_sum"]
    altered["metrics"]["frontier"]["tolerance"] = gap["value"] + 0.01
    assert "kept on the test rows" in words(altered)
    assert "not kept on the test rows" not in words(altered)
    altered["metrics"]["frontier"]["tolerance"] = gap["value"] - 0.01
    assert "not kept on the test rows" in words(altered)


def test_a_score_that_the_audit_lacks_has_no_tested_points(altered):
    assert "Open signs" in words(altered)
    altered["metrics"]["frontier"]["score_name"] = "balanced_accuracy"
    page = words(altered)
    assert "Open signs" not in page
    assert "highest balanced accuracy within" in page


def test_columns_notes_and_commands_are_shown_where_there_are_some(altered):
    assert "What was read" not in words(altered)
    column = {"kind": "number", "missing": 0.5, "distinct": 3, "use": "left out: too few", "warning": "half is missing"}
    altered["task"]["columns"] = [{"name": f"column {i}", **column} for i in range(7)]
    altered["task"]["notes"] = ["2 rows were left out"]
    altered["usage_command"] = ["setminus apply model.skops new.csv", "setminus info model.skops"]
    page = words(altered)
    assert "2 rows were left out." in page
    assert page.count("left out: too few") == 7
    assert "and 2 more in the table" in page
    assert "setminus apply model.skops new.csv setminus info model.skops" in page
