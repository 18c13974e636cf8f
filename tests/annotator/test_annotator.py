"""Suggestions for photographs: how sure they are, who speaks for them, what is refused."""

import os

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin import Annotator
from tagkin.annotator.photograph_reader import PhotographReader
from tagkin.collection import Collection
from tagkin.errors import InvalidInput
from tagkin.paper import NeighborVoting, RidgeTransfer, TagRelevance, TwoPassKNN

from .conftest import NAMES, SPACE, VOTING, SyntheticPhotographs, row_of, seen


def test_suggestions_are_mostly_right_and_as_sure_as_they_say(fitted, synthetic):
    suggestions = fitted.suggest(seen(synthetic.X[300:], first=300))
    right = [s.tag in synthetic.named(row_of(p.file)) for p in suggestions for s in p.suggestions]
    confidences = [s.confidence for p in suggestions for s in p.suggestions]
    assert len(right) > 50
    assert min(confidences) >= 0.5
    assert np.mean(right) > 0.75
    # people forgot 15 % of the tags, and confidences are of what they would give
    assert np.mean(confidences) == pytest.approx(0.85 * np.mean(right), abs=0.1)


def test_kin_carry_the_tag_and_their_shares_add_up(fitted, synthetic):
    for photo in fitted.suggest(seen(synthetic.X[300:330], first=300), n=3, n_kin=1000):
        assert len(photo.suggestions) <= 3
        sure = [s.confidence for s in photo.suggestions]
        assert sure == sorted(sure, reverse=True)
        for suggestion in photo.suggestions:
            assert all(suggestion.tag in synthetic.tags[row_of(kin.file)] for kin in suggestion.kin)
            others = suggestion.name_share + suggestion.readout_share
            assert sum(kin.share for kin in suggestion.kin) == pytest.approx(1 - others)
            assert all(os.path.isabs(kin.file) for kin in suggestion.kin)


def test_a_photograph_learned_from_does_not_speak_for_itself(fitted, synthetic):
    for photo in fitted.suggest(seen(synthetic.X[:40]), threshold=0.0, n_kin=1000):
        own = synthetic.tags[row_of(photo.file)]
        assert list(photo.tags) == own
        assert not {s.tag for s in photo.suggestions} & set(own)
        kin = {row_of(kin.file) for s in photo.suggestions for kin in s.kin}
        assert row_of(photo.file) not in kin


def test_confidences_are_the_calibrated_scores(fitted, synthetic):
    """By the printed form: σ(g(z)), z = dₜ + Σ aₜ (x − x̄ₜ), with x from the method's own scores."""
    photos = seen(synthetic.X[300:320], first=300)
    parts = fitted.method_.components(fitted.space_.transform(photos.features))
    judge, names = fitted.calibration_, fitted.vocabulary_.names_
    mixture = judge.mixture
    columns = zip(mixture.weights.T, mixture.centers.T, parts, strict=True)
    z = mixture.intercepts + sum(weights * (part - center) for weights, center, part in columns)
    log_odds = z - judge.shrink * np.maximum(z + 1, 0)
    expected = 1 / (1 + np.exp(-log_odds))
    suggestions = fitted.suggest(photos, threshold=0.0)
    assert all(len(photo.suggestions) == len(names) for photo in suggestions)
    for row, photo in zip(expected, suggestions, strict=True):
        for suggestion in photo.suggestions:
            assert suggestion.confidence == pytest.approx(
                row[names.index(suggestion.tag)], abs=1e-5
            )


def test_suggestions_do_not_depend_on_how_many_kin_are_named(fitted, synthetic):
    photos = seen(synthetic.X[300:310], first=300)
    with_kin, none = fitted.suggest(photos), fitted.suggest(photos, n_kin=0)
    assert any(photo.suggestions for photo in with_kin)
    for first, other in zip(with_kin, none, strict=True):
        assert [s.tag for s in first.suggestions] == [s.tag for s in other.suggestions]
        assert all(s.kin == () for s in other.suggestions)


def test_top_gives_so_many_where_kin_carry_them(synthetic):
    """A tag on most photographs is likely even where no kin carries it: it takes no place."""
    tags = [[*row, "always"] if i % 4 else row for i, row in enumerate(synthetic.tags[:200])]
    annotator = Annotator(method=NeighborVoting(n_neighbors=2)).fit(seen(synthetic.X[:200]), tags)
    photos = seen(synthetic.X[200:], first=200)
    lists, _ = annotator.method_.kneighbors(annotator.space_.transform(photos.features))
    for photo, kin in zip(annotator.suggest(photos, n=1), lists, strict=True):
        assert len(photo.suggestions) == (1 if any(tags[j] for j in kin) else 0)


