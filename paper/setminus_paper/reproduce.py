"""What can be reproduced, by name, and ``setminus reproduce``, which measures it again and rebuilds its pages."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from setminus.commands.terminal import check_folder, echo
from setminus.errors import UserError
from setminus.progress import listen, tracked
from setminus.records import Record, read_records
from setminus_paper.run import ONE_THREAD, FailedRunsError, Machine, Run, Scale, execute

if TYPE_CHECKING:
    from setminus.commands.terminal import Display

__all__ = [
    "EXPERIMENTS",
    "GROUPS",
    "LABORATORY",
    "VIEWS",
    "draw_picture",
    "find_names",
    "load_experiment",
    "load_view",
    "plan_runs",
    "records_of",
    "reproduce",
    "run_experiment",
    "summary_of",
    "title_of",
]

LABORATORY = (
    "fig1",
    "fig2a",
    "fig2b",
    "fig2c",
    *(f"prop{number}" for number in range(1, 8)),
    "theorem1",
    "pitfalls",
)
FAIRNESS = ("table4", "table5", "table5_split")
EXPERIMENTS: dict[str, str] = {
    **{name: f"setminus_paper.claims.{name}" for name in (*LABORATORY, "fig3", "fig4")},
    **{name: f"setminus_paper.fairness.{name}" for name in FAIRNESS},
    **{name: f"setminus_paper.transfer.{name}" for name in ("table1", "table2", "table6")},
    "table3": "setminus_paper.adaptation.table3",
    "principals": "setminus_paper.transfer.invariant_digits",
    "ablation": "setminus_paper.adaptation.ablation",
    "small_digits": "setminus_paper.adaptation.small_digits",
}
"""What can be reproduced, and the module that measures it.

A module has `CLAIM`, `DEFAULT_SEEDS` and ``plan(scale, seeds)``, which lists its runs. Where methods can be chosen it
has `METHODS`, and its plan takes ``methods``; likewise `PAIRS` of domains and ``pairs``, and `SHIFTS` of the class mix
and ``shifts``. `JOB` names the section of the page that shows its records, if that is not the laboratory's. A module
that plans runs of another experiment, and shows its records in its own way, has `RECORDS_OF`.
"""
VIEWS: dict[str, str] = {
    **dict.fromkeys(("table1", "table2", "table6"), "setminus_paper.report.style_transfer"),
    **dict.fromkeys(FAIRNESS, "setminus_paper.report.fairness_tables"),
    "table3": "setminus_paper.report.domain_adaptation",
}
"""The module that shows an experiment's records, where it is not the one that measures.

