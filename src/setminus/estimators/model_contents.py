"""What a model file may contain without being trusted by name: a list of reviewed types, and checks of their values.

A type is safe in one of three ways, which SECURITY.md lists: it holds plain data; it computes with numpy, which checks
every index; or it computes with compiled code that does not check, and its contents are checked here after loading. An
index that is too large would read or write other memory, and a tree with a branch that leads back up would loop
forever.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, PolynomialFeatures
from sklearn.svm import SVC, NuSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor
from sklearn.tree._tree import Tree
from sklearn.utils.validation import check_array

__all__ = ["DamagedError", "check_contents", "outside_settings", "refused_name"]

_OWN = {
    "setminus.adaptation.adapter": "OrthogonalAdapter",
    "setminus.adaptation.prior_correction": "PriorCorrectedClassifier",
    "setminus.core.certificate": "Certificate NoiseFloor",
    "setminus.estimators.frontier": "Candidates Frontier",
    "setminus.estimators.groupings": "Groupings",
    "setminus.estimators.groups": "Groups",
    "setminus.estimators.importance": "ImportanceWeightedClassifier",
    "setminus.estimators.orthogonal": "OrthogonalClassifier",
    "setminus.estimators.principals": "GroupPrincipal ProxyPrincipal",
    "setminus.estimators.tuned": "TunedOrthogonalClassifier",
    "setminus.tables.encoding": "TableEncoder",
}
_NUMPY_ONLY = {
    "sklearn._loss.link": "HalfLogitLink IdentityLink Interval LogLink LogitLink MultinomialLogit",
    "sklearn._loss.loss": (
        "AbsoluteError ExponentialLoss HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss HalfPoissonLoss "
        "HalfSquaredError HuberLoss PinballLoss"
    ),
    "sklearn.calibration": ("CalibratedClassifierCV _CalibratedClassifier _SigmoidCalibration _TemperatureScaling"),
    "sklearn.compose._column_transformer": "ColumnTransformer",
    "sklearn.decomposition._factor_analysis": "FactorAnalysis",
    "sklearn.decomposition._fastica": "FastICA",
    "sklearn.decomposition._incremental_pca": "IncrementalPCA",
    "sklearn.decomposition._pca": "PCA",
    "sklearn.decomposition._truncated_svd": "TruncatedSVD",
    "sklearn.discriminant_analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "sklearn.dummy": "DummyClassifier DummyRegressor",
    "sklearn.ensemble._bagging": "BaggingClassifier BaggingRegressor",
    "sklearn.ensemble._forest": (
        "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier RandomForestRegressor"
    ),
    "sklearn.ensemble._weight_boosting": "AdaBoostClassifier AdaBoostRegressor",
    "sklearn.feature_extraction.text": "TfidfTransformer",
    "sklearn.feature_selection._from_model": "SelectFromModel",
    "sklearn.feature_selection._rfe": "RFE RFECV",
    "sklearn.feature_selection._sequential": "SequentialFeatureSelector",
    "sklearn.feature_selection._variance_threshold": "VarianceThreshold",
    "sklearn.frozen._frozen": "FrozenEstimator",
    "sklearn.impute._base": "MissingIndicator SimpleImputer",
    "sklearn.isotonic": "IsotonicRegression",
    "sklearn.kernel_approximation": "RBFSampler",
    "sklearn.linear_model._base": "LinearRegression",
    "sklearn.linear_model._bayes": "ARDRegression BayesianRidge",
    "sklearn.linear_model._coordinate_descent": (
        "ElasticNet ElasticNetCV Lasso LassoCV MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso "
        "MultiTaskLassoCV"
    ),
    "sklearn.linear_model._glm.glm": "GammaRegressor PoissonRegressor",
    "sklearn.linear_model._huber": "HuberRegressor",
    "sklearn.linear_model._least_angle": "Lars LarsCV LassoLars LassoLarsCV LassoLarsIC",
    "sklearn.linear_model._logistic": "LogisticRegression LogisticRegressionCV",
    "sklearn.linear_model._omp": "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV",
    "sklearn.linear_model._passive_aggressive": "PassiveAggressiveClassifier PassiveAggressiveRegressor",
    "sklearn.linear_model._perceptron": "Perceptron",
    "sklearn.linear_model._quantile": "QuantileRegressor",
    "sklearn.linear_model._ridge": "Ridge RidgeCV RidgeClassifier RidgeClassifierCV",
    "sklearn.linear_model._stochastic_gradient": "SGDClassifier SGDRegressor",
    "sklearn.linear_model._theil_sen": "TheilSenRegressor",
    "sklearn.model_selection._classification_threshold": "FixedThresholdClassifier",
    "sklearn.multiclass": "OneVsOneClassifier",
    "sklearn.multioutput": "ClassifierChain MultiOutputClassifier MultiOutputRegressor RegressorChain",
    "sklearn.naive_bayes": "BernoulliNB CategoricalNB ComplementNB GaussianNB MultinomialNB",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing._data": (
        "Binarizer MaxAbsScaler MinMaxScaler Normalizer PowerTransformer QuantileTransformer RobustScaler "
        "StandardScaler"
    ),
    "sklearn.preprocessing._discretization": "KBinsDiscretizer",
    "sklearn.preprocessing._encoders": "OrdinalEncoder",
    "sklearn.preprocessing._function_transformer": "FunctionTransformer",
    "sklearn.preprocessing._label": "LabelBinarizer LabelEncoder",
    "sklearn.preprocessing._target_encoder": "TargetEncoder",
    "sklearn.random_projection": "GaussianRandomProjection",
    "sklearn.semi_supervised._self_training": "SelfTrainingClassifier",
    "sklearn.svm._classes": "LinearSVC LinearSVR",
}
_CONTENT_CHECKED = {
    "sklearn.ensemble._hist_gradient_boosting.binning": "_BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": (
        "HistGradientBoostingClassifier HistGradientBoostingRegressor"
    ),
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "sklearn.feature_extraction.text": "CountVectorizer TfidfVectorizer",
    "sklearn.preprocessing._encoders": "OneHotEncoder",
    "sklearn.preprocessing._polynomial": "PolynomialFeatures",
    "sklearn.svm._classes": "NuSVC SVC",
    "sklearn.tree._classes": "DecisionTreeClassifier DecisionTreeRegressor ExtraTreeClassifier ExtraTreeRegressor",
}
_LOSSES = {
    "sklearn._loss._loss": (
        "CyAbsoluteError CyExponentialLoss CyHalfBinomialLoss CyHalfGammaLoss CyHalfMultinomialLoss CyHalfPoissonLoss "
        "CyHalfSquaredError CyHuberLoss CyPinballLoss"
    ),
    "sklearn.linear_model._sgd_fast": ("EpsilonInsensitive Hinge ModifiedHuber SquaredEpsilonInsensitive SquaredHinge"),
}
# elementwise, and quick whatever the numbers are; scipy has each of them under one of three names
_SPECIAL = (
    "boxcox boxcox1p cbrt erf exp10 exp2 expit expm1 inv_boxcox inv_boxcox1p log1p log_expit logit ndtr ndtri xlogy"
)

NAMED = type, FunctionType, BuiltinFunctionType, np.ufunc
"""Objects that a file holds by name only; their attributes are not part of the model."""
MAX_JOBS, MAX_POWER = 1024, 100
WORD = r"(?u)\b\w\w+\b"
SETTINGS: dict[str, tuple[Any, ...]] = {
    # a vectorizer would open the files that a table names
    "input": ("content",),
    # some patterns take forever on some texts
    "token_pattern": (WORD,),
    # a folder to write to, and to load pickles from
    "memory": (None,),
    # a keyword such as out= would write into another part of the model
    "kw_args": (None, {}),
    "inv_kw_args": (None, {}),
}
"""Parameters of any estimator that may have these values only, compared with their type."""


class DamagedError(ValueError):
    """A damaged model file; the message is for the user."""


def refused_name(loader: str, module: str, name: str) -> str | None:
    """The name under which a node of a model file is refused; None where it is on the list.

    A type is allowed only with the loader (the kind of node, in the words of skops) that it was reviewed with.

    Examples
    --------
    >>> refused_name("ObjectNode", "sklearn.preprocessing._data", "StandardScaler") is None
    True
    >>> refused_name("FunctionNode", "posix", "system")
    'posix.system'
    """
    full = f"{module}.{name}"
    return None if full in _reviewed().get(loader, ()) else full


@functools.cache
def _reviewed() -> dict[str, frozenset[str]]:
    ufuncs = [one for one in vars(np).values() if isinstance(one, np.ufunc)]
    # other packages add types of their own to this table
    scalars = {f"numpy.{kind.__name__}" for kind in np.sctypeDict.values() if kind.__module__ == "numpy"}
    return {
        "BytesNode": frozenset({"builtins.bytes"}),
        "DTypeNode": frozenset({"numpy.dtype"}),
        "DictNode": frozenset({"builtins.dict", "collections.OrderedDict"}),
        "FunctionNode": frozenset(
            {
                "sklearn.utils.validation.check_array",
                *(f"numpy.{one.__name__}" for one in ufuncs),
                *_names(dict.fromkeys(("scipy.special", "scipy.special._special_ufuncs"), _SPECIAL)),
                *_names({"scipy.special._ufuncs": _SPECIAL}),
            }
        ),
        "JsonNode": frozenset({"builtins.str"}),
        "ListNode": frozenset({"builtins.list"}),
        "LossNode": _names(_LOSSES),
        "MaskedArrayNode": frozenset({"numpy.ma.MaskedArray"}),
        "NdArrayNode": frozenset({"numpy.ndarray", *scalars}),
        "ObjectNode": _names(_OWN) | _names(_NUMPY_ONLY) | _names(_CONTENT_CHECKED),
        # of check_array only: see `outside_settings`
        "PartialNode": frozenset({"functools.partial"}),
        # of the bit generator PCG64 only: see `_check_generator`
        "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
        "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
        "SetNode": frozenset({"builtins.set"}),
        "SliceNode": frozenset({"builtins.slice"}),
        "TreeNode": frozenset({"sklearn.tree._tree.Tree"}),
        "TupleNode": frozenset({"builtins.tuple"}),
        "TypeNode": frozenset({"builtins.bool", "builtins.float", "builtins.int", "builtins.str", *scalars}),
    }


def _names(modules: dict[str, str]) -> frozenset[str]:
    return frozenset(f"{module}.{name}" for module, names in modules.items() for name in names.split())


def outside_settings(model: Any) -> list[str]:
    """Settings with effects beyond computing with the model's own numbers.

    Parameters are named ``module.Class(parameter=value)``; functions that would be called with arguments from the file
    are named too.
    """
    found = []
    for part in _parts(model):
        if isinstance(part, functools.partial) and part.func is not check_array:
            found.append(f"{getattr(part.func, '__module__', 'numpy')}.{part.func.__name__}")
        if not isinstance(part, BaseEstimator):
            continue
        for name, value in vars(part).items():
            allowed = SETTINGS.get(name)
            if allowed is not None and not any(type(value) is type(one) and value == one for one in allowed):
                found.append(f"{type(part).__module__}.{type(part).__qualname__}({name}={value!r})")
    return found


def check_contents(model: Any) -> None:
    """Raise where a part of a model could make compiled code leave its memory, or loop forever."""
    for part in _parts(model):
        if type(part).__module__.partition(".")[0] in ("setminus", "sklearn"):
            _check_attributes(part)
        check = CHECKS.get(type(part))
        if check is not None and not check(part):
            raise DamagedError(f"a {type(part).__name__} with values out of range")


def _parts(model: Any) -> Iterator[Any]:
    """Everything that a model holds, each object once."""
    seen: dict[int, Any] = {}
    stack = [model]
    while stack:
        part = stack.pop()
        if id(part) in seen:
            continue
        # kept alive, so that no id is used twice
        seen[id(part)] = part
        yield part
        if isinstance(part, dict):
            stack += [*part, *part.values()]
        elif isinstance(part, list | tuple | set):
            stack += part
        elif isinstance(part, np.ndarray):
            stack += part.ravel().tolist() if part.dtype.hasobject else ()
        elif isinstance(part, functools.partial):
            stack += [part.func, part.args, part.keywords]
        elif not isinstance(part, NAMED):
            stack += getattr(part, "__dict__", {}).values()


def _check_attributes(part: Any) -> None:
    attributes = getattr(part, "__dict__", {})
    # a default of a dataclass stands on its class
    fields = getattr(type(part), "__dataclass_fields__", ())
    known = part._get_param_names() if isinstance(part, BaseEstimator) else fields
    for name in attributes:
        # an attribute with the name of a method would be called instead of it
        if hasattr(type(part), name) and name not in known:
            raise DamagedError(f"a {type(part).__name__} whose attribute {name!r} hides one of its class")
    jobs: Any = attributes.get("n_jobs")
    if jobs is not None and not (isinstance(jobs, int | np.integer) and abs(int(jobs)) <= MAX_JOBS):
        raise DamagedError(f"a {type(part).__name__} that would start {jobs!r} processes")


def _check_random_state(part: np.random.RandomState) -> bool:
    state: Any = part.get_state(legacy=False)
    # numpy does not check this index into a table
    return bool(state["bit_generator"] == "MT19937" and 0 <= state["state"]["pos"] <= len(state["state"]["key"]))


def _check_generator(part: np.random.Generator) -> bool:
    # the state of other generators holds an index into a table, too
    return type(part.bit_generator) is np.random.PCG64


def _check_vocabulary(part: Any) -> bool:
    places = getattr(part, "vocabulary_", {})
    return (
        type(places) is dict
        and all(type(place) is int for place in places.values())
        and sorted(places.values()) == list(range(len(places)))
    )


def _check_powers(part: Any) -> bool:
    # the degree is the length of a loop
    return _count(part, "_max_degree") <= MAX_POWER


def _check_tree(part: Tree) -> bool:
    if not (part.node_count == part.capacity >= 1 and part.n_outputs >= 1 and part.max_n_classes >= 1):
        return False
    left, right = part.children_left, part.children_right
    inner = left != -1
    return (
        _grows(inner, left, right)
        and _within(part.feature[inner], part.n_features)
        # decision_path makes room for paths of this length
        and part.max_depth >= _depth(inner, left, right)
    )


def _check_tree_owner(part: Any) -> bool:
    tree = getattr(part, "tree_", None)
    # without n_features_in_ scikit-learn does not check the width of X
    return tree is None or (type(tree) is Tree and _count(part, "n_features_in_") == tree.n_features)


def _check_boosting(part: Any) -> bool:
    if not hasattr(part, "_predictors"):
        return True
    width, mapper, encode = _count(part, "n_features_in_"), part._bin_mapper, part._preprocessor
    categorical = mapper.is_categorical_
    return (
        not hasattr(part, "_in_fit")
        and (encode is None or _keeps_width(encode, width))
        and type(mapper) is _BinMapper
        and _is_array(categorical, np.uint8, (width,))
        and all(len(trees) == _count(part, "n_trees_per_iteration_") for trees in part._predictors)
        and all(_check_predictor(tree, categorical) for trees in part._predictors for tree in trees)
    )


def _check_predictor(tree: Any, categorical: NDArray[np.uint8]) -> bool:
    nodes: Any = getattr(tree, "nodes", None)
    if type(tree) is not TreePredictor or not _is_array(nodes, PREDICTOR_RECORD_DTYPE, (None,)) or not len(nodes):
        return False
    bits = tree.raw_left_cat_bitsets, tree.binned_left_cat_bitsets
    inner = nodes["is_leaf"] == 0
    splits = nodes[inner]
    by_category = splits[splits["is_categorical"] != 0]
    return (
        all(_is_array(one, np.uint32, (None, 8)) for one in bits)
        and _grows(inner, nodes["left"], nodes["right"])
        and _within(splits["feature_idx"], len(categorical))
        and _within(by_category["bitset_idx"], min(map(len, bits)))
        and bool(categorical[by_category["feature_idx"]].all())
    )


def _keeps_width(encode: Any, width: int) -> bool:
    """Whether gradient boosting's own encoder gives as many columns as it is given."""
    if type(encode) is not ColumnTransformer or _count(encode, "n_features_in_") != width:
        return False
    taken = np.zeros(width, dtype=int)
    for name, part, columns in encode.transformers_:
        if isinstance(part, str) and part == "drop":
            continue
        plain = type(part) is FunctionTransformer and getattr(part.func, "func", None) is check_array
        if not (plain or type(part) is OrdinalEncoder) or not _is_array(columns, bool, (width,)):
            return False
        if list(encode._transformer_to_input_indices[name]) != np.flatnonzero(columns).tolist():
            return False
        taken += columns
    return bool((taken == 1).all())


