"""The classifiers of setminus as ONNX nodes: the formula, its principals, the groups, and the decisions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from setminus.adaptation.adapter import OrthogonalAdapter
from setminus.adaptation.prior_correction import MIN_PRIOR, MIN_PROBA, PriorCorrectedClassifier
from setminus.errors import UserError
from setminus.estimators.frontier import MIN_LOG
from setminus.estimators.groupings import Groupings
from setminus.estimators.groups import NOT_COMPARED, UNSEEN, Groups
from setminus.estimators.importance import ImportanceWeightedClassifier
from setminus.estimators.orthogonal import OrthogonalClassifier
from setminus.estimators.principals import STRIP, GroupPrincipal, ProxyPrincipal, needs_groups, takes_groups
from setminus.estimators.tuned import TunedOrthogonalClassifier
from setminus.export.graph import Column, Graph, Matrix, Rows
from setminus.export.parts import columns_of, proba_of

__all__ = ["class_codes", "classifier_proba"]

Floats = NDArray[np.float64]

TINY = float(np.finfo(np.float64).tiny)


@singledispatch
def classifier_proba(model: Any, graph: Graph, rows: Rows, groups: list[Column] | None) -> str:
    """The probabilities of a classifier that may be given the groups; any other one is given the rows alone."""
    return proba_of(model, graph, rows)


@classifier_proba.register
def _(model: OrthogonalClassifier, graph: Graph, rows: Rows, groups: list[Column] | None) -> str:
    full = proba_of(model.full_, graph, _full_rows(model, graph, rows))
    if model.strength == 0:
        return full
    logits = graph.add("Log", full)
    log_prior = np.log(model.class_prior_)
    for part in model.principals_:
        # as on_violation="clip": a graph cannot refuse a row
        log_principal = graph.log(_principal_proba(part, model, graph, rows, groups), TINY)
        lift = graph.add("Sub", log_principal, graph.constant(log_prior))
        logits = graph.add("Sub", logits, graph.add("Mul", graph.constant(float(model.strength)), lift))
    return graph.softmax(logits)


@classifier_proba.register
def _(model: TunedOrthogonalClassifier, graph: Graph, rows: Rows, groups: list[Column] | None) -> str:
    inner = model.model_
    offsets = getattr(model, "group_offsets_", None)
    if offsets is None:
        return classifier_proba(inner, graph, rows, groups)
    full = proba_of(inner.full_, graph, _full_rows(inner, graph, rows))
    part = inner.principals_[0]
    if isinstance(part, GroupPrincipal):
        places = _group_places(part, inner, graph, rows, groups)

        def by_group(values: Floats) -> str:
            # a row in no group has no offset
            table = graph.constant(np.vstack([np.zeros((1, values.shape[1])), values]))
            return graph.add("Gather", table, places, axis=0)

        if not part.interpolate:
            shift = by_group(offsets)
        else:
            fixed, slopes = np.split(offsets, 2)
            shift = graph.add("Add", by_group(fixed), graph.add("Mul", by_group(slopes), _strip_place(graph, full)))
    else:
        features = _group_features(part, graph, full, _principal_rows(inner, part, graph, rows))
        shift = graph.add("MatMul", features, graph.constant(offsets))
    return graph.softmax(graph.add("Sub", graph.log(full, np.exp(MIN_LOG)), shift))


@classifier_proba.register
def _(model: ImportanceWeightedClassifier, graph: Graph, rows: Rows, groups: list[Column] | None) -> str:
    return proba_of(model.full_, graph, rows)


@classifier_proba.register
def _(model: PriorCorrectedClassifier, graph: Graph, rows: Rows, groups: list[Column] | None) -> str:
    if not hasattr(model.classifier_, "predict_proba"):
        raise UserError(
            f"PriorCorrectedClassifier around {type(model.classifier_).__name__}, which has no predict_proba, cannot "
            "be exported",
            do="calibrate it first by CalibratedClassifierCV.",
        )
    logits = graph.log(proba_of(model.classifier_, graph, rows), MIN_PROBA)
    assumed = np.maximum(model.assumed_prior_, MIN_PRIOR)
    shift = model.calibration_[1:] - np.log(model.source_prior_) + np.log(assumed)
    scaled = graph.add("Mul", logits, graph.constant(float(model.calibration_[0])))
    return graph.softmax(graph.add("Add", scaled, graph.constant(shift)))


@classifier_proba.register
def _(model: OrthogonalAdapter, graph: Graph, rows: Rows, groups: list[Column] | None) -> str:
    x = graph.matrix(rows, "OrthogonalAdapter").tensor
    x = graph.add("Div", graph.add("Sub", x, graph.constant(model.mean_)), graph.constant(model.scale_))
    for weight, bias in model.layers_[:-1]:
        x = graph.add("Max", graph.affine(x, weight, bias), graph.constant(0.0))
    weight, bias = model.layers_[-1]
    return graph.softmax(graph.affine(x, weight, bias + model._log_prior()))


def class_codes(model: Any, graph: Graph, proba: str) -> str:
    """The position of the predicted class, of shape (n,)."""
    if not isinstance(model, TunedOrthogonalClassifier):
        return graph.add("ArgMax", proba, axis=1, keepdims=0)
    scores = graph.add("Add", graph.log(proba, np.exp(MIN_LOG)), graph.constant(model.offsets_))
    return graph.add("ArgMax", scores, axis=1, keepdims=0, select_last_index=1)


def _full_rows(model: OrthogonalClassifier, graph: Graph, rows: Rows) -> Rows:
    """The rows for the full classifier: a frozen one may have been fitted on some of the columns."""
    names = list(getattr(model.full_, "feature_names_in_", ()))
    if isinstance(rows, Matrix) or not names or not {*names} <= {column.name for column in rows}:
        return rows
    return columns_of(graph, rows, names)


def _principal_rows(model: Any, part: Any, graph: Graph, rows: Rows) -> Rows:
    """The rows for a principal, as ``PrincipalMixin._principal_view`` chooses them."""
    if model.principal_columns is not None:
        return columns_of(graph, rows, model.principal_columns)
    if model.sensitive_columns is not None and takes_groups(part.fit) and not needs_groups(part):
        width = rows.width if isinstance(rows, Matrix) else len(rows)
        names = [] if isinstance(rows, Matrix) else [column.name for column in rows]
        dropped = {names.index(at) if isinstance(at, str) else at % width for at in model.sensitive_columns}
        return columns_of(graph, rows, [at for at in range(width) if at not in dropped])
    return rows


def _principal_proba(part: Any, model: Any, graph: Graph, rows: Rows, groups: list[Column] | None) -> str:
    if isinstance(part, GroupPrincipal):
        table = graph.constant(np.vstack([part.class_prior_, part.group_proba_]))
        return graph.add("Gather", table, _group_places(part, model, graph, rows, groups), axis=0)
    if needs_groups(part):
        raise UserError(
            f"{type(part).__name__} needs the groups and cannot be exported",
            do="use GroupPrincipal or ProxyPrincipal.",
        )
    rows = _principal_rows(model, part, graph, rows)
    return _proxy_proba(part, graph, rows) if isinstance(part, ProxyPrincipal) else proba_of(part, graph, rows)


# ---- the group as estimated from the features


def _attribute_proba(part: ProxyPrincipal, graph: Graph, rows: Rows) -> str:
    return graph.column(proba_of(part.attribute_model_, graph, rows), part._order)


def _proxy_proba(part: ProxyPrincipal, graph: Graph, rows: Rows) -> str:
    attribute = _attribute_proba(part, graph, rows)
    if part.method != "score":
        return graph.add("MatMul", attribute, graph.constant(part.group_proba_))
    odds = graph.add("Clip", _odds(graph, attribute, len(part._order), 1e-6), graph.constant(-3.0), graph.constant(3.0))
    return proba_of(part.score_model_, graph, Matrix(odds, len(part._order) - 1))


def _odds(graph: Graph, attribute: str, n_groups: int, floor: float) -> str:
    """Log-odds of each group against the last."""
    logs = graph.log(attribute, floor)
    return graph.add("Sub", graph.column(logs, range(n_groups - 1)), graph.column(logs, [n_groups - 1]))


def _strip_place(graph: Graph, full: str) -> str:
    """As `strip_place`, one column."""
    logs = graph.log(full, TINY)
    odds = graph.add("Sub", graph.column(logs, [1]), graph.column(logs, [0]))
    strips = graph.add("Div", odds, graph.constant(STRIP))
    part = graph.add("Sub", strips, graph.add("Floor", strips))
    return graph.add("Sub", graph.add("Mul", part, graph.constant(2.0)), graph.constant(1.0))


def _group_features(part: Any, graph: Graph, full: str, rows: Rows) -> str:
    """As `ProxyPrincipal.group_features`: ``p(u, y | x) / p(u, y)``, or p(u | x)."""
    attribute = _attribute_proba(part, graph, rows)
    if part.method != "joint":
        return attribute
    n_groups, n_classes = part.group_proba_.shape
    odds = _odds(graph, attribute, n_groups, 1e-3)
    model = part.joint_model_
    # the regression on the odds, the label, and their products, for each label in turn
    of_odds, of_label, of_products = np.split(model.coef_, np.cumsum([n_groups - 1, n_classes - 1]), axis=1)
    of_products = of_products.reshape(len(model.coef_), n_groups - 1, n_classes - 1)
    pairs = part.group_prior_[:, None] * part.group_proba_
    lifts = []
    for k in range(n_classes):
        weight, bias = of_odds, model.intercept_
        if k > 0:
            weight, bias = weight + of_products[:, :, k - 1], bias + of_label[:, k - 1]
        scores = graph.affine(odds, weight.T, bias)
        given = graph.two_classes(graph.add("Sigmoid", scores)) if len(model.coef_) == 1 else graph.softmax(scores)
        joint = graph.add("Mul", graph.column(full, [k]), given)
        lifts.append(graph.add("Div", joint, graph.constant(pairs[None, :, k])))
    return graph.add("Concat", *lifts, axis=1)


# ---- the group where it is known


def _group_places(part: GroupPrincipal, model: Any, graph: Graph, rows: Rows, groups: list[Column] | None) -> str:
    """The row of each group in a table whose row 0 is for rows in no group; refused groups are outside of it.

    A runtime stops at a place outside of a table, as Python stops at an unseen group.
    """
    columns = groups
    if model.sensitive_columns is not None:
        found = columns_of(graph, rows, model.sensitive_columns)
        columns = (
            found
            if not isinstance(found, Matrix)
            else [Column(str(at), graph.column(found.tensor, [at]), text=False) for at in range(found.width)]
        )
    if columns is None:
        raise UserError(
            "the model needs the groups",
            do="pass sensitive_features= with those of the sample, or set sensitive_columns=.",
        )
    groupings: Groupings | None = getattr(model, "groupings", None)
    learned = part.groups_ if groupings is None else groupings.crossed
    outside = len(part.groups_.labels) + 1 if part.unseen == "raise" and groupings is None else 0
    # by code: from NOT_COMPARED and UNSEEN to the last group
    places = np.array([0, outside, *range(1, len(learned.labels) + 1)], dtype=np.int64)
    if groupings is not None:
        # the principal knows the groups by the names that the groupings give them
        places[2:] = np.maximum(part.groups_.codes(np.array(groupings.crossed.names, dtype=object)) + 1, 0)
    names = [column.name for column in columns]
    codes = graph.add("Sub", _group_codes(learned, graph, columns), graph.constant(np.array(NOT_COMPARED)))
    found_places = graph.add("Gather", graph.constant(places), codes, axis=0)
    return graph.add("Identity", found_places, name=f"unseen group in {', '.join(names)}")


def _group_codes(groups: Groups, graph: Graph, columns: Sequence[Column]) -> str:
    """As `Groups.codes`, of shape (n,)."""
    if len(columns) != len(groups.values):
        raise UserError(f"there are {len(columns)} sensitive columns", expected=f"{len(groups.values)}, as in fit")
    sizes = [len(values) for values in groups.values]
    parts = [
        _value_codes(graph, column, values, edges)
        for column, values, edges in zip(columns, groups.values, groups.edges, strict=True)
    ]
    lowest = parts[0]
    for part in parts[1:]:
        lowest = graph.add("Min", lowest, part)
    crossed = graph.constant(np.array(0))
    for part, size in zip(parts, sizes, strict=True):
        step = graph.add("Mul", crossed, graph.constant(np.array(size)))
        crossed = graph.add("Add", step, graph.add("Max", part, graph.constant(np.array(0))))
    # all combinations of values, of which some are no group
    every = np.arange(int(np.prod(sizes)))
    table = graph.constant(groups._found(every).astype(np.int64))
    inside = graph.add("GreaterOrEqual", lowest, graph.constant(np.array(0)))
    return graph.add("Where", inside, graph.add("Gather", table, crossed, axis=0), lowest)


def _value_codes(graph: Graph, column: Column, values: list[Any], edges: list[float] | None) -> str:
    """The code of each row's value: UNSEEN for another one, NOT_COMPARED for a missing one; of shape (n,)."""
    whole = graph.constant([-1])
    if column.text:
        if edges is not None or not all(isinstance(value, str) for value in values):
            raise _another_kind(column)
        words = [*values, graph.missing_word(column, values)]
        codes = graph.add(
            "LabelEncoder",
            column.tensor,
            keys_strings=words,
            values_int64s=[*range(len(values)), NOT_COMPARED],
            default_int64=UNSEEN,
        )
        return graph.add("Reshape", codes, whole)
    if edges is None and not all(isinstance(value, Number | np.bool_) for value in values):
        raise _another_kind(column)
    numbers: NDArray[np.float64] = np.array(values if edges is None else edges, dtype=np.float64)[None]
    if edges is None:
        equal = graph.cast(graph.add("Equal", column.tensor, graph.constant(numbers)), TensorProto.INT64)
        found = graph.add("ReduceMax", equal, graph.constant([1]), keepdims=0)
        first = graph.add("ArgMax", equal, axis=1, keepdims=0)
        # the code where one is equal, UNSEEN where none is
        codes = graph.add("Where", graph.cast(found, TensorProto.BOOL), first, graph.constant(np.array(UNSEEN)))
    else:
        above = graph.cast(graph.add("GreaterOrEqual", column.tensor, graph.constant(numbers)), TensorProto.INT64)
        codes = graph.add("ReduceSum", above, graph.constant([1]), keepdims=0)
    missing = graph.add("Reshape", graph.add("IsNaN", column.tensor), whole)
    return graph.add("Where", missing, graph.constant(np.array(NOT_COMPARED)), codes)


def _another_kind(column: Column) -> UserError:
    return UserError(
        f"the groups in column {column.name!r} are of a kind that cannot be exported, or not that of the sample",
        expected="text or numbers, as in the training rows",
    )
