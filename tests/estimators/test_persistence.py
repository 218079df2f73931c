import functools
import io
import json
import os
import re
import sys
import warnings
import zipfile
import zlib
from collections import OrderedDict

import numpy as np
import pytest
import skops.io
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from setminus import (
    GroupPrincipal,
    ImportanceWeightedClassifier,
    OrthogonalClassifier,
    ProxyPrincipal,
    TunedOrthogonalClassifier,
    load,
    save,
)
from setminus.estimators import persistence
from setminus.estimators.persistence import LIMIT, read_archive
from tests.made_models import (
    SCHEMA,
    edited,
    load_by_skops_alone,
    members,
    nodes,
    npy,
    outcome,
    plain,
    set_attribute,
    write,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
Y = (X[:, 0] > 0).astype(int)
MEMORY = 1 << 30


@pytest.fixture
def path(tmp_path):
    return save(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y), tmp_path / "model.skops")


def first_array(path):
    return next(name for name in members(path) if name.endswith(".npy"))


def packed(path, name, content, size=None):
    """Put a compressed member in place of one, perhaps with another size than it has."""
    files = members(path) | {name: content}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one, data in files.items():
            archive.writestr(one, data)
    if size is not None:
        raw = path.read_bytes()
        true = len(content).to_bytes(4, "little")
        assert raw.count(true) >= 2
        # also the check sum, which is then that of what a reader cuts off
        raw = raw.replace(true, size.to_bytes(4, "little"))
        sums = (zlib.crc32(one).to_bytes(4, "little") for one in (content, content[:size]))
        path.write_bytes(raw.replace(*sums))
    return path


def refused(path):
    try:
        load(path)
    except ValueError as error:
        path.with_suffix(".said").write_text(str(error))


def loaded_by_skops(path):
    try:
        load_by_skops_alone(path)
    except MemoryError:
        path.with_suffix(".said").write_text("MemoryError")


def test_a_bomb_is_refused_before_it_is_unpacked(path):
    packed(path, first_array(path), npy(np.zeros(1 << 26)))
    assert path.stat().st_size < 1_000_000
    said = path.with_suffix(".said")
    # the control: half a GiB, in several copies, in a process that may have one
    assert outcome(loaded_by_skops, path, memory=MEMORY) == 0
    assert said.read_text() == "MemoryError"
    assert outcome(refused, path, memory=MEMORY) == 0
    assert re.search(r"unpacks to at least 5\d\d,\d\d\d,\d\d\d, more", said.read_text())
    assert f": if you know who made it, set {LIMIT} to a larger number" in said.read_text()


def test_a_bomb_that_lies_about_its_size_is_found(path):
    name = first_array(path)
    packed(path, name, npy(np.zeros(1 << 26)), size=1000)
    assert zipfile.ZipFile(path).getinfo(name).file_size == 1000
    said = path.with_suffix(".said")
    # the control: zipfile makes all of it before it cuts it off
    assert outcome(loaded_by_skops, path, memory=MEMORY) == 0
    assert said.read_text() == "MemoryError"
    said.unlink()
    assert outcome(refused, path, memory=MEMORY) == 0
    assert "is damaged (the bytes of an array do not match its header, float64 of shape" in said.read_text()


def test_a_header_that_promises_more_than_there_is(path):
    header = npy(np.zeros(3))[:128].replace(b"(3,)", b"(999999999999,)").replace(b" " * 11 + b"\n", b"\n")
    write(path, members(path) | {first_array(path): header[:118] + b" " * 9 + b"\n" + bytes(24)})
    with pytest.raises(ValueError, match=r"an array says that it is float64 of shape|is damaged"):
        load(path)


def test_one_array_for_many_nodes_counts_each_time(path, monkeypatch):
    def repeat(schema, arrays):
        node = next(one for one in nodes(schema, "ndarray") if "file" in one)
        listed = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "__id__": 9_000_000}
        schema["content"]["content"]["many"] = listed | {"content": [node | {"__id__": i} for i in range(1, 2001)]}
        schema["content"]["key_types"]["content"].append(schema["content"]["key_types"]["content"][0])
        arrays[node["file"]] = np.zeros(20_000)

    edited(path, repeat)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(ValueError, match="unpacks to at least"):
        load(path)
    monkeypatch.setenv(LIMIT, str(1 << 30))
    assert len(load(path).many) == 2000


