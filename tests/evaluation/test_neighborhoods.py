import numpy as np
import pytest
import scipy.sparse

from tagkin.arrays import memory_budget
from tagkin.errors import InvalidInput
from tagkin.evaluation import neighborhood_jaccard


@pytest.fixture
def neighborhoods():
    """Labels of 20 images and of 50 others, 9 of which are each image's neighbours."""
    rng = np.random.default_rng(0)
    query, known = rng.random((20, 6)) < 0.3, rng.random((50, 6)) < 0.3
    assert (~query.any(axis=1)).any(), "some image carries nothing"
    assert (~known.any(axis=1)).any()
    return query, known, rng.integers(0, 50, (20, 9))


def by_hand(query, known, indices):
    """Mean of |A ∩ B| / |A ∪ B| with Python's sets, 0 where both are empty."""
    sets = [set(np.flatnonzero(row)) for row in known]
    total = 0.0
    for row, kin in zip(query, indices, strict=True):
        own = set(np.flatnonzero(row))
        total += np.mean([len(own & sets[k]) / max(1, len(own | sets[k])) for k in kin])
    return total / len(query)


def test_the_mean_overlap_of_sets(neighborhoods):
    assert neighborhood_jaccard(*neighborhoods) == pytest.approx(by_hand(*neighborhoods))


def test_the_curve_holds_every_size(neighborhoods):
    query, known, indices = neighborhoods
    sizes = [1, 9, 4]
    curve = neighborhood_jaccard(query, known, indices, sizes=sizes)
    expected = [by_hand(query, known, indices[:, :size]) for size in sizes]
    np.testing.assert_allclose(curve, expected)
    assert neighborhood_jaccard(query, known, indices, sizes=[]).shape == (0,)


def test_the_same_labels_overlap_wholly_and_none_not_at_all():
    same = np.array([[1, 0, 1], [0, 1, 0]])
    assert neighborhood_jaccard(same, same, [[0], [1]]) == 1
    assert neighborhood_jaccard(same, same, [[1], [0]]) == 0
    assert neighborhood_jaccard(np.zeros((1, 3)), np.zeros((1, 3)), [[0]]) == 0


def test_answers_do_not_depend_on_kind_or_blocks(neighborhoods, as_array):
    query, known, indices = neighborhoods
    expected = neighborhood_jaccard(query, known, indices, sizes=range(1, 10))
    for Q, N in (
        (as_array(query), as_array(known)),
        (scipy.sparse.csr_array(query), scipy.sparse.csc_array(known * 3.0)),
    ):
        with memory_budget(1):
            overlap = neighborhood_jaccard(Q, N, as_array(indices), sizes=range(1, 10))
        np.testing.assert_allclose(overlap, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"indices": [[0, 5]]}, "has 5 at row 0, column 1, but Y_known has rows 0 to 4"),
        ({"indices": [[-1, 0]]}, "has -1 at row 0, column 0"),
        ({"indices": [[0], [1]]}, r"found shape \(2, 1\) for 1 images"),
        ({"indices": [0, 1]}, r"found shape \(2,\)"),
        ({"indices": np.zeros((1, 0), dtype=int)}, r"found shape \(1, 0\)"),
        ({"indices": [[0.0, 1.0]]}, "whole numbers; found dtype float64"),
        ({"Y_query": np.ones((1, 3))}, "found 3 and 2 columns"),
        ({"Y_query": np.ones((0, 2)), "indices": np.zeros((0, 2), int)}, "for 0 images"),
        ({"sizes": [1, 3]}, "sizes contains 3, but indices has 2"),
        ({"sizes": [0]}, "size must be a whole number from 1"),
    ],
)
def test_unusable_input_is_refused(change, message):
    usable = {"Y_query": np.ones((1, 2)), "Y_known": np.ones((5, 2)), "indices": [[0, 1]]}
    with pytest.raises(InvalidInput, match=message):
        neighborhood_jaccard(**(usable | change))
