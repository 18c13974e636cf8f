"""Writes taken back in any order, and after photographs were moved."""

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Filters
from tagkin.collection.sidecars import Convention, tags_of
from tests.catalogue.photographs import check_invariants, files, keep_decisions
from tests.catalogue.suggested import OFFERED, decisions, offer, open_suggestions
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.images.synthetic import picture, saved

# --- in any order ------------------------------------------------------------------------


def by_tag(catalogue, *tags):
    """A run for each tag: d.jpg gets both, b.jpg those besides its own."""
    return [catalogue.write(Filters(tags=[tag])).run for tag in tags]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0), (0, 2, 1), (2, 0, 1)])
def test_runs_that_wrote_to_one_file_are_taken_back_to_the_byte_in_any_order(
    accepted, folder, order
):
    before = files(folder.root)
    accepted.decisions.decide(ACCEPTED, Filters(photographs=["b.jpg", "2024/d.jpg"], tags=["dog"]))
    runs = by_tag(accepted, "sea", "dog", "beach")
    now = tags_of((folder.root / "2024/d.jpg.xmp").read_bytes())
    assert set(now) == {"sea", "dog", "beach"}
    for n in order:
        undone = accepted.undo(runs[n])
        assert not any("somebody" in file.said for file in undone.files)
        assert not undone.failures
    assert files(folder.root) == before


def test_a_run_between_others_leaves_theirs_and_says_why(accepted, folder):
    first, _ = by_tag(accepted, "sea", "beach")
    (file,) = [
        undone_file
        for undone_file in accepted.undo(first).files
        if undone_file.file == "2024/d.jpg.xmp"
    ]
    assert (file.how, "a later run wrote to it" in file.said) == ("untagged", True)
    assert tags_of((folder.root / "2024/d.jpg.xmp").read_bytes()) == ["beach"]


def test_what_somebody_wrote_between_two_runs_or_after_them_stays(accepted, folder):
    path = folder.root / "2024/d.jpg.xmp"

    def add(word):
        path.write_bytes(path.read_bytes().replace(b"<rdf:Bag>", f"<rdf:Bag>{word}".encode(), 1))

    (first,) = by_tag(accepted, "sea")
    add("<rdf:li>mine</rdf:li>")
    (second,) = by_tag(accepted, "beach")
    accepted.undo(first)
    assert set(tags_of(path.read_bytes())) == {"mine", "beach"}
    accepted.undo(second)
    assert tags_of(path.read_bytes()) == ["mine"]
    first, second = by_tag(accepted, "sea", "beach")
    add("<rdf:li>later</rdf:li>")
    (file,) = [
        undone_file
        for undone_file in accepted.undo(first).files
        if undone_file.file == "2024/d.jpg.xmp"
    ]
    assert "somebody changed it" in file.said
    accepted.undo(second)
    assert set(tags_of(path.read_bytes())) == {"mine", "later"}


def test_suggestions_are_open_again_whichever_is_taken_back_first(accepted, folder):
    before = files(folder.root)
    accept = accepted.database.value("SELECT max(id) FROM runs")
    write = accepted.write().run
    accepted.undo(accept)
    assert "beach" not in open_suggestions(accepted).get("2024/d.jpg", {})  # a file has it
    accepted.undo(write)
    assert files(folder.root) == before
    assert open_suggestions(accepted) == OFFERED
    check_invariants(accepted)


def test_what_another_decision_holds_of_is_not_suggested_again(accepted):
    write = accepted.write().run
    pair = Filters(photographs=["2024/d.jpg"], tags=["beach"])
    accepted.undo(accepted.decisions.decide(REJECTED, pair).run)
    accepted.undo(write)
    assert decisions(accepted)["2024/d.jpg", "beach"] == ACCEPTED
    assert "beach" not in open_suggestions(accepted).get("2024/d.jpg", {})


# --- decisions on what has changed since --------------------------------------------------


