import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut

from tagkin.errors import InvalidInput
from tagkin.model_selection import random_folds
from tagkin.model_selection.folds import make_folds
from tests.model_selection.by_hand import folds_by_hand

Y = np.ones((12, 2))


@pytest.mark.parametrize("seed", [0, 5])
def test_random_folds_hold_every_image_out_once(seed):
    folds = random_folds(32, 5, seed)
    for fold, (known, held_out) in zip(folds, folds_by_hand(32, 5, seed), strict=True):
        np.testing.assert_array_equal(fold.known, known)
        np.testing.assert_array_equal(fold.held_out, held_out)
    assert sorted(np.concatenate([fold.held_out for fold in folds])) == list(range(32))


def test_splitters_masks_and_pairs_are_folds():
    groups = np.repeat(["a", "b", "c"], 4)
    by_group = make_folds(12, Y, LeaveOneGroupOut(), groups, 0)
    assert [fold.held_out.tolist() for fold in by_group] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9, 10, 11],
    ]
    mask = np.arange(12) < 5
    (masked,) = make_folds(12, Y, [(mask, ~mask)], None, 0)
    assert masked.known.tolist() == [0, 1, 2, 3, 4]
    shuffled = make_folds(12, Y, KFold(3, shuffle=True, random_state=0), None, 7)
    assert all(np.all(np.diff(fold.held_out) > 0) for fold in shuffled)


def test_groups_are_held_out_as_by_scikit_learn():
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(20), np.arange(1, 21)))
    folds = make_folds(210, np.ones((210, 1)), 4, groups, 0)
    expected = GroupKFold(4).split(groups, groups=groups)
    for fold, (known, held_out) in zip(folds, expected, strict=True):
        np.testing.assert_array_equal(fold.known, known)
        np.testing.assert_array_equal(fold.held_out, held_out)


def test_groups_of_one_size_are_dealt_from_the_last_one_on():
    """On every processor alike."""
    folds = make_folds(100, np.ones((100, 1)), 3, np.arange(100) // 2, 0)
    dealt = np.repeat(np.arange(50)[::-1] % 3, 2)
    for k, fold in enumerate(folds):
        np.testing.assert_array_equal(fold.held_out, np.flatnonzero(dealt == k))
        np.testing.assert_array_equal(fold.known, np.flatnonzero(dealt != k))


def test_a_group_of_most_images_is_held_out_whole_and_named():
    groups = np.maximum(np.arange(12) - 7, 0)
    with pytest.warns(UserWarning, match=r"One group has 8 of the 12 images\. .* only 4 are left"):
        folds = make_folds(12, Y, 3, groups, 0)
    assert sorted(len(fold.held_out) for fold in folds) == [2, 2, 8]


@pytest.mark.parametrize(
    ("cv", "groups", "message"),
    [
        (1, None, "from 2; found 1"),
        (7, None, "12 images for 7 folds"),
        (1, np.arange(12), "from 2; found 1"),
        (5, np.repeat([0, 1], 6), "Found 2 groups of images for 5 folds"),
        (3, np.arange(11), r"each of the 12 images; found shape \(11,\)"),
        (LeaveOneGroupOut(), None, "does not split these images: .*groups"),
        ("three", None, "does not split these images"),
        ([([], [0, 1])], None, "needs images to learn from"),
        ([([0, 1], [12])], None, "from 0 to 11"),
    ],
)
def test_bad_folds(cv, groups, message):
    with pytest.raises(InvalidInput, match=message):
        make_folds(12, Y, cv, groups, 0)
