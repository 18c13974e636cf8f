import numpy as np
import scipy.sparse

from experiments.neighborhoods import neighborhood_jaccard


def by_hand(query, known, indices):
    """Mean of |A ∩ B| / |A ∪ B| with Python's sets, 0 where both are empty."""
    sets = [set(np.flatnonzero(row)) for row in known]
    total = 0.0
    for row, kin in zip(query, indices, strict=True):
        own = set(np.flatnonzero(row))
        total += np.mean([len(own & sets[k]) / max(1, len(own | sets[k])) for k in kin])
    return total / len(query)


def test_the_mean_overlap_of_sets():
    rng = np.random.default_rng(0)
    query, known = rng.random((300, 6)) < 0.3, rng.random((50, 6)) < 0.3
    assert (~query.any(axis=1)).any(), "some image carries nothing"
    assert (~known.any(axis=1)).any()
    indices, sizes = rng.integers(0, 50, (300, 9)), [1, 9, 4]
    expected = [by_hand(query, known, indices[:, :size]) for size in sizes]
    for kind in (np.asarray, scipy.sparse.csr_array):
        curve = neighborhood_jaccard(kind(query), kind(known), indices, sizes)
        np.testing.assert_allclose(curve, expected)


def test_the_same_labels_overlap_wholly_and_none_not_at_all():
    same = np.array([[1, 0, 1], [0, 1, 0]])
    assert neighborhood_jaccard(same, same, np.array([[0], [1]]), [1]) == [1]
    assert neighborhood_jaccard(same, same, np.array([[1], [0]]), [1]) == [0]
