"""``setminus export``: a saved model as an ONNX file, or its correction as an SQL expression."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from setminus.commands import options
from setminus.commands.terminal import Display, check_outputs, echo, finite
from setminus.errors import UserError
from setminus.records import to_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["export"]


def export(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="A model file, or a folder with a translator of pictures. With --sql, --prior and --strength may "
            "replace it.",
            show_default=False,
        ),
    ] = None,
    onnx: Annotated[
        Path | None, typer.Option(help="ONNX file to write: the whole model, from the columns to the decision.")
    ] = None,
    sql: Annotated[
        bool, typer.Option("--sql", help="Print the correction as one SQL expression over columns of probabilities.")
    ] = False,
    sample: Annotated[
        Path | None,
        typer.Option(
            help="ONNX: table of example rows to compare the predictions on. Needed only if the model file does not "
            "describe its columns.",
        ),
    ] = None,
    to: Annotated[str, typer.Option(help="ONNX of a translator: the domain to translate to, a, b or its name.")] = "b",
    full: Annotated[
        str | None,
        typer.Option(help="SQL: columns with the probabilities of the full classifier, separated by commas."),
    ] = None,
    principal: Annotated[
        str | None,
        typer.Option(help="SQL: columns with the probabilities of the principal classifier, in the same order."),
    ] = None,
    attribute: Annotated[
        str | None,
        typer.Option(help="SQL: columns with the probabilities of the groups, if the model estimates the group."),
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="SQL: columns with the groups. By default those that the model ignores.")
    ] = None,
    prior: Annotated[
        str | None,
        typer.Option(help="SQL without a model: class frequencies, separated by commas; or uniform."),
    ] = None,
    strength: Annotated[
        float,
        typer.Option(callback=finite, min=0, help="SQL without a model: how much of the principal to remove."),
    ] = 1.0,
    output: Annotated[
        Literal["probability", "decision"],
        typer.Option(help="SQL: the probability of the last class or of --class, or the decision."),
    ] = "probability",
    label: Annotated[str | None, typer.Option("--class", help="SQL: class whose probability to compute.")] = None,
    header: options.Header = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    trust: options.Trusted = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Use a model outside of Python, in an ONNX runtime or in a database.

    --onnx writes the whole model as one graph and compares its predictions with the model's. --sql prints the
    correction alone, for tables that already hold the probabilities of a classifier.

    Example: setminus export model.skops --onnx model.onnx

    Example: setminus export model.skops --sql --full p0,p1 --groups sex --output decision

    Example: setminus export --sql --full p --principal q --prior 0.7,0.3
    """
    if (onnx is None) == (not sql):
        raise UserError(
            "both --onnx and --sql were given" if sql else "neither --onnx nor --sql was given", do="give one of them."
        )
    from setminus.estimators.persistence import load

    trusted = tuple(trust or ())
    if sql:
        if full is None:
            raise UserError("--sql was given without --full", do="name the columns of the probabilities: --full p0,p1")
        loaded = None if model is None else load(model, trusted=trusted)
        expression = _expression(
            loaded,
            full=full,
            principal=principal,
            attribute=attribute,
            groups=groups,
            prior=prior,
            strength=strength,
            output=output,
            label=label,
        )
        if json:
            typer.echo(to_json({"sql": expression}))
        else:
            echo(expression)
        return
    if model is None or onnx is None:
        raise UserError(
            "--onnx was given without a model file", do="name it: setminus export model.skops --onnx model.onnx"
        )
    check_outputs({"onnx": onnx}, [model, sample], option="--onnx", force=force)
    if model.is_dir():
        from setminus.export.translator import export_translator
        from setminus.transfer.translator import OrthogonalTranslator

        made = export_translator(OrthogonalTranslator.load(model), onnx, to=to)
        if json:
            typer.echo(to_json({"onnx": str(onnx), **made}))
        else:
            Display(quiet).say(f"{onnx}: pictures of {made['size']} x {made['size']} pixels, translated to {to}.")
        return
    from setminus.estimators.persistence import model_errors
    from setminus.export.onnx import export_onnx

    loaded = load(model, trusted=trusted)
    with model_errors(model.name):
        rows = _sample(loaded, sample, header=header, encoding=encoding, decimal=decimal)
        done = export_onnx(loaded, onnx, rows)
    if json:
        typer.echo(to_json({"onnx": str(onnx), **done}))
        return
    Display(quiet).say(
        f"{onnx}: {len(done['inputs'])} inputs. On {done['rows']:,} rows its decisions are those of {model.name}, the "
        f"largest difference of a probability is {done['difference']:.1g}."
    )


def _sample(model: Any, path: Path | None, **options: Any) -> pa.Table:
    """Rows as the model takes them, from a file or made from what the model knows."""
    if path is None:
        from setminus.export.onnx import sample_rows

        return sample_rows(model)
    from setminus.tables.columns import check_names, coded_text
    from setminus.tables.reading import open_table

    table = open_table(path, **options)
    names = list(getattr(model, "feature_names_in_", table.names))
    check_names(names, table.names, path.name)
    return coded_text(table.read(names))


def _expression(model: Any, *, label: str | None, prior: str | None, strength: float, **columns: Any) -> str:
    from setminus.commands.apply import parse_prior
    from setminus.export.sql import export_sql

    named: dict[str, Any] = {
        role: [name.strip() for name in text.split(",")]
        for role, text in columns.items()
        if role != "output" and text is not None
    }
    wanted: Any = label
    if label is not None:
        classes = range(max(2, len(named["full"]))) if model is None else model.classes_.tolist()
        # a class of the model may be a number, what is typed is text
        wanted = {str(one): one for one in classes}.get(label, label)
    return export_sql(
        model,
        **named,
        prior=None if prior is None else parse_prior(prior),
        strength=strength,
        output=columns["output"],
        label=wanted,
    )
