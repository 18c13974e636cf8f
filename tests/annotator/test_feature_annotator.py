import copy

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin import (
    Annotator,
    FeatureAnnotator,
    NeighborVoting,
    RidgeTransfer,
    SemanticSpace,
    TagDenoiser,
    Vocabulary,
)
from tagkin.annotator.deciding import Decisions
from tagkin.annotator.learning import Recipe
from tagkin.annotator.suggesting import scored
from tagkin.annotator.tuning import tuned
from tagkin.calibration import UnsaidLabels
from tagkin.errors import InvalidInput
from tagkin.evaluation import mean_average_precision
from tests.conftest import assert_same
from tests.hardening.crafting import Crafted

from .conftest import NAMES, SPACE, seen

N = 160


@pytest.fixture(scope="module", name="X")
def features(synthetic):
    return synthetic.X.astype(np.float32)


@pytest.fixture(scope="module", name="Y")
def label_matrix(synthetic):
    """The tags as a matrix, columns in the order of NAMES."""
    return Vocabulary().fit_transform(synthetic.tags)


@pytest.fixture(scope="module")
def by_tags(synthetic, X):
    return FeatureAnnotator().fit(X[:N], synthetic.tags[:N])


def voting(**parameters):
    """For what does not depend on how labels are passed on: nothing of it is to be learned."""
    return FeatureAnnotator(SPACE, NeighborVoting(20), denoise=False, **parameters)


@pytest.fixture(scope="module")
def by_voting(synthetic, X):
    return voting().fit(X[:N], synthetic.tags[:N])


@pytest.fixture(scope="module")
def plain(synthetic, X):
    """For what depends neither on κ nor on cleaner labels: finding them is most of a fit."""
    return FeatureAnnotator(SPACE, denoise=False).fit(X[:N], synthetic.tags[:N])


# --- the annotator is this estimator -----------------------------------------------------


def test_an_annotator_is_this_estimator_with_photographs_in_front(by_tags, synthetic, X):
    """Same space, same method, same confidences; files in the place of numbers."""
    fitted = Annotator().fit(seen(X[:N]), synthetic.tags[:N])
    assert isinstance(fitted.estimator_, FeatureAnnotator)
    np.testing.assert_allclose(fitted.held_out_.toarray(), by_tags.held_out_.toarray(), atol=1e-5)
    photos = fitted.suggest(seen(X[N:], first=N), precision=0.8)
    images = by_tags.suggest(X[N:], precision=0.8)
    assert any(images)
    for photo, image in zip(photos, images, strict=True):
        assert [s.tag for s in photo.suggestions] == [s.name for s in image]
        for shown, found in zip(photo.suggestions, image, strict=True):
            assert shown.confidence == pytest.approx(found.confidence, abs=1e-5)
            files = [f"photos/{one.image:04}.jpg" for one in found.support]
            assert [kin.file[-len(files[0]) :] for kin in shown.kin] == files
    for shown, found in zip(fitted.audit(10), by_tags.audit(10), strict=True):
        assert (shown.tag, shown.kind) == (found.name, found.kind)
        assert shown.file.endswith(f"{found.image:04}.jpg")


def test_what_photographs_were_cross_validated_to_be_their_features_are(synthetic, X):
    photos = Annotator(space=SPACE, denoise=False).cross_validate(
        seen(X[:120]), synthetic.tags[:120]
    )
    images = FeatureAnnotator(SPACE, denoise=False).cross_validate(X[:120], synthetic.tags[:120])
    assert photos.semantic == pytest.approx(images.semantic)
    assert photos.visual == pytest.approx(images.visual)


# --- labels in all their forms -----------------------------------------------------------


