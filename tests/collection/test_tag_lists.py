"""Lists of tags that several programs write in part, merged three ways."""

import itertools

import pytest

from tagkin.collection.tag_lists import (
    IPTC,
    WINDOWS,
    Removal,
    Seen,
    describe_lists,
    is_in_step,
    merge_lists,
    tags_to_drop,
)

HS, TL, DC = "lr:hierarchicalSubject", "digiKam:TagsList", "dc:subject"
SETS = "mediapro:CatalogSets"
SIDECAR = ".jpg.xmp"


def beside(**lists):
    """The lists of a sidecar: hs, tl and dc."""
    return {SIDECAR: {{"hs": HS, "tl": TL, "dc": DC}[name]: w for name, w in lists.items()}}


def tags(*arguments, **options):
    return sorted(merge_lists(*arguments, **options).tags)


def scanned(*states):
    """The result of scans of one state after another."""
    merged = merge_lists(states[0])
    for before, now in itertools.pairwise(states):
        merged = merge_lists(now, Seen(before, merged.stale))
    return merged


# --- first contact ---


def test_parents_that_repeat_levels_are_no_tags():
    darktable = beside(hs=["animal|dog", "sea"], dc=["animal", "dog", "sea"])
    assert tags(darktable) == ["animal|dog", "sea"]


def test_a_parent_that_a_list_with_levels_names_is_a_tag():
    assert tags(beside(hs=["animal", "animal|dog"], dc=["animal", "dog"])) == [
        "animal",
        "animal|dog",
    ]


@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        # as `Field.read` returns them: music/AC|DC of Immich, then music/AC/DC of a program
        (beside(hs=["music|AC/DC"], tl=["music|AC/DC"]), ["music|AC/DC"]),
        (beside(hs=["music|AC/DC"], tl=["music|AC|DC"]), ["music|AC/DC"]),
        (beside(dc=["AC/DC", "music"], tl=["music|AC|DC"]), ["music|AC/DC"]),
        (beside(dc=["AC/DC"], tl=["AC|DC"]), ["AC/DC"]),
        (beside(tl=["AC|DC"]), ["AC|DC"]),
        (beside(hs=["places|Paris"], dc=["places/Paris"]), ["places|Paris"]),
        (beside(hs=["places|Paris"], tl=["places|Paris"], dc=["Paris"]), ["places|Paris"]),
    ],
)
def test_a_slash_in_a_name_is_known_if_another_list_spells_it(lists, expected):
    assert tags(lists) == expected


def test_a_slash_and_a_level_are_two_tags_if_a_list_with_levels_has_both():
    both = ["a|b", "a/b"]
    assert tags(beside(hs=both, tl=both, dc=["b", "a/b"])) == sorted(both)


def test_words_that_iptc_cuts_and_internal_tags():
    long = "ö" * 40
    inside = {"": {DC: [long], IPTC: [long[:32], "sea"], WINDOWS: ["sun"]}}
    assert tags(inside) == sorted(["sea", "sun", long])
    assert tags(beside(hs=["darktable|style|x"], dc=["darktable", "style", "x", "a"])) == ["a"]


# --- changes by others ---

ALL = beside(hs=["animal|dog", "sea"], tl=["animal|dog", "sea"], dc=["dog", "sea"])


def test_a_list_that_did_not_change_says_nothing_new():
    now = beside(hs=["animal|dog", "sea"], tl=["sea"], dc=["dog", "sea"])
    merged = merge_lists(now, Seen(ALL))
    assert list(merged.tags) == ["sea"]
    assert merged.removed == [Removal("animal|dog", [(SIDECAR, TL)])]
    assert merged.stale == ["animal|dog"]
    again = merge_lists(now, Seen(now, merged.stale))
    assert (list(again.tags), again.stale, again.removed) == (["sea"], ["animal|dog"], [])


def test_what_is_left_of_a_removed_tag_does_not_become_a_tag():
    """darktable's parents were part of the hierarchy that is gone."""
    first = beside(tl=["animal|dog", "sea"], dc=["animal", "dog", "sea"])
    merged = scanned(first, beside(tl=["sea"], dc=["animal", "dog", "sea"]))
    assert list(merged.tags) == ["sea"]
    assert set(merged.stale) == {"animal", "dog"}


def test_a_tag_that_is_added_again_is_back():
    without = beside(hs=["animal|dog", "sea"], tl=["sea"], dc=["dog", "sea"])
    merged = scanned(ALL, without, ALL)
    assert sorted(merged.tags) == ["animal|dog", "sea"]
    assert merged.added == {"animal|dog"}
    assert merged.stale == []


