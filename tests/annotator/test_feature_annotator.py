"""An estimator of features: labels in every form, suggestions, groups, further images."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

import tagkin
from tagkin import Annotator, FeatureAnnotator, Vocabulary, arrays
from tagkin.annotator.series import find_series
from tagkin.annotator.suggesting import STILL_LIKELY
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tagkin.paper import NeighborVoting, RidgeTransfer
from tests.conftest import assert_same, needs_torch

from .conftest import NAMES, SPACE, N, assert_alike, seen, voting


@pytest.fixture(scope="module")
def by_tags(synthetic, X):
    return FeatureAnnotator().fit(X[:N], synthetic.tags[:N])


@pytest.fixture(scope="module")
def by_voting(synthetic, X):
    return voting().fit(X[:N], synthetic.tags[:N])


# --- the annotator is this estimator -----------------------------------------------------


def test_an_annotator_is_this_estimator_with_photographs_in_front(synthetic, X):
    """The same space, method, same confidences; files in the place of numbers."""
    fitted = Annotator().fit(seen(X[:N]), synthetic.tags[:N])
    groups = fitted.model_.groups  # by the names of the files
    by_tags = FeatureAnnotator().fit(X[:N], synthetic.tags[:N], groups=groups)
    np.testing.assert_allclose(
        fitted.model_.belonging.toarray(), by_tags.belonging_.toarray(), atol=1e-5
    )
    photos = fitted.suggest(seen(X[N:], first=N), precision=0.8)
    images = by_tags.suggest(X[N:], precision=0.8)
    assert any(images)
    for photo, image in zip(photos, images, strict=True):
        assert [s.tag for s in photo.suggestions] == [s.name for s in image]
        for shown, finding in zip(photo.suggestions, image, strict=True):
            assert shown.confidence == pytest.approx(finding.confidence, abs=1e-5)
            files = [f"photos/{10 * neighbor.image:05}.jpg" for neighbor in finding.support]
            assert [kin.file[-len(files[0]) :] for kin in shown.kin] == files
    for shown, finding in zip(fitted.audit(10), by_tags.audit(10), strict=True):
        assert (shown.tag, shown.kind) == (finding.name, finding.kind)
        assert shown.file.endswith(f"{10 * finding.image:05}.jpg")


def test_what_photographs_were_cross_validated_to_be_their_features_are(synthetic, X):
    photos = Annotator(space=SPACE).cross_validate(seen(X[:60]), synthetic.tags[:60])
    groups = find_series(seen(X[:60]).files, X[:60])
    images = FeatureAnnotator(SPACE).cross_validate(X[:60], synthetic.tags[:60], groups=groups)
    assert photos.semantic == pytest.approx(images.semantic)
    assert photos.visual == pytest.approx(images.visual)


# --- labels in all their forms -----------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "sparse", "DataFrame", "tags", "arrays of tags"])
def test_labels_in_whatever_form_teach_the_same(form, X, Y, synthetic, by_voting):
    pandas = pytest.importorskip("pandas") if form == "DataFrame" else None
    given = {
        "dense": lambda: Y.toarray(),
        "sparse": lambda: Y,
        "DataFrame": lambda: pandas.DataFrame(Y.toarray(), columns=NAMES),
        "tags": lambda: synthetic.tags,
        "arrays of tags": lambda: [np.array(row, dtype=object) for row in synthetic.tags],
    }[form]()
    labels = given[:N]
    annotator = voting().fit(X[:N], labels)
    expected = by_voting.predict_proba(X[N:])
    np.testing.assert_allclose(annotator.predict_proba(X[N:]), expected, atol=1e-4)
    names = list(range(len(NAMES))) if form in ("dense", "sparse") else NAMES
    assert annotator.classes_.tolist() == names
    suggested = {s.name for row in annotator.suggest(X[N:]) for s in row}
    assert suggested <= set(names)
    assert {type(name) for name in suggested} == {type(names[0])}  # which JSON knows
    assert annotator.score(X[N:], given[N:]) == pytest.approx(
        mean_average_precision(Y[N:], annotator.decision_function(X[N:]))
    )


def test_a_vocabulary_of_ones_own(synthetic, X):
    own = Vocabulary(separator="o", imply_parents=False)
    annotator = voting(vocabulary=own)
    annotator.fit(X[:N], synthetic.tags[:N])
    assert annotator.vocabulary_.separator == "o"
    assert not hasattr(annotator.vocabulary, "n_images_")  # parameters stay as they were given


def test_columns_in_another_order_are_refused(X, Y):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(Y.toarray(), columns=NAMES)
    annotator, turned = voting().fit(X[:N], frame[:N]), frame[NAMES[::-1]]
    for use in (
        lambda: annotator.score(X[N:], turned[N:]),
        lambda: annotator.suggest(X[N:], present=turned[N:]),
        lambda: annotator.suggest(X[N:], rejected=turned[N:]),
        lambda: annotator.partial_fit(X[N:], frame[N:], rejected=turned[N:]),
        lambda: voting().fit(X[:N], frame[:N], rejected=turned[:N]),
        lambda: voting().fit(X[:N], frame[:N], accepted=turned[:N]),
    ):
        with pytest.raises(InvalidInput, match="Column 0 of Y"):
            use()


def test_columns_have_the_names_of_tags_where_tags_were_learned(by_voting, X, Y):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(Y.toarray(), columns=NAMES)[N:]
    assert by_voting.score(X[N:], frame) == pytest.approx(by_voting.score(X[N:], Y[N:]))
    with pytest.raises(InvalidInput, match="Column 0 of Y"):
        by_voting.score(X[N:], frame[NAMES[::-1]])


# --- probabilities and suggestions -------------------------------------------------------


def test_probabilities_are_calibrated_scores_on_new_images(by_tags, synthetic, X):
    P = by_tags.predict_proba(X[N:])
    expected = by_tags.calibration_.probabilities(by_tags.decision_function(X[N:]))
    assert_same(P, expected, 1e-5)
    for threshold, predicted in (
        (0.5, by_tags.predict(X[N:])),
        (0.2, by_tags.predict(X[N:], threshold=0.2)),
    ):
        clear = np.abs(P - threshold) > 1e-4  # rounding decides about the others
        np.testing.assert_array_equal(predicted[clear], P[clear] >= threshold)
        assert clear.mean() > 0.9
    given = Vocabulary().fit(synthetic.tags).transform(synthetic.tags[N:]).toarray()
    assert P.mean() == pytest.approx(given.mean(), abs=0.03)
    for wrong in (-0.1, 1.5, [[0.5]]):
        with pytest.raises(InvalidInput, match="threshold must be a number from 0 to 1"):
            by_tags.predict(X[N:], threshold=wrong)


def test_suggestions_with_a_wanted_precision_and_their_support(by_tags, synthetic, X):
    suggestions = by_tags.suggest(X[N:], precision=0.8, n_kin=1000)
    right = [s.name in synthetic.named(N + i) for i, row in enumerate(suggestions) for s in row]
    assert len(right) > 30
    assert np.mean(right) > 0.75
    for row in suggestions:
        for suggestion in row:
            others = suggestion.name_share + suggestion.readout_share
            assert sum(part.share for part in suggestion.support) == pytest.approx(1 - others)
            assert all(suggestion.name in synthetic.tags[part.image] for part in suggestion.support)


def test_a_precision_is_that_of_what_is_still_open(by_tags, X):
    """The surest labels are known already, so the others must reach the precision alone."""
    P, names = by_tags.predict_proba(X[N:]), np.array(by_tags.classes_)
    sure = [names[row >= 0.7].tolist() for row in P]
    nobody = np.zeros(len(P), dtype=bool)
    rest = by_tags.suggest(X[N:], precision=0.5, present=sure, complete=nobody)
    confidences = [s.confidence for row in rest for s in row]
    assert len(confidences) > 10
    assert max(confidences) < 0.7
    assert np.mean(confidences) >= 0.5 - 1e-6


def test_what_was_offered_stays_while_it_is_likely(by_tags, X):
    few = by_tags.suggest(X[N : N + 40], threshold=0.9)
    P = by_tags.predict_proba(X[N : N + 40])
    offered = [["never learned", *NAMES] for _ in few]
    names = by_tags.classes_.tolist()
    for suggestions, row, before in zip(
        by_tags.suggest(X[N : N + 40], threshold=0.9, n=1, offered=offered), P, few, strict=True
    ):
        expected = {name for name, p in zip(names, row, strict=True) if p >= STILL_LIKELY}
        assert {s.name for s in suggestions} == expected >= {s.name for s in before}
        confidences = [s.confidence for s in suggestions]
        assert confidences == sorted(confidences, reverse=True)
    rejected = [[NAMES[0]] for _ in few]
    suggested = by_tags.suggest(X[N : N + 40], threshold=0.9, offered=offered, rejected=rejected)
    assert NAMES[0] not in {s.name for row in suggested for s in row}


def test_an_image_learned_from_does_not_support_itself(by_tags, synthetic, X):
    known = np.arange(40)
    suggestions = by_tags.suggest(X[:40], threshold=0.0, known=known, n_kin=1000)
    for i, row in enumerate(suggestions):
        assert {s.name for s in row}.isdisjoint(synthetic.tags[i])
        assert i not in {part.image for s in row for part in s.support}
    other = by_tags.suggest(X[:40], threshold=0.0, known=known, present=[[]] * 40)
    assert any({s.name for s in row} & set(synthetic.tags[i]) for i, row in enumerate(other))


def test_similar_images_are_nearest_in_the_space(by_tags, X):
    embeddings = by_tags.space_.transform(X).astype(np.float64)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    cosines = embeddings[N : N + 5] @ embeddings[:N].T
    for row, similar in zip(cosines, by_tags.similar(X[N : N + 5], 4), strict=True):
        # of float32 embeddings, and of two transforms of them
        np.testing.assert_allclose([s.similarity for s in similar], np.sort(row)[:-5:-1], atol=1e-4)
        np.testing.assert_allclose(row[[s.image for s in similar]], np.sort(row)[:-5:-1], atol=1e-4)


def test_kin_read_out_and_name_share_what_speaks_for_a_tag(by_tags, X):
    """By the mixture: what votes and read-out add to the score of a label's share."""
    suggestions = by_tags.suggest(X[N:], n=2)
    votes, readout = by_tags.method_.components(by_tags.space_.transform(X[N:]))
    mixture, n_read_off = by_tags.calibration_.mixture, 0
    for i, row in enumerate(suggestions):
        for suggestion in row:
            t = suggestion.label
            parts = np.array([votes[i, t], readout[i, t]]) - mixture.centers[t]
            lifts = np.maximum(mixture.weights[t] * parts, 0)
            assert suggestion.name_share == 0
            if lifts.any():
                expected = lifts[1] / lifts.sum()
                assert suggestion.readout_share == pytest.approx(expected, abs=1e-4)
            n_read_off += suggestion.readout_share > 0
    assert n_read_off


