"""Both sides of the benchmark train alike: the quick one is not quick by doing less."""

from functools import partial

import pytest

torch = pytest.importorskip("torch")

from benchmarks.training_steps import Sizes, bar, cyclegan_steps, ratios, run, vada_steps  # noqa: E402
from setminus.adaptation.vada import VadaConfig  # noqa: E402
from setminus.records import read_records  # noqa: E402

SMALL = Sizes(generator_width=4, adaptation_width=4, batch=8, noise=False)


def losses_of(step, steps):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return [{name: loss.item() for name, loss in step().items()} for _ in range(steps)]


# with a step of 1e-6 and nothing random, the direction of VAT is that of rounding
SMOOTH = VadaConfig(vat_xi=0.1)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("steps_of", [cyclegan_steps, partial(vada_steps, config=SMOOTH)])
def test_both_sides_have_the_same_losses(steps_of, precision):
    quick, slow = (losses_of(step, 1)[0] for step in steps_of(SMALL, precision))
    assert set(quick) == set(slow)
    tolerance = 1e-4 if precision == "32-true" else 0.02
    for name, loss in quick.items():
        assert loss == pytest.approx(slow[name], rel=tolerance, abs=tolerance), name


def test_vat_is_the_same_to_its_own_scale():
    quick, slow = (losses_of(step, 1)[0] for step in vada_steps(SMALL, "32-true", SMOOTH))
    for name in ("source_vat", "target_vat"):
        assert quick[name] == pytest.approx(slow[name], rel=0.02), name


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_both_sides_train_alike(precision):
    quick, slow = (losses_of(step, 12) for step in cyclegan_steps(SMALL, precision))
    tolerance = 1e-3 if precision == "32-true" else 0.1
    for name in quick[0]:
        assert quick[-1][name] == pytest.approx(slow[-1][name], rel=tolerance), name
    # far from where they started, so that this says something
    assert quick[-1]["discriminator_a"] < 0.3 * quick[0]["discriminator_a"]


def test_ratios_are_measured_against_their_bar(monkeypatch):
    found = ratios(SMALL, "32-true", repeats=1)
    assert [ratio.name for ratio in found] == ["CycleGAN step in 32-true / plain", "VADA step in 32-true / plain"]
    assert all(ratio.ours_seconds > 0 and ratio.bar == bar("32-true") for ratio in found)
    monkeypatch.setattr("benchmarks.training_steps.has_amx", lambda: True)
    assert bar("bf16-mixed") == pytest.approx(1 / 1.6) != bar("32-true")
    monkeypatch.setattr("benchmarks.training_steps.has_amx", lambda: False)
    assert bar("bf16-mixed") == pytest.approx(1 / 1.1)


def test_a_run_is_recorded(tmp_path, capsys):
    found = run(1, tmp_path / "records.jsonl", SMALL)
    (record,) = read_records(tmp_path / "records.jsonl")
    assert set(record["metrics"]) == {ratio.name for ratio in found}
    assert "CycleGAN step" in capsys.readouterr().out
