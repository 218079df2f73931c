"""A checkpoint comes back as it was, or not at all; a writer that is killed leaves the older one whole."""

import json
import math
import shutil

import pytest

torch = pytest.importorskip("torch")

from setminus.nn import checkpoints  # noqa: E402
from setminus.nn.checkpoints import has_checkpoint, load_checkpoint, remove_leftovers, save_checkpoint  # noqa: E402


def tree(seed=0):
    """All kinds of tensors and of plain values that a training keeps."""
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn(2, 3, 4, 4, generator=generator)
    return {
        "floats": image,
        "layout": image.to(memory_format=torch.channels_last),
        "shared": [image[0], image[0].transpose(0, 1)],
        "kinds": (image.bfloat16(), image.double(), image > 0, torch.arange(3), torch.tensor(seed), torch.zeros(0, 2)),
        "numbers": {0: 1, 1: 0.1 + 0.2, "text": "ä", "none": None, "yes": True, "betas": (0.9, 0.999)},
        "infinite": [math.inf, -math.inf],
        "empty": [{}, [], ()],
    }


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, dict):
        return type(b) is dict and list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def test_round_trip(tmp_path):
    save_checkpoint(tmp_path / "new" / "folder", 7, tree())
    step, state = load_checkpoint(tmp_path / "new" / "folder")
    assert step == 7
    assert same(tree(), state)
    assert not same(tree(1), state)


def test_nan_comes_back_and_the_file_stays_json(tmp_path):
    save_checkpoint(tmp_path, 0, {"auc": float("nan")})

    def refuse(constant):
        raise AssertionError(f"{constant} is no json")

    json.loads((tmp_path / "checkpoint.json").read_text(), parse_constant=refuse)
    assert math.isnan(load_checkpoint(tmp_path)[1]["auc"])


def test_names_with_slashes_do_not_meet(tmp_path):
    state = {"a": {"b/c": torch.zeros(1)}, "a/b": {"c": torch.ones(1)}, 1: torch.zeros(2), "1": torch.ones(2)}
    save_checkpoint(tmp_path, 0, state)
    assert same(state, load_checkpoint(tmp_path)[1])


def test_only_safetensors_and_json_and_only_the_last(tmp_path):
    for step in (1, 2, 3):
        save_checkpoint(tmp_path, step, tree(step))
        assert sorted(p.name for p in tmp_path.iterdir()) == [f"checkpoint-{step:09d}.safetensors", "checkpoint.json"]
        assert same(tree(step), load_checkpoint(tmp_path)[1])
    for path in tmp_path.iterdir():
        # how a pickle, and the zip that torch puts it in, begin
        assert path.read_bytes()[:2] not in (b"\x80\x02", b"\x80\x04", b"\x80\x05", b"PK")
    torch.save({}, tmp_path / "pickle")
    assert (tmp_path / "pickle").read_bytes()[:2] == b"PK"


def test_a_kill_between_the_two_renames_leaves_the_older_pair(tmp_path, monkeypatch):
    save_checkpoint(tmp_path, 1, tree(1))

    class Killed(BaseException):
        pass

    def dumps(*args, **options):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.json, "dumps", dumps)
        with pytest.raises(Killed):
            save_checkpoint(tmp_path, 2, tree(2))
    # nobody tidies up after a real kill
    (tmp_path / ".checkpoint-000000002.safetensors-abc").mkdir()
    (tmp_path / ".checkpoint-000000002.safetensors-abc" / "half").write_bytes(b"half")
    assert (tmp_path / "checkpoint-000000002.safetensors").exists()
    step, state = load_checkpoint(tmp_path)
    assert step == 1
    assert same(tree(1), state)
    # to look is not to write: another process may still be at it
    assert len(list(tmp_path.iterdir())) == 4
    remove_leftovers(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint-000000001.safetensors", "checkpoint.json"]
    assert same(tree(1), load_checkpoint(tmp_path)[1])


def test_a_kill_in_the_first_checkpoint_leaves_nothing(tmp_path):
    save_checkpoint(tmp_path, 1, tree())
    (tmp_path / "checkpoint.json").unlink()
    (tmp_path / ".checkpoint.json-abc").mkdir()
    assert not has_checkpoint(tmp_path)
    remove_leftovers(tmp_path)
    assert list(tmp_path.iterdir()) == []
    save_checkpoint(tmp_path, 1, tree())
    assert has_checkpoint(tmp_path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: (f / "checkpoint.json").write_text("{"), "is damaged .*remove it and start again"),
        (lambda f: (f / "checkpoint.json").write_text("[]"), "is damaged .*remove it and start again"),
        (lambda f: (f / "checkpoint.json").write_text('{"tensors": "checkpoint-000000001.safetensors"}'), "is damaged"),
        (
            lambda f: (f / "checkpoint.json").write_text(
                json.dumps({"tensors": "checkpoint-000000001.safetensors", "state": {"tensor": "no"}, "step": 1})
            ),
            "is damaged",
        ),
        (
            lambda f: changed(f, tensors="../other/checkpoint-000000001.safetensors"),
            "is damaged .*is no name of tensors",
        ),
        (lambda f: changed(f, tensors="/dev/zero"), "is damaged .*is no name of tensors"),
        (lambda f: changed(f, tensors=7), "is damaged"),
        (lambda f: changed(f, state={"module": ["os", "system"]}), "is damaged"),
        (lambda f: changed(f, state={}), "is damaged"),
        (lambda f: (f / "checkpoint.json").write_text("[" * 100_000), "is damaged"),
        (lambda f: shorten(f / "checkpoint-000000001.safetensors"), "is damaged"),
        (lambda f: (f / "checkpoint-000000001.safetensors").write_bytes(b""), "is damaged"),
        (lambda f: (f / "checkpoint-000000001.safetensors").unlink(), "no whole checkpoint .*000000001.safetensors"),
        (shutil.rmtree, "no whole checkpoint .*checkpoint.json.*start again"),
    ],
)
def test_damage_is_said(tmp_path, damage, said):
    save_checkpoint(tmp_path / "run", 1, tree())
    assert load_checkpoint(tmp_path / "run")[0] == 1
    damage(tmp_path / "run")
    with pytest.raises(ValueError, match=said):
        load_checkpoint(tmp_path / "run")


def changed(folder, **changes):
    index = json.loads((folder / "checkpoint.json").read_text())
    (folder / "checkpoint.json").write_text(json.dumps(index | changes))


def test_a_pickle_is_not_read(tmp_path):
    save_checkpoint(tmp_path, 1, tree())
    torch.save({"a": torch.zeros(1)}, tmp_path / "checkpoint-000000001.safetensors")
    with pytest.raises(ValueError, match="is damaged"):
        load_checkpoint(tmp_path)


def test_leftovers_beside_a_damaged_checkpoint_stay(tmp_path):
    save_checkpoint(tmp_path, 1, tree())
    (tmp_path / "checkpoint.json").write_text("{}")
    with pytest.raises(ValueError, match=r"is damaged .*remove it and start again"):
        remove_leftovers(tmp_path)
    assert (tmp_path / "checkpoint-000000001.safetensors").exists()


def shorten(path):
    path.write_bytes(path.read_bytes()[:-10])


def test_refuses_what_only_a_pickle_could_hold(tmp_path):
    with pytest.raises(TypeError, match=r"/a/0 is a object: a checkpoint holds tensors, numbers, text and None"):
        save_checkpoint(tmp_path, 0, {"a": [object()]})
    assert not has_checkpoint(tmp_path)