def test_the_limit_is_adjustable(path, monkeypatch):
    monkeypatch.setenv(LIMIT, "1000")
    with pytest.raises(ValueError, match=r"unpacks to at least [\d,]+, more than the 1,000 that are allowed: "):
        load(path)
    monkeypatch.setenv(LIMIT, "2 GB")
    with pytest.raises(ValueError, match=f"{LIMIT} is '2 GB': expected a number of bytes"):
        load(path)
    monkeypatch.delenv(LIMIT)
    load(path)
    # to the byte, of all members together
    monkeypatch.setenv(LIMIT, "100")
    room = persistence._Room(path)
    room.take(60)
    room.take(40)
    with pytest.raises(ValueError, match="unpacks to at least 101, more than the 100"):
        room.take(1)


def test_a_reason_is_one_line_of_bounded_length():
    most = persistence.MAX_CHARACTERS
    assert persistence._short("a\nb" + "c" * (most - 4)) == "a\\nb" + "c" * (most - 4)
    assert persistence._short("c" * (most + 1)) == "c" * most + "..."


def test_a_compressed_file_of_skops_loads(path):
    packed(path, SCHEMA, members(path)[SCHEMA])
    assert load(path).predict(X).shape == (50,)


def test_what_skops_reads_is_what_was_looked_at(path):
    """Two readers of one zip may find different members; skops is given one that has been written anew."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("unasked.npy", npy(np.zeros(3)))
    content = read_archive(path).content
    assert "unasked.npy" not in zipfile.ZipFile(io.BytesIO(content)).namelist()
    assert load(path).predict(X).shape == (50,)


def same_name(path):
    raw = members(path)[SCHEMA]
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(SCHEMA, raw)


def in_schema(**changes):
    return lambda path: edited(path, lambda schema, arrays: schema.update(changes))


def inside(change):
    return lambda path: edited(path, lambda schema, arrays: change(next(nodes(schema, "StandardScaler"))))


def deep(path):
    write(path, members(path) | {SCHEMA: '{"protocol": 2, "content": ' + "[" * 100_000 + "]" * 100_000 + "}"})


def nested(path):
    node = plain(0)
    for i in range(300):
        node = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "__id__": i, "content": [node]}
    write(path, members(path) | {SCHEMA: json.dumps(node | {"protocol": 2})})


def pickled(path):
    stream = io.BytesIO()
    np.save(stream, np.array([{}], dtype=object), allow_pickle=True)
    write(path, members(path) | {first_array(path): stream.getvalue()})


def zipped_arrays(path):
    stream = io.BytesIO()
    np.savez(stream, a=np.zeros(3))
    write(path, members(path) | {first_array(path): stream.getvalue()})


def no_size(path):
    write(path, members(path) | {first_array(path): npy(np.zeros(3)).replace(b"'<f8'", b"'|S0'").ljust(128)[:128]})


def itself(path):
    """A part that holds itself."""

    def change(schema, arrays):
        step = next(nodes(schema, "StandardScaler"))
        step["content"]["content"]["mean_"] = step | {"content": plain(0)}

    edited(path, change)


def laughs(path):
    """Short nodes that skops takes for long ones: 2 to the power of 30 steps in a small file."""
    node = plain(0)
    for i in range(1, 31):
        head = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "__id__": i}
        short = {
            "__class__": "list",
            "__module__": "builtins",
            "__loader__": "ListNode",
            "__id__": i - 1,
            "content": [],
        }
        node = head | {"content": [node, short]}
    write(path, members(path) | {SCHEMA: json.dumps(node | {"protocol": 2})})


DAMAGE = {
    "no zip": lambda path: path.write_bytes(b"not a model"),
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "cut off in front": lambda path: path.write_bytes(path.read_bytes()[100:]),
    "no schema": lambda path: write(path, {name: data for name, data in members(path).items() if name != SCHEMA}),
    "no array": lambda path: write(path, {SCHEMA: members(path)[SCHEMA]}),
    "two schemas": same_name,
    "no json": lambda path: write(path, members(path) | {SCHEMA: "{"}),
    "no text": lambda path: write(path, members(path) | {SCHEMA: b"\xff\xfe\xfd"}),
    "a list": lambda path: write(path, members(path) | {SCHEMA: "[]"}),
    "a number": lambda path: write(path, members(path) | {SCHEMA: "7"}),
    "nothing": lambda path: write(path, members(path) | {SCHEMA: "{}"}),
    "deep brackets": deep,
    "deep nodes": nested,
    "an old protocol": in_schema(protocol=0),
    "a new protocol": in_schema(protocol=99),
    "a protocol that is true": in_schema(protocol=True),
    "another loader": in_schema(__loader__="NoNode"),
    "a loader that is a number": in_schema(__loader__=7),
    "a class that is a list": in_schema(__class__=["x"]),
    "a class that is not there": in_schema(__class__="Pipelines"),
    "a number that is a list": inside(lambda node: node.update(__id__=[1])),
    "no number": inside(lambda node: node.pop("__id__")),
    "attributes that are a list": inside(lambda node: node.update(content=[])),
    "a module that is nothing": inside(lambda node: node.update(__module__=None)),
    "no keys": inside(lambda node: node["content"].pop("key_types")),
    "a file that is a number": inside(lambda node: next(nodes(node, "ndarray")).update(file=7)),
    "a file outside": inside(lambda node: next(nodes(node, "ndarray")).update(file="../../etc/passwd")),
    "an array of another kind": inside(lambda node: next(nodes(node, "ndarray")).update(type="pickle")),
    "a pickle": pickled,
    "arrays in an array": zipped_arrays,
    "an array that is cut off": lambda path: write(path, members(path) | {first_array(path): npy(np.zeros(3))[:-8]}),
    "an array without a header": lambda path: write(path, members(path) | {first_array(path): b""}),
    "values of no size": no_size,
    "a part that holds itself": itself,
    "many from few": laughs,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_all_damage_is_told_as_one_kind_of_error(damage, path):
    load(path)
    damage(path)
    with pytest.raises(
        ValueError, match=r"^model\.skops (is not a model file of setminus, or is damaged|holds what)"
    ) as caught:
        load(path)
    problem, _, advice = str(caught.value).partition(": ")
    assert problem
    assert advice
    assert "\n" not in str(caught.value)
    # Python's words about its own objects help nobody to mend a file
    assert not re.search(r"NoneType|object has no|Errno|indices must|codec can't|unhashable|not subscriptable", problem)


@pytest.mark.parametrize(("depth", "refused"), [(400, False), (401, True)])
def test_parts_may_lie_400_deep(depth, refused, path):
    # the object around the brackets is the first
    brackets = "[" * (depth - 1) + "]" * (depth - 1)
    write(path, members(path) | {SCHEMA: f'{{"protocol": 2, "content": {brackets}}}'})
    with pytest.raises(ValueError, match="is damaged") as caught:
        load(path)
    assert ("more than 400 deep" in str(caught.value)) is refused


def test_an_array_of_objects_is_refused_even_if_its_size_is_right(path):
    header = npy(np.zeros(3))[:128].replace(b"'<f8'", b"'|O' ")
    write(path, members(path) | {first_array(path): header + bytes(24)})
    with pytest.raises(ValueError, match=r"the bytes of an array do not match its header, object of shape \(3,\)"):
        load(path)


def test_deep_nodes_are_refused_whatever_limit_python_has(path):
    limit = sys.getrecursionlimit()
    nested(path)
    try:
        sys.setrecursionlimit(20 * limit)
        with pytest.raises(ValueError, match=r"more than 400 deep"):
            load(path)
    finally:
        sys.setrecursionlimit(limit)


def test_other_ways_of_compression_are_refused(path):
    files = members(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(ValueError, match="compressed in another way than by deflate"):
        load(path)


def test_a_name_cannot_steer_the_terminal(path):
    edited(path, lambda schema, arrays: schema.update(__class__="Pipe\x1b[2J\nError: all is well" + "x" * 1000))
    with pytest.raises(ValueError, match="not trusted") as caught:
        load(path)
    assert str(caught.value).isprintable()
    assert r"Pipe\x1b[2J\nError" in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_number_does_not_stand_for_two_nodes(path):
    """Skops would take the second for the first, and what is checked of one would be true of the other."""
    edited(
        path,
        lambda schema, arrays: next(nodes(schema, "LogisticRegression"))["content"]["content"]["C"].update(
            __id__=next(nodes(schema, "StandardScaler"))["content"]["content"]["copy"]["__id__"]
        ),
    )
    assert load_by_skops_alone(path)[-1].C is True
    with pytest.raises(ValueError, match="two different nodes have the number"):
        load(path)


def test_an_attribute_may_be_called_file(tmp_path):
    model = StandardScaler().fit(X)
    model.file, model.content = "a.npy", X
    assert load(save(model, tmp_path / "m.skops")).file == "a.npy"


def test_shared_parts_stay_one(path, tmp_path):
    scaler = StandardScaler().fit(X)
    again = load(save([scaler, scaler, FunctionTransformer(np.exp)], tmp_path / "shared.skops"))
    assert again[0] is again[1]


BOOSTING = HistGradientBoostingClassifier(max_iter=5)
LOGISTIC = LogisticRegression()


@pytest.mark.parametrize(
    "model",
    [
        OrthogonalClassifier(BOOSTING),
        OrthogonalClassifier(make_pipeline(StandardScaler(), LOGISTIC), calibration="sigmoid"),
        OrthogonalClassifier(BOOSTING, ProxyPrincipal(BOOSTING), calibration="isotonic"),
        OrthogonalClassifier(LOGISTIC, ProxyPrincipal(LOGISTIC, method="score"), calibration="temperature"),
        OrthogonalClassifier(LOGISTIC, [GroupPrincipal(), LOGISTIC]),
        TunedOrthogonalClassifier(BOOSTING, ProxyPrincipal(BOOSTING), cv=2, strengths=[0, 1]),
        ImportanceWeightedClassifier(BOOSTING),
        ImportanceWeightedClassifier(HistGradientBoostingClassifier(max_iter=5, categorical_features=[1])),
    ],
    ids=lambda model: f"{type(model).__name__}-{type(model.principal).__name__}-{getattr(model, 'calibration', None)}",
)
@pytest.mark.parametrize("kind", ["binary", "three"])
def test_our_models_load_as_they_are(model, kind, rows, many, tmp_path):
    data = rows if kind == "binary" else many
    keep = slice(0, 600)
    X, y, sex = data.X[keep], np.array(["a", "b", "c"])[data.y[keep]], data.sex[keep]
    model.fit(X, y, sensitive_features=sex)
    again = load(save(model, tmp_path / "model.skops"))
    needs = {"sensitive_features": sex} if "Group" in str(getattr(model, "principals_", "")) else {}
    if isinstance(model, ImportanceWeightedClassifier):
        needs = {}
    np.testing.assert_array_equal(again.predict_proba(X, **needs), model.predict_proba(X, **needs))
    np.testing.assert_array_equal(again.predict(X, **needs), model.predict(X, **needs))


def test_a_frozen_model_and_binned_crossed_groups(rows, tmp_path):
    groups = np.column_stack([rows.male, rows.X[:, 2]])
    model = OrthogonalClassifier(FrozenEstimator(LogisticRegression().fit(rows.X, rows.y)))
    model.fit(rows.X, rows.y, sensitive_features=groups)
    again = load(save(model, tmp_path / "model.skops"))
    np.testing.assert_array_equal(
        again.predict(rows.X, sensitive_features=groups), model.predict(rows.X, sensitive_features=groups)
    )


def test_strangers_are_refused_by_name_until_they_are_trusted(rows, tmp_path):
    model = KernelRidge().fit(rows.X[:50], rows.y[:50])
    stranger = "sklearn.kernel_ridge.KernelRidge"
    path = save(model, tmp_path / "stranger.skops")
    with pytest.raises(
        ValueError, match=rf"not trusted, {stranger}: .*load\(path, trusted=\['{stranger}'\]\)"
    ) as refused:
        load(path)
    assert refused.value.typed.endswith(f"add this to the command: --trust {stranger}")
    assert load(path, trusted=[stranger]).alpha == 1
    with pytest.raises(TypeError, match="expected a list of type names"):
        load(path, trusted=stranger)


def test_a_partial_of_a_stranger_is_refused_until_it_is_trusted(tmp_path):
    path = save(FunctionTransformer(functools.partial(os.system, "true")), tmp_path / "hostile.skops")
    with pytest.raises(ValueError, match=r"not trusted, posix\.system: if you know who made the file"):
        load(path)
    assert load(path, trusted=["posix.system"]).func.args == ("true",)


def test_another_version_of_scikit_learn_is_told_once_and_in_our_words(rows, tmp_path):
    path = save(make_pipeline(StandardScaler(), LOGISTIC).fit(rows.X, rows.y), tmp_path / "m.skops")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(path)

    def older(schema, arrays):
        for name in ("StandardScaler", "LogisticRegression", "Pipeline"):
            set_attribute(schema, name, "_sklearn_version", plain("0.1\x1b[2J"))

    edited(path, older)
    with pytest.warns(UserWarning, match=r"m\.skops was saved with another version of scikit-learn than") as told:
        load(path)
    assert len(told) == 1
    assert str(told[0].message).isprintable()


def test_what_is_no_model(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load(tmp_path / "absent.skops")
    wrong = tmp_path / "wrong.skops"
    wrong.write_bytes(b"not a model")
    with pytest.raises(ValueError, match=r"wrong.skops is not a model file"):
        load(wrong)


def test_a_failed_save_leaves_the_old_file_and_nothing_else(rows, tmp_path, monkeypatch):
    path = save(OrthogonalClassifier(LOGISTIC).fit(rows.X, rows.y, sensitive_features=rows.sex), tmp_path / "m.skops")
    before = path.read_bytes()

    def interrupted(model):
        raise KeyboardInterrupt

    monkeypatch.setattr(skops.io, "dumps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(OrthogonalClassifier(LOGISTIC), path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["m.skops"]


def test_an_adapter_comes_back_with_the_same_answers(tmp_path):
    pytest.importorskip("torch")
    from setminus import OrthogonalAdapter

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.tile([0, 1], 30)
    adapter = OrthogonalAdapter("vada_orthogonal", steps=20).fit(X, y, sample_domain=np.repeat([1, -1], 30))
    back = load(save(adapter, tmp_path / "adapter.skops"))
    assert np.array_equal(back.predict_proba(X), adapter.predict_proba(X))


def test_a_file_takes_little_more_room_than_its_arrays(tmp_path):
    x, noise = np.random.default_rng(0).normal(size=(2, 5000, 2))
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(x, (x + noise)[:, 0] > 0)
    path = save(model, tmp_path / "model.skops")
    arrays = sum(trees[0].nodes.nbytes for trees in model._predictors)
    # as skops writes it, the JSON alone takes more than the arrays
    assert path.stat().st_size < arrays < len(skops.io.dumps(model)) / 2
    np.testing.assert_array_equal(load(path).predict_proba(x), model.predict_proba(x))


def test_a_large_model_is_not_compressed(tmp_path, monkeypatch):
    model = [np.zeros(1000), np.zeros(1000)]
    small = save(model, tmp_path / "small.skops").stat().st_size
    for limit in (1000, 20_000):
        monkeypatch.setattr(persistence, "SMALL", limit)
        path = save(model, tmp_path / "large.skops")
        assert small < 2000 < 16_000 < path.stat().st_size
        assert [part.sum() for part in load(path)] == [0, 0]


def test_plain_data_of_a_model_come_back(tmp_path):
    held = {
        "set": {1, 2},
        "slice": slice(1, None),
        "tuple": (1, "a", None, True),
        "bytes": b"\x00x",
        "dtype": np.dtype("f4"),
        "ordered": OrderedDict(b=1, a=2),
        "type": int,
        "scalar": np.float32(0.5),
        "ufunc": np.log1p,
    }
    model = StandardScaler().fit(np.eye(3))
    model.about_ = held | {"masked": np.ma.masked_array([1, 2], [True, False])}
    found = load(save(model, tmp_path / "plain.skops")).about_
    masked = found.pop("masked")
    assert found == held and {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in held.items()
    }
    assert masked.tolist() == [None, 2]
