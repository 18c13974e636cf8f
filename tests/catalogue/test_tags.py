"""Tags are listed, renamed, merged, forgotten and restored; files stay as they are."""

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Filters
from tagkin.catalogue.tags import find_duplicates, find_same_meaning
from tagkin.errors import InvalidInput

from .photographs import check_invariants, found_tags
from .suggested import decisions, offer, open_suggestions


def counts(catalogue):
    return {
        tag.name: (tag.n_found, tag.n_accepted, tag.n_rejected, tag.n_suggested)
        for tag in catalogue.tags.list_all()
    }


def test_counts(catalogue):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"]))
    catalogue.decisions.decide(REJECTED, Filters(tags=["dog"]))
    assert counts(catalogue) == {
        "beach": (2, 2, 0, 0),
        "sea": (1, 0, 0, 2),
        "dog": (1, 0, 2, 0),
        "holiday": (0, 0, 0, 2),
    }
    holiday = next(tag for tag in catalogue.tags.list_all() if tag.name == "holiday")
    assert holiday.expected == pytest.approx(0.95 + 0.7)


def test_a_renamed_tag_has_its_new_name_everywhere_but_in_files(catalogue, folder, rescan):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["2024/d.jpg"], tags=["beach"]))
    catalogue.tags.change("rename", ["beach"], "strand")
    assert found_tags(catalogue)["b.jpg"] == {"strand": [["beach", "b.jpg.xmp"]]}
    assert decisions(catalogue) == {("2024/d.jpg", "strand"): 1}
    assert open_suggestions(catalogue)["2024/c.jpg"] == {"strand": 0.55}
    check_invariants(catalogue)
    folder.tag("b.jpg", ["beach", "pier"])  # read again, it is still the same tag
    rescan()
    assert set(found_tags(catalogue)["b.jpg"]) == {"strand", "pier"}
    offer(catalogue, {"2024/c.jpg": {"beach": 0.7}})  # an older model says so
    assert open_suggestions(catalogue)["2024/c.jpg"] == {"strand": 0.7}
    catalogue.tags.change("rename", ["strand"], "beach")  # and back
    assert set(found_tags(catalogue)["b.jpg"]) == {"beach", "pier"}
    check_invariants(catalogue)


def test_merged_tags_are_one(catalogue, folder, rescan):
    folder.tag("2024/d.jpg", ["dogs", "dog"])
    folder.tag("b.jpg", ["dogs"])
    rescan()
    offer(catalogue, {"a.jpg": {"dogs": 0.8, "dog": 0.3}, "2024/c.jpg": {"dogs": 0.4}})
    catalogue.decisions.decide(REJECTED, Filters(photographs=["a.jpg"], tags=["dog"]))
    merged = catalogue.tags.change("merge", ["dogs", "dog"], "dog")
    assert (merged.n_found, merged.n_suggestions) == (2, 2)
    tags = found_tags(catalogue)
    assert tags["b.jpg"] == {"dog": [["dogs", "b.jpg.xmp"]]}
    places = [["dog", "2024/d.jpg.xmp"], ["dogs", "2024/d.jpg.xmp"]]
    assert sorted(tags["2024/d.jpg"]["dog"]) == places
    # the rejection holds for both, and c.jpg carries dog already
    assert open_suggestions(catalogue) == {}
    assert decisions(catalogue) == {("a.jpg", "dog"): -1, ("b.jpg", "beach"): -1}
    assert "dogs" not in counts(catalogue)
    check_invariants(catalogue)
    catalogue.undo(merged.run)
    rescan()
    assert set(found_tags(catalogue)["b.jpg"]) == {"dogs"}
    check_invariants(catalogue)


def test_a_forgotten_tag_is_neither_learned_nor_suggested(catalogue):
    offer(catalogue)
    catalogue.tags.change("forget", ["dog"])
    assert all("dog" not in tags for tags in open_suggestions(catalogue).values())
    offer(catalogue, {"a.jpg": {"dog": 0.9}})
    assert "dog" not in open_suggestions(catalogue).get("a.jpg", {})
    assert all("dog" not in photo.tags for photo in catalogue.photographs.with_tags())
    assert found_tags(catalogue)["2024/c.jpg"]["dog"]  # it stands in the file still
    assert [tag.name for tag in catalogue.tags.list_all() if tag.is_forgotten] == ["dog"]
    catalogue.tags.change("restore", ["dog"])
    assert "dog" in counts(catalogue)
    check_invariants(catalogue)


def test_mistakes(catalogue):
    with pytest.raises(InvalidInput, match="is a tag already"):
        catalogue.tags.change("rename", ["dog"], "sea")
    with pytest.raises(InvalidInput, match="already the tag's name"):
        catalogue.tags.change("merge", ["dog"], "dog")
    with pytest.raises(InvalidInput, match="must not be blank"):
        catalogue.tags.change("rename", ["dog"], " ")
    with pytest.raises(InvalidInput, match="Not forgotten"):
        catalogue.tags.change("restore", ["dog"])


# --- near duplicates ---------------------------------------------------------------------


def test_dog_dogs_and_upper_case_are_found_and_offered():
    groups = find_duplicates({"dog": 9, "Dog": 2, "dogs": 4, "cat": 5})
    assert [(group.keep, list(group.others), group.why) for group in groups] == [
        ("dog", ["Dog"], "spelling"),
        ("dog", ["dogs", "Dog"], "plural"),
    ]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("t-shirt", "T shirt"), "spelling"),
        (("berry", "berries"), "plural"),
    ],
)
def test_what_counts_as_near(names, why):
    (group,) = find_duplicates({names[0]: 40, names[1]: 2})
    assert (group.keep, list(group.others), group.why) == (names[0], [names[1]], why)


@pytest.mark.parametrize(
    "names",
    [
        ("car", "cat"),
        ("street 12", "street 13"),
        ("flower", "forest"),
        ("a", "as"),
        ("feather", "weather"),
    ],
)
def test_what_does_not(names):
    assert not find_duplicates({names[0]: 40, names[1]: 2})


def test_names_that_mean_the_same_are_the_same_whatever_the_photographs():
    counts = {"car": 9, "automobile": 2, "feather": 8, "weather": 1}
    (group,) = find_same_meaning(counts, lambda first, second: 0)
    assert (group.keep, list(group.others), group.why) == ("car", ["automobile"], "meaning")


@pytest.mark.parametrize(("n_both", "is_same"), [(0, False), (3, False), (8, True)])
def test_other_names_need_photographs_that_have_both(n_both, is_same):
    groups = find_same_meaning({"boat": 10, "ship": 9}, lambda first, second: n_both)
    assert bool(groups) == is_same


def test_two_frequent_tags_are_no_slip():
    assert not find_duplicates({"marble": 40, "marbly": 30})
