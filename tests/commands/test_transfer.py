"""Two folders of pictures to a model, and pictures through it; what is wrong is said before anything long."""

import json

import numpy as np
import pytest

pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")

import setminus.commands.transfer as translating  # noqa: E402
from setminus import OrthogonalTranslator  # noqa: E402
from tests.made_pictures import few_epochs, write_folders  # noqa: E402, F401

SMALL = ["--size", "16", "--width", "4", "--batch-size", "8", "--steps", "4", "--every", "2"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("pictures")
    write_folders(home)
    return home


@pytest.fixture
def fit(command, home):
    def run(out, *options, role=("--change", "digit"), folders=("A", "B"), size=SMALL):
        a, b = (home / folder for folder in folders)
        return command("transfer", "fit", a, b, "--labels", home / "labels.csv", "--out", out, *role, *size, *options)

    return run


MODEL = ["classifiers.safetensors", "config.json", "generators.safetensors", "records.jsonl", "report.html", "samples"]


@pytest.fixture(scope="module")
def translator(home):
    """The same from Python, by a training that nothing disturbed."""
    found = OrthogonalTranslator(change="digit", steps=4, batch_size=8, width=4, every=2, learning_rate=5e-4)
    return found.fit_folders(home / "A", home / "B", home / "labels.csv", size=16)


@pytest.fixture(scope="module")
def model(translator, tmp_path_factory):
    return translator.save(tmp_path_factory.mktemp("model"))


def refused(done):
    assert done.code == 2, (done.out, done.err)
    assert "Traceback" not in done.err
    lines = done.err.strip().splitlines()
    assert len(lines) == 2 and lines[0].startswith("Error: "), done.err
    return done.err


def test_a_stopped_training_says_how_to_go_on_and_ends_as_if_nothing_had_been(fit, tmp_path, model, monkeypatch):
    out = tmp_path / "model"
    write_png = translating._write_png

    def stop(path, image):
        if path.stem == "step-000004":
            raise KeyboardInterrupt
        write_png(path, image)

    monkeypatch.setattr(translating, "_write_png", stop)
    stopped = fit(out)
    assert stopped.code == 130
    assert "Go on with: setminus transfer fit" in stopped.err and stopped.err.strip().endswith("--resume")
    assert not (out / "config.json").exists()
    monkeypatch.setattr(translating, "_write_png", write_png)
    assert "--resume" in refused(fit(out, "--quiet"))
    assert "another seed" in refused(fit(out, "--resume", "--seed", "1", "--quiet"))
    done = fit(out, "--resume")
    assert done.code == 0, done.err
    assert "verdict" in done.out and "transfer apply" in done.out and "The training takes about" in done.out
    # the checkpoints stay, so that the model can be trained further, until --finish
    assert sorted(file.name for file in out.iterdir()) == sorted([*MODEL, "checkpoints"])
    assert sorted(file.name for file in (out / "samples").iterdir()) == ["step-000002.png", "step-000004.png"]
    assert Image.open(out / "samples" / "step-000004.png").size == (8 * 16, 4 * 16)
    for name in ("generators.safetensors", "classifiers.safetensors"):
        assert (out / name).read_bytes() == (model / name).read_bytes()
    further = [*SMALL[:-4], "--steps", "6", "--every", "2"]
    assert fit(out, "--resume", "--finish", "--quiet", size=further).code == 0
    assert sorted(file.name for file in out.iterdir()) == MODEL
    assert (out / "generators.safetensors").read_bytes() != (model / "generators.safetensors").read_bytes()
    assert "has no checkpoints" in refused(fit(out, "--resume", size=further))


def test_keep_is_quiet_when_asked_and_says_what_it_kept(fit, command, tmp_path):
    out = tmp_path / "model"
    done = fit(out, "--quiet", role=("--keep", "background"))
    assert (done.code, done.out, done.err) == (0, "", "")
    config = json.loads((out / "config.json").read_text())
    about = config["about"]
    assert (about["column"], about["values"], about["role"]) == ("background", ["green", "brown"], "keep")
    assert about["domains"] == ["A", "B"] and about["report"]["verdict"]
    assert config["network"] == "digit"
    assert "background" in (out / "report.html").read_text()
    assert command("report", out, "--force").code == 0


def test_a_model_is_not_replaced_unless_asked(fit, model):
    before = (model / "generators.safetensors").read_bytes()
    assert "holds a model" in refused(fit(model, "--seed", "1"))
    assert "is finished and has no checkpoints" in refused(fit(model, "--resume"))
    assert (model / "generators.safetensors").read_bytes() == before


def test_force_begins_anew(fit, tmp_path):
    (tmp_path / "samples").mkdir()
    (tmp_path / "samples" / "step-000500.png").write_bytes(b"old")
    (tmp_path / "checkpoints" / "training").mkdir(parents=True)
    (tmp_path / "checkpoints" / "mine.txt").write_text("not of setminus")
    assert "was stopped" in refused(fit(tmp_path))
    assert fit(tmp_path, "--force", "--finish", "--quiet", size=[*SMALL[:-4], "--steps", "1"]).code == 0
    assert [file.name for file in (tmp_path / "samples").iterdir()] == ["step-000001.png"]
    assert [file.name for file in (tmp_path / "checkpoints").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"role": ()}, "neither came"),
        ({"role": ("--change", "digit", "--keep", "digit")}, "both 'digit'"),
        ({"role": ("--change", "digitt")}, "Did you mean 'digit'"),
        ({"role": ("--change", "file")}, "0 columns of labels called 'file'"),
        ({"folders": ("A", "A")}, "both"),
        ({"folders": ("A", "nothing")}, "not a folder"),
        ({"size": ["--size", "16", "--device", "cuda"]}, "which this machine does not have"),
        ({"size": ["--size", "0"]}, "from 12 to 1024"),
        ({"size": ["--size", "16", "--rate", "-1"]}, "rate"),
        ({"size": ["--size", "16", "--width", "100000"]}, "width is 100000"),
        ({"size": [*SMALL, "--resume"]}, "nothing that was begun"),
    ],
)
def test_what_cannot_be_done_is_said_first(fit, tmp_path, options, words):
    assert words in refused(fit(tmp_path / "model", **options))
    assert not list((tmp_path / "model").glob("*")) if (tmp_path / "model").exists() else True


