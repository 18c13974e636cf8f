import copy
import json
import os
import shutil

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import tagkin
from tagkin import Annotator, NeighborVoting, RidgeTransfer, TagRelevance, TwoPassKNN
from tagkin.annotator import photograph_features
from tagkin.annotator.learning import Recipe
from tagkin.collection import Collection
from tagkin.errors import InvalidInput, StorageError
from tagkin.evaluation import evaluate
from tagkin.features import FeatureCache
from tests.features.test_onnx import write as write_encoder

from .conftest import NAMES, SPACE, SyntheticPhotographs, seen


def row_of(file):
    return int(file[-8:-4])


# --- from features -----------------------------------------------------------------------


def test_suggestions_are_mostly_right_and_as_sure_as_they_say(fitted, synthetic):
    found = fitted.suggest(seen(synthetic.X[300:], first=300))
    right = [s.tag in synthetic.named(row_of(p.file)) for p in found for s in p.suggestions]
    said = [s.confidence for p in found for s in p.suggestions]
    assert len(right) > 50
    assert min(said) >= 0.5
    assert np.mean(right) > 0.75
    assert np.mean(said) == pytest.approx(np.mean(right), abs=0.15)


def test_kin_carry_the_tag_and_their_shares_add_up(fitted, synthetic):
    for photo in fitted.suggest(seen(synthetic.X[300:330], first=300), n=3, n_kin=1000):
        assert len(photo.suggestions) <= 3
        sure = [s.confidence for s in photo.suggestions]
        assert sure == sorted(sure, reverse=True)
        for one in photo.suggestions:
            assert all(one.tag in synthetic.tags[row_of(kin.file)] for kin in one.kin)
            assert sum(kin.share for kin in one.kin) == pytest.approx(1)
            assert all(os.path.isabs(kin.file) for kin in one.kin)


def test_a_photograph_learned_from_does_not_speak_for_itself(fitted, synthetic):
    for photo in fitted.suggest(seen(synthetic.X[:40]), threshold=0.0, n_kin=1000):
        own = synthetic.tags[row_of(photo.file)]
        assert list(photo.tags) == own
        assert not {s.tag for s in photo.suggestions} & set(own)
        kin = {row_of(kin.file) for s in photo.suggestions for kin in s.kin}
        assert row_of(photo.file) not in kin


def test_confidences_are_the_calibrated_scores(fitted, synthetic):
    """By the printed form: σ(aₜ g(s) + bₜ), with s from the method's own scores."""
    photos = seen(synthetic.X[300:320], first=300)
    scores = fitted.method_.decision_function(fitted.space_.transform(photos.features))
    judge, names = fitted.calibrator_, fitted.vocabulary_.names_
    log_odds = np.interp(scores, judge.link_scores_, judge.link_log_odds_)
    expected = 1 / (1 + np.exp(-(judge.slopes_ * log_odds + judge.intercepts_)))
    found = fitted.suggest(photos, threshold=0.0)
    assert all(len(photo.suggestions) == len(names) for photo in found)
    for row, photo in zip(expected, found, strict=True):
        for one in photo.suggestions:
            assert one.confidence == pytest.approx(row[names.index(one.tag)], abs=1e-6)


def test_suggestions_do_not_depend_on_how_many_kin_are_named(fitted, synthetic):
    photos = seen(synthetic.X[300:310], first=300)
    some, none = fitted.suggest(photos), fitted.suggest(photos, n_kin=0)
    assert any(photo.suggestions for photo in some)
    for one, other in zip(some, none, strict=True):
        assert [s.tag for s in one.suggestions] == [s.tag for s in other.suggestions]
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
        for one in photo.suggestions:
            assert sum(kin.share for kin in one.kin) == pytest.approx(1)
            assert all(kin.share > 0 for kin in one.kin)
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
    ("row", "said"),
    [
        ("beach", "0003.jpg are 'beach'; expected a list"),
        (float("nan"), "0003.jpg are nan; expected a list"),
        ([7], r"0003.jpg hold 7 \(int\)"),
        ([None], "0003.jpg hold None"),
    ],
)
def test_tags_that_are_no_list_of_texts_are_refused(synthetic, row, said):
    tags = [*synthetic.tags[:3], row, *synthetic.tags[4:20]]
    with pytest.raises(InvalidInput, match=said):
        Annotator().fit(seen(synthetic.X[:20]), tags)


