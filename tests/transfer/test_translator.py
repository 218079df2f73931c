"""The estimator: pictures of any form in, the same form out; what it learned survives its way through files."""

import json

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch")

import setminus  # noqa: E402
from setminus import OrthogonalTranslator  # noqa: E402
from tests.made_pictures import VALUES, few_epochs, painted_squares  # noqa: E402, F401

TINY = {"steps": 4, "batch_size": 8, "width": 4, "every": 2, "device": "cpu"}


@pytest.fixture(scope="module")
def squares():
    return painted_squares(240, size=16)


@pytest.fixture(scope="module")
def factors(squares):
    return {
        "ink": np.array(VALUES["digit"])[squares.z1],
        "ground": np.array(VALUES["background"])[squares.z2],
    }


@pytest.fixture(scope="module")
def fitted(squares, factors):
    return OrthogonalTranslator(change="ink", **TINY).fit(squares.x, np.array(["men", "women"])[squares.y], factors)


def test_init_stores_and_clone_copies():
    translator = OrthogonalTranslator(keep="hair", steps=7, random_state=3)
    assert clone(translator).get_params() == translator.get_params()
    assert clone(translator).set_params(steps=8).steps == 8
    assert "OrthogonalTranslator" in setminus.__all__


def test_channels_first_floats_and_bytes_are_one_picture(fitted, squares):
    expected = fitted.transform(squares.x[:6], to="b")
    assert expected.dtype == np.uint8 and expected.shape == (6, 16, 16, 3)
    first = squares.x[:6].transpose(0, 3, 1, 2)
    assert np.array_equal(fitted.transform(first).transpose(0, 2, 3, 1), expected)
    floats = fitted.transform((squares.x[:6] / 255).astype(np.float64))
    assert floats.min() >= 0 and floats.max() <= 1
    assert np.abs(255 * floats - expected).max() <= 0.51
    grey = fitted.transform(squares.x[:6].mean(axis=3, keepdims=True).astype(np.uint8))
    assert grey.shape == (6, 16, 16, 1)


def test_a_domain_is_named_by_its_label_or_by_its_letter(fitted, squares):
    assert fitted.domains_ == ("men", "women")
    assert np.array_equal(fitted.transform(squares.x[:2], to="women"), fitted.transform(squares.x[:2], to="b"))
    assert not np.array_equal(fitted.transform(squares.x[:2], to="men"), fitted.transform(squares.x[:2], to="b"))
    with pytest.raises(ValueError, match=r"to is 'children'.*men"):
        fitted.transform(squares.x[:2], to="children")


def test_the_report_has_each_direction(fitted):
    report = fitted.report_
    assert report["verdict"] in ("good", "train longer", "do not use")
    for direction in ("a_to_b", "b_to_a"):
        assert {"changed", "kept", "structure", "verdict"} <= report["directions"][direction].keys()
    assert report["curves"]["step"] == [2, 4] and report["baseline"] == {}
    assert json.loads(json.dumps(report)) == report


def test_a_model_comes_back_from_its_folder(fitted, squares, tmp_path):
    loaded = OrthogonalTranslator.load(fitted.save(tmp_path / "model"))
    assert np.array_equal(loaded.transform(squares.x[:5], to="men"), fitted.transform(squares.x[:5], to="men"))
    assert loaded.get_params() == fitted.get_params()
    assert (loaded.report_, loaded.domains_) == (fitted.report_, fitted.domains_)
    # once more, from what was loaded
    again = OrthogonalTranslator.load(loaded.save(tmp_path / "again"))
    assert np.array_equal(again.transform(squares.x[:5]), fitted.transform(squares.x[:5]))
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    config["about"]["params"]["colour"] = 1
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="its settings cannot be read"):
        OrthogonalTranslator.load(tmp_path / "model")