@pytest.mark.parametrize("method", [TwoPassKNN(), TagRelevance()])
def test_every_method_by_neighbours_says_who_speaks(synthetic, method):
    annotator = Annotator(method=method).fit(seen(synthetic.X[:120]), synthetic.tags[:120])
    for photo in annotator.suggest(seen(synthetic.X[120:130], first=120), n=6, n_kin=1000):
        assert len(photo.suggestions) == 6
        for suggestion in photo.suggestions:
            others = suggestion.name_share + suggestion.readout_share
            assert sum(kin.share for kin in suggestion.kin) == pytest.approx(1 - others)
            assert all(kin.share > 0 for kin in suggestion.kin)
    for finding in annotator.audit(20):
        assert finding.kin
        carried = [finding.tag in synthetic.tags[row_of(kin.file)] for kin in finding.kin]
        assert finding.kind == "wrong" or all(carried)


@pytest.mark.parametrize(
    "wrong",
    [{"n_kin": -1}, {"n_kin": 2.5}, {"n": 2.0}, {"threshold": "high"}, {"precision": "high"}],
)
def test_what_cannot_be_asked_for_is_refused(fitted, synthetic, wrong):
    with pytest.raises(InvalidInput, match=f"^{next(iter(wrong))} must be"):
        fitted.suggest(seen(synthetic.X[300:302], first=300), **wrong)


def test_numbers_of_numpy_are_numbers(fitted, synthetic):
    photos = seen(synthetic.X[300:305], first=300)
    asked = {"n": np.int64(2), "threshold": np.float32(0.3)}
    assert fitted.suggest(photos, **asked) == fitted.suggest(
        photos, n=2, threshold=asked["threshold"]
    )


def test_no_photograph_at_all_is_said(fitted):
    for use in (fitted.suggest, fitted.similar):
        with pytest.raises(InvalidInput, match="No photograph was named"):
            use([])
    with pytest.raises(InvalidInput, match="n must be a whole number from 1; found 0"):
        fitted.similar("a.jpg", 0)
    with pytest.raises(InvalidInput, match="n must be a whole number from 0; found -1"):
        fitted.audit(-1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("beach", "00030.jpg are 'beach'; expected a list"),
        (float("nan"), "00030.jpg are nan; expected a list"),
        ([7], r"00030.jpg hold 7 \(int\)"),
        ([None], "00030.jpg hold None"),
    ],
)
def test_tags_that_are_no_list_of_texts_are_refused(synthetic, row, message):
    tags = [*synthetic.tags[:3], row, *synthetic.tags[4:20]]
    with pytest.raises(InvalidInput, match=message):
        Annotator().fit(seen(synthetic.X[:20]), tags)


def test_blank_tags_are_none(synthetic):
    tags = [[""], ["  ", "|"], *(np.array(row, dtype=object) for row in synthetic.tags[2:40])]
    annotator = Annotator(space=SPACE, method=VOTING).fit(seen(synthetic.X[:40]), tags)
    assert [row_of(file) for file in annotator.files_] == list(range(2, 40))
    assert annotator.tags_ == synthetic.tags[2:40]


def test_tags_of_a_collection_are_not_suggested_again(fitted, synthetic, monkeypatch):
    photos = seen(synthetic.X[300:320], first=300)
    bare = fitted.suggest(photos, n=2)
    given = Collection(photos.files, [[p.suggestions[0].tag.upper()] for p in bare])
    monkeypatch.setattr(PhotographReader, "read", lambda self, photographs, *_: photos)
    again = fitted.suggest(given, n=1)
    assert [p.suggestions[0].tag for p in again] == [p.suggestions[1].tag for p in bare]
    assert again[0].tags == (bare[0].suggestions[0].tag.upper(),)
    assert fitted.suggest(photos, n=1, present=given.tags) == again


def test_a_wanted_precision_is_reached(fitted, synthetic):
    photos = seen(synthetic.X[300:], first=300)
    right = [
        s.tag in synthetic.named(row_of(p.file))
        for p in fitted.suggest(photos, precision=0.8)
        for s in p.suggestions
    ]
    assert len(right) > 50
    assert np.mean(right) > 0.75
    few = fitted.suggest(photos, precision=0.8, n=1)
    assert max(len(p.suggestions) for p in few) == 1


def test_the_same_input_gives_the_same_whatever_the_blocks(fitted, synthetic):
    """To the bit for the same blocks; for others up to the rounding of float32 products.

    Kernel columns meet coefficients that nearly cancel: embeddings agree to 2e-5 of their length
    (2⁻²⁴ in the columns), and confidences, which are steep, to 3e-4 (x86-64 and aarch64).
    """
    photos = seen(synthetic.X[300:], first=300)
    whole = fitted.suggest(photos, n=len(NAMES))
    again = Annotator().fit(seen(synthetic.X[:300]), synthetic.tags[:300])
    assert again.suggest(photos, n=len(NAMES)) == whole
    with tagkin.memory_budget(100_000):
        parts = fitted.suggest(photos, n=len(NAMES))
    for first, other in zip(whole, parts, strict=True):
        confidences, expected = (
            {s.tag: s.confidence for s in x.suggestions} for x in (first, other)
        )
        assert confidences == pytest.approx(expected, abs=1e-3)


