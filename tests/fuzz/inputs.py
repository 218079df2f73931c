"""Cases of every kind: strange tables, records, models and options."""

import gzip
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from tests.fuzz.cases import Case
from tests.fuzz.damage import NUMBERS, PATHS, WORDS, damaged, html_or_controls, listed, poisoned, with_text, words
from tests.fuzz.world import NAMES, as_csv, people, unzipped, zipped

ON_TABLES = """
audit TABLE --label income --ignore sex --score p --json
audit TABLE --label income --ignore sex --score p --out out/audit.json --force --page out/page.html
audit TABLE --label income --ignore sex --score q --fail-above 0.1 --quiet
audit TABLE --label income --ignore sex --score q --score p --positive high
audit TABLE --label income --ignore sex --ignore job --score p --prediction income
apply model.skops TABLE --out out/scored.csv --force
apply model.skops TABLE --out new.parquet --quiet
apply TABLE --full q --principal p --prior uniform --out out/scored.csv --force
apply TABLE --full q --principal p --prior 0.3,0.7 --out new.arrow --quiet
fit TABLE --label income --ignore sex --full logistic --out out/model.skops --force
fit TABLE --label income --ignore sex --ignore job --principal group --full logistic --out out/model.skops --force
fit people.csv --label income --ignore sex --full logistic --test TABLE --out out/model.skops --force --json
"""
TORCH_ON_TABLES = """
adapt TABLE people.csv --label income --steps 1 --out out/model.skops --force
adapt people.csv TABLE --label income --steps 1 --out out/model.skops --force --json
"""
ON_MODELS = """
info MODEL
info MODEL --json
apply MODEL people.csv --out out/scored.csv --force
fit people.csv --label income --ignore sex --full MODEL --out new/model.skops
"""
TRANSFER = "transfer apply translator picture.png --out new"
OTHERS = ("info model.skops", "report audit.json --force", "report .", "data list", "")
FREE = "--label|--ignore|--positive|--score|--prediction|--full|--principal|--prior|--trust"
NUMERIC = "--tolerance|--test-size|--seed|--threshold|--fail-above|--strength|--shrinkage|--steps"
OPTIONS = {
    **dict.fromkeys(listed(FREE), WORDS),
    **dict.fromkeys(listed(NUMERIC), NUMBERS),
    **dict.fromkeys(listed("--out|--page|--test"), PATHS),
    **dict.fromkeys(
        listed("--constraint|--agg|--method|--label-shift|--direction|--engine"), ("sum", "em", "dann", "x")
    ),
    "--encoding": listed("latin-1|utf-16|utf-7|rot13|idna|hex|zlib|undefined|punycode||\x1b|x"),
}
FLAGS = listed("--header|--no-header|--quiet|--json|--help|--nonsense|--version|-q|--force")


def lines(text, **words):
    """Commands as lists of words, some of them replaced."""
    return [[words.get(word, word) for word in line.split()] for line in text.strip().splitlines()]


@st.composite
def strange_rows(draw):
    """The names of columns and rows of words, with one to three things wrong."""
    rows, names = [list(row) for row in people()], list(NAMES)
    for _ in range(draw(st.integers(1, 3))):
        column = draw(st.integers(0, len(names) - 1))
        row = rows[draw(st.integers(0, len(rows) - 1))] if rows else []
        match draw(st.sampled_from(listed("name|cell|column|some|few|short|long|drop|twice|tail"))):
            case "name":
                names[column] = draw(words)
            case "cell" if column < len(row):
                row[column] = draw(words)
            case "column":
                value = draw(words)
                rows = [[value if k == column else cell for k, cell in enumerate(row)] for row in rows]
            case "some":
                values, every = draw(st.lists(words, min_size=1, max_size=30)), draw(st.integers(1, 20))
                for n, row in enumerate(rows[::every]):
                    row[column : column + 1] = [values[n % len(values)]]
            case "few":
                rows = rows[: draw(st.integers(0, 60))]
            case "short":
                del row[draw(st.integers(0, len(row))) :]
            case "long":
                row += [draw(words)] * draw(st.integers(1, 3))
            case "drop" if len(names) > 1:
                del names[column]
                rows = [[cell for k, cell in enumerate(row) if k != column] for row in rows]
            case "twice":
                names = [*names, names[column]]
                rows = [[*row, row[column] if column < len(row) else ""] for row in rows]
            case "tail":
                rows.append(draw(st.lists(words, max_size=8)))
    return names, rows


