"""Renamed, merged and forgotten tags: each edit is a run that undo reverts."""

import os
import sys

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters
from tagkin.errors import InvalidInput

from .photographs import check_invariants, found_tags
from .suggested import decisions, offer, open_suggestions

EDITS = [
    ("rename", ["beach"], "strand"),
    ("rename", ["beach"], "place|beach"),
    ("merge", ["beach", "dog"], "sea"),
    ("merge", ["holiday"], "journey"),
    ("forget", ["beach", "dog"], None),
]


def known(catalogue: Catalogue) -> dict[str, object]:
    """Everything that an edit of tags may change, by names."""
    tags = (
        "SELECT name, same_as, forgotten, quality FROM tags WHERE same_as IS NOT NULL "
        "OR forgotten OR n_found + n_accepted + n_rejected + n_suggested ORDER BY name"
    )
    doubts = "SELECT content, t.name, kind FROM doubts d JOIN tags t ON t.id = d.tag ORDER BY 1, 2"
    return {
        "tags": catalogue.database.rows(tags),
        "found": found_tags(catalogue),
        "suggestions": open_suggestions(catalogue),
        "doubts": catalogue.database.rows(doubts),
        "decisions": decisions(catalogue),
        "evidence": catalogue.database.rows("SELECT * FROM suggestions ORDER BY 1, 2"),
    }


@pytest.fixture
def filled(catalogue: Catalogue) -> Catalogue:
    """With suggestions, decisions and doubts about the tags that are edited."""
    run = offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["2024/d.jpg"], tags=["beach"]))
    catalogue.decisions.decide(REJECTED, Filters(photographs=["a.jpg"], tags=["dog"]))
    catalogue.decisions.decide(REJECTED, Filters(photographs=["2024/d.jpg"], tags=["dog"]))
    with catalogue.database.transaction():
        for name, kind in (("dog", "missing"), ("beach", "wrong"), ("sea", "missing")):
            catalogue.database.execute(
                "INSERT INTO doubts SELECT p.content, t.id, ?, ?, 0.8, x'' FROM photographs p, "
                "tags t WHERE p.path = 'b.jpg' AND t.name = ?",
                (run, kind, name),
            )
    return catalogue


@pytest.mark.parametrize(("what", "names", "into"), EDITS)
def test_undo_and_redo(filled: Catalogue, what: str, names: list[str], into: str | None) -> None:
    before = known(filled)
    changed = filled.tags.change(what, names, into)
    after = known(filled)
    assert after != before
    undone = filled.undo()
    assert undone.undoes.what == f"tags {what}"
    assert set(names) <= set(undone.edited)
    assert known(filled) == before
    check_invariants(filled)
    redone = filled.decisions.redo_last()
    assert redone.run is not None
    assert known(filled) == after
    check_invariants(filled)
    filled.undo()
    assert known(filled) == before
    assert filled.runs.get(changed.run).undone_by is not None
    with pytest.raises(InvalidInput, match="undone already"):
        filled.undo(changed.run)
    check_invariants(filled)


def test_the_history_goes_back_step_by_step(filled: Catalogue) -> None:
    states = [known(filled)]
    for what, names, into in [EDITS[0], ("merge", ["strand"], "sea"), ("forget", ["sea"], None)]:
        filled.tags.change(what, names, into)
        states.append(known(filled))
    for state in reversed(states[:-1]):
        assert filled.decisions.undo_last().run is not None
        assert known(filled) == state
        check_invariants(filled)
    assert filled.undo().undoes.what == "reject"  # and on to what came before


def test_later_decisions_stay_where_they_were_made(filled: Catalogue) -> None:
    merged = filled.tags.change("merge", ["beach"], "sea")
    filled.decisions.decide(REJECTED, Filters(photographs=["2024/d.jpg"], tags=["sea"]))
    filled.decisions.decide(ACCEPTED, Filters(photographs=["2024/c.jpg"], tags=["sea"]))
    filled.undo(merged.run)
    made = decisions(filled)
    assert made["2024/d.jpg", "sea"] == REJECTED
    assert made["2024/c.jpg", "sea"] == ACCEPTED
    assert set(found_tags(filled)["b.jpg"]) == {"beach"}
    check_invariants(filled)


def test_a_file_that_changed_since_is_read_again(filled: Catalogue, folder, rescan) -> None:
    merged = filled.tags.change("merge", ["beach"], "sea")
    folder.tag("b.jpg", ["beach", "pier"])
    rescan()
    assert set(found_tags(filled)["b.jpg"]) == {"sea", "pier"}
    filled.undo(merged.run)
    rescan()
    assert set(found_tags(filled)["b.jpg"]) == {"beach", "pier"}
    check_invariants(filled)


def test_a_tag_that_left_a_file_since_does_not_return_with_its_name(
    catalogue: Catalogue, rescan
) -> None:
    """A write that was undone after a rename can be written again when that is undone, too."""
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["2024/d.jpg"], tags=["beach"]))
    run = catalogue.write().run
    renamed = catalogue.tags.change("rename", ["beach"], "strand").run
    catalogue.undo(run)
    catalogue.undo(renamed)
    before = found_tags(catalogue)
    assert "2024/d.jpg" not in before
    assert set(before["b.jpg"]) == {"beach"}
    assert (catalogue.write().n_tags, catalogue.write().n_tags) == (1, 0)
    rescan()
    assert set(found_tags(catalogue)["2024/d.jpg"]) == {"beach"}
    check_invariants(catalogue)


