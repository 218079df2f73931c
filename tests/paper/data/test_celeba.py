import io
import logging
import os
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
from setminus_paper.data import celeba
from setminus_paper.data.celeba import (
    CELEBA,
    CELEBA_GH,
    CelebaTask,
    environments,
    group_weights,
    load_celeba,
    oracle_orthogonal,
    oracle_principal,
    split_groups,
)

from setminus.datasets.images import UnreadableImageError
from setminus.datasets.sources import ChecksumError, DataUnavailableError
from setminus.datasets.split import Split

Image = pytest.importorskip("PIL.Image")

NAMES = [f"{k:06d}.jpg" for k in range(1, 25)]
MALE, BLOND = (np.tile(pattern, 6) for pattern in ([1, 1, 0, 0], [0, 1, 0, 1]))
SMILING = np.repeat([1, 0, 0], 8)
LEVELS = np.arange(24) * 10


def face(level):
    file = io.BytesIO()
    Image.new("RGB", (17, 21), (level, level, level)).save(file, "JPEG", quality=95)
    return file.getvalue()


FACES = {name: face(int(level)) for name, level in zip(NAMES, LEVELS, strict=True)}


def listing(names=NAMES):
    signs = 2 * np.column_stack([MALE, BLOND, SMILING]) - 1
    rows = [f"{name} {' '.join(f'{sign:2d}' for sign in row)}" for name, row in zip(names, signs, strict=False)]
    return "\n".join([str(len(rows)), "Male Blond_Hair Smiling ", *rows]) + "\n"


def as_folder(place, faces):
    (place / "img_align_celeba").mkdir(parents=True)
    for name, content in faces.items():
        (place / "img_align_celeba" / name).write_bytes(content)


def as_nested_folder(place, faces):
    as_folder(place / "img_align_celeba", faces)


def as_zip(place, faces):
    with zipfile.ZipFile(place / "img_align_celeba.zip", "w") as file:
        for name, content in reversed(faces.items()):
            file.writestr(f"img_align_celeba/{name}", content)


def as_tar(place, faces, mode="w", suffix=".tar"):
    with tarfile.open(place / f"img_align_celeba{suffix}", mode) as file:
        # the order of an archive is not that of the list
        for name, content in reversed(faces.items()):
            entry = tarfile.TarInfo(f"img_align_celeba/{name}")
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))


def as_tar_gz(place, faces):
    as_tar(place, faces, "w:gz", ".tar.gz")


@pytest.fixture
def place(monkeypatch, tmp_path):
    """The folder of an official copy of 24 faces, with the list but not yet with the faces."""
    monkeypatch.setenv("SETMINUS_DATA", str(tmp_path))
    place = tmp_path / "images" / "celeba"
    place.mkdir(parents=True)
    (place / "list_attr_celeba.txt").write_text(listing())
    return place


def stored(place):
    return sorted(path.name for path in place.rglob("*"))


@pytest.mark.parametrize("store", [as_folder, as_nested_folder, as_zip, as_tar, as_tar_gz])
def test_the_same_faces_from_every_form_and_nothing_is_unpacked(place, store):
    store(place, FACES)
    before = stored(place)
    split = load_celeba(CELEBA_GH, size=8)
    assert split.x.shape == (24, 8, 8, 3) and split.x.dtype == np.uint8
    np.testing.assert_allclose(split.x.mean(axis=(1, 2, 3)), LEVELS, atol=2)
    np.testing.assert_array_equal(split.z1, 1 - MALE)
    np.testing.assert_array_equal(split.z2, BLOND)
    assert stored(place) == before


def test_domains_are_those_of_tables_2_and_6(place):
    as_tar(place, FACES)
    gh, full = load_celeba(CELEBA_GH, 8), load_celeba(CELEBA, 8)
    np.testing.assert_array_equal(gh.y == 0, (MALE == 1) & (BLOND == 0))
    np.testing.assert_array_equal(gh.y == 1, (MALE == 0) & (BLOND == 1))
    assert (gh.y == -1).sum() == 12
    np.testing.assert_array_equal(full.y, 1 - MALE)


