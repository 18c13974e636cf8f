"""Tags to columns, against a plain form that holds every image's set of tags."""

import sys

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tagkin import FeatureAnnotator, load, save
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary, normalize_tag

LISTS = [["Beach", "dog"], ["beach", "DOG", "dog"], None, [], ["Beach", "sea"]]


def random_lists(seed, n=60, n_tags=15):
    """Lists with spellings at random, and the sets of tags that they stand for."""
    rng = np.random.default_rng(seed)
    sets = [set(rng.choice(n_tags, rng.integers(0, 5)).tolist()) for _ in range(n)]
    spell = [lambda t: f"tag {t}", lambda t: f"  TAG \t{t}", lambda t: f"Tag\u00a0{t}"]
    lists = [
        [spell[rng.integers(3)](t) for t in s for _ in range(rng.integers(1, 3))] for s in sets
    ]
    return lists, sets


# --- matching ---


@pytest.mark.parametrize(
    ("spelling", "other"),
    [
        ("Straße", "STRASSE"),
        ("Caf\u00e9", "cafe\u0301"),
        ("ﬁre", "FIRE"),
        ("１２", "12"),
        ("new  york\n", "New\u00a0York"),
        ("ΣΑΣ", "σας"),
    ],
)
def test_one_tag_in_two_spellings(spelling, other):
    assert normalize_tag(spelling) == normalize_tag(other)
    assert Vocabulary().fit([[spelling], [other]]).counts_.tolist() == [2]


def test_tags_that_differ_stay_apart():
    assert len(Vocabulary().fit([["cat"], ["cats"], ["cåt"], ["c at"]]).names_) == 4


def test_normalizing_twice_changes_nothing():
    for code in range(sys.maxunicode + 1):
        once = normalize_tag(chr(code) + "x")
        assert normalize_tag(once) == once, hex(code)


def test_the_most_frequent_spelling_is_shown_and_the_first_where_they_tie():
    vocabulary = Vocabulary().fit(LISTS)
    assert vocabulary.names_ == ["Beach", "dog", "sea"]
    assert vocabulary.counts_.tolist() == [3, 2, 1]
    assert vocabulary.n_images_ == 5
    assert Vocabulary().fit([["NYC"], ["nyc"]]).names_ == ["NYC"]
    assert Vocabulary().fit([["nyc"], ["NYC"]]).names_ == ["nyc"]


# --- the matrix ---


def test_the_matrix_has_a_one_where_an_image_carries_a_tag():
    Y = Vocabulary().fit_transform(LISTS)
    assert isinstance(Y, scipy.sparse.csr_array)
    assert Y.dtype == np.float32
    assert Y.has_sorted_indices
    expected = [[1, 1, 0], [1, 1, 0], [0, 0, 0], [0, 0, 0], [1, 0, 1]]
    np.testing.assert_array_equal(Y.toarray(), expected)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("min_count", [1, 8, 12])
def test_against_sets_of_tags(seed, min_count):
    lists, sets = random_lists(seed)
    vocabulary = Vocabulary(min_count=min_count)
    Y = vocabulary.fit_transform(lists).toarray()
    counts = {t: sum(t in s for s in sets) for t in range(15)}
    tags = sorted((t for t in counts if counts[t] >= min_count), key=str)
    np.testing.assert_array_equal(Y, [[t in s for t in tags] for s in sets])
    assert vocabulary.counts_.tolist() == [counts[t] for t in tags] == Y.sum(axis=0).tolist()
    assert [vocabulary.index(f"TAG {t}") for t in tags] == list(range(len(tags)))
    dropped = {normalize_tag(name): n for name, n in vocabulary.dropped_.items()}
    assert dropped == {f"tag {t}": n for t, n in counts.items() if 0 < n < min_count}
    assert vocabulary.unknown_ == {}


def test_rows_can_be_any_collection_and_come_from_a_generator():
    rows = (row for row in (("a", "b"), {"b"}, np.array(["a"]), iter(["b"]), None))
    Y = Vocabulary().fit_transform(rows)
    np.testing.assert_array_equal(Y.toarray(), [[1, 1], [0, 1], [1, 0], [0, 1], [0, 0]])


def test_arrays_of_several_tags_are_lists_of_them():
    rows = [np.array(["A", "b"]), None, np.array([])]
    vocabulary = Vocabulary().fit(rows)
    assert vocabulary.names_ == ["A", "b"]
    np.testing.assert_array_equal(vocabulary.transform(rows).toarray(), [[1, 1], [0, 0], [0, 0]])


def test_no_images_and_no_tags():
    for lists in ([], [None, []], [["", "  "]]):
        vocabulary = Vocabulary()
        assert vocabulary.fit_transform(lists).shape == (len(lists), 0)
        assert vocabulary.names_ == []


# --- unknown, dropped ---


def test_unknown_tags_are_counted_by_image_and_dropped_ones_are_not_unknown():
    vocabulary = Vocabulary(min_count=2).fit([["a", "rare"], ["a"]])
    assert vocabulary.dropped_ == {"rare": 1}
    Y = vocabulary.transform([["A", "New", "new"], ["NEW", "rare"], ["other"]])
    np.testing.assert_array_equal(Y.toarray(), [[1], [0], [0]])
    assert vocabulary.unknown_ == {"New": 2, "other": 1}


