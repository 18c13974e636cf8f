import numpy as np
import pytest
import scipy.sparse

from tagkin.annotator.suggesting import (
    LabelChoice,
    drop_itself,
    find_supported,
    make_rule,
    top_support,
)
from tagkin.annotator.suggestions import Support
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.transfer import Evidence

P = np.array([[0.9, 0.2, 0.6], [0.5, 0.5, 0.1]])
ALL = np.ones((2, 3), bool)


def test_the_surest_come_first_and_ties_keep_their_order():
    assert LabelChoice(None, 0.15).select_labels(P, ALL) == [[0, 2, 1], [0, 1]]
    assert LabelChoice(1, 0.0).select_labels(P, ALL) == [[0], [0]]
    assert LabelChoice(2, 0.55).select_labels(P, ALL) == [[0, 2], []]


def test_only_tags_that_are_free_are_suggested():
    free = np.array([[0, 1, 1], [1, 0, 1]], bool)
    assert LabelChoice(2, 0.0).select_labels(P, free) == [[2, 1], [0, 2]]


def test_tags_that_some_neighbour_carries_are_supported():
    labels = scipy.sparse.csr_array(np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]]))
    neighbors = Neighbors(np.array([[0, 2], [3, -1], [-1, -1]]), np.zeros((3, 2)))
    assert find_supported(neighbors, labels).tolist() == [
        [True, True, False],
        [False, False, True],
        [False, False, False],
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"n": 0}, {"n": True}, {"n": 1.5}, {"threshold": 1.2}),
        *({"precision": 5}, {"precision": True}, {"precision": -1}, {"precision": np.nan}),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(wrong):
    options = {"n": None, "threshold": None, "precision": None} | wrong
    with pytest.raises(InvalidInput, match=f"^{next(iter(wrong))} must be"):
        make_rule(None, **options)


def test_nobody_speaks_for_himself():
    neighbors = Neighbors(
        np.array([[4, 7, 2], [1, 0, -1]]), np.array([[0.1, 0.2, 0.3], [0.1, 0.2, np.inf]])
    )
    indices, distances = drop_itself(neighbors, np.array([7, -1]))
    assert indices.tolist() == [[4, 2, -1], [1, 0, -1]]
    assert distances.tolist() == [[0.1, 0.3, np.inf], [0.1, 0.2, np.inf]]


def test_shares_are_parts_of_all_kin_not_only_of_those_named():
    evidence = Evidence(
        0, 4.0, np.array([2, 0, 1]), np.array([2.0, 1.0, 1.0]), np.array([0.1, 0.2, 0.3]), 0, 0.0
    )
    support = top_support(evidence, 2)
    assert support == (Support(2, 0.5), Support(0, 0.25))
    assert top_support(evidence, 1, part=0.2) == (Support(2, 0.1),)  # the rest is not the kin's
    # below chance: the parts of a negative score are parts all the same
    below = Evidence(0, -4.0, evidence.indices, -evidence.shares, evidence.distances, 0, 0.0)
    assert top_support(below, 2) == support
    nobody = Evidence(0, 0.0, np.array([], int), np.array([]), np.array([]), 0, 0.0)
    assert top_support(nobody, 3) == ()


def test_offered_labels_stay_while_they_are_likely():
    offered = np.array([[0, 1, 1], [1, 1, 1]], bool)
    P = np.array([[0.9, 0.02, 0.002], [0.04, 0.3, 0.2]])
    allowed = np.array([[1, 0, 1], [1, 1, 0]], bool)
    rule = LabelChoice(1, 0.05)
    assert rule.select_labels(P, allowed) == [[0], [1]]
    assert rule.select_labels(P, allowed, offered) == [[0, 1], [1, 2, 0]]
