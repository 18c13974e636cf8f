"""Finished photographs and tags, and folders whose tags are not complete."""

import itertools
import json

import pytest

from tagkin.annotator import Finding
from tagkin.catalogue import ACCEPTED, REJECTED, Filters, open_for_scan
from tagkin.errors import InvalidInput, NotFound

from .photographs import check_invariants, keep_decisions
from .suggested import OFFERED, content, decisions, offer, open_suggestions

D = "2024/d.jpg"


def known(catalogue):
    """What training learns of each photograph: complete, tags, rejected tags."""
    return {
        catalogue.relative(c.file): (c.is_complete, set(c.known_tags), set(c.rejected))
        for c in catalogue.photographs.with_tags()
    }


def learned(catalogue):
    return {catalogue.relative(c.file) for c in catalogue.model.to_learn_from()[0]}


def finish(catalogue, *paths):
    return catalogue.completeness.finish(Filters(photographs=paths))


# --- photographs -----------------------------------------------------------------------------


def test_a_finished_photograph_has_its_tags_and_no_others(catalogue):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=[D], tags=["beach"]))
    assert known(catalogue)[D] == (False, {"beach"}, set())
    done = finish(catalogue, D)
    assert done.finished == [D]
    assert {(decision.path, decision.tag) for decision in done.each} == {(D, "sea"), (D, "dog")}
    assert known(catalogue)[D] == (True, {"beach"}, {"sea", "dog"})
    assert D not in open_suggestions(catalogue)
    offer(catalogue)  # also what comes later is not suggested for it
    assert open_suggestions(catalogue) == {p: t for p, t in OFFERED.items() if p != D}
    assert finish(catalogue, D).run is None  # it is finished already
    state = catalogue.status()
    assert (state.n_finished, state.n_accepted, state.n_rejected) == (1, 1, 2)
    check_invariants(catalogue)
    catalogue.undo(done.run)
    assert known(catalogue)[D] == (False, {"beach"}, set())
    assert open_suggestions(catalogue)[D] == {"sea": 0.6, "dog": 0.2}
    assert catalogue.status().n_finished == 0
    check_invariants(catalogue)


def test_a_photograph_without_tags_is_learned_from_once_it_is_finished(catalogue):
    assert D not in learned(catalogue)
    finish(catalogue, D)
    assert known(catalogue)[D] == (True, set(), set())
    assert D in learned(catalogue)


def test_finish_a_folder_and_its_subfolders(catalogue, folder, rescan):
    folder.put("2024/may/e.jpg", "e")
    rescan()
    done = catalogue.completeness.finish(Filters(folder="2024"))
    assert done.finished == ["2024/c.jpg", D, "2024/may/e.jpg"]
    assert catalogue.completeness.count_finished() == 3


def test_answers_count_on_a_finished_photograph(catalogue):
    offer(catalogue)
    finish(catalogue, D)
    pair = content(catalogue, D), "sea"
    assert len(catalogue.decisions.decide_pairs(accepted=[pair]).accepted) == 1
    assert known(catalogue)[D] == (True, {"sea"}, {"beach", "dog"})
    # another window with the old page: answers to many suggestions do not change decisions
    batch = catalogue.decisions.decide_pairs([(pair[0], "beach")], only_open=True, together=True)
    assert (batch.run, batch.n_kept) == (None, 1)


def test_a_second_window_finishes_what_the_first_answered(catalogue):
    offer(catalogue)
    number = content(catalogue, D)
    catalogue.decisions.decide_pairs(accepted=[(number, "dog")])
    done = catalogue.completeness.finish_photographs([number])
    assert {decision.tag for decision in done.each} == {"beach", "sea"}
    assert catalogue.completeness.finish_photographs([number]).run is None
    with pytest.raises(InvalidInput, match="1 of 2 photographs"):
        catalogue.completeness.finish_photographs([number, 999])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_undo_in_any_order(catalogue, order):
    offer(catalogue)
    runs = [
        catalogue.decisions.decide(ACCEPTED, Filters(photographs=[D], tags=["beach"])).run,
        finish(catalogue, D, "a.jpg").run,
        catalogue.completeness.finish(Filters(tags=["sea"])).run,
    ]
    assert None not in runs
    for i in order:
        catalogue.undo(runs[i])
        check_invariants(catalogue)
    assert open_suggestions(catalogue) == OFFERED
    assert decisions(catalogue) == {}
    assert not any(is_complete for is_complete, _, _ in [known(catalogue)[D]])