def test_a_program_that_copies_a_stale_list_adds_nothing():
    """digiKam reads its own list and writes all of them."""
    lightroom = beside(hs=["sea"], tl=["animal|dog", "sea"], dc=["sea"])
    words = ["animal|dog", "sea", "sun"]
    digikam = beside(hs=words, tl=words, dc=["dog", "sea", "sun"])
    merged = scanned(ALL, lightroom, digikam)
    assert sorted(merged.tags) == ["sea", "sun"]
    # the same with what another program added: digiKam did not know it, and nobody removed it
    merged = scanned(
        ALL, beside(hs=[*words, "new"], tl=words, dc=["new"]), beside(hs=["sea"], tl=["sea"])
    )
    assert {removal.tag for removal in merged.removed} == {"animal|dog", "sun"}
    # without a new tag in the list that it read, the two look the same
    assert sorted(scanned(ALL, lightroom, ALL).tags) == ["animal|dog", "sea"]


def test_a_new_list_is_compared_with_what_its_program_read():
    """Immich reads Lightroom's list, and writes its own without a tag."""
    first = beside(hs=["animal|dog", "sea"], dc=["dog", "sea"])
    now = {SIDECAR: {**first[SIDECAR], TL: ["sea", "sun"]}}
    merged = merge_lists(now, Seen(first))
    assert sorted(merged.tags) == ["sea", "sun"]
    assert merged.removed == [Removal("animal|dog", [(SIDECAR, TL)])]
    inside = {"": {IPTC: ["dog", "sea"]}}
    assert tags({**inside, SIDECAR: {TL: ["sea"]}}, Seen(inside)) == ["sea"]
    # a tool that adds a keyword to a new sidecar has read nothing
    merged = merge_lists({**inside, SIDECAR: {DC: ["sun"]}}, Seen(inside))
    assert (sorted(merged.tags), merged.removed) == (["dog", "sea", "sun"], [])
    # and a program that writes into photographs reads no sidecar
    merged = merge_lists({"": {DC: ["sea"]}, **ALL}, Seen({"": {}, **ALL}))
    assert merged.removed == []


def test_a_list_that_vanishes():
    dropped = beside(hs=["animal|dog", "sea"], dc=["dog", "sea"])
    assert tags(dropped, Seen(ALL)) == ["animal|dog", "sea"]
    # its last tag was removed: programs drop empty lists
    single = beside(hs=["dog"], tl=["dog"], dc=["dog"])
    merged = merge_lists(beside(hs=["dog"], dc=["dog"]), Seen(single))
    assert (merged.tags, merged.removed) == ({}, [Removal("dog", [(SIDECAR, TL)])])
    # nothing else has them
    merged = merge_lists({SIDECAR: {}}, Seen(beside(dc=["a", "b"])))
    assert [removal.tag for removal in merged.removed] == ["a", "b"]
    # the levels are gone, the name stays
    first = beside(hs=["animal|dog", "sea"], dc=["animal", "dog", "sea"])
    assert tags(beside(dc=["animal", "dog", "sea"]), Seen(first)) == ["dog", "sea"]


def test_a_file_that_is_gone_removes_nothing():
    merged = merge_lists({"": {IPTC: ["sea"]}}, Seen({"": {IPTC: ["sea"]}, **ALL}))
    assert (list(merged.tags), merged.removed) == (["sea"], [])


def test_a_removed_name_removes_all_tags_that_end_in_it():
    first = beside(hs=["animal|dog", "toy|dog", "sea"], dc=["dog", "sea"])
    now = beside(hs=["animal|dog", "toy|dog", "sea"], dc=["sea"])
    assert tags(now, Seen(first)) == ["sea"]
    # unless the program that wrote has the tag with its levels
    now = beside(hs=["animal|dog", "toy|dog"], dc=["toy"])
    assert tags(now, Seen(first)) == ["animal|dog", "toy|dog"]


def test_renames():
    renamed = beside(hs=["animal|dog", "sea"], tl=["animal|hound", "sea"], dc=["dog", "sea"])
    merged = merge_lists(renamed, Seen(ALL))
    assert sorted(merged.tags) == ["animal|hound", "sea"]
    assert [removal.tag for removal in merged.removed] == ["animal|dog"]
    to_root = beside(hs=["animal|dog", "sea"], tl=["dog", "sea"], dc=["dog", "sea"])
    assert tags(to_root, Seen(ALL)) == ["dog", "sea"]
    # a tag that moves below a parent is not removed
    flat = beside(hs=["dog"], dc=["dog"])
    merged = merge_lists(beside(hs=["animal|dog"], dc=["dog"]), Seen(flat))
    assert (list(merged.tags), merged.removed) == (["animal|dog"], [])
    # another spelling is the same tag
    slash = beside(hs=["music|AC/DC"], tl=["music|AC/DC"])
    merged = merge_lists(beside(hs=["music|AC/DC"], tl=["music|AC|DC"]), Seen(slash))
    assert (list(merged.tags), merged.removed, merged.added) == (["music|AC/DC"], [], set())


