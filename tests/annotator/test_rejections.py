"""What a person rejected, and accepted: never suggested again, and what it says of others."""

import copy

import numpy as np
import pytest
import scipy.sparse

import tagkin
from tagkin import Annotator, FeatureAnnotator, Vocabulary
from tagkin.annotator.learning import fit_decisions
from tagkin.annotator.part import Part
from tagkin.annotator.problem import Labels, Problem
from tagkin.annotator.suggesting import drop_itself
from tagkin.calibration import fit_unannotated_labels
from tagkin.errors import InvalidInput
from tagkin.paper import NeighborVoting

from .conftest import NAMES, SPACE, N, seen, voting


def rejected_of(annotator, X, n=40):
    """The surest suggestion of each of the first images, as if a person had said no."""
    first = annotator.suggest(X[:n], n=1, known=np.arange(n))
    return [[s.name for s in row] for row in first] + [[]] * (N - n)


@pytest.fixture(scope="module")
def rejected(plain, X):
    return rejected_of(plain, X)


@pytest.fixture(scope="module")
def with_rejections(rejected, synthetic, X):
    """It was with_rejections of rejections."""
    annotator = FeatureAnnotator(SPACE)
    return annotator.fit(X[:N], synthetic.tags[:N], rejected=rejected)


def test_what_was_rejected_is_never_suggested_again(with_rejections, rejected, X, tmp_path):
    annotator = with_rejections
    assert annotator.model_.rejected.shape == (N, len(NAMES))
    for model in (annotator, tagkin.load(annotator.save(tmp_path / "model"))):
        again = model.suggest(X[:40], threshold=0.0, known=np.arange(40))
        for row, no in zip(again, rejected[:40], strict=True):
            assert {s.name for s in row}.isdisjoint(no)
        missing = {(f.image, f.name) for f in model.audit(10_000, kind="missing")}
        assert missing
        assert missing.isdisjoint((i, tag) for i, row in enumerate(rejected) for tag in row)
    # others, and the same photograph where it is taken for a new one, are free
    assert any(s.name in rejected[0] for row in annotator.suggest(X[:40], n=2) for s in row)
    new = annotator.suggest(X[N : N + 3], threshold=0.0, rejected=[["snow"], [], NAMES])
    assert "snow" not in {s.name for s in new[0]}
    assert "snow" in {s.name for s in new[1]}
    assert not new[2]


def test_rejections_as_a_matrix_and_of_what_is_carried(X, Y, synthetic):
    R = scipy.sparse.lil_array(Y[:N].shape)
    absent = np.argwhere(Y[:N].toarray() == 0)[:5]
    R[absent[:, 0], absent[:, 1]] = 1
    R[:, 0] = 1
    annotator = voting().fit(X[:N], Y[:N], rejected=R.tocsr())
    expected = (R.toarray() > 0) & (Y[:N].toarray() == 0)
    np.testing.assert_array_equal(annotator.model_.rejected.toarray() > 0, expected)
    with pytest.raises(InvalidInput, match="Found labels of shape"):
        FeatureAnnotator().fit(X[:N], Y[:N], rejected=R.tocsr()[:, :3])


def test_who_rejects_a_dog_has_not_rejected_an_animal(X, synthetic):
    tags = [[f"scene|{tag}" for tag in row] for row in synthetic.tags[:N]]
    vocabulary = Vocabulary(separator="|")
    annotator = voting(vocabulary=vocabulary)
    annotator.fit(X[:N], tags, rejected=[["scene|snow"]] * N)
    snow, scene = (annotator.vocabulary_.index(tag) for tag in ("scene|snow", "scene"))
    assert annotator.model_.rejected[:, [snow]].nnz > 0
    assert annotator.model_.rejected[:, [scene]].nnz == 0


