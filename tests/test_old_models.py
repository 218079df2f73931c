"""Models that version 0.1.0 wrote still load, and still give the same answers."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import setminus
from setminus.commands import main

OLD = Path(__file__).parent / "data" / "models_0_1_0"
EXPECTED = json.loads((OLD / "expected.json").read_text())


@pytest.mark.parametrize("name", sorted(EXPECTED["models"]))
def test_a_model_of_the_first_version(name):
    about = EXPECTED["models"][name]
    if name == "adapter":
        pytest.importorskip("torch")
    model = setminus.load(OLD / f"{name}.skops")
    assert type(model).__name__ == about["type"]
    groups = {"sensitive_features": EXPECTED["groups"]} if about["needs_groups"] else {}
    rows = np.array(EXPECTED["rows"])
    np.testing.assert_allclose(model.predict_proba(rows, **groups), about["proba"], rtol=1e-6, atol=1e-9)
    assert model.predict(rows, **groups).tolist() == about["predict"]


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(("name", "needs"), [("command_fit", "pyarrow"), ("command_adapt", "torch")])
def test_a_model_of_the_first_commands_scores_a_table(name, needs, tmp_path, monkeypatch):
    pytest.importorskip(needs)
    out = tmp_path / "scored.csv"
    arguments = ["apply", OLD / f"{name}.skops", OLD / "target.csv", "--out", out, "--quiet"]
    monkeypatch.setattr(sys, "argv", ["setminus", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    old, new = rows_of(OLD / f"{name}.scored.csv"), rows_of(out)
    # the columns of scores may be called otherwise; their order is that of the classes
    scores = [[[float(row[c]) for c in row if c.startswith("proba_")] for row in rows] for rows in (old, new)]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-6, atol=1e-9)
    positive = {"0": False, "1": True, "low": False, "high": True, "not high": False}
    assert [positive[row["prediction"]] for row in new] == [positive[row["prediction"]] for row in old]


def test_a_translator_of_the_first_version(tmp_path):
    pytest.importorskip("torch")
    image = pytest.importorskip("PIL.Image")
    from setminus.transfer.model_files import load_translator

    translator = load_translator(OLD / "translator")
    files = sorted((OLD / "translator" / "before").iterdir())
    translated = translator.translate(np.stack([np.asarray(image.open(file)) for file in files]), "a_to_b")
    expected = np.stack([np.asarray(image.open(OLD / "translator" / "after" / file.name)) for file in files])
    # another machine rounds otherwise
    assert np.abs(translated.astype(int) - expected).max() <= 2
