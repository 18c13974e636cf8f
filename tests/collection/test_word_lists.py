"""Lists of tags with levels and synonyms, as Lightroom exports and imports its keywords."""

import numpy as np
import pytest

from tagkin.collection import format_tag_list, read_synonyms, read_tag_list
from tagkin.errors import InvalidInput

# as Metadata › Export Keywords writes it
EXPORTED = """\
[WHAT]
\tanimal
\t\tdog
\t\t\t{hound}
\t\t\t{canis lupus familiaris}
\t\t\tpoodle
\t\tcat
\tbeach
\t\t{shore}
\t[COLOURS]
\t\t{hues}
\t\tred
sea
\t{ocean}
"""
TAGS = [
    "WHAT|animal",
    "WHAT|animal|dog",
    "WHAT|animal|dog|poodle",
    "WHAT|animal|cat",
    "WHAT|beach",
    "WHAT|COLOURS|red",
    "sea",
]
SYNONYMS = {
    "hound": "WHAT|animal|dog",
    "canis lupus familiaris": "WHAT|animal|dog",
    "shore": "WHAT|beach",
    "ocean": "sea",
}


def test_a_keyword_list_of_lightroom(tmp_path):
    path = tmp_path / "keywords.txt"
    path.write_bytes(b"\xef\xbb\xbf" + EXPORTED.replace("\n", "\r\n").encode())
    assert read_tag_list(path) == TAGS
    assert read_synonyms(path) == SYNONYMS


def test_a_list_is_written_as_lightroom_reads_it():
    text, left_out = format_tag_list(TAGS, SYNONYMS | {"old|shore": "WHAT|beach", "x|sea": "sea"})
    assert text == (
        "sea\n\t{ocean}\n[WHAT]\n\tanimal\n\t\tcat\n\t\tdog\n\t\t\t{canis lupus familiaris}\n"
        "\t\t\t{hound}\n\t\t\tpoodle\n\tbeach\n\t\t{shore}\n\t[COLOURS]\n\t\tred\n"
    )
    assert left_out == []
    text, left_out = format_tag_list(["a", "{b}", "a|[c]", "#d", "e]"], {"{f}": "a"})
    assert (text, left_out) == ("a\ne]\n", ["{b}", "a|[c]", "#d"])


def test_a_level_that_is_missing_is_named(tmp_path):
    path = tmp_path / "keywords.txt"
    path.write_text("animal\n\t\tdog\n")
    with pytest.raises(InvalidInput, match=r"line 2: 'dog' has 2 tabs before it, and .* have 1\."):
        read_tag_list(path)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read_back(tmp_path, seed):
    rng = np.random.default_rng(seed)
    words = ["a", "A", "b", "é", "two words", "c]", "d{", "|".join("xyz")]
    tags = {
        "|".join(rng.choice(words, size=rng.integers(1, 5)).tolist())
        for _ in range(rng.integers(0, 30))
    }
    synonyms = {f"synonym {k}": tag for k, tag in enumerate(sorted(tags)) if rng.random() < 0.3}
    text, left_out = format_tag_list(tags, synonyms)
    path = tmp_path / "tags.txt"
    path.write_text(text, encoding="utf-8")
    assert left_out == []
    read = read_tag_list(path)
    assert len(read) == len(tags)
    assert set(read) == tags
    assert not synonyms or read_synonyms(path) == synonyms