def test_a_column_that_the_pictures_do_not_show(fit, tmp_path):
    assert "held-out images, and guessing reaches" in refused(fit(tmp_path, "--quiet", role=("--keep", "parity")))
    assert not list(tmp_path.iterdir())


def test_grey_pictures_are_named_before_training_and_taken_when_allowed(command, tmp_path):
    write_folders(tmp_path)
    grey = next((tmp_path / "B").iterdir())
    Image.open(grey).convert("L").save(grey)
    given = ["transfer", "fit", tmp_path / "A", tmp_path / "B", "--labels", tmp_path / "labels.csv"]
    given += ["--change", "digit", "--out", tmp_path / "model", *SMALL, "--quiet"]
    said = refused(command(*given))
    assert "1 of 240 images are grey" in said and grey.name in said and "--allow-grey" in said
    assert not list((tmp_path / "model").glob("*"))
    assert command(*given, "--allow-grey").code == 0


def test_a_broken_picture_and_a_folder_with_one(command, tmp_path):
    write_folders(tmp_path, n=24)
    rest = ["--labels", tmp_path / "labels.csv", "--change", "digit", "--out", tmp_path / "model", *SMALL]
    broken = next((tmp_path / "B").iterdir())
    broken.write_bytes(broken.read_bytes()[:60])
    said = refused(command("transfer", "fit", tmp_path / "A", tmp_path / "B", *rest, "--quiet"))
    assert broken.name in said and "Replace or remove it" in said
    one = tmp_path / "one"
    one.mkdir()
    Image.new("RGB", (16, 16)).save(one / "alone.png")
    assert "has 1 images" in refused(command("transfer", "fit", tmp_path / "A", one, *rest, "--quiet"))
    assert not list((tmp_path / "model").glob("*"))


@pytest.fixture
def pictures(tmp_path):
    """Of all kinds: grey, with a palette, four inks, half transparent, 16 bits."""
    folder = tmp_path / "new"
    folder.mkdir()
    level = np.random.default_rng(0).integers(256, size=(20, 30, 4)).astype(np.uint8)
    Image.fromarray(level[..., 0]).save(folder / "grey.png")
    Image.fromarray(level, mode=None).convert("RGBA").save(folder / "clear.webp")
    Image.fromarray(level[..., :3]).convert("CMYK").save(folder / "inks.jpg")
    Image.fromarray(level[..., :3]).convert("P").save(folder / "palette.gif")
    Image.fromarray(level[..., 0].astype(np.uint16) * 256).save(folder / "deep.tif")
    (folder / "notes.txt").write_text("no picture")
    return folder


NAMES = ["clear.png", "deep.png", "grey.png", "inks.png", "palette.png"]


def test_pictures_of_all_kinds_are_translated_under_their_names(command, model, pictures, tmp_path):
    done = command("transfer", "apply", model, pictures, "--out", tmp_path / "b")
    assert done.code == 0, done.err
    assert "5 pictures" in done.out
    assert sorted(file.name for file in (tmp_path / "b").iterdir()) == NAMES
    assert {Image.open(tmp_path / "b" / name).size for name in NAMES} == {(16, 16)}
    some = [pictures / "grey.png", pictures / "inks.jpg"]
    back = command("transfer", "apply", model, *some, "--direction", "b-to-a", "--out", tmp_path / "a", "--quiet")
    assert (back.code, back.out, back.err) == (0, "", "")
    assert sorted(file.name for file in (tmp_path / "a").iterdir()) == ["grey.png", "inks.png"]
    assert (tmp_path / "a" / "grey.png").read_bytes() != (tmp_path / "b" / "grey.png").read_bytes()


