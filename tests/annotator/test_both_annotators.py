"""`Annotator` and `FeatureAnnotator` do the same by the same names."""

import inspect

import numpy as np
import pytest

from tagkin import Annotator, FeatureAnnotator

from .conftest import seen

SHARED = [
    *("__init__", "fit", "partial_fit", "suggest", "predict_proba", "similar", "audit"),
    *("cross_validate", "evaluate", "save", "describe"),
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
