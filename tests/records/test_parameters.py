"""Parameters by name, beside those of scikit-learn's own estimators."""

import pytest
from sklearn.base import BaseEstimator, clone

from tagkin import Annotator, SemanticSpace, Vocabulary
from tagkin.annotator import FeatureAnnotator
from tagkin.errors import InvalidInput
from tagkin.features import FeatureCache


class Twin(BaseEstimator):
    """An estimator of scikit-learn with some parameters of an `Annotator`."""

    def __init__(self, space=None, *, min_count=1, names=True):
        self.space, self.min_count, self.names = space, min_count, names


GIVEN = [
    {},
    {"min_count": 5},
    {"space": SemanticSpace(2.0), "min_count": 3},
    {"names": False},
]


@pytest.mark.parametrize("given", GIVEN, ids=str)
def test_parameters_are_shown_and_listed_as_by_scikit_learn(given):
    annotator, twin = Annotator(**given), Twin(**given)
    assert sorted(repr(annotator)[10:-1].split(", ")) == sorted(repr(twin)[5:-1].split(", "))
    for deep in (True, False):
        mine, theirs = annotator.get_params(deep=deep), twin.get_params(deep=deep)
        assert {name: mine[name] for name in theirs} == theirs
        assert {name for name in mine if "__" in name} == {name for name in theirs if "__" in name}


def test_parameters_are_set_by_name_also_those_of_the_space():
    annotator = Annotator(space=SemanticSpace())
    assert annotator.set_params(space__regularization=2.0, min_count=7) is annotator
    assert (annotator.space.regularization, annotator.min_count) == (2.0, 7)
    annotator.set_params(space__regularization=3.0, space=SemanticSpace(n_landmarks=50))
    assert annotator.space.get_params()["regularization"] == 3.0
    assert annotator.space.n_landmarks == 50


def test_unknown_parameters_change_nothing():
    annotator = Annotator()
    with pytest.raises(InvalidInput, match=r"Annotator has no parameter 'kappa'. It has backbone"):
        annotator.set_params(min_count=7, kappa=1)
    with pytest.raises(InvalidInput, match="space is None, which has no parameters"):
        annotator.set_params(space__regularization=1)
    assert repr(annotator) == "Annotator()"


def test_clones_have_parameters_of_their_own_and_share_the_cache(tmp_path):
    cache, space = FeatureCache(tmp_path), SemanticSpace(2.0)
    annotator = Annotator(space=space, cache=cache)
    copy = clone(annotator)
    assert repr(copy) == repr(annotator)
    assert copy.cache is cache
    assert copy.space is not space
    assert repr(clone(FeatureAnnotator(vocabulary=Vocabulary(3)))) == (
        "FeatureAnnotator(vocabulary=Vocabulary(min_count=3))"
    )