def test_further_rejections(with_rejections, synthetic, X):
    annotator = copy.deepcopy(with_rejections)
    before = annotator.model_.rejected.toarray()
    tags = [synthetic.tags[0], ["snow"], ["snow"]]
    annotator.partial_fit(X[[0, N, N + 1]], tags, known=[0, -1, -1])
    assert annotator.model_.rejected.shape == (N + 2, 6)
    np.testing.assert_array_equal(annotator.model_.rejected.toarray()[:N], before)
    absent = next(tag for tag in NAMES if tag not in synthetic.tags[0])
    annotator.partial_fit(X[[0]], [synthetic.tags[0]], known=[0], rejected=[[absent]])
    (row,) = annotator.model_.rejected[[0]].toarray()
    assert np.flatnonzero(row).tolist() == [annotator.vocabulary_.index(absent)]


heard: list[tuple] = []
"""Labels of each fit of `Listening`, and what was rejected."""


class Listening(NeighborVoting):
    """A method that takes rejected labels."""

    takes_rejected = True

    def fit(self, X, y=None, *, rejected=None, groups=None):
        """Keep what was rejected."""
        heard.append((y, rejected))
        return super().fit(X, y, groups=groups)


def test_a_method_that_takes_rejections_gets_those_of_its_images(plain, synthetic, X):
    rejected = rejected_of(plain, X, N)
    heard.clear()
    annotator = FeatureAnnotator(method=Listening(10))
    annotator.fit(X[:N], synthetic.tags[:N], rejected=rejected)
    (of_all,) = [no for y, no in heard if y.shape[0] == N]
    np.testing.assert_array_equal(of_all.toarray(), annotator.model_.rejected.toarray())
    whole = np.hstack([annotator.method_.labels.toarray(), annotator.model_.rejected.toarray()])
    rows = {row.tobytes() for row in whole}
    for y, no in heard:  # in every fold, with the labels of the same images
        assert {row.tobytes() for row in np.hstack([y.toarray(), no.toarray()])} <= rows
    assert len(heard) == 11
    heard.clear()
    annotator.fit(X[:N], synthetic.tags[:N])
    assert all(no is None for _, no in heard)


def reviewed(synthetic):
    """Tags of which half are forgotten, and what a person who never takes snow decided on half."""
    rng, tags, accepted, rejected = np.random.default_rng(0), [], [], []
    for i, row in enumerate(synthetic.tags[:N]):
        carried = [tag for tag in row if rng.random() < 0.5]
        right = [tag for tag in row if tag not in carried and tag != "snow"] if i % 2 else []
        wrong = [tag for tag in NAMES if tag not in carried + right] if i % 2 else []
        tags.append(carried + right)
        accepted.append(right)
        rejected.append(wrong)
    return tags, accepted, rejected


@pytest.fixture(scope="module")
def decided(synthetic, X):
    """It was with_rejections of what that person accepted and rejected."""
    tags, accepted, rejected = reviewed(synthetic)
    annotator = FeatureAnnotator(SPACE)
    return annotator.fit(X[:N], tags, rejected=rejected, accepted=accepted)


def test_decisions_move_the_confidences_of_what_nobody_said(decided, synthetic, X, tmp_path):
    """A tag that was rejected wherever it was suggested is suggested with less confidence."""
    tags, _, rejected = reviewed(synthetic)
    plain = FeatureAnnotator(SPACE).fit(X[:N], tags, rejected=rejected)
    assert plain.model_.unannotated is None  # nothing tells what was accepted
    informed = copy.deepcopy(decided)
    snow = informed.vocabulary_.index("snow")
    unannotated = informed.model_.unannotated
    assert unannotated.offsets[snow] < np.delete(unannotated.offsets, snow).min() - 1
    before, after = plain.predict_proba(X[N:]), informed.predict_proba(X[N:])
    none = np.zeros(len(before), dtype=bool)
    np.testing.assert_allclose(after, unannotated.predict_proba(before, none), atol=1e-5)
    # of a photograph that somebody has tagged it is known that nobody said the others
    (suggestions,) = informed.suggest(X[:1], threshold=0.0, known=[0])
    places = informed.space_.transform(X[:1])
    others = drop_itself(informed.method_.kneighbors(places), np.array([0]))
    scores = informed.calibration_.mix(informed.method_.components(places, others))
    (expected,) = informed.model_.probabilities(scores, np.array([True]))
    assert suggestions
    for suggestion in suggestions:
        assert suggestion.confidence == pytest.approx(expected[suggestion.label], abs=1e-5)
    again = tagkin.load(informed.save(tmp_path / "model"))
    # the arrays of a loaded model are laid out otherwise, and sums are rounded otherwise
    np.testing.assert_allclose(again.predict_proba(X[N:]), after, atol=1e-5)
    assert any("accepted and" in line for line in informed.describe())


