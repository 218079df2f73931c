"""The commands one after the other in one folder, while processes are killed, disks are full and others write, too."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.fuzz.cases import Case, damage, spoken
from tests.fuzz.forks import Job
from tests.fuzz.world import ROLES

SCORES = ("--out", "out/scores.json", "--page", "out/page.html", "--force")
COMMANDS = {
    "fit": ("fit", "people.csv", *ROLES, "--full", "logistic", "--out", "out/model.skops", "--force", "--quiet"),
    "apply": ("apply", "out/model.skops", "people.csv", "--out", "out/scored.csv", "--force", "--quiet"),
    "apply to parquet": ("apply", "out/model.skops", "people.csv", "--out", "out/scored.parquet", "--force", "--quiet"),
    "audit": ("audit", "people.csv", *ROLES, "--score", "p", *SCORES),
    "report": ("report", "out/model.audit.json", "--out", "out/report.html", "--force"),
    "info": ("info", "out/model.skops"),
}
commands = st.sampled_from(sorted(COMMANDS))
DISK = 32 << 20


class Commands(RuleBasedStateMachine):
    """What was written stays whole, whatever happens to the next command; `small_disk` needs root."""

    world, forks, small_disk = None, None, False

    def __init__(self):
        super().__init__()
        self.home = Path(tempfile.mkdtemp(prefix="fuzz-"), "home")
        self.home.mkdir()
        if self.small_disk:
            mount(self.home)
        shutil.copy(self.world / "people.csv", self.home)
        shutil.copytree(self.world / "out", self.home / "out")
        self.filler = self.home / "filler"
        self.written = self.outputs()

    def teardown(self):
        """A last run that nothing disturbs: it ends well, and removes what the killed ones left."""
        try:
            self.free()
            self.alone("fit")
            left = [path.name for path in (self.home / "out").iterdir() if path.name.startswith(".")]
            assert not left, f"left over: {left}"
        finally:
            if self.small_disk:
                subprocess.run(["umount", self.home], check=True)
            shutil.rmtree(self.home.parent)

    @rule(command=commands)
    def alone(self, command):
        """Nothing goes wrong, unless the disk is full."""
        self.run((0,), Job(COMMANDS[command], str(self.home)))

    @rule(command=commands, seconds=st.floats(0, 1.2))
    def killed(self, command, seconds):
        """Some time after it began."""
        self.run((0, -9), Job(COMMANDS[command], str(self.home), kill_after=seconds))

    @rule(command=commands, size=st.integers(1 << 12, 6 << 20))
    def short_of_room(self, command, size):
        """A file may have so many bytes only."""
        self.run((0, 2), Job(COMMANDS[command], str(self.home), file_size=size))

    @rule(some=st.lists(commands, min_size=2, max_size=3), seconds=st.none() | st.floats(0, 2))
    def together(self, some, seconds):
        """Several at the same time in the same folder, and the first may be killed."""
        first, *others = (COMMANDS[command] for command in some)
        jobs = [Job(first, str(self.home), kill_after=seconds), *(Job(argv, str(self.home)) for argv in others)]
        self.run((0, -9), *jobs)

    @precondition(lambda self: self.small_disk)
    @rule(room=st.integers(0, 10 << 20))
    def fill(self, room):
        """Leave so much room on the disk."""
        self.free()
        self.filler.write_bytes(bytes(max(0, shutil.disk_usage(self.home).free - room)))

    @precondition(lambda self: self.filler.exists())
    @rule()
    def free(self):
        """Make room again."""
        self.filler.unlink(missing_ok=True)

    def run(self, codes, *jobs):
        """Run, and check what is true of every run: files are whole, and after an error those that were there."""
        results, old = self.forks.run(*jobs), self.written
        self.written = self.outputs()
        for job, done in zip(jobs, results, strict=True):
            assert done.code in ((*codes, 2) if self.filler.exists() else codes), done
            assert "Traceback" not in done.err and not [*spoken(Case("machine", job.argv), done)], done
            if len(jobs) == 1 and done.code == 2:
                assert self.written == old, "a failed run changed a file"
        for name, content in self.written.items():
            assert not [*damage(name, content)], f"{name} is not whole"

    def outputs(self):
        """The files that a user sees."""
        return {path.name: path.read_bytes() for path in (self.home / "out").glob("[!.]*")}


def mount(folder):
    """A small disk of memory; raises CalledProcessError where that is not allowed."""
    arguments = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder]
    subprocess.run(arguments, check=True, capture_output=True, text=True)


def can_mount():
    """Whether `mount` works here, as for root on a machine that allows it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            mount(folder)
        except (OSError, subprocess.CalledProcessError):
            return False
        subprocess.run(["umount", folder], check=True)
        return True
