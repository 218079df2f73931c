"""The command: ``python -m benchmarks [PART]``, one of the parts below or all of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

Part = Callable[[argparse.Namespace], None]
PARTS: dict[str, Part] = {}
"""In the order in which all of them run."""

# a part imports what it needs when it runs: it must not need the libraries of another


def part(run: Part) -> Part:
    """Make a part of the command from a function; the first line of its docstring describes it."""
    PARTS[run.__name__] = run
    return run


@part
def speed(args: argparse.Namespace) -> None:
    """The formula beside one addition of its arrays, and the start of the command."""
    from benchmarks import speed

    speed.run(args.repeats, _records(args, "speed"))


@part
def training_steps(args: argparse.Namespace) -> None:
    """A training step of each method beside a plain one."""
    from benchmarks import training_steps

    training_steps.run(records=_records(args, "training_steps"))


@part
def scoring(args: argparse.Namespace) -> None:
    """`setminus apply` beside reading and writing the same file."""
    from benchmarks import scoring

    scoring.run(args.rows or scoring.ROWS, records=_records(args, "scoring"))


@part
def auditing(args: argparse.Namespace) -> None:
    """`setminus audit` beside reading the columns that it uses."""
    from benchmarks import auditing

    auditing.run(args.rows or auditing.ROWS, _records(args, "auditing"))


@part
def scaling(args: argparse.Namespace) -> None:
    """Time and memory of fit, apply and audit as the rows double; draws its picture."""
    from benchmarks import scaling

    records = _records(args, "scaling")
    scaling.run(args.rows or scaling.MOST, records)
    print(scaling.picture(records, args.docs / "benchmarks" / "scaling.png"))


@part
def tuning(args: argparse.Namespace) -> None:
    """Tuning beside one fit of the base model."""
    from benchmarks import tuning

    tuning.run(_records(args, "tuning"))


@part
def exported(args: argparse.Namespace) -> None:
    """A model in onnxruntime beside the same in Python."""
    from benchmarks import exported

    exported.run(_records(args, "exported"))


@part
def monitoring(args: argparse.Namespace) -> None:
    """How often `setminus monitor` sounds an alarm, with and without a reason."""
    from benchmarks import monitoring

    monitoring.run(_records(args, "monitoring"))


@part
def peers(args: argparse.Namespace) -> None:
    """Fairness beside other libraries at the same gap on test rows; rebuilds its pages."""
    from benchmarks import fairness_sets, peers, peers_page

    chosen = [name for name, entry in fairness_sets.SETS.items() if args.part in (entry.role, "all")]
    peers.run(
        args.sets.split(",") if args.sets else chosen,
        _seeds(args, peers.SEEDS),
        [method for method in peers.METHODS if args.only in method.name],
        _records(args, "peers"),
        again=args.again,
        jobs=args.jobs,
        scores=args.scores,
    )
    print(*peers_page.build(args.results, args.docs), sep="\n")


@part
def table_peers(args: argparse.Namespace) -> None:
    """The rows of other libraries in tables 4 and 5 of the paper."""
    from benchmarks import table_peers

    table_peers.run(args.results)


@part
def adapters(args: argparse.Namespace) -> None:
    """Adaptation beside other methods, on features of many kinds; rebuilds its page."""
    from benchmarks import adapter_settings, adapters, adapters_page

    adapters.run(
        _seeds(args, 5),
        _records(args, "adapters"),
        again=args.again,
        jobs=args.jobs,
        settings=adapter_settings.PARTS[args.part],
        names=[name for name in adapters.METHODS if args.only in name],
    )
    print(*adapters_page.build(args.results, args.docs), sep="\n")


@part
def adapter_speed(args: argparse.Namespace) -> None:
    """Adaptation beside scikit-learn's `MLPClassifier` at equal steps."""
    from benchmarks import adapter_speed

    adapter_speed.run(_records(args, "adapter_speed"))


@part
def collapse(args: argparse.Namespace) -> None:
    """Which term of the objective makes adaptation predict too few classes; draws its picture."""
    from benchmarks import collapse

    records = _records(args, "collapse")
    collapse.run(_seeds(args, 5), records, again=args.again)
    print(collapse.picture(records, args.docs / "collapse.png"))


