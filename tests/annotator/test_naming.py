"""Names of tags in annotators: weighed, stored, and alone where no photograph carries a tag."""

import copy

import numpy as np
import pytest

import tagkin
from tagkin import Annotator, FeatureAnnotator
from tagkin.annotator.name_suggestions import find_unknown_words
from tagkin.annotator.part import Part
from tagkin.errors import InvalidInput
from tagkin.tag_meanings import NamePrior, common_tags
from tests.annotator.conftest import SPACE
from tests.features.joint import SIZE, write_joint_encoder

CLASSES = ["dog", "cat", "bat", "club", "racket", "jersey"]
TAGS = ["dog", "cat", "racket", "jersey", "2019"]


class Shown:
    """An encoder of six words, for features that show them with noise."""

    scale, bias, is_centered = 4.0, -2.0, False

    def __call__(self, names):
        known = {name: i for i, name in enumerate(CLASSES)}
        return np.array([np.eye(7)[known.get(name, 6)] for name in names], dtype=np.float32)

    def embed_images(self, X):
        return np.pad(X[:, :6], ((0, 0), (0, 1)))


@pytest.fixture(scope="module")
def prior():
    return NamePrior(Shown())


def photographs(seed):
    """Features whose first six numbers are what the encoder sees, and tags."""
    rng = np.random.default_rng(seed)
    n = 300
    shown = rng.integers(4, size=n)  # dog, cat, racket or jersey
    column = np.array([0, 1, 4, 5])[shown]
    X = rng.random((n, 24)).astype(np.float32)
    X[np.arange(n), column] += rng.random(n) + 0.3
    tags = [[TAGS[k]] + ["2019"] * (rng.random() < 0.3) for k in shown]
    return X, tags


@pytest.fixture(scope="module")
def data():
    return photographs(0)


def fitted(prior, data, n):
    X, tags = data
    return FeatureAnnotator(SPACE, prior=prior).fit(X[:n], tags[:n])


@pytest.fixture(scope="module")
def of_few(prior, data):
    """Learned from 16 images, without names and with them."""
    return fitted(None, data, 16), fitted(prior, data, 16)


@pytest.fixture(scope="module")
def of_sixty(prior, data):
    """Tests that change it take a copy."""
    return fitted(prior, data, 60)


def test_names_help_where_few_images_are_labelled(prior):
    X, tags = photographs(2)
    scores = [fitted(p, (X, tags), 16).score(X[100:], tags[100:]) for p in (None, prior)]
    assert scores[1] > scores[0] + 0.05


def test_misleading_names_lose_their_weight(prior):
    """Every tag has the name of another one, as if a person used codes of their own."""
    rng = np.random.default_rng(0)
    shown = rng.integers(6, size=60)
    X = rng.random((60, 24)).astype(np.float32)
    X[np.arange(60), shown] += rng.random(60) + 0.3
    weights = []
    for shift in (0, 1):
        tags = [[CLASSES[(k + shift) % 6]] for k in shown]
        mixture = FeatureAnnotator(SPACE, prior=prior).fit(X, tags).calibration_.mixture
        lifts = mixture.weights[:, -1] / mixture.weights[:, 1]
        weights.append(lifts.mean())
    assert weights[1] < 0.2 * weights[0]


def test_names_are_weighed_by_a_part_of_the_scores(prior, data, monkeypatch):
    """Labels without scores have the common weights."""
    X, tags = data
    columns = np.array([1, 2, 3])  # cat, dog, jersey
    monkeypatch.setattr(
        "tagkin.annotator.learning.choose_part",
        lambda problem: Part.sample(problem, 30, columns, 64),
    )
    annotator = FeatureAnnotator(SPACE, prior=prior).fit(X, tags)
    monkeypatch.undo()
    by_all = FeatureAnnotator(SPACE, prior=prior).fit(X, tags)
    np.testing.assert_allclose(annotator.names_.rows, by_all.names_.rows)
    others = [list(annotator.classes_).index(name) for name in ("2019", "racket")]
    mixture = annotator.calibration_.mixture
    np.testing.assert_array_equal(mixture.weights[others], [mixture.common] * 2)
    assert annotator.score(X, tags) > by_all.score(X, tags) - 0.05


def test_scores_are_combined_with_the_names(prior, of_sixty, data):
    X, annotator = data[0], of_sixty
    votes, readout = annotator.method_.components(annotator.space_.transform(X[60:70]))
    by_name = prior.scores(X[60:70], annotator.names_.rows)
    mixture = annotator.calibration_.mixture
    columns = zip(mixture.weights.T, mixture.centers.T, (votes, readout, by_name), strict=True)
    expected = mixture.intercepts + sum(w * (x - center) for w, center, x in columns)
    np.testing.assert_allclose(
        annotator.decision_function(X[60:70]), expected, rtol=1e-4, atol=1e-4
    )
    number = list(annotator.classes_).index("2019")
    assert np.ptp(by_name[:, number]) == 0  # a number has no meaning


def test_suggestions_say_how_much_is_the_names(of_few, data):
    X, _ = data
    without, annotator = of_few
    suggested = [s for row in annotator.suggest(X[100:200], n=2) for s in row]
    shares = np.array([s.name_share for s in suggested])
    assert ((shares >= 0) & (shares <= 1)).all()
    assert (shares > 0).any()
    for s in suggested:
        parts = s.name_share + s.readout_share + sum(kin.share for kin in s.support)
        assert parts <= 1 + 1e-6  # further kin have the rest
        assert s.support or parts == pytest.approx(1)
    assert all(s.name_share < 1e-6 for s in suggested if s.name == "2019")
    assert {s.name_share for row in without.suggest(X[100:200], n=2) for s in row} == {0.0}