def test_twenty_photographs_will_do(synthetic):
    annotator = Annotator().fit(seen(synthetic.X[:20]), synthetic.tags[:20])
    suggestions = annotator.suggest(seen(synthetic.X[300:310], first=300), n=2)
    assert all(p.suggestions for p in suggestions)


@pytest.mark.parametrize(
    "method", [NeighborVoting(10), tagkin.paper.TagRelevance(10), tagkin.paper.TagProp(5)]
)
def test_other_methods_by_neighbours(synthetic, method):
    annotator = Annotator(method=method).fit(seen(synthetic.X[:60]), synthetic.tags[:60])
    suggestions = annotator.suggest(seen(synthetic.X[300:310], first=300), n=2)
    assert all(s.kin for p in suggestions for s in p.suggestions)


def test_similar_photographs(fitted, synthetic):
    similar = fitted.similar(seen(synthetic.X[:5]), 4)
    for i, near in enumerate(similar):
        assert len(near) == 4
        assert i not in {row_of(neighbor.file) for neighbor in near}
        assert list(near[0].tags) == synthetic.tags[row_of(near[0].file)]
        similarities = [neighbor.similarity for neighbor in near]
        assert similarities == sorted(similarities, reverse=True)
    assert len(fitted.similar(seen(synthetic.X[:1]), 10_000)[0]) == 299


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_similar_photographs_and_kin_by_the_distance_of_the_method(synthetic, metric):
    method = tagkin.paper.TwoPassKNN(2, metric=metric)
    annotator = Annotator(method=method).fit(seen(synthetic.X[:100]), synthetic.tags[:100])
    places = annotator.space_.transform(synthetic.X[:100]).astype(np.float64)
    if metric == "cosine":
        places /= np.linalg.norm(places, axis=1, keepdims=True)
    distances = np.linalg.norm(places[:5, None] - places, axis=2)
    expected = 1 - distances**2 / 2 if metric == "cosine" else 1 / (1 + distances)
    for i, near in enumerate(annotator.similar(seen(synthetic.X[:5]), 4)):
        order = np.argsort(-expected[i], kind="stable")
        assert [row_of(neighbor.file) for neighbor in near] == order[order != i][:4].tolist()
        similarities = [neighbor.similarity for neighbor in near]
        np.testing.assert_allclose(similarities, expected[i][order[order != i][:4]], atol=4e-5)
    distances = np.linalg.norm(places[:, None] - places, axis=2) + np.diag(np.full(100, np.inf))
    for finding in annotator.audit(5, kind="wrong", n_kin=1):
        assert row_of(finding.kin[0].file) == distances[row_of(finding.file)].argmin()


def test_a_tag_on_one_photograph_is_learned_and_modest(synthetic):
    tags = [list(row) for row in synthetic.tags[:100]]
    tags[3].append("rare")
    annotator = Annotator().fit(seen(synthetic.X[:100]), tags)
    assert annotator.vocabulary_.index("rare") is not None
    photos = annotator.suggest(seen(synthetic.X[100:300], first=100), threshold=0)
    rare = [s.confidence for p in photos for s in p.suggestions if s.tag == "rare"]
    assert max(rare) < 0.5


def test_what_cannot_be_learned_from_is_refused(synthetic):
    photos = seen(synthetic.X[:10])
    with pytest.raises(InvalidInput, match="None of the 10 photographs has a tag"):
        Annotator().fit(photos, [[]] * 10)
    with pytest.raises(InvalidInput, match="one list of tags each"):
        Annotator().fit(photos)
    with pytest.raises(InvalidInput, match="10 photographs and 3 lists"):
        Annotator().fit(photos, [["a"]] * 3)
    with pytest.raises(InvalidInput, match="at least 6"):
        Annotator().fit(seen(synthetic.X[:3]), synthetic.tags[:3])
    with pytest.raises(InvalidInput, match="lower min_count"):
        Annotator(min_count=2).fit(photos, [[f"tag {i}"] for i in range(10)])
    with pytest.raises(InvalidInput, match="All 10 tagged photographs have the same tags"):
        Annotator().fit(photos, [["a"]] * 10)
    with pytest.raises(InvalidInput, match="RidgeTransfer"):
        Annotator(method=RidgeTransfer()).fit(photos, synthetic.tags[:10])
    with pytest.raises(NotFittedError):
        Annotator().suggest(photos)


def test_made_photographs_carry_tags():
    synthetic = SyntheticPhotographs(30)
    assert all(synthetic.tags)
    assert set().union(*synthetic.tags) <= set(NAMES)