def test_blank_tags_are_none(synthetic):
    tags = [[""], ["  ", "|"], *(np.array(row, dtype=object) for row in synthetic.tags[2:40])]
    annotator = Annotator(space=SPACE).fit(seen(synthetic.X[:40]), tags)
    assert [row_of(file) for file in annotator.files_] == list(range(2, 40))
    assert annotator.tags_ == synthetic.tags[2:40]


def test_a_cache_is_not_a_path(tmp_path):
    with pytest.raises(InvalidInput, match="cache is a FeatureCache, True or False"):
        Annotator(cache=str(tmp_path)).look("a.jpg")


def test_looks_are_judged_with_the_method_that_was_tuned(synthetic, monkeypatch):
    def found(X, Y, recipe, random_state, step, groups, rejected):
        return Recipe(recipe.space, NeighborVoting(n_neighbors=7))

    monkeypatch.setattr("tagkin.annotator.tuning.tuned", found)
    known, new = seen(synthetic.X[:100]), seen(synthetic.X[100:200], first=100)
    annotator = Annotator(tune=True).fit(known, synthetic.tags[:100])
    monkeypatch.setattr(
        Annotator, "look", lambda self, photos, progress=None: new if photos is new else known
    )
    quality = annotator.evaluate(new, synthetic.tags[100:200])
    Y, truth = (annotator.vocabulary_.transform(synthetic.tags[a : a + 100]) for a in (0, 100))
    visual_scores = NeighborVoting(n_neighbors=7).fit(known.features, Y)
    assert quality.visual == evaluate(truth, visual_scores.decision_function(new.features))
    places = annotator.space_.transform(new.features)
    assert quality.semantic == evaluate(truth, annotator.method_.decision_function(places))


def test_a_baseline_of_some_photographs_is_not_shown(synthetic, monkeypatch):
    known, new = seen(synthetic.X[:100]), seen(synthetic.X[100:200], first=100)
    annotator = Annotator(space=SPACE).fit(known, synthetic.tags[:100])
    there = known
    monkeypatch.setattr(
        Annotator, "look", lambda self, photos, progress=None: new if photos is new else there
    )
    for n_there, fair in ((100, True), (99, True), (50, False), (0, False)):
        there = seen(synthetic.X[:n_there])
        assert bool(annotator.evaluate(new, synthetic.tags[100:200]).visual) == fair, n_there


def test_a_photograph_that_is_added_again_counts_once_and_is_where_it_is_now(synthetic):
    annotator = Annotator(space=SPACE).fit(seen(synthetic.X[:60]), synthetic.tags[:60])
    again = seen(synthetic.X[:2])
    again.files[:] = ["moved/0000.jpg", "moved/0001.jpg"]
    for _ in range(2):
        annotator.add(again, [["unique"], synthetic.tags[1]])
    assert "unique" not in annotator.vocabulary_.names_
    assert annotator.vocabulary_.dropped_["unique"] == 1
    assert annotator.files_[0].endswith("moved/0000.jpg")
    assert len(annotator.files_) == 60
    carried = annotator.vocabulary_.transform(annotator.tags_).toarray()
    assert (annotator.method_.labels_.toarray() == carried).all()


def test_tags_of_a_collection_are_not_suggested_again(fitted, synthetic, monkeypatch):
    photos = seen(synthetic.X[300:320], first=300)
    bare = fitted.suggest(photos, n=2)
    given = Collection(photos.files, [[p.suggestions[0].tag.upper()] for p in bare])
    monkeypatch.setattr(Annotator, "look", lambda self, photographs, progress=None: photos)
    again = fitted.suggest(given, n=1)
    assert [p.suggestions[0].tag for p in again] == [p.suggestions[1].tag for p in bare]
    assert again[0].tags == (bare[0].suggestions[0].tag.upper(),)


