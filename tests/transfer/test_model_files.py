"""Translators as files: the same pictures before and after, and nothing but whole models is read."""

import hashlib
import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from safetensors.torch import load, save  # noqa: E402

from setminus.datasets.images import to_signed_nchw  # noqa: E402
from setminus.transfer.model_files import ImageTranslator, load_translator, save_translator  # noqa: E402
from setminus.transfer.networks import image_tensor, kind_for, networks_for, signed  # noqa: E402
from tests.made_models import outcome  # noqa: E402


def test_it_is_what_the_data_layer_says():
    images = np.random.default_rng(0).integers(0, 256, (3, 8, 4, 3), dtype=np.uint8)
    tensor = image_tensor(images)
    assert np.allclose(signed(tensor).numpy(), to_signed_nchw(images), atol=1e-6)
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    assert signed(tensor).is_contiguous(memory_format=torch.channels_last)


def test_floats_stay_as_they_are():
    x = torch.rand(2, 3, 4, 4)
    assert signed(x) is x


def test_what_is_no_image_is_refused():
    with pytest.raises(ValueError, match=r"float64 of shape \(2, 8, 8, 3\): expected uint8"):
        image_tensor(np.zeros((2, 8, 8, 3)))
    with pytest.raises(ValueError, match=r"of shape \(2, 8, 8\)"):
        image_tensor(np.zeros((2, 8, 8), dtype=np.uint8))


def fresh(size=16, width=4, seed=0):
    networks = networks_for(size, width, seed=seed)
    return ImageTranslator(networks.a_to_b, networks.b_to_a, size, width, {"column": "hair"})


@pytest.fixture
def pictures():
    return np.random.default_rng(0).integers(256, size=(3, 16, 16, 3)).astype(np.uint8)


@pytest.fixture
def model(tmp_path):
    return save_translator(fresh(), tmp_path / "model", {"judge": torch.nn.Linear(2, 2)})


def test_a_model_translates_after_its_way_through_files_as_before(model, pictures):
    again = load_translator(model)
    for direction in ("a_to_b", "b_to_a"):
        assert np.array_equal(again.translate(pictures, direction), fresh().translate(pictures, direction))
    assert not np.array_equal(again.translate(pictures), fresh(seed=1).translate(pictures))
    assert again.about == {"column": "hair"}
    assert sorted(file.name for file in model.iterdir()) == [
        "classifiers.safetensors",
        "config.json",
        "generators.safetensors",
    ]


def test_large_networks_too(tmp_path):
    big = fresh(size=32)
    images = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    assert np.array_equal(load_translator(save_translator(big, tmp_path)).translate(images), big.translate(images))


def test_pictures_of_another_size_or_direction(pictures):
    with pytest.raises(ValueError, match=r"expected \(n, 16, 16, 3\)"):
        fresh().translate(pictures[:, :8])
    with pytest.raises(ValueError, match="direction is 'up'"):
        fresh().translate(pictures, "up")


def change(model, **keys):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, **keys}))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda m: (m / "config.json").unlink(), "holds no model"),
        (lambda m: (m / "config.json").write_text("{"), "damaged"),
        (lambda m: (m / "config.json").write_text("[]"), "something else"),
        (lambda m: (m / "config.json").write_bytes(b"\xff\xfe"), "no UTF-8 text"),
        (lambda m: (m / "config.json").write_text("[" * 100_000), "damaged"),
        (lambda m: change(m, format="other"), "something else"),
        (lambda m: change(m, version=2), "format 2, this version of setminus reads 1"),
        (lambda m: change(m, size=10**9), "damaged"),
        (lambda m: change(m, width=10**9), "damaged"),
        (lambda m: change(m, width="4"), "damaged"),
        (lambda m: change(m, width=8), "damaged"),
        (lambda m: change(m, network="unet"), "damaged"),
        (lambda m: change(m, network=["unet"]), "damaged"),
        (lambda m: change(m, sha256=None), r"damaged .*TypeError, its parts do not fit together\)"),
        (lambda m: change(m, sha256={}), r"damaged .*KeyError, its parts do not fit together\)"),
        (lambda m: (m / "generators.safetensors").unlink(), "damaged"),
        (lambda m: (m / "generators.safetensors").write_bytes(b"x" * 50), "not the file"),
        (lambda m: (m / "generators.safetensors").write_bytes(pickle.dumps({})), "not the file"),
    ],
)
def test_what_is_no_whole_model_is_refused(model, damage, words):
    load_translator(model)
    damage(model)
    with pytest.raises(ValueError, match=words):
        load_translator(model)


def test_garbage_with_the_right_checksum_is_still_refused(model):
    content = b"\x10" + b"\x00" * 40
    (model / "generators.safetensors").write_bytes(content)
    change(model, sha256={"generators.safetensors": hashlib.sha256(content).hexdigest()})
    with pytest.raises(ValueError, match="damaged"):
        load_translator(model)