def test_a_model_keeps_what_names_mean_and_says_what_it_lacks(prior, of_sixty, data, tmp_path):
    X, annotator = data[0], of_sixty
    assert any("names of 4 of 5 labels" in line for line in annotator.describe())
    again = tagkin.load(annotator.save(tmp_path / "model"))
    with pytest.raises(InvalidInput, match="Set prior"):
        again.predict_proba(X)
    again.prior = prior
    np.testing.assert_allclose(again.predict_proba(X), annotator.predict_proba(X), atol=1e-6)


def test_a_prior_that_scores_no_names_is_refused(of_sixty, data):
    X, tags = data
    wrong = copy.deepcopy(of_sixty).set_params(prior="x")
    for use in (
        lambda: wrong.fit(X[:60], tags[:60]),
        lambda: wrong.cross_validate(X[:60], tags[:60]),
        lambda: wrong.partial_fit(X[60:62], tags[60:62]),
        lambda: wrong.predict_proba(X[:2]),
    ):
        with pytest.raises(InvalidInput, match=r"prior must score images .* found 'x'"):
            use()


def test_quality_is_measured_with_names(prior, data):
    X, tags = data
    few = X[:40], tags[:40]
    with_names, without = (
        FeatureAnnotator(SPACE, prior=label_prior).cross_validate(*few).semantic["MAP"]
        for label_prior in (prior, None)
    )
    assert with_names > without


def test_labels_without_names_have_no_prior(prior, data):
    X, tags = data
    Y = np.array([[tag in row for tag in TAGS] for row in tags])
    assert FeatureAnnotator(SPACE, prior=prior).fit(X[:60], Y[:60]).names_ is None


# --- photographs ---


@pytest.fixture
def joint(tmp_path):
    pytest.importorskip("tokenizers")
    from PIL import Image

    folder = write_joint_encoder(tmp_path / "encoder", scale=300.0)
    rng = np.random.default_rng(0)
    files = {}
    for i in range(24):
        color = ("red", "green", "blue")[i % 3]
        pixels = np.full((SIZE, SIZE, 3), 60, np.uint8) + rng.integers(0, 40, 3, dtype=np.uint8)
        pixels[..., i % 3] = 240
        path = tmp_path / f"{i:02}.png"
        Image.fromarray(pixels).save(path)
        files[str(path)] = color
    return str(folder / "image.onnx"), files


def test_a_joint_encoder_suggests_without_a_single_tag(joint):
    backbone, files = joint
    annotator = Annotator(backbone, cache=False)
    suggestions = annotator.suggest(list(files), vocabulary=["red", "green", "blue"], n=1)
    assert [suggestion.suggestions[0].tag for suggestion in suggestions] == list(files.values())
    first = suggestions[0].suggestions[0]
    assert first.kin == ()
    assert first.name_share == 1
    assert suggestions[0].to_dict()["suggestions"][0]["name_share"] == 1


def test_a_new_tag_is_suggested_beside_those_that_were_learned(joint, tmp_path):
    """Blue is on no photograph that was learned from."""
    backbone, files = joint
    known = [file for file, color in files.items() if color != "blue"]
    annotator = Annotator(backbone, cache=False).fit(known, [[files[file]] for file in known])
    assert annotator.names_note_ == ""
    annotator = tagkin.load(annotator.save(tmp_path / "model"))
    annotator.cache = False
    blue = [file for file, color in files.items() if color == "blue"]
    assert "blue" not in {s.tag for photo in annotator.suggest(blue) for s in photo.suggestions}
    suggestions = annotator.suggest(blue, vocabulary=["blue", "red"])
    for offer in suggestions:
        [suggestion] = [s for s in offer.suggestions if s.tag == "blue"]
        assert suggestion.name_share == 1
        # red was learned: it is suggested as such, once at most
        assert sum(s.tag == "red" for s in offer.suggestions) <= 1
    assert [
        len(photo.suggestions) for photo in annotator.suggest(blue, vocabulary=["blue"], n=1)
    ] == [1] * len(blue)


@pytest.mark.parametrize("own", ["RED", "\uff32ed", " Red "])
def test_a_tag_that_a_photograph_has_in_another_spelling_is_not_suggested(joint, own):
    backbone, files = joint
    red = next(file for file, color in files.items() if color == "red")
    annotator = Annotator(backbone, cache=False)
    for tags, n in ([], 1), ([own], 0):
        (photo,) = annotator.suggest([red], present=[tags], vocabulary=["red"])
        assert len(photo.suggestions) == n


def test_what_cannot_be_suggested_by_name_is_told(joint):
    backbone, files = joint
    with pytest.raises(InvalidInput, match="vocabulary is empty"):
        Annotator(backbone, cache=False).suggest(list(files), vocabulary=[" "])
    with pytest.raises(InvalidInput, match="list of tags; found the text 'red'"):
        Annotator(backbone, cache=False).suggest(list(files), vocabulary="red")


def test_names_can_be_left_out(joint):
    backbone, files = joint
    annotator = Annotator(backbone, cache=False, names=False)
    annotator.fit(list(files), [[color] for color in files.values()])
    assert annotator.model_.names is None
    assert "not asked for" in annotator.names_note_


def test_features_from_elsewhere_have_no_names(synthetic):
    from tests.annotator.conftest import seen

    annotator = Annotator().fit(seen(synthetic.X[:60]), synthetic.tags[:60])
    assert annotator.model_.names is None
    assert "not the features of efficientnet-lite0-whole" in annotator.names_note_


def test_words_with_letters_are_known():
    words = common_tags()
    assert len(set(words)) == len(words) > 300
    prior = Annotator(cache=False).reader.require_prior()
    assert find_unknown_words([*words[:20], "2019", "犬"], prior) == ["2019"]