def test_decisions_on_a_photograph_that_was_edited_are_taken_back(catalogue, folder, rescan):
    offer(catalogue)
    run = catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.6)).run
    n = len(decisions(catalogue))
    folder.put("2024/d.jpg", "d with more light")
    rescan()
    keep_decisions(catalogue)
    assert len(decisions(catalogue)) == catalogue.status().n_accepted == n
    undone = catalogue.undo()
    assert (undone.undoes.id, len(undone.decisions)) == (run, n)
    assert decisions(catalogue) == {}
    assert catalogue.write().run is None
    catalogue.undo(undone.run)  # and they hold again
    assert len(decisions(catalogue)) == n
    check_invariants(catalogue)


@pytest.mark.parametrize("into", ["strand", "sea"])
def test_decisions_on_a_tag_that_has_another_name_now_are_taken_back(catalogue, into):
    offer(catalogue)
    run = catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"])).run
    catalogue.tags.change("merge", ["beach"], into)
    assert decisions(catalogue)["2024/d.jpg", into] == ACCEPTED
    undone = catalogue.undo(run)
    assert (undone.undoes.id, len(undone.decisions), undone.n_kept) == (run, 2, 0)
    assert decisions(catalogue) == {}
    assert into in open_suggestions(catalogue)["2024/d.jpg"]
    check_invariants(catalogue)


def decide_and_merge(catalogue, *decided):
    """Decide on tags, merge beach into sea, and return the run of each decision by tag."""
    offer(catalogue)
    runs = {
        tag: catalogue.decisions.decide(
            verdict, Filters(photographs=["2024/d.jpg"], tags=[tag])
        ).run
        for tag, verdict in decided
    }
    catalogue.tags.change("merge", ["beach"], "sea")
    assert decisions(catalogue) == {("2024/d.jpg", "sea"): REJECTED}
    return runs


def test_of_two_tags_that_become_one_the_other_decision_holds(catalogue):
    runs = decide_and_merge(catalogue, ("beach", ACCEPTED), ("sea", REJECTED))
    assert catalogue.undo(runs["beach"]).n_kept == 1
    assert decisions(catalogue) == {("2024/d.jpg", "sea"): REJECTED}
    check_invariants(catalogue)


def test_undo_lets_the_decision_on_a_merged_tag_hold(catalogue):
    runs = decide_and_merge(catalogue, ("sea", REJECTED), ("beach", ACCEPTED))
    catalogue.undo(runs["sea"])
    assert decisions(catalogue) == {("2024/d.jpg", "sea"): ACCEPTED}
    check_invariants(catalogue)


def test_decisions_on_a_photograph_that_is_gone_are_taken_back_and_named(catalogue, folder, rescan):
    offer(catalogue)
    run = catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"])).run
    (folder.root / "2024/d.jpg").unlink()
    rescan()
    undone = catalogue.undo(run)
    assert {decision.path for decision in undone.decisions} == {"2024/c.jpg", "2024/d.jpg"}


def test_a_tag_that_was_forgotten_meanwhile_is_not_suggested_again(catalogue):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["beach"]))
    catalogue.tags.change("forget", ["beach"])
    catalogue.undo()
    assert not any("beach" in tags for tags in open_suggestions(catalogue).values())


# --- photographs that were moved ---------------------------------------------------------


def test_a_sidecar_that_was_moved_with_its_photograph_is_put_back(accepted, folder, rescan):
    before = files(folder.root)
    accepted.write()
    (folder.root / "2024").rename(folder.root / "2024 Wien")
    for name in ("a.jpg", "a.jpg.xmp"):
        (folder.root / name).rename(folder.root / name.replace("a", "z"))
    rescan()
    undone = accepted.undo()
    assert not undone.failures
    now = files(folder.root)
    moved = {"a.jpg": "z.jpg", "a.jpg.xmp": "z.jpg.xmp"}
    assert now == {
        moved.get(name, name.replace("2024", "2024 Wien")): data for name, data in before.items()
    }
    assert accepted.undo().undoes.what == "accept"
    assert {path.replace("2024 Wien", "2024") for path in open_suggestions(accepted)} == {
        path.replace("a.jpg", "z.jpg") for path in OFFERED
    }