def repacked(model, tensors):
    """Other weights, with their checksum."""
    content = save(tensors)
    (model / "generators.safetensors").write_bytes(content)
    change(model, sha256={"generators.safetensors": hashlib.sha256(content).hexdigest()})


def load_and_tell(model, said):
    try:
        load_translator(model)
    except ValueError as error:
        said.write_text(str(error))


def test_a_small_file_that_asks_for_huge_networks_is_refused_before_they_are_made(model, tmp_path):
    change(model, size=1024, width=1024)
    # 160 GB, in a process that may have 6
    assert outcome(load_and_tell, model, tmp_path / "said", memory=6 << 30) == 0
    assert "its weights are not those of networks of width 1024" in (tmp_path / "said").read_text()


@pytest.mark.parametrize(
    "damage",
    [
        lambda tensors: tensors.pop(next(iter(tensors))),
        lambda tensors: tensors.update(more=torch.zeros(3)),
        lambda tensors: tensors.update({next(iter(tensors)): torch.zeros(3, 3, 3)}),  # no network has three axes
        lambda tensors: tensors.update({key: one.to(torch.int64) for key, one in tensors.items()}),
        lambda tensors: tensors.clear(),
    ],
)
def test_other_weights_are_refused(model, damage):
    tensors = load((model / "generators.safetensors").read_bytes())
    repacked(model, tensors)
    load_translator(model)
    damage(tensors)
    repacked(model, tensors)
    with pytest.raises(ValueError, match="its weights are not those of networks of width 4"):
        load_translator(model)


@pytest.mark.parametrize("name", ["config.json", "generators.safetensors"])
def test_what_never_ends_is_no_file(model, name):
    (model / name).unlink()
    (model / name).symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"holds no model|it is missing, or no file"):
        load_translator(model)


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(["config.json", "generators.safetensors"]), data=st.data())
def test_damage_is_told_or_does_no_harm(tmp_path, pictures, name, data):
    model = save_translator(fresh(), tmp_path / "model")
    content = bytearray((model / name).read_bytes())
    # most of it at the front, where the header is
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 3000) - 1))] = data.draw(st.integers(0, 255))
    content = bytes(content[: data.draw(st.sampled_from([None, 0, 7, len(content) // 2]))])
    (model / name).write_bytes(content)
    if name != "config.json":
        change(model, sha256={name: hashlib.sha256(content).hexdigest()})
    try:
        loaded = load_translator(model)
    except ValueError as error:
        assert str(error).partition(": ")[2]
    else:
        if loaded.size == 16:
            assert loaded.translate(pictures).shape == pictures.shape


def test_a_file_or_nothing_is_no_model(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "nothing", tmp_path):
        with pytest.raises(ValueError, match="holds no model"):
            load_translator(path)


def test_a_folder_whose_name_is_no_utf8(model):
    about = {"data": os.fsdecode(b"m\xe4nner to frauen")}
    save_translator(replace(fresh(seed=1), about=about), model)
    assert load_translator(model).about == about


def test_a_full_disk_costs_nothing_of_the_old_model(model, monkeypatch):
    old = {file.name: file.read_bytes() for file in model.iterdir()}
    before = load_translator(model)

    def full(path, content):
        if path.name == "config.json":
            raise OSError("disk full")
        return real(path, content)

    real = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="disk full"):
        save_translator(fresh(seed=1), model)
    assert {file.name: file.read_bytes() for file in model.iterdir()} == old
    assert load_translator(model).size == before.size


@pytest.mark.parametrize(
    ("size", "kind"), [(12, "digit"), (17, "digit"), (28, "blend"), (30, "blend"), (48, "blend"), (64, "blend")]
)
def test_every_size_has_networks_that_take_it(size, kind):
    networks = networks_for(size, 4, seed=0)
    images = torch.zeros(2, 3, size, size)
    assert kind_for(size) == kind
    assert networks.a_to_b(images).shape == images.shape
    assert len(networks.discriminator_a(images)) == 2


def test_a_small_network_of_an_earlier_version_still_loads_at_a_size_that_has_a_unet_now(tmp_path):
    networks = networks_for(28, 4, seed=0, kind="digit")
    old = ImageTranslator(networks.a_to_b, networks.b_to_a, 28, 4, kind="digit")
    images = np.random.default_rng(0).integers(256, size=(2, 28, 28, 3)).astype(np.uint8)
    assert np.array_equal(load_translator(save_translator(old, tmp_path)).translate(images), old.translate(images))


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (8, "from 12"),
        (-4, "from 12"),
        (4096, "to 1024"),
        (True, "pixels per side"),
        (28.0, "pixels per side"),
    ],
)
def test_other_sizes_are_refused(size, words):
    with pytest.raises(ValueError, match=words):
        kind_for(size)