def _check_one_hot(part: Any) -> bool:
    if not hasattr(part, "categories_"):
        return True
    sizes = [len(one) for one in part.categories_]
    if type(part.categories_) is not list or _count(part, "n_features_in_") != len(sizes):
        return False
    if not all(map(_is_sorted, part.categories_)):
        return False
    if part._infrequent_enabled:
        for i, (rare, mapping) in enumerate(
            zip(part._infrequent_indices, part._default_to_infrequent_mappings, strict=True)
        ):
            if rare is None and mapping is None:
                continue
            grouped = sizes[i] - len(rare) + 1
            if not (_is_array(rare, np.int64, (None,)) and _is_array(mapping, np.int64, (sizes[i],))):
                return False
            if not (_within(rare, sizes[i]) and _within(mapping, grouped)):
                return False
            sizes[i] = grouped
    dropped = part._drop_idx_after_grouping
    if dropped is not None:
        if not _is_array(dropped, object, (len(sizes),)):
            return False
        for i, place in enumerate(dropped.tolist()):
            if place is not None:
                if not (isinstance(place, int | np.integer) and 0 <= place < sizes[i]):
                    return False
                sizes[i] -= 1
    return bool(part._n_features_outs == sizes) and all(type(one) is int for one in part._n_features_outs)