# --- groups ------------------------------------------------------------------------------


def test_images_of_one_group_are_held_out_together():
    """Near-copies with the same chance labels: only their own kind tells them."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 4)
    X = np.repeat(rng.random((40, 8)), 4, axis=0) + 1e-3 * rng.random((160, 8))
    Y = np.repeat(rng.random((40, 5)) < 0.3, 4, axis=0)
    alone = FeatureAnnotator(SPACE, method=NeighborVoting(3))
    alone.fit(X, Y, groups=np.arange(160))
    together = clone(alone).fit(X, Y, groups=groups)
    annotator = clone(alone).fit(X, Y)  # near-copies are found
    sure, unsure, too = (
        model.belonging_.toarray()[Y].mean() for model in (alone, together, annotator)
    )
    assert sure > 0.9
    assert unsure < 0.5
    assert too < 0.5
    quality = clone(alone).cross_validate(X, Y, groups=groups)
    careless = clone(alone).cross_validate(X, Y, groups=np.arange(160))
    assert quality.semantic["MAP"] < careless.semantic["MAP"] - 0.3


# --- further images and labels -----------------------------------------------------------


def test_new_images_vote_and_new_labels_wait_for_a_fit(plain, synthetic, X, Y):
    annotator, n_all = copy.deepcopy(plain), N + 60
    annotator.partial_fit(X[N:n_all], synthetic.tags[N:n_all])
    assert annotator.method_.labels.shape == (n_all, 6)
    suggested = [s for row in annotator.suggest(X[n_all:], threshold=0.05) for s in row]
    assert any(part.image >= N for s in suggested for part in s.support)
    assert annotator.audit(5)
    with pytest.raises(InvalidInput, match="New tags wait for the next fit: 'holiday'"):
        annotator.partial_fit(X[:1], [["holiday", "snow"]])
    with pytest.raises(InvalidInput, match="New labels need a new fit"):
        voting().fit(X[:100], Y[:100]).partial_fit(X[:1], np.ones((1, 7)))


def test_labels_of_known_images_are_replaced(X, Y):
    annotator = voting().fit(X[:100], Y[:100])
    known = np.append([3], np.full(N - 101, -1))
    annotator.partial_fit(X[100:N], Y[100:N], known=known)
    labels, given = annotator.method_.labels.toarray(), Y[100:N].toarray()
    np.testing.assert_array_equal(labels[3], given[0])
    np.testing.assert_array_equal(labels[:3], Y[:3].toarray())
    np.testing.assert_array_equal(labels[100:], given[1:])


def test_without_a_fit_before_it_is_one(synthetic, X):
    annotator = voting().partial_fit(X[:50], synthetic.tags[:50])
    again = voting().fit(X[:50], synthetic.tags[:50])
    np.testing.assert_allclose(annotator.predict_proba(X[50:60]), again.predict_proba(X[50:60]))


def test_what_was_fitted_on_tags_takes_tags(by_tags, X, Y):
    with pytest.raises(InvalidInput, match="one list of tags per image"):
        by_tags.partial_fit(X[:5], Y[:5])


# --- keeping -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["matrix", "tags"])
def test_a_saved_one_suggests_the_same(form, plain, synthetic, X, Y, tmp_path):
    y = Y if form == "matrix" else synthetic.tags
    annotator = voting().fit(X[:N], Y[:N]) if form == "matrix" else plain
    loaded = tagkin.load(annotator.save(tmp_path / "model"))
    assert isinstance(loaded, FeatureAnnotator)
    assert_alike(loaded.suggest(X[N:]), annotator.suggest(X[N:]))
    assert_alike(loaded.audit(5), annotator.audit(5))
    assert loaded.describe() == annotator.describe()
    assert loaded.describe()[0].startswith(f"Learned from {N} labelled images and 6 labels.")
    weights = "score" if form == "matrix" else "votes"
    assert loaded.describe()[-1].startswith(f"Weights of a label with few images: {weights} ")
    loaded.partial_fit(X[N : N + 10], y[N : N + 10])
    assert loaded.method_.labels.shape[0] == N + 10


@needs_torch
def test_on_a_device_it_takes_tensors_and_says_the_same(by_tags, X, tmp_path):
    """Read-out and all: neighbours that suggestions come from are on the host, embeddings not."""
    import torch

    loaded = tagkin.load(by_tags.save(tmp_path / "model"), device="cpu")
    new = torch.asarray(X[N:])
    with warnings.catch_warnings(action="error"):
        suggested, findings = loaded.suggest(new, n=3), loaded.audit(5)
    rows = zip(
        [*suggested, findings], [*by_tags.suggest(X[N:], n=3), by_tags.audit(5)], strict=True
    )
    pairs = [pair for row in rows for pair in zip(*row, strict=True)]
    differences = np.array([on_device.confidence - there.confidence for on_device, there in pairs])
    # embeddings in float32 differ by 1e-5 of their length, and calibration is steep in places
    assert np.quantile(np.abs(differences), 0.9) < 5e-5
    np.testing.assert_allclose(differences, 0, atol=5e-4)


# --- what cannot be learned from ---------------------------------------------------------


@pytest.mark.parametrize("missing", ["None", "nan", "NA"])
def test_images_whose_group_is_missing_are_refused(X, synthetic, missing):
    pandas = pytest.importorskip("pandas")
    value = {"None": None, "nan": np.nan, "NA": pandas.NA}[missing]
    groups = pandas.Series(["beach", value] * 20, dtype=object)
    with pytest.raises(InvalidInput, match="groups has no name in row 1"):
        FeatureAnnotator().fit(X[:40], synthetic.tags[:40], groups=groups)


def test_what_cannot_be_learned_from_is_refused(X, synthetic):
    with pytest.raises(InvalidInput, match="Found 3 tagged photographs; at least 6"):
        FeatureAnnotator().fit(X[:3], synthetic.tags[:3])
    with pytest.raises(InvalidInput, match="10 rows of features and 3 lists"):
        FeatureAnnotator().fit(X[:10], synthetic.tags[:3])
    with pytest.raises(InvalidInput, match="No tag is on enough images"):
        FeatureAnnotator().fit(X[:10], [[] for _ in range(10)])
    with pytest.raises(InvalidInput, match="None of the 10 images has a label"):
        FeatureAnnotator().fit(X[:10], np.zeros((10, 3)))
    with pytest.raises(InvalidInput, match="Row 1 of y is 'snow'"):
        FeatureAnnotator().fit(X[:10], [["a"], "snow", *[["b"]] * 8])
    with (
        pytest.warns(UserWarning, match="One group has 40 of the 40 images"),
        pytest.raises(InvalidInput, match="Found 1 group of images for 2 folds"),
    ):
        FeatureAnnotator().fit(X[:40], synthetic.tags[:40], groups=np.zeros(40))
    with pytest.raises(InvalidInput, match="space must be a SemanticSpace; found 'linear'"):
        FeatureAnnotator(space="linear").fit(X[:10], synthetic.tags[:10])
    with pytest.raises(InvalidInput, match="RidgeTransfer"):
        FeatureAnnotator(method=RidgeTransfer()).fit(X[:10], synthetic.tags[:10])
    with pytest.raises(NotFittedError):
        FeatureAnnotator().predict(X)


def test_tags_that_were_not_learned_are_not_scored(by_tags, X):
    with pytest.raises(InvalidInput, match=r"None of the images has a label that was learned"):
        by_tags.score(X[:3], [["no such tag"], [], ["nor this"]])


def test_labels_between_0_and_1_are_refused(by_voting, X, Y):
    doubtful = Y.toarray().astype(float)
    doubtful[3, 1] = 0.3
    for given in (doubtful, scipy.sparse.csr_array(doubtful)):
        for use in (FeatureAnnotator(SPACE).fit, by_voting.score):
            with pytest.raises(InvalidInput, match=r"Row 3, column 1 of Y is 0\.3\b"):
                use(X, given)


def test_scikit_learns_cross_validation_takes_tags_and_probabilities_of_a_matrix(X, Y, synthetic):
    estimator = voting()
    Y = Y.toarray()
    by_tags = cross_val_score(estimator, X, synthetic.tags, cv=2)
    np.testing.assert_allclose(by_tags, cross_val_score(estimator, X, Y, cv=2), rtol=0.1)
    grid = GridSearchCV(estimator, {"method__n_neighbors": [3, 9]}, cv=2).fit(X, synthetic.tags)
    assert grid.best_params_["method__n_neighbors"] in (3, 9)
    P = cross_val_predict(estimator, X, Y, cv=2, method="predict_proba")
    half = len(X) // 2
    first = clone(estimator).fit(X[half:], Y[half:])
    np.testing.assert_allclose(P[:half], first.predict_proba(X[:half]), atol=1e-6)


@pytest.mark.skipif(
    [int(part) for part in sklearn.__version__.split(".")[:2]] < [1, 9],
    reason="scorers of earlier versions take what is neither for a regressor",
)
def test_a_scorer_of_probabilities_sees_both_of_two_labels(X, Y):
    """A classifier of two classes gets one column of its probabilities scored."""
    scorer = make_scorer(average_precision_score, response_method="predict_proba")
    two = Y.toarray()[:, :2]
    estimator = voting().fit(X, two)
    expected = average_precision_score(two, estimator.predict_proba(X))
    assert scorer(estimator, X, two) == pytest.approx(expected)


def test_a_failed_fit_leaves_what_was_learned(synthetic, X):
    annotator = voting().fit(X[:50], synthetic.tags[:50])
    before = annotator.suggest(X[N:])
    with pytest.raises(InvalidInput):
        annotator.fit(X[:10], [["a"]] * 10)
    with pytest.raises(InvalidInput, match="known must hold a number"):
        annotator.partial_fit(X[:1], [["snow"]], known=[50])
    assert annotator.suggest(X[N:]) == before


@pytest.mark.parametrize("groups", [None, np.arange(N)])
def test_the_row_of_a_bad_feature_is_the_callers(by_voting, X, synthetic, groups):
    """Near-duplicates are looked for in another order, and suggestions are made in blocks."""
    spoilt = X[:N].copy()
    spoilt[N - 3, 1] = np.nan
    message = f"Input X contains NaN or infinity in row {N - 3}\\."
    with pytest.raises(InvalidInput, match=message):
        voting().fit(spoilt, synthetic.tags[:N], groups=groups)
    calls = [by_voting.suggest, by_voting.predict_proba, by_voting.similar]
    with arrays.memory_budget(1 << 16):
        for call in calls:
            with pytest.raises(InvalidInput, match=message):
                call(spoilt)


@pytest.mark.parametrize("kind", [bool, int, float])
def test_labels_need_two_dimensions(kind):
    rng = np.random.default_rng(0)
    X, y = rng.random((30, 5)), (rng.random(30) < 0.5).astype(kind)
    with pytest.raises(InvalidInput, match=r"Expected 2D array for y .* y.reshape\(-1, 1\)"):
        FeatureAnnotator().fit(X, y)


def test_parameters_of_another_kind_are_named():
    rng = np.random.default_rng(0)
    X, Y = rng.random((30, 5)), (rng.random((30, 3)) < 0.5).astype(float)
    with pytest.raises(InvalidInput, match=r"vocabulary must be a Vocabulary; found \['sea'\]"):
        FeatureAnnotator(vocabulary=["sea"]).fit(X, Y)
    with pytest.raises(InvalidInput, match=r"such as tagkin.paper.TagProp\(\); found 'tagprop'"):
        FeatureAnnotator(method="tagprop").fit(X, Y)
    with pytest.raises(InvalidInput, match="rejected has exactly the labels of the images"):
        FeatureAnnotator().fit(X, Y, rejected=Y)
    Y[4, 1] = np.nan
    with pytest.raises(InvalidInput, match="Y contains NaN or infinity in row 4"):
        FeatureAnnotator().fit(X, Y)
