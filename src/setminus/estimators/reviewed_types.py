"""What a model file may hold without being trusted by name: a positive list, each entry reviewed.

An entry is safe in one of three ways, which SECURITY.md lists: it holds plain data; it computes with numpy, which
checks every index; or it computes with compiled code that does not, and `model_contents` checks its content instead.
"""

from __future__ import annotations

import functools

import numpy as np

__all__ = ["refused_name"]

_OWN = {
    "setminus.adaptation.adapter": "OrthogonalAdapter",
    "setminus.estimators.frontier": "Frontier",
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


def refused_name(loader: str, module: str, name: str) -> str | None:
    """The name to refuse a node of a model file by; None where it is on the list.

    A type counts for the loader that it was reviewed with: one that calls what it loads is no way round the list.

    Parameters
    ----------
    loader : str
        The kind of node, as skops calls it.
    module, name : str
        The type or function that the node stands for.

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
        # of check_array only, which `model_contents` sees to
        "PartialNode": frozenset({"functools.partial"}),
        # of the bit generator PCG64 only, likewise
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