def test_index_helps_with_a_name_that_is_not_there():
    vocabulary = Vocabulary(min_count=2).fit([["Bicycle", "rare"], ["bicycle", "motorcycle"]] * 2)
    assert vocabulary.index(" BICYCLE ") == 0
    with pytest.raises(InvalidInput, match=r"'bycicle' is not .* of 3 tags\. Similar tags: 'Bicyc"):
        vocabulary.index("bycicle")
    for name in ("xyz", " "):
        with pytest.raises(InvalidInput, match="No tag is similar"):
            vocabulary.index(name)
    dropping = Vocabulary(min_count=2).fit([["a", "b"], ["a"]])
    with pytest.raises(InvalidInput, match=r"'b' was dropped: it is on 1 image, fewer than"):
        dropping.index("b")


# --- hierarchies ---


def test_a_child_implies_its_parents():
    lists = [["Animal|Dog|Poodle"], ["animal|cat"], ["animal"], ["Dog"]]
    vocabulary = Vocabulary(separator="|")
    Y = vocabulary.fit_transform(lists)
    names = ["animal", "animal|cat", "Animal|Dog", "Animal|Dog|Poodle", "Dog"]
    assert vocabulary.names_ == names
    expected = [[1, 0, 1, 1, 0], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    np.testing.assert_array_equal(Y.toarray(), expected)
    alone = Vocabulary(separator="|", imply_parents=False).fit(lists)
    assert alone.names_ == ["animal", "animal|cat", "Animal|Dog|Poodle", "Dog"]
    assert alone.counts_.tolist() == [1, 1, 1, 1]


def test_a_separator_is_an_option():
    lists = [["animal/dog"], ["Animal / Dog"], ["/animal//dog/"]]
    vocabulary = Vocabulary(separator="/", imply_parents=False).fit(lists)
    assert (vocabulary.names_, vocabulary.counts_.tolist()) == (["animal/dog"], [3])
    assert len(Vocabulary().fit(lists).names_) == 3
    for separator in ("", " ", 1):
        with pytest.raises(InvalidInput, match="separator must be"):
            Vocabulary(separator=separator).fit(lists)


# --- bad input ---


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([["a"], ["b", 3]], r"Row 1 contains 3 \(int\); a tag is a text"),
        ([[None]], r"Row 0 contains None \(NoneType\)"),
        ([["a"], "beach"], "Row 1 is 'beach'; expected a list of tags"),
        ([["a"], float("nan")], "Row 1 is nan; expected a list"),
        ([{"a": 1}], "Row 0 is {'a': 1}"),
        ("beach", "one list of tags per image; found str"),
        ({"a.jpg": ["x"]}, "found dict"),
        (None, "found NoneType"),
    ],
)
def test_bad_lists_are_named_and_leave_the_vocabulary_as_it_was(lists, message):
    vocabulary = Vocabulary().fit([["x"]])
    for method in (vocabulary.fit, vocabulary.transform):
        with pytest.raises(InvalidInput, match=message):
            method(lists)
    assert (vocabulary.names_, vocabulary.counts_.tolist()) == (["x"], [1])


def test_parameters_and_order_of_calls():
    for min_count in (0, 1.5, "2"):
        with pytest.raises(InvalidInput, match="min_count must be a whole number from 1"):
            Vocabulary(min_count=min_count).fit([])
    for call in (
        lambda v: v.names_,
        lambda v: v.counts_,
        lambda v: v.transform([]),
        lambda v: v.index("a"),
    ):
        with pytest.raises(NotFittedError):
            call(Vocabulary())


def test_learned_attributes_end_in_an_underscore():
    fitted = Vocabulary().fit([["a"]])
    public = {name for name in dir(fitted) if not name.startswith("_")}
    learned = {name for name in public if not callable(getattr(fitted, name))}
    assert {name for name in learned if not name.endswith("_")} == set(fitted.get_params())


# --- storing ---


def test_a_stored_vocabulary_is_the_same(tmp_path):
    vocabulary = Vocabulary(min_count=2, separator="|", merge_levels=True)
    lists = [["$array", "Ärger"], ["$array", "ärger"], ["a|B", "$class"], ["a|b"], ["rare", "b"]]
    vocabulary.fit(lists).transform([["$items"]])
    again = load(save(vocabulary, tmp_path / "model"))
    assert again.get_params() == vocabulary.get_params()
    assert again.names_ == vocabulary.names_ == ["$array", "a", "a|B", "Ärger"]
    assert again.unknown_ == {"$items": 1}
    assert again.dropped_ == vocabulary.dropped_ == {"$class": 1, "rare": 1}
    assert (again.transform(lists) != vocabulary.transform(lists)).nnz == 0
    card = (tmp_path / "model" / "README.md").read_text()
    assert "4 tags, learned from 5 images." in card
    assert "2 tags were dropped, each on fewer than 2 images: $class, rare." in card


@pytest.mark.parametrize("copy", [clone, Vocabulary.unfitted])
def test_a_copy_has_the_parameters_and_is_not_fitted(copy):
    fresh = copy(Vocabulary(min_count=3).fit([]))
    assert fresh.min_count == 3
    with pytest.raises(NotFittedError):
        fresh.names_  # noqa: B018


def test_parameters_are_shown_and_set_by_name():
    vocabulary = Vocabulary(min_count=2, separator="|").fit([["a"]])
    assert repr(vocabulary) == "Vocabulary(min_count=2, separator='|')"
    annotator = FeatureAnnotator(vocabulary=Vocabulary()).set_params(vocabulary__min_count=5)
    assert annotator.vocabulary.min_count == 5
    with pytest.raises(InvalidInput, match="'colour'"):
        vocabulary.set_params(colour="red")