@part
def promises(args: argparse.Namespace) -> None:
    """How often certificates and intervals are wrong, where the truth is known, and on splits of real sets."""
    from benchmarks import promises, tuned_promises

    for module in (promises, tuned_promises):
        module.run(_records(args, "promises"), sets=args.simulations, again=args.again, only=args.only)


@part
def verdicts(args: argparse.Namespace) -> None:
    """The verdict of `setminus adapt` beside the truth."""
    from benchmarks import adapter_settings, verdicts

    verdicts.run(
        _seeds(args, 5),
        _records(args, "verdicts"),
        adapter_settings.PARTS[args.part],
        [method for method in verdicts.METHODS if args.only in method],
    )


@part
def translators(args: argparse.Namespace) -> None:
    """What style transfer changes and keeps at its defaults; rebuilds its page."""
    from benchmarks import translators, translators_page

    translators.run(_seeds(args, 1), _records(args, "translators"), only=args.only, part=args.part)
    print(*translators_page.build(args.results, args.docs), sep="\n")


@part
def translator_speed(args: argparse.Namespace) -> None:
    """A training step of style transfer beside that of the first version."""
    from benchmarks import translator_speed

    translator_speed.run(_records(args, "translator_speed"))


@part
def translator_quality(args: argparse.Namespace) -> None:
    """What that step reaches beside the first version's, after as many pictures."""
    from benchmarks import translator_quality

    translator_quality.run(_records(args, "translator_quality"))


@part
def translated_files(args: argparse.Namespace) -> None:
    """`setminus transfer apply` on 100,000 pictures, killed in the middle and resumed."""
    from benchmarks import translated_files

    translated_files.run(_records(args, "translated_files"), args.rows or translated_files.PICTURES)


def main() -> None:
    """Run a part, or all."""
    described = "\n".join(f"  {name:17} {run.__doc__.splitlines()[0]}" for name, run in PARTS.items() if run.__doc__)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=f"Measure a part, or all, and append records to results/PART/records.jsonl.\n\n{described}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="PART", nargs="?", default="all", choices=["all", *PARTS], help="default: all")
    parser.add_argument(
        "--seeds", type=int, help="default: splits of peers 10, translators 1, others 5; 0 rebuilds pages alone"
    )
    parser.add_argument("--again", metavar="TEXT", help="first remove the records of methods with TEXT in their name")
    parser.add_argument("--jobs", type=int, default=1, help="processes of peers and adapters (default: 1)")
    parser.add_argument(
        "--only",
        metavar="TEXT",
        default="",
        help="methods of peers, adapters and verdicts, parts of promises, with TEXT in their name",
    )
    parser.add_argument(
        "--part",
        choices=["development", "test", "new", "last", "tables", "final", "unchanged", "unseen", "all"],
        default="all",
        help="which sets and settings (those between test and all: adapters and verdicts only)",
    )
    parser.add_argument("--sets", metavar="NAMES", help="sets of peers, joined by commas (default: those of --part)")
    parser.add_argument("--scores", type=Path, help="folder that keeps the base models' scores of peers for later runs")
    parser.add_argument("--repeats", type=int, default=9, help="repeats of each timing of speed (default: 9)")
    parser.add_argument(
        "--rows",
        type=int,
        help="rows of scoring and auditing (default: 50000000), most rows of scaling (25600000), pictures of "
        "translated_files (100000)",
    )
    parser.add_argument("--simulations", type=int, default=1000, help="data sets of promises (default: 1000)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="where records are (default: results)")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="where pages go (default: docs)")
    args = parser.parse_args()
    for name in PARTS if args.what == "all" else (args.what,):
        PARTS[name](args)


def _seeds(args: argparse.Namespace, usual: int) -> range:
    # 0 rebuilds pages alone
    return range(usual if args.seeds is None else args.seeds)


def _records(args: argparse.Namespace, name: str) -> Path:
    path: Path = args.results / name / "records.jsonl"
    return path


if __name__ == "__main__":
    main()