@pytest.mark.skipif(sys.platform != "linux", reason="file names are Unicode on this system")
def test_names_of_files_need_not_be_text(catalogue: Catalogue, folder, rescan) -> None:
    name = os.fsdecode(b"caf\xe9.jpg")
    folder.put(name, "other", ["beach"])
    rescan()
    before = known(catalogue)
    catalogue.tags.change("merge", ["beach"], "sea")
    assert found_tags(catalogue)[name] == {"sea": [["beach", f"{name}.xmp"]]}
    catalogue.undo()
    assert known(catalogue) == before
    catalogue.decisions.redo_last()
    catalogue.undo()
    assert known(catalogue) == before


def test_a_forgotten_tag_stays_on_photographs(filled: Catalogue) -> None:
    filled.tags.change("forget", ["beach"])
    assert all("beach" not in tags for tags in open_suggestions(filled).values())
    offer(filled, {"2024/c.jpg": {"beach": 0.9, "sea": 0.4}})
    assert open_suggestions(filled)["2024/c.jpg"] == {"sea": 0.4}
    assert not [photo for photo in filled.photographs.with_tags() if "beach" in photo.tags]
    counts = {tag.name: tag for tag in filled.tags.list_all()}
    assert (counts["beach"].is_forgotten, counts["beach"].n_found) == (True, 2)
    assert "beach" in [name for _, name in filled.tags.complete("bea")]  # people may use it
    run = filled.decisions.decide(ACCEPTED, Filters(photographs=["a.jpg"], tags=["holiday"])).run
    filled.tags.change("forget", ["holiday"])
    filled.undo(run)
    assert "holiday" not in open_suggestions(filled).get("a.jpg", {})  # not by undo either
    filled.tags.change("rename", ["beach"], "strand")
    offer(filled, {"2024/c.jpg": {"strand": 0.9}})
    assert open_suggestions(filled).get("2024/c.jpg") is None  # it is forgotten still
    filled.tags.change("restore", ["strand"])
    offer(filled, {"2024/c.jpg": {"strand": 0.9}})
    assert open_suggestions(filled)["2024/c.jpg"] == {"strand": 0.9}
    check_invariants(filled)


def test_a_name_is_free_again_after_an_undo(filled: Catalogue) -> None:
    for _ in range(2):
        filled.tags.change("rename", ["beach"], "strand")
        filled.undo()
    assert set(found_tags(filled)["b.jpg"]) == {"beach"}
    check_invariants(filled)


def test_a_spelling_whose_edit_was_undone_means_the_tag(filled: Catalogue) -> None:
    filled.tags.change("rename", ["beach"], "Beach")
    filled.undo()
    assert filled.tags.find(["Beach"]) == filled.tags.find(["beach"])
    filled.decisions.decide(REJECTED, Filters(photographs=["2024/c.jpg"], tags=["Beach"]))
    assert decisions(filled)["2024/c.jpg", "beach"] == REJECTED
    assert filled.tags.change("forget", ["Beach"]).tags == ["beach"]


def test_an_undone_name_of_a_forgotten_tag_is_not_forgotten(filled: Catalogue) -> None:
    filled.tags.change("forget", ["beach"])
    before = known(filled)
    run = filled.tags.change("rename", ["beach"], "strand").run
    after = known(filled)
    undo = filled.undo(run).run
    assert known(filled) == before
    filled.undo(undo)
    assert known(filled) == after
    check_invariants(filled)


def test_undo_suggests_only_what_is_still_open(filled: Catalogue) -> None:
    run = filled.tags.change("forget", ["sea"]).run
    filled.decisions.decide(ACCEPTED, Filters(photographs=["b.jpg"], tags=["sea"]))
    filled.completeness.finish_photographs(
        [filled.database.value("SELECT content FROM photographs WHERE path = '2024/d.jpg'")]
    )
    filled.undo(run)
    assert all("sea" not in tags for tags in open_suggestions(filled).values())
    check_invariants(filled)


def test_an_undone_name_is_not_suggested(filled: Catalogue) -> None:
    """Not even if the model was trained since, and suggested it."""
    filled.tags.change("rename", ["holiday"], "journey")
    run = offer(filled, {"b.jpg": {"journey": 0.8}})
    with filled.database.transaction():
        filled.database.execute(
            "INSERT INTO doubts SELECT p.content, t.id, ?, 'missing', 0.8, x'' FROM photographs p, "
            "tags t WHERE p.path = 'a.jpg' AND t.name = 'journey'",
            (run,),
        )
    before = known(filled)
    undo = filled.decisions.undo_last().run
    assert all("journey" not in tags for tags in open_suggestions(filled).values())
    assert [doubt.tag for doubt in filled.doubts.list_open()].count("journey") == 0
    assert open_suggestions(filled)["a.jpg"]["holiday"] == 0.95
    check_invariants(filled)
    filled.undo(undo)
    assert known(filled) == before
    check_invariants(filled)


def test_files_that_have_both_tags_are_asked_about_neither(filled: Catalogue) -> None:
    assert open_suggestions(filled)["b.jpg"]["sea"] == 0.9
    filled.tags.change("merge", ["beach"], "sea")  # b.jpg has beach
    assert "sea" not in open_suggestions(filled)["b.jpg"]
    assert [doubt.tag for doubt in filled.doubts.list_open("missing")] == ["dog"]


def test_a_redo_takes_nothing_from_a_new_tag(filled: Catalogue) -> None:
    filled.tags.change("rename", ["beach"], "strand")
    undo = filled.undo().run
    filled.decisions.decide(ACCEPTED, Filters(photographs=["a.jpg"], tags=["pier"]))
    filled.undo(undo)
    assert decisions(filled)["a.jpg", "pier"] == ACCEPTED
    assert set(found_tags(filled)["b.jpg"]) == {"strand"}
    check_invariants(filled)