@pytest.mark.parametrize("a_has_change", [True, False])
@pytest.mark.parametrize("a_has_keep", [True, False])
def test_any_two_attributes_either_way_round(place, a_has_change, a_has_keep):
    as_folder(place, FACES)
    split = load_celeba(CelebaTask("Blond_Hair", "Smiling", a_has_change, a_has_keep), 8)
    as_a = BLOND if a_has_change else 1 - BLOND, SMILING if a_has_keep else 1 - SMILING
    np.testing.assert_array_equal(split.y, np.select([sum(as_a) == 2, sum(as_a) == 0], [0, 1], -1))
    np.testing.assert_array_equal(split.z1, 1 - as_a[0])
    np.testing.assert_array_equal(split.z2, 1 - as_a[1])


def test_only_what_is_wanted_is_decoded(place):
    as_tar(place, FACES)
    first = load_celeba(size=8, per_group=3)
    assert np.bincount(2 * first.z1 + first.z2).tolist() == [3, 3, 3, 3]
    again, other = load_celeba(size=8, per_group=3), load_celeba(size=8, per_group=3, random_state=1)
    np.testing.assert_array_equal(first.x, again.x)
    assert np.any(first.x != other.x)
    taken = {NAMES[round(level / 10)] for level in first.x.mean(axis=(1, 2, 3))}
    (place / "img_align_celeba.tar").unlink()
    as_tar(place, {name: content if name in taken else b"no image" for name, content in FACES.items()})
    np.testing.assert_array_equal(load_celeba(size=8, per_group=3).x, first.x)


def test_the_terms_are_said_once(place, caplog):
    as_tar(place, FACES)
    celeba._say_terms.cache_clear()
    with caplog.at_level(logging.INFO):
        load_celeba(size=8)
        load_celeba(size=8)
    assert [record.message for record in caplog.records].count(
        "CelebA: by its owners' terms these faces are for non-commercial research only."
    ) == 1


def unequal():
    sizes = [50, 4, 30, 20]
    z1, z2 = np.repeat([0, 0, 1, 1], sizes), np.repeat([0, 1, 0, 1], sizes)
    y = np.where(z1 == z2, z1, -1)
    return Split(x=np.arange(104), y=y, z1=z1, z2=z2)


@pytest.mark.parametrize("oracle", [oracle_principal, oracle_orthogonal])
def test_under_the_weights_only_one_factor_tells_the_class(oracle):
    split = oracle(unequal())
    own, other = (split.z1, split.z2) if oracle is oracle_principal else (split.z2, split.z1)
    np.testing.assert_array_equal(split.y, own)
    weights = group_weights(split)
    assert weights.mean() == pytest.approx(1)
    for value in (0, 1):
        assert np.average(split.y[other == value], weights=weights[other == value]) == pytest.approx(0.5)
        assert abs(split.y[other == value].mean() - 0.5) > 0.05


def test_between_the_environments_only_the_first_factor_keeps_its_mechanism():
    one, two = environments(unequal())
    for split in (one, two):
        np.testing.assert_array_equal(split.y, split.z1)
    np.testing.assert_array_equal(one.z2, one.z1)
    shares = [np.average(two.y[two.z2 == value], weights=group_weights(two)[two.z2 == value]) for value in (0, 1)]
    assert shares == pytest.approx([0.5, 0.5])
    assert (len(one), len(two)) == (70, 104)


def test_every_part_has_its_share_of_the_smallest_group():
    train, test = split_groups(unequal(), (0.75, 0.25), seed=0)
    np.testing.assert_allclose(np.bincount(2 * train.z1 + train.z2), [37.5, 3, 22.5, 15], atol=0.5)
    assert sorted([*train.x, *test.x]) == list(range(104))
    np.testing.assert_array_equal(train.y, unequal().y[train.x])


def test_factors_that_never_come_apart_are_refused():
    split = unequal()
    with pytest.raises(ValueError, match=r"00, 01, 10, 11 have \[50, 0, 0, 20\] rows: .* cannot be separated"):
        environments(split.take(split.z1 == split.z2))
    with pytest.raises(ValueError, match="no z1 or no z2"):
        group_weights(Split(x=np.zeros(2), y=np.zeros(2)))