def test_undo_redo_and_undo_again(catalogue):
    offer(catalogue)
    finish(catalogue, D)
    done, before = known(catalogue)[D], catalogue.decisions.last_run()
    for _ in range(2):
        undone = catalogue.decisions.undo_last()
        assert undone.finished == [D]
        assert {decision.tag for decision in undone.each} == set(OFFERED[D])
        assert open_suggestions(catalogue) == OFFERED
        assert catalogue.decisions.redo_last().finished == [D]
        assert known(catalogue)[D] == done
        assert D not in open_suggestions(catalogue)
        check_invariants(catalogue)
    assert catalogue.decisions.last_run() == before


def test_what_came_up_in_between_goes_with_redo(catalogue):
    offer(catalogue)
    finish(catalogue, D)
    catalogue.decisions.undo_last()
    offer(catalogue, {D: {"holiday": 0.9}})
    catalogue.decisions.redo_last()
    assert D not in open_suggestions(catalogue)
    check_invariants(catalogue)


def test_a_finished_photograph_may_move_and_be_edited(catalogue, folder, rescan):
    offer(catalogue)
    run = finish(catalogue, D).run
    (folder.root / D).rename(folder.root / "moved.jpg")
    rescan()
    assert known(catalogue)["moved.jpg"][0]
    folder.put("moved.jpg", "edited")
    rescan()
    assert not known(catalogue)["moved.jpg"][0]
    keep_decisions(catalogue)
    assert known(catalogue)["moved.jpg"][0]
    assert catalogue.status().n_finished == 1
    assert catalogue.undo(run).finished == ["moved.jpg"]
    assert not known(catalogue)["moved.jpg"][0]
    check_invariants(catalogue)


def test_nothing_is_missing_from_a_finished_photograph(catalogue):
    run = offer(catalogue)
    numbers = {path: content(catalogue, path) for path in OFFERED}
    findings = [
        Finding(D, "holiday", "missing", 0.9, ()),
        Finding("a.jpg", "sea", "wrong", 0.8, ()),
        Finding("b.jpg", "sea", "missing", 0.7, ()),
    ]
    assert catalogue.doubts.replace(run, findings, numbers) == 3
    finish(catalogue, D, "a.jpg")
    assert [(d.path, d.kind) for d in catalogue.doubts.list_open()] == [
        ("a.jpg", "wrong"),
        ("b.jpg", "missing"),
    ]


def test_explain_says_who_finished_it(catalogue):
    offer(catalogue)
    assert catalogue.explain(D).finished is None
    run = finish(catalogue, D).run
    explained = catalogue.explain(D)
    assert explained.finished.text == f"finished by you (run {run})"
    assert explained.finished.run == run
    text = {tag.tag: tag.said[-1].text for tag in explained.tags}["sea"]
    assert text == f"rejected by you (run {run}): the photograph is finished"


# --- tags ------------------------------------------------------------------------------------


def test_a_finished_tag_is_a_no_wherever_nobody_said_anything(catalogue, folder, rescan):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=[D], tags=["sea"]))
    done = catalogue.completeness.finish_tag(catalogue.tags.numbers_of(["sea"])["sea"])
    assert {(decision.path, decision.tag) for decision in done.each} == {
        ("b.jpg", "sea"),
        ("2024/c.jpg", "sea"),
    }
    assert not done.finished
    known_tags = known(catalogue)
    assert {path for path, (_, tags, _) in known_tags.items() if "sea" in tags} == {"a.jpg", D}
    assert {path for path, (_, _, no) in known_tags.items() if "sea" in no} == {
        "b.jpg",
        "2024/c.jpg",
    }
    assert not any("sea" in tags for tags in open_suggestions(catalogue).values())
    # a photograph that comes later is unknown again
    folder.put("later.jpg", "later")
    rescan()
    offer(catalogue, {"later.jpg": {"sea": 0.4}, "b.jpg": {"sea": 0.9, "holiday": 0.7}})
    assert open_suggestions(catalogue)["later.jpg"] == {"sea": 0.4}
    assert open_suggestions(catalogue)["b.jpg"] == {"holiday": 0.7}
    assert "sea" not in known(catalogue)["later.jpg"][2]
    check_invariants(catalogue)
    catalogue.undo(done.run)
    assert not any("sea" in no for _, _, no in known(catalogue).values())


def test_a_finished_tag_is_no_answer_about_each_photograph(catalogue):
    """Else all photographs would be learned from, and each would count as a decision."""
    offer(catalogue, {"2024/c.jpg": {"beach": 0.55}})
    n_decided = catalogue.model.needs().n_decided
    catalogue.completeness.finish(Filters(tags=["beach"]))
    assert known(catalogue)[D] == (False, set(), {"beach"})
    assert D not in learned(catalogue)
    assert catalogue.model.needs().n_decided == n_decided + 1  # 2024/c.jpg was asked about
    verdicts = catalogue.decisions.verdicts_after(catalogue.decisions.last_run())
    assert [(number, verdict) for number, _, verdict in verdicts] == [
        (content(catalogue, "2024/c.jpg"), REJECTED)
    ]
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=[D], tags=["dog"]))
    assert D in learned(catalogue)