def _check_vectors(part: Any) -> bool:
    if not hasattr(part, "support_vectors_"):
        return True
    vectors, counts = part.support_vectors_, part._n_support
    n, n_classes = len(vectors), len(counts)
    pairs = n_classes * (n_classes - 1) // 2
    return (
        # another kernel takes support_ for places in a row of X
        part.kernel in ("linear", "poly", "rbf", "sigmoid")
        and part._sparse is False
        and n_classes >= 2
        and _is_array(vectors, np.float64, (None, _count(part, "n_features_in_")))
        and _is_array(part.support_, np.int32, (n,))
        and _is_array(counts, np.int32, (None,))
        and bool((counts >= 0).all())
        and counts.sum() == n
        and _is_array(part._dual_coef_, np.float64, (n_classes - 1, n))
        and _is_array(part._intercept_, np.float64, (pairs,))
        and all(len(one) in (0, pairs) for one in (part._probA, part._probB))
        and len(part._probA) == len(part._probB)
    )


def _grows(inner: NDArray[np.bool_], left: NDArray[Any], right: NDArray[Any]) -> bool:
    """Whether every node but the first is the child of one before it: walking down then comes to an end."""
    parents = np.flatnonzero(inner)
    below = np.concatenate([left[inner], right[inner]]).astype(np.int64)
    return bool((below > np.tile(parents, 2)).all() and np.array_equal(np.sort(below), np.arange(1, len(inner))))


