"""Tags that are one: singular and plural, flat and hierarchical."""

import numpy as np
import pytest

from tagkin.labels import Vocabulary, plural_pairs
from tagkin.labels.tag_reader import whole_paths


def merging(**options):
    return Vocabulary(separator="|", merge_levels=True, **options)


# --- plurals -----------------------------------------------------------------------------


# One of a thing, and several.
PLURALS = [
    ("dog", "dogs"),
    ("hot dog", "hot dogs"),
    ("berry", "berries"),
    ("toy", "toys"),
    ("church", "churches"),
    ("bus", "buses"),
    ("box", "boxes"),
    ("tomato", "tomatoes"),
    ("photo", "photos"),
    ("leaf", "leaves"),
    ("roof", "roofs"),
    ("knife", "knives"),
    ("man", "men"),
    ("old man", "old men"),
    ("fireman", "firemen"),
    ("young child", "young children"),
    ("person", "people"),
]


def test_plurals_of_english():
    for pair in PLURALS:
        assert plural_pairs([*reversed(pair), "sea"]) == [pair]


@pytest.mark.parametrize(
    "words", [("dogs", "cat"), ("glass", "glas"), ("a", "as"), ("sky", "skys"), ("dog", "hot dogs")]
)
def test_what_is_no_plural(words):
    assert plural_pairs(words) == []


# --- levels ------------------------------------------------------------------------------


def test_a_flat_tag_is_the_hierarchical_one_that_ends_in_it():
    lists = [["animal|dog"], ["Dog"], ["animal|dog"], ["animal|cat"], ["tree"]]
    apart = Vocabulary(separator="|").fit(lists)
    assert apart.names_ == ["animal", "animal|cat", "animal|dog", "Dog", "tree"]
    vocabulary = merging()
    Y = vocabulary.fit_transform(lists)
    assert vocabulary.names_ == ["animal", "animal|cat", "animal|dog", "tree"]
    # the flat form is the rarer one: it stands for the whole, parents and all
    expected = [[1, 0, 1, 0], [1, 0, 1, 0], [1, 0, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(Y.toarray(), expected)
    # a tag that occurred with its levels only is known without them as well
    np.testing.assert_array_equal(vocabulary.transform([["CAT"]]).toarray(), [[1, 1, 0, 0]])
    assert vocabulary.unknown_ == {}


def test_the_majority_form_is_shown_and_a_stray_parent_does_not_spread():
    lists = [["Menschen"]] * 111 + [["Things|Menschen"]] * 30
    vocabulary = merging().fit(lists)
    assert dict(zip(vocabulary.names_, vocabulary.counts_.tolist(), strict=True)) == {
        "Things": 30,
        "Menschen": 141,
    }
    assert vocabulary.index("things|menschen") == vocabulary.index("MENSCHEN")
    np.testing.assert_array_equal(vocabulary.transform([["menschen"]]).toarray(), [[0, 1]])


def test_an_ambiguous_leaf_stays_apart():
    lists = [["animal|dog"], ["toy|dog"], ["dog"]]
    vocabulary = merging().fit(lists)
    assert vocabulary.names_ == ["animal", "animal|dog", "dog", "toy", "toy|dog"]
    assert vocabulary.counts_.tolist() == [1] * 5


def test_longer_forms_of_one_tag_are_one():
    vocabulary = merging().fit(
        [["dog"], ["animal|dog"], ["nature|animal|dog"], ["nature|animal|cat"]]
    )
    assert vocabulary.counts_[vocabulary.index("dog")] == 3
    assert (
        vocabulary.index("dog")
        == vocabulary.index("animal|dog")
        == vocabulary.index("Nature|Animal|Dog")
    )


def test_children_of_a_flat_form_follow_it():
    vocabulary = merging().fit([["Menschen|Anna"], ["Things|Menschen"], ["Anna"], ["Menschen"]])
    assert (
        vocabulary.index("anna")
        == vocabulary.index("things|menschen|anna")
        == vocabulary.index("Menschen|Anna")
    )
    assert (
        vocabulary.counts_[vocabulary.index("menschen")] == 4
    )  # Anna is one of them, however she is written


def test_hierarchies_in_a_circle_stay_apart():
    lists = [["travel|italy"], ["italy|travel"], ["italy"], ["x|y"], ["y"]]
    vocabulary = merging().fit(lists)
    assert vocabulary.names_ == ["italy", "italy|travel", "travel", "travel|italy", "x", "x|y"]
    assert whole_paths({("a", "b"): 1, ("b", "a"): 1}) == {}


def test_merging_by_random_forms_gives_one_tag_each():
    """Against the sets that the forms stand for."""
    rng = np.random.default_rng(0)
    forms = [
        ["dog", "Dog", "animal|dog"],
        ["sea", "water|sea"],
        ["red car", "thing|Red Car"],
    ]
    sets = [set(rng.choice(3, rng.integers(1, 3)).tolist()) for _ in range(80)]
    lists = [[str(rng.choice(forms[t])) for t in row for _ in range(2)] for row in sets]
    vocabulary = merging(imply_parents=False).fit(lists)
    order = [vocabulary.index(name) for name in ("dog", "sea", "red car")]
    labels = vocabulary.transform(lists).toarray()[:, order]
    np.testing.assert_array_equal(labels, [[t in row for t in range(3)] for row in sets])
    assert len(vocabulary.names_) == 3
