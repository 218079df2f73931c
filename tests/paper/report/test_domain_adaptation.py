"""The section on table 3 says what its records say, and nothing of them reaches the page unescaped."""

import re
import subprocess
import sys

import pytest
from setminus_paper.report.adaptation_estimates import ABOUT_DISTANCES
from setminus_paper.report.domain_adaptation import domain_adaptation_section

from setminus.report import page
from tests.made_adaptation import made_record, made_records

SCRIPT = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def records():
    drawn = made_records("drawn_digits-svhn", seeds=1, other_source="the paper's source is SYN-DIGITS")
    curve = [
        made_record(method, 0.6 + gain, pair="mnist-usps", seed=seed, shift=0.95)
        for method, gain in (("vada", 0), ("vada_orthogonal_em", 0.1))
        for seed in range(2)
    ]
    return [*made_records(), *drawn, *made_records("mnist-usps", seeds=2), *curve]


@pytest.fixture(scope="module")
def section(records):
    return domain_adaptation_section(records)


@pytest.fixture(scope="module")
def body(records):
    pytest.importorskip("jinja2")
    pytest.importorskip("vl_convert")
    html = page.build_page(records)
    return html[html.index("<main") : html.index("</main>")]


def test_both_rules_have_their_tables_pairs_with_several_seeds_first(section):
    assert section["rows"].startswith("3 pairs, 1 to 3 seeds, ")
    ours, oracle = section["blocks"]
    assert (ours["rule"], oracle["rule"]) == ("information", "test_oracle")
    for block in (ours, oracle):
        several, one = block["tables"]
        assert [(head["name"], head["seeds"]) for head in several["heads"]] == [
            ("svhn-mnist", "3 seeds"),
            ("mnist-usps", "2 seeds"),
        ]
        assert one["heads"][0]["about"] == "the paper's source is SYN-DIGITS"
        assert [row["method"] for row in several["rows"]][-1] == "vada_orthogonal_chosen"
    cells = {row["method"]: row["cells"] for row in ours["tables"][0]["rows"]}
    assert cells["vada"][0]["against"] == "" and cells["vada"][0]["paper"] == "74.0"
    assert re.fullmatch(r"\+\d\.\d \(\+\d\.\d to \+\d\.\d\)", cells["vada_iw"][0]["against"])
    assert cells["vada_orthogonal_chosen"][0]["picked"] == "EM"
    single = {row["method"]: row["cells"] for row in ours["tables"][1]["rows"]}
    assert "(" not in single["vada_iw"][0]["against"] and "±" not in single["vada_iw"][0]["text"]


def test_a_method_that_a_pair_lacks_has_an_empty_cell(records, body):
    section = domain_adaptation_section([*records, made_record("dann", 0.5)])
    (dann,) = [row for row in section["blocks"][0]["tables"][0]["rows"] if row["method"] == "dann"]
    assert dann["cells"][0]["text"] == "50.0" and dann["cells"][1] is None


def test_figures_are_of_the_pairs_with_several_seeds_or_else_of_all(records, section):
    titles = [plot.chart.title for plots in section["plots"].values() for plot in plots]
    assert any("mnist-usps: accuracy on each class" in title for title in titles)
    assert not any("drawn_digits" in title for title in titles)
    alone = domain_adaptation_section([one for one in records if one["config"]["pair"] == "drawn_digits-svhn"])
    assert len(alone["views"]) == 1 and "shift" not in alone["headings"]
    assert section["figures"] == [plot for plots in section["plots"].values() for plot in plots]


def test_what_differs_from_the_paper_is_said(records, section):
    size, weights, estimates, drawn = section["notes"]
    assert "24 channels, and is trained for 1,000 steps on at most 10,000 images" in size and "32 of each" in size
    assert "but at least 0.1 for the domain loss and at least 0.1 for entropy and smoothness on the target: " in weights
    assert estimates.startswith("The row of pseudo-labels has the paper's own estimate")
    assert drawn == "drawn_digits-svhn: the paper's source is SYN-DIGITS."
    rougher = [{**one, "config": {**one["config"], "source_vat": 0.0}} for one in records]
    assert "Smoothness on the source has weight 0" in domain_adaptation_section(rougher)["notes"][1]
    assert "Smoothness on the source" not in weights
    plain = [{**one, "config": {**one["config"], "steps": None, "domain": 0.0, "target": 0.0}} for one in records[:9]]
    assert domain_adaptation_section(plain)["notes"][0].endswith("the same for all methods.")


def test_the_page_has_the_numbers_in_its_cells(records, body):
    values = [one["metrics"]["accuracy"] for one in records if one["config"]["method"] == "vada"][:3]
    row = body[body.index('data-method="vada" data-rule="information"') :]
    found = re.search(r'data-pair="svhn-mnist" data-metric="accuracy" data-value="([\d.]+)"', row)
    assert float(found[1]) == pytest.approx(sum(values) / 3)
    assert "paper: 74.0" in body and "less VADA: +" in body and "chosen: EM<" in body
    assert "The row of pseudo-labels has the paper&#39;s own estimate" in body
    assert "By the means, the gain grows with each step of the shift." in body


def test_the_distances_of_estimates_are_on_the_page_if_there_are_any(records, body):
    told = ABOUT_DISTANCES.split(".")[0]
    assert told in body
    assert re.search(r'<th scope="row">mnist-usps, 95/5</th><td>90</td><td>45</td>', body)
    without = [record for record in records if "orthogonal" not in record["config"]["method"]]
    assert told not in page.build_page(without)


def test_an_order_that_differs_is_on_the_page():
    records = [
        made_record("vada", 0.8, paper=0.79),
        made_record("vada_iw", 0.7, paper=0.871),
    ]
    assert "On svhn-mnist VADA + IW less VADA is -10.0 points here, of one seed" in page.build_page(records)


@pytest.mark.parametrize("many", [False, True])
def test_hostile_text_stays_text(many):
    classes = (SCRIPT, *(f"<b>{k}</b>" for k in range(20 if many else 5)))
    records = made_records(f"{SCRIPT}-b", classes=classes, other_source=SCRIPT)
    for one in records:
        one["metrics"]["row"]["label"] += SCRIPT
        one |= {"claim": SCRIPT, "command": SCRIPT}
    html = page.build_page(records)
    assert SCRIPT not in html and "<b>0" not in html and "&lt;script&gt;alert(1)" in html
    # the negative control: elsewhere in the page there are scripts
    assert "<script>" in html


def test_a_class_has_one_color_in_legend_and_figure(section):
    (view, _) = section["views"]
    assert [entry["name"] for entry in view["legend"]] == list("0123456789")
    point = view["plots"][0].spec["layer"][0]["data"]["values"][0]
    assert point["colour"] == view["legend"][0]["colour"]
    assert point["label"].startswith("0, ")


def test_it_needs_no_torch():
    code = "import sys, setminus_paper.report.domain_adaptation; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