It has ``summary(records)``, rows of (quantity, expected, measured), and ``charts(records)``, of which `PER_ROW` (3 by
default) stand side by side in a picture, or ``draw(records, path)`` for a picture of another kind.
"""
GROUPS: dict[str, tuple[str, ...]] = {"laboratory": LABORATORY, "fairness": FAIRNESS}
"""Names of several experiments together."""
KINDS = {"fig": "Figure", "prop": "Proposition", "theorem": "Theorem", "table": "Table"}


Device = Literal["auto", "cpu", "cuda", "mps"]


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="fig1, fig2a, fig2b, fig2c, prop1 to prop7, theorem1, pitfalls, or laboratory for all of these. "
            "table4, table5, table5_split, or fairness for all three. table1, table2, table3, table6, which take "
            "hours. fig3, fig4: images of table1. principals: how exact learned principal classifiers are. ablation: "
            "which of our changes to table3 raises the accuracy. small_digits: adaptation of digits, in seconds.",
            show_default=False,
        ),
    ],
    scale: Annotated[
        Scale,
        typer.Option(
            help="quick: small sizes, for two cores. large: table2, table3 and table6 on more images, for nights. "
            "paper: the paper's sizes, which take days on a CPU."
        ),
    ] = "quick",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of seeds. The default depends on the experiment: in table3, pairs beyond the paper's first "
            "four have one.",
        ),
    ] = None,
    methods: Annotated[str | None, typer.Option(help="Only these methods, separated by commas.")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="table3: only these pairs of domains, such as mnist-usps, separated by commas.")
    ] = None,
    shifts: Annotated[
        str | None,
        typer.Option(
            help="table3: share of the source rows in the first half of the classes; the target has the reverse. "
            "Separate several by commas. Default: 0.7, as in the paper. 0.5 is no shift."
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes, each with its own runs.")] = 2,
    device: Annotated[Device, typer.Option(help="Where networks are trained. auto: a GPU, if there is one.")] = "cpu",
    devices: Annotated[int, typer.Option(min=1, help="Number of devices that train one network together.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Number of threads of each process.")] = 1,
    steps: Annotated[
        int | None, typer.Option(min=1, help="Largest number of training steps, to try an experiment out.")
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for records, figures and pages, with a subfolder for each NAME.")
    ] = (Path("runs")),
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Run what has no record yet, or use saved records only.")
    ] = True,
    page: Annotated[
        bool | None,
        typer.Option(
            "--page/--no-page", help="Write a figure and an HTML page to OUT. Default: yes, unless --docs is given."
        ),
    ] = None,
    docs: Annotated[
        Path | None,
        typer.Option(help="Documentation folder: its pages and pictures are rebuilt from the records in OUT."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print paths only.")] = False,
) -> None:
    """Reproduce figures, tables or claims of the paper, and compare them with the paper's numbers.

    Each run is written to OUT/NAME/records.jsonl as soon as it is done, and is not repeated later. To continue after
    a stop, or to add seeds, repeat the command.

    Example: setminus reproduce fig2a
    Example: setminus reproduce prop1 prop2 --seeds 5 --jobs 4
    Example: setminus reproduce laboratory --out results --docs docs
    Example: setminus reproduce table4 --methods vanilla,laftr_0.5,tuned_proxy --seeds 3
    Example: setminus reproduce table3 --pairs mnist-usps --methods vada,vada_orthogonal_em --shifts 0.5,0.7,0.95
    """
    from setminus.commands.terminal import Display

    wanted = find_names(names)
    # an empty text is a choice too, and refused as one: it must not mean hours of all
    chosen = {
        key: tuple(one.strip() for one in given.split(","))
        for key, given in (("methods", methods), ("pairs", pairs))
        if given is not None
    }
    options: dict[str, Any] = {"scale": scale, "seeds": seeds, "shifts": _shares(shifts), **chosen}
    for folder, option in ((out, "--out"), (docs, "--docs")):
        if folder is not None:
            check_folder(folder, option)
    for name in wanted:
        # a mistake in the last name must not wait for the others
        plan_runs(name, **options)
    if device != "cpu":
        from setminus.nn.passes import pick_device

        # a device that is not here must not wait for the data of the first run
        pick_device(device)
    machine = Machine(device, devices, threads, steps)
    display = Display(quiet)
    with_page = docs is None if page is None else page
    failures: list[str] = []
    shown: list[dict[str, Any]] = []
    for name in wanted:
        file = out / records_of(name) / "records.jsonl"
        try:
            kept = replace(machine, checkpoints=file.parent / "checkpoints")
            given = {**options, "jobs": jobs, "machine": kept}
            records = _measured(name, file, display, given) if run else _recorded(file)
        except FailedRunsError as error:
            failures += error.failures
            continue
        # a figure may show the records of a table that was asked for, too
        shown += [record for record in records if record not in shown]
        _show(name, records, file, out / name, display, page=with_page)
    if with_page and len({record["name"] for record in shown}) > 1:
        from setminus.report.page import write_page

        with listen(display), tracked("write the page of all"):
            path = write_page(out / "index.html", shown)
        echo(path.resolve())
    if docs is not None:
        from setminus_paper.pages import rebuild

        with listen(display), tracked("rebuild the documentation"):
            paths = rebuild(wanted, out, docs)
        for path in paths:
            echo(path.resolve())
    if failures:
        raise FailedRunsError(failures)


def find_names(wanted: Iterable[str]) -> list[str]:
    """The experiments behind some names, each once; a group means all of its members.

    Examples
    --------
    >>> find_names(["prop4", "laboratory"])[:3]
    ['prop4', 'fig1', 'fig2a']
    >>> find_names(["pro4"])
    Traceback (most recent call last):
    setminus.errors.UserError: there is no experiment 'pro4': did you mean 'prop4'?
    """
    found: list[str] = []
    for name in wanted:
        if name not in EXPERIMENTS and name not in GROUPS:
            raise UserError(f"there is no experiment {name!r}", do=_advice(name, [*EXPERIMENTS, *GROUPS]))
        found += GROUPS.get(name, (name,))
    return list(dict.fromkeys(found))


def load_experiment(name: str) -> Any:
    """The module that measures an experiment; a name that is not listed is refused, not imported."""
    (known,) = find_names([name])
    return import_module(EXPERIMENTS[known])


def load_view(name: str) -> Any:
    """The module that shows an experiment's records; a name that is not listed is refused, not imported."""
    (known,) = find_names([name])
    return import_module(VIEWS.get(known, EXPERIMENTS[known]))


