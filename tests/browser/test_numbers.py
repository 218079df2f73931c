"""Every number on the page is the record's, to the last digit."""

import copy
import re

import pytest

# what stands in data attributes of an element and of those around it, and what a reader sees of it
READ = """
all => all.map(one => ({
  ...one.closest("[data-record]").dataset,
  ...one.closest("tr[data-model], tr[data-bin], tr[data-point]")?.dataset,
  ...one.dataset,
  text: one.firstChild.textContent.trim(),
}))
"""


def find(metrics, cell):
    """The value, or the interval, that the record has for a cell of the page."""
    metric = cell["metric"]
    if "point" in cell:
        kind, _, place = cell["point"].partition("-")
        return metrics["frontier"]["best"][int(place)][metric] if place else metrics["frontier"][kind][metric]
    if metric.startswith("attribute_predictability."):
        return metrics["attribute_predictability"][metric.removeprefix("attribute_predictability.")]
    if metric == "certificate":
        return metrics["certificate"]["certified"]
    (audit,) = [model["audit"] for model in metrics["models"] if model["title"] == cell["model"]]

    if metric.startswith(("impact.", "scoring.")):
        key, metric = metric.split(".")
        (table,) = [one for one in audit[key] if one["attribute"] == cell["attribute"]]
        (row,) = [one for one in table["rows"] if one["group"] == cell["group"]]
        return row[metric]

    def of_cell(rows):
        (row,) = [r for r in rows if str(r["group"]) == cell["group"] and str(r["label"]) == cell["label"]]
        return row

    if metric == "share":
        share, place = of_cell(audit["histograms"])["share"], 2 * int(cell["bin"])
        return share[place] + share[place + 1]
    if "bin" in cell:
        return of_cell(audit["calibration"]["curves"])[metric][int(cell["bin"])]
    if "group" in cell:
        return of_cell(audit["group_rates"])[metric]
    for key in metric.split("."):
        audit = audit[key]
    return audit


def differences(record, cells):
    """The cells that say something else than the record, or show something else than they say."""
    wrong = []
    for cell in cells:
        found = find(record["metrics"], cell)
        interval = found if isinstance(found, dict) else {"value": found}
        said = {key: float(cell[key]) if cell.get(key) else None for key in ("value", "low", "high")}
        if said != {"low": None, "high": None, **interval} or not shows(cell["text"], interval["value"]):
            wrong.append(cell)
    return wrong


def shows(text, value):
    if value is None:
        return text == "n/a"
    number = float(re.match(r"-?[\d,.]+", text)[0].replace(",", ""))
    digits = len(text.split()[0].partition(".")[2])
    scale = 100 if "%" in text else 1
    return number == pytest.approx(scale * value, abs=0.501 * 10**-digits)


def read(opened, name):
    # the rows of tested models repeat what the audits say, and the limit is not of an audit
    own = "[data-metric]:not([data-point=tested] *, [data-metric=limit])"
    return opened(name).page.eval_on_selector_all(own, READ)


@pytest.mark.parametrize("name", ["plain", "hostile", "crowded", "audited"])
def test_the_page_says_what_the_audit_says(opened, name, request):
    record = request.getfixturevalue(name)
    cells = read(opened, name)
    assert differences(record, cells) == []

    models = record["metrics"]["models"]
    for model in models:
        of_model = [cell for cell in cells if cell.get("model") == model["title"]]
        assert {"accuracy", "equalized_odds_sum", "equal_opportunity", "roc_auc", "leakage.bits"} <= {
            cell["metric"] for cell in of_model
        }
        # every rate of every group and class
        rates = [cell for cell in of_model if "group" in cell and not {"bin", "attribute"} & {*cell}]
        assert len(rates) == 6 * len(model["audit"]["group_rates"])


def test_a_number_that_is_off_would_be_noticed(opened, plain):
    cells = read(opened, "plain")
    altered = copy.deepcopy(plain)
    altered["metrics"]["models"][1]["audit"]["accuracy"]["low"] += 1e-9
    wrong = differences(altered, cells)
    assert wrong
    assert all(cell["metric"] == "accuracy" and cell["model"] == "after" for cell in wrong)


def test_the_headline_is_the_gap_that_was_bounded(opened, plain, crowded):
    for name, gap, record in (("plain", "equalized_odds_max", plain), ("crowded", "demographic_parity", crowded)):
        first = opened(name).page.locator(".cards li").first
        values = first.locator("[data-value]").evaluate_all("all => all.map(one => +one.dataset.value)")
        assert values == [model["audit"][gap]["value"] for model in record["metrics"]["models"]]
        assert gap.split("_")[0].capitalize() in first.text_content()


def test_a_limit_that_is_exceeded_is_said_to_be_so(opened, audited):
    page = opened("audited").page
    assert page.locator(".cards .badge").text_content() == "exceeded"
    assert page.locator("[data-metric=limit]").get_attribute("data-value") == str(audited["limit"]["limit"])