def test_what_is_missing_is_said(monkeypatch, place):
    with pytest.raises(DataUnavailableError, match=r"has none of img_align_celeba/, .*\.zip.* SETMINUS_DATA"):
        load_celeba()
    as_tar(place, dict(list(FACES.items())[7:]))
    with pytest.raises(ChecksumError, match=r"lacks 7 of 24 faces .*'000001\.jpg', .*'000005\.jpg' and 2 more"):
        load_celeba(size=8)
    (place / "list_attr_celeba.txt").unlink()
    with pytest.raises(DataUnavailableError, match=r"list_attr_celeba\.txt does not exist: put the official"):
        load_celeba()
    monkeypatch.delenv("SETMINUS_DATA")
    with pytest.raises(DataUnavailableError, match="SETMINUS_DATA is not set"):
        load_celeba()


def test_damaged_faces_are_named(place):
    as_tar(place, FACES | {NAMES[4]: FACES[NAMES[4]][:200]})
    with pytest.raises(UnreadableImageError, match=r"'000005\.jpg' cannot be read"):
        load_celeba(size=8)


@pytest.mark.parametrize("store", [as_zip, as_tar_gz])
def test_a_cut_archive_is_an_error(place, store):
    store(place, FACES)
    archive = next(place.glob("img*"))
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    with pytest.raises(ChecksumError, match=rf"{archive.name} cannot be read as an archive"):
        load_celeba(size=8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not the official list"),
        ("24\n", "is not the official list"),
        (listing().rsplit("\n", 3)[0], r"announces '24' faces, but has 22 different ones in 22 rows"),
        (listing([*NAMES[:-1], NAMES[0]]), r"has 23 different ones in 24 rows"),
        (listing()[:-4], r"has the row '000024\.jpg .*expected a file name and 3 values"),
        (listing(["../../secret.jpg", *NAMES[1:]]), r"has the row '\.\./\.\./secret\.jpg"),
        (listing().replace(" 1", " 7"), r"has values \['-1', '7'\]: expected 1 or -1"),
    ],
)
def test_a_damaged_list_is_an_error(place, text, message):
    as_tar(place, FACES)
    (place / "list_attr_celeba.txt").write_text(text)
    with pytest.raises(ChecksumError, match=message):
        load_celeba(size=8)


def test_wrong_requests_are_refused(place):
    as_tar(place, FACES)
    with pytest.raises(ValueError, match=r"no attribute is called 'blond hair': did you mean 'Blond_Hair'\?"):
        load_celeba(CelebaTask(keep="blond hair"))
    with pytest.raises(ValueError, match=r"called 'xyz': the known ones are Male, Blond_Hair, Smiling\."):
        load_celeba(CelebaTask(keep="xyz"))
    with pytest.raises(ValueError, match="both 'Male': give two different attributes"):
        CelebaTask("Male", "Male")
    with pytest.raises(ValueError, match="size is 0"):
        load_celeba(size=0)
    with pytest.raises(ValueError, match="per_group is 0"):
        load_celeba(per_group=0)
    with pytest.raises(ValueError, match=r"domain A of .* has 1 faces: at least 2 are needed"):
        load_celeba(per_group=1)


REAL = Path(os.environ.get("SETMINUS_DATA", "."), "images", "celeba", "list_attr_celeba.txt")


@pytest.mark.skipif(not REAL.is_file(), reason="SETMINUS_DATA has no CelebA")
def test_the_real_faces():
    split = load_celeba(CELEBA_GH, 32, per_group=60)
    assert split.x.shape == (240, 32, 32, 3)
    assert [int((split.y == domain).sum()) for domain in (0, 1, -1)] == [60, 60, 120]
    # blond hair is lighter: above the forehead, in the mean of the group
    top = split.x[:, :6].mean(axis=(1, 2, 3))
    assert top[split.z2 == 1].mean() > top[split.z2 == 0].mean() + 10
