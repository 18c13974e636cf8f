"""Images that are not completely labelled: what nobody said of them is unknown."""

import numpy as np
import pytest
import scipy.sparse

import tagkin
from tagkin import FeatureAnnotator, Vocabulary
from tagkin.annotator.incomplete import known_logits
from tagkin.annotator.problem import Labels, Problem, count_as_complete
from tagkin.errors import InvalidInput
from tagkin.model_selection.folds import Fold

from .conftest import NAMES, SPACE, SyntheticPhotographs

N, N_COMPLETE = 300, 80


def answers(Y, seed=5):
    """Labels of the first images; of the others, a person answered one label in three."""
    asked = np.random.default_rng(seed).random(Y.shape) < 1 / 3
    complete = np.arange(len(Y)) < N_COMPLETE
    asked[complete] = True
    return np.where(asked, Y, 0), np.where(asked & ~complete[:, None], 1 - Y, 0), complete


@pytest.fixture(scope="module")
def labels(Y):
    return Y.toarray()[:N]


@pytest.fixture(scope="module")
def fitted(X, labels):
    present, rejected, complete = answers(labels)
    annotator = FeatureAnnotator(SPACE)
    return annotator.fit(X[:N], present, rejected=rejected, complete=complete)


def test_settings_and_the_audit_are_those_of_complete_images(fitted, X, labels):
    alone = FeatureAnnotator(SPACE).fit(X[:N_COMPLETE], labels[:N_COMPLETE])
    settings = alone.method_.n_neighbors, alone.method_.temperature
    assert (fitted.method_.n_neighbors, fitted.method_.temperature) == settings
    np.testing.assert_array_equal(fitted.model_.complete, np.arange(N) < N_COMPLETE)
    assert fitted.belonging_.shape == (N, len(NAMES))
    assert not fitted.belonging_[N_COMPLETE:].nnz
    assert {finding.image for finding in fitted.audit(10_000)} <= set(range(N_COMPLETE))
    indices = fitted.space_.landmarks.indices
    np.testing.assert_allclose(X[indices], fitted.space_.landmarks.points, rtol=1e-6)


def test_suggestions_for_incomplete_images_are_held_out(fitted, X, labels):
    """Their scores are of models that had not seen the image, so they differ from its own."""
    present, rejected, _ = answers(labels)
    rows = np.arange(N_COMPLETE, N_COMPLETE + 10)
    stored = fitted.model_.unknown_scores
    assert not stored[:N_COMPLETE].nnz
    known = (present + rejected)[stored.nonzero()]
    assert not known.any()
    own = fitted.predict_proba(X[rows])
    differences = []
    for i, row in enumerate(fitted.suggest(X[rows], threshold=0.0, known=rows)):
        for s in row:
            score = stored[rows[i], s.label]
            if score == 0:  # too unlikely to be stored
                assert s.confidence < 0.01
                continue
            P = fitted.model_.probabilities(np.full((1, len(NAMES)), score))
            assert s.confidence == pytest.approx(P[0, s.label], abs=1e-5)
            differences.append(abs(s.confidence - own[i, s.label]))
    assert max(differences) > 0.01


def test_unknown_labels_are_not_taken_for_wrong(fitted, X, labels):
    """Taken for complete, images of which a third is known would have no more suggestions."""
    present, rejected, _ = answers(labels)
    wrongly = FeatureAnnotator(SPACE).fit(X[:N], present, rejected=rejected)
    rows = np.arange(N_COMPLETE, N)
    n_unknown = (labels[rows] - present[rows]).sum()

    def count_right(annotator):
        suggested = annotator.suggest(X[rows], threshold=0.5, known=rows)
        return sum(labels[i, s.label] for i, row in zip(rows, suggested, strict=True) for s in row)

    assert count_right(fitted) > 0.5 * n_unknown
    assert count_right(wrongly) < 0.4 * n_unknown


