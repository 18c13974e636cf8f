"""Words, their synsets and how similar they are, in a small synthetic WordNet."""

import copy

import numpy as np
import pytest

from tagkin import memory_budget
from tagkin.errors import InvalidInput
from tagkin.lexicons.wordnet import WordNet
from tests.lexicons.wordnet_writer import SYNSETS, names, offset, write_counts

# --- words ---


# A word, and the first names of the synsets that it finds.
FOUND = [
    ("dog", ["dog"]),
    ("Dogs", ["dog"]),
    ("domestic dogs", ["dog"]),
    ("bat", ["bat", "club"]),
    ("traffic light", ["light"]),
    (" Traffic_Lights ", ["light"]),
    ("traffic-light", ["light"]),
    ("trafficlight", ["light"]),
    ("tshirts", ["jersey"]),
    ("T shirt", ["jersey"]),
    ("cell phones", ["phone"]),
    ("réx", ["rex"]),
    ("oxen", ["ox"]),
    ("knives", ["knife"]),
    ("butter knives", ["butter_knife"]),
    ("men", ["staff", "human"]),  # its own meaning first, then that of its singular
    ("boss", ["boss"]),  # and not several Bos
    ("bos", ["ox"]),
    ("gas", ["gas"]),  # and not several Ga
    ("gas'", ["gas"]),
    ("gass", []),
    ("children", []),  # a known plural of an unknown word
    ("potted bat", []),
    ("s", []),
    ("-", []),
    ("", []),
]


def test_words_find_their_synsets(wordnet):
    for word, expected in FOUND:
        assert names(wordnet, word) == expected, word


def test_a_synset_says_its_words(wordnet):
    (synset,) = wordnet.synsets("dogs")
    assert synset.words == ("dog", "domestic_dog")
    assert synset.offset == offset("dog")


def test_unknown_and_unattested_words_are_reported(wordnet):
    words = ["yeti", "dogs", "unicorn", "bat", "potted plant", "nessie"]
    assert wordnet.unknown(words) == ["unicorn", "potted plant"]
    assert wordnet.find_unattested(words) == ["yeti", "nessie"]


# --- similarity, where the answer is plain ---


# Two words, and their similarity by best and by first senses.
PLAIN = [
    ("dog", "cat", 2 * 1 / (3 + 3), 2 * 1 / (3 + 3)),
    ("dog", "domestic dog", 1, 1),
    ("dog", "DOGS", 1, 1),
    ("dog", "animal", 2 * 1 / (3 + 1), 2 * 1 / (3 + 1)),
    ("dog", "rex", 2 * 3 / (3 + 5), 2 * 3 / (3 + 5)),  # above as an instance's hypernym
    ("dog", "racket", 0, 0),  # only the root is above both
    ("bat", "racket", 2 * 1 / (3 + 3), 0),
    ("bat", "cat", 2 * 1 / (4 + 3), 2 * 1 / (4 + 3)),
    ("pet", "dog", 2 * 1 / (3 + 3), 2 * 1 / (3 + 3)),  # a pet is a cat or a man
    ("pet", "man", 1, 2 * 1 / (3 + 6)),
    ("entity", "dog", 0, 0),
    ("entity", "entity", 1, 1),
    ("dog", "unicorn", 0, 0),
    ("unicorn", "basilisk", 0, 0),
    ("unicorn", "Unicorn", 1, 1),
    ("yeti", "nessie", 1, 1),  # NLTK's rule for what the corpus never mentions
    ("yeti", "dog", 0, 0),
]


def test_similarities_that_are_plain(wordnet):
    for a, b, best, first in PLAIN:
        for senses, expected in {"best": best, "first": first}.items():
            there, back = (wordnet.lin_similarity(*pair, senses) for pair in ((a, b), (b, a)))
            assert there == pytest.approx(expected, abs=1e-12), (a, b, senses)
            assert back == pytest.approx(expected, abs=1e-12), (b, a, senses)


@pytest.mark.parametrize("senses", ["best", "first"])
@pytest.mark.parametrize("budget", [1, 2**27])
def test_the_matrix_is_made_of_pairs(wordnet, senses, budget):
    words = [w for words, _, _ in SYNSETS.values() for w in words]
    words += ["unicorn", "Unicorn", "basilisk", "Dogs"]
    with memory_budget(budget):
        S = wordnet.lin_matrix(words, senses)
    expected = [[wordnet.lin_similarity(a, b, senses) for b in words] for a in words]
    np.testing.assert_allclose(S, expected, rtol=1e-14)
    assert (S == S.T).all()
    assert (np.diag(S) == 1).all()
    assert S.dtype == np.float64


def test_no_words_make_an_empty_matrix(wordnet):
    assert wordnet.lin_matrix([]).shape == (0, 0)


def test_what_cannot_be_asked(wordnet):
    with pytest.raises(InvalidInput, match="senses must be best or first; found 'all'"):
        wordnet.lin_matrix(["dog"], senses="all")
    with pytest.raises(InvalidInput, match="senses must be best or first; found 'all'"):
        wordnet.lin_similarity("dog", "cat", senses="all")
    with pytest.raises(InvalidInput, match="Expected a list of words; found the string 'dog'"):
        wordnet.lin_matrix("dog")
    with pytest.raises(InvalidInput, match="must be a string; found 7"):
        wordnet.synsets(7)
    with pytest.raises(InvalidInput, match=r"must be one of brown, .*semcor-add1; found 'bnw'"):
        WordNet.find(information_content="bnw")


def test_copies_share_what_never_changes(wordnet):
    assert copy.deepcopy(wordnet) is wordnet
    assert repr(wordnet) == "<WordNet: 23 noun synsets, information content from brown>"


# --- information content ---


def test_counts_of_a_corpus_are_taken_where_they_are(folder):
    write_counts(folder / "ic-brown.dat", entity=64, animal=16, dog=4, cat=4)
    write_counts(folder.parent / "wordnet_ic" / "ic-semcor.dat", entity=64, animal=32, dog=2, cat=4)
    for name, expected in {"brown": 2 * 2 / (4 + 4), "semcor": 2 * 1 / (5 + 4)}.items():
        wordnet = WordNet.find(folder, information_content=name)
        assert wordnet.lin_similarity("dog", "cat") == pytest.approx(expected, abs=1e-12)
        assert wordnet.information_content_source == name


def test_counts_of_another_version_are_refused(folder):
    file = write_counts(folder / "ic-brown.dat")
    text = file.read_text()
    file.write_text(text.replace(f"{offset('dog')}n", "77n"))
    with pytest.raises(InvalidInput, match=r"has 23 synsets, 22 of them among the 23 .* version"):
        WordNet.find(folder)
    file.write_text(text[: text.index(f"{offset('club')}n")])
    with pytest.raises(
        InvalidInput, match=r"ic-brown.dat .* it has 9 synsets, 9 of them among the 23"
    ):
        WordNet.find(folder)
    file.write_text(text.replace(" ROOT", ""))
    with pytest.raises(InvalidInput, match="a root count of 0"):
        WordNet.find(folder)


def test_no_counts_at_all(folder):
    (folder / "ic-brown.dat").unlink()
    with pytest.raises(
        InvalidInput, match=r"no .*wordnet.ic-brown.dat or .*wordnet_ic.ic-brown.dat"
    ):
        WordNet.find(folder)
