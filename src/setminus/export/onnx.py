"""A fitted classifier as one ONNX file, from the columns of a table to probabilities and decisions."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import setminus
from setminus.errors import MissingExtraError, UserError
from setminus.estimators.groups import Groups
from setminus.files import atomic_write
from setminus.tables.encoding import learned_columns, level_words

if TYPE_CHECKING:
    from setminus.export.graph import Column, Graph, Rows

__all__ = ["export_onnx", "onnx_inputs", "sample_rows"]

MAX_CHECKED = 10_000
"""Rows of the sample that the graph is compared on with the model."""

MAX_DIFFERENCE = 1e-5
"""Largest difference allowed between the probabilities of the graph and those of the model."""


def export_onnx(
    model: Any, path: str | os.PathLike[str], X_sample: Any, *, sensitive_features: Any = None, to: Any = "b"
) -> dict[str, Any]:
    """Write a fitted classifier as one ONNX graph, and compare it with the model on the sample.

    The graph takes one input for each column of a frame, of shape (n, 1), or one input ``X`` for an array. Numbers are
    float64, with NaN for a missing value; dates are days since 1970; text is strings, with an empty one for a missing
    value. Its outputs are ``label`` and ``probabilities``. `onnx_inputs` makes the inputs from a frame.

    Parameters
    ----------
    model : classifier
        A fitted classifier of setminus, a pipeline, or any classifier that skl2onnx knows. Trees of scikit-learn,
        LightGBM and XGBoost are exported in float64. Of an `OrthogonalTranslator`, the generator of one direction:
        ``images`` in, ``translated`` out, both uint8 of shape (n, size, size, 3).
    path : path
        The file to write.
    X_sample : array or frame
        Rows as `predict_proba` takes them: they give the types of the columns, and the graph must give the same
        answers for the first 10,000 of them.
    sensitive_features : array or frame, optional
        The groups of these rows, for a model that is given them by this keyword.
    to : "a", "b" or a label, default="b"
        Of a translator: the domain to translate to.

    Returns
    -------
    dict
        ``"inputs"`` by name, the number of ``"rows"`` compared, and the largest ``"difference"`` of a probability.

    Raises
    ------
    UserError
        Where a part of the model cannot be exported; the message names it.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.linear_model import LogisticRegression
    >>> from setminus import OrthogonalClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = np.column_stack([y + rng.normal(size=200), y == 1])
    >>> model = OrthogonalClassifier(LogisticRegression(), principal_columns=[1]).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = export_onnx(model, f"{folder}/model.onnx", X)
    >>> done["rows"], done["difference"] < 1e-12
    (200, True)
    """
    try:
        import onnxruntime
        from onnx import TensorProto

        from setminus.export.classifiers import class_codes, classifier_proba
        from setminus.export.graph import Graph
        from setminus.export.translator import export_translator
        from setminus.transfer.translator import OrthogonalTranslator
    except ImportError as error:
        raise MissingExtraError("the export to ONNX", error.name or "onnx", extra="onnx") from error

    if isinstance(model, OrthogonalTranslator):
        return export_translator(model, path, X_sample, to)
    graph = Graph()
    rows = _rows(graph, X_sample)
    groups = None if sensitive_features is None else _group_columns(graph, sensitive_features)
    proba = classifier_proba(model, graph, rows, groups)
    classes = np.asarray(model.classes_)
    kind = {"i": TensorProto.INT64, "u": TensorProto.INT64, "b": TensorProto.BOOL, "f": TensorProto.DOUBLE}.get(
        classes.dtype.kind, TensorProto.STRING
    )
    label = graph.add("Gather", graph.constant(classes), class_codes(model, graph, proba), axis=0)
    metadata = {
        "setminus": json.dumps(setminus.__version__),
        "inputs": json.dumps(graph.about_inputs),
        "classes": json.dumps(classes.tolist()),
        **_about(model),
    }
    made = graph.model(
        {"label": (label, kind, None), "probabilities": (proba, TensorProto.DOUBLE, len(classes))}, metadata
    )
    written = made.SerializeToString()
    session = onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"])
    checked = _checked(model, session, X_sample, sensitive_features)
    with atomic_write(Path(path)) as part:
        part.write_bytes(written)
    return {"inputs": {name: graph.about_inputs[name] for name in _names(session)}, **checked}


def onnx_inputs(session: Any, X: Any, sensitive_features: Any = None) -> dict[str, NDArray[Any]]:
    """The inputs of an exported model for the rows of a frame or an array.

    Parameters
    ----------
    session : onnxruntime.InferenceSession
        Of a file that `export_onnx` wrote.
    X : array or frame of shape (n, d)
        The frame may have further columns, in any order.
    sensitive_features : array or frame, optional
        As in `export_onnx`.

    Returns
    -------
    dict of str to ndarray
        For ``session.run(None, ...)``.
    """
    about = json.loads(session.get_modelmeta().custom_metadata_map["inputs"])
    wanted = _names(session)
    if not _is_frame(X):
        found: dict[str, NDArray[Any]] = {"X": np.asarray(X, dtype=np.float64)}
    else:
        found = _feeds(X, {name: about[name] for name in wanted if name in _frame_names(X)})
    if sensitive_features is not None:
        frame = _group_frame(sensitive_features)
        found |= _feeds(frame, {name: about[name] for name in wanted if name in _frame_names(frame)})
    absent = [name for name in wanted if name not in found]
    if absent:
        raise UserError(f"the rows have no column {absent[0]!r}", expected=f"the columns {', '.join(wanted)}")
    return {name: found[name] for name in wanted}


def _names(session: Any) -> list[str]:
    return [value.name for value in session.get_inputs()]


def _is_frame(X: Any) -> bool:
    return isinstance(nw.from_native(X, pass_through=True, eager_only=True), nw.DataFrame)


def _frame_names(X: Any) -> list[str]:
    return [str(name) for name in nw.from_native(X, eager_only=True).columns]


def _rows(graph: Graph, X: Any) -> Rows:
    """The inputs of the graph, by the types of the sample."""
    from setminus.export.graph import Column, Matrix

    if not _is_frame(X):
        width = np.shape(X)[1]
        return Matrix(graph.input("X", "number", width), width)
    from setminus.tables.columns import from_frame, is_text

    table = from_frame(X)
    return [
        Column(field.name, graph.input(field.name, "text" if is_text(field.type) else "number"), is_text(field.type))
        for field in table.schema
    ]


def _group_frame(sensitive_features: Any) -> Any:
    """The groups as a frame; those without names are called sensitive_features."""
    import pyarrow as pa

    if _is_frame(sensitive_features):
        return sensitive_features
    series = nw.from_native(sensitive_features, pass_through=True, allow_series=True, eager_only=True)
    if isinstance(series, nw.Series):
        return series.alias(series.name or "sensitive_features").to_frame().to_native()
    values = np.asarray(sensitive_features, dtype=object)
    columns = [values] if values.ndim == 1 else list(values.T)
    stem = "sensitive_features"
    return pa.table(
        {stem if len(columns) == 1 else f"{stem}_{at}": column.tolist() for at, column in enumerate(columns)}
    )


def _group_columns(graph: Graph, sensitive_features: Any) -> list[Column]:
    rows = _rows(graph, _group_frame(sensitive_features))
    assert isinstance(rows, list)  # noqa: S101 - of a frame
    return rows


def _feeds(X: Any, about: dict[str, dict[str, str]]) -> dict[str, NDArray[Any]]:
    """The inputs of some columns of a frame, each of shape (n, 1)."""
    import pyarrow as pa

    from setminus.tables.columns import distinct_words, from_frame, to_days, to_flags, to_numbers

    table = from_frame(X)
    found = {}
    for name, described in about.items():
        values = table.column(name)
        if described["kind"] == "text":
            missing = described.get("missing", "")
            if "trimmed" in described:
                words, places = distinct_words(values)
                listed = [missing if word is None else word for word in words.to_pylist()]
                found[name] = np.array(listed, dtype=object)[places][:, None]
            else:
                found[name] = np.array(values.cast(pa.string()).fill_null(missing).to_pylist(), dtype=object)[:, None]
        elif pa.types.is_boolean(values.type):
            found[name] = to_flags(values, name)[:, None]
        else:
            # arrow takes times of any kind for days
            days = described["kind"] == "days" or (
                pa.types.is_temporal(values.type) and not pa.types.is_duration(values.type)
            )
            found[name] = (to_days if days else to_numbers)(values, name)[:, None]
    return found


def _checked(model: Any, session: Any, X: Any, sensitive_features: Any) -> dict[str, Any]:
    """Compare the graph with the model on the sample; raise where they differ."""
    frame = nw.from_native(X, pass_through=True, eager_only=True)
    first = frame.head(MAX_CHECKED).to_native() if isinstance(frame, nw.DataFrame) else np.asarray(X)[:MAX_CHECKED]
    keyword = {}
    if sensitive_features is not None:
        groups = nw.from_native(_group_frame(sensitive_features), eager_only=True).head(MAX_CHECKED)
        keyword = {"sensitive_features": groups.to_native()}
    label, proba = session.run(None, onnx_inputs(session, first, **keyword))
    expected = np.asarray(model.predict_proba(first, **keyword), dtype=np.float64)
    # written so that NaN fails
    difference = float(np.abs(proba - expected).max(initial=0.0))
    wrong = int((label != np.asarray(model.predict(first, **keyword))).sum())
    if not difference <= MAX_DIFFERENCE or wrong:
        raise UserError(
            f"the exported graph differs from the model by {difference:.2g} in a probability, and in {wrong} of "
            f"{len(proba)} decisions",
            do="some part of it is converted inexactly: report it with the model's type, and use the model in Python.",
        )
    return {"rows": len(proba), "difference": difference}


def _about(model: Any) -> dict[str, str]:
    """What the file says of its model: the names of the classes, and the certificate."""
    found = {}
    task = getattr(model, "about_", {}).get("task", {})
    if task.get("labels"):
        found["class_names"] = json.dumps([task["labels"].get(str(label), str(label)) for label in model.classes_])
    certificate = getattr(model, "certificate_", None)
    if certificate is not None:
        found["certificate"] = json.dumps(certificate.as_dict(), default=str)
    return found


MISSING, UNSEEN = 0.1, 0.05
"""Shares of the values of a column that are missing, and that training did not have."""


def sample_rows(model: Any, n_rows: int = 2000, seed: int = 0) -> pa.Table:
    """A table with the columns of a model: random values of training, missing ones, and unseen ones.

    Groups that the model reads are always known or missing, since an unseen one may be refused.

    Parameters
    ----------
    model : classifier
        Fitted; its columns are in a `TableEncoder`, or in the groups of a principal.
    n_rows : int
    seed : int

    Examples
    --------
    >>> from setminus.tables.encoding import TableEncoder
    >>> encoder = TableEncoder().fit(pa.table({"age": [39, 50], "sex": ["f", "m"]}))
    >>> sample_rows(encoder, 3).schema.types
    [DataType(double), DataType(string)]
    """
    rng = np.random.default_rng(seed)
    known = {column["name"]: column for column in learned_columns(model)}
    groups = _sensitive(model)
    names = list(getattr(model, "feature_names_in_", [])) or [*known, *groups]
    unknown = [name for name in names if name not in known and name not in groups]
    if unknown or not names:
        what = f"the values of the column {unknown[0]!r}" if unknown else "the columns"
        raise UserError(f"the model does not hold {what}", do="give rows of its training table: --sample TABLE")
    columns = {}
    for name in names:
        values = _group_values(groups[name], n_rows, rng) if name in groups else _values(known[name], n_rows, rng)
        missing = rng.random(n_rows) < MISSING
        # of the group only a few: each is a row without a correction
        columns[name] = pa.array([None if gone else value for value, gone in zip(values, missing, strict=True)])
    return pa.table(columns)


def _sensitive(model: Any) -> dict[str, tuple[Groups, int]]:
    """The columns that a model reads its groups from, with their place among them."""
    inner = getattr(model, "model_", model)
    names = getattr(inner, "sensitive_columns", None) or []
    groupings = getattr(inner, "groupings", None)
    learned = [groupings.crossed] if groupings is not None else []
    learned += [part.groups_ for part in getattr(inner, "principals_", []) if hasattr(part, "groups_")]
    return {name: (learned[0], at) for at, name in enumerate(names)} if learned else {}


def _group_values(place: tuple[Groups, int], n: int, rng: np.random.Generator) -> list[Any]:
    groups, at = place
    # of groups that occurred: another combination of values is unseen
    crossed = rng.choice(groups.present, n)
    codes = np.unravel_index(crossed, [len(values) for values in groups.values])[at]
    edges = groups.edges[at]
    if edges is None:
        return [groups.values[at][code] for code in codes]
    ends = np.array([edges[0] - 1, *edges]) if edges else np.zeros(1)
    return [float(end) for end in ends[codes]]


def _values(column: dict[str, Any], n: int, rng: np.random.Generator) -> list[Any]:
    unseen = rng.random(n) < UNSEEN
    if column["kind"] in ("category", "yes/no"):
        words = level_words(column).to_pylist() if column["kind"] == "category" else ["yes", "no", "True", "0"]
        drawn = [words[at] for at in rng.integers(0, len(words), n)]
        return ["a word that training did not have" if new else word for word, new in zip(drawn, unseen, strict=True)]
    low, high = column.get("low", column["mean"] - column["deviation"]), column.get("high", column["mean"])
    width = max(high - low, 1.0)
    numbers = np.where(unseen, high + width, low + width * rng.random(n))
    # half of them whole, as thresholds of trees lie between whole numbers
    numbers = np.where(rng.random(n) < 0.5, np.round(numbers), numbers)
    if column["kind"] == "number":
        return [float(number) for number in numbers]
    start = datetime(1970, 1, 1, tzinfo=UTC)
    moments = [start + timedelta(days=float(number) % 1 if column["clock"] else float(number)) for number in numbers]
    return [moment.time() if column["clock"] else moment.replace(tzinfo=None) for moment in moments]
