"""Trees of scikit-learn, LightGBM and XGBoost as one ONNX node, in float64 and with sets of categories.

The converters of skl2onnx and onnxmltools round thresholds and leaves to float32 and have no categories of
HistGradientBoosting.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from setminus.errors import UserError
from setminus.export.graph import Graph

__all__ = ["Tree", "boosted_trees", "forest_trees", "lightgbm_scores", "tree_scores", "xgboost_scores"]

LESS_EQUAL, LESS, MEMBER = 0, 1, 6
"""Modes of the operator TreeEnsemble."""


@dataclass(frozen=True)
class Tree:
    """A tree whose rows go left where ``x <= threshold``, or ``x in members``; node 0 is the root.

    Attributes
    ----------
    feature, left, right : sequence of int
        `left` of a leaf is -1.
    threshold : sequence of float
    missing_left : sequence of bool
        Where NaN goes.
    value : sequence of float
        Of a leaf.
    members : dict of int to sequence of float
        The categories that go left, by node; for categorical splits only.
    target : int
        The column of the scores that the leaves are added to.
    """

    feature: Sequence[int]
    threshold: Sequence[float]
    left: Sequence[int]
    right: Sequence[int]
    missing_left: Sequence[bool]
    value: Sequence[float]
    members: Mapping[int, Sequence[float]]
    target: int = 0


def tree_scores(graph: Graph, x: str, trees: Sequence[Tree], n_targets: int = 1, mode: int = LESS_EQUAL) -> str:
    """Add the leaves of all trees: a tensor of shape (n, n_targets)."""
    nodes: dict[str, list[Any]] = {
        name: [] for name in ("feature", "mode", "split", "true", "true_leaf", "false", "false_leaf", "missing")
    }
    members: list[float] = []
    weights: list[float] = []
    targets: list[int] = []
    roots: list[int] = []

    def leaf(value: float, target: int) -> int:
        weights.append(value)
        targets.append(target)
        return len(weights) - 1

    for tree in trees:
        first = len(nodes["feature"])
        roots.append(first)
        inner = [node for node in range(len(tree.left)) if tree.left[node] >= 0]
        place = {node: first + at for at, node in enumerate(inner)}
        for node in inner or [0]:
            children = (tree.left[node], tree.right[node]) if inner else (0, 0)
            for side, child in zip(("true", "false"), children, strict=True):
                nodes[side].append(place[child] if child in place else leaf(tree.value[child], tree.target))
                nodes[f"{side}_leaf"].append(int(child not in place))
            nodes["feature"].append(tree.feature[node] if inner else 0)
            nodes["mode"].append(MEMBER if node in tree.members else mode)
            nodes["split"].append(0.0 if node in tree.members else tree.threshold[node])
            nodes["missing"].append(int(tree.missing_left[node]))
            if node in tree.members:
                # an empty set holds what is no code
                members += [*(tree.members[node] or [-1.0]), np.nan]
    sets = {"membership_values": _tensor(members, np.float64)} if members else {}
    return graph.add(
        "TreeEnsemble",
        x,
        aggregate_function=1,
        n_targets=n_targets,
        post_transform=0,
        tree_roots=roots,
        nodes_featureids=nodes["feature"],
        nodes_modes=_tensor(nodes["mode"], np.uint8),
        nodes_splits=_tensor(nodes["split"], np.float64),
        nodes_truenodeids=nodes["true"],
        nodes_trueleafs=nodes["true_leaf"],
        nodes_falsenodeids=nodes["false"],
        nodes_falseleafs=nodes["false_leaf"],
        nodes_missing_value_tracks_true=nodes["missing"],
        leaf_targetids=targets,
        leaf_weights=_tensor(weights, np.float64),
        **sets,
    )


def _tensor(values: Sequence[Any], kind: Any) -> Any:
    return numpy_helper.from_array(np.array(values, dtype=kind))


def boosted_trees(model: Any) -> list[Tree]:
    """The trees of a fitted HistGradientBoosting model, for rows as its preprocessor encodes them."""
    return [_boosted(predictor, target) for trees in model._predictors for target, predictor in enumerate(trees)]


def _boosted(predictor: Any, target: int) -> Tree:
    nodes = predictor.nodes
    split = ~nodes["is_leaf"].astype(bool)
    members = {
        int(node): _bits(predictor.raw_left_cat_bitsets[nodes["bitset_idx"][node]])
        for node in np.flatnonzero(split & nodes["is_categorical"].astype(bool))
    }
    return Tree(
        feature=nodes["feature_idx"].tolist(),
        threshold=nodes["num_threshold"].tolist(),
        left=np.where(split, nodes["left"].astype(np.int64), -1).tolist(),
        right=nodes["right"].tolist(),
        missing_left=nodes["missing_go_to_left"].astype(bool).tolist(),
        value=nodes["value"].tolist(),
        members=members,
        target=target,
    )


def _bits(words: NDArray[np.uint32]) -> list[float]:
    """The positions of the bits that are set."""
    return (
        np.flatnonzero(np.unpackbits(np.ascontiguousarray(words).view(np.uint8), bitorder="little"))
        .astype(float)
        .tolist()
    )


def forest_trees(model: Any) -> list[Tree]:
    """The trees of a decision tree or a forest of them, for rows as float32; their leaves add up to probabilities.

    With two classes the one score is the probability of the second, otherwise there is one for each class.
    """
    estimators = getattr(model, "estimators_", [model])
    n_classes = len(model.classes_)
    targets = [1] if n_classes == 2 else [*range(n_classes)]
    return [
        Tree(
            feature=one.tree_.feature.tolist(),
            threshold=one.tree_.threshold.tolist(),
            left=one.tree_.children_left.tolist(),
            right=one.tree_.children_right.tolist(),
            missing_left=one.tree_.missing_go_to_left.astype(bool).tolist(),
            value=(one.tree_.value[:, 0, target] / len(estimators)).tolist(),
            members={},
            target=at,
        )
        for one in estimators
        for at, target in enumerate(targets)
    ]


def lightgbm_scores(graph: Graph, x: str, model: Any) -> str:
    """The raw scores of a fitted LGBMClassifier, of one column for two classes."""
    dump = model.booster_.dump_model(num_iteration=model.best_iteration_ or None)
    objective = str(dump["objective"])
    if not objective.startswith(("binary", "multiclass ")) or dump["average_output"] or dump.get("pandas_categorical"):
        raise UserError(
            f"LightGBM with the objective {objective!r}, averaged trees or categories of pandas cannot be exported",
            do="use the objectives binary or multiclass on arrays of numbers.",
        )
    n_targets = dump["num_tree_per_iteration"]
    trees = [_lightgbm_tree(info["tree_structure"], at % n_targets) for at, info in enumerate(dump["tree_info"])]
    scores = tree_scores(graph, x, trees, n_targets)
    slope = float(next((word[8:] for word in objective.split() if word.startswith("sigmoid:")), 1.0))
    return scores if slope == 1 else graph.add("Mul", scores, graph.constant(slope))


def _lightgbm_tree(root: dict[str, Any], target: int) -> Tree:
    def walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield node
        for side in ("left_child", "right_child"):
            if side in node:
                yield from walk(node[side])

    nodes = list(walk(root))
    place = {id(node): at for at, node in enumerate(nodes)}
    members = {
        at: [float(code) for code in node["threshold"].split("||")]
        for at, node in enumerate(nodes)
        if node.get("decision_type") == "=="
    }
    if any("leaf_coeff" in node or node.get("missing_type") == "Zero" for node in nodes):
        raise UserError("LightGBM with linear leaves or zero_as_missing cannot be exported", do="fit it without them.")
    # without missing values in training NaN counts as 0; it is in no set of categories
    missing_left = [
        at not in members
        and bool(node.get("default_left") if node.get("missing_type") == "NaN" else node.get("threshold", 0) >= 0)
        for at, node in enumerate(nodes)
    ]
    return Tree(
        feature=[node.get("split_feature", 0) for node in nodes],
        threshold=[0.0 if at in members else float(node.get("threshold", 0)) for at, node in enumerate(nodes)],
        left=[place[id(node["left_child"])] if "left_child" in node else -1 for node in nodes],
        right=[place[id(node["right_child"])] if "right_child" in node else -1 for node in nodes],
        missing_left=missing_left,
        value=[float(node.get("leaf_value", 0.0)) for node in nodes],
        members=members,
        target=target,
    )


def xgboost_scores(graph: Graph, x: str, model: Any) -> str:
    """The raw scores of a fitted XGBClassifier, of one column for two classes."""
    learner = json.loads(bytes(model.get_booster().save_raw("json")))["learner"]
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]
    if objective not in ("binary:logistic", "multi:softprob", "multi:softmax") or booster["name"] != "gbtree":
        raise UserError(
            f"XGBoost with the objective {objective!r} and the booster {booster['name']!r} cannot be exported",
            do="use binary:logistic or multi:softprob, and gbtree.",
        )
    base = np.atleast_1d(np.asarray(json.loads(learner["learner_model_param"]["base_score"]), dtype=np.float64))
    if objective == "binary:logistic":
        base = np.log(base) - np.log1p(-base)
    n_targets = 1 if objective == "binary:logistic" else int(learner["learner_model_param"]["num_class"])
    stop = getattr(model, "best_iteration", None) if getattr(model, "early_stopping_rounds", None) else None
    trees = [
        _xgboost_tree(tree, target)
        for tree, target in zip(booster["model"]["trees"], booster["model"]["tree_info"], strict=True)
    ]
    per_round = n_targets * max(1, int(booster["model"]["gbtree_model_param"].get("num_parallel_tree", 1)))
    trees = trees if stop is None else trees[: (stop + 1) * per_round]
    # rows and thresholds are float32 there
    rounded = graph.cast(graph.cast(x, TensorProto.FLOAT))
    return graph.add("Add", tree_scores(graph, rounded, trees, n_targets, LESS), graph.constant(base))


def _xgboost_tree(tree: dict[str, Any], target: int) -> Tree:
    if tree.get("categories_nodes"):
        raise UserError("XGBoost with categories cannot be exported", do="use one column for each level.")
    conditions = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64).tolist()
    return Tree(
        feature=tree["split_indices"],
        threshold=conditions,
        left=tree["left_children"],
        right=tree["right_children"],
        missing_left=[bool(left) for left in tree["default_left"]],
        # for a leaf, the value is stored as its condition
        value=conditions,
        members={},
        target=target,
    )