def test_decisions_on_incomplete_images_move_confidences(decided, synthetic, X):
    """They move as by all decisions side by side, scored by the model that has not seen them."""
    tags, accepted, rejected = reviewed(synthetic)
    X = X[: 2 * N]  # of more others than images learned from, some would count
    n_others = len(X) - N
    informed = FeatureAnnotator(SPACE).fit(
        X,
        tags + [[]] * n_others,
        rejected=rejected + [["beach"]] * n_others,
        accepted=accepted + [[]] * n_others,
        complete=np.arange(len(X)) < N,
    )
    beach = informed.vocabulary_.index("beach")
    assert (
        informed.model_.unannotated.n_rejected == decided.model_.unannotated.n_rejected + n_others
    )
    assert (
        informed.model_.unannotated.offsets[beach] < decided.model_.unannotated.offsets[beach] - 0.5
    )
    scores = np.random.default_rng(0).normal(-1, 1, decided.method_.labels.shape)
    yes, no, others = (
        scipy.sparse.csr_array(decided.vocabulary_.transform(rows))
        for rows in (accepted, rejected, [["beach"]] * n_others)
    )
    labels = Labels.of(
        scipy.sparse.vstack([decided.method_.labels, 0 * others], format="csr"),
        scipy.sparse.vstack([no, others], format="csr"),
        scipy.sparse.vstack([yes, 0 * others], format="csr"),
        np.arange(len(X)) < N,
    )
    problem = Problem(X, labels)
    part = Part([], np.arange(N), np.arange(len(NAMES)), np.zeros(N, int))
    unannotated = fit_decisions(problem, part, scores, decided.model_)
    both = np.concatenate([scores, decided.decision_function(X[N:])])
    expected = fit_unannotated_labels(
        decided.calibration_.probabilities(both),
        np.concatenate([yes.toarray(), np.zeros(others.shape)]),
        np.concatenate([no.toarray(), others.toarray()]),
        annotated=labels.was_complete,
    )
    np.testing.assert_allclose(unannotated.offsets, expected.offsets, atol=1e-6)


def test_photographs_keep_what_was_rejected_for_them(synthetic, X):
    """By content: copies of a photograph are one."""
    photos = seen(X[:N])
    rejected = [[] for _ in range(N)]
    rejected[3] = [tag for tag in NAMES if tag not in synthetic.tags[3]][:2]
    model = Annotator(space=SPACE, method=NeighborVoting(20))
    model.fit(photos, synthetic.tags[:N], rejected=rejected)
    (suggestions,) = model.suggest(seen(X[3:4], first=3), threshold=0.0)
    assert suggestions.suggestions
    assert {s.tag for s in suggestions.suggestions}.isdisjoint(rejected[3])
    model.partial_fit(seen(X[3:4], first=3), [["snow"]], rejected=[["beach"]])
    (suggestions,) = model.suggest(seen(X[3:4], first=3), threshold=0.0)
    assert {s.tag for s in suggestions.suggestions} == set(NAMES) - {"snow", "beach"}
    (suggestions,) = model.suggest(seen(X[N : N + 1], first=N), threshold=0.0, rejected=[["city"]])
    assert "city" not in {s.tag for s in suggestions.suggestions}
