"""Experiments are found by name, loaded when asked for, and planned as asked."""

import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest
from setminus_paper.reproduce import EXPERIMENTS, find_names, load_view, plan_runs, records_of, run_experiment

from setminus.records import read_records


def test_a_group_stands_for_all_of_its_own_once():
    found = find_names(["prop2", "laboratory", "fig1"])
    assert found[:2] == ["prop2", "fig1"]
    assert len(found) == len({*found}) == 13


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("fig2", "'fig2a' or 'fig2b' or 'fig2c'"),
        ("pop3", "'prop3'"),
        ("Theorem1", "'theorem1'"),
        ("xyz", "there are fig1, fig2a, .*laboratory"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, advice):
    with pytest.raises(ValueError, match=f"there is no experiment '{name}': .*{advice}"):
        find_names([name])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_name_has_an_experiment_and_its_charts(name):
    experiment = import_module(EXPERIMENTS[name])
    assert experiment.CLAIM.endswith(".")
    for scale in ("quick", "paper"):
        runs = plan_runs(name, scale=scale, seeds=1)
        assert {run.name for run in runs} == {records_of(name)}
        # one that is of the paper's size in either scale does not name it
        assert all(run.config.get("scale", scale) == scale and len(run.seeds) == 1 for run in runs)
        # table 3 begins behind the seeds that were scored while its sizes were open
        assert {run.seeds for run in runs} == {({"table3": 9, "ablation": 40}.get(name, 0),)}
    view = load_view(name)
    assert callable(view.draw if records_of(name) != name else view.charts)
    assert callable(view.summary)


def test_names_are_known_without_loading_what_they_stand_for():
    loaded = "import setminus_paper.reproduce, sys; print(*(m for m in ('numpy', 'torch') if m in sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", loaded], text=True).strip() == ""


def test_seeds_and_methods_are_those_asked_for(toy):
    assert [run.seeds for run in plan_runs("toy", scale="quick")] == [(0, 1), (0, 1)]
    (run,) = plan_runs("toy", scale="paper", seeds=3, methods=["wholes"])
    assert (run.seeds, run.config) == ((0, 1, 2), {"scale": "paper", "method": "wholes"})
    with pytest.raises(ValueError, match="toy has no method 'whole': did you mean 'wholes'"):
        plan_runs("toy", scale="quick", methods=["whole"])
    with pytest.raises(ValueError, match="seeds is 0, but a run needs one"):
        plan_runs("toy", scale="quick", seeds=0)


def test_methods_are_refused_where_none_are_compared(toy, monkeypatch):
    monkeypatch.delattr(toy, "METHODS")
    with pytest.raises(ValueError, match="toy does not compare methods: leave out halves"):
        plan_runs("toy", scale="quick", methods=["halves"])


def test_shifts_reach_the_plan_once_each_and_the_command(toy, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"toy does not shift a class mix: leave out 0\.5"):
        plan_runs("toy", scale="quick", shifts=[0.5])
    plan, asked = toy.plan, []
    monkeypatch.setattr(toy, "SHIFTS", (0.7,), raising=False)
    monkeypatch.setattr(toy, "plan", lambda *some, shifts=(0.7,), **more: asked.append(shifts) or plan(*some, **more))
    plan_runs("toy", scale="quick")
    (record,) = run_experiment("toy", tmp_path / "records.jsonl", seeds=1, methods=["halves"], shifts=[0.5, 0.9, 0.5])
    assert asked == [(0.7,), (0.5, 0.9)]
    assert record["command"].endswith("--methods halves --shifts 0.5,0.9,0.5")


def test_a_record_says_how_to_repeat_it_and_what_is_claimed(toy, tmp_path):
    records = run_experiment("toy", tmp_path / "records.jsonl", seeds=1, methods=["halves"])
    assert records == read_records(tmp_path / "records.jsonl")
    assert records[0]["command"] == "setminus reproduce toy --scale quick --seeds 1 --methods halves"
    assert records[0]["claim"] == toy.CLAIM
    assert records[0]["job"] == "laboratory"


def test_an_experiment_may_belong_to_another_section(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(toy, "JOB", "tables", raising=False)
    assert {record["job"] for record in run_experiment("toy", tmp_path / "records.jsonl", seeds=1)} == {"tables"}


def test_a_figure_may_plan_the_runs_of_another_experiment(toy, tmp_path, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "toy_figure", "toy_figure")
    figure = ModuleType("toy_figure")
    vars(figure).update({**vars(toy), "DEFAULT_SEEDS": 1, "RECORDS_OF": "toy", "__name__": "toy_figure"})
    monkeypatch.setitem(sys.modules, "toy_figure", figure)
    assert (records_of("toy"), records_of("toy_figure")) == ("toy", "toy")
    records = run_experiment("toy_figure", tmp_path / "records.jsonl")
    assert {record["command"] for record in records} == {"setminus reproduce toy --scale quick --seeds 1"}
    # what the figure needed is not measured again for the experiment itself
    assert run_experiment("toy", tmp_path / "records.jsonl", seeds=1) == records


@pytest.mark.parametrize("name", ["fig3", "fig4"])
def test_figures_3_and_4_need_one_seed_of_table_1(name):
    pytest.importorskip("torch")
    assert records_of(name) == "table1"
    runs, table = plan_runs(name, scale="quick"), plan_runs("table1", scale="quick", seeds=1)
    assert [(run.name, run.config, run.seeds) for run in runs] == [(run.name, run.config, run.seeds) for run in table]
