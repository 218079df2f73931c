"""What `make dist` runs in an empty environment that holds the built wheel: library and command, without the sources.

Not a pytest module: the environment has nothing but the wheel and its dependencies.
"""

import csv
import io
import json
import subprocess
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

import numpy as np

import setminus

HERE = Path(__file__).resolve().parents[1]


def main():
    """Fit, save, load and audit; then the same by the command."""
    if Path(setminus.__file__).resolve().is_relative_to(HERE / "src"):
        raise SystemExit("the source tree was imported, not the wheel")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    sex = np.where(rng.random(3000) < 0.3 + 0.4 * y, "m", "f")
    X = np.column_stack([y + rng.normal(size=3000), 2 * (sex == "m") + rng.normal(size=3000)])
    with tempfile.TemporaryDirectory() as folder:
        from sklearn.linear_model import LogisticRegression

        fair = setminus.OrthogonalClassifier(LogisticRegression(), setminus.ProxyPrincipal(LogisticRegression()))
        fair.fit(X, y, sensitive_features=sex)
        setminus.save(fair, Path(folder, "fair.skops"))
        again = setminus.load(Path(folder, "fair.skops"))
        if not np.array_equal(again.predict_proba(X), fair.predict_proba(X)):
            raise SystemExit("a saved model predicts otherwise")
        with Path(folder, "people.csv").open("w", newline="") as file:
            csv.writer(file).writerows([("label", "sex", "a", "b"), *zip(y, sex, *X.T, strict=True)])
        script = [str(Path(sys.executable).with_name("setminus")), "--version"]
        if (
            subprocess.run(script, check=True, capture_output=True, text=True).stdout.split()[-1]
            != setminus.__version__
        ):
            raise SystemExit("the script is of another version")
        with chdir(folder):
            run("fit people.csv --label label --ignore sex --full logistic --out model.skops --quiet")
            run("apply model.skops people.csv --out scored.csv --quiet")
            json.loads(run("audit scored.csv --label label --ignore sex --json"))
        if not Path(folder, "model.report.html").stat().st_size:
            raise SystemExit("no page was written")
    print(f"setminus {setminus.__version__} works from its wheel")


def run(line):
    """What a command prints; in this process, since libraries take longer to load than the command."""
    from setminus.commands import main

    sys.argv = ["setminus", *line.split()]
    with redirect_stdout(io.StringIO()) as out:
        try:
            main()
        except SystemExit as stop:
            if stop.code:
                raise SystemExit(f"setminus {line}: exit {stop.code}") from stop
    return out.getvalue()


if __name__ == "__main__":
    main()
