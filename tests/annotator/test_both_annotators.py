"""`Annotator` and `FeatureAnnotator` do the same by the same names."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from tagkin import Annotator, FeatureAnnotator

from .conftest import seen

SHARED = [
    *("__init__", "fit", "partial_fit", "suggest", "predict_proba", "similar", "audit"),
    *("cross_validate", "save", "describe"),
]


def options(method):
    parameters = inspect.signature(method).parameters.values()
    return {p.name: p for p in parameters if p.name != "self"}


@pytest.mark.parametrize("name", SHARED)
def test_shared_options_have_the_same_defaults_and_are_passed_alike(name):
    photographs, features = (options(getattr(cls, name)) for cls in (Annotator, FeatureAnnotator))
    shared = photographs.keys() & features.keys() - ({"space", "method"} & {*photographs})
    for option in shared:
        assert photographs[option].default == features[option].default, option
        assert photographs[option].kind == features[option].kind, option


# What only photographs need: they are read, with their tags, series and moments.
OF_PHOTOGRAPHS = {
    "photographs",
    "tags",
    "progress",
    "backbone",
    "cache",
    "names",
    "vocabulary",
    "min_count",
    "moments",
}
OF_FEATURES = {"X", "y", "groups", "known", "present", "prior", "vocabulary"}
OF_FEATURES |= {"times", "places", "folders"}


@pytest.mark.parametrize("name", SHARED)
def test_other_options_are_about_photographs_or_about_features(name):
    photographs, features = (options(getattr(cls, name)) for cls in (Annotator, FeatureAnnotator))
    assert photographs.keys() - features.keys() <= OF_PHOTOGRAPHS
    assert features.keys() - photographs.keys() <= OF_FEATURES


def test_a_cross_validation_of_features_reports_its_progress(synthetic):
    steps = []
    estimator = FeatureAnnotator()
    X, Y = synthetic.X[:60], synthetic.truth[:60]
    estimator.cross_validate(X, Y, progress=lambda *step: steps.append(step))
    assert steps
    assert steps[-1][1] == steps[-1][2]


@pytest.mark.parametrize("cls", [Annotator, FeatureAnnotator])
@pytest.mark.parametrize("name", SHARED)
def test_options_beyond_the_first_two_are_keywords(cls, name):
    positional = [p for p in options(getattr(cls, name)).values() if p.kind != p.KEYWORD_ONLY]
    assert len(positional) <= 2


def test_probabilities_of_photographs_are_those_of_their_features(fitted, synthetic):
    photos = seen(synthetic.X[300:310], first=300)
    expected = fitted.model_.probabilities(fitted.model_.score(photos.features, None))
    # sums are rounded by where arrays lie in memory
    np.testing.assert_allclose(fitted.predict_proba(photos), expected, atol=1e-5)


def test_the_reference_lists_the_parameters_of_both():
    page = Path(__file__).parents[2] / "docs" / "reference" / "annotator.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    rows = [line.split("|")[1:-1] for line in lines if line.startswith("| `")]
    methods = {name.strip(" `"): cells for name, *cells in rows if "," not in name}
    assert len(methods) >= 7
    for method, cells in methods.items():
        for cls, cell in zip((Annotator, FeatureAnnotator), cells, strict=True):
            listed = [name for name in cell.strip(" `").split(", ") if name != "*"]
            assert listed == list(options(getattr(cls, method))), f"{cls.__name__}.{method}"
