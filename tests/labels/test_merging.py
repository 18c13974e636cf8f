"""Tags that are one: singular and plural, flat and hierarchical, and tags that are left out."""

import numpy as np
import pytest
from sklearn.base import clone

from tagkin import load, save
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary
from tagkin.labels.merging import canonical_words, plural_pairs, whole_paths


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


def test_the_more_frequent_form_stands_for_both_and_the_singular_where_they_tie():
    assert canonical_words({"dog": 9, "dogs": 2, "cat": 1, "cats": 8, "hen": 3, "hens": 3}) == {
        "dogs": "dog",
        "cat": "cats",
        "hens": "hen",
    }
    assert canonical_words({"dog": 9, "dogs": 2}, preferred=["dogs"]) == {"dog": "dogs"}


def test_plurals_are_merged_on_request_in_the_users_own_form():
    lists = [["dog"], ["Dogs"], ["Dogs"], ["rabbit"], ["rabbits"], ["rabbit", "dog", "dogs"]]
    apart = Vocabulary().fit(lists)
    assert apart.names_ == ["dog", "Dogs", "rabbit", "rabbits"]
    assert apart.plurals_ == [("dog", "Dogs"), ("rabbit", "rabbits")]
    vocabulary = Vocabulary(merge_plurals=True)
    Y = vocabulary.fit_transform(lists)
    assert vocabulary.names_ == ["Dogs", "rabbit"]
    assert vocabulary.counts_.tolist() == [4, 3]
    assert vocabulary.plurals_ == []
    np.testing.assert_array_equal(Y.toarray().T, [[1, 1, 1, 0, 0, 1], [0, 0, 0, 1, 1, 1]])
    assert vocabulary.index("dog") == vocabulary.index("DOGS") == 0
    assert vocabulary.transform([["cats"]]).sum() == 0
    assert vocabulary.unknown_ == {"cats": 1}


def test_a_plural_without_its_singular_stays_as_it_is():
    assert Vocabulary(merge_plurals=True).fit([["waves"], ["glasses"]]).names_ == [
        "glasses",
        "waves",
    ]


def test_plurals_and_synonyms_go_together():
    lists = [["puppy"], ["puppies"], ["puppies"], ["dogs"], ["dog"]]
    for aliases in ({"puppy": "dog"}, {"puppies": "dog"}, {"puppy": "dogs"}):
        vocabulary = Vocabulary(aliases=aliases, merge_plurals=True).fit(lists)
        assert len(vocabulary.names_) == 1, aliases
        assert vocabulary.counts_.tolist() == [5]


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


def test_plurals_are_merged_at_every_level():
    lists = [["animals|dogs"], ["animal|dog"], ["dogs"], ["animal|cat"], ["cat"]]
    vocabulary = merging(merge_plurals=True).fit(lists)
    assert vocabulary.names_ == ["animal", "animal|cat", "animals|dogs"]
    assert vocabulary.counts_.tolist() == [5, 2, 3]


def test_merging_by_random_forms_gives_one_tag_each():
    """Against the sets that the forms stand for."""
    rng = np.random.default_rng(0)
    forms = [
        ["dog", "Dogs", "animal|dog", "animal|dogs"],
        ["sea", "water|sea"],
        ["red car", "red cars", "thing|Red Car"],
    ]
    sets = [set(rng.choice(3, rng.integers(1, 3)).tolist()) for _ in range(80)]
    lists = [[str(rng.choice(forms[t])) for t in row for _ in range(2)] for row in sets]
    vocabulary = merging(merge_plurals=True, imply_parents=False).fit(lists)
    order = [vocabulary.index(name) for name in ("dog", "sea", "red car")]
    labels = vocabulary.transform(lists).toarray()[:, order]
    np.testing.assert_array_equal(labels, [[t in row for t in range(3)] for row in sets])
    assert len(vocabulary.names_) == 3


# --- leaves, exclusions ------------------------------------------------------------------


def test_leaves_alone_where_they_are_unique():
    lists = [["animal|dog", "Place|New York"], ["toy|dog"], ["sky"]]
    vocabulary = Vocabulary(separator="|", leaf_only=True).fit(lists)
    assert vocabulary.names_ == [
        "animal",
        "animal|dog",
        "Place",
        "New York",
        "sky",
        "toy",
        "toy|dog",
    ]
    assert vocabulary.inverse_transform(vocabulary.transform([["place|new york"]])) == [
        ["Place", "New York"]
    ]
    vocabulary.leaf_only = False
    assert "Place|New York" in vocabulary.names_
    assert Vocabulary(leaf_only=True).fit([["a|b"]]).names_ == ["a|b"]
    assert Vocabulary(separator=("|", "/"), leaf_only=True).fit([["a/b|c"]]).names_[-1] == "c"


def test_excluded_tags_get_no_column_in_any_form():
    lists = [["4K Wallpaper", "dog"], ["4k  wallpaper", "animal|dog"], ["animal|cat", "rare"]]
    exclude = ["4k wallpaper", "animal", " "]
    vocabulary = merging(min_count=1, exclude=exclude).fit(lists)
    assert vocabulary.names_ == ["animal|cat", "dog", "rare"]
    assert vocabulary.dropped_ == {}
    vocabulary.transform([["4K WALLPAPER"]])
    assert vocabulary.unknown_ == {}
    with pytest.raises(InvalidInput, match="'animal' is excluded"):
        vocabulary.index("animal")
    assert vocabulary.extend([["4k wallpaper", "new"]]).names_[-1] == "new"
    assert "dog" not in " ".join(merging(exclude=["Dog"]).fit(lists).names_)
    with pytest.raises(InvalidInput, match="exclude must be a list of tags; found the text 'dog'"):
        Vocabulary(exclude="dog").fit(lists)


def test_forms_are_stored_and_cloned(tmp_path):
    lists = [["animal|dogs"], ["dog"], ["dog"], ["4k"]]
    vocabulary = merging(merge_plurals=True, exclude=["4k"], leaf_only=True).fit(lists)
    again = load(save(vocabulary, tmp_path / "model"))
    assert again.get_params() == vocabulary.get_params()
    assert again.names_ == vocabulary.names_ == ["animal", "dog"]
    new = [["Dogs"], ["animal|dog"], ["4K"]]
    assert (again.transform(new) != vocabulary.transform(new)).nnz == 0
    assert again.index("dogs") == 1
    assert again.extend([["animals"]]).names_ == vocabulary.extend([["animals"]]).names_
    assert clone(vocabulary).exclude == ["4k"]
