"""Warnings of a tuned classifier name settings as Python or as options, and classes by their names."""

import pickle
import string
import warnings

import numpy as np
import pytest

from setminus.commands.fit import fit
from setminus.estimators.cautions import OPTIONS, PYTHON, SENTENCES, Caution, NotCertified, group_cautions
from setminus.estimators.tuned import TunedOrthogonalClassifier

EVERY = {"gap": "g", "where": "", "more": "", "label": 1}
NUMBERS = ("confidence", "smallest", "tolerance", "measured", "bound", "chance", "percent", "fall", "strength")


@pytest.mark.parametrize("kind", SENTENCES)
def test_every_sentence_can_be_said_in_both_words(kind):
    names = {name for part in SENTENCES[kind] for _, name, _, _ in string.Formatter().parse(part) if name}
    values = {name: EVERY.get(name, 0.5) for name in names - {*PYTHON}}
    caution = Caution(kind, **values)
    assert names <= {*EVERY, *NUMBERS, *PYTHON}
    # one vocabulary does not leak into the other
    assert "--" not in str(caution) and "=" not in caution.text(OPTIONS) and "_" not in caution.text(OPTIONS)


def test_the_settings_that_are_named_exist():
    import inspect

    options = {f"--{name.replace('_', '-')}" for name in inspect.signature(fit).parameters}
    assert {word for text in OPTIONS.values() for word in text.split() if word.startswith("--")} <= options
    assert {text for text in OPTIONS.values() if " " not in text} <= options
    assert {PYTHON["min_lead"], "levelling", "confidence"} <= {*TunedOrthogonalClassifier(None).get_params()}


def test_a_class_has_the_name_of_the_file():
    caution = Caution("levels down", label=1, fall=0.14)
    assert "the recall of 1 falls by up to 0.14" in str(caution)
    assert "the recall of >50K falls" in caution.text(OPTIONS, {"1": ">50K"})


def test_a_caution_that_is_said_again_by_its_text_has_this_text():
    caution = Caution("levels down", label="{x}", fall=0.14)
    with pytest.warns(Caution) as found:
        warnings.warn(str(caution), Caution, stacklevel=1)
    assert str(found[0].message) == str(caution)


def test_an_error_keeps_the_caution():
    error = NotCertified(Caution("floors"), OPTIONS)
    assert error.caution.kind == "floors" and "--min-lead" in str(error)


@pytest.mark.parametrize(
    ("after", "kinds"), [(0.76, []), (0.7, ["levels down"]), (0.0, ["near constant", "levels down"])]
)
def test_levelling_down_and_constants_are_found(after, kinds):
    def table(rate):
        return np.array([[[900, 100], [100 * (1 - rate), 100 * rate]], [[900, 100], [100 * (1 - rate), 100 * rate]]])

    chosen = table(after)
    if after == 0:
        chosen[:, 0] = [1000, 0]
    assert [one.kind for one in group_cautions(table(0.8), chosen, [0, 1], 1)] == kinds
    # a group whose recall rises: not levelled down
    chosen[0, 1] = [10, 90]
    assert "levels down" not in [one.kind for one in group_cautions(table(0.8), chosen, [0, 1], 1)]


def test_another_process_can_make_both_again():
    caution = Caution("levels down", label=1, fall=0.14)
    for one in (caution, NotCertified(caution, OPTIONS)):
        again = pickle.loads(pickle.dumps(one))
        assert type(again) is type(one) and str(again) == str(one)
    assert str(Caution(*caution.args)) == str(caution)
