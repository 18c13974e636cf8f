"""Suggestions are accepted, rejected and taken back; filters compose; nothing is asked twice."""

import itertools
import os
import sys

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Filters
from tagkin.errors import InvalidInput

from .photographs import check_invariants, dry_copy, keep_decisions, select
from .suggested import OFFERED, content, decisions, new_suggestion, offer, open_suggestions

needs_any_name = pytest.mark.skipif(
    sys.platform in ("darwin", "win32"), reason="file names are Unicode on this system"
)


def test_what_a_photograph_carries_is_not_suggested(catalogue):
    offer(catalogue, {"a.jpg": {"Beach": 0.9, "new": 0.5}})
    assert open_suggestions(catalogue) == {"a.jpg": {"new": 0.5}}
    check_invariants(catalogue)


def test_a_later_run_takes_the_place_of_an_earlier_one(catalogue):
    offer(catalogue)
    later = offer(catalogue, {"b.jpg": {"sea": 0.8}})
    assert open_suggestions(catalogue) == OFFERED | {"b.jpg": {"sea": pytest.approx(0.8)}}
    assert catalogue.database.value("SELECT count(*) FROM suggestions WHERE run = ?", (later,)) == 1
    check_invariants(catalogue)


FILTERS = {
    "tags": (["beach"], lambda path, tag, p: tag == "beach"),
    "at_least": (0.6, lambda path, tag, p: p >= 0.6),
    "below": (0.93, lambda path, tag, p: p < 0.93),
    "folder": ("2024/", lambda path, tag, p: path.startswith("2024/")),
    "photographs": (["a.jpg", "2024/d.jpg"], lambda path, tag, p: path in ("a.jpg", "2024/d.jpg")),
}


@pytest.mark.parametrize("n", range(len(FILTERS) + 1))
def test_filters_compose(catalogue, n):
    """Every combination, against a plain loop."""
    offer(catalogue)
    for names in itertools.combinations(FILTERS, n):
        filters = Filters(**{name: FILTERS[name][0] for name in names})
        expected = {
            (path, tag)
            for path, tags in OFFERED.items()
            for tag, p in tags.items()
            if all(FILTERS[name][1](path, tag, p) for name in names)
        }
        with dry_copy(catalogue) as copy:
            decided = copy.decisions.decide(ACCEPTED, filters)
        assert {(decision.path, decision.tag) for decision in decided.each} == expected, names
    assert not decisions(catalogue)


def test_accepted_and_rejected_ones_are_decided_on(catalogue):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"], at_least=0.9))
    catalogue.decisions.decide(REJECTED, Filters(tags=["dog"]))
    assert decisions(catalogue) == {
        ("2024/d.jpg", "beach"): 1,
        ("a.jpg", "dog"): -1,
        ("2024/d.jpg", "dog"): -1,
    }
    left = open_suggestions(catalogue)
    assert left["2024/c.jpg"] == {"beach": 0.55}
    assert "dog" not in left["a.jpg"]
    check_invariants(catalogue)
    offer(catalogue)  # what was decided on is never suggested again
    assert open_suggestions(catalogue) == left
    names = {content(catalogue, "a.jpg"): ["dog"], content(catalogue, "2024/d.jpg"): ["dog"]}
    contents = catalogue.photographs.with_tags()
    assert {content.content: content.rejected for content in contents if content.rejected} == names


def test_nothing_to_decide_is_no_run(catalogue):
    n = len(catalogue.runs.history())
    assert catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.99)).run is None
    assert len(catalogue.runs.history()) == n


