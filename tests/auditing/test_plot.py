"""The figure draws, whatever groups are called."""

import io
import sys
import warnings

import numpy as np
import pytest

from setminus.auditing.audit import audit

matplotlib = pytest.importorskip("matplotlib")


def drawn(figure):
    """The figure's texts, after a draw in which any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.savefig(io.BytesIO(), format="png", dpi=40)
    return figure.findobj(matplotlib.text.Text)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_odd_names_are_shown_as_they_are(n_classes):
    rng = np.random.default_rng(0)
    names = np.array(["$x^{2$", "<b>", "_hidden", "a $ b $ c"])
    y = rng.integers(n_classes, size=400)
    proba = rng.dirichlet(np.ones(n_classes), size=400)
    figure = audit(y, proba, sensitive_features=names[rng.integers(4, size=400)], n_permutations=10).plot()
    texts = drawn(figure)
    shown = {text.get_text().strip().replace(r"\$", "$") for text in texts}
    assert set(names) <= shown
    legends = figure.findobj(matplotlib.legend.Legend)
    assert sorted(text.get_text().strip().replace(r"\$", "$") for text in legends[0].get_texts()) == sorted(names)


def test_many_groups_and_classes_are_cut_with_a_word():
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=2000)
    result = audit(
        y, rng.dirichlet(np.ones(5), size=2000), sensitive_features=rng.integers(12, size=2000), n_permutations=5
    )
    texts = {text.get_text() for text in drawn(result.plot())}
    assert any("the 8 largest of 12 groups, 3 of 5 classes" in text for text in texts)


def test_missing_matplotlib_says_what_to_install(exact, monkeypatch):
    rows = exact(100, 0)
    result = audit(rows.y, rows.full, sensitive_features=rows.group, n_permutations=5)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "setminus\[cli\]"'):
        result.plot()
