"""The command: ``python -m benchmarks [PART]``, one of the parts below or all of them."""

from __future__ import annotations

import argparse
from pathlib import Path

PARTS = ("speed", "training", "scoring", "peers", "table_peers", "proxy", "adapters")


def main() -> None:
    """Run a part, or all; ``peers`` and ``adapters`` also rebuild ``docs/peers.md``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("what", nargs="?", default="all", choices=["all", *PARTS])
    parser.add_argument("--seeds", type=int, default=5, help="splits of peers, proxy and adapters (default: 5)")
    parser.add_argument("--again", metavar="TEXT", help="first remove the records of methods with TEXT in their name")
    parser.add_argument("--repeats", type=int, default=9, help="repeats of each timing of speed (default: 9)")
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of the file of scoring (default: 50000000)")
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
    if "training" in wanted:
        from benchmarks import colored_digits, speed, stacked_seeds, training_steps, vanilla_training

        training_steps.run(records=records("training_steps"))
        vanilla_training.run(records=records("vanilla_training"))
        stacked_seeds.run()
        print(speed.table(colored_digits.coloring()))
    if "scoring" in wanted:
        from benchmarks import scoring

        scoring.run(args.rows, records=records("scoring"))
    if "peers" in wanted:
        from benchmarks import peers

        peers.run(range(args.seeds), peers.METHODS, records("peers"), again=args.again)
    if "table_peers" in wanted:
        from benchmarks import table_peers

        table_peers.run(args.results)
    if "proxy" in wanted:
        from benchmarks import proxy

        proxy.run(range(args.seeds), records("proxy"), again=args.again)
    if "adapters" in wanted:
        from benchmarks import adapters

        adapters.run(range(args.seeds), records("adapters"), again=args.again)
    if {"peers", "adapters"} & {*wanted}:
        from benchmarks import peers_page

        print(*peers_page.build(args.results, args.docs), sep="\n")


if __name__ == "__main__":
    main()
