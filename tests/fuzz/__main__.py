"""Attack the commands for some minutes: `python -m tests.fuzz --minutes 10 --seed 1 --out fuzz`.

Each finding is one line, and a file in --out that `--replay` runs again.
"""

import argparse
import contextlib
import tempfile
import time
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.fuzz.cases import Case, attack
from tests.fuzz.forks import Forks
from tests.fuzz.inputs import all_cases
from tests.fuzz.machine import Commands, can_mount
from tests.fuzz.world import build

ROUND = 300
"""Inputs of one seed."""
SEQUENCES, EVERY = 4, 10
"""Sequences of commands with trouble, and after how many rounds they come."""
SHRINKING = 20
"""Seconds to make one finding smaller."""
PHASES = (Phase.generate, Phase.shrink)
SETTINGS = settings(deadline=None, database=None, phases=PHASES, suppress_health_check=list(HealthCheck))


class Found(AssertionError):
    """Tells hypothesis that an input is worth making smaller."""


class Enough(BaseException):
    """Ends a round; hypothesis lets it through."""


class Campaign:
    """Counts inputs and findings, and keeps the smallest input of each finding."""

    def __init__(self, world, forks, out, end):
        self.world, self.forks, self.out, self.end = world, forks, out, end
        self.inputs, self.codes, self.findings = Counter(), Counter(), Counter()

    def round(self, number, only):
        """Inputs from one seed, until there is a new finding, which is then made smaller."""
        target, smallest, end = None, None, self.end

        def check(case):
            nonlocal target, smallest, end
            if time.monotonic() > end:
                raise Enough
            done, found = attack(case, self.world, self.forks)
            if target is None:
                self.inputs[case.kind] += 1
                self.codes[done.code] += 1
                new = [one for one in found if one not in self.findings]
                self.findings.update(found)
                if new:
                    target, end = new[0], time.monotonic() + SHRINKING
            if target in found:
                if smallest is None or len(case.to_json()) <= len(smallest.to_json()):
                    smallest = case
                raise Found(target)

        cases = given(all_cases(self.world, only=only))
        with contextlib.suppress(Found, Enough):
            settings(SETTINGS, max_examples=ROUND)(seed(number)(cases(check)))()
        if smallest is not None:
            print(f"{target} | seed {number} | {smallest!r:.200} | {smallest.save(self.out, target)}", flush=True)

    def trouble(self, number, small_disk):
        """Sequences of commands with kills and full disks, from one seed."""
        machine = type("Machine", (Commands,), {"world": self.world, "forks": self.forks, "small_disk": small_disk})
        self.inputs["sequences of commands, with trouble"] += SEQUENCES
        try:
            run_state_machine_as_test(
                seed(number)(machine), settings=settings(SETTINGS, max_examples=SEQUENCES, stateful_step_count=12)
            )
        except Exception as error:
            file = self.out / f"trouble-{number}.txt"
            file.write_text("\n".join([repr(error), *getattr(error, "__notes__", [])]))
            finding = f"trouble: {error!s:.100}"
            self.findings[finding] += 1
            print(f"{finding!r} | seed {number} | {file}", flush=True)

    def summary(self):
        """Inputs by kind and exit code, and findings by how often they came."""
        rows = [(count, kind) for kind, count in sorted(self.inputs.items())]
        rows += [(count, f"exit code {code}") for code, count in self.codes.most_common()]
        rows += [(count, f"FOUND {finding}") for finding, count in self.findings.most_common()]
        total = f"{sum(self.inputs.values()):,} inputs, {len(self.findings)} findings"
        return "\n".join([total, *(f"{count:8,}  {what}" for count, what in rows)])


def replay(files, world, forks):
    """Run saved cases again, and show all of each; whether any has a finding."""
    bad = False
    for file in files:
        done, found = attack(Case.from_json(file.read_text()), world, forks)
        print(f"{file}: exit code {done.code}, {found or 'nothing found'}\n{done.out[-3000:]}{done.err[-6000:]}")
        bad |= bool(found)
    return bad


def main():
    """Run for some minutes, or saved cases again; exits with 1 where there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--out", type=Path, default=Path("fuzz"))
    parser.add_argument("--only", help="one kind: tables, same, records, models or options")
    parser.add_argument("--replay", type=Path, nargs="*", default=[], help="saved cases to run again")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-world-") as home, Forks() as forks:
        world = Path(home, "world")
        build(world, forks)
        if asked.replay:
            return int(replay(asked.replay, world, forks))
        print(f"seed {asked.seed}", flush=True)
        asked.out.mkdir(parents=True, exist_ok=True)
        campaign = Campaign(world, forks, asked.out, time.monotonic() + 60 * asked.minutes)
        number = asked.seed
        while time.monotonic() < campaign.end:
            campaign.round(number, asked.only)
            (asked.out / "summary.txt").write_text(campaign.summary() + "\n")
            number += 1
            if number % EVERY == 0 and asked.only is None:
                campaign.trouble(number, small_disk=can_mount() and number % (2 * EVERY) == 0)
        print(campaign.summary())
        return int(bool(campaign.findings))


if __name__ == "__main__":
    raise SystemExit(main())