def test_answers_teach():
    """The answers of incomplete images rank the labels of others better."""
    photographs = SyntheticPhotographs(400, seed=2)
    X, Y = photographs.X, Vocabulary().fit_transform(photographs.tags).toarray()
    present, rejected, complete = answers(Y[:N])
    informed, alone = (FeatureAnnotator(SPACE) for _ in range(2))
    informed.fit(X[:N], present, rejected=rejected, complete=complete)
    alone.fit(X[:N_COMPLETE], Y[:N_COMPLETE])
    assert informed.score(X[N:], Y[N:]) > alone.score(X[N:], Y[N:]) + 0.02


def test_a_fold_lacks_no_more_of_a_label_than_it_knows():
    """The logits of labels against a loop, to 1e-6; answers count like complete images."""
    rng = np.random.default_rng(0)
    Y, asked = rng.random((160, 5)) < 0.3, rng.random((160, 5)) < 0.5
    complete = np.arange(160) < 80
    known = asked | complete[:, None]
    labels = Labels.of((Y & known) * 1.0, scipy.sparse.csr_array(~Y & known), complete=complete)
    problem, rows = Problem(np.zeros((160, 1)), labels), np.flatnonzero(np.arange(160) % 3)
    for t, logit in enumerate(known_logits(problem, rows)):
        n = sum(known[i, t] for i in rows)
        yes = sum(Y[i, t] and known[i, t] for i in rows)
        share = (yes + 0.5) / (n + 1)
        assert logit == pytest.approx(np.log(share / (1 - share)), abs=1e-6)


def test_what_was_answered_is_not_suggested_again(fitted, X, labels, tmp_path):
    present, rejected, _ = answers(labels)
    rows = np.arange(N_COMPLETE, N_COMPLETE + 20)
    for annotator in (fitted, tagkin.load(fitted.save(tmp_path / "model"))):
        suggested = annotator.suggest(X[rows], threshold=0.0, known=rows)
        for i, row in zip(rows, suggested, strict=True):
            assert all(not present[i, s.label] and not rejected[i, s.label] for s in row)
        assert any(suggested)


def test_completed_later(fitted, X, labels, tmp_path):
    """An image that is completed is as any other from then on."""
    annotator = tagkin.load(fitted.save(tmp_path / "model"))
    rows = np.arange(N_COMPLETE, N)
    annotator.partial_fit(X[rows], labels[rows], known=rows, complete=np.ones(len(rows), bool))
    assert annotator.model_.complete.all()
    annotator.partial_fit(X[N : N + 2], labels[:2], complete=np.array([True, False]))
    np.testing.assert_array_equal(annotator.model_.complete[N:], [True, False])
    with pytest.raises(InvalidInput, match="complete must be an array of 2 booleans"):
        annotator.partial_fit(X[:2], labels[:2], complete=[1, 0])


def test_which_images_count_as_complete_if_few_are(labels):
    """First those that had labels before answers, then all with labels."""
    n_labels = np.array([1] * 8 + [2, 1, 1, 0])
    n_accepted = np.array([0] * 8 + [1, 1, 1, 0])
    for n_complete, n_counted in ((3, 9), (8, 9), (12, 12)):
        complete = np.arange(12) < n_complete
        counted = count_as_complete(complete, n_labels, n_accepted)
        np.testing.assert_array_equal(counted, np.arange(12) < n_counted)
    few = count_as_complete(np.zeros(7, bool), n_labels[5:], n_accepted[5:])
    np.testing.assert_array_equal(few, n_labels[5:] > 0)
    present, _, complete = answers(labels)
    many = Problem(present, Labels.of(present, complete=complete)).complete
    np.testing.assert_array_equal(many, complete)


def test_answers_to_few_photographs_do_not_make_others_wrong(X, labels):
    """With twelve tagged images and answers about one label, other labels stay as likely."""
    complete, asked = np.arange(N) < 12, np.zeros(labels.shape, bool)
    asked[12:60, 0] = True
    before = FeatureAnnotator(SPACE).fit(X[:12], labels[:12])
    after = FeatureAnnotator(SPACE).fit(
        X[:60],
        (labels * (complete[: len(labels), None] | asked))[:60],
        rejected=(asked & (labels == 0))[:60] * 1.0,
        accepted=(asked & (labels > 0))[:60] * 1.0,
        complete=complete[:60],
    )
    np.testing.assert_array_equal(after.model_.complete, complete[:60])
    expected = [annotator.predict_proba(X[60:])[:, 1:].sum() for annotator in (before, after)]
    assert expected[1] > 0.8 * expected[0]


