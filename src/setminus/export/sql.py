"""The correction as one SQL expression over columns, for scores that live in a warehouse.

The expression has numbers, column names, ``+ - * /``, comparisons, CASE, and where powers are needed POWER, LN and EXP.
Each class has a weight, and a probability is its weight over the sum of all weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from setminus.core.orthogonalize import orthogonalize
from setminus.errors import UserError
from setminus.estimators.groups import Groups
from setminus.estimators.orthogonal import OrthogonalClassifier
from setminus.estimators.principals import GroupPrincipal, ProxyPrincipal
from setminus.estimators.tuned import TunedOrthogonalClassifier

__all__ = ["SqlOutput", "export_sql"]

SqlOutput = Literal["probability", "decision"]

Floats = NDArray[np.float64]

MIN_PRINCIPAL = 1e-100
"""A smaller principal probability counts as this: its inverse, times itself, is still a number."""


def export_sql(
    model: Any = None,
    *,
    full: Sequence[str],
    principal: Sequence[str] | None = None,
    attribute: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    prior: ArrayLike | str | None = None,
    strength: float = 1.0,
    output: SqlOutput = "probability",
    label: Any = None,
) -> str:
    r"""The corrected probability of a class, or the decision, as one SQL expression.

    Parameters
    ----------
    model : OrthogonalClassifier or TunedOrthogonalClassifier, optional
        A fitted model, which brings prior, strength, threshold, the groups and their offsets. Without it, `prior` and
        `strength` are used, as in `orthogonalize`.
    full : sequence of str
        Columns with the probabilities of the full classifier, one for each class in the order of ``classes_``; a single
        one holds that of the second of two classes.
    principal : sequence of str, optional
        Columns with the probabilities of the principal classifier, as `full`; needed unless the groups are known.
    attribute : sequence of str, optional
        Columns with p(group | x) of a `ProxyPrincipal`, in the order of ``groups_.labels``: a tuned model with fitted
        group offsets needs them in place of `principal`.
    groups : sequence of str, optional
        Columns with the groups, for a model with a `GroupPrincipal`; by default those of ``sensitive_columns``.
    prior : array of shape (C,) or "uniform", optional
        Without a model: p(y) of the data that the principal classifier was fitted on.
    strength : float, default=1.0
        Without a model: how much to remove.
    output : {"probability", "decision"}, default="probability"
        The probability of one class, or the predicted class; without a model the most probable one, as its position.
    label : label, optional
        The class whose probability is wanted; by default the last.

    Returns
    -------
    str
        NULL where a column is NULL or the group was not there at fit time; a missing group has no correction.

    Examples
    --------
    >>> export_sql(full=["p"], principal=["q"], prior=[0.5, 0.5])
    '("p" * (1E0 - "q")) / ((1E0 - "p") * "q" + "p" * (1E0 - "q"))'
    """
    if output not in ("probability", "decision"):
        raise UserError(f"output is {output!r}", expected="'probability' or 'decision'")
    fulls = _columns("full", full)
    if model is None:
        if principal is None or prior is None:
            raise UserError("without a model, principal and prior are needed", do="give both, or a model.")
        classes: list[Any] = [*range(len(fulls))]
        weights = _by_principal(
            fulls, _columns("principal", principal), _checked(prior, len(fulls), strength), strength
        )
        offsets: Floats = np.zeros(len(fulls))
    else:
        check_is_fitted(model)
        inner = getattr(model, "model_", model)
        if not isinstance(inner, OrthogonalClassifier):
            raise UserError(
                f"the model is {type(model).__name__}", expected="an OrthogonalClassifier or TunedOrthogonalClassifier"
            )
        classes = model.classes_.tolist()
        if len(fulls) != len(classes):
            raise UserError(
                f"full names {len(full)} columns", expected=f"one for each of the {len(classes)} classes {classes}"
            )
        offsets = model.offsets_ if isinstance(model, TunedOrthogonalClassifier) else np.zeros(len(classes))
        weights = _weights(model, inner, fulls, principal, attribute, groups)
    if output == "decision":
        return _decision(weights, offsets, classes, last_at_tie=isinstance(model, TunedOrthogonalClassifier))
    if label is not None and label not in classes:
        raise UserError(f"label is {label!r}", expected=f"one of {classes}")
    at = len(classes) - 1 if label is None else classes.index(label)
    return f"({weights[at]}) / ({' + '.join(weights)})"


def _checked(prior: Any, n_classes: int, strength: float) -> Floats:
    """The prior as numbers; raises as the formula does."""
    even = np.full((1, n_classes), 1 / n_classes)
    orthogonalize(even, even, prior, strength=strength)
    return even[0] if isinstance(prior, str) else np.asarray(prior, dtype=np.float64)


def _weights(
    model: Any,
    inner: OrthogonalClassifier,
    fulls: list[str],
    principal: Sequence[str] | None,
    attribute: Sequence[str] | None,
    groups: Sequence[str] | None,
) -> list[str]:
    """The weight of each class by a fitted model."""
    offsets = getattr(model, "group_offsets_", None)
    if len(inner.principals_) > 1:
        raise UserError("the model subtracts several principals", expected="one, for an expression")
    part = inner.principals_[0]
    if isinstance(part, GroupPrincipal):
        if part.interpolate and offsets is not None:
            raise UserError(
                "the model has bands of scores in which strips are selected in turn (interpolate=True)",
                do="export it as ONNX, or fit it without interpolate.",
            )
        by_group = (
            np.exp(-offsets) if offsets is not None else (inner.class_prior_ / part.group_proba_) ** inner.strength
        )
        unknown = np.ones(len(fulls))
        if offsets is None:
            unknown = (inner.class_prior_ / part.class_prior_) ** inner.strength
        names = groups or inner.sensitive_columns
        if names is None or not all(isinstance(name, str) for name in names):
            raise UserError("the model needs the groups", do="name their columns: groups=, or --groups.")
        return _by_group(fulls, part, inner, [str(name) for name in names], by_group, unknown)
    if offsets is not None:
        if attribute is None or not isinstance(part, ProxyPrincipal):
            raise UserError(
                "the model has fitted offsets for the groups as estimated from the features",
                do="name the columns of p(group | x): attribute=, or --attribute.",
            )
        return _by_attribute(fulls, part, _columns("attribute", attribute), offsets)
    if inner.strength == 0:
        return fulls
    if principal is None:
        raise UserError(
            "the model needs the principal probabilities", do="name their columns: principal=, or --principal."
        )
    return _by_principal(fulls, _columns("principal", principal), inner.class_prior_, inner.strength)


def _by_principal(fulls: list[str], principals: list[str], prior: Floats, strength: float) -> list[str]:
    r"""``full \ principal``."""
    if len(fulls) != len(principals):
        raise UserError(
            f"full names {len(fulls)} classes and principal {len(principals)}", do="give both the same classes."
        )
    if len(fulls) == 2:
        # both sides times both principal probabilities: nothing is divided by 0
        scale = (prior / prior.max()) ** strength
        return [_product(fulls[k], _power(principals[1 - k], strength), _factor(float(scale[k]))) for k in range(2)]
    floored = [_at_least(column, MIN_PRINCIPAL) for column in principals]
    return [
        _product(one, _power(f"({_number(float(p))} / {q})", strength))
        for one, q, p in zip(fulls, floored, prior, strict=True)
    ]


def _by_group(
    fulls: list[str],
    part: GroupPrincipal,
    inner: OrthogonalClassifier,
    columns: list[str],
    by_group: Floats,
    unknown: Floats,
) -> list[str]:
    """One factor for each class and group."""
    groupings = getattr(inner, "groupings", None)
    learned: Groups = part.groups_ if groupings is None else groupings.crossed
    if len(columns) != len(learned.values):
        raise UserError(f"{len(columns)} columns of groups are named", expected=f"{len(learned.values)}, as in fit")
    quoted = [_quoted(column) for column in columns]
    known = np.arange(len(learned.labels))
    if groupings is not None:
        known = part.groups_.codes(np.array(groupings.crossed.names, dtype=object))
    conditions: dict[int, list[str]] = {}
    sizes = [len(values) for values in learned.values]
    for crossed in learned.present:
        code = int(learned._found(np.array([crossed]))[0])
        tests = [
            _is_value(column, at, values, edges)
            for column, at, values, edges in zip(
                quoted, np.unravel_index(crossed, sizes), learned.values, learned.edges, strict=True
            )
        ]
        conditions.setdefault(int(known[code]) if code >= 0 else -1, []).append(" AND ".join(tests))
    missing = " OR ".join(f"{column} IS NULL" for column in quoted)
    # a group that was not there at fit time: refused by Python, NULL here, unless rows in no group have one correction
    lenient = groupings is not None or part.unseen == "prior"
    found = [fulls[0]]
    # only ratios matter: that of the first class is 1 in all groups
    by_group, unknown = by_group / by_group[:, :1], unknown / unknown[0]
    for k, full in enumerate(fulls[1:], start=1):
        whens = [f"WHEN {missing} THEN {_number(float(unknown[k]))}"]
        for code, tests in conditions.items():
            factor = by_group[code, k] if code >= 0 else unknown[k]
            whens.append(f"WHEN {' OR '.join(tests)} THEN {_number(float(factor))}")
        otherwise = f" ELSE {_number(float(unknown[k]))}" if lenient else ""
        found.append(_product(full, f"CASE {' '.join(whens)}{otherwise} END"))
    return found


def _is_value(column: str, at: Any, values: list[Any], edges: list[float] | None) -> str:
    """Whether a column has the value, or is in the bin, of a position."""
    if edges is None:
        return f"{column} = {_literal(values[at])}"
    low = [] if at == 0 else [f"{column} >= {_number(edges[at - 1])}"]
    high = [] if at == len(edges) else [f"{column} < {_number(edges[at])}"]
    return " AND ".join([*low, *high]) or f"{column} = {column}"


def _by_attribute(fulls: list[str], part: ProxyPrincipal, attribute: list[str], offsets: Floats) -> list[str]:
    """The offsets times ``p(u, y | x) / p(u, y)``, or times p(u | x)."""
    n_groups, n_classes = part.group_proba_.shape
    if len(attribute) != n_groups:
        raise UserError(
            f"attribute names {len(attribute)} groups", expected=f"the {n_groups} groups {part.groups_.labels}"
        )
    if part.method != "joint":
        features = attribute
    else:
        logs = [f"LN({_at_least(column, 1e-3)})" for column in attribute]
        odds = [f"({log} - {logs[-1]})" for log in logs[:-1]]
        features = [
            _product(fulls[k], given)
            for k in range(n_classes)
            for given in _given_label(part, odds, k, part.group_prior_ * part.group_proba_[:, k])
        ]
    found = []
    for k, full in enumerate(fulls):
        terms = [
            _product(feature, _number(-float(offset)))
            for feature, offset in zip(features, offsets[:, k], strict=True)
            if offset != 0
        ]
        found.append(_product(full, f"EXP({' + '.join(terms)})") if terms else full)
    return found


def _given_label(part: ProxyPrincipal, odds: list[str], k: int, pairs: Floats) -> list[str]:
    """p(u | x, y = k) / p(u, y = k) for each group, by the logistic regression of the principal."""
    model = part.joint_model_
    n_groups, n_classes = part.group_proba_.shape
    weight, label, products = np.split(model.coef_, np.cumsum([n_groups - 1, n_classes - 1]), axis=1)
    bias = model.intercept_
    if k > 0:
        weight = weight + products.reshape(len(weight), n_groups - 1, n_classes - 1)[:, :, k - 1]
        bias = bias + label[:, k - 1]
    scores = [
        " + ".join([_number(float(b)), *(_product(odd, _number(float(w))) for odd, w in zip(odds, row, strict=True))])
        for row, b in zip(weight, bias, strict=True)
    ]
    if len(scores) == 1:
        return [
            f"({_number(1 / float(pairs[u]))} / (1E0 + EXP({sign}({scores[0]}))))" for u, sign in enumerate(("", "-"))
        ]
    total = " + ".join(f"EXP({score})" for score in scores)
    return [f"({_number(1 / float(pairs[u]))} * EXP({score}) / ({total}))" for u, score in enumerate(scores)]


def _decision(weights: list[str], offsets: Floats, classes: list[Any], *, last_at_tie: bool) -> str:
    """The class with the largest weight after its offset; no class where some value is NULL."""
    scale = np.exp(offsets - offsets.max())
    scaled = [_product(weight, _factor(float(one))) for weight, one in zip(weights, scale, strict=True)]
    whens = []
    for k, label in enumerate(classes):
        tests = [
            f"{scaled[k]} {'>=' if (j < k) == last_at_tie else '>'} {other}" for j, other in enumerate(scaled) if j != k
        ]
        whens.append(f"WHEN {' AND '.join(tests)} THEN {_literal(label)}")
    return f"CASE {' '.join(whens)} END"


# ---- the language


def _columns(role: str, names: Sequence[str]) -> list[str]:
    """Quoted columns; a single one gets its complement."""
    if isinstance(names, str) or not names:
        raise UserError(f"{role} is {names!r}", expected="the names of columns, one for each class")
    quoted = [_quoted(name) for name in names]
    return [f"(1E0 - {quoted[0]})", quoted[0]] if len(quoted) == 1 else quoted


def _quoted(name: str) -> str:
    if not name or "\0" in name:
        raise UserError(f"a column is called {name!r}", expected="a name without a NUL character")
    return '"' + name.replace('"', '""') + '"'


def _number(value: float) -> str:
    """A literal with all digits, and with an exponent: without one, some engines take it for a decimal."""
    if not np.isfinite(value):
        raise UserError(f"a number of the correction is {value}", do="fit the model on groups with more rows.")
    text = repr(float(value)).replace("e", "E").removesuffix(".0")
    return text if "E" in text else f"{text}E0"


def _literal(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating):
        return _number(float(value))
    if not isinstance(value, str) or "\0" in value:
        raise UserError(f"{value!r} has no SQL literal", expected="text, a number or a truth value")
    return "'" + value.replace("'", "''") + "'"


def _factor(value: float) -> str | None:
    return None if value == 1 else _number(value)


def _product(*factors: str | None) -> str:
    return " * ".join(factor for factor in factors if factor is not None)


def _power(base: str, exponent: float) -> str | None:
    if exponent == 0:
        return None
    return base if exponent == 1 else f"POWER({base}, {_number(exponent)})"


def _at_least(column: str, floor: float) -> str:
    # not GREATEST, which SQLite calls MAX; NULL stays NULL
    return f"CASE WHEN {column} < {_number(floor)} THEN {_number(floor)} ELSE {column} END"
