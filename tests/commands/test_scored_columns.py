"""A score and a decision mean the label's own values; where they could mean something else, the file is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from setminus import save
from setminus.commands.audit import AuditConfig, audit_table
from setminus.commands.table_roles import Roles, read_rows
from setminus.errors import UserError
from setminus.scale.scorers import ModelScorer
from setminus.scale.scoring import score_file
from setminus.tables.columns import to_text
from setminus.tables.reading import open_table

N = 120
RNG = np.random.default_rng(0)
X, NOISE = RNG.normal(size=(2, N))
SEX = RNG.choice(["f", "m"], N)
WORDS = ("0", "1", "2", "01", "1.0", "not 0", "not 1", "not not 1", "NOT 1", "True", "False", "true", "yes", "no")


def audited(path, **options):
    result, record = audit_table(AuditConfig(str(path), "y", ("sex",), **options))
    return result, record["task"]["notes"]


def put(frame, path):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.lists(st.sampled_from(WORDS), min_size=2, max_size=4, unique=True),
    fitted=st.none() | st.integers(0, 3),
    asked=st.none() | st.integers(0, 3),
    ending=st.sampled_from(["csv", "parquet"]),
)
def test_every_alphabet_is_read_right_or_refused(tmp_path, values, fitted, asked, ending):
    """As by the command, with a model that is fitted in a moment."""
    rank = np.clip(np.round(X + len(values) / 2 - 0.5 + 0.3 * NOISE), 0, len(values) - 1).astype(int)
    frame = pd.DataFrame({"x": X, "sex": SEX, "y": np.array(values)[rank]})
    source = put(frame, tmp_path / f"in.{ending}")
    # what the words of a CSV are is for the reader to say: 01 among numbers is 1, True and False are true and false
    words = np.array(to_text(open_table(source).read(["y"]).column("y")).to_pylist())
    present = np.unique(words).tolist()
    assume(len(present) > 1 and all(np.bincount(np.unique(words, return_inverse=True)[1]) > 3))
    assume(all(at is None or at < len(present) for at in (fitted, asked)))
    fit_for, positive = (None if at is None else present[at] for at in (fitted, asked))
    ambiguous = [value for value in (fit_for, positive) if f"not {value}" in present and len(present) > 2]
    if ambiguous:
        with pytest.raises(UserError, match="which also stands for all but"):
            read_rows(open_table(source), Roles("y", ("sex",), ambiguous[0]))
        return
    roles = Roles("y", ("sex",), fit_for)
    y = read_rows(open_table(source), roles).y
    model = LogisticRegression().fit(frame[["x"]], y)
    model.about_ = {"task": {"labels": roles.class_names}}
    save(model, tmp_path / "m.skops")
    scored = score_file(source, tmp_path / f"out.{ending}", ModelScorer(tmp_path / "m.skops")).path

    # where not V is itself the other value, the file says the same with and without --positive
    own_words = fit_for is None or present == sorted([fit_for, f"not {fit_for}"])
    if not own_words and positive != fit_for:
        with pytest.raises(UserError, match=f"scored for y = {fit_for} against all other values") as caught:
            audited(scored, positive=positive)
        assert "--positive" in caught.value.do
        return
    result, _ = audited(scored, positive=positive)
    decided = model.predict(frame[["x"]])
    if fit_for is not None:
        decided = np.where(decided == 1, fit_for, f"not {fit_for}")
    right = decided == words if positive is None else (decided == positive) == (words == positive)
    if positive is None and fit_for is not None:
        right = (decided == fit_for) == (words == fit_for)
    assert result.accuracy.value == pytest.approx(np.mean(right), abs=1e-12)
    if len(result.classes) == 2:
        truth = words == (present[1] if positive is None else positive)
        names = np.array(present) if fit_for is None else np.array([f"not {fit_for}", fit_for])
        wanted = present[1] if positive is None else positive
        score = model.predict_proba(frame[["x"]])[:, names.tolist().index(wanted)]
        above = score[truth][:, None] - score[~truth]
        assert result.roc_auc == pytest.approx(np.mean(above > 0) + np.mean(above == 0) / 2)


@pytest.fixture
def frame():
    """Decisions and scores of a label that is yes or no, which a user made."""
    truth = RNG.random(N) < 0.5
    score = np.clip(0.5 + 0.3 * (truth - 0.5) + RNG.normal(0, 0.2, N), 0.01, 0.99)
    return pd.DataFrame({"y": np.where(truth, "yes", "no"), "sex": SEX, "p": score, "code": (score > 0.5).astype(int)})


def accuracy(frame):
    return pytest.approx(np.mean((frame["code"] == 1) == (frame["y"] == "yes")))


def test_codes_that_a_user_names_are_read_where_the_label_has_neither(frame, tmp_path):
    file = put(frame, tmp_path / "a.csv")
    result, notes = audited(file, positive="yes", score=("p",), prediction="code")
    assert result.accuracy.value == accuracy(frame)
    assert "1 in code was read as 'yes', 0 as 'not yes'" in notes
    with pytest.raises(UserError, match="the predictions hold '0', the label no, yes"):
        audited(file, score=("p",), prediction="code")
    # not named by the user, but found as the column prediction
    put(frame.rename(columns={"p": "proba_yes", "code": "prediction"}), file)
    with pytest.raises(UserError, match="If 1 stands for 'yes', name the column: --prediction prediction"):
        audited(file, positive="yes")


@pytest.mark.parametrize("values", [("1", "2"), ("0", "x")])
def test_codes_are_refused_where_the_label_has_one_of_them(frame, tmp_path, values):
    file = put(frame.assign(y=np.where(frame["y"] == "yes", values[1], values[0])), tmp_path / "a.csv")
    with pytest.raises(UserError, match="0 and 1 have two readings here"):
        audited(file, positive=values[1], score=("p",), prediction="code")


def test_the_label_of_codes_is_read_in_its_own_values(frame, tmp_path):
    """With --positive 0 a decision 0 is the positive one."""
    file = put(frame.assign(y=np.where(frame["y"] == "yes", 1, 0), p=1 - frame["p"]), tmp_path / "a.csv")
    result, _ = audited(file, positive="0", score=("p",), prediction="code")
    assert result.accuracy.value == accuracy(frame)
    assert result.roc_auc > 0.5


@pytest.mark.parametrize("positive", [None, "yes", "no"])
@pytest.mark.parametrize("column", ["proba_yes", "proba_no"])
def test_one_column_of_two_is_enough(frame, tmp_path, positive, column):
    score = frame["p"] if column == "proba_yes" else 1 - frame["p"]
    file = put(frame[["y", "sex"]].assign(**{column: score}), tmp_path / "a.parquet")
    for named in ((), (column,)):
        result, _ = audited(file, positive=positive, score=named)
        assert result.accuracy.value == accuracy(frame)
        assert result.roc_auc > 0.5


def test_columns_that_are_named_out_of_order_go_to_their_values(frame, tmp_path):
    file = put(frame.assign(proba_yes=frame["p"], proba_no=1 - frame["p"], q=1 - frame["p"]), tmp_path / "a.csv")
    for score in (("proba_yes", "proba_no"), ("proba_no", "proba_yes"), ("q", "p"), ("q", "proba_yes"), ("p",)):
        assert audited(file, score=score)[0].accuracy.value == accuracy(frame)
    with pytest.raises(UserError, match="two of the columns q, proba_no are of one class"):
        audited(file, score=("q", "proba_no"))


def test_the_score_of_another_value_is_refused(frame, tmp_path):
    three = frame.assign(y=np.where(np.arange(N) % 3 == 0, "perhaps", frame["y"]), proba_no=1 - frame["p"])
    file = put(three, tmp_path / "a.csv")
    with pytest.raises(UserError, match="proba_no is the probability of 'no', not of 'yes'"):
        audited(file, positive="yes", score=("proba_no",))
    with pytest.raises(UserError, match="has no columns proba_no, proba_perhaps, proba_yes"):
        audited(file)
    with pytest.raises(UserError, match="1 columns of scores are named for 3 classes"):
        audited(file, score=("p",))
    audited(file, positive="no")


def test_scores_that_rank_codes_backwards_are_refused_until_they_are_named(frame, tmp_path):
    """A bad model cannot be distinguished from the codes of an earlier version."""
    file = put(
        frame.assign(y=(frame["y"] == "yes").astype(int), proba_0=frame["p"], proba_1=1 - frame["p"]),
        tmp_path / "a.csv",
    )
    for options in ({}, {"positive": "0"}, {"positive": "1"}):
        with pytest.raises(UserError, match="rank the labels backwards, with an AUC of 0") as caught:
            audited(file, **options)
        assert caught.value.do.startswith("apply the model again")
    assert audited(file, score=("proba_1",))[0].roc_auc < 0.5


def test_spaces_around_labels_and_decisions_are_no_part_of_them(frame, tmp_path):
    spaced = frame.assign(y=frame["y"] + " ", said=np.where(frame["code"] == 1, " yes", "no"))
    for ending in ("csv", "parquet"):
        file = put(spaced, tmp_path / f"a.{ending}")
        assert audited(file, score=("p",), prediction="said")[0].accuracy.value == accuracy(frame)


def test_rows_without_a_label_are_left_out_of_the_decisions_too(tmp_path):
    frame = pd.DataFrame({"y": ["01", "x", None, "x"] * 15, "sex": SEX[:60], "p": 0.4, "said": "01"})
    result, notes = audited(put(frame, tmp_path / "a.csv"), positive="01", score=("p",), prediction="said")
    assert (result.n, result.accuracy.value) == (45, pytest.approx(1 / 3))
    assert "15 of 60 rows have no y and were left out" in notes