def test_finish_a_tag_in_a_folder(catalogue):
    offer(catalogue)
    done = catalogue.completeness.finish(Filters(tags=["Sea"], folder="2024"))
    assert {decision.path for decision in done.each} == {"2024/c.jpg", D}
    assert open_suggestions(catalogue)["b.jpg"] == OFFERED["b.jpg"]
    assert catalogue.completeness.finish(Filters(tags=["sea"], folder="2024")).run is None
    with pytest.raises(NotFound, match="no tag 'sean'"):
        catalogue.completeness.finish(Filters(tags=["sean"]))


# --- incomplete folders ------------------------------------------------------------------------


def test_tags_in_files_may_be_incomplete(catalogue, folder, rescan):
    declared = catalogue.completeness.declare_incomplete("2024")
    assert (declared.folder, declared.n_photographs) == ("2024", 1)
    assert known(catalogue)["2024/c.jpg"] == (False, {"dog"}, set())
    assert known(catalogue)["a.jpg"][0]
    assert catalogue.status().incomplete_folders == ["2024"]
    assert catalogue.completeness.declare_incomplete("2024").run is None
    folder.put("2024/later.jpg", "later", ["dog"])
    folder.put("copy of c.jpg", "c", ["dog"])  # complete, because one of its files is
    rescan()
    assert not known(catalogue)["2024/later.jpg"][0]
    assert known(catalogue)["2024/c.jpg"][0]
    finish(catalogue, "2024/later.jpg")
    assert known(catalogue)["2024/later.jpg"][0]
    whole = catalogue.completeness.declare_incomplete()
    assert whole.n_photographs == 3
    assert [p for p, (is_complete, _, _) in known(catalogue).items() if is_complete] == [
        "2024/later.jpg"
    ]
    assert catalogue.undo().undoes.id == whole.run  # the last run
    assert known(catalogue)["a.jpg"][0]
    undo = catalogue.undo(declared.run)
    assert known(catalogue)["2024/c.jpg"][0]
    assert catalogue.status().incomplete_folders == []
    with pytest.raises(InvalidInput, match="undone already"):
        catalogue.undo(declared.run)
    catalogue.undo(undo.run)
    assert catalogue.status().incomplete_folders == ["2024"]
    catalogue.undo(declared.run)
    assert catalogue.status().incomplete_folders == []


def test_undo_takes_the_last_of_all_runs(catalogue):
    offer(catalogue)
    first = catalogue.completeness.declare_incomplete().run
    second = finish(catalogue, D).run
    third = catalogue.completeness.declare_incomplete("2024").run
    with catalogue.database.run("scan"):
        pass
    assert [catalogue.undo().undoes.id for _ in range(3)] == [third, second, first]
    with pytest.raises(InvalidInput, match="Nothing to undo"):
        catalogue.undo()


# --- carried elsewhere -------------------------------------------------------------------------


def test_export_and_import(catalogue, folder, tmp_path):
    offer(catalogue)
    catalogue.completeness.declare_incomplete("2024")
    undone = finish(catalogue, "a.jpg").run
    finish(catalogue, D)
    catalogue.undo(undone)
    catalogue.completeness.finish(Filters(tags=["sea"]))
    lines = [json.dumps(line) for line in catalogue.export_lines()]
    with open_for_scan(folder.root, tmp_path / "other.sqlite") as other:
        other.scan()
        offer(other)
        for n_decisions in (len(catalogue.database.rows("SELECT 1 FROM decisions WHERE holds")), 0):
            assert other.import_lines(lines).decisions == n_decisions
            assert known(other) == known(catalogue)
            mine, theirs = catalogue.status(), other.status()
            assert mine.n_finished == theirs.n_finished == 1
            assert mine.incomplete_folders == theirs.incomplete_folders == ["2024"]
            check_invariants(other)
        assert D not in open_suggestions(other)
        assert other.undo().finished == [D]
        assert not known(other)[D][0]


def test_only_a_rejection_can_be_without_a_tag(catalogue):
    finish(catalogue, D)
    lines = list(catalogue.export_lines())
    (mark,) = [line for line in lines if line["kind"] == "decision"]
    mark["verdict"] = 1
    with pytest.raises(InvalidInput, match="`verdict` must be -1 if `tag` is null"):
        catalogue.import_lines(map(json.dumps, lines))


def test_rejections_of_a_named_photograph_are_answers(catalogue):
    catalogue.decisions.decide(REJECTED, Filters(photographs=[D], tags=["dog"]))
    assert D in learned(catalogue)
