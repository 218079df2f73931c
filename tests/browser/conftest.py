"""Pages of small real runs, and a browser to open them in."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from setminus.auditing.audit import audit
from setminus.commands.fitting import attribute_predictability, frontier_points
from setminus.estimators.principals import ProxyPrincipal
from setminus.estimators.tuned import TunedOrthogonalClassifier
from setminus.records import versions, write_json
from setminus.report.page import write_page
from tests import made_adaptation, made_tables

SCRIPT = "<script>alert(1)</script>"
BOLD = "<b>x</b>"

# as root it has no sandbox, and it must not ask the network for anything of its own
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Run:
    """A table in which groups differ, split in two, with a tuned model of it."""

    def __init__(self, groups, classes, constraint="equalized_odds", rows=3000, strengths=(0.0, 0.25, 0.5, 1.0)):
        rng = np.random.default_rng(0)
        y = rng.integers(len(classes), size=rows)
        favoured = y * len(groups) // len(classes)
        group = np.where(rng.random(rows) < 0.4, favoured, rng.integers(len(groups), size=rows))
        self.y, self.groups = np.array(classes)[y], np.array(groups)[group]
        code = np.searchsorted(np.unique(groups), self.groups) * 2 / len(groups)
        self.X = np.column_stack([y + rng.normal(size=rows), code + rng.normal(size=rows), rng.normal(size=rows)])
        self.train, self.test = slice(rows // 2), slice(rows // 2, None)
        self.model = TunedOrthogonalClassifier(
            LogisticRegression(max_iter=1000),
            ProxyPrincipal(LogisticRegression(max_iter=1000)),
            constraint=constraint,
            tolerance=0.1,
            strengths=strengths,
            cv=2,
        )
        self.model.fit(self.X[self.train], self.y[self.train], sensitive_features=self.groups[self.train])

    def audited(self, title, **scores):
        found = audit(
            self.y[self.test],
            sensitive_features=self.groups[self.test],
            classes=self.model.classes_.tolist(),
            n_bootstrap=50,
            n_permutations=50,
            **scores,
        )
        return {"title": title, "about": f"The model {title}.", "audit": found.to_dict()}

    def fairness(self, text):
        """A record of the job "fairness"; `text` is in every name that a table could bring."""
        X, fitted = self.X[self.test], self.model.model_
        full = fitted.full_.predict_proba(X)
        after = {"proba": self.model.predict_proba(X), "y_pred": self.model.predict(X)}
        principal = fitted.principals_[0].predict_proba(X)
        return self._record(
            "fairness",
            text,
            [
                self.audited("before", proba=full),
                self.audited("after", **after, full_proba=full, principal_proba=principal),
            ],
            attribute_predictability=attribute_predictability(
                fitted.principals_[0].attribute_model_, X, self.groups[self.test]
            ),
            frontier=frontier_points(self.model),
        )

    def audit(self, text, limit):
        """A record of the job "audit"."""
        model = self.audited("score", proba=self.model.model_.full_.predict_proba(self.X[self.test]))
        value = model["audit"]["equalized_odds_max"]["value"]
        verdict = {"name": "equalized_odds_max", "limit": limit, "value": value, "passed": value <= limit}
        return self._record("audit", text, [model]) | {"limit": verdict}

    def _record(self, job, text, models, **metrics):
        column = {
            "kind": "number",
            "missing": 0.25,
            "distinct": 9,
            "use": f"as it is, {text}",
            "warning": f"odd, {text}",
        }
        record = {
            "name": job,
            "job": job,
            "config": {"constraint": self.model.constraint, "agg": self.model.agg},
            "seed": 0,
            "versions": {**versions(), text: "1.0"},
            "command": f"setminus fit '{text}.csv' --label '{text}'",
            "task": {
                "data": f"{text}.csv",
                "label": text,
                "labels": {},
                "score": text,
                "ignored": f"{text}, age",
                "rows": {"train": 1500, "test": 1500},
                "features": [text, "age", "hours"],
                "columns": [{"name": text, **column}, {"name": "age", **column}],
                "notes": [f"12 of 3,000 rows have no {text} and were left out"],
            },
            "usage": f"model = load('model.skops')\nmodel.predict(X)  # {text}",
            "usage_command": [f"setminus apply model.skops '{text}.csv' --out scored.parquet", "setminus info model"],
            "metrics": {"models": models, **metrics},
            "steps": {f"read {text}.csv": 0.1},
            "seconds": 0.1,
        }
        return json.loads(json.dumps(record))


@pytest.fixture(scope="session")
def plain():
    """Two groups, two classes."""
    return Run(["Female", "Male"], ["no", "yes"]).fairness("income")


@pytest.fixture(scope="session")
def hostile():
    """Two groups, two classes, and names that would be elements if they were not text."""
    return Run([SCRIPT, BOLD], [BOLD, SCRIPT]).fairness(f"{SCRIPT}{BOLD}")


@pytest.fixture(scope="session")
def crowded(once):
    """Twelve groups with long names, six classes."""
    groups = [f"{name}, born in the {decade}s, {name}" for name in ("women", "men", "others") for decade in "5678"]
    classes = [f"class {letter}" for letter in "abcdef"]

    def fit(path):
        run = Run(groups, classes, "demographic_parity", rows=6000, strengths=(0.0, 0.5))
        write_json(path, run.fairness("a_rather_long_column_name_without_a_break"))

    return json.loads(once("crowded.json", fit).read_text())


@pytest.fixture(scope="session")
def audited():
    """An audit of three classes, with a limit that is too low."""
    return Run(["Female", "Male", "Other"], ["a", "b", "c"], rows=1500).audit("proba", limit=0.01)


@dataclass
class Opened:
    """A page in the browser, and everything it did that it should not."""

    page: object
    requests: list = field(default_factory=list)
    problems: list = field(default_factory=list)

    def __post_init__(self):
        self.page.route("**/*", self._route)
        self.page.on("console", lambda message: message.type in ("error", "warning") and self.fault(message.text))
        self.page.on("pageerror", lambda error: self.fault(str(error)))
        self.page.on("dialog", self._dialog)

    def fault(self, text):
        self.problems.append(text)

    def _route(self, route):
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            self.requests.append(route.request.url)
            route.abort()

    def _dialog(self, dialog):
        self.fault(f"a dialog said {dialog.message}")
        dialog.dismiss()


@pytest.fixture(scope="session")
def chromium(once):
    """Where the browser is; installed where that is possible, otherwise the tests are skipped."""
    found = once("chromium", lambda path: path.write_text(shutil.which("chromium") or _install() or "")).read_text()
    if not found:
        pytest.skip("no chromium here, and installing it takes root and a working apt-get")
    return found


def _install():
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return None
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        try:
            subprocess.run(["apt-get", *command], timeout=300, check=True, env=environment, **quiet)
        except (subprocess.SubprocessError, OSError):
            return None
    return shutil.which("chromium")


@pytest.fixture(scope="session")
def browser(chromium):
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        # Debian's own: playwright's download of a browser is never used
        browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
        yield browser
        browser.close()


# here and not beside their tests: whoever opens the first page looks for these names
@pytest.fixture(scope="session")
def table_records():
    return made_tables.made_records("table5", seeds=4, noise=0.02)


@pytest.fixture(scope="session")
def adaptation_records():
    return made_adaptation.made_records()


@pytest.fixture(scope="session")
def opened(browser, request, tmp_path_factory):
    """Open the page of a record, or of several, by the name of the fixture; a page is opened once for each width."""
    folder = tmp_path_factory.mktemp("pages")
    pages = {}

    def open_page(name, width=1100):
        if (name, width) not in pages:
            path = folder / f"{name}.html"
            if not path.exists():
                found = request.getfixturevalue(name)
                write_page(path, found if isinstance(found, list) else [found])
            page = Opened(browser.new_page(viewport={"width": width, "height": 900}))
            # a megabyte of script: long for a machine with other work
            page.page.goto(path.as_uri(), timeout=120_000)
            page.page.locator("html[data-drawn]").wait_for(state="attached", timeout=120_000)
            pages[name, width] = page
        return pages[name, width]

    return open_page