def test_both_factors_at_once_use_both_columns(squares, factors, tmp_path):
    both = OrthogonalTranslator(change="ink", keep="ground", baseline=True, **TINY)
    both.fit(squares.x, squares.y, factors, checkpoints=tmp_path)
    assert sorted(both.report_["factors"]) == ["column", "kept"]
    assert "kept" in both.classifiers_ and "domain" not in both.classifiers_
    assert set(both.report_["baseline"]) == {"a_to_b", "b_to_a"}
    # trained on: the same bits as at once
    longer = clone(both).set_params(steps=6).fit(squares.x, squares.y, factors, checkpoints=tmp_path, resume=True)
    assert longer.report_["steps"] == 6


def test_a_factor_may_have_three_values(squares):
    # a third color of the square, in both domains
    x, z = squares.x.copy(), squares.z1.copy()
    third = np.random.default_rng(0).random(len(z)) < 0.25
    x[third, 4:12, 4:12] = (230, 230, 40)
    z[third] = 2
    fitted = OrthogonalTranslator(change="ink", **TINY).fit(x, squares.y, z)
    assert len(fitted.report_["factors"]["column"]["a"]) == 3
    assert fitted.report_["accuracy"]["judge_column"]["accuracy"] > 0.9


def test_random_state_decides(squares, factors, fitted):
    def first(state):
        translator = OrthogonalTranslator(change="ink", **TINY, random_state=state)
        return translator.fit(squares.x, squares.y, factors).transform(squares.x[:1])

    drawn = [first(np.random.RandomState(5)) for _ in range(2)]
    assert np.array_equal(*drawn)
    # the same but for its random state, 0
    assert not np.array_equal(drawn[0], fitted.transform(squares.x[:1]))


def fit_with(images=None, domain=None, factors=None, **settings):
    rng = np.random.default_rng(0)
    given = rng.integers(256, size=(60, 16, 16, 3)).astype(np.uint8) if images is None else images
    y = np.arange(60) % 2 if domain is None else domain
    z = {"ink": rng.integers(2, size=60), "ground": rng.integers(2, size=60)} if factors is None else factors
    return OrthogonalTranslator(**{"change": "ink", **TINY, **settings}).fit(given, y, z)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"change": None}, "neither change nor keep"),
        ({"keep": "ink"}, "both 'ink'"),
        ({"keep": "hair"}, r"no 'hair': .*'ground'"),
        ({"keep": "ground", "factors": np.arange(60) % 2}, "one array"),
        ({"factors": {"ink": np.zeros(60)}}, "has 1 values"),
        ({"factors": {"ink": np.arange(60)}}, "has 60 values"),
        ({"factors": {"ink": np.arange(59) % 2}}, r"shape \(59,\)"),
        ({"domain": np.zeros(60)}, "domain has 1 labels"),
        ({"domain": np.arange(60) % 3}, "domain has 3 labels"),
        ({"images": np.zeros((60, 16, 16))}, r"shape \(60, 16, 16\)"),
        ({"images": np.zeros((60, 16, 16, 4))}, r"shape \(60, 16, 16, 4\)"),
        ({"images": np.zeros((60, 16, 20, 3))}, "16 x 20"),
        ({"images": np.zeros((60, 8, 8, 3))}, "8 x 8"),
        ({"images": np.full((60, 16, 16, 3), 255.0)}, "floats from 255 to 255: expected floats from 0 to 1"),
        ({"images": np.full((60, 16, 16, 3), np.nan)}, "floats from nan"),
        ({"images": np.zeros((60, 16, 16, 3), dtype=np.int64)}, "images are int64"),
        ({"steps": 0}, "steps is 0"),
        ({"device": "tpu"}, "device is 'tpu'"),
        ({"width": 10**6}, "width is 1000000"),
    ],
)
def test_what_cannot_be_fitted_is_said_first(wrong, words):
    with pytest.raises(ValueError, match=words):
        fit_with(**wrong)


def test_pictures_of_another_size(fitted):
    with pytest.raises(ValueError, match="expected 16 x 16"):
        fitted.transform(np.zeros((1, 20, 20, 3), dtype=np.uint8))
