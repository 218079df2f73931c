"""The sources of style transfer are measured by pixels without error, records are not run twice, the page is theirs."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from benchmarks import textured, translator_quality, translator_speed, translators
from benchmarks.translators_page import few_labels, few_labels_charts, write
from setminus.datasets.split import Split
from setminus.records import read_records

ROOT = Path(__file__).parents[2]
RECORDS, *OTHERS = (
    ROOT / "results" / name / "records.jsonl"
    for name in ("translators", "translator_speed", "translated_files", "translator_quality")
)


@pytest.mark.parametrize("name", ["small_digits", "shapes", "clothes"])
def test_pixels_give_both_factors_of_real_pictures(name):
    source = translators.SOURCES[name]
    drawn = source.draw(300, np.random.default_rng(0), translators.CELL_SHARES["independent"])
    changed, kept = source.measure(drawn, drawn.x)
    assert np.mean(changed == drawn.z1) > 0.98 and np.mean(kept == drawn.z2) > 0.98
    assert drawn.x.shape == (300, source.size, source.size, 3)
    # a measure that ignores its pictures would fail
    assert np.mean(source.measure(drawn, drawn.x[::-1])[0] == drawn.z1) < 0.7


def test_the_color_of_a_digit_and_its_ground_are_measured_apart():
    rng = np.random.default_rng(0)
    colors = np.array([[240.0, 40, 40], [40, 80, 240]])
    digits = np.zeros((5, 8, 8), np.uint8)
    digits[:, 2:6, 3:5] = 255
    drawn = textured.paste(digits, textured.noise_grounds, colors, 200, 24, rng, (0.5, 0.5))
    measure = textured.pasted_measure(colors, textured.noise_grounds, 24)
    real, ink = drawn.x[..., :3], drawn.x[..., 3:] / 255
    recolored = (ink * colors[1 - drawn.z1][:, None, None] + (1 - ink) * real).astype(np.uint8)
    other_grounds = (ink * real + (1 - ink) * np.roll(real, 1, axis=0)).astype(np.uint8)
    noisy = (real + rng.normal(0, 40, real.shape)).clip(0, 255).astype(np.uint8)
    right = {
        name: tuple(
            float(np.mean(seen == truth))
            for seen, truth in zip(measure(drawn, images), (drawn.z1, drawn.z2), strict=True)
        )
        for name, images in {"real": real, "color": recolored, "ground": other_grounds, "noise": noisy}.items()
    }
    assert right["real"] == (1.0, 1.0)
    assert right["color"] == (0.0, 1.0)
    assert right["ground"][0] == 1.0 and right["ground"][1] < 0.1
    assert right["noise"][0] == 1.0 and right["noise"][1] < 0.1


def test_faces_are_drawn_until_a_group_is_used_up(monkeypatch):
    n = 4_000
    cells = np.random.default_rng(0).choice(4, n, p=[0.35, 0.5, 0.05, 0.1])
    x = np.broadcast_to(np.arange(n, dtype=np.int64)[:, None, None, None] % 251, (n, 2, 2, 3)).astype(np.uint8)
    whole = Split(x=x, y=cells // 2, z1=cells // 2, z2=cells % 2)
    monkeypatch.setattr("setminus_paper.data.celeba.load_celeba", lambda task, size: whole)
    drawn = translators.faces(2_000, np.random.default_rng(0), translators.CELL_SHARES["development"])
    assert 100 < len(drawn) < 2_000
    for place in (0, 1):
        rows = drawn.y == place
        assert np.mean(drawn.z1[rows] == place) == pytest.approx(0.95, abs=0.04)
        assert np.mean(drawn.z2[rows] == place) == pytest.approx(0.85, abs=0.06)
    others = translators.faces(0, np.random.default_rng(0), translators.CELL_SHARES["independent"])
    assert len(others) == n // 2


def made(changed, kept, grain=1.0, strips="iVBORw0K"):
    """What the translation says of itself is right but for its grain."""
    reported = {"changed": changed, "kept": kept, "matched": 1.0, "grain": grain, "distance": 0.0}
    direction = {"changed": changed, "kept": kept, "reported": reported, "curve": [reported] * 4}
    return {
        "cpu_seconds": 1.0,
        "measure_accuracy": [0.95, 0.97],
        "strips": strips,
        "a_to_b": direction,
        "b_to_a": direction,
    }


def test_records_are_made_once_and_for_the_asked_part(tmp_path, monkeypatch):
    asked = []

    def score(name, seed, labelled, steps):
        asked.append((name, seed, labelled, steps))
        return made(1.0, 1.0)

    monkeypatch.setattr(translators, "score", score)
    path = tmp_path / "translators" / "records.jsonl"
    steps, few = translators.DEFAULT_STEPS, translators.FEW_STEPS
    translators.run(range(2), path, part="test")
    tests = ("clothes", "usps_photographs", "usps_scenes")
    defaults = [(name, seed, 400, steps) for name in tests for seed in (0, 1)]
    assert asked == defaults + [(name, 0, 400, few) for name in tests]
    translators.run(range(2), path, part="all")
    measured = sum(source.measure is not None for source in translators.SOURCES.values())
    # few labels and their comparison have both seeds
    few = 2 * len(translators.FEW_LABELS) + 1
    assert len(asked) == len(set(asked)) == 2 * len(translators.SOURCES) + few + measured


def test_a_refusal_is_a_record_and_the_page_says_why(tmp_path, monkeypatch):
    def score(name, seed, labelled, steps):
        return {"refused": "too few labels: label more.", "cpu_seconds": 1.0} if labelled == 50 else made(1.0, 0.97)

    monkeypatch.setattr(translators, "score", score)
    path = tmp_path / "records.jsonl"
    translators.run(range(2), path, only=translators.FEW_LABELS_OF)
    page = write(read_records(path))
    assert 'With 50 labels, seed 1, the fit was refused before the training: "too few labels: label more."' in page
    rows = few_labels(read_records(path))
    assert rows["labels"].unique().tolist() == [100, 200, 400] and set(rows["kept"]) == {"97.0"}
    (chart,) = [one for one in few_labels_charts(few_labels(read_records(path))) if one.title == "kept"]
    assert [(line.x, line.y) for line in chart.marks] == [([100, 200, 400], pytest.approx([97.0] * 3))] * 2


def test_the_page_counts_directions_and_verdicts(tmp_path, monkeypatch):
    scores = iter([made(0.95, 0.99), made(0.5, 0.99, grain=2.0)])
    monkeypatch.setattr(translators, "score", lambda *asked, **settings: next(scores))
    path = tmp_path / "records.jsonl"
    translators.run(range(1), path, only="clothes")
    page = write(read_records(path))
    steps = f"{translators.DEFAULT_STEPS:,}"
    assert f"After {steps} steps 2 of 2 directions reach the bar. After 300 steps 0 of 2" in page
    counts = [line.split("|")[1:-1] for line in page.splitlines() if line.startswith(("| good ", "| train longer "))]
    assert [[cell.strip() for cell in line] for line in counts] == [["good", "2", "0"], ["train longer", "0", "2"]]
    assert "Few labels" not in page


def test_the_committed_page_is_what_the_records_say():
    page = (ROOT / "docs" / "translators.md").read_text(encoding="utf-8")
    assert page == write(*(read_records(path) for path in (RECORDS, *OTHERS)))


def test_the_ratio_of_two_steps_is_that_of_their_seconds(tmp_path, monkeypatch):
    for name, value in {"SIZES": (28,), "EARLIER": (2, 4), "ROUNDS": 1, "STEPS": 1, "N_PICTURES": 8}.items():
        monkeypatch.setattr(translator_speed, name, value)
    seconds = iter([[0.3], [0.2], [0.1]])
    monkeypatch.setattr(translator_speed, "_seconds", lambda task: next(seconds))
    translator_speed.run(tmp_path / "speed" / "records.jsonl")
    (record,) = read_records(tmp_path / "speed" / "records.jsonl")
    assert record["metrics"]["28"]["times_as_fast"] == {"equal": 1.5, "default": 3.0}


def test_both_steps_train_at_their_settings(monkeypatch):
    monkeypatch.setattr(translator_speed, "EARLIER", (2, 4))
    tasks = translator_speed._tasks(28)
    assert [len(task.batches[0].rows(0)) for task in tasks.values()] == [2, 2, 8]
    assert len(translator_speed._seconds(tasks["earlier"])) == translator_speed.STEPS


def test_generators_are_measured_by_what_they_change_and_keep():
    rng = np.random.default_rng(0)
    drawn = translators.small_digits(200, rng, translators.CELL_SHARES["development"], 32)
    unchanged = translator_quality._measured(dict.fromkeys(("a_to_b", "b_to_a"), torch.nn.Identity()), drawn)
    assert unchanged == {one: {"changed": 0.0, "kept": 1.0} for one in ("a_to_b", "b_to_a")}
    # yellow and pink have exchanged green and blue
    exchanged = torch.nn.Conv2d(3, 3, 1, bias=False)
    exchanged.weight.data = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])[..., None, None]
    found = translator_quality._measured(dict.fromkeys(("a_to_b", "b_to_a"), exchanged), drawn)
    assert min(one["changed"] for one in found.values()) == 1.0