def test_tags_that_nobody_suggested(catalogue):
    offer(catalogue)
    named = Filters(photographs=["2024/d.jpg"], tags=["sunset", "beach"])
    assert len(catalogue.decisions.decide(ACCEPTED, named)) == 2
    assert decisions(catalogue) == {("2024/d.jpg", "sunset"): 1, ("2024/d.jpg", "beach"): 1}
    assert len(catalogue.decisions.decide(ACCEPTED, named)) == 0  # it is so already
    # what stands in a file is accepted by whoever wrote it, and can be rejected
    in_file = Filters(photographs=["a.jpg"], tags=["sea"])
    assert len(catalogue.decisions.decide(ACCEPTED, in_file)) == 0
    assert len(catalogue.decisions.decide(REJECTED, in_file)) == 1
    assert len(catalogue.decisions.decide(ACCEPTED, in_file)) == 1  # after all
    check_invariants(catalogue)


def test_a_tag_that_is_typed_is_spelled_as_it_is_known(catalogue):
    offer(catalogue)
    for typed in ("SEA", "  sea ", "| sea |"):
        assert (
            len(catalogue.decisions.decide(ACCEPTED, Filters(photographs=["a.jpg"], tags=[typed])))
            == 0
        )
    catalogue.decisions.decide(
        ACCEPTED, Filters(photographs=["b.jpg"], tags=["Sea"])
    )  # as suggested
    new = "place |  Z\u0075\u0308rich"
    catalogue.decisions.decide(
        ACCEPTED, Filters(photographs=["2024/c.jpg"], tags=[new, new.upper()])
    )
    assert decisions(catalogue) == {("b.jpg", "sea"): 1, ("2024/c.jpg", "place|Z\u00fcrich"): 1}
    check_invariants(catalogue)


@pytest.mark.parametrize(
    "typed", ["", "  ", "||", "bell\a", "no\uffff", "a\0b", "\ud800", "\u200b\u202e"]
)
def test_what_no_file_can_hold_is_not_accepted(catalogue, typed):
    with pytest.raises(InvalidInput, match=r"must not be blank|no file can hold"):
        catalogue.decisions.decide(ACCEPTED, Filters(photographs=["a.jpg"], tags=[typed, "dog"]))
    with pytest.raises(InvalidInput, match=r"must not be blank|no file can hold"):
        catalogue.decisions.decide_pairs([(content(catalogue, "a.jpg"), typed)])
    assert decisions(catalogue) == {}


def test_copies_are_named_beside_the_photograph_that_is_asked_for(folder, catalogue, rescan):
    folder.put("copies/d.jpg", "d")  # the same bytes as 2024/d.jpg
    rescan()
    offer(catalogue)
    filters = Filters(folder="copies", at_least=0.9)
    (decided,) = catalogue.decisions.decide(ACCEPTED, filters).each
    assert (decided.path, decided.tag) == ("copies/d.jpg", "beach")
    assert decided.copies == ["2024/d.jpg"]
    both = Filters(photographs=["2024/d.jpg", "copies/d.jpg"], tags=["own"])
    (own,) = catalogue.decisions.decide(ACCEPTED, both).each  # two files, one photograph
    assert (own.path, own.copies) == ("2024/d.jpg", ["copies/d.jpg"])
    check_invariants(catalogue)


@needs_any_name
def test_a_folder_whose_name_is_not_utf_8(folder, catalogue, rescan):
    name = os.fsdecode(b"a\xff")
    folder.put(f"{name}/e.jpg", "e")
    folder.put("a/f.jpg", "f")
    rescan()
    path = f"{name}/e.jpg"
    offer(catalogue, {"a/f.jpg": {"sea": 0.9}})
    number = catalogue.photographs.content_of(path)
    with catalogue.database.run("suggest") as run:
        catalogue.suggestions.replace(run.id, [(number, [new_suggestion("sea", 0.8, ())])])
    assert [photo.file for photo in catalogue.photographs.with_tags(folder=name)] == [
        catalogue.absolute(path)
    ]
    assert select(catalogue, folder=name) == [path]
    assert [matched for _, matched, _ in catalogue.photographs.search(name)] == [path]
    filters = Filters(folder=name)
    assert [decision.path for decision in catalogue.decisions.decide(ACCEPTED, filters).each] == [
        path
    ]
    assert [write.path for write in catalogue.writes.pending(filters)] == [path]
    (written,) = catalogue.write(filters).files
    assert written.photograph == path


