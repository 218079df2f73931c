from dataclasses import replace

import numpy as np
import pytest

from setminus.datasets.images import UnreadableImageError
from setminus.datasets.two_factor_folder import TwoFactorFolder, read_labels

Image = pytest.importorskip("PIL.Image")


def put(path, color=0, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, (12, 9), (color, 0, 99) if mode == "RGB" else color).save(path)


@pytest.fixture
def home(tmp_path):
    """Three images in each of two folders, two elsewhere, all with their own level of red."""
    names = ["A/a1.png", "A/a2.jpg", "A/a3.webp", "B/b1.png", "B/b2.bmp", "B/b3.JPG", "more/m1.png", "more/m2.png"]
    for k, name in enumerate(names):
        put(tmp_path / name, 20 * k)
    return tmp_path


def write(home, *rows, header="file,hair,age"):
    (home / "labels.csv").write_text("\n".join([header, *rows]), encoding="utf-8")
    return TwoFactorFolder(home / "A", home / "B", home / "labels.csv", "hair", size=8)


MIXED = ("a1.png,dark,30", "a2.jpg,dark,30", "b1.png,fair,30", "B/b2.bmp,dark,30", "b3.JPG,,30", "more/m1.png,fair,1")


def test_images_domains_and_labels_keep_together(home):
    images = write(home, *MIXED, "more/m2.png,,2").load()
    assert images.x.shape == (7, 8, 8, 3) and images.x.dtype == np.uint8
    np.testing.assert_allclose(images.x[..., 0].mean(axis=(1, 2)), 20 * np.arange(7), atol=3)
    assert images.y.tolist() == [0, 0, 0, 1, 1, 1, -1]
    assert images.values == ("dark", "fair")
    assert images.z.tolist() == [0, 0, -1, 1, 0, -1, 1]
    assert [file.name for file in images.files][-2:] == ["b3.JPG", "m1.png"]


def test_the_first_value_is_that_of_domain_a(home):
    rows = [row.replace("dark", "zebra") for row in MIXED]
    images = write(home, *rows).load()
    assert images.values == ("zebra", "fair")
    assert images.z.tolist() == [0, 0, -1, 1, 0, -1, 1]


CONSTANT = ("a1.png,dark,1", "a2.jpg,dark,1", "a3.webp,dark,1", "b1.png,fair,1", "b2.bmp,fair,1", "b3.JPG,fair,1")


def test_without_overlap_the_labels_are_refused_and_images_elsewhere_mend_it(home):
    with pytest.raises(
        ValueError, match=r"'hair' is constant within each folder \(A: 'dark', B: 'fair'\).* cannot be separated"
    ):
        write(home, *CONSTANT).load()
    # without a label an image elsewhere tells nothing
    with pytest.raises(ValueError, match="cannot be separated"):
        write(home, *CONSTANT, "more/m1.png,,1").load()
    assert write(home, *CONSTANT, "more/m1.png,fair,1").load().y.tolist() == [0, 0, 0, 1, 1, 1, -1]
    # nor is anything missing where one folder has both values
    assert write(home, *CONSTANT[:-1], "b3.JPG,dark,1").load().z.tolist() == [0, 0, 0, 1, 1, 0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (("a1.png,dark,1", "b1.png,dark,1"), r"'hair' has 1 values \('dark'\): expected two"),
        (("a1.png,,1",), r"'hair' has 0 values \(all empty\): expected two"),
        (("a1.png,dark,1", "a2.jpg,dark,1", "b1.png,fair,1"), r"has 'fair' for one image: each value needs at least 2"),
        (
            (*MIXED, *(f"gone{k}.png,dark,1" for k in range(7))),
            r"names 7 files that are neither .*'gone4\.png' and 2 more",
        ),
        ((*MIXED, "x" * 5000 + ".png,dark,1"), "names 1 files that are neither"),
        ((*MIXED, "a1.png,fair,1"), r"lists files more than once: 'a1\.png': keep one row"),
        ((*MIXED, "A/a1.png,dark,1"), r"more than once, by different paths: 'a1\.png'"),
        ((*MIXED, "a3.webp,dark"), r"3 columns, but more or fewer cells in the rows of 'a3\.webp'"),
        ((*MIXED, "../secret.png,dark,1"), r"absolute, lead upwards or have control characters: '\.\./secret\.png'"),
        ((*MIXED, "/etc/passwd,dark,1"), r"absolute, .*'/etc/passwd'"),
        (
            (*MIXED, "a\x00.png,dark,1", "a\x1b[31m.png,dark,1"),
            r"control characters: 'a\\x00\.png', 'a\\x1b\[31m\.png'",
        ),
        ((*MIXED, ",dark,1"), "absolute, lead upwards or have control characters: ''"),
    ],
)
def test_wrong_labels_are_refused(home, rows, message):
    with pytest.raises(ValueError, match=message):
        write(home, *rows).load()


def test_a_name_that_two_folders_have_needs_its_path(home):
    put(home / "B/a1.png")
    with pytest.raises(ValueError, match=r"in more than one of folder A, folder B .*'a1\.png': give their path"):
        write(home, *MIXED).load()
    images = write(home, "A/a1.png,dark,30", *MIXED[1:]).load()
    assert images.z[0] == 0 and images.z[3] == -1


