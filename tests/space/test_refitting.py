"""Spaces for one set of labels after another, against spaces that are learned anew."""

import numpy as np
import pytest
import scipy.sparse

from tagkin import SemanticSpace
from tagkin.errors import InvalidInput
from tests.conftest import make_collection


def cosines(A, B):
    A, B = (M / np.linalg.norm(M, axis=1)[:, None] for M in (A, B))
    return A @ B.T


@pytest.mark.parametrize("view", ["indicator", "chi2"])
@pytest.mark.parametrize("n_landmarks", [1024, 40])
def test_refits_are_the_spaces_that_are_learned(n_landmarks, view, as_array):
    """Cosines between known and other images are those of `SemanticSpace`, to 2e-4."""
    X, Y, X_new = make_collection(200, seed=3)
    X[50] = X[60]
    Y[:, 2] = Y[:, 1]
    Y[:, 3] = 0
    labels = [Y, Y[:, ::-1] * (np.arange(len(X)) % 3 > 0)[:, None]]
    refits = SemanticSpace(n_landmarks=n_landmarks).refits(as_array(X), as_array(X_new))
    points = X[:: -(-len(X) // n_landmarks)]
    for one in labels:
        space = SemanticSpace(selection=points, text_view=view).fit(X, one)
        expected = cosines(space.transform(X_new), space.transform(X))
        for given in (one, scipy.sparse.csr_array(one)):
            known, others = (np.asarray(part) for part in refits.embeddings(given, view))
            np.testing.assert_allclose(cosines(others, known), expected, atol=2e-4)


def test_no_refit_of_labels_that_all_images_share_or_of_images_that_look_the_same():
    X, _, X_new = make_collection(100)
    refits = SemanticSpace(n_landmarks=50).refits(X, X_new)
    with pytest.raises(InvalidInput, match="all images have the same"):
        refits.embeddings(np.ones((100, 3)))
    with pytest.raises(InvalidInput, match="look the same"):
        SemanticSpace(n_landmarks=50).refits(np.ones((100, 4)), np.ones((10, 4)))
