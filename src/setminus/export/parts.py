"""Each kind of estimator as ONNX nodes: what turns rows into numbers, and what gives probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from itertools import product
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from setminus.errors import MissingExtraError, UserError
from setminus.export.graph import OPSETS, Column, Graph, Matrix, Rows
from setminus.export.trees import boosted_trees, forest_trees, lightgbm_scores, tree_scores, xgboost_scores
from setminus.tables.columns import FLAGS
from setminus.tables.encoding import TableEncoder, level_words

__all__ = ["columns_of", "proba_of", "transformed"]


def columns_of(graph: Graph, rows: Rows, wanted: Sequence[Any]) -> Rows:
    """Some columns, by name or position."""
    if isinstance(rows, Matrix):
        return Matrix(graph.column(rows.tensor, [int(at) % rows.width for at in wanted]), len(wanted))
    by_name = {column.name: column for column in rows}
    return [by_name[at] if isinstance(at, str) else rows[at] for at in wanted]


# ---- transformers


@singledispatch
def transformed(step: Any, graph: Graph, rows: Rows) -> Rows:
    """Rows after a transformer; those that are not ours by skl2onnx."""
    (values,) = _by_skl2onnx(step, graph, rows)
    return Matrix(graph.cast(values), _width_out(step, graph, rows))


def _width_out(step: Any, graph: Graph, rows: Rows) -> int:
    try:
        return len(step.get_feature_names_out())
    except (AttributeError, ValueError):
        return rows.width if isinstance(rows, Matrix) else len(rows)


@transformed.register
def _(step: FrozenEstimator, graph: Graph, rows: Rows) -> Rows:
    return transformed(step.estimator, graph, rows)


@transformed.register
def _(step: Pipeline, graph: Graph, rows: Rows) -> Rows:
    for _, part in step.steps:
        rows = rows if part is None or part == "passthrough" else transformed(part, graph, rows)
    return rows


@transformed.register
def _(step: ColumnTransformer, graph: Graph, rows: Rows) -> Rows:
    blocks: list[str] = []
    width = 0
    for _, part, wanted in step.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        positions = _positions(wanted, rows)
        if not positions:
            continue
        block = columns_of(graph, rows, positions)
        if not (isinstance(part, str) and part == "passthrough"):
            block = transformed(part, graph, block)
        found = graph.matrix(block, "ColumnTransformer")
        blocks.append(found.tensor)
        width += found.width
    return Matrix(graph.add("Concat", *blocks, axis=1), width)


def _positions(wanted: Any, rows: Rows) -> list[int]:
    """Columns as a ColumnTransformer names them: names, positions, a mask, a slice, or one of these alone."""
    names = [] if isinstance(rows, Matrix) else [column.name for column in rows]
    width = rows.width if isinstance(rows, Matrix) else len(rows)
    if isinstance(wanted, slice):
        if isinstance(wanted.start, str) or isinstance(wanted.stop, str):
            raise UserError("ColumnTransformer with a slice of names cannot be exported", do="list the columns.")
        return [*range(width)][wanted]
    listed = [wanted] if isinstance(wanted, str | int) else list(wanted)
    if listed and all(isinstance(at, bool | np.bool_) for at in listed):
        return np.flatnonzero(listed).tolist()
    return [names.index(at) if isinstance(at, str) else int(at) % width for at in listed]


@transformed.register
def _(step: OrdinalEncoder, graph: Graph, rows: Rows) -> Rows:
    columns = _as_columns(graph, rows)
    found = []
    infrequent = getattr(step, "_infrequent_enabled", False)
    for at, (column, known) in enumerate(zip(columns, step.categories_, strict=True)):
        codes = np.arange(len(known), dtype=np.float64)
        if infrequent and step._default_to_infrequent_mappings[at] is not None:
            codes = step._default_to_infrequent_mappings[at].astype(np.float64)
        missing = np.array([value is None or value != value for value in known])
        codes[missing] = step.encoded_missing_value
        if step.handle_unknown == "error":
            raise UserError(
                "OrdinalEncoder(handle_unknown='error') cannot be exported: a graph refuses no value",
                do="set handle_unknown='use_encoded_value'.",
            )
        unknown = float(step.unknown_value)
        if missing.any() and not column.text and not np.isnan(step.encoded_missing_value):
            raise UserError(
                "OrdinalEncoder with a code for missing numbers cannot be exported",
                do="leave encoded_missing_value at NaN.",
            )
        words = [value for value, none in zip(known.tolist(), missing.tolist(), strict=True) if not none]
        values = codes[~missing].tolist()
        if column.text and missing.any():
            words, values = [*words, graph.missing_word(column, words)], [*values, float(codes[missing][0])]
        found.append(_mapped(graph, column, words, values, unknown))
    return found


def _mapped(graph: Graph, column: Column, words: Sequence[Any], values: Sequence[float], unknown: float) -> Column:
    """Words or numbers looked up."""
    if column.text != all(isinstance(word, str) for word in words):
        held = "text" if column.text else "numbers"
        raise UserError(
            f"column {column.name!r} of the sample holds {held}, unlike the rows that the model was fitted on",
            do="give a sample of the training rows.",
        )
    kind = TensorProto.STRING if column.text else TensorProto.DOUBLE
    keys = [word.encode() for word in words] if column.text else [float(word) for word in words]
    tensor = graph.add(
        "LabelEncoder",
        column.tensor,
        keys_tensor=helper.make_tensor("keys", kind, [len(keys)], keys),
        values_tensor=helper.make_tensor("values", TensorProto.DOUBLE, [len(values)], values),
        default_tensor=helper.make_tensor("default", TensorProto.DOUBLE, [1], [unknown]),
    )
    return Column(column.name, tensor, text=False)


def _as_columns(graph: Graph, rows: Rows) -> list[Column]:
    if not isinstance(rows, Matrix):
        return rows
    return [Column(str(at), graph.column(rows.tensor, [at]), text=False) for at in range(rows.width)]


@transformed.register
def _(step: KBinsDiscretizer, graph: Graph, rows: Rows) -> Rows:
    columns = _as_columns(graph, graph.matrix(rows, "KBinsDiscretizer"))
    blocks = []
    for column, edges, n_bins in zip(columns, step.bin_edges_, step.n_bins_.tolist(), strict=True):
        above = graph.add("GreaterOrEqual", column.tensor, graph.constant(edges[None, 1:-1]))
        code = graph.add("ReduceSum", graph.cast(above), graph.constant([1]), keepdims=1)
        if step.encode != "ordinal":
            code = graph.cast(graph.add("Equal", code, graph.constant(np.arange(n_bins, dtype=np.float64)[None])))
        blocks.append(code)
    width = len(blocks) if step.encode == "ordinal" else int(step.n_bins_.sum())
    return Matrix(blocks[0] if len(blocks) == 1 else graph.add("Concat", *blocks, axis=1), width)


@transformed.register
def _(step: TableEncoder, graph: Graph, rows: Rows) -> Rows:
    if isinstance(rows, Matrix):
        raise UserError("TableEncoder was given an array", expected="the columns of a frame")
    by_name = {column.name: column for column in rows}
    encoded: list[Column] = []
    for learned in step.columns_:
        encode = _ordinal if step.form == "ordinal" else _onehot
        encoded += encode(graph, by_name[learned["name"]], learned)
    if step.form == "ordinal":
        return encoded
    tensors = [column.tensor for column in encoded]
    return Matrix(graph.add("Concat", *tensors, axis=1), len(step.get_feature_names_out()))


def _ordinal(graph: Graph, column: Column, learned: dict[str, Any]) -> list[Column]:
    if learned["kind"] != "category":
        return [Column(column.name, _number(graph, column, learned["kind"]), text=False)]
    words = level_words(learned).to_pylist()
    codes = _first_codes(words)
    found = _mapped(graph, _word(graph, column), list(codes), list(codes.values()), np.nan)
    graph.missing_word(column, words)
    return [Column(column.name, found.tensor, text=False, levels=len(words))]


def _first_codes(words: Sequence[str]) -> dict[str, float]:
    """The code of each word; levels of old models may be equal without their spaces: the first one counts."""
    codes: dict[str, float] = {}
    for code, word in enumerate(words):
        codes.setdefault(word, float(code))
    return codes


def _onehot(graph: Graph, column: Column, learned: dict[str, Any]) -> list[Column]:
    if learned["kind"] == "category":
        words = level_words(learned).to_pylist()
        codes = _first_codes(words)
        missing = graph.missing_word(column, words)
        # the column of missing values is the last; one more code, which is none of the columns, is for unseen words
        known = {**codes, missing: float(len(words))}
        width = len(words) + bool(learned["missing"])
        at = _mapped(graph, _word(graph, column), list(known), list(known.values()), float(len(words) + 1))
        hot = graph.add("Equal", at.tensor, graph.constant(np.arange(width, dtype=np.float64)[None]))
        return [Column(column.name, graph.cast(hot), text=False)]
    numbers = _number(graph, column, learned["kind"])
    missing_rows = graph.add("IsNaN", numbers)
    filled = graph.add("Where", missing_rows, graph.constant(learned["median"]), numbers)
    centred = graph.add("Sub", filled, graph.constant(learned["mean"]))
    scaled = Column(column.name, graph.add("Div", centred, graph.constant(learned["deviation"])), text=False)
    return [scaled, Column(column.name, graph.cast(missing_rows), text=False)] if learned["missing"] else [scaled]


def _word(graph: Graph, column: Column) -> Column:
    """A column that is read as words, whatever its type."""
    if column.text:
        graph.about_inputs[column.name]["trimmed"] = "yes"
        return column
    raise UserError(
        f"column {column.name!r} of the sample holds numbers, the model was fitted on words",
        do="give a sample of the training rows.",
    )


def _number(graph: Graph, column: Column, kind: str) -> str:
    """Numbers, days or flags as `setminus.tables.columns` reads them: not finite is missing."""
    nothing = graph.constant(np.nan)
    if kind == "yes/no":
        if column.text:
            words = {"".join(letters): float(flag) for word, flag in FLAGS.items() for letters in _cases(word)}
            return _mapped(graph, _word(graph, column), list(words), list(words.values()), np.nan).tensor
        whole = graph.add("Or", *(graph.add("Equal", column.tensor, graph.constant(flag)) for flag in (0.0, 1.0)))
        return graph.add("Where", whole, column.tensor, nothing)
    if column.text:
        raise UserError(
            f"column {column.name!r} of the sample is text, the model was fitted on a {kind}",
            do="convert the column to its type, as in the training rows.",
        )
    graph.about_inputs[column.name]["kind"] = "days" if kind == "date" else "number"
    return graph.add("Where", graph.add("IsInf", column.tensor), nothing, column.tensor)


def _cases(word: str) -> list[tuple[str, ...]]:
    return [*product(*({letter.lower(), letter.upper()} for letter in word))]


# ---- classifiers


@singledispatch
def proba_of(model: Any, graph: Graph, rows: Rows) -> str:
    """The probabilities of a classifier, a tensor of shape (n, C); those that are not ours by skl2onnx."""
    maker = type(model).__module__.partition(".")[0]
    if maker in ("lightgbm", "xgboost"):
        scores = {"lightgbm": lightgbm_scores, "xgboost": xgboost_scores}[maker]
        return _from_scores(graph, scores(graph, graph.matrix(rows, type(model).__name__).tensor, model), model)
    return graph.cast(_by_skl2onnx(model, graph, rows)[-1])


def _from_scores(graph: Graph, scores: str, model: Any) -> str:
    if len(model.classes_) == 2:
        return graph.two_classes(graph.add("Sigmoid", scores))
    return graph.softmax(scores)


@proba_of.register
def _(model: FrozenEstimator, graph: Graph, rows: Rows) -> str:
    return proba_of(model.estimator, graph, rows)


@proba_of.register
def _(model: Pipeline, graph: Graph, rows: Rows) -> str:
    return proba_of(model.steps[-1][1], graph, transformed(Pipeline(model.steps[:-1]), graph, rows))


@proba_of.register
def _(model: HistGradientBoostingClassifier, graph: Graph, rows: Rows) -> str:
    return _from_scores(graph, _boosting_scores(model, graph, rows), model)


def _boosting_scores(model: HistGradientBoostingClassifier, graph: Graph, rows: Rows) -> str:
    """The raw scores, of one column for two classes."""
    if model._preprocessor is not None:
        rows = _boosting_rows(graph, rows, model)
    x = graph.matrix(rows, type(model).__name__).tensor
    base = np.asarray(model._baseline_prediction, dtype=np.float64).reshape(1, -1)
    scores = tree_scores(graph, x, boosted_trees(model), base.shape[1])
    return graph.add("Add", scores, graph.constant(base))


def _boosting_rows(graph: Graph, rows: Rows, model: HistGradientBoostingClassifier) -> list[Column]:
    """The columns as the trees number them: categories first, as codes; unknown and missing ones are NaN."""
    columns = _as_columns(graph, rows)
    encoder = model._preprocessor.named_transformers_["encoder"]
    mask = model.is_categorical_.tolist()
    categorical = [column for column, coded in zip(columns, mask, strict=True) if coded]
    known = [
        np.array([value for value in found.tolist() if value == value and value is not None])
        for found in encoder.categories_
    ]
    coded = [
        column
        if column.levels is not None and np.array_equal(words, np.arange(column.levels))
        else _mapped(graph, column, words.tolist(), [*map(float, range(len(words)))], np.nan)
        for column, words in zip(categorical, known, strict=True)
    ]
    return [*coded, *(column for column, coded in zip(columns, mask, strict=True) if not coded)]


def _forest(model: Any, graph: Graph, rows: Rows) -> str:
    if getattr(model, "n_outputs_", 1) != 1:
        raise UserError(f"{type(model).__name__} has several outputs", expected="one")
    # as float32, which is what these trees compare
    x = graph.cast(graph.cast(graph.matrix(rows, type(model).__name__).tensor, TensorProto.FLOAT))
    n_classes = len(model.classes_)
    scores = tree_scores(graph, x, forest_trees(model), 1 if n_classes == 2 else n_classes)
    return graph.two_classes(scores) if n_classes == 2 else scores


for _kind in (DecisionTreeClassifier, ExtraTreeClassifier, RandomForestClassifier, ExtraTreesClassifier):
    proba_of.register(_kind, _forest)


# ---- calibration


@proba_of.register
def _(model: CalibratedClassifierCV, graph: Graph, rows: Rows) -> str:
    parts = [_calibrated(one, graph, rows) for one in model.calibrated_classifiers_]
    total = parts[0]
    for part in parts[1:]:
        total = graph.add("Add", total, part)
    return graph.add("Div", total, graph.constant(float(len(parts))))


def _calibrated(model: Any, graph: Graph, rows: Rows) -> str:
    """The probabilities of one calibrated classifier."""
    scores, n_classes = _response(model.estimator, graph, rows), len(model.classes)
    if len(model.estimator.classes_) != n_classes:
        raise UserError(
            "CalibratedClassifierCV with a fold that lacks a class cannot be exported", do="use fewer folds."
        )
    decides = hasattr(model.estimator, "decision_function")
    if model.method == "temperature":
        if not decides:
            proba = graph.two_classes(scores) if n_classes == 2 else scores
            scores = graph.add("Log", graph.add("Add", proba, graph.constant(1e-12)))
        elif n_classes == 2:
            scores = graph.add("Concat", graph.add("Neg", scores), scores, axis=1)
        return graph.softmax(graph.add("Mul", scores, graph.constant(float(model.calibrators[0].beta_))))
    found = [_calibration_curve(one, graph, graph.column(scores, [at])) for at, one in enumerate(model.calibrators)]
    if n_classes == 2:
        return graph.two_classes(found[0])
    proba = graph.add("Concat", *found, axis=1)
    total = graph.add("ReduceSum", proba, graph.constant([1]), keepdims=1)
    nothing = graph.add("Equal", total, graph.constant(0.0))
    return graph.add("Where", nothing, graph.constant(1 / n_classes), graph.add("Div", proba, total))


def _calibration_curve(curve: Any, graph: Graph, x: str) -> str:
    """A sigmoid, or the lines between the points of an isotonic regression, of shape (n, 1)."""
    if not isinstance(curve, IsotonicRegression):
        logits = graph.add(
            "Add", graph.add("Mul", x, graph.constant(-float(curve.a_))), graph.constant(-float(curve.b_))
        )
        return graph.add("Sigmoid", logits)
    at, values = (np.asarray(part, dtype=np.float64) for part in (curve.X_thresholds_, curve.y_thresholds_))
    if len(at) == 1:
        # a value for each row
        return graph.add("Add", graph.add("Mul", x, graph.constant(0.0)), graph.constant(float(values[0])))
    inside = graph.add("Clip", x, graph.constant(float(at[0])), graph.constant(float(at[-1])))
    above = graph.cast(graph.add("GreaterOrEqual", inside, graph.constant(at[None, 1:-1])), TensorProto.INT64)
    place = graph.add("ReduceSum", above, graph.constant([1]), keepdims=1)
    low, base, slope = (
        graph.add("Gather", graph.constant(part), place, axis=0)
        for part in (at[:-1], values[:-1], np.diff(values) / np.diff(at))
    )
    return graph.add("Add", base, graph.add("Mul", graph.add("Sub", inside, low), slope))


@singledispatch
def _response(model: Any, graph: Graph, rows: Rows) -> str:
    """What a calibration is fitted to: the decision function, or the probabilities; one column for two classes."""
    if hasattr(model, "decision_function"):
        raise UserError(
            f"the calibration of {type(model).__name__} cannot be exported",
            do="calibrate gradient boosting, logistic regression, or a model without decision_function.",
        )
    proba = proba_of(model, graph, rows)
    return graph.column(proba, [1]) if len(model.classes_) == 2 else proba


@_response.register
def _(model: FrozenEstimator, graph: Graph, rows: Rows) -> str:
    return _response(model.estimator, graph, rows)


@_response.register
def _(model: Pipeline, graph: Graph, rows: Rows) -> str:
    return _response(model.steps[-1][1], graph, transformed(Pipeline(model.steps[:-1]), graph, rows))


@_response.register
def _(model: HistGradientBoostingClassifier, graph: Graph, rows: Rows) -> str:
    return _boosting_scores(model, graph, rows)


@_response.register
def _(model: LogisticRegression, graph: Graph, rows: Rows) -> str:
    return graph.affine(graph.matrix(rows, "LogisticRegression").tensor, model.coef_.T, model.intercept_)


# ---- all that skl2onnx knows


def _by_skl2onnx(part: Any, graph: Graph, rows: Rows) -> list[str]:
    """The outputs of a part of scikit-learn."""
    name = type(part).__name__
    if not isinstance(part, BaseEstimator):
        raise UserError(f"{name} cannot be exported", expected="an estimator of scikit-learn or setminus")
    try:
        from skl2onnx import convert_sklearn
        from skl2onnx.common.data_types import DoubleTensorType, StringTensorType
    except ImportError as error:
        raise MissingExtraError("the export to ONNX", "skl2onnx", extra="onnx") from error

    if not isinstance(rows, Matrix) and all(column.text for column in rows):
        tensors = [column.tensor for column in rows]
        tensor = tensors[0] if len(tensors) == 1 else graph.add("Concat", *tensors, axis=1)
        kind = StringTensorType([None, len(rows)])
    else:
        found = graph.matrix(rows, name)
        tensor, kind = found.tensor, DoubleTensorType([None, found.width])
    options = {"zipmap": False} if hasattr(part, "predict_proba") else None
    try:
        model = convert_sklearn(
            part,
            initial_types=[("X", kind)],
            target_opset={"": OPSETS[""], "ai.onnx.ml": 3},
            options=None if options is None else {id(part): options},
        )
    except Exception as error:
        raise UserError(
            f"{name} cannot be exported: {(str(error).strip() or type(error).__name__).splitlines()[0]}",
            do="use an estimator that skl2onnx supports in its place.",
        ) from error
    return graph.inline(model, [tensor], name)
