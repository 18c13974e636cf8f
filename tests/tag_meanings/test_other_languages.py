"""Tags in any language, with an encoder of a few words and with the installed encoder."""

import zlib
from string import ascii_lowercase

import numpy as np
import pytest

from tagkin.features import FeatureCache, get_backbone
from tagkin.lexicons import SentenceEncoder, WordNet
from tagkin.tag_meanings import ClassMeanings, common_tags
from tagkin.tag_meanings.meanings import BORROWED, OWN, UNKNOWN
from tests.conftest import needs_encoder
from tests.lexicons.wordnet_writer import offset, write_wordnet

CLASSES = ["dog", "cat", "racket"]

# --- an encoder of a few words -----------------------------------------------------------

SAME = {"hund": "dog", "chien": "dog", "katzenartig": "cat", "boot": "boat", "maria": "Julia"}
LIKE = {"katzenartig": 0.6}  # near, and not the same


def encode(texts):
    """Common tags at right angles, three names together, words of `SAME` near both, others not."""
    axes = {word: i for i, word in enumerate(common_tags())}
    axes |= dict.fromkeys(["Julia", "Laura", "Sarah"], len(axes))
    vectors = np.zeros((len(texts), 1000))
    for vector, text in zip(vectors, texts, strict=True):
        word = SAME.get(text, text)
        if word in axes:
            vector[axes[word]] = LIKE.get(text, 0.9 if text in SAME else 1.0)
        noise = np.random.default_rng(zlib.crc32(text.encode())).normal(size=1000 - 400)
        vector[400:] = noise / np.linalg.norm(noise) * np.sqrt(1 - vector @ vector)
    return vectors


@pytest.fixture
def lexicon(tmp_path):
    wordnet = WordNet.find(write_wordnet(tmp_path / "wordnet"))
    return ClassMeanings([offset(name) for name in CLASSES], wordnet, SentenceEncoder(encode))


def classes(meanings, tag):
    """Classes of a tag's row, heaviest first."""
    row = meanings.table().rows[[tag]].toarray()[0]
    return [CLASSES[c] for c in np.argsort(-row) if row[c]]


@pytest.mark.parametrize("tag", ["hund", "Hund", "HUND", "Tier|hund", " chien"])
def test_a_translation_means_what_its_common_tag_means(lexicon, tag):
    meanings = lexicon([tag, "dog"])
    assert meanings.kinds.tolist() == [OWN, OWN]
    mine, english = meanings.table().rows.toarray()
    np.testing.assert_allclose(mine, english, atol=0.05)


def test_a_tag_that_is_only_near_borrows(lexicon):
    meanings = lexicon(["katzenartig"])
    assert meanings.kinds.tolist() == [BORROWED]
    assert classes(meanings, 0)[0] == "cat"


@pytest.mark.parametrize("tag", ["blimorf", "maria", "DSC0001", "42", "", "?"])
def test_what_is_near_nothing_or_a_name_is_unknown(lexicon, tag):
    meanings = lexicon([tag])
    assert meanings.kinds.tolist() == [UNKNOWN]
    assert not meanings.table().rows.nnz


def test_many_tags_are_read_in_their_order(lexicon):
    tags = [f"word{i}" for i in range(5000)] + ["hund"]
    assert np.flatnonzero(lexicon(tags).kinds).tolist() == [5000]


# --- the installed encoder ---------------------------------------------------------------


@pytest.fixture(scope="module")
def real(shared_cache):
    return ClassMeanings.find(get_backbone().classifier.synsets, FeatureCache(shared_cache))


@needs_encoder
@pytest.mark.parametrize(
    ("tags", "english"),
    [
        (["Hund", "hund", "HUND", "chien", "Chien", "perro", "cane", "犬", "狗", "개"], "dog"),
        (["Flugzeug", "avion", "avión", "aereo", "飛行機", "飞机"], "airplane"),
        (["Bär"], "bear"),
    ],
)
def test_words_in_other_languages_name_the_same_classes(real, tags, english):
    meanings = real([english, *tags])
    assert (meanings.kinds == OWN).all()
    right, *others = meanings.table().rows.toarray()
    for tag, row in zip(tags, others, strict=True):
        share = np.minimum(right, row).sum()
        assert share > 0.6, (tag, share)


@needs_encoder
@pytest.mark.parametrize(
    "tags",
    [
        ["DSC0001", "IMG_2034", "f/2.8", "50mm", "ISO800", "1/250s", "2019-08-04", "P1010101"],
        ["Angela", "Stefan", "Anna Schmidt", "Jean Dupont", "María García", "Yuki", "田中"],
        ["qwxzpt", "asdfgh", "xkcd", "wugglet", "zzz", "???"],
    ],
    ids=["camera words", "names", "no words"],
)
def test_what_is_no_word_is_unknown(real, tags):
    kinds = real(tags).kinds
    assert [tag for tag, kind in zip(tags, kinds, strict=True) if kind != UNKNOWN] == []


@needs_encoder
def test_few_words_that_do_not_exist_seem_to_mean_something(real):
    rng = np.random.default_rng(1)
    letters = ["".join(rng.choice(list(ascii_lowercase), rng.integers(4, 10))) for _ in range(100)]
    parts = [
        "ba",
        "be",
        "dri",
        "fle",
        "glo",
        "jo",
        "kri",
        "lo",
        "ma",
        "po",
        "pra",
        "ska",
        "tro",
        "vi",
    ]
    pronounceable = ["".join(rng.choice(parts, rng.integers(3, 6))) for _ in range(100)]
    assert (real(letters).kinds != UNKNOWN).sum() <= 3
    assert (real(pronounceable).kinds != UNKNOWN).sum() <= 8