@st.composite
def rendered(draw, names, rows, typed=st.booleans()):  # noqa: B008
    """Rows in some format: the name of the file, its bytes, and options to read it with."""
    form = draw(st.sampled_from(listed(".csv|.csv|.tsv|;.csv|utf-16|latin-1|.csv.gz|.parquet|.arrow")))
    if form in (".parquet", ".arrow"):
        return "table" + form, columnar(form, draw(typed), names, rows), []
    separator = {".tsv": "\t", ";.csv": ";"}.get(form, ",")
    quoting, end = draw(st.sampled_from((0, 1))), draw(st.sampled_from(("\n", "\r\n")))
    text = as_csv([names, *rows], delimiter=separator, quoting=quoting, lineterminator=end)
    encoding = form if form in ("utf-16", "latin-1") else draw(st.sampled_from(("utf-8", "utf-8", "utf-8-sig")))
    content = text.encode(encoding, errors="replace")
    options = [] if encoding.startswith("utf-8") else ["--encoding", encoding]
    name = "table.tsv" if form == ".tsv" else "table.csv"
    return (name + ".gz", gzip.compress(content, mtime=0), options) if form == ".csv.gz" else (name, content, options)


def columnar(form, typed, names, rows):
    """Rows as Parquet or Arrow: all words, or with `typed` numbers where they look like it and codes of words."""
    padded = [[*row, *[None] * len(names)][: len(names)] for row in rows]
    columns = [pa.array([row[k] for row in padded], pa.string()) for k in range(len(names))]
    for k, column in enumerate(columns if typed else ()):
        columns[k] = column.dictionary_encode()
        for kind in (pa.float64(), pa.int64()):
            try:
                columns[k] = column.cast(kind)
            except pa.ArrowInvalid:
                break
    table, sink = pa.table(columns, names=names), io.BytesIO()
    if form == ".parquet":
        pq.write_table(table, sink)
    else:
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


@st.composite
def table_cases(draw, torch):
    """Strange and damaged tables."""
    argv = draw(st.sampled_from(lines(ON_TABLES + TORCH_ON_TABLES * torch)))
    kind = draw(st.sampled_from(("strange", "damaged", "both")))
    names, rows = (list(NAMES), people()) if kind == "damaged" else draw(strange_rows())
    name, content, options = draw(rendered(names, rows))
    if kind != "strange":
        content = draw(damaged(content))
    # where a column has another name, the command may know it
    renamed = dict(zip(NAMES, names, strict=False)) if len(names) >= len(NAMES) and draw(st.booleans()) else {}
    argv = [name if word == "TABLE" else renamed.get(word, word) for word in argv]
    return Case(f"table, {kind}", (*argv, *options), {name: content})


@st.composite
def same_table_cases(draw):
    """The valid table in another form, for which the result must be the same."""
    line = draw(st.sampled_from([line for line in ON_TABLES.split("\n") if "--json" in line or "scored.csv" in line]))
    order = draw(st.permutations(range(len(NAMES))))
    rows = [[row[k] for k in order] for row in people()]
    name, content, options = draw(rendered([NAMES[k] for k in order], rows, typed=st.just(True)))
    # a copy: a table must not test a model that learned from it
    (argv,), (same,) = lines(line, TABLE=name), lines(line, TABLE="copy.csv")
    files = {name: content, "copy.csv": as_csv([NAMES, *people()]).encode()}
    if options and "people.csv" in argv:
        # one encoding is for all tables of a command
        files["first.csv"] = as_csv([NAMES, *people()]).encode(options[-1])
        argv[argv.index("people.csv")] = "first.csv"
    return Case("table, same", (*argv, *options), files, same_as=tuple(same))


