"""``setminus export``: what it writes, prints and refuses."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

from setminus import OrthogonalClassifier, export_onnx, onnx_inputs, save
from setminus.commands import build_app
from setminus.tables.encoding import TableEncoder
from tests.export.conftest import people

onnxruntime = pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    table, y = people()
    model = OrthogonalClassifier(
        make_pipeline(TableEncoder("onehot"), LogisticRegression(max_iter=500)), sensitive_columns=["sex"]
    ).fit(table, y)
    path = tmp_path_factory.mktemp("export") / "model.skops"
    save(model, path)
    return model, path


def run(*words):
    return CliRunner().invoke(build_app(), ["export", *map(str, words)])


def test_a_saved_model_needs_no_rows_to_become_onnx(model, tmp_path):
    fitted, path = model
    done = run(path, "--onnx", tmp_path / "m.onnx", "--json")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["rows"] == 2000 and said["difference"] < 1e-12
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    table, _ = people(seed=3)
    label, proba = session.run(None, onnx_inputs(session, table))
    np.testing.assert_allclose(proba, fitted.predict_proba(table), atol=1e-12)
    assert (label == fitted.predict(table)).all()


def test_an_existing_file_stays_without_force(model, tmp_path):
    (tmp_path / "m.onnx").write_text("mine")
    assert run(model[1], "--onnx", tmp_path / "m.onnx").exit_code != 0
    assert (tmp_path / "m.onnx").read_text() == "mine"


def test_sql_is_printed_in_one_line(model):
    done = run(model[1], "--sql", "--full", "p", "--output", "decision")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith('CASE WHEN (1E0 - "p")') and done.stdout.count("\n") == 1
    plain = run("--sql", "--full", "p", "--principal", "q", "--prior", "uniform", "--json")
    assert json.loads(plain.stdout)["sql"].startswith('("p" *')


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["m.skops"], "neither --onnx nor --sql"),
        (["--sql"], "without --full"),
        (["--sql", "--full", "p"], "principal and prior are needed"),
        (["--sql", "--full", "p", "--principal", "q", "--prior", "a,b"], "the prior is 'a,b'"),
        (["--onnx", "m.onnx"], "without a model file"),
    ],
)
def test_wrong_options_are_named(words, wrong):
    assert wrong in str(run(*words).exception)


def test_the_generator_of_a_translator_from_bytes_to_bytes(tmp_path):
    pytest.importorskip("onnxscript")
    pytest.importorskip("torch")
    from setminus.transfer.model_files import ImageTranslator
    from setminus.transfer.networks import networks_for
    from setminus.transfer.translator import OrthogonalTranslator

    networks = networks_for(16, 4, seed=0)
    model = OrthogonalTranslator(change="color")
    model.translator_ = ImageTranslator(networks.a_to_b, networks.b_to_a, size=16, width=4)
    model.size_, model.domains_, model.about_, model.report_ = 16, ("red", "blue"), {}, {}
    model.save(tmp_path / "translator")
    done = run(tmp_path / "translator", "--onnx", tmp_path / "g.onnx", "--to", "red", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["difference"] <= 1
    images = np.random.default_rng(1).integers(0, 256, (7, 16, 16, 3), dtype=np.uint8)
    session = onnxruntime.InferenceSession(tmp_path / "g.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"images": images})
    off = {to: np.abs(found.astype(int) - model.transform(images, to)).max() for to in ("red", "blue")}
    # a negative control: the other generator gives other pictures
    assert off["red"] <= 1 < off["blue"]
    with pytest.raises(ValueError, match="to is 'green'"):
        export_onnx(model, tmp_path / "h.onnx", images, to="green")
    with pytest.raises(ValueError, match="the sample is uint8"):
        export_onnx(model, tmp_path / "h.onnx", images[:, :8])