@pytest.mark.parametrize("n_complete", [12, 60])
def test_complete_images_of_one_series_or_with_the_same_labels_are_not_enough(
    X, labels, n_complete
):
    complete, groups = np.arange(N) < n_complete, np.arange(N)
    groups[complete] = 0
    accepted = np.where(complete[:, None], 0, labels)
    same = np.where(complete[:, None], [1, 0, 0, 0, 0, 0], labels)
    for Y, given in ((labels, groups), (same, None)):
        annotator = FeatureAnnotator(SPACE)
        annotator.fit(X[:N], Y, accepted=accepted, groups=given, complete=complete)
        counted = complete | (Y > 0).any(axis=1)
        np.testing.assert_array_equal(annotator.model_.complete, counted)


def test_new_answers_move_no_complete_image_to_another_fold(labels):
    """Of series, too; every fold has complete images to learn from."""
    groups = np.arange(N) // 2
    complete = np.arange(N) % 5 < 2
    for given in (None, groups):
        problem = Problem(labels, Labels.of(labels, complete=complete), given)
        alone, folds = (
            [Fold.of(one.folds, k) for k in range(one.folds.max() + 1)]
            for part in (problem.take_complete(), problem)
            for one in part.split(10)
        )
        rows = np.flatnonzero(complete)
        for fold, of_complete in zip(folds, alone, strict=True):
            np.testing.assert_array_equal(
                np.intersect1d(fold.held_out, rows), rows[of_complete.held_out]
            )
            if given is not None:
                assert not np.intersect1d(given[fold.held_out], given[fold.known]).size
        assert np.bincount(np.concatenate([fold.held_out for fold in folds])).tolist() == [1] * N


def test_incomplete_series_of_any_size_make_folds_about_equal():
    """Every tenth series is long: in turn, all of these would be in one fold."""
    sizes = [2] * 30 + [20 if i % 10 == 3 else 1 for i in range(60)]
    groups = np.repeat(np.arange(len(sizes)), sizes)
    n = len(groups)
    Y = scipy.sparse.csr_array(np.ones((n, 2)))
    (one,) = Problem(np.ones((n, 1)), Labels.of(Y, complete=np.arange(n) < 60), groups).split(10)
    n_held_out = np.bincount(one.folds)
    assert len(n_held_out) == 10
    assert max(n_held_out) - min(n_held_out) <= 20


@pytest.mark.parametrize("n_complete", [6, 20])
def test_few_complete_images_and_rejections(X, labels, n_complete):
    """Images with rejections alone teach, however few are labelled."""
    complete = np.arange(60) < n_complete
    present = np.where(complete[:, None], labels[:60], 0)
    rejected = np.where(complete[:, None], 0, (labels[:60] == 0) * 1.0)
    annotator = FeatureAnnotator(SPACE)
    annotator.fit(X[:60], present, rejected=rejected, complete=complete)
    np.testing.assert_array_equal(annotator.model_.complete, complete)
    assert annotator.suggest(X[60:62], n=2)


def test_methods_that_know_no_unknown_labels_take_all_images(X, labels):
    present, rejected, complete = answers(labels)
    annotator = FeatureAnnotator(SPACE, tagkin.paper.NeighborVoting(20))
    annotator.fit(X[:N], present, rejected=rejected, complete=complete)
    assert annotator.model_.complete.all()


def test_a_complete_image_may_have_no_labels(X, labels):
    """A person finished it, and no label was right."""
    present, rejected, complete = answers(labels)
    present[:10] = rejected[:10] = 0
    annotator = FeatureAnnotator(SPACE)
    annotator.fit(X[:N], present, rejected=rejected, complete=complete)
    np.testing.assert_array_equal(annotator.model_.complete, complete)
    assert np.isfinite(annotator.predict_proba(X[N : N + 5])).all()


