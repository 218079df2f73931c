"""Write the expected numbers anew, which is right only where a number was meant to change: say why in the commit."""

import json
import tempfile
from pathlib import Path

from tests.golden import commands, documents, inputs

HERE = Path(__file__).parent


def write(name, jobs):
    """One line for each job or table, so that a difference shows where it is."""
    lines = [f"{json.dumps(job)}: {json.dumps(one, separators=(',', ':'))}" for job, one in jobs.items()]
    (HERE / name).write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        inputs.write_inputs(home / "inputs")
        write("commands.json", commands.run(home / "inputs", home / "outputs"))
    write("documents.json", documents.expected())
