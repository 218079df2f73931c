"""``setminus adapt``: a model for a table without labels, whose class mix may have changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from setminus.adaptation.adapter_parameters import Estimate, Method, PredictPrior
from setminus.commands.errors import check_outputs
from setminus.commands.options import Decimal, Encoding, Header, Json, Label, Positive, Quiet, Seed, finite
from setminus.commands.usage import typed_command, usage

__all__ = ["adapt"]


def adapt(
    source: Annotated[Path, typer.Argument(help="CSV (also .gz), Parquet or Arrow file with labels to learn from.")],
    target: Annotated[
        Path,
        typer.Argument(
            help="The file to adapt to, with the same columns. Labels in it are scored with, never learned."
        ),
    ],
    label: Label,
    out: Annotated[Path, typer.Option(help="Where to write the model; adaptation.json and report.html go beside it.")],
    positive: Positive = None,
    method: Annotated[
        Method,
        typer.Option(
            help="vada_orthogonal: align each class with itself; vada, dann: all rows; vada_iw: all rows, weighted; "
            "source_only: no adaptation."
        ),
    ] = "vada_orthogonal",
    label_shift: Annotated[
        Estimate,
        typer.Option(help="How the new class mix is estimated: by likelihood, by decisions, or as in the paper."),
    ] = "em",
    shrinkage: Annotated[
        float,
        typer.Option(
            callback=finite, min=0, max=1, help="Share of equal frequencies in the estimate; 0.5 trusts it by half."
        ),
    ] = 0.0,
    predict_prior: Annotated[
        PredictPrior,
        typer.Option(help="Which mix probabilities are for; target: the estimated one, where a class is rare."),
    ] = "equal",
    steps: Annotated[int, typer.Option(min=1, help="Of training; if in doubt, more.")] = 1000,
    seed: Seed = 0,
    header: Header = None,
    encoding: Encoding = "utf-8",
    decimal: Decimal = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train on a labelled table for another one, whose rows look different and whose classes come in another mix.

    It says how the mix changed, and whether to trust it. Some labels in the target tell more: leave the others empty.

    Example: setminus adapt hospital_a.csv hospital_b.csv --label outcome --out adapted.skops
    """
    file, page = out.parent / "adaptation.json", out.parent / "report.html"
    check_outputs({"the model": out, "its record": file, "its page": page}, [source, target])
    import setminus
    from setminus.commands.adapting import AdaptConfig, adapt_tables
    from setminus.commands.display import Display
    from setminus.files import atomic_writes
    from setminus.progress import listen, tracked
    from setminus.records import to_json, write_json
    from setminus.report.page import write_page

    display = Display(quiet or json)
    config = AdaptConfig(
        source=str(source),
        target=str(target),
        label=label,
        positive=positive,
        method=method,
        label_shift=label_shift,
        shrinkage=shrinkage,
        predict_prior=predict_prior,
        steps=steps,
        seed=seed,
        header=header,
        encoding=encoding,
        decimal=decimal,
    )
    with listen(display):
        model, record = adapt_tables(config, typed_command())
    record["usage"], record["usage_command"] = usage(out)
    writing = tracked("write the model, the record and the page")
    with listen(display), writing, atomic_writes(file, page, out) as partials:
        write_json(partials[0], record)
        write_page(partials[1], [record])
        setminus.save(model, partials[2])
    if json:
        typer.echo(to_json(record))
        return
    display.columns(record["task"])
    _show(record, display)
    display.say(f"model   {out}", f"record  {file}", f"page    {page.resolve()}")


def _show(record: dict[str, Any], display: Any) -> None:
    """The class mixes, accuracy where there are labels, and what speaks against it."""
    from setminus.report.adapted_table import DRAWN, mix_rows

    metrics = record["metrics"]
    # the page has the others, too
    heads = [name for name in DRAWN if name in metrics["mixes"]]
    shares = [(name, *(f"{100 * some[head]:.1f} %" for head in heads)) for name, some in mix_rows(record)]
    display.table((record["task"]["label"], *heads), shares)
    for name, found in metrics["accuracy"].items():
        ends = f"{100 * found['low']:.1f} to {100 * found['high']:.1f}"
        display.say(f"{name}: right on {100 * found['value']:.1f} % ({ends}) of the labelled target rows")
    display.say("", metrics["verdict"])
    for finding in metrics["findings"]:
        if finding["status"] != "ok":
            display.say(f"{finding['status']}  {finding['name']}? {finding['evidence']}. {finding['advice']}")
    display.say("")
