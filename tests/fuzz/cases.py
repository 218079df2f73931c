"""One input: a command and files, and what must be true of every run whatever they hold."""

import base64
import csv
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.damage import MARKER
from tests.fuzz.forks import Job
from tests.fuzz.world import NAMES, unzipped

BESIDE = (".audit.json", "report.html", ".adaptation.json")
"""Outputs that a command writes beside the one it was told."""
LINKS = {"link.csv": "out/scored.csv", "loop.csv": "loop.csv", "dangling.csv": "nowhere/new.csv"}
"""Symbolic links and where they lead: a run writes through them or refuses, and never replaces them."""
MOST_LINES, MOST_LETTERS = 3, 2000
# not the line break and the tab; what turns the direction of writing hides as much as an escape sequence
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
RAW = re.compile(
    r"object is not|object has no|object cannot be|unsupported operand|not supported between|unhashable|NoneType|"
    r"indices must be|argument must be|missing \d+ required|unexpected keyword|list index|not enough values|ufunc|"
    r"too many values|could not convert|codec can't|Mend the (?:input|values), and|\[Errno|must be real number|"
    r"allow_pickle|^Error: '[^']*'$",
    re.MULTILINE,
)
"""Errors that Python or numpy wrote, which no user can mend anything by."""
STEP = re.compile(r"^ *[\d.]+ s  .*\n?", re.MULTILINE)


@dataclass(frozen=True, repr=False)
class Case:
    """A command, and files that replace or join those of the world."""

    kind: str
    argv: tuple[str, ...]
    files: dict[str, bytes] = field(default_factory=dict)
    same_as: tuple[str, ...] = ()  # a command on the world's own files that must give the same result
    fresh: bool = False

    def __repr__(self):
        return f"{self.kind}: {' '.join(self.argv)} with {', '.join(self.files) or 'no other files'}"

    def _repr_pretty_(self, printer, cycle):
        # hypothesis would print every byte
        printer.text(repr(self))

    def to_json(self):
        """As text, which holds every byte."""
        files = {name: base64.b64encode(content).decode() for name, content in self.files.items()}
        return json.dumps({**vars(self), "files": files}, indent=1)

    @classmethod
    def from_json(cls, text):
        """The case again."""
        told = json.loads(text)
        files = {name: base64.b64decode(content) for name, content in told.pop("files").items()}
        return cls(told.pop("kind"), tuple(told.pop("argv")), files, tuple(told.pop("same_as")), **told)

    def save(self, folder, finding):
        """Write it to a file that `python -m tests.fuzz --replay` takes."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.kind.split(',')[0]}-{hashlib.sha256(finding.encode()).hexdigest()[:8]}.json"
        file.write_text(self.to_json())
        return file


def attack(case, world, forks):
    """Run a case in a copy of the world; what came of it, and what must not be, each in a few words."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as temporary:
        folder = Path(temporary, "home")
        shutil.copytree(world, folder)
        for name, content in case.files.items():
            (folder / name).write_bytes(content)
        for name, target in LINKS.items():
            (folder / name).symlink_to(target)
        before = _contents(folder)
        (done,) = forks.run(Job(case.argv, str(folder), fresh=case.fresh))
        after = _contents(folder)
        found = [*_ended(case, done), *spoken(case, done), *_kept(case, done, before, after)]
        if {"exit code 3", "a raw error"} & {*found}:
            (told,) = forks.run(Job(case.argv, str(folder), env={"SETMINUS_TRACEBACK": "1"}))
            found = [f"{one}: {_where(told.err)}" if one in ("exit code 3", "a raw error") else one for one in found]
        if case.same_as and not found:
            (same,) = forks.run(Job(case.same_as, str(folder)))
            if done.code or _result(case.argv, done, after) != _result(case.same_as, same, _contents(folder)):
                found.append(f"another result for the same table: {case.argv[0]}")
        return done, found


def _ended(case, done):
    """The exit code, and no traceback."""
    if done.code is None:
        yield "no end"
    elif done.code < 0:
        yield f"signal {-done.code}"
    elif "Traceback (most" in done.err:
        yield f"traceback: {_where(done.err)}"
    elif done.code not in (0, 1, 2, 3):
        yield f"exit code {done.code}"
    elif done.code == 1 and not ("--fail-above" in case.argv and " gap " in done.err):
        yield "exit code 1 without a gap"
    elif done.code == 3 and " gap is undefined" not in done.err:
        yield "exit code 3"


