"""Thousands of ways to damage a model file: each loads, or is refused by one kind of error, and none ends the process.

``SETMINUS_FUZZ=400`` runs 400 batches instead of a few.
"""

import copy
import io
import json
import os
import random
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder
from sklearn.svm import SVC

from setminus import GroupPrincipal, OrthogonalClassifier, ProxyPrincipal, load, save
from tests.made_models import SCHEMA, members, outcome, write

BATCHES = int(os.environ.get("SETMINUS_FUZZ", "4"))
BATCH = 25
MEMORY = 3 << 30
SECONDS = 60
ODD = (
    None,
    True,
    -1,
    0,
    1,
    7,
    1 << 31,
    1 << 63,
    -(1 << 40),
    1e308,
    float("nan"),
    "",
    "x",
    "drop",
    [],
    [[]],
    {},
    {"a": 1},
)

RNG = np.random.default_rng(0)
X = np.column_stack([RNG.normal(size=(120, 2)), RNG.integers(0, 4, (120, 2))])
Y = (X[:, 0] + X[:, 2] > 1).astype(int)
GROUPS = np.where(X[:, 3] > 1, "a", "b")


def boosting(**options):
    return HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=4, random_state=0, **options)


def models():
    one_hot = make_pipeline(OneHotEncoder(max_categories=3, handle_unknown="ignore"), LogisticRegression())
    proxy = OrthogonalClassifier(boosting(categorical_features=[2, 3]), ProxyPrincipal(boosting()))
    counted = OrthogonalClassifier(make_pipeline(KBinsDiscretizer(3), LogisticRegression()), GroupPrincipal())
    return {
        "proxy": proxy.fit(X, Y, sensitive_features=GROUPS),
        "counted": counted.fit(X, Y, sensitive_features=GROUPS),
        "one_hot": one_hot.fit(X[:, 2:], Y),
        "forest": RandomForestClassifier(2, max_depth=3, random_state=np.random.RandomState(0)).fit(X, Y),
        "vectors": SVC().fit(X, Y),
    }


def flipped(content, dice):
    content = bytearray(content)
    for _ in range(dice.choice([1, 1, 4, 32])):
        content[dice.randrange(len(content))] = dice.randrange(256)
    return bytes(content)


def places(value, found):
    """Every place of a JSON value, as its container and key."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            found.append((value, key))
            places(inner, found)
    return found


def edited_json(schema, dice):
    """One to three changes: another value, another place's value, nothing, or a name of another node."""
    for _ in range(dice.choice([1, 1, 2, 3])):
        container, key = dice.choice(places(schema, []))
        other, name = dice.choice(places(schema, []))
        match dice.randrange(5):
            case 0:
                container[key] = dice.choice(ODD)
            case 1:
                container[key] = copy.deepcopy(other[name])
            case 2:
                del container[key]
            case 3 if isinstance(container[key], str):
                # what a JsonNode holds is text of its own
                container[key] = json.dumps(dice.choice(ODD))
            case _ if isinstance(container, dict) and isinstance(other, dict):
                for part in ("__id__", "__loader__", "__class__", "__module__", "file", "content"):
                    if part in container and part in other and dice.random() < 0.5:
                        container[part] = copy.deepcopy(other[part])
    return schema


def edited_array(content, dice):
    """Another number, another header, or another byte."""
    match dice.randrange(3):
        case 0:
            return flipped(content, dice)
        case 1:
            head, _, data = content.partition(b"\n")
            return flipped(head, dice) + b"\n" + data
        case _:
            array = np.load(io.BytesIO(content))
            flat = array.reshape(-1)
            if flat.size:
                place = dice.randrange(flat.size)
                field = dice.choice(array.dtype.names) if array.dtype.names else ...
                with np.errstate(all="ignore"):
                    flat[place : place + 1][field] = np.array(
                        [dice.choice([-1, 0, 1, 3, 200, 1 << 20, 1 << 31, 1 << 40, -(1 << 31)])]
                    ).astype(flat[field].dtype if array.dtype.names else array.dtype)
            stream = io.BytesIO()
            np.save(stream, array)
            return stream.getvalue()


def damage(source, target, seed):
    """Write a damaged copy of a model file."""
    dice = random.Random(seed)
    files = members(source)
    match dice.randrange(8):
        case 0:
            target.write_bytes(flipped(source.read_bytes(), dice))
        case 1:
            raw = source.read_bytes()
            target.write_bytes(raw[: dice.randrange(len(raw))] + raw[dice.randrange(len(raw)) :] * dice.randrange(2))
        case 2:
            name = dice.choice(list(files))
            write(target, files | {name: flipped(files[name], dice)})
        case 3 | 4 | 5:
            write(target, files | {SCHEMA: json.dumps(edited_json(json.loads(files[SCHEMA]), dice))})
        case _:
            arrays = [name for name in files if name.endswith(".npy")]
            name = dice.choice(arrays)
            other = files[dice.choice(arrays)] if dice.random() < 0.1 else edited_array(files[name], dice)
            write(target, files | {name: other})
    return target


def survive(folder, seeds):
    """Load damaged files and predict with those that load; the log has the one in work and how the others ended."""
    warnings.simplefilter("ignore")
    log = folder / "log"
    sources = sorted(folder.glob("*.skops"))
    for seed in seeds:
        log.open("a").write(f"{seed} ")
        path = damage(sources[seed % len(sources)], folder / "damaged.model", seed)
        try:
            model = load(path)
        except ValueError as error:
            problem, _, advice = str(error).partition(": ")
            log.open("a").write("refused\n" if problem and advice and "\n" not in str(error) else "untold\n")
            continue
        # whatever a model of no sense raises, the process goes on
        try:
            rows = X[:, 2:] if "one_hot" in sources[seed % len(sources)].name else X
            needed = {"sensitive_features": GROUPS} if "counted" in sources[seed % len(sources)].name else {}
            (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(rows, **needed)
            log.open("a").write("predicted\n")
        except Exception as error:
            log.open("a").write(f"raised {type(error).__name__}\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    for name, model in models().items():
        save(model, place / f"{name}.skops")
    yield place
    ends = [line.split()[1] for line in (place / "log").read_text().splitlines()]
    print({end: ends.count(end) for end in sorted(set(ends))})


@settings(deadline=None, max_examples=BATCHES, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.integers(0, 1 << 40))
def test_no_damage_ends_the_process_or_takes_all_memory(folder, start):
    log = folder / "log"
    before = log.read_text() if log.exists() else ""
    assert outcome(survive, folder, range(start, start + BATCH), seconds=SECONDS, memory=MEMORY) == 0, log.read_text()[
        -99:
    ]
    ends = log.read_text()[len(before) :].splitlines()
    assert len(ends) == BATCH
    assert all(line.split()[1] in ("refused", "predicted", "raised") for line in ends)


def test_some_damage_is_refused_and_some_is_harmless(folder):
    """The control: the damage reaches what a model is made of."""
    log = folder / "log"
    before = len(log.read_text()) if log.exists() else 0
    assert outcome(survive, folder, range(4 * BATCH), seconds=SECONDS, memory=MEMORY) == 0
    ends = log.read_text()[before:]
    assert ends.count("refused") > 10
    assert ends.count("predicted") > 3
