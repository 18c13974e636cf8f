"""The battery that every estimator passes, ours and scikit-learn's."""

import inspect
import itertools

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import check_estimator

from tagkin import FeatureAnnotator, LandmarkMap, SemanticSpace
from tagkin.features import FeatureCache
from tagkin.paper import (
    Chi2View,
    LinearSVM,
    NeighborVoting,
    TagDenoiser,
    TagProp,
    TagRelevance,
    TwoPassKNN,
)
from tagkin.transfer import KinReadout, LogisticReadout
from tests.conftest import make_collection, package_modules

# Estimators that the battery builds in other ways than by their defaults alone.
OTHER_FORMS: dict[str, list[BaseEstimator]] = {
    "FeatureAnnotator": [
        FeatureAnnotator(),
        FeatureAnnotator(SemanticSpace(n_landmarks=5), NeighborVoting(3)),
    ],
    "KinReadout": [KinReadout(), KinReadout(3, 5.0, n_landmarks=20)],
    "LandmarkMap": [LandmarkMap(), LandmarkMap(n_landmarks=5, random_state=0)],
    "LinearSVM": [LinearSVM(), LinearSVM(1.0)],
    "LogisticReadout": [LogisticReadout(), LogisticReadout(1.0, n_landmarks=20)],
    "NeighborVoting": [NeighborVoting(), NeighborVoting(n_neighbors=3, metric="euclidean")],
    "SemanticSpace": [SemanticSpace(), SemanticSpace(n_landmarks=5, random_state=0)],
    "TagDenoiser": [TagDenoiser(), TagDenoiser(n_neighbors=3, blend=1.0)],
    "TagProp": [TagProp(), TagProp(n_neighbors=3, weights="distance", sigmoids=False)],
    "TagRelevance": [TagRelevance(n_neighbors=5)],
    "TwoPassKNN": [TwoPassKNN(), TwoPassKNN(form="authors")],
}

# What these share with others; they are not used by themselves.
BASES = {
    "LabelTransfer",
    "LinearTransfer",
    "NeighborTransfer",
}

# scikit-learn's checks feed an estimator features and one column of classes. Why these cannot take
# them:
NO_BATTERY = {
    "Chi2View": "takes a label matrix for X, dense or sparse, without negative entries",
    "IndicatorView": "takes a label matrix for X, which its caller has checked",
    "LabelCalibrator": "takes a score for every label: X and y have the same shape",
    "OntologyView": "takes a label matrix for X, with as many columns as it is told names",
    "WordVectorView": "takes a label matrix for X, with as many columns as it is told names",
}


def estimator_classes():
    """(name, class) of every public estimator of the package."""
    for module in package_modules():
        for name, value in vars(module).items():
            own = inspect.isclass(value) and value.__module__ == module.__name__
            hidden = name in BASES or name.startswith("_")
            if own and issubclass(value, BaseEstimator) and not hidden:
                yield name, value


def battery() -> list[BaseEstimator]:
    """Every estimator of the package, in all of its forms."""
    estimators = [
        estimator
        for name, cls in estimator_classes()
        if name not in NO_BATTERY
        for estimator in OTHER_FORMS.get(name, [cls()])
    ]
    assert {*OTHER_FORMS, "RidgeTransfer"} <= {type(e).__name__ for e in estimators}
    return estimators


ONE_LABEL = "has one label that all images carry, so that nothing tells where it does not belong"

OTHER_LANDMARKS = "chooses landmarks without weights, so among other images if some are repeated"

OWN_TAGS = "fit_transform blends an image's own tags, which transform(X) does not have"


def not_passed(estimator):
    """Checks of scikit-learn that feed an estimator what it refuses, and why."""
    if isinstance(estimator, TagDenoiser):
        checks = ("check_transformer_general", "check_transformer_data_not_an_array")
        return dict.fromkeys(checks, OWN_TAGS) if estimator.blend < 1 else {}
    if isinstance(estimator, SemanticSpace) and estimator.n_landmarks < 10:
        return {"check_sample_weight_equivalence_on_dense_data": OTHER_LANDMARKS}
    if not isinstance(estimator, FeatureAnnotator):
        return {}
    return {"check_estimators_dtypes": ONE_LABEL, "check_fit2d_1feature": ONE_LABEL}