def test_own_changes_and_files_of_others():
    now = beside(hs=["sea"], tl=["sea"], dc=["sea"])
    merged = merge_lists(now, Seen(ALL), is_ours=True)
    assert (list(merged.tags), merged.removed) == (["sea"], [])
    # an undo may leave the tag in another list
    now = beside(hs=["sea"], tl=["animal|dog", "sea"], dc=["sea"])
    assert tags(now, Seen(ALL), is_ours=True) == ["animal|dog", "sea"]
    now = beside(hs=["sea"], tl=["sea"], dc=["sea"])
    merged = merge_lists(now, Seen(ALL), is_same=False)
    assert (list(merged.tags), merged.removed) == (["sea"], [])


# --- in step ---


def test_lists_in_step():
    assert is_in_step(ALL, merge_lists(ALL))
    darktable = beside(hs=["animal|dog"], dc=["animal", "dog"])
    assert is_in_step(darktable, merge_lists(darktable))
    for lists in ({"tl": ["sea"]}, {"dc": ["sea"]}, {"hs": ["sea"], "tl": ["sun"], "dc": ["sea"]}):
        assert not is_in_step(beside(**lists), merge_lists(beside(**lists)))
    now = beside(hs=["animal|dog", "sea"], tl=["sea"], dc=["dog", "sea"])
    merged = merge_lists(now, Seen(ALL))
    assert not is_in_step(now, merged)
    assert tags_to_drop(now, merged) == {SIDECAR: ["animal|dog"]}
    # a list inside the photograph is not a sidecar's matter
    inside = {"": {IPTC: ["dog", "sea"]}, **beside(hs=["sea"], dc=["sea"])}
    before = {"": {IPTC: ["dog", "sea"]}, **beside(hs=["dog", "sea"], dc=["dog", "sea"])}
    merged = merge_lists(inside, Seen(before))
    assert list(merged.tags) == ["sea"]
    assert is_in_step(inside, merged)
    assert tags_to_drop(inside, merged) == {"": ["dog"]}


def test_lists_in_words():
    assert describe_lists([TL]) == "digiKam:TagsList, the list of digiKam and Immich"
    assert describe_lists([HS, DC, HS]) == "lr:hierarchicalSubject and dc:subject"
    assert describe_lists([HS, TL, DC]) == "lr:hierarchicalSubject, digiKam:TagsList and dc:subject"
    assert describe_lists([SETS]) == SETS


# --- case ---


def test_words_that_differ_only_in_case_are_one_tag():
    assert tags(beside(hs=["Animal|Dog"], tl=["animal|dog"], dc=["DOG"])) == ["Animal|Dog"]
    assert tags(beside(tl=["sea"], dc=["Sea", "SEA"])) == ["SEA"]
    lists = beside(hs=["Sea"], tl=["sea"], dc=["SEA"])
    assert is_in_step(lists, merge_lists(lists))


def test_a_tag_that_is_removed_in_one_case_is_removed_in_all():
    before = beside(hs=["Beach"], tl=["beach"], dc=["Beach"])
    merged = scanned(before, now := beside(hs=["Beach"], tl=[], dc=["Beach"]))
    assert (merged.tags, merged.stale) == ({}, ["Beach"])
    assert [removal.tag for removal in merged.removed] == ["Beach"]
    assert tags_to_drop(now, merged) == {SIDECAR: ["Beach"]}


def test_another_case_is_no_change():
    before = beside(hs=["Beach"], tl=["beach"], dc=["Beach"])
    merged = scanned(before, beside(hs=["Beach"], tl=["BEACH"], dc=["Beach"]))
    assert (list(merged.tags), merged.removed, merged.added) == (["Beach"], [], set())


def test_a_list_that_keeps_a_tag_in_another_case_was_not_overwritten():
    before = beside(hs=["beach", "sea", "sun"], tl=["beach", "sea", "sun"])
    merged = scanned(before, beside(hs=["beach", "sea", "sun"], tl=["BEACH"]))
    assert [removal.tag for removal in merged.removed] == ["sea", "sun"]
    assert (list(merged.tags), merged.overwritten) == (["beach"], [])


def test_a_program_that_changes_case_only_copies_other_tags():
    """It does not know that one of them was removed elsewhere."""
    merged = scanned(
        beside(hs=["dog", "sun"], tl=["dog", "sun"], dc=["dog", "sun"]),
        beside(hs=["sun"], tl=["dog", "sun"], dc=["sun"]),
        beside(hs=["Sun", "dog"], tl=["Sun", "dog"], dc=["Sun", "dog"]),
    )
    assert list(merged.tags) == ["Sun"]