def test_folders_within_a_folder_stay_apart_and_what_was_written_is_not_read(command, model, pictures, tmp_path):
    for name in ("2024/grey.png", ".trash/grey.png"):
        (pictures / name).parent.mkdir()
        Image.new("RGB", (16, 16)).save(pictures / name)
    out = pictures / "done"
    for _ in range(2):
        done = command("transfer", "apply", model, pictures, "--out", out, "--force")
        assert done.code == 0 and "6 pictures" in done.out
    written = sorted(str(file.relative_to(out)) for file in out.rglob("*.png"))
    assert written == ["2024/grey.png", *NAMES]


def test_nothing_is_overwritten_and_pictures_themselves_never(command, model, pictures, tmp_path):
    out = tmp_path / "out"
    assert command("transfer", "apply", model, pictures, "--out", out).code == 0
    assert "5 of 5 files are there already" in refused(command("transfer", "apply", model, pictures, "--out", out))
    assert command("transfer", "apply", model, pictures, "--out", out, "--force").code == 0
    for name in ("loop", "nowhere"):
        (tmp_path / "loop").unlink(missing_ok=True)
        (tmp_path / "loop").symlink_to(name)
        assert "leads to no folder" in refused(
            command("transfer", "apply", model, pictures, "--out", tmp_path / "loop")
        )
    before = (pictures / "grey.png").read_bytes()
    same = command("transfer", "apply", model, pictures, "--out", pictures, "--force")
    assert "pictures themselves would be overwritten" in refused(same)
    assert (pictures / "grey.png").read_bytes() == before
    Image.new("RGB", (16, 16)).save(pictures / "grey.jpg")
    assert "several pictures" in refused(command("transfer", "apply", model, pictures, "--out", tmp_path / "other"))


def test_broken_pictures_are_named_together_and_all_others_are_written(command, model, pictures, tmp_path):
    for name in ("bad1.png", "bad2.jpg"):
        (pictures / name).write_bytes((pictures / "grey.png").read_bytes()[:80])
    said = refused(command("transfer", "apply", model, pictures, "--out", tmp_path / "out", "--quiet"))
    assert "2 of 7 pictures" in said and "bad1.png" in said and "bad2.jpg" in said
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == NAMES


def test_a_stream_goes_on_where_it_stopped(command, model, pictures, tmp_path):
    out = tmp_path / "out"
    assert command("transfer", "apply", model, pictures, "--out", out).code == 0
    (out / "grey.png").unlink()
    (out / "inks.png").write_bytes(b"mine")
    done = command("transfer", "apply", model, pictures, "--out", out, "--resume")
    assert done.code == 0 and "1 pictures" in done.out
    assert (out / "inks.png").read_bytes() == b"mine" and Image.open(out / "grey.png").size == (16, 16)


def test_pictures_keep_their_size_and_what_is_outside_of_the_square(command, model, pictures, tmp_path):
    turned = Image.fromarray(np.random.default_rng(1).integers(256, size=(40, 64, 3)).astype(np.uint8))
    exif = turned.getexif()
    # a camera held on its side
    exif[0x0112] = 6
    turned.save(pictures / "turned.png", exif=exif)
    files = [pictures / "turned.png", pictures / "grey.png"]
    assert command("transfer", "apply", model, *files, "--out", tmp_path / "b", "--keep-size", "--quiet").code == 0
    made = np.asarray(Image.open(tmp_path / "b" / "turned.png"))
    upright = np.asarray(turned.transpose(Image.Transpose.ROTATE_270))
    assert made.shape == (64, 40, 3) and Image.open(tmp_path / "b" / "grey.png").size == (30, 20)
    assert np.array_equal(made[:12], upright[:12]) and np.array_equal(made[52:], upright[52:])
    assert not np.array_equal(made[12:52], upright[12:52])


def test_a_picture_that_is_too_large_is_refused_in_two_lines(command, model, pictures, tmp_path, monkeypatch):
    monkeypatch.setattr("setminus.datasets.images.MAX_PIXELS", 500)
    said = refused(command("transfer", "apply", model, pictures / "grey.png", "--out", tmp_path / "out", "--quiet"))
    assert "megapixels" in said and "resize it" in said.lower()


def test_info_describes_a_folder(command, model):
    done = command("info", model)
    assert done.code == 0 and "digit" in done.out and "verdict" in done.out and "A to B" in done.out
    about = json.loads(command("info", model, "--json").out)
    assert about["type"] == "OrthogonalTranslator" and about["size"] == 16


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("nothing",), "does not exist"),
        (("empty",), "has no pictures"),
        (("new", "--out", "new/grey.png"), "is a file"),
    ],
)
def test_pictures_that_are_not_there(command, model, pictures, tmp_path, monkeypatch, given, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert words in refused(command("transfer", "apply", model, "--out", "out", *given))


def test_a_folder_that_is_no_model(command, pictures, tmp_path):
    said = refused(command("transfer", "apply", pictures, pictures, "--out", tmp_path / "out"))
    assert "holds no model" in said and "transfer fit" in said


def test_a_folder_that_cannot_be_made(command, model, pictures):
    within_a_file = next(pictures.iterdir()) / "sub"
    assert "Not a directory" in refused(command("transfer", "apply", model, pictures, "--out", within_a_file))