@pytest.mark.parametrize("form", ["dense", "sparse", "DataFrame", "tags"])
def test_labels_in_whatever_form_teach_the_same(form, X, Y, synthetic, by_voting):
    pandas = pytest.importorskip("pandas") if form == "DataFrame" else None
    given = {
        "dense": lambda: Y.toarray(),
        "sparse": lambda: Y,
        "DataFrame": lambda: pandas.DataFrame(Y.toarray(), columns=NAMES),
        "tags": lambda: synthetic.tags,
    }[form]()
    some = given[:N]
    found = voting().fit(X[:N], some)
    expected = by_voting.predict_proba(X[N:])
    np.testing.assert_allclose(found.predict_proba(X[N:]), expected, atol=1e-4)
    names = NAMES if form in ("DataFrame", "tags") else list(range(len(NAMES)))
    assert found.classes_.tolist() == names
    assert {s.name for row in found.suggest(X[N:]) for s in row} <= set(names)
    assert found.score(X[N:], given[N:]) == pytest.approx(
        mean_average_precision(Y[N:], found.decision_function(X[N:]))
    )
    quality = found.evaluate(X[N:], given[N:])
    assert list(quality.labels.names) == list(map(str, names))
    assert quality.semantic["MAP"] == pytest.approx(found.score(X[N:], given[N:]))


def test_a_vocabulary_of_ones_own(synthetic, X):
    own = Vocabulary(aliases={"boat": "ship"}, exclude=["snow"])
    found = voting(vocabulary=own)
    found.fit(X[:N], synthetic.tags[:N])
    assert "ship" in found.classes_
    assert not {"boat", "snow"} & set(found.classes_)
    assert not hasattr(found.vocabulary, "n_images_")  # parameters stay as they were given


def test_columns_in_another_order_are_refused(X, Y):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(Y.toarray(), columns=NAMES)
    found = voting().fit(X[:N], frame[:N])
    with pytest.raises(InvalidInput, match="Column 0 of Y"):
        found.score(X[N:], frame[N:][NAMES[::-1]])


# --- probabilities and suggestions -------------------------------------------------------


def test_probabilities_are_calibrated_scores_on_new_images(by_tags, synthetic, X):
    P = by_tags.predict_proba(X[N:])
    expected = by_tags.calibrator_.predict_proba(by_tags.decision_function(X[N:]))
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
        with pytest.raises(InvalidInput, match="threshold is a probability"):
            by_tags.predict(X[N:], threshold=wrong)


def test_suggestions_with_a_wanted_precision_and_their_support(by_tags, synthetic, X):
    found = by_tags.suggest(X[N:], precision=0.8, n_support=1000)
    right = [s.name in synthetic.named(N + i) for i, row in enumerate(found) for s in row]
    assert len(right) > 30
    assert np.mean(right) > 0.75
    for row in found:
        for one in row:
            assert sum(part.share for part in one.support) == pytest.approx(1)
            assert all(one.name in synthetic.tags[part.image] for part in one.support)


def test_an_image_learned_from_does_not_support_itself(by_tags, synthetic, X):
    known = np.arange(40)
    found = by_tags.suggest(X[:40], threshold=0.0, known=known, n_support=1000)
    for i, row in enumerate(found):
        assert {s.name for s in row}.isdisjoint(synthetic.tags[i])
        assert i not in {part.image for s in row for part in s.support}
    other = by_tags.suggest(X[:40], threshold=0.0, known=known, carried=[[]] * 40)
    assert any({s.name for s in row} & set(synthetic.tags[i]) for i, row in enumerate(other))
    evidence = by_tags.explain(X[:3], NAMES, known=known[:3])
    assert all(i not in e.indices for i, row in enumerate(evidence) for e in row)


def test_explained_is_what_was_suggested(by_tags, X):
    suggested = by_tags.suggest(X[N : N + 5], n=2, n_support=1000)
    explained = by_tags.explain(X[N : N + 5], suggested)
    for suggestions, evidence in zip(suggested, explained, strict=True):
        for one, why in zip(suggestions, evidence, strict=True):
            assert (one.name, one.label) == (why.name, why.label)
            assert [part.image for part in one.support] == why.indices.tolist()
            shares = why.shares / why.shares.sum()
            np.testing.assert_allclose([part.share for part in one.support], shares, atol=1e-6)
    (named,) = by_tags.explain(X[N : N + 1], ["snow"])
    assert named[0].name == "snow"
    with pytest.raises(InvalidInput, match="Unknown label"):
        by_tags.explain(X[N : N + 1], ["nothing of the kind"])