def _depth(inner: NDArray[np.bool_], left: NDArray[Any], right: NDArray[Any]) -> int:
    """The number of steps from the first node of a tree to the farthest."""
    depth, level = 0, np.flatnonzero(inner[:1])
    while len(level):
        below = np.concatenate([left[level], right[level]])
        depth, level = depth + 1, below[inner[below]]
    return depth


def _within(places: Any, size: int) -> bool:
    return bool(((places >= 0) & (places < size)).all())


def _is_array(value: Any, dtype: Any, shape: tuple[int | None, ...]) -> bool:
    """Whether a value is a plain array of this type and shape; None is any length."""
    return (
        type(value) is np.ndarray
        and value.dtype == dtype
        and value.ndim == len(shape)
        and all(wanted in (None, length) for length, wanted in zip(value.shape, shape, strict=True))
    )


def _is_sorted(categories: NDArray[Any]) -> bool:
    """Whether numbers can be looked up by bisection; words are looked up in a dictionary."""
    if type(categories) is not np.ndarray or categories.ndim != 1 or not len(categories):
        return False
    return categories.dtype.kind in "OUS" or bool(np.array_equal(np.sort(categories), categories, equal_nan=True))


def _count(part: Any, name: str) -> int:
    """A whole number that the model says of itself; 0 where it does not."""
    value = getattr(part, name, 0)
    return value if type(value) is int and value > 0 else 0


CHECKS: dict[type, Callable[[Any], bool]] = {
    np.random.Generator: _check_generator,
    np.random.RandomState: _check_random_state,
    CountVectorizer: _check_vocabulary,
    TfidfVectorizer: _check_vocabulary,
    OneHotEncoder: _check_one_hot,
    PolynomialFeatures: _check_powers,
    SVC: _check_vectors,
    NuSVC: _check_vectors,
    Tree: _check_tree,
    DecisionTreeClassifier: _check_tree_owner,
    DecisionTreeRegressor: _check_tree_owner,
    ExtraTreeClassifier: _check_tree_owner,
    ExtraTreeRegressor: _check_tree_owner,
    HistGradientBoostingClassifier: _check_boosting,
    HistGradientBoostingRegressor: _check_boosting,
}