each_estimator = pytest.mark.parametrize("estimator", battery(), ids=repr)


@each_estimator
def test_scikit_learns_checks(estimator):
    expected = not_passed(estimator)
    checks = check_estimator(estimator, expected_failed_checks=expected, on_skip=None, on_fail=None)
    failed = [check for check in checks if check["status"] == "failed"]
    if failed:
        names = ", ".join(check["check_name"] for check in failed)
        raise ExceptionGroup(f"{estimator!r}: {names}", [check["exception"] for check in failed])
    assert {check["check_name"] for check in checks if check["status"] == "xfail"} == set(expected)
    assert sum(check["status"] == "passed" for check in checks) > 30


@pytest.mark.parametrize(("name", "cls"), list(estimator_classes()))
def test_every_parameter_is_documented_and_only_stored(name, cls):
    parameters = [p for p in inspect.signature(cls.__init__).parameters if p != "self"]
    assert set(vars(cls())) == set(parameters) - {"args", "kwargs"}
    for parameter in vars(cls()):
        assert f"    {parameter} : " in cls.__doc__, f"{name} does not document {parameter}"


@pytest.mark.parametrize(("name", "cls"), list(estimator_classes()))
def test_options_beyond_the_first_two_are_keywords(name, cls):
    parameters = list(inspect.signature(cls).parameters.values())
    positional = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
    assert len(positional) <= 2, f"write *, after the second parameter of {name}.__init__"


@pytest.mark.parametrize(("name", "cls"), list(estimator_classes()))
def test_a_clone_has_every_parameter(name, cls, tmp_path):
    """Also values that cannot be compared, or copied: an array, an open cache of features."""
    values = ["text", 7, np.arange(3.0), {"dogs": "dog"}, ["x"], FeatureCache(tmp_path)]
    for parameter, value in itertools.product(cls().get_params(deep=False), values):
        copy = clone(cls(**{parameter: value})).get_params(deep=False)[parameter]
        if isinstance(value, FeatureCache):
            assert copy is value, f"{name}(cache=…) keeps features elsewhere"
        else:
            np.testing.assert_array_equal(copy, value)


@pytest.mark.parametrize("name", ["SemanticSpace", "FeatureAnnotator"])
def test_a_clone_of_an_estimator_with_another_in_it(name):
    """Is not fitted, has the inner one's parameters, and is another object."""
    cls = dict(estimator_classes())[name]
    inner = {
        "SemanticSpace": {"text_view": Chi2View()},
        "FeatureAnnotator": {"space": SemanticSpace(0.1), "method": NeighborVoting(9)},
    }[name]
    copy = clone(cls(**inner))
    for parameter, value in inner.items():
        nested = getattr(copy, parameter)
        assert nested is not value
        assert (type(nested), nested.get_params()) == (type(value), value.get_params())


@each_estimator
def test_input_is_left_alone(estimator):
    X, Y, X_new = make_collection()
    for array in (X, Y, X_new):
        array.flags.writeable = False
    before = X.copy(), Y.copy(), X_new.copy()
    estimator.fit(X, Y)
    if hasattr(estimator, "kneighbors") and not hasattr(estimator, "decision_function"):
        estimator.kneighbors(X_new, 3)
    elif hasattr(estimator, "transform"):
        estimator.transform(X_new)
    else:
        estimator.decision_function(X_new)
    for array, copy in zip((X, Y, X_new), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_random_state_has_one_default():
    """Of estimators and of public functions: the same result twice, unless told otherwise."""
    defaults = {}
    for module in package_modules():
        for name, value in vars(module).items():
            own = getattr(value, "__module__", "") == module.__name__ and not name.startswith("_")
            if not own or not (inspect.isfunction(value) or hasattr(value, "get_params")):
                continue
            parameter = inspect.signature(value).parameters.get("random_state")
            if parameter is not None and parameter.default is not parameter.empty:
                defaults[f"{module.__name__}.{name}"] = parameter.default
    assert len(defaults) > 10
    assert set(defaults.values()) == {0}, defaults