def test_a_folder_that_is_reached_by_a_link_is_the_same_folder(home):
    (home / "A").rename(home / "far")
    (home / "A").symlink_to(home / "far")
    assert write(home, "A/a1.png,dark,30", *MIXED[1:]).load().y.tolist() == [0, 0, 0, 1, 1, 1, -1]


@pytest.mark.parametrize(
    "name", ["with, comma.png", "é\u202fü.png", "<b>&'.png", "-rf.png", "$(x);`y`.png", "日本.png"]
)
def test_odd_names_are_names(home, name):
    put(home / "A" / name, 240)
    images = write(home, *MIXED, f'"{name}",fair,1').load()
    row = [file.name for file in images.files].index(name)
    assert images.z[row] == 1 and np.all(images.x[row] == [240, 0, 99])


def test_other_files_and_folders_are_passed_over(home):
    (home / "A/notes.txt").write_text("x")
    (home / "A/._a1.png").write_text("x")
    (home / "A/sub.png").mkdir()
    put(home / "A/sub/deep.png")
    assert len(write(home, *MIXED).load().x) == 7


def test_a_label_for_a_file_that_is_passed_over_is_refused(home):
    (home / "A/a1.png").rename(home / "A/a1")
    with pytest.raises(ValueError, match=r"not called like an image: '.*A/a1': let their names end in one of \.bmp"):
        write(home, "a1,dark,30", *MIXED[1:]).load()


def test_transparent_palette_and_allowed_grey_images_go_together(home):
    put(home / "A/a4.png", (10, 20, 30, 255), "RGBA")
    Image.new("RGB", (12, 9), (0, 0, 255)).convert("P").save(home / "A/a5.gif")
    assert write(home, *MIXED).load().x[3].reshape(-1, 3).tolist() == [[10, 20, 30]] * 64
    put(home / "A/a6.png", 1, "1")
    folders = write(home, *MIXED)
    assert np.all(replace(folders, allow_grey=True).load().x[5] == 255)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "I;16", "RGB"])
def test_grey_images_are_refused_however_they_are_stored(home, mode):
    grey = Image.new("L", (12, 9), 90).convert(mode) if mode != "I;16" else Image.new(mode, (12, 9), 9000)
    grey.save(home / "B/b4.png")
    with pytest.raises(ValueError, match=r"1 of 8 images are grey: '.*B/b4\.png': .* color.*--allow-grey"):
        write(home, *MIXED).load()


def test_all_files_that_are_no_images_are_counted(home):
    for k in range(7):
        (home / f"B/bad{k}.jpg").write_bytes(b"no image")
    with pytest.raises(UnreadableImageError, match=r"7 of 14 files .*bad0\.jpg', .*bad4\.jpg' and 2 more"):
        write(home, *MIXED).load()


def test_folders_that_cannot_be_domains(home):
    (home / "one").mkdir()
    put(home / "one/1.png")
    write(home, *MIXED)
    table = home / "labels.csv"
    with pytest.raises(ValueError, match=r"folder A, '.*one', has 1 images \(\.bmp, .*\): at least 2 are needed"):
        TwoFactorFolder(home / "one", home / "B", table, "hair").load()
    with pytest.raises(ValueError, match=r"folder B is '.*gone', which is not a folder"):
        TwoFactorFolder(home / "A", home / "gone", table, "hair").load()
    with pytest.raises(ValueError, match="folders A and B are both"):
        TwoFactorFolder(home / "A", home / "B" / ".." / "A", table, "hair").load()
    with pytest.raises(ValueError, match="size is 0"):
        TwoFactorFolder(home / "A", home / "B", table, "hair", size=0).load()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"has the columns \[\]: expected a header"),
        (b"file;hair\na.png;dark\n", r"has the columns \['file;hair'\]: .* separated by commas"),
        (b"file,Hair,age\n", r"has 0 columns of labels called 'hair': did you mean 'Hair'\?"),
        (b"hair,sex,age\n", r"has 0 columns of labels called 'hair': It has the names of files in 'hair', then"),
        (b"file,hair,hair\n", r"has 2 columns of labels called 'hair'"),
        (b"file,hair\n\xff.png,dark\n", "cannot be read as a CSV in UTF-8"),
        (b'file,hair\n"a.png,dark\n', "cannot be read as a CSV in UTF-8"),
    ],
)
def test_a_table_that_is_none(tmp_path, content, message):
    (tmp_path / "labels.csv").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_labels(tmp_path / "labels.csv", "hair")


def test_a_table_that_is_not_there_or_a_folder(tmp_path):
    with pytest.raises(ValueError, match="does not exist: give the CSV"):
        read_labels(tmp_path / "labels.csv", "hair")
    with pytest.raises(ValueError, match="cannot be read as a CSV"):
        read_labels(tmp_path, "hair")


def test_a_table_as_spreadsheets_write_it(tmp_path):
    (tmp_path / "labels.csv").write_bytes("\ufefffile, hair \r\na.png, dark \r\n\r\n,\r\nb.png,\r\n".encode())
    assert read_labels(tmp_path / "labels.csv", "hair") == {"a.png": "dark"}