def test_an_image_whose_labels_were_all_accepted_had_none_before():
    """So its decisions do not tell how many labels people forget, though it is complete now."""
    Y = scipy.sparse.csr_array([[1, 1], [1, 1], [0, 0], [1, 0]])
    accepted = scipy.sparse.csr_array([[1, 1], [0, 1], [0, 0], [0, 1]])
    labels = Labels.of(Y, None, accepted, np.array([True, True, True, False]))
    assert labels.was_complete.tolist() == [False, True, False, False]


def test_labels_tell_what_was_said():
    """A rejection of a label that the image has is ignored, and so is an absent accepted label."""
    Y, rejected, accepted = (
        scipy.sparse.csr_array(np.array(rows, dtype=np.float32))
        for rows in ([[0, 1, 1], [1, 0, 0]], [[1, 1, 0], [0, 0, 1]], [[0, 0, 1], [0, 1, 0]])
    )
    labels = Labels.of(Y, rejected, accepted)
    assert labels.said.dtype == np.int8
    np.testing.assert_array_equal(labels.said.toarray(), [[-1, 1, 2], [1, 0, -1]])
    np.testing.assert_array_equal(labels.present.toarray(), Y.toarray())
    np.testing.assert_array_equal(labels.rejected.toarray(), [[1, 0, 0], [0, 0, 1]])
    np.testing.assert_array_equal(labels.accepted.toarray(), [[0, 0, 1], [0, 0, 0]])
    part = labels.take(np.array([1]), np.array([0, 2]))
    np.testing.assert_array_equal(part.said.toarray(), [[1, -1]])


def test_questions_that_models_choose_do_not_look_like_forgotten_labels():
    """Nothing is forgotten here, so after three rounds of answers confidences are still right."""
    rng, n, n_labels = np.random.default_rng(2), 500, 6
    truth = rng.random((n, n_labels)) < 0.25
    directions = np.random.default_rng(99).random((n_labels, 24))
    distraction = rng.random((n, 3)) @ np.random.default_rng(98).random((3, 24))
    X = truth @ directions + 2 * distraction + 1.2 * rng.random((n, 24))
    complete = np.arange(n) < 100
    annotator = FeatureAnnotator(SPACE).fit(X[complete], truth[complete] * 1.0)
    P, asked = annotator.predict_proba(X), np.zeros(truth.shape, dtype=bool)
    for _ in range(3):
        for label in range(n_labels):
            is_open = ~complete & ~asked[:, label]
            asked[np.argsort(-np.where(is_open, P[:, label], -1))[:40], label] = True
        annotator = FeatureAnnotator(SPACE).fit(
            X,
            (asked | complete[:, None]) * truth * 1.0,
            rejected=(asked & ~truth) * 1.0,
            accepted=(asked & truth) * 1.0,
            complete=complete,
        )
        P = np.zeros(truth.shape)
        for row, suggestions in enumerate(annotator.suggest(X, threshold=0.0, known=np.arange(n))):
            for suggestion in suggestions:
                P[row, suggestion.label] = suggestion.confidence
    is_open = ~complete[:, None] & ~asked
    assert annotator.model_.unannotated.offset < -2
    assert P[is_open].sum() == pytest.approx((is_open & truth).sum(), rel=0.25)


def test_labels_that_some_fold_has_not_seen_do_not_teach_the_weights():
    """With answers, votes count about as much as without, although most labels are rare."""
    rng, n, n_common = np.random.default_rng(4), 300, 5
    common = rng.random((n, n_common)) < 0.3
    rare = np.zeros((n, 30), dtype=bool)
    rare[rng.permutation(100)[:30], np.arange(30)] = True
    truth = np.hstack([common, rare])
    X = common @ rng.random((n_common, 24)) + 0.8 * rng.random((n, 24))
    complete, asked = np.arange(n) < 100, np.zeros(truth.shape, dtype=bool)
    asked[100:, 0] = True
    before = FeatureAnnotator(SPACE).fit(X[complete], truth[complete] * 1.0)
    after = FeatureAnnotator(SPACE).fit(
        X,
        (asked | complete[:, None]) * truth * 1.0,
        rejected=(asked & ~truth) * 1.0,
        accepted=(asked & truth) * 1.0,
        complete=complete,
    )
    votes = [model.model_.calibration.mixture.common[0] for model in (before, after)]
    assert votes[1] > votes[0] / 2