@st.composite
def record_cases(draw, world):
    """Records with values of other kinds, or texts that want to be elements; and damaged files of them."""
    file = draw(st.sampled_from(sorted(path.name for path in world.iterdir() if path.suffix in (".json", ".jsonl"))))
    content = (world / file).read_bytes()
    records = content.decode().splitlines() if file.endswith("l") else [content.decode()]
    at = draw(st.integers(0, len(records) - 1))
    match way := draw(st.sampled_from(("poisoned", "poisoned", "every text", "damaged", "deep"))):
        case "poisoned":
            records[at] = json.dumps(draw(poisoned(json.loads(records[at]))))
        case "every text":
            text = draw(html_or_controls)
            records = [json.dumps(with_text(json.loads(record), text)) for record in records]
        case "deep":
            records[at] = "[" * 100_000
    content = draw(damaged(content)) if way == "damaged" else "".join(record + "\n" for record in records).encode()
    return Case(
        f"record, {way}", ("report", file, *draw(st.sampled_from(((), ("--out", "out/page.html"))))), {file: content}
    )


@st.composite
def model_cases(draw, world, torch):
    """Model files and pictures that are damaged, or whose description holds something else."""
    if torch and draw(st.integers(0, 3)) == 0:
        parts = sorted(f"translator/{path.name}" for path in (world / "translator").iterdir())
        file = draw(st.sampled_from(["picture.png", *parts]))
        content = (world / file).read_bytes()
        edited = file.endswith(".json") and draw(st.booleans())
        content = json.dumps(draw(poisoned(json.loads(content)))).encode() if edited else draw(damaged(content))
        return Case("picture or translator", tuple(TRANSFER.split()), {file: content})
    file = draw(st.sampled_from(("model.skops", "adapted.skops") if torch else ("model.skops",)))
    argv = tuple(draw(st.sampled_from(lines(ON_MODELS, MODEL=file))))
    content, members = (world / file).read_bytes(), dict(unzipped((world / file).read_bytes()))
    match way := draw(st.sampled_from(("damaged", "edited", "edited", "member", "no member"))):
        case "edited":
            members["schema.json"] = json.dumps(draw(poisoned(json.loads(members["schema.json"])))).encode()
        case "member" | "no member":
            name = draw(st.sampled_from(sorted(members)))
            members[name] = draw(st.just(b"") | damaged(members[name]))
            if way == "no member":
                del members[name]
    return Case(f"model, {way}", argv, {file: draw(damaged(content)) if way == "damaged" else zipped(members)})


@st.composite
def option_cases(draw, torch):
    """Strange values of options and arguments."""
    commands = [*lines(ON_TABLES + TORCH_ON_TABLES * torch, TABLE="people.csv"), *map(str.split, OTHERS)]
    argv = list(draw(st.sampled_from(commands + [TRANSFER.split()] * torch)))
    for _ in range(draw(st.integers(1, 2))):
        options = [k for k, word in enumerate(argv) if word in OPTIONS]
        free = [k for k, word in enumerate(argv) if k and not word.startswith("-") and not argv[k - 1].startswith("--")]
        match draw(st.sampled_from(("replace", "add", "flag", "argument", "drop"))):
            case "replace" if options:
                at = draw(st.sampled_from(options))
                argv[at + 1 : at + 2] = [draw(st.sampled_from(OPTIONS[argv[at]]))]
            case "add":
                option = draw(st.sampled_from(sorted(OPTIONS)))
                argv += [option, draw(st.sampled_from(OPTIONS[option]))]
            case "flag":
                argv.append(draw(st.sampled_from(FLAGS)))
            case "argument" if free:
                argv[draw(st.sampled_from(free))] = draw(st.sampled_from([*PATHS, "-x", "data"]))
            case "drop" if argv:
                del argv[draw(st.integers(0, len(argv) - 1))]
    # what a shell can pass on
    argv = tuple(word.replace("\x00", "")[:300] for word in argv)
    return Case("options", argv, fresh=draw(st.integers(0, 50)) == 50)


def all_cases(world, torch=True, only=None):
    """Every kind, tables and records twice as often as the others; or only one."""
    kinds = {
        "tables": table_cases(torch),
        "same": same_table_cases(),
        "records": record_cases(world),
        "models": model_cases(world, torch),
        "options": option_cases(torch),
    }
    return st.one_of(*kinds.values(), kinds["tables"], kinds["records"]) if only is None else kinds[only]
