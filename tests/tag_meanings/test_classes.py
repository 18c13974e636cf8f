"""What tags mean in classes, with a WordNet of a few synsets and vectors of a few words."""

import numpy as np
import pytest
import scipy.sparse

from tagkin.lexicons import WordNet, WordVectors
from tagkin.tag_meanings import ClassMeanings, ClassPrior, NameTable
from tagkin.tag_meanings.meanings import BORROWED, OWN, UNKNOWN
from tests.lexicons.wordnet_writer import offset, write_wordnet

CLASSES = ["dog", "cat", "bat", "club", "racket", "jersey"]
WORDS = {
    "dog": (1, 0, 0),
    "barking": (0.9, 0.1, 0),
    "hund": (0.1, 0.9, 0),
    "cat": (0, 1, 0),
    "bat": (0, 0, 1),
    "club": (0, 0.2, 0.9),
    "racket": (0, 0, -1),
}


@pytest.fixture
def wordnet(tmp_path):
    return WordNet.find(write_wordnet(tmp_path / "wordnet"))


@pytest.fixture
def vectors(tmp_path):
    text = "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in WORDS.items())
    (tmp_path / "vectors.txt").write_text(text)
    return WordVectors.read(tmp_path / "vectors.txt")


@pytest.fixture
def lexicon(wordnet, vectors):
    return ClassMeanings([offset(name) for name in CLASSES], wordnet, vectors)


def own(meanings, tag):
    """Classes and weight of each meaning of a tag but the borrowed one, heaviest first."""
    found = [
        ([CLASSES[c] for c in meanings.rows[[k]].indices], meanings.weights[k])
        for k in np.flatnonzero(meanings.tags == tag)
    ]
    return sorted((f for f in found if len(f[0]) < len(CLASSES)), key=lambda f: -f[1])


def test_classes_at_or_below_a_synset_belong_to_the_tag(lexicon):
    meanings = lexicon(["Dogs", "animal", "domestic dog"])
    assert [own(meanings, tag)[0][0] for tag in range(3)] == [
        ["dog"],
        ["dog", "cat", "bat"],
        ["dog"],
    ]
    assert meanings.kinds.tolist() == [OWN] * 3
    table = meanings.table()
    assert table.breadths.tolist() == pytest.approx([1, 3, 1])
    np.testing.assert_allclose(table.rows.sum(axis=1), 1, atol=1e-6)


def test_the_first_of_several_senses_is_the_likeliest(lexicon):
    (first, likely), (second, less) = own(lexicon(["bat"]), 0)
    assert (first, second) == (["bat"], ["club"])
    assert likely == pytest.approx(4 * less)


@pytest.mark.parametrize(("tag", "first"), [("artifact|bat", "club"), ("animal/bat", "bat")])
def test_upper_levels_of_a_tag_tell_senses_apart(lexicon, tag, first):
    assert own(lexicon([tag]), 0)[0][0] == [first]


def test_what_covers_nearly_everything_says_nothing(lexicon):
    assert own(lexicon(["entity"]), 0) == []


def test_an_unknown_compound_means_what_its_last_word_means_but_less(lexicon):
    [(classes, weight)] = own(lexicon(["angry dog"]), 0)
    assert classes == ["dog"]
    assert weight < own(lexicon(["dog"]), 0)[0][1]


def test_a_tag_without_classes_borrows_by_word_vectors(lexicon):
    meanings = lexicon(["barking", "unheard of"])
    assert meanings.kinds.tolist() == [BORROWED, UNKNOWN]
    row = meanings.table().rows[[0]].toarray()[0]
    # jersey has no vector: its cosine is 0
    vector = np.array(WORDS["barking"])
    cosines = [
        vector @ WORDS[c] / np.linalg.norm(vector) / np.linalg.norm(WORDS[c]) if c in WORDS else 0
        for c in CLASSES
    ]
    expected = np.exp(20 * np.array(cosines))
    np.testing.assert_allclose(row, expected / expected.sum(), rtol=1e-4)
    assert not meanings.table().rows[[1]].nnz


@pytest.mark.parametrize("tag", ["hund", "Hund", "bàt", "Rex", "angry hund", "f/2.8", "2019"])
def test_a_tag_that_is_not_english_borrows_nothing_by_its_spelling(lexicon, tag):
    # GloVe has German words and surnames, among words that are near them by accident
    assert lexicon([tag]).kinds.tolist() == [UNKNOWN]


def test_without_word_vectors_it_borrows_by_the_taxonomy(wordnet):
    lexicon = ClassMeanings([offset(name) for name in CLASSES], wordnet)
    meanings = lexicon(["man", "unheard of"])
    assert meanings.kinds.tolist() == [BORROWED, UNKNOWN]
    similar = np.array([wordnet.lin_similarity("man", c) for c in CLASSES])
    similar[CLASSES.index("bat")] = 2 * 1 / (6 + 4)  # the animal; "bat" is a club, too
    similar = similar**16
    row = meanings.table().rows[[0]].toarray()[0]
    np.testing.assert_allclose(row, similar / similar.sum(), rtol=1e-4)


def test_no_tags_are_no_rows(lexicon):
    assert len(lexicon([]).table()) == 0


class Sure:
    """A classifier that gives the racket a probability, and the other five classes the same."""

    def __init__(self, synsets, racket):
        self.synsets, self.racket = synsets, racket

    def probabilities(self, X, temperature=1.0):
        P = np.full((len(X), len(CLASSES)), (1 - self.racket) / 5)
        P[:, CLASSES.index("racket")] = self.racket
        return P


@pytest.mark.parametrize("racket", [0.9, 1 / 6])
def test_a_class_counts_once_and_above_chance_for_the_confidence_of_a_name_alone(lexicon, racket):
    """The racket is near *animal* and no animal. A classifier that knows nothing says nothing."""
    prior = ClassPrior(Sure(lexicon.synsets, racket), lexicon)
    rows = np.array([[0.2, 0.2, 0.2, 0.0, 0.4, 0.0]])
    table = NameTable(scipy.sparse.csr_array(rows), np.array([OWN], np.int8), np.array([3.0]))
    chance = (3 * 0.6 + 1) / 6
    m = 3 * 0.6 * (1 - racket) / 5 + racket  # not 1.2 times the racket
    m = max((m - chance) / (1 - chance), 1e-6)
    expected = 0.60 + 0.55 * np.log(min(m, 0.8) / (1 - min(m, 0.8))) + 0.01 * m
    assert prior.log_odds(np.ones((1, 2)), table)[0, 0] == pytest.approx(expected, abs=1e-6)


def test_a_class_counts_for_its_narrowest_tags_alone(lexicon):
    """A racket is a racket: neither a thing nor, in equal parts, two words for one thing."""
    prior = ClassPrior(Sure(lexicon.synsets, 0.7), lexicon)
    racket = np.eye(6)[CLASSES.index("racket")]
    rows = scipy.sparse.csr_array([racket, np.full(6, 1 / 6), racket])

    def confidences(tags):
        kinds, breadths = np.full(len(tags), OWN, np.int8), np.array([1.0, 6.0, 1.0])[tags]
        table = NameTable(rows[tags], kinds, breadths)
        return 1 / (1 + np.exp(-prior.log_odds(np.ones((1, 2)), table)[0]))

    alone = confidences([0])[0]
    of_both = confidences([0, 1])
    assert of_both[0] == pytest.approx(alone)
    assert of_both[1] < 0.01  # other things are as likely as by chance
    of_words = confidences([0, 2])
    assert of_words[0] == of_words[1] < alone
    assert alone < 0.8
