import json

import numpy as np
import pytest

from setminus.auditing.audit import audit

HOSTILE = "<script>alert(1)</script>"


def fairness_record(groups=("Female", "Male"), n_classes=2, text="plain", seed=0):
    """A small record of the shape that `setminus demo` writes, through JSON as a file would hold it."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=600)
    group = rng.choice(groups, size=600)

    def model(title, shift):
        logits = rng.normal(size=(600, n_classes)) + 2 * np.eye(n_classes)[y]
        logits[:, 1] += shift * (group == groups[0])
        proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        result = audit(y, proba, sensitive_features=group, full_proba=proba, n_bootstrap=20, n_permutations=20)
        return {"title": title, "about": f"{text} about", "audit": result.to_dict()}

    def point(score, gap):
        decision = {"threshold": 0.4} if n_classes == 2 else {"offsets": [0.0] * n_classes}
        return {"strength": 0.5, **decision, "score": score, "gap": gap}

    record = {
        "name": f"demo {text}",
        "job": "fairness",
        "config": {"tolerance": 0.05, "constraint": "equalized_odds", "agg": "sum"},
        "seed": 0,
        "versions": {"python": "3.11", text: text},
        "command": f"setminus demo {text}",
        "task": {
            "data": f"{text} data",
            "label": f"{text} label",
            "labels": {"0": f"{text} no", "1": f"{text} yes"},
            "ignored": f"{text} ignored",
            "rows": {"train": 1000, "test": 600},
            "features": [f"{text} feature", "age"],
        },
        "usage": f"model.fit(X, y)  # {text}",
        "metrics": {
            "attribute_predictability": {"auc": 0.9, "accuracy": 0.8, "largest_group": 0.6},
            "models": [model("before", 2.0), model(f"{text} after", 0.0)],
            "frontier": {
                "best": [point(0.7, 0.01), point(0.8, 0.04)],
                "chosen": point(0.8, 0.04),
                "untouched": point(0.82, 0.2),
                "searched": 100,
                "score_name": "accuracy",
                "tolerance": 0.05,
            },
        },
        "steps": {f"{text} step": 0.5},
        "seconds": 0.5,
    }
    return json.loads(json.dumps(record))


@pytest.fixture(scope="session")
def record():
    return fairness_record()


@pytest.fixture
def altered(record):
    """A copy of the record that a test may change."""
    return json.loads(json.dumps(record))


@pytest.fixture(scope="session")
def audit_record(record):
    """What `setminus audit` writes: one score, no frontier, a limit."""
    task = {key: record["task"][key] for key in ("data", "label", "labels", "ignored")}
    model = {**record["metrics"]["models"][0], "title": "score"}
    value = model["audit"]["demographic_parity"]["value"]
    return {
        **{key: record[key] for key in ("config", "seed", "versions", "steps", "seconds")},
        "name": "audit",
        "job": "audit",
        "command": "setminus audit scored.csv",
        "task": {**task, "score": "proba_1", "rows": {"test": 600}, "notes": ["one row was left out"]},
        "metrics": {"models": [model]},
        "limit": {"name": "demographic_parity", "limit": 2 * value, "value": value, "passed": True},
    }


@pytest.fixture(scope="session")
def hostile_record():
    return fairness_record(groups=(HOSTILE, r"<b>bold</b> & co $\frac$"), text=HOSTILE)


@pytest.fixture(scope="session")
def crowded_record():
    """Eight groups and five classes: more than the figures show."""
    return fairness_record(groups=tuple("abcdefgh"), n_classes=5)
