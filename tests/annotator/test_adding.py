"""Further photographs: new ones, known ones, and the same photograph twice."""

import numpy as np
import pytest

from tagkin import Annotator
from tagkin.errors import InvalidInput

from .conftest import SPACE, VOTING, row_of, seen


def by_voting(synthetic, n):
    """An annotator of n photographs, of whose method nothing is to be learned."""
    annotator = Annotator(space=SPACE, method=VOTING)
    return annotator.fit(seen(synthetic.X[:n]), synthetic.tags[:n])


def test_a_photograph_that_is_added_again_counts_once_and_is_where_it_is_now(synthetic):
    annotator = by_voting(synthetic, 60)
    again = seen(synthetic.X[:2])
    again.files[:] = ["moved/0000.jpg", "moved/0001.jpg"]
    for _ in range(2):
        annotator.partial_fit(again, [["snow"], synthetic.tags[1]])
    assert annotator.files_[0].endswith("moved/0000.jpg")
    assert len(annotator.files_) == 60
    assert annotator.tags_[0] == ["snow"]
    labels = annotator.vocabulary_.transform(annotator.tags_).toarray()
    assert (annotator.method_.labels.toarray() == labels).all()


def test_new_photographs_vote_without_a_new_fit_and_new_tags_wait_for_it(synthetic):
    annotator = Annotator(space=SPACE)
    annotator.fit(seen(synthetic.X[:100]), synthetic.tags[:100])
    space, before = annotator.space_, annotator.suggest(seen(synthetic.X[300:], first=300))
    more = [[*row, "holiday"] if "beach" in row else row for row in synthetic.tags[100:180]]
    annotator.partial_fit(seen(synthetic.X[100:180], first=100), more)
    assert annotator.space_ is space
    assert len(annotator.files_) == len(annotator.tags_) == 180
    photos = annotator.suggest(seen(synthetic.X[300:], first=300), threshold=0.05)
    suggested = [s for photo in photos for s in photo.suggestions]
    assert "holiday" not in {s.tag for s in suggested}
    assert any(row_of(kin.file) >= 100 for s in suggested for kin in s.kin)
    assert photos != before
    assert annotator.audit(5)
    annotator.suggest(seen(synthetic.X[300:], first=300), precision=0.5)


def test_a_photograph_that_loses_its_tags_keeps_its_place(synthetic):
    annotator = by_voting(synthetic, 100)
    annotator.partial_fit(seen(synthetic.X[:1]), [[]])
    assert len(annotator.files_) == 100
    assert annotator.tags_[0] == []
    assert not annotator.method_.labels[[0]].nnz


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
