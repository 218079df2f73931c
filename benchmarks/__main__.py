"""The command: ``python -m benchmarks [PART]``, one of the parts below or all of them."""

from __future__ import annotations

import argparse
from pathlib import Path

PARTS = (
    "speed",
    "training_steps",
    "scoring",
    "auditing",
    "scaling",
    "tuning",
    "exported",
    "monitoring",
    "peers",
    "table_peers",
    "adapters",
    "adapter_speed",
    "collapse",
    "promises",
    "verdicts",
    "translators",
    "translator_speed",
)


def main() -> None:
    """Run a part, or all; ``peers`` and ``adapters`` also rebuild their pages."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="all", choices=["all", *PARTS])
    parser.add_argument("--seeds", type=int, help="splits of peers (default: 10), the others (default: 5)")
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
        choices=["development", "test", "new", "last", "tables", "final", "all"],
        default="all",
        help="which sets and settings (new, last, tables, final: adapters only)",
    )
    parser.add_argument("--sets", metavar="NAMES", help="sets of peers, joined by commas (default: those of --part)")
    parser.add_argument("--scores", type=Path, help="folder that keeps the base models' scores of peers for later runs")
    parser.add_argument("--repeats", type=int, default=9, help="repeats of each timing of speed (default: 9)")
    parser.add_argument(
        "--rows", type=int, help="rows of scoring and auditing (default: 50000000), most rows of scaling (25600000)"
    )
    parser.add_argument("--simulations", type=int, default=1000, help="data sets of promises (default: 1000)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="where records are (default: results)")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="where pages go (default: docs)")
    args = parser.parse_args()
    wanted = PARTS if args.what == "all" else (args.what,)

    def records(name: str) -> Path:
        path: Path = args.results / name / "records.jsonl"
        return path

    # imported when needed: a part must not need the libraries of another
    if "speed" in wanted:
        from benchmarks import speed

        speed.run(args.repeats, records("speed"))
    if "training_steps" in wanted:
        from benchmarks import training_steps

        training_steps.run(records=records("training_steps"))
    if "scoring" in wanted:
        from benchmarks import scoring

        scoring.run(args.rows or scoring.ROWS, records=records("scoring"))
    if "auditing" in wanted:
        from benchmarks import auditing

        auditing.run(args.rows or auditing.ROWS, records("auditing"))
    if "tuning" in wanted:
        from benchmarks import tuning

        tuning.run(records("tuning"))
    if "exported" in wanted:
        from benchmarks import exported

        exported.run(records("exported"))
    if "monitoring" in wanted:
        from benchmarks import monitoring

        monitoring.run(records("monitoring"))
    if "scaling" in wanted:
        from benchmarks import scaling

        scaling.run(args.rows or 25_600_000, records("scaling"))
        print(scaling.picture(records("scaling"), args.docs / "benchmarks" / "scaling.png"))
    if "peers" in wanted:
        from benchmarks import fairness_sets, peers

        part = [name for name, entry in fairness_sets.SETS.items() if args.part in (entry.role, "all")]
        peers.run(
            args.sets.split(",") if args.sets else part,
            range(peers.SEEDS if args.seeds is None else args.seeds),
            [method for method in peers.METHODS if args.only in method.name],
            records("peers"),
            again=args.again,
            jobs=args.jobs,
            scores=args.scores,
        )
    if "table_peers" in wanted:
        from benchmarks import table_peers

        table_peers.run(args.results)
    if "adapters" in wanted:
        from benchmarks import adapter_settings, adapters, adapters_page

        adapters.run(
            range(5 if args.seeds is None else args.seeds),
            records("adapters"),
            again=args.again,
            jobs=args.jobs,
            settings=adapter_settings.PARTS[args.part],
            names=[name for name in adapters.METHODS if args.only in name],
        )
        print(*adapters_page.build(args.results, args.docs), sep="\n")
    if "adapter_speed" in wanted:
        from benchmarks import adapter_speed

        adapter_speed.run(records("adapter_speed"))
    if "collapse" in wanted:
        from benchmarks import collapse

        collapse.run(range(5 if args.seeds is None else args.seeds), records("collapse"), again=args.again)
        print(collapse.picture(records("collapse"), args.docs / "collapse.png"))
    if "promises" in wanted:
        from benchmarks import promises, tuned_promises

        for part in (promises, tuned_promises):
            part.run(records("promises"), sets=args.simulations, again=args.again, only=args.only)
    if "verdicts" in wanted:
        from benchmarks import adapter_settings, verdicts

        verdicts.run(
            range(5 if args.seeds is None else args.seeds),
            records("verdicts"),
            adapter_settings.PARTS[args.part],
            [method for method in verdicts.METHODS if args.only in method],
        )
    if "translator_speed" in wanted:
        from benchmarks import translator_speed

        translator_speed.run(records("translator_speed"))
    if "translators" in wanted:
        from benchmarks import translators, translators_page

        seeds = range(1 if args.seeds is None else args.seeds)
        translators.run(seeds, records("translators"), only=args.only, part=args.part)
        print(*translators_page.build(args.results, args.docs), sep="\n")
    if "peers" in wanted:
        from benchmarks import peers_page

        print(*peers_page.build(args.results, args.docs), sep="\n")


if __name__ == "__main__":
    main()
