"""The dial of noise: what it is set to is what comes out."""

import numpy as np
import pytest
import scipy.sparse

from examples.noise import with_noise
from tagkin.errors import InvalidInput


@pytest.fixture
def tags():
    return (np.random.default_rng(1).random((4000, 30)) < 0.1).astype(float)


def test_without_noise_tags_are_as_they_were(tags):
    np.testing.assert_array_equal(with_noise(tags).toarray(), tags)
    np.testing.assert_array_equal(with_noise(scipy.sparse.csr_array(tags)).toarray(), tags)


def test_dropped_tags_are_as_many_as_asked_for_and_none_is_new(tags):
    noisy = with_noise(tags, dropped=0.4).toarray()
    assert (noisy <= tags).all()
    assert noisy.sum() / tags.sum() == pytest.approx(0.6, abs=0.02)


def test_wrong_tags_are_as_many_as_asked_for_and_none_is_lost(tags):
    tags[:, 0] = np.arange(4000) % 2  # one that is frequent
    noisy = with_noise(tags, wrong=0.5).toarray()
    assert (noisy >= tags).all()
    added = noisy - tags
    # some fall on tags that are there, or on each other
    assert 0.35 < added.sum() / tags.sum() < 0.5
    assert added[:, 0].sum() > 2 * added[:, 1:].sum(axis=0).mean()


def test_untagged_images_have_nothing_and_the_others_all(tags):
    noisy = with_noise(tags, untagged=0.7, personal=0.5).toarray()
    bare = ~noisy.any(axis=1)
    assert bare.mean() == pytest.approx(0.7, abs=0.05)
    np.testing.assert_array_equal(noisy[~bare][:, :30], tags[~bare])


def test_personal_tags_are_further_columns(tags):
    noisy = with_noise(tags, personal=1.0, n_personal=5).toarray()
    assert noisy.shape == (4000, 35)
    np.testing.assert_array_equal(noisy[:, :30], tags)
    assert 0.8 < noisy[:, 30:].sum() / 4000 <= 1.0


def test_more_noise_is_the_same_noise_and_some_more(tags):
    little, much = (with_noise(tags, dropped=share).toarray() for share in (0.2, 0.5))
    assert (much <= little).all()
    little, much = (with_noise(tags, untagged=share).toarray() for share in (0.2, 0.5))
    assert (much <= little).all()
    first, two = (with_noise(tags, dropped=0.3, random_state=seed).toarray() for seed in (0, 1))
    assert (first != two).any()


@pytest.mark.parametrize(
    "kwargs", [{"dropped": 1.5}, {"untagged": -0.1}, {"wrong": -1}, {"personal": np.nan}]
)
def test_what_cannot_be_asked(tags, kwargs):
    with pytest.raises(InvalidInput, match=f"{next(iter(kwargs))} must be from 0"):
        with_noise(tags, **kwargs)