def test_mistakes_are_named(catalogue):
    offer(catalogue)
    with pytest.raises(InvalidInput, match="Did you mean beach"):
        catalogue.decisions.decide(ACCEPTED, Filters(tags=["baech"]))
    with pytest.raises(InvalidInput, match="not in the catalogue"):
        catalogue.decisions.decide(ACCEPTED, Filters(photographs=["nowhere.jpg"], tags=["sea"]))
    with pytest.raises(InvalidInput, match=r"run 1 \(scan\) decided, wrote and edited nothing"):
        catalogue.undo(1)


def test_every_step_can_be_taken_back(catalogue):
    """Undo has no limit: after all steps back, everything is as it was."""
    offer(catalogue)
    states, runs = [], []
    for verdict, filters in (
        (ACCEPTED, Filters(tags=["beach"])),
        (REJECTED, Filters(photographs=["2024/d.jpg"], tags=["beach"])),  # another opinion
        (ACCEPTED, Filters(photographs=["b.jpg"], tags=["own"])),
        (REJECTED, Filters(folder="2024")),
    ):
        states.append((open_suggestions(catalogue), decisions(catalogue)))
        runs.append(catalogue.decisions.decide(verdict, filters).run)
        check_invariants(catalogue)
    for state, run in zip(reversed(states), reversed(runs), strict=True):
        assert catalogue.runs.last_undoable().id == run
        assert catalogue.decisions.undo(run).run is not None
        assert (open_suggestions(catalogue), decisions(catalogue)) == state
        check_invariants(catalogue)
    assert catalogue.runs.last_undoable() is None
    assert catalogue.runs.history()[0].undoes == runs[0]
    # and once more: what was taken back can be decided on again
    assert len(catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"]))) == 2
    check_invariants(catalogue)


def test_what_was_decided_again_later_stays(catalogue):
    offer(catalogue)
    first = catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"])).run
    catalogue.decisions.decide(REJECTED, Filters(photographs=["2024/d.jpg"], tags=["beach"]))
    taken = catalogue.decisions.undo(first)
    assert (len(taken), taken.n_kept) == (1, 1)
    assert decisions(catalogue) == {("2024/d.jpg", "beach"): -1}


def test_undoing_runs_gives_the_same_in_any_order(catalogue):
    """A run that was undone does not come back when the run that replaced it is undone."""
    offer(catalogue)
    start = open_suggestions(catalogue)
    first = catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"])).run
    second = catalogue.decisions.decide(
        REJECTED, Filters(photographs=["2024/d.jpg"], tags=["beach"])
    ).run
    both = decisions(catalogue)
    undo_first = catalogue.decisions.undo(first)
    assert (len(undo_first), undo_first.n_kept) == (1, 1)
    undo_second = catalogue.decisions.undo(second)
    assert decisions(catalogue) == {}
    assert open_suggestions(catalogue) == start
    with pytest.raises(InvalidInput, match="no decisions left"):
        catalogue.decisions.undo(first)
    check_invariants(catalogue)
    catalogue.decisions.undo(undo_first.run)
    assert decisions(catalogue)["2024/d.jpg", "beach"] == ACCEPTED
    catalogue.decisions.undo(undo_second.run)
    assert decisions(catalogue) == both
    check_invariants(catalogue)


def test_a_wholly_replaced_run_can_be_undone(catalogue):
    offer(catalogue)
    pair = Filters(photographs=["2024/d.jpg"], tags=["beach"])
    first = catalogue.decisions.decide(ACCEPTED, pair).run
    second = catalogue.decisions.decide(REJECTED, pair).run
    assert (len(catalogue.decisions.undo(first)), decisions(catalogue)) == (
        0,
        {("2024/d.jpg", "beach"): REJECTED},
    )
    catalogue.decisions.undo(second)
    assert decisions(catalogue) == {}
    assert "beach" in open_suggestions(catalogue)["2024/d.jpg"]
    check_invariants(catalogue)


def test_history_does_not_call_a_redone_run_undone(catalogue):
    offer(catalogue)
    run = catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"])).run
    undo = catalogue.decisions.undo(run).run
    assert catalogue.runs.get(run).undone_by == undo
    redo = catalogue.decisions.undo(undo).run
    assert catalogue.runs.get(run).undone_by is None
    assert catalogue.runs.get(undo).undone_by == redo
    assert catalogue.decisions.undo(run).run == catalogue.runs.get(run).undone_by


def test_redo_leaves_a_later_decision(catalogue):
    offer(catalogue)
    pair = Filters(photographs=["2024/d.jpg"], tags=["beach"])
    undone = catalogue.decisions.undo(catalogue.decisions.decide(ACCEPTED, pair).run)
    later = catalogue.decisions.decide(REJECTED, pair).run
    again = catalogue.decisions.undo(undone.run)
    assert (len(again), again.n_kept) == (0, 1)
    assert decisions(catalogue) == {("2024/d.jpg", "beach"): REJECTED}
    catalogue.decisions.undo(later)
    assert decisions(catalogue) == {("2024/d.jpg", "beach"): ACCEPTED}
    check_invariants(catalogue)


# --- decisions follow the photograph -----------------------------------------------------


def test_decisions_follow_the_content_and_stay_with_an_edited_photograph(catalogue, folder, rescan):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["holiday"]))
    catalogue.decisions.decide(REJECTED, Filters(tags=["dog"]))
    (folder.root / "a.jpg").rename(folder.root / "renamed.jpg")
    folder.put("b.jpg", "b with more light")
    assert rescan().to_confirm == ["b.jpg"]
    keep_decisions(catalogue)
    assert decisions(catalogue) == {
        ("renamed.jpg", "holiday"): 1,
        ("renamed.jpg", "dog"): -1,
        ("b.jpg", "holiday"): 1,
        ("2024/d.jpg", "dog"): -1,
    }
    (note,) = catalogue.database.row(
        "SELECT note FROM decisions WHERE content = ? AND holds", (content(catalogue, "b.jpg"),)
    )
    assert note == "with all suggestions that a filter chose"
    check_invariants(catalogue)