def title_of(name: str) -> str:
    """An experiment's name in words.

    Examples
    --------
    >>> title_of("fig2a"), title_of("prop4"), title_of("pitfalls")
    ('Figure 2a', 'Proposition 4', 'Pitfalls')
    """
    kind = re.fullmatch(r"([a-z]+?)(\d+[a-z]?)", name)
    if kind and kind[1] in KINDS:
        return f"{KINDS[kind[1]]} {kind[2]}"
    return name.replace("_", " ").capitalize()


def summary_of(records: Sequence[Record]) -> list[tuple[str, str, str]]:
    """Rows of (quantity, expected, measured)."""
    rows: list[tuple[str, str, str]] = load_view(records[0]["name"]).summary(list(records))
    return rows


def draw_picture(name: str, records: Sequence[Record], path: str | os.PathLike[str]) -> bool:
    """Draw the picture of a figure, a table or a claim as PNG; whether there was anything to draw.

    Its module has a `draw` of its own, or `charts` of which as many stand side by side as its `PER_ROW` says, or three.
    The records may be those of another experiment, such as the table that a figure shows images of.
    """
    from setminus.charts.picture import draw

    module = load_view(name)
    if hasattr(module, "draw"):
        module.draw(list(records), path)
        return True
    charts = module.charts(list(records))
    if charts:
        draw(charts, path, columns=int(getattr(module, "PER_ROW", 3)))
    return bool(charts)


def records_of(name: str) -> str:
    """The experiment whose records are shown under a name: mostly itself."""
    source: str = getattr(load_experiment(name), "RECORDS_OF", name)
    return source


def plan_runs(
    name: str,
    *,
    scale: Scale,
    seeds: int | None = None,
    methods: Sequence[str] = (),
    pairs: Sequence[str] = (),
    shifts: Sequence[float] = (),
) -> list[Run]:
    """The runs of an experiment, by default with its own number of seeds, methods, pairs of domains and shifts."""
    module = load_experiment(name)
    count = module.DEFAULT_SEEDS if seeds is None else seeds
    if count < 1:
        raise UserError(f"seeds is {count}, but a run needs one", do="give 1 or more.")
    if scale == "large" and scale not in getattr(module, "SIZES", ()):
        raise UserError(f"{name} has no large size", do="use --scale quick or --scale paper.")
    # a constant that a module only imports for itself is not its own
    public = getattr(module, "__all__", dir(module))
    chosen: dict[str, Any] = {}
    for kind, wanted in (("method", methods), ("pair", pairs)):
        known = tuple(getattr(module, f"{kind}s".upper())) if f"{kind}s".upper() in public else ()
        if wanted and not known:
            raise UserError(f"{name} does not compare {kind}s", do=f"leave out {', '.join(wanted)}.")
        for one in wanted:
            if one not in known:
                raise UserError(f"{name} has no {kind} {one!r}", do=_advice(one, known))
        if known:
            chosen[f"{kind}s"] = tuple(wanted) or known
    if shifts:
        if "SHIFTS" not in public:
            raise UserError(f"{name} does not shift a class mix", do=f"leave out {', '.join(map(str, shifts))}.")
        chosen["shifts"] = tuple(dict.fromkeys(shifts))
    runs: list[Run] = module.plan(scale, tuple(range(count)), **chosen)
    return runs


