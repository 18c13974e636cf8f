"""Tags that mean the same, with the map that comes with tagkin."""

import pytest

from tagkin.tag_meanings import common_tags, find_same_meaning


def pairs(tags):
    return {frozenset(pair[:2]) for pair in find_same_meaning(tags)}


SURE = 0.76  # as tags duplicates asks


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("car", "automobile"),
        ("Auto", "car"),
        ("Auto", "Verkehr|Auto"),
        ("dog", "Hund"),
        ("犬", "dog"),
        ("couch", "sofa"),
        ("plane", "airplane"),
        ("neige", "snow"),
        ("tree", "árbol"),
    ],
)
def test_synonyms_and_translations_are_found(first, second):
    others = ["cat", "feather", "weather", "house", "river"]
    (pair,) = [p for p in find_same_meaning([first, *others, second]) if first in p[:2]]
    assert {pair.first, pair.second} == {first, second}
    assert pair.cosine > SURE


@pytest.mark.parametrize(
    "tags",
    [
        ["dog", "dogs", "Dog"],  # spelling, which is offered elsewhere
        ["hot dog", "hotdog"],
        ["glove", "baseball glove"],
        ["dog", "cat", "man", "woman", "feather", "weather"],
        ["fruit|apple", "computer|apple"],
        ["tennis", "Tennisschläger", "horse", "horseback", "motorcycle", "motorcyclist"],
        ["2019", "2020"],
        ["Berlin", "Hamburg", "Anna", "Maria", "Canon", "Nikon"],
        [],
        ["dog"],
    ],
)
def test_other_tags_are_not(tags):
    assert pairs(tags) == set()


def test_few_common_tags_are_the_same():
    sure = [p for p in find_same_meaning(common_tags()) if p.cosine >= SURE]
    assert {"couch", "sofa"} in [{*p[:2]} for p in sure]
    assert len(sure) <= 8