def test_another_photograph_at_a_path_gets_no_decisions(catalogue, folder, rescan):
    """The old one was moved away, and a new one has its name: it was not edited."""
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["holiday"]))
    (folder.root / "a.jpg").rename(folder.root / "2024/a.jpg")
    folder.put("a.jpg", "something else")
    scan = rescan()
    assert not scan.edited
    assert set(decisions(catalogue)) == {("2024/a.jpg", "holiday"), ("b.jpg", "holiday")}
    check_invariants(catalogue)


def test_deleted_photographs_keep_decisions_and_lose_suggestions(catalogue, folder, rescan):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"]))
    path = folder.root / "2024/d.jpg"
    data = path.read_bytes()
    path.unlink()
    rescan()
    assert "2024/d.jpg" not in open_suggestions(catalogue)
    check_invariants(catalogue)
    path.write_bytes(data)
    folder.age(path)
    rescan()
    assert decisions(catalogue)[("2024/d.jpg", "beach")] == 1
    check_invariants(catalogue)


def test_a_suggestion_ends_when_the_tag_turns_up_in_a_file(catalogue, folder, rescan):
    offer(catalogue)
    folder.tag("2024/d.jpg", ["SEA"])
    rescan()
    assert open_suggestions(catalogue)["2024/d.jpg"] == {"beach": 0.92, "dog": 0.2}
    check_invariants(catalogue)
