"""Trials of ways to denoise: as they are used, compared tag by tag, on images held out."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from tagkin import SemanticSpace, TagDenoiser
from tagkin.denoising.trials import Comparison, HeldOutFold, Setting, folds
from tagkin.evaluation import average_precision
from tagkin.labels import with_noise
from tagkin.neighbors import nearest

from .kinds import SPACE, kinds

KNOWN, NEW = np.arange(200), np.arange(200, 300)


def fold_of(X, tags, **settings):
    """The first 200 images are known."""
    return HeldOutFold(TagDenoiser(30, space=SPACE, **settings), X, tags, KNOWN, NEW)


def test_raw_tags_may_be_passed_on_in_a_space_of_denoised_ones():
    """Against the votes of neighbours in a space that is fitted for it."""
    X, Y = kinds(300, noise=1.2)
    tags = with_noise(Y, dropped=0.5)
    found = {}
    for passed_on in ("denoised", "raw"):
        fold = fold_of(X, tags, passed_on=passed_on)
        found[passed_on] = fold.precisions(0.5, 30, 0.5, "indicator")
    denoised = TagDenoiser(30, scale=0.5, blend=0.5).fit_transform(X[KNOWN], tags[KNOWN])
    space = SemanticSpace(n_landmarks=1024).fit(X[KNOWN], denoised)
    near = nearest(space.transform(X[NEW]), space.transform(X[KNOWN]), 50).indices
    for passed_on, carried in (("raw", tags[KNOWN]), ("denoised", denoised)):
        votes = carried.toarray()[near].sum(axis=1)
        expected = average_precision(tags[NEW], votes)[fold.measured]
        np.testing.assert_allclose(found[passed_on][0], expected, atol=1e-6)
    assert np.abs(found["raw"] - found["denoised"]).max() > 1e-3


def test_settings_are_tried_as_they_are_used(monkeypatch):
    """The space under trial is learned from the tags that this setting gives."""
    X, Y = kinds(300)
    tags = with_noise(Y, dropped=0.5)
    seen = []
    fold = fold_of(X, tags)
    embeddings = fold.refits.embeddings

    def noted(tags, view):
        seen.append(tags)
        return embeddings(tags, view)

    monkeypatch.setattr(fold.refits, "embeddings", noted)
    for blend, r in ((0.0, 30), (0.3, 30), (0.3, 7), (1.0, 1)):
        scores = fold.precisions(blend, r, 0.5, "indicator")
        assert scores.shape == (3, 12)
        denoiser = TagDenoiser(r, scale=0.5, blend=blend)
        expected = denoiser.fit_transform(X[KNOWN], tags[KNOWN]).toarray()
        np.testing.assert_allclose(seen[-1].toarray(), expected, atol=1e-6)


def test_tags_on_hardly_an_image_or_on_all_are_not_measured():
    X, Y = kinds(300)
    Y[:, 4] = 1
    Y[:, 7] = 0
    Y[[0, 1, 2, 3, 298, 299], 7] = 1  # of those held out only two
    fold = fold_of(X, scipy.sparse.csr_array(Y))
    assert fold.measured.tolist() == [0, 1, 2, 3, 5, 6, 8, 9, 10, 11]


# --- settings compared ---


def trials_with(by_setting, weights):
    """Trials that have found these precisions of each tag."""
    trials = object.__new__(Comparison)
    trials.weights = np.array(weights, dtype=float)
    trials.precisions = {}
    for setting, precisions in by_setting.items():
        score = np.average(precisions, weights=weights)
        trials.precisions[replace(setting, score=score)] = np.array(precisions)
    return trials


def test_the_mildest_of_those_as_good_as_the_best_is_chosen():
    by_setting = {
        Setting(0.0, 9): [0.5, 0.5, 0.5, 0.5],
        Setting(0.1, 9): [0.9, 0.5, 0.5, 0.8],  # behind the best by 0.125 ± 0.103
        Setting(0.2, 9): [0.9, 0.5, 0.5, 0.9],  # by 0.1 ± 0.12: as good
        Setting(0.5, 9): [0.7, 0.8, 0.7, 0.8],  # by 0.05 ± 0.03
        Setting(1.0, 9): [0.8, 0.8, 0.8, 0.8],
    }
    assert trials_with(by_setting, [1, 1, 1, 1]).mildest().blend == 0.2
    del by_setting[Setting(0.2, 9)]
    assert trials_with(by_setting, [1, 1, 1, 1]).mildest().blend == 1.0


def test_a_rare_tag_cannot_outweigh_common_ones():
    rare = {Setting(0.0, 9): [0.5, 0.5, 0.5, 0.5], Setting(0.5, 9): [0.6, 0.6, 0.58, 0.1]}
    assert trials_with(rare, [1, 1, 1, 1]).mildest().blend == 0
    assert trials_with(rare, [5, 5, 5, 0.1]).mildest().blend == 0.5


def test_the_error_of_the_weighted_mean_is_that_of_its_draws():
    """Of many draws of as many tags, with their weights."""
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 30, 60) ** 0.5
    trials = trials_with({}, weights)
    draws = rng.normal(0.3, 0.2, (4000, 60))
    spread = np.std([trials.mean(draw) for draw in draws])
    told = np.sqrt(np.mean([trials.standard_error(draw) ** 2 for draw in draws]))
    assert told == pytest.approx(spread, rel=0.05)
    assert trials_with({}, np.ones(9)).standard_error(draws[0, :9]) == pytest.approx(
        draws[0, :9].std(ddof=1) / 3
    )


class Fold:
    """A fold on which tags are measured as told."""

    def __init__(self, measured, carriers, found):
        self.tags = scipy.sparse.csr_array((1, 4))
        self.measured, self.carriers, self.found = np.array(measured), np.array(carriers), found

    def precisions(self, blend, n_neighbors, scale, view):
        return self.found and np.array(self.found)


def test_folds_are_averaged_tag_by_tag_before_voters_are_counted():
    first = Fold([0, 1], [9, 4], [[0.2, 0.4], [0.9, 0.1], [0.1, 0.1]])
    second = Fold([1, 3], [5, 16], [[0.6, 0.5], [0.1, 0.1], [0.8, 0.1]])
    trials = Comparison([first, second], scale=1.0)
    np.testing.assert_allclose(trials.weights, [3, 3, 0, 4])
    assert trials.add(Setting(0.1, 9))
    ((setting, precisions),) = trials.precisions.items()
    np.testing.assert_allclose(precisions, [0.2, 0.5, 0, 0.5])  # the first number of voters
    assert setting.score == pytest.approx((3 * 0.2 + 3 * 0.5 + 4 * 0.5) / 10)
    assert not Comparison([first, Fold([0], [1], None)], 1.0).add(Setting(0.1, 9))


# --- images that are held out ---


@pytest.mark.parametrize("size", [400, 5000])
def test_every_tagged_image_looked_at_is_held_out_once(size):
    tagged = np.arange(1000) % 3 > 0
    parts = folds(tagged, size, 0)
    held = np.concatenate([held_out for _, held_out in parts])
    assert len(np.unique(held)) == len(held)
    looked_at = np.sort(np.concatenate(parts[0]))
    np.testing.assert_array_equal(np.sort(held), looked_at[tagged[looked_at]])
    for known, held_out in parts:
        np.testing.assert_array_equal(np.sort(np.concatenate([known, held_out])), looked_at)
        assert len(held_out) == pytest.approx(len(held) / 4, abs=1)


def test_few_tagged_images_among_many_are_looked_at():
    tagged = np.arange(50_000) % 50 == 0
    known, held_out = folds(tagged, 8000, 0)[0]
    assert len(held_out) == 250
    assert tagged[held_out].all()
    assert tagged[known].sum() == 750
    assert len(known) + len(held_out) == 8000
    assert not set(known) & set(held_out)


def test_images_of_a_group_are_held_out_together():
    rng = np.random.default_rng(0)
    tagged, groups = rng.random(2000) < 0.8, rng.permutation(np.repeat(np.arange(400), 5))
    parts = folds(tagged, 1000, 0, groups)
    looked_at = np.concatenate(parts[0])
    assert len(looked_at) == 1000
    for known, held_out in parts:
        np.testing.assert_array_equal(
            np.sort(np.concatenate([known, held_out])), np.sort(looked_at)
        )
        assert tagged[held_out].all()
        assert 190 < len(held_out) < 210
        with_tags = known[tagged[known]]
        assert not np.isin(groups[with_tags], groups[held_out]).any()


@pytest.mark.parametrize("groups", [np.zeros(400), np.minimum(np.arange(400), 200)])
def test_a_group_larger_than_a_quarter_leaves_usable_quarters(groups):
    parts = folds(np.ones(400, bool), 400, 0, groups.astype(int))
    sizes = [len(held_out) for _, held_out in parts]
    assert sum(sizes) == 400
    assert min(sizes) >= 50


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_as_many_of_those_looked_at_are_tagged_as_of_all(share):
    tagged = np.arange(10_000) < share * 10_000
    known, held_out = folds(tagged, 1000, 0)[0]
    assert len(known) + len(held_out) == 1000
    assert tagged[known].sum() + len(held_out) == share * 1000
    known, held_out = folds(tagged, 20_000, 0)[0]
    assert len(known) + len(held_out) == 10_000