def test_a_wanted_precision_is_reached(fitted, synthetic):
    photos = seen(synthetic.X[300:], first=300)
    right = [
        s.tag in synthetic.named(row_of(p.file))
        for p in fitted.suggest(photos, precision=0.8)
        for s in p.suggestions
    ]
    assert np.mean(right) > 0.75
    few = fitted.suggest(photos, precision=0.8, n=1)
    assert max(len(p.suggestions) for p in few) == 1


def test_the_same_input_gives_the_same_whatever_the_blocks(fitted, synthetic):
    """To the bit for the same blocks; for others up to the rounding of float32 products."""
    photos = seen(synthetic.X[300:], first=300)
    whole = fitted.suggest(photos)
    again = Annotator().fit(seen(synthetic.X[:300]), synthetic.tags[:300])
    assert again.suggest(photos) == whole
    with tagkin.memory_budget(100_000):
        parts = fitted.suggest(photos)
    for one, other in zip(whole, parts, strict=True):
        assert [s.tag for s in one.suggestions] == [s.tag for s in other.suggestions]
        for a, b in zip(one.suggestions, other.suggestions, strict=True):
            assert a.confidence == pytest.approx(b.confidence, abs=1e-4)


def test_a_saved_annotator_suggests_the_same(fitted, synthetic, tmp_path):
    photos = seen(synthetic.X[300:], first=300)
    folder = fitted.save(tmp_path / "model")
    loaded = Annotator.load(folder)
    assert loaded.suggest(photos) == fitted.suggest(photos)
    assert loaded.audit(10) == fitted.audit(10)
    assert loaded.describe() == fitted.describe()
    assert loaded.failures_ == ()
    with pytest.raises(StorageError, match="overwrite"):
        fitted.save(folder)
    tagkin.save(fitted.space_, tmp_path / "space")
    with pytest.raises(StorageError, match="SemanticSpace, not an Annotator"):
        Annotator.load(tmp_path / "space")


def test_where_features_are_kept_does_not_go_into_the_model(synthetic, tmp_path):
    annotator = Annotator(cache=FeatureCache(tmp_path / "cache"))
    annotator.fit(seen(synthetic.X[:50]), synthetic.tags[:50]).save(tmp_path / "model")
    assert str(tmp_path / "cache") not in (tmp_path / "model" / "model.json").read_text()


def test_the_backbone_is_opened_once(fitted, synthetic, tmp_path, monkeypatch):
    opened = []
    real = photograph_features.get_backbone
    monkeypatch.setattr(
        photograph_features, "get_backbone", lambda name: opened.append(name) or real(name)
    )
    model = Annotator.load(fitted.save(tmp_path / "model"))
    model.cache = False
    Image.new("RGB", (64, 64), "red").save(tmp_path / "photo.png")
    looked = model.look([tmp_path / "photo.png"])
    for _ in range(2):
        model.look([tmp_path / "photo.png"])
        model.suggest(seen(synthetic.X[300:303], first=300))
        model.similar(seen(synthetic.X[300:303], first=300))
    assert opened == ["efficientnet-lite0-whole"]
    for other in (copy.deepcopy(model), Annotator.load(model.save(tmp_path / "again"))):
        other.suggest(seen(synthetic.X[300:303], first=300))
    assert opened == 3 * ["efficientnet-lite0-whole"]
    model.backbone = str(write_encoder(tmp_path))
    assert model.look([tmp_path / "photo.png"]).features.shape != looked.features.shape
    with pytest.raises(InvalidInput, match="another version of"):
        model.suggest(seen(synthetic.X[300:303], first=300))


def test_clones_share_a_cache(tmp_path):
    cache = FeatureCache(tmp_path / "cache")
    assert clone(Annotator(cache=cache)).cache is cache
    assert clone(Annotator(cache=False)).cache is False


