"""Tags that mean the same, with the installed lexicons."""

import pytest

from tagkin.tag_meanings import common_tags, find_synonyms
from tests.conftest import needs_encoder, needs_wordnet


def pairs(tags, why=None):
    return {frozenset(one[:2]) for one in find_synonyms(tags) if why in (None, one.why)}


def words(text):
    return frozenset(text.split())


@needs_wordnet
def test_words_with_one_first_meaning_are_synonyms():
    tags = ["sundown", "sunset", "Sofa", "couch", "plane", "airplane", "dog", "cat", "moon"]
    right = {words("sundown sunset"), words("Sofa couch"), words("plane airplane")}
    assert pairs(tags) == right
    assert {one.why for one in find_synonyms(tags)} == {"synonym"}


@needs_wordnet
@pytest.mark.parametrize(
    "tags",
    [
        ["dog", "dogs", "Dog"],  # spelling, which is offered elsewhere
        ["hot dog", "hotdog"],
        ["animal|sundown", "sunset"],
        ["glove", "baseball glove"],
        ["dog", "cat"],
        [],
        ["dog"],
    ],
)
def test_other_tags_are_no_synonyms(tags):
    assert pairs(tags) == set()


@needs_encoder
def test_translations_of_english_tags_are_found():
    tags = ["dog", "Hund", "cat", "chat noir", "Katze", "犬", "tree", "árbol", "Anna", "DSC0001"]
    found = pairs(tags, "translation")
    assert {words("cat Katze"), words("tree árbol")} < found
    # one for each English tag, the nearest
    assert len(found & {words("dog Hund"), words("dog 犬")}) == 1
    assert len(found) == 3


@needs_encoder
def test_a_part_is_no_translation():
    assert pairs(["baseball", "gant de baseball", "tennis", "Tennisschläger"]) == set()


@needs_encoder
def test_few_common_tags_are_the_same():
    found = pairs(common_tags())
    assert words("couch sofa") in found
    assert words("hedgehog porcupine") not in found  # WordNet says so
    assert len(found) <= 3