def run_experiment(
    name: str,
    records: Path,
    *,
    scale: Scale = "quick",
    seeds: int | None = None,
    methods: Sequence[str] = (),
    pairs: Sequence[str] = (),
    shifts: Sequence[float] = (),
    jobs: int = 1,
    machine: Machine = ONE_THREAD,
    failed: Callable[[str, str], object] = lambda why, trace: None,
) -> list[Record]:
    """Measure what the file of ``records_of(name)`` lacks; see `plan_runs` and `setminus_paper.run.execute`."""
    module = load_experiment(name)
    runs = plan_runs(name, scale=scale, seeds=seeds, methods=methods, pairs=pairs, shifts=shifts)
    source = records_of(name)
    if source != name:
        # the other experiment may have another number of seeds by default
        seeds = seeds or module.DEFAULT_SEEDS
    choices: dict[str, Sequence[object]] = {"methods": methods, "pairs": pairs, "shifts": shifts}
    options = [
        f"--scale {scale}",
        *([f"--seeds {seeds}"] if seeds else []),
        *(f"--{kind} {','.join(map(str, some))}" for kind, some in choices.items() if some),
    ]
    return execute(
        runs,
        records,
        jobs=jobs,
        command=" ".join(["setminus reproduce", source, *options]),
        job=getattr(module, "JOB", "laboratory"),
        claim=module.CLAIM,
        machine=machine,
        failed=failed,
    )


def _shares(given: str | None) -> tuple[float, ...]:
    try:
        return () if given is None else tuple(float(one) for one in given.split(","))
    except ValueError as error:
        raise UserError(
            f"--shifts {given} is not a list of shares", do="give numbers separated by commas, such as 0.5,0.7,0.95."
        ) from error


def _measured(name: str, file: Path, display: Display, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Measure what the file lacks; tracebacks of runs that fail go to failed.log beside it."""
    log = file.parent / "failed.log"
    log.unlink(missing_ok=True)

    def failed(why: str, trace: str) -> None:
        display.warn(f"failed    {why}")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as lines:
            lines.write(f"{why}\n{trace}\n")

    with listen(display):
        return run_experiment(name, file, failed=failed, **options)


def _recorded(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        raise UserError(f"there is no {file}", do="leave out --no-run to measure it.")
    return read_records(file)


def _show(name: str, records: list[dict[str, Any]], file: Path, folder: Path, display: Display, *, page: bool) -> None:
    """The numbers in the terminal, the charts as a picture, and the page; then the paths of all."""
    display.table((title_of(name), "paper, or exact", "measured"), summary_of(records))
    display.say("")
    paths = [file]
    if page:
        from setminus.report.page import write_page

        folder.mkdir(parents=True, exist_ok=True)
        picture = folder / f"{name}.png"
        if draw_picture(name, records, picture):
            paths.append(picture)
        paths.append(write_page(folder / "index.html", records))
    for path in paths:
        echo(path.resolve())


def _advice(name: str, known: Sequence[str]) -> str:
    wanted = name.lower()
    near = [one for one in known if one.startswith(wanted)] or difflib.get_close_matches(wanted, known, n=1)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}."