def test_a_model_of_another_backbone_is_refused(fitted, synthetic, tmp_path):
    other = Annotator.load(fitted.save(tmp_path / "model"))
    other.fingerprint_ = "0" * 64
    for use in (other.suggest, other.similar):
        with pytest.raises(InvalidInput, match="another version of 'efficientnet-lite0-whole'"):
            use(seen(synthetic.X[:3]))
    with pytest.raises(InvalidInput, match="another version"):
        other.add(seen(synthetic.X[:3]), synthetic.tags[:3])


def test_new_photographs_and_new_tags_without_a_new_fit(synthetic):
    annotator = Annotator(space=SPACE).fit(seen(synthetic.X[:200]), synthetic.tags[:200])
    space, before = annotator.space_, annotator.suggest(seen(synthetic.X[300:], first=300))
    more = [[*row, "holiday"] if "beach" in row else row for row in synthetic.tags[200:300]]
    annotator.add(seen(synthetic.X[200:300], first=200), more)
    assert annotator.space_ is space
    assert len(annotator.files_) == 300
    photos = annotator.suggest(seen(synthetic.X[300:], first=300), threshold=0.05)
    holidays = [p for p in photos if "holiday" in {s.tag for s in p.suggestions}]
    assert holidays
    assert all(
        row_of(kin.file) >= 200
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
    annotator = Annotator(space=SPACE, min_count=2).fit(seen(synthetic.X[:100]), tags[:100])
    assert "rare" not in annotator.vocabulary_.names_
    tags[100].append("rare")
    annotator.add(seen(synthetic.X[100:110], first=100), tags[100:110])
    column = annotator.vocabulary_.index("rare")
    assert set(annotator.method_.labels_[:, [column]].nonzero()[0]) == {0, 100}


def test_known_photographs_get_their_new_tags(synthetic):
    annotator = Annotator(space=SPACE).fit(seen(synthetic.X[:100]), synthetic.tags[:100])
    annotator.add(seen(synthetic.X[:1]), [["snow"]])
    assert len(annotator.files_) == 100
    assert annotator.tags_[0] == ["snow"]
    carried = annotator.vocabulary_.inverse_transform(annotator.method_.labels_[:1])
    assert carried == [["snow"]]
    with pytest.raises(InvalidInput, match="new fit"):
        annotator.add(seen(synthetic.X[:2]), [["fresh"], ["fresh"]])


def test_photographs_of_one_content_are_one(synthetic):
    photos = seen(synthetic.X[:50])
    twice = seen(np.concatenate([synthetic.X[:50], synthetic.X[:1]]))
    digests = [*photos.digests, photos.digests[0]]
    annotator = Annotator().fit(
        type(photos)(twice.files, twice.features, digests, [], 0, 51),
        [*synthetic.tags[:50], ["boat", "pier"]],
    )
    assert len(annotator.files_) == 50
    assert set(annotator.tags_[0]) == {*synthetic.tags[0], "boat", "pier"}


def test_twenty_photographs_will_do(synthetic):
    annotator = Annotator().fit(seen(synthetic.X[:20]), synthetic.tags[:20])
    found = annotator.suggest(seen(synthetic.X[300:310], first=300), n=2)
    assert all(p.suggestions for p in found)


@pytest.mark.parametrize(
    "method", [NeighborVoting(10), tagkin.TagRelevance(10), tagkin.TagProp(20)]
)
def test_other_methods_by_neighbours(synthetic, method):
    annotator = Annotator(method=method, denoise=False).fit(
        seen(synthetic.X[:100]), synthetic.tags[:100]
    )
    found = annotator.suggest(seen(synthetic.X[300:310], first=300), n=2)
    assert all(s.kin for p in found for s in p.suggestions)


def test_similar_photographs(fitted, synthetic):
    found = fitted.similar(seen(synthetic.X[:5]), 4)
    for i, near in enumerate(found):
        assert len(near) == 4
        assert i not in {row_of(one.file) for one in near}
        assert list(near[0].tags) == synthetic.tags[row_of(near[0].file)]
        similarities = [one.similarity for one in near]
        assert similarities == sorted(similarities, reverse=True)
    assert len(fitted.similar(seen(synthetic.X[:1]), 10_000)[0]) == 299


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
@pytest.mark.parametrize("learned", [False, True])
def test_similar_photographs_and_kin_by_the_distance_of_the_method(synthetic, metric, learned):
    method = tagkin.TwoPassKNN(2, metric=metric, metric_learning=learned, random_state=0)
    annotator = Annotator(method=method, denoise=False).fit(
        seen(synthetic.X[:100]), synthetic.tags[:100]
    )
    places = annotator.space_.transform(synthetic.X[:100]).astype(np.float64)
    if metric == "cosine":
        places /= np.linalg.norm(places, axis=1, keepdims=True)
    if learned:
        places *= np.sqrt(annotator.method_.dimension_weights_)
    distances = np.linalg.norm(places[:5, None] - places, axis=2)
    by_cosine = metric == "cosine" and not learned
    expected = 1 - distances**2 / 2 if by_cosine else 1 / (1 + distances)
    for i, near in enumerate(annotator.similar(seen(synthetic.X[:5]), 4)):
        order = np.argsort(-expected[i], kind="stable")
        assert [row_of(one.file) for one in near] == order[order != i][:4].tolist()
        found = [one.similarity for one in near]
        np.testing.assert_allclose(found, expected[i][order[order != i][:4]], atol=4e-5)
    distances = np.linalg.norm(places[:, None] - places, axis=2) + np.diag(np.full(100, np.inf))
    for finding in annotator.audit(5, kind="wrong", n_kin=1):
        assert row_of(finding.kin[0].file) == distances[row_of(finding.file)].argmin()


def test_evaluation_leaves_out_what_was_learned_from(fitted, synthetic, monkeypatch):
    photos = seen(synthetic.X)
    monkeypatch.setattr("tagkin.annotator.baseline.visual_scores", lambda *_: None)
    found = fitted.evaluate(photos, synthetic.tags)
    assert "100 tagged photographs" in found.how
    scores = fitted.method_.decision_function(fitted.space_.transform(photos.features[300:]))
    Y = fitted.vocabulary_.transform(synthetic.tags[300:])
    assert found.semantic == tagkin.evaluate(Y, scores)
    with pytest.raises(InvalidInput, match="learned from all"):
        fitted.evaluate(seen(synthetic.X[:10]), synthetic.tags[:10])


def test_tuning_on_request(synthetic):
    annotator = Annotator(tune=True, denoise=False, method=NeighborVoting(3))
    annotator.fit(seen(synthetic.X[:100]), synthetic.tags[:100])
    assert annotator.method_.n_neighbors in (20, 50, 100, 200)


# --- what cannot be learned from ---------------------------------------------------------


def test_what_cannot_be_learned_from_is_refused(synthetic):
    photos = seen(synthetic.X[:10])
    with pytest.raises(InvalidInput, match="No tag at all"):
        Annotator().fit(photos, [[]] * 10)
    with pytest.raises(InvalidInput, match="one list of tags each"):
        Annotator().fit(photos)
    with pytest.raises(InvalidInput, match="10 photographs and 3 lists"):
        Annotator().fit(photos, [["a"]] * 3)
    with pytest.raises(InvalidInput, match="at least 6"):
        Annotator(min_count=1).fit(seen(synthetic.X[:3]), synthetic.tags[:3])
    with pytest.raises(InvalidInput, match="lower min_count"):
        Annotator().fit(photos, [[f"tag {i}"] for i in range(10)])
    with pytest.raises(InvalidInput, match="All 10 tagged photographs carry the same tags"):
        Annotator().fit(photos, [["a"]] * 10)
    with pytest.raises(InvalidInput, match="RidgeTransfer"):
        Annotator(method=RidgeTransfer()).fit(photos, synthetic.tags[:10])
    with pytest.raises(NotFittedError):
        Annotator().suggest(photos)


def test_a_failed_fit_leaves_what_was_learned(synthetic):
    annotator = Annotator(space=SPACE).fit(seen(synthetic.X[:50]), synthetic.tags[:50])
    before = annotator.suggest(seen(synthetic.X[300:310], first=300), n=1)
    with pytest.raises(InvalidInput):
        annotator.fit(seen(synthetic.X[:10]), [["a"]] * 10)
    assert annotator.suggest(seen(synthetic.X[300:310], first=300), n=1) == before


# --- from photographs --------------------------------------------------------------------

COLOURS = {"red": (200, 40, 30), "green": (40, 170, 60), "blue": (40, 60, 200)}


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Discs and squares in three colours: 24 JPEG files and a broken one."""
    folder = tmp_path_factory.mktemp("photos")
    rng = np.random.default_rng(0)
    y, x = np.mgrid[0:96, 0:96] - 48
    tags = {}
    for i in range(24):
        colour, shape = list(COLOURS)[i % 3], ("disc", "square")[i % 2]
        size = rng.integers(20, 40)
        inside = x**2 + y**2 < size**2 if shape == "disc" else np.maximum(abs(x), abs(y)) < size
        pixels = rng.integers(180, 256, (96, 96, 3))
        pixels[inside] = COLOURS[colour]
        path = folder / f"{i:02}.jpg"
        Image.fromarray(pixels.astype(np.uint8)).save(path)
        tags[str(path)] = [colour, shape]
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 not much of a photograph")
    tags[str(folder / "broken.jpg")] = ["red"]
    return tags


def test_from_photographs_to_suggestions(photos, tmp_path):
    files = list(photos)
    seen_steps = []
    annotator = Annotator(cache=False)
    annotator.fit(
        files[4:], [photos[file] for file in files[4:]], progress=lambda *s: seen_steps.append(s)
    )
    assert [failure.file for failure in annotator.failures_] == [files[-1]]
    steps = {what for what, *_ in seen_steps}
    assert steps == {"Looking at photographs", "Finding series", "Learning"}
    found = annotator.suggest(files[:4], n=2)
    assert [p.file for p in found] == files[:4]
    right = [s.tag in photos[p.file] for p in found for s in p.suggestions]
    assert sum(right) >= 6
    document = json.loads(json.dumps(found[0].to_dict()))
    assert set(document) == {"file", "tags", "suggestions"}
    assert set(document["suggestions"][0]) == {
        "tag",
        "confidence",
        "kin",
        "name_share",
        "readout_share",
    }
    assert set(document["suggestions"][0]["kin"][0]) == {"file", "share", "tags"}


def test_a_second_look_costs_no_inference_and_neither_does_a_move(photos, tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_CACHE", str(tmp_path / "cache"))
    files = list(photos)[:6]
    annotator = Annotator()
    assert annotator.look(files).n_computed == 6
    again = annotator.look(files)
    assert (again.n_computed, again.n_cached) == (0, 6)
    shutil.copy(files[0], tmp_path / "moved.jpg")
    moved = annotator.look([tmp_path / "moved.jpg"])
    assert moved.n_computed == 0
    np.testing.assert_array_equal(moved.features[0], again.features[0])


def test_only_unreadable_photographs_are_an_error(tmp_path, fitted):
    (tmp_path / "a.jpg").write_bytes(b"")
    with pytest.raises(InvalidInput, match=r"The photograph could not be read.*a\.jpg"):
        fitted.suggest([tmp_path / "a.jpg"])
    with pytest.raises(InvalidInput, match="not be read"):
        Annotator(cache=False).fit([tmp_path / "a.jpg"], [["x"]])


def test_made_photographs_carry_tags():
    synthetic = SyntheticPhotographs(30)
    assert all(synthetic.tags)
    assert set().union(*synthetic.tags) <= set(NAMES)
