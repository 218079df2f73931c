"""Mutation testing: change the source a little, and see whether the tests of the same package notice.

``python -m benchmarks.mutants [core ...] [--sample 400 --seed 1 --budget 60]``. A forked process runs the tests that
touch the changed lines, quick ones first, until one fails (`benchmarks.mutant_runs`). With a budget only the quickest
run, and the score is a lower bound. Outcomes are kept in ``build/mutants``: a run that was stopped goes on where it
was. A mutant is run again when the function it is in has changed; one that survived also when the tests or the budget
have.

Which changes are made and which are not: `benchmarks.mutations`. What is known of survivors: `surviving_mutants.toml`.
Those that are equivalent, so that no test can notice them, are not counted; those that are accepted are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.mutant_runs import cover, in_fork, mirror, outcome, preload

if TYPE_CHECKING:
    from benchmarks.mutations import Mutant

PACKAGES = ("core", "auditing", "estimators", "tables", "scale")
KNOWN = Path(__file__).with_name("surviving_mutants.toml")
BUILD = Path("build/mutants")


def main() -> None:
    """Run the mutants that are asked for, and write what survives."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="package", help=f"of {', '.join(PACKAGES)}")
    parser.add_argument("--sample", type=int, default=0, help="mutants of each package (default: all of them)")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    parser.add_argument(
        "--budget", type=float, help="seconds of tests for each mutant: the rest, the slowest, is not run"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants with TEXT in their name; writes no result")
    parser.add_argument("--results", type=Path, default=Path("results/mutants"))
    args = parser.parse_args()
    for package in args.packages:
        if package not in PACKAGES:
            parser.error(f"there is no package {package!r}: expected {', '.join(PACKAGES)}")
        # a process for each: what one imports before its mutants may be another's source
        if in_fork(lambda package=package: _judge(package, args), math.inf) != 0:
            raise SystemExit(f"{package} could not be judged: see above.")


def _judge(package: str, args: argparse.Namespace) -> int:
    from benchmarks.mutations import mutants_of

    root, tree = Path.cwd(), Path.cwd() / BUILD / package
    mirror(root, tree)
    tests = _digest([*sorted((root / "tests" / package).rglob("*.py")), root / "tests/conftest.py"])
    state = [_digest(sorted((root / "src").rglob("*.py"))), tests]
    covered = cover(package, root / BUILD / f"{package}.tests.json", state, tree)
    preload(covered.modules)

    everything = [
        mutant
        for path in sorted(Path("src/setminus", package).glob("*.py"))
        for mutant in mutants_of(str(path), path.read_bytes())
    ]
    equivalent, accepted = (reasons(tomllib.loads(KNOWN.read_text()), kind) for kind in ("equivalent", "accepted"))
    mutants = [mutant for mutant in everything if args.only in mutant.name]
    if args.sample:
        mutants = drawn(mutants, args.sample, args.seed)
    # after the draw: to list one more must not draw others
    mutants = [mutant for mutant in mutants if mutant.name not in equivalent]

    store = root / BUILD / f"{package}.outcomes.jsonl"
    kept = store.read_text().splitlines() if store.exists() else []
    known = {entry["name"]: entry for entry in map(json.loads, kept)}
    outcomes: dict[str, str] = {}
    began = time.perf_counter()
    with store.open("a") as file:
        for number, mutant in enumerate(mutants, start=1):
            of = hashlib.sha256(mutant.within.encode()).hexdigest()[:12]
            entry = known.get(mutant.name, {})
            tried = {"tests": tests, "budget": args.budget}
            if entry.get("function") != of or (entry["outcome"] == "survived" and not tried.items() <= entry.items()):
                may_notice = covered.within(covered.tests_for(mutant.path, mutant.lines), args.budget)
                found = outcome(mutant.path, mutant.source, may_notice, covered, tree)
                entry = {"name": mutant.name, "outcome": found, "function": of, **tried}
                file.write(json.dumps(entry) + "\n")
                file.flush()
                minutes = (time.perf_counter() - began) / 60
                print(f"{package} {number}/{len(mutants)} {minutes:.1f} min: {found} {mutant.name}", flush=True)
            outcomes[mutant.name] = entry["outcome"]

    record = summary(package, outcomes, len(everything), args.sample, args.seed)
    if args.budget is not None:
        record["budget"] = (
            f"{args.budget:g} seconds of tests for each mutant, the quickest ones: the score is a lower bound"
        )
    print(record)
    at = {mutant.name: f"line {_line(mutant, tree)}, {mutant.name}" for mutant in everything}
    record["survivors"] = {at[name]: accepted.get(name, "") for name in outcomes if outcomes[name] == "survived"}
    record["equivalent"] = {at[name]: reason for name, reason in equivalent.items() if name in at}
    for name in [*equivalent, *accepted]:
        if name.startswith(f"src/setminus/{package}/") and (name not in at or outcomes.get(name) == "killed"):
            print(f"{KNOWN.name} has a mutant that does not survive any more: {name}")
    if not args.only:
        args.results.mkdir(parents=True, exist_ok=True)
        text = json.dumps(record, indent=1, ensure_ascii=False)
        (args.results / f"{package}.json").write_text(text + "\n")
    return 0


def drawn(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """A random sample in the order of the source; everything where there is no more."""
    chosen = random.Random(seed).sample(range(len(mutants)), min(size, len(mutants)))
    return [mutants[i] for i in sorted(chosen)]


def reasons(known: dict[str, Any], kind: str) -> dict[str, str]:
    """The reason of each mutant by its name, from groups of mutants that share a reason.

    Examples
    --------
    >>> reasons({"equivalent": [{"reason": "speed only", "mutants": ["a", "b"]}]}, "equivalent")
    {'a': 'speed only', 'b': 'speed only'}
    """
    return {name: group["reason"] for group in known.get(kind, []) for name in group["mutants"]}


def summary(package: str, outcomes: dict[str, str], mutants: int, sample: int, seed: int) -> dict[str, Any]:
    """Counts and the score: the share of mutants that a test noticed, with a 95 % interval if they are a sample.

    Examples
    --------
    >>> found = summary("core", {"a": "killed", "b": "killed", "c": "survived", "d": "timeout"}, 10, 4, 1)
    >>> found["score"], [round(end, 2) for end in found["interval"]]
    (0.75, [0.3, 0.95])
    """
    counts = {kind: list(outcomes.values()).count(kind) for kind in ("killed", "timeout", "survived")}
    noticed, n = counts["killed"] + counts["timeout"], len(outcomes)
    sampled = 0 < sample < mutants
    return {
        "package": package,
        "mutants": mutants,
        "run": n,
        "drawn": f"at random, seed {seed}" if sampled else "all that are not equivalent",
        **counts,
        "score": round(noticed / n, 4) if n else None,
        "interval": wilson(noticed, n) if sampled else None,
    }


def wilson(hits: int, n: int) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson.

    Examples
    --------
    >>> [round(end, 3) for end in wilson(380, 400)]
    [0.924, 0.967]
    """
    z, share = 1.959964, hits / n
    middle = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return ((middle - spread) / (1 + z * z / n), (middle + spread) / (1 + z * z / n))


def _digest(paths: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()[:12]


def _line(mutant: Mutant, tree: Path) -> int:
    return 1 + (tree / mutant.path).read_bytes()[: mutant.start].count(b"\n")


if __name__ == "__main__":
    main()