def spoken(case, done):
    """What is printed: short, without control characters, JSON where it was asked for."""
    for name, text in (("stdout", done.out), ("stderr", done.err)):
        if letter := CONTROL.search(text):
            yield f"{name} holds control characters such as U+{ord(letter[0]):04X}"
    told = STEP.sub("", done.err)
    if warning := re.search(r"[^/\n]*:\d+: \w*Warning: .{0,60}", told):
        yield f"a warning: {warning[0]}"
    elif done.code in (2, 3) and "Traceback" not in told:
        usage, count = "Usage:" in told + done.out, len(told.splitlines())
        if not usage and done.code == 2 and RAW.search(told):
            yield "a raw error"
        if "Error" not in told and not usage:
            yield "an exit code without an error"
        elif count > (6 * MOST_LINES if usage else MOST_LINES) or len(told) > MOST_LETTERS:
            yield f"an error of {count} lines: {told[:60]!r}"
    if "--json" in case.argv and done.code in (0, 1) and "--help" not in case.argv:
        yield from damage("stdout.json", done.out.encode(errors="surrogateescape"))


def _kept(case, done, before, after):
    """Inputs as they were; outputs old or whole; nothing left over, and nothing at all of a failed run."""
    words = [(word, option in ("--out", "--page")) for word, option in zip(case.argv, ("", *case.argv), strict=False)]
    read, written = ({word for word, output in words if output is wanted} for wanted in (False, True))
    for name in before.keys() - after.keys():
        yield f"{_kind(name)} was removed"
    changed = [name for name in after if before.get(name) != after[name]]
    for name in changed:
        file = Path(name)
        if name not in case.argv and any(part.startswith(".") or ".part" in part for part in file.parts):
            yield f"left over: {re.sub('[0-9a-f]{8}|-[a-z0-9_]{8}', '*', name)[-40:]}"
        elif name in before and (
            name in read or not (name in written or file.parts[0] == "out" or file.name.endswith(BESIDE))
        ):
            yield f"an input was changed: {_kind(name)}"
        elif done.code not in (0, 1):
            yield f"a failed run ({done.code}) wrote {_kind(name)}"
        else:
            yield from damage(name, after[name])


def damage(name, content):
    """What is wrong with a file that should be whole, by its ending."""
    try:
        match Path(name.lower()).suffix:
            case ".json":
                json.loads(content, parse_constant=_refuse)
            case ".skops":
                json.loads(unzipped(content)["schema.json"])
            case ".html":
                assert content.endswith((b"</html>", b"</html>\n"))
                page = _Page()
                page.feed(content.decode(errors="replace"))
                page.close()
                yield from dict.fromkeys(page.found)
            case ".gz":
                gzip.decompress(content)
            case ".csv" | ".tsv":
                assert content.endswith(b"\n")
            case ".parquet":
                pq.read_table(pa.BufferReader(content))
            case ".arrow":
                pa.ipc.open_file(content).read_all()
    except Exception as error:
        yield f"not whole: {_kind(name)} ({type(error).__name__})"


def _refuse(constant):
    raise ValueError(constant)


class _Page(HTMLParser):
    """Finds the marker outside of text, and figures that no browser reads."""

    def __init__(self):
        super().__init__()
        self.found, self.within = [], ("", {})

    def handle_starttag(self, tag, attributes):
        self.within = (tag, dict(attributes))
        for name, value in [(tag, ""), *attributes]:
            # what a browser loads, runs or styles by
            active = name.startswith("on") or name in ("href", "src", "style", "class", "id", "srcset", "http-equiv")
            if MARKER in name or (active and MARKER in (value or "")):
                self.found.append(f"data became the attribute {name} of {tag}")

    def handle_endtag(self, tag):
        self.within = ("", {})

    def handle_data(self, text):
        tag, attributes = self.within
        if attributes.get("type") == "application/json":
            json.loads(text, parse_constant=_refuse)
        elif MARKER in text and tag in ("script", "style"):
            self.found.append(f"data within {tag}")

    def handle_comment(self, text):
        if MARKER in text:
            self.found.append("data within a comment")


def _where(err):
    """The first exception of a traceback, and the last line of this library that it went through."""
    first = re.split(r"\n(?:The above|During handling of the above) exception", err)[0]
    frames = re.findall(r'File ".*?/src/(setminus/\S+)", line (\d+)', first) or [("?", "0")]
    raised = re.findall(r"^(?!Error:)([A-Za-z_][\w.]*)(?::|$)", first, re.MULTILINE) or ["?"]
    return f"{raised[-1]} at {':'.join(frames[-1])}"


def _result(argv, done, files):
    """What a run found out, without its times."""
    if "--json" in argv:
        return json.loads(done.out)["metrics"]
    rows = list(csv.reader(io.StringIO(files[argv[argv.index("--out") + 1]].decode())))
    scores = [k for k, name in enumerate(rows[0]) if name not in NAMES]
    return [[row[k] for k in scores] for row in rows]


def _kind(name):
    return f"a file {''.join(Path(name).suffixes[-2:]) or '(no ending)'}"


def _contents(folder):
    found = {}
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
            found[str(path.relative_to(folder))] = content
    return found
