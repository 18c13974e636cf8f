"""Photographs by words: what fits best comes first, and what cannot be known is told."""

import numpy as np
import pytest

from tagkin.errors import InvalidInput
from tagkin.features import get_backbone
from tagkin.features.backbone import Classifier
from tagkin.lexicons import WordNet, WordVectors
from tagkin.tag_meanings import ClassMeanings, ClassPrior, TextPrior, score_words
from tests.features.joint import SIZE, write_joint_encoder
from tests.lexicons.wordnet_writer import offset, write_wordnet

CLASSES = ["dog", "cat", "racket"]


@pytest.fixture(scope="module")
def prior(tmp_path_factory):
    """The features are the evidence of three classes."""
    folder = tmp_path_factory.mktemp("lexicon")
    (folder / "vectors.txt").write_text("dog 1 0\ncat 0 1\npuppy 1 0.1\nwild 0 -1\n")
    lexicon = ClassMeanings(
        [offset(name) for name in CLASSES],
        WordNet.find(write_wordnet(folder / "wordnet")),
        WordVectors.read(folder / "vectors.txt"),
    )
    weight = 6 * np.eye(3, dtype=np.float32)
    return ClassPrior(Classifier(weight, np.zeros(3, np.float32), lexicon.synsets), lexicon)


X = np.eye(3, dtype=np.float16)


@pytest.mark.parametrize(
    ("words", "best"),
    [("dog", 0), ("a cat on the sofa", 1), ("  the   racket ", 2)],
)
def test_words_that_name_classes_find_them(prior, words, best):
    assert score_words(prior, X, words).argmax() == best


def test_all_words_that_name_something_count(prior):
    several = np.array([[1, 0, 0], [0, 1, 0], [0.7, 0.7, 0]], dtype=np.float32)
    assert score_words(prior, several, "dog and cat").argmax() == 2


def test_words_without_a_meaning_are_told(prior):
    with pytest.raises(InvalidInput, match=r"nothing about “xyzzy”.*such as SigLIP 2"):
        score_words(prior, X, "xyzzy")
    with pytest.raises(InvalidInput, match="at least one word"):
        score_words(prior, X, "  ")


def test_a_joint_encoder_takes_the_words_as_they_are(tmp_path):
    pytest.importorskip("tokenizers")
    folder = write_joint_encoder(tmp_path, prompts=["{}"])
    backbone = get_backbone(str(folder / "image.onnx"))
    colors = [(250, 10, 10), (10, 250, 10), (250, 250, 10)]
    squares = np.array([np.full((SIZE, SIZE, 3), color, np.uint8) for color in colors])
    features = backbone(squares)
    prior = TextPrior(backbone.text_encoder)
    assert [score_words(prior, features, words).argmax() for words in ("red", "red green")] == [
        0,
        2,
    ]


def test_photographs_above_the_ceiling_of_names_alone_are_still_ordered(tmp_path):
    pytest.importorskip("tokenizers")
    folder = write_joint_encoder(tmp_path, prompts=["{}"], scale=1000.0, bias=0.0)
    prior = TextPrior(get_backbone(str(folder / "image.onnx")).text_encoder)
    features = np.array([[0.8, 0.6, 0], [1, 0, 0], [0.9, 0.4, 0]], dtype=np.float32)
    odds = prior.log_odds(features, prior.meanings(["red"]).table())
    assert len(np.unique(odds)) == 1
    assert np.argsort(-score_words(prior, features, "red")).tolist() == [1, 2, 0]
