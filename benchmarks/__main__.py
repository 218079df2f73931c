"""The command: ``python -m benchmarks [PART]``, one of the parts below or all of them."""

from __future__ import annotations

import argparse
from pathlib import Path

PARTS = ("speed", "training", "scoring", "peers", "table_peers", "proxy", "adapters", "tables")


def main() -> None:
    """Run what is asked for; without an argument, everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="all", choices=["all", *PARTS])
    parser.add_argument("--seeds", type=int, default=5, help="splits of peers, proxy and adapters (default: 5)")
    parser.add_argument("--again", metavar="TEXT", help="first remove the records of methods with TEXT in their name")
    parser.add_argument("--repeats", type=int, default=9, help="repeats of each timing of speed (default: 9)")
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of the file of scoring (default: 50000000)")
    parser.add_argument("--results", type=Path, default=Path("results"), help="where records are (default: results)")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="where tables go (default: docs)")
    args = parser.parse_args()

    # imported when needed: the tables must not wait for, nor need, the libraries that are compared
    if args.what in ("all", "speed"):
        from benchmarks import speed

        speed.run(args.repeats, args.results / "speed" / "records.jsonl")
    if args.what in ("all", "training"):
        from benchmarks import colored_digits, speed, stacked_seeds, training_steps, vanilla_training

        training_steps.run(records=args.results / "training_steps" / "records.jsonl")
        vanilla_training.run(records=args.results / "vanilla_training" / "records.jsonl")
        stacked_seeds.run()
        print(speed.table(colored_digits.coloring()))
    if args.what in ("all", "scoring"):
        from benchmarks import scoring

        scoring.run(args.rows, records=args.results / "scoring" / "records.jsonl")
    if args.what in ("all", "peers"):
        from benchmarks import peers

        peers.run(range(args.seeds), peers.METHODS, args.results / "peers" / "records.jsonl", again=args.again)
    if args.what in ("all", "table_peers"):
        from benchmarks import table_peers

        table_peers.run(args.results)
    if args.what in ("all", "proxy"):
        from benchmarks import proxy

        proxy.run(range(args.seeds), again=args.again, records=args.results / "proxy" / "records.jsonl")
    if args.what in ("all", "adapters"):
        from benchmarks import adapters

        adapters.run(range(args.seeds), again=args.again, records=args.results / "adapters" / "records.jsonl")
    if args.what in ("all", "tables"):
        from benchmarks import tables

        peers_of, adapters_of = (args.results / name / "records.jsonl" for name in ("peers", "adapters"))
        tables.run(peers_of, args.docs, Path("README.md"), adapters=adapters_of)
        tables.run_paper(args.results, args.docs, Path("README.md"))


if __name__ == "__main__":
    main()