def test_a_stem_is_followed_as_well(accepted, folder, rescan):
    before = files(folder.root)
    accepted.write(Filters(folder="2024"), convention=Convention.STEM)
    for name in ("d.jpg", "d.xmp"):
        (folder.root / "2024" / name).rename(folder.root / f"new.{name.split('.')[1]}")
    rescan()
    accepted.undo()
    before["new.jpg"] = before.pop("2024/d.jpg")
    assert files(folder.root) == before


@needs_exiftool
@pytest.mark.parametrize("seen", [True, False])
def test_a_photograph_that_was_written_into_is_known_where_it_was_moved_to(
    catalogue, folder, rescan, seen
):
    path = folder.root / "2024/d.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    rescan()
    before = path.read_bytes()
    offer(catalogue, {"2024/d.jpg": {"sea": 0.9}})
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    catalogue.write(embed=True)
    if seen:
        rescan()
    path.rename(folder.root / "2024/e.jpg")
    scan = rescan()
    assert (scan.moved, scan.gone) == ([("2024/d.jpg", "2024/e.jpg")], [])
    assert decisions(catalogue) == {("2024/e.jpg", "sea"): ACCEPTED}
    assert [file.how for file in catalogue.undo().files] == ["restored"]
    assert (folder.root / "2024/e.jpg").read_bytes() == before
    assert not (folder.root / "2024/d.jpg_original").exists()
    check_invariants(catalogue)


@pytest.mark.parametrize("full", [True, False])
def test_tags_go_to_where_a_photograph_was_moved_without_its_sidecar(
    accepted, folder, rescan, full
):
    before = files(folder.root)
    accepted.write(convention=Convention.FULL if full else Convention.STEM)
    (folder.root / "2024/d.jpg").rename(folder.root / "d.jpg")
    rescan()
    again = accepted.write()
    assert [file.photograph for file in again.files] == ["d.jpg"]
    assert accepted.write().run is None
    accepted.undo()
    accepted.undo()
    before["d.jpg"] = before.pop("2024/d.jpg")
    assert files(folder.root) == before


def test_a_tag_that_somebody_took_out_is_not_written_again(accepted, folder, rescan):
    accepted.write()
    (folder.root / "2024/d.jpg.xmp").unlink()
    rescan()
    assert accepted.write().run is None


def test_what_is_out_of_reach_is_not_taken_back_until_it_is_there(accepted, folder):
    """The drive is not connected, or a folder was moved and nobody scanned since."""
    before = files(folder.root)
    run = accepted.write().run
    away = folder.root.parent / "away"
    (folder.root / "2024").rename(away)
    undone = accepted.undo(run)
    assert ["Scan the folder" in failure.reason for failure in undone.failures] == [True]
    assert {file.file for file in undone.files} == {"a.jpg.xmp", "b.jpg.xmp"}
    away.rename(folder.root / "2024")
    accepted.undo(run)
    assert files(folder.root) == before


def test_whether_a_killed_write_was_done_is_found_out_when_it_is_there(accepted, folder):
    before = files(folder.root)
    run = accepted.write(Filters(folder="2024")).run
    accepted.database.execute("UPDATE writes SET state = 'planned'")  # as a kill leaves it
    away = folder.root.parent / "away"
    (folder.root / "2024").rename(away)
    accepted.write(Filters(folder="2024"))
    away.rename(folder.root / "2024")
    accepted.write(Filters(folder="2024"))
    assert [write.state for write in accepted.writes.of_run(run)] == ["done"]
    accepted.undo(run)
    assert files(folder.root) == before


def test_a_photograph_that_was_deleted_with_its_sidecar_does_not_stop_an_undo(
    accepted, folder, rescan
):
    run = accepted.write().run
    for name in ("d.jpg", "d.jpg.xmp"):
        (folder.root / "2024" / name).unlink()
    rescan()
    assert not accepted.undo(run).failures