def test_similar_images_are_nearest_in_the_space(by_tags, X):
    embeddings = by_tags.space_.transform(X).astype(np.float64)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    cosines = embeddings[N : N + 5] @ embeddings[:N].T
    for row, found in zip(cosines, by_tags.similar(X[N : N + 5], 4), strict=True):
        # of float32 embeddings, and of two transforms of them
        np.testing.assert_allclose([s.similarity for s in found], np.sort(row)[:-5:-1], atol=1e-4)
        np.testing.assert_allclose(row[[s.image for s in found]], np.sort(row)[:-5:-1], atol=1e-4)


# --- groups ------------------------------------------------------------------------------


def test_images_of_one_group_are_held_out_together():
    """Near-copies with the same chance labels: only their own kind tells them."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 4)
    X = np.repeat(rng.random((40, 8)), 4, axis=0) + 1e-3 * rng.random((160, 8))
    Y = np.repeat(rng.random((40, 5)) < 0.3, 4, axis=0)
    alone = FeatureAnnotator(SPACE, denoise=False, method=NeighborVoting(3))
    alone.fit(X, Y, groups=np.arange(160))
    together = clone(alone).fit(X, Y, groups=groups)
    found = clone(alone).fit(X, Y)  # near-copies are found
    sure, unsure, too = (one.held_out_.toarray()[Y].mean() for one in (alone, together, found))
    assert sure > 0.9
    assert unsure < 0.5
    assert too < 0.5
    quality = clone(alone).cross_validate(X, Y, groups=groups)
    careless = clone(alone).cross_validate(X, Y, groups=np.arange(160))
    assert quality.semantic["MAP"] < careless.semantic["MAP"] - 0.3


# --- further images and labels -----------------------------------------------------------


def test_a_new_tag_is_suggested_at_once(synthetic, X):
    found = FeatureAnnotator(SPACE, denoise=False).fit(X[:100], synthetic.tags[:100])
    more = [[*row, "holiday"] if "beach" in row else row for row in synthetic.tags[100:N]]
    found.partial_fit(X[100:N], more)
    assert "holiday" in found.classes_
    assert found.predict_proba(X[N:]).shape == (len(X) - N, 7)
    holidays = [
        s for row in found.suggest(X[N:], threshold=0.05) for s in row if s.name == "holiday"
    ]
    assert holidays
    assert all(part.image >= 100 for s in holidays for part in s.support)
    assert found.audit(5)


def test_columns_are_added_to_a_matrix(X, Y):
    found = voting().fit(X[:100], Y[:100])
    wider = scipy.sparse.hstack([Y[100:N], Y[100:N, [0]]], format="csr")
    known = np.append([3], np.full(N - 101, -1))
    found.partial_fit(X[100:N], wider, known=known)
    labels = found.method_.labels_.toarray()
    assert labels.shape == (N - 1, 7)
    np.testing.assert_array_equal(labels[3], wider[[0]].toarray()[0])
    np.testing.assert_array_equal(labels[:3, :6], Y[:3].toarray())
    np.testing.assert_array_equal(labels[100:], wider[1:].toarray())
    assert found.classes_.tolist() == list(range(7))
    with pytest.raises(InvalidInput, match="Found 5 labels where 7 are known"):
        found.partial_fit(X[:5], Y[:5, :5])


def test_without_a_fit_before_it_is_one(synthetic, X):
    found = voting().partial_fit(X[:50], synthetic.tags[:50])
    again = voting().fit(X[:50], synthetic.tags[:50])
    np.testing.assert_allclose(found.predict_proba(X[50:60]), again.predict_proba(X[50:60]))


def test_what_was_fitted_on_tags_takes_tags(by_tags, X, Y):
    with pytest.raises(InvalidInput, match="one list of tags per image"):
        by_tags.partial_fit(X[:5], Y[:5])


# --- what a person rejected --------------------------------------------------------------


def rejected_of(found, X, n=40):
    """The surest suggestion of each of the first images, as if a person had said no."""
    first = found.suggest(X[:n], n=1, known=np.arange(n))
    return [[s.name for s in row] for row in first] + [[]] * (N - n)


def test_what_was_rejected_is_never_suggested_again(plain, synthetic, X, tmp_path):
    rejected = rejected_of(plain, X)
    found = FeatureAnnotator(SPACE, denoise=False).fit(X[:N], synthetic.tags[:N], rejected=rejected)
    assert found.rejected_.shape == (N, len(NAMES))
    for one in (found, tagkin.load(found.save(tmp_path / "model"))):
        again = one.suggest(X[:40], threshold=0.0, known=np.arange(40))
        for row, no in zip(again, rejected[:40], strict=True):
            assert {s.name for s in row}.isdisjoint(no)
        missing = {(f.image, f.name) for f in one.audit(10_000, kind="missing")}
        assert missing
        assert missing.isdisjoint((i, tag) for i, row in enumerate(rejected) for tag in row)
    # others, and the same photograph where it is taken for a new one, are free
    assert any(s.name in rejected[0] for row in found.suggest(X[:40], n=2) for s in row)
    new = found.suggest(X[N : N + 3], threshold=0.0, rejected=[["snow"], [], NAMES])
    assert "snow" not in {s.name for s in new[0]}
    assert "snow" in {s.name for s in new[1]}
    assert not new[2]


def test_rejections_as_a_matrix_and_of_what_is_carried(X, Y, synthetic):
    R = scipy.sparse.lil_array(Y[:N].shape)
    absent = np.argwhere(Y[:N].toarray() == 0)[:5]
    R[absent[:, 0], absent[:, 1]] = 1
    R[:, 0] = 1
    found = voting().fit(X[:N], Y[:N], rejected=R.tocsr())
    expected = (R.toarray() > 0) & (Y[:N].toarray() == 0)
    np.testing.assert_array_equal(found.rejected_.toarray() > 0, expected)
    with pytest.raises(InvalidInput, match="Found labels of shape"):
        FeatureAnnotator().fit(X[:N], Y[:N], rejected=R.tocsr()[:, :3])


def test_who_rejects_a_dog_has_not_rejected_an_animal(X, synthetic):
    tags = [[f"scene|{tag}" for tag in row] for row in synthetic.tags[:N]]
    vocabulary = Vocabulary(separator="|")
    found = voting(vocabulary=vocabulary)
    found.fit(X[:N], tags, rejected=[["scene|snow"]] * N)
    snow, scene = (found.vocabulary_.index(tag) for tag in ("scene|snow", "scene"))
    assert found.rejected_[:, [snow]].nnz > 0
    assert found.rejected_[:, [scene]].nnz == 0


def test_further_rejections(plain, synthetic, X):
    rejected = rejected_of(plain, X)
    found = FeatureAnnotator(SPACE, denoise=False).fit(X[:N], synthetic.tags[:N], rejected=rejected)
    before = found.rejected_.toarray()
    tags = [synthetic.tags[0], ["holiday"], ["holiday"]]
    found.partial_fit(X[[0, N, N + 1]], tags, known=[0, -1, -1])
    assert found.rejected_.shape == (N + 2, 7)
    np.testing.assert_array_equal(found.rejected_.toarray()[:N, :6], before)
    found.partial_fit(X[[0]], [synthetic.tags[0]], known=[0], rejected=[["holiday"]])
    (row,) = found.rejected_[[0]].toarray()
    assert np.flatnonzero(row).tolist() == [found.vocabulary_.index("holiday")]


heard: list[tuple] = []
"""Labels of each fit of `Listening`, and what was rejected."""


class Listening(NeighborVoting):
    """A method that takes what was rejected, and keeps it."""

    takes_rejected = True

    def fit(self, X, y=None, *, rejected=None, groups=None):
        """Keep what was rejected."""
        heard.append((y, rejected))
        self.heard_ = rejected
        return super().fit(X, y, groups=groups)


class Refitted(Listening):
    """Not a method that shares its lists of neighbours with others: it is fitted."""

    needs_embeddings = True


def test_a_method_that_takes_rejections_gets_those_of_its_images(by_tags, synthetic, X):
    rejected = rejected_of(by_tags, X, N)
    heard.clear()
    found = FeatureAnnotator(method=Listening(10), denoise=False)
    found.fit(X[:N], synthetic.tags[:N], rejected=rejected)
    np.testing.assert_array_equal(found.method_.heard_.toarray(), found.rejected_.toarray())
    whole = np.hstack([found.method_.labels_.toarray(), found.rejected_.toarray()])
    rows = {row.tobytes() for row in whole}
    for y, no in heard:  # in every fold, with the labels of the same images
        assert {row.tobytes() for row in np.hstack([y.toarray(), no.toarray()])} <= rows
    assert len(heard) == 6
    heard.clear()
    found.fit(X[:N], synthetic.tags[:N])
    assert all(no is None for _, no in heard)


def test_tuning_hears_of_rejections(plain, synthetic, X):
    """Every fit of the grid gets those of its own images."""
    rejected = rejected_of(plain, X, N)
    heard.clear()
    recipe = Recipe(SemanticSpace(), Refitted(10))
    labels = plain.method_.labels_[:60]
    no = plain.vocabulary_.transform(rejected[:60])
    tuned(X[:60], labels, recipe, 0, rejected=no)
    whole = {row.tobytes() for row in np.hstack([labels.toarray(), no.toarray()])}
    assert len(heard) > 3
    for y, told in heard:
        assert {r.tobytes() for r in np.hstack([y.toarray(), told.toarray()])} <= whole


def reviewed(synthetic):
    """Tags of which half are forgotten, and what a person who never takes snow decided on half."""
    rng, tags, accepted, rejected = np.random.default_rng(0), [], [], []
    for i, row in enumerate(synthetic.tags[:N]):
        said = [tag for tag in row if rng.random() < 0.5]
        right = [tag for tag in row if tag not in said and tag != "snow"] if i % 2 else []
        wrong = [tag for tag in NAMES if tag not in said + right] if i % 2 else []
        tags.append(said + right)
        accepted.append(right)
        rejected.append(wrong)
    return tags, accepted, rejected


def test_decisions_move_the_confidences_of_what_nobody_said(synthetic, X, tmp_path):
    """A tag that was rejected wherever it was suggested is suggested with less confidence."""
    tags, accepted, rejected = reviewed(synthetic)
    plain = FeatureAnnotator(SPACE, denoise=False).fit(X[:N], tags, rejected=rejected)
    assert plain.unsaid_ is None  # nothing tells what was accepted
    told = FeatureAnnotator(SPACE, denoise=False)
    told.fit(X[:N], tags, rejected=rejected, accepted=accepted)
    snow = told.vocabulary_.index("snow")
    assert told.unsaid_.offsets_[snow] < np.delete(told.unsaid_.offsets_, snow).min() - 1
    before, after = plain.predict_proba(X[N:]), told.predict_proba(X[N:])
    none = np.zeros(len(before), dtype=bool)
    np.testing.assert_allclose(after, told.unsaid_.predict_proba(before, none), atol=1e-5)
    # of a photograph that somebody has tagged it is known that nobody said the others
    (found,) = told.suggest(X[:1], threshold=0.0, known=[0])
    _, scores = scored(told.method_, told.space_.transform(X[:1]), np.array([0]))
    (expected,) = told.probabilities(scores, np.array([True]))
    assert found
    for one in found:
        assert one.confidence == pytest.approx(expected[one.label], abs=1e-5)
    again = tagkin.load(told.save(tmp_path / "model"))
    # the arrays of a loaded model are laid out otherwise, and sums are rounded otherwise
    np.testing.assert_allclose(again.predict_proba(X[N:]), after, atol=1e-5)
    assert any("accepted and" in line for line in told.describe())
    told.partial_fit(X[N : N + 2], [["holiday"], ["holiday"]])
    assert told.unsaid_.offsets_[-1] == told.unsaid_.offset_
    assert told.predict_proba(X[N:]).shape[1] == len(NAMES) + 1


def test_what_was_rejected_for_images_without_labels_counts(synthetic, X):
    """They are no neighbours; confidences move as by all decisions laid side by side."""
    tags, accepted, rejected = reviewed(synthetic)
    X = X[: 2 * N]  # of more others than images learned from, some would count
    decided, n_alone = {"rejected": rejected, "accepted": accepted}, len(X) - N
    plain = FeatureAnnotator(SPACE, denoise=False).fit(X[:N], tags, **decided)
    told = FeatureAnnotator(SPACE, denoise=False)
    told.fit(X[:N], tags, **decided, rejected_alone=(X[N:], [["beach"]] * n_alone))
    assert told.method_.labels_.shape[0] == N
    np.testing.assert_allclose(told.decision_function(X), plain.decision_function(X), atol=1e-5)
    beach = told.vocabulary_.index("beach")
    assert told.unsaid_.n_rejected_ == plain.unsaid_.n_rejected_ + n_alone
    assert told.unsaid_.offsets_[beach] < plain.unsaid_.offsets_[beach] - 0.5

    scores = np.random.default_rng(0).normal(-1, 1, plain.method_.labels_.shape)
    yes, no, alone = (
        scipy.sparse.csr_array(plain.vocabulary_.transform(rows))
        for rows in (accepted, rejected, [["beach"]] * n_alone)
    )
    found = Decisions(yes, no, X[N:], alone).unsaid(
        plain.calibrator_, scores, plain.space_, plain.method_, None, None
    )
    P = plain.calibrator_.predict_proba(np.concatenate([scores, plain.decision_function(X[N:])]))
    said = np.arange(len(X)) < N
    beside = np.concatenate([yes.toarray(), np.zeros(alone.shape)])
    expected = UnsaidLabels().fit(
        P, beside, np.concatenate([no.toarray(), alone.toarray()]), said=said
    )
    np.testing.assert_allclose(found.offsets_, expected.offsets_, atol=1e-6)
    with pytest.raises(InvalidInput, match=f"one value for each of the {N} images"):
        FeatureAnnotator(SPACE, denoise=False).fit(X[:N], tags, **decided, said=[True])


def test_kin_read_out_and_name_share_what_speaks_for_a_tag(by_tags, X):
    """The read-out's part is that of the evidence; without names the rest is the kin's."""
    found = by_tags.suggest(X[N:], n=2)
    evidence = by_tags.explain(X[N:], found)
    n_read_off = 0
    for row, why in zip(found, evidence, strict=True):
        for one, e in zip(row, why, strict=True):
            assert one.name_share == 0
            assert 0 <= one.readout_share <= 1
            # the shares of kin and read-out add up to the score
            kin = e.shares.sum() / e.score
            assert one.readout_share == pytest.approx(np.clip(1 - kin, 0, 1), abs=1e-5)
            n_read_off += one.readout_share > 0
    assert n_read_off


def test_denoising_brings_no_rejected_label_back(X, Y):
    given = []

    class Noted(SemanticSpace):
        def fit(self, X, y=None):
            given.append(y)
            return super().fit(X, y)

    recipe = Recipe(Noted(), NeighborVoting(5), TagDenoiser(blend=1.0))
    R = scipy.sparse.csr_array((Y[:50].toarray() == 0).astype(np.float32))
    recipe.fit(X[:50], Y[:50])
    recipe.fit(X[:50], Y[:50], R)
    free, held = (one.toarray() > 0 for one in given)
    carried = Y[:50].toarray() > 0
    assert (free & ~carried).any()
    assert not (held & ~carried).any()


def test_photographs_keep_what_was_rejected_for_them(synthetic, X):
    """By content: copies of a photograph are one."""
    photos = seen(X[:N])
    rejected = [[] for _ in range(N)]
    rejected[3] = [tag for tag in NAMES if tag not in synthetic.tags[3]][:2]
    model = Annotator(space=SPACE, denoise=False).fit(photos, synthetic.tags[:N], rejected=rejected)
    (found,) = model.suggest(seen(X[3:4], first=3), threshold=0.0)
    assert found.suggestions
    assert {s.tag for s in found.suggestions}.isdisjoint(rejected[3])
    model.add(seen(X[3:4], first=3), [["snow"]], rejected=[["beach"]])
    (found,) = model.suggest(seen(X[3:4], first=3), threshold=0.0)
    assert {s.tag for s in found.suggestions} == set(NAMES) - {"snow", "beach"}
    (found,) = model.suggest(seen(X[N : N + 1], first=N), threshold=0.0, rejected=[["city"]])
    assert "city" not in {s.tag for s in found.suggestions}


# --- keeping -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["matrix", "tags"])
def test_a_saved_one_suggests_the_same(form, synthetic, X, Y, tmp_path):
    y = Y if form == "matrix" else synthetic.tags
    found = FeatureAnnotator(SPACE, denoise=False).fit(X[:100], y[:100])
    loaded = tagkin.load(found.save(tmp_path / "model"))
    assert isinstance(loaded, FeatureAnnotator)
    assert loaded.suggest(X[N:]) == found.suggest(X[N:])
    assert loaded.audit(5) == found.audit(5)
    assert loaded.describe() == found.describe()
    assert loaded.describe()[0].startswith("Learned from 100 labelled images and 6 labels.")
    loaded.partial_fit(X[100:110], y[100:110])
    assert loaded.method_.labels_.shape[0] == 110


def test_a_model_that_kept_all_at_the_annotator_loads(fitted, synthetic, X, tmp_path):
    """As models were stored before there was an estimator in them."""
    folder = fitted.save(tmp_path / "model")
    crafted = Crafted(folder)
    state = crafted.document["content"]["state"]
    held = state.pop("estimator_")
    held = held["state"] | held["apart"]
    for name in ("blend_", "calibrator_", "held_out_", "method_", "space_", "tags_", "vocabulary_"):
        state[name] = held[name]
    loaded = Annotator.load(crafted.write_version_1(folder))
    new = seen(X[300:], first=300)
    assert loaded.suggest(new) == fitted.suggest(new)
    assert loaded.estimator_.get_params()["denoise"] is True
    loaded.add(seen(X[300:305], first=300), synthetic.tags[300:305])
    assert len(loaded.tags_) == 305
    again = Annotator.load(loaded.save(tmp_path / "again"))
    assert again.tags_ == loaded.tags_


# --- what cannot be learned from ---------------------------------------------------------


def test_what_cannot_be_learned_from_is_refused(X, synthetic):
    with pytest.raises(InvalidInput, match="Found 3 labelled images; at least 6"):
        FeatureAnnotator().fit(X[:3], synthetic.tags[:3])
    with pytest.raises(InvalidInput, match="10 rows of features and 3 lists"):
        FeatureAnnotator().fit(X[:10], synthetic.tags[:3])
    with pytest.raises(InvalidInput, match="Row 1 of y is 'snow'"):
        FeatureAnnotator().fit(X[:10], [["a"], "snow", *[["b"]] * 8])
    with pytest.raises(InvalidInput, match="RidgeTransfer"):
        FeatureAnnotator(method=RidgeTransfer()).fit(X[:10], synthetic.tags[:10])
    with pytest.raises(NotFittedError):
        FeatureAnnotator().predict(X)


def test_a_failed_fit_leaves_what_was_learned(synthetic, X):
    found = voting().fit(X[:50], synthetic.tags[:50])
    before = found.suggest(X[N:])
    with pytest.raises(InvalidInput):
        found.fit(X[:10], [["a"]] * 10)
    with pytest.raises(InvalidInput, match="known has the number"):
        found.partial_fit(X[:1], [["snow"]], known=[50])
    assert found.suggest(X[N:]) == before


def test_confidences_of_new_labels_are_learned_from_the_images_that_bring_them():
    rng = np.random.default_rng(0)
    Y = rng.random((900, 8)) < 0.3
    X = Y @ rng.normal(size=(8, 40)) + rng.normal(size=(900, 40))
    annotator = FeatureAnnotator(SPACE, denoise=False).fit(X[:300], Y[:300, :6])
    old = copy.deepcopy(annotator.calibrator_)
    annotator.partial_fit(X[300:600], Y[300:600])
    new = annotator.predict_proba(X[600:])[:, 6:]
    # earlier images carry no new label, so that votes for it are half of what they should be
    assert new.mean() == pytest.approx(Y[600:, 6:].mean(), abs=0.05)
    blind = annotator.calibrator_.__class__.extend  # as without the images' own scores
    modest = blind(old, 8).predict_proba(annotator.decision_function(X[600:]))[:, 6:]
    assert modest.mean() < new.mean() - 0.05
