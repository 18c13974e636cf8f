import numpy as np
import pytest
from sklearn.model_selection import GroupKFold

from tagkin.errors import InvalidInput
from tagkin.model_selection import Fold, random_folds
from tagkin.model_selection.folds import number_folds


@pytest.mark.parametrize("seed", [0, 5])
def test_random_folds_hold_every_image_out_once(seed):
    folds = random_folds(32, 5, seed)
    parts = np.array_split(np.random.default_rng(seed).permutation(32), 5)
    for (known, held_out), part in zip(folds, parts, strict=True):
        np.testing.assert_array_equal(known, np.setdiff1d(np.arange(32), part))
        np.testing.assert_array_equal(held_out, np.sort(part))


def test_groups_are_held_out_as_by_scikit_learn():
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(20), np.arange(1, 21)))
    numbers = number_folds(210, 4, groups, 0)
    for k, (known, held_out) in enumerate(GroupKFold(4).split(groups, groups=groups)):
        fold = Fold.of(numbers, k)
        np.testing.assert_array_equal(fold.known, known)
        np.testing.assert_array_equal(fold.held_out, held_out)


def test_groups_of_one_size_are_dealt_from_the_last_one_on():
    """On every processor alike."""
    numbers = number_folds(100, 3, np.arange(100) // 2, 0)
    np.testing.assert_array_equal(numbers, np.repeat(np.arange(50)[::-1] % 3, 2))


def test_a_group_of_most_images_is_held_out_whole_and_named():
    groups = np.maximum(np.arange(12) - 7, 0)
    with pytest.warns(UserWarning, match=r"One group has 8 of the 12 images\. .* only 4 are left"):
        numbers = number_folds(12, 3, groups, 0)
    assert sorted(np.bincount(numbers)) == [2, 2, 8]


@pytest.mark.parametrize(
    ("n_folds", "groups", "message"),
    [
        (1, None, "from 2; found 1"),
        (7, None, "12 images for 7 folds"),
        (1, np.arange(12), "from 2; found 1"),
        (5, np.repeat([0, 1], 6), "Found 2 groups of images for 5 folds"),
        (3, np.arange(11), r"each of the 12 images; found shape \(11,\)"),
    ],
)
def test_bad_folds(n_folds, groups, message):
    with pytest.raises(InvalidInput, match=message):
        number_folds(12, n_folds, groups, 0)
