"""Photographs that were looked at already: features that mix the directions of their tags."""

import dataclasses

import numpy as np
import pytest

from tagkin import FeatureAnnotator, SemanticSpace, Vocabulary
from tagkin.features import Extraction
from tagkin.paper import NeighborVoting

# Settings for tests that do not depend on them.
SPACE = SemanticSpace(random_state=0)
VOTING = NeighborVoting(10)
NAMES = ["beach", "boat", "city", "night", "snow", "sunset"]
N = 160  # photographs that estimators of features learn from


def seen(features, first=0, failures=()):
    n = len(features)
    # numbers that do not follow each other: consecutive names would make series of look-alikes
    files = [f"photos/{10 * (first + i):05}.jpg" for i in range(n)]
    digests = [f"{first + i:064x}" for i in range(n)]
    return Extraction(files, np.asarray(features, np.float32), digests, list(failures), 0, n)


def row_of(file):
    return int(file[-9:-4]) // 10


def assert_alike(actual, expected):
    """Compare lists of records. Numbers may differ by rounding, as after a model was loaded."""
    if dataclasses.is_dataclass(expected):
        assert type(actual) is type(expected)
        actual, expected = dataclasses.astuple(actual), dataclasses.astuple(expected)
    if isinstance(expected, list | tuple):
        for value, other in zip(actual, expected, strict=True):
            assert_alike(value, other)
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=1e-5)
    else:
        assert actual == expected


class SyntheticPhotographs:
    """n photographs with what is on them, and how a person tagged them."""

    def __init__(self, n, seed=0, forgotten=0.15, noise=0.8, d=24):
        rng = np.random.default_rng(seed)
        self.truth = rng.random((n, len(NAMES))) < 0.3
        directions = np.random.default_rng(99).random((len(NAMES), d))
        # other variation than that of tags, and stronger: looks mislead
        distraction = rng.random((n, 3)) @ np.random.default_rng(98).random((3, d))
        self.X = self.truth @ directions + 2 * distraction + noise * rng.random((n, d))
        given = self.truth & (rng.random(self.truth.shape) > forgotten)
        given[np.arange(n), rng.integers(len(NAMES), size=n)] |= ~given.any(axis=1)
        self.tags = [[NAMES[t] for t in np.flatnonzero(row)] for row in given]

    def named(self, i):
        return {NAMES[t] for t in np.flatnonzero(self.truth[i])}


@pytest.fixture(scope="session", autouse=True)
def _not_the_users_cache(shared_cache):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAGKIN_CACHE", str(shared_cache))
        yield


@pytest.fixture(scope="session")
def synthetic():
    return SyntheticPhotographs(400)


@pytest.fixture(scope="session")
def fitted(synthetic):
    from tagkin import Annotator

    return Annotator().fit(seen(synthetic.X[:300]), synthetic.tags[:300])


def voting(**parameters):
    """For what does not depend on how labels are passed on: nothing of it is to be learned."""
    return FeatureAnnotator(SPACE, NeighborVoting(20), **parameters)


@pytest.fixture(scope="session", name="X")
def features(synthetic):
    return synthetic.X.astype(np.float32)


@pytest.fixture(scope="session", name="Y")
def label_matrix(synthetic):
    """The tags as a matrix, columns in the order of NAMES."""
    return Vocabulary().fit_transform(synthetic.tags)


@pytest.fixture(scope="session")
def plain(synthetic, X):
    """An annotator that learned from lists of tags. Tests that change it take a copy."""
    return FeatureAnnotator(SPACE).fit(X[:N], synthetic.tags[:N])
