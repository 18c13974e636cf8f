"""Further photographs and tags: new ones, known ones, and the same photograph twice."""

import numpy as np
import pytest

from tagkin import Annotator, FeatureAnnotator
from tagkin.errors import InvalidInput

from .conftest import SPACE, VOTING, row_of, seen


def by_voting(synthetic, n):
    """An annotator of n photographs, of whose method nothing is to be learned."""
    annotator = Annotator(space=SPACE, method=VOTING)
    return annotator.fit(seen(synthetic.X[:n]), synthetic.tags[:n])


def test_a_photograph_that_is_added_again_counts_once_and_is_where_it_is_now(synthetic):
    annotator = Annotator(space=SPACE, method=VOTING, min_count=2)
    annotator.fit(seen(synthetic.X[:60]), synthetic.tags[:60])
    again = seen(synthetic.X[:2])
    again.files[:] = ["moved/0000.jpg", "moved/0001.jpg"]
    for _ in range(2):
        annotator.partial_fit(again, [["unique"], synthetic.tags[1]])
    assert "unique" not in annotator.vocabulary_.names_
    assert annotator.vocabulary_.dropped_["unique"] == 1
    assert annotator.files_[0].endswith("moved/0000.jpg")
    assert len(annotator.files_) == 60
    labels = annotator.vocabulary_.transform(annotator.tags_).toarray()
    assert (annotator.method_.labels.toarray() == labels).all()


def test_new_photographs_and_new_tags_without_a_new_fit(synthetic):
    annotator = Annotator(space=SPACE)
    annotator.fit(seen(synthetic.X[:100]), synthetic.tags[:100])
    space, before = annotator.space_, annotator.suggest(seen(synthetic.X[300:], first=300))
    more = [[*row, "holiday"] if "beach" in row else row for row in synthetic.tags[100:180]]
    annotator.partial_fit(seen(synthetic.X[100:180], first=100), more)
    assert annotator.space_ is space
    assert len(annotator.files_) == 180
    photos = annotator.suggest(seen(synthetic.X[300:], first=300), threshold=0.05)
    holidays = [p for p in photos if "holiday" in {s.tag for s in p.suggestions}]
    assert holidays
    assert all(
        row_of(kin.file) >= 100
        for p in holidays
        for s in p.suggestions
        if s.tag == "holiday"
        for kin in s.kin
    )
    assert photos != before
    assert annotator.audit(5)
    annotator.suggest(seen(synthetic.X[300:], first=300), precision=0.5)


def test_a_dropped_tag_comes_back_with_all_that_carry_it(synthetic):
    tags = [list(row) for row in synthetic.tags]
    tags[0].append("rare")
    annotator = Annotator(space=SPACE, method=VOTING, min_count=2)
    annotator.fit(seen(synthetic.X[:100]), tags[:100])
    assert "rare" not in annotator.vocabulary_.names_
    tags[100].append("rare")
    annotator.partial_fit(seen(synthetic.X[100:110], first=100), tags[100:110])
    column = annotator.vocabulary_.index("rare")
    assert set(annotator.method_.labels[:, [column]].nonzero()[0]) == {0, 100}


def test_known_photographs_get_their_new_tags(synthetic):
    annotator = by_voting(synthetic, 100)
    annotator.partial_fit(seen(synthetic.X[:1]), [["snow"]])
    assert len(annotator.files_) == 100
    assert annotator.tags_[0] == ["snow"]
    tags = annotator.vocabulary_.inverse_transform(annotator.method_.labels[:1])
    assert tags == [["snow"]]
    with pytest.raises(InvalidInput, match="new fit"):
        annotator.partial_fit(seen(synthetic.X[:2]), [["fresh"], ["fresh"]])


def test_photographs_of_one_content_are_one(synthetic):
    photos = seen(synthetic.X[:50])
    twice = seen(np.concatenate([synthetic.X[:50], synthetic.X[:1]]))
    digests = [*photos.digests, photos.digests[0]]
    annotator = Annotator(space=SPACE, method=VOTING).fit(
        type(photos)(twice.files, twice.features, digests, [], 0, 51),
        [*synthetic.tags[:50], ["boat", "pier"]],
    )
    assert len(annotator.files_) == 50
    assert set(annotator.tags_[0]) == {*synthetic.tags[0], "boat", "pier"}


def test_a_failed_fit_leaves_what_was_learned(synthetic):
    annotator = by_voting(synthetic, 50)
    before = annotator.suggest(seen(synthetic.X[300:310], first=300), n=1)
    with pytest.raises(InvalidInput):
        annotator.fit(seen(synthetic.X[:10]), [["a"]] * 10)
    assert annotator.suggest(seen(synthetic.X[300:310], first=300), n=1) == before


def test_a_rare_label_given_to_a_few_chosen_images_is_not_suggested_for_many():
    """They say nothing about how rare it is; the images that were known before do."""
    rng, rates = np.random.default_rng(0), [0.3, 0.3, 0.3, 0.3, 0.03]
    truth = rng.random((1200, 5)) < rates
    X = truth @ rng.random((5, 24)) + 2 * rng.random((1200, 3)) @ rng.random((3, 24))
    X += 1.5 * rng.random(X.shape)
    annotator = FeatureAnnotator(SPACE).fit(X[:400], truth[:400, :4] * 1.0)
    chosen = 400 + np.flatnonzero(truth[400:, 4])[:10]
    labels = np.tile([0.0, 0, 0, 0, 1], (10, 1))
    annotator.partial_fit(X[chosen], labels, complete=np.zeros(10, dtype=bool))
    others = np.setdiff1d(np.arange(400, 1200), chosen)
    P = annotator.predict_proba(X[others])[:, 4]
    assert P.sum() < 2 * truth[others, 4].sum()
    assert (P >= 0.5).mean() < 0.03
