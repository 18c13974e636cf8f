"""Steps of a review: one run each, taken back whole, and nothing decided twice."""

import pytest

from tagkin.catalogue import Shown
from tagkin.catalogue.collection_model import fit_pays
from tagkin.errors import InvalidInput

from .photographs import check_invariants, select
from .suggested import OFFERED, content, decisions, offer, open_suggestions


def pair(catalogue, path, tag):
    return content(catalogue, path), catalogue.tags.find([tag])[0]


def test_one_step_is_one_run_and_the_command_line_takes_it_back_too(catalogue):
    offer(catalogue)
    yes = [pair(catalogue, "a.jpg", "holiday"), pair(catalogue, "b.jpg", "sea")]
    no = [pair(catalogue, "a.jpg", "dog")]
    batch = catalogue.decisions.decide_pairs(yes, no)
    assert (batch.accepted, batch.rejected, len(batch)) == (yes, no, 3)
    assert decisions(catalogue) == {
        ("a.jpg", "holiday"): 1,
        ("b.jpg", "sea"): 1,
        ("a.jpg", "dog"): -1,
    }
    check_invariants(catalogue)
    assert catalogue.undo().undoes.id == batch.run
    assert open_suggestions(catalogue) == OFFERED
    check_invariants(catalogue)


def test_evidence_stays_with_a_decision(catalogue):
    offer(catalogue)
    catalogue.decisions.decide_pairs([pair(catalogue, "a.jpg", "holiday")])
    (row,) = catalogue.database.rows(
        "SELECT confidence, length(evidence), suggested_by FROM decisions"
    )
    assert row[:2] == (0.95, 16)
    assert row[2] is not None


def test_a_later_decision_takes_the_place_of_an_earlier_one(catalogue):
    offer(catalogue)
    suggestion = pair(catalogue, "a.jpg", "holiday")
    first = catalogue.decisions.decide_pairs([suggestion])
    assert catalogue.decisions.decide_pairs([suggestion]).n_already == 1
    assert catalogue.decisions.decide_pairs(rejected=[suggestion], only_open=True).n_already == 1
    second = catalogue.decisions.decide_pairs(rejected=[suggestion])
    assert decisions(catalogue) == {("a.jpg", "holiday"): -1}
    assert catalogue.decisions.last_run() == second.run
    catalogue.decisions.undo_last()
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1}
    assert catalogue.decisions.last_run() == first.run
    catalogue.decisions.undo_last()
    assert open_suggestions(catalogue) == OFFERED
    assert catalogue.decisions.last_undo() is not None
    catalogue.decisions.redo_last()
    catalogue.decisions.redo_last()
    assert decisions(catalogue) == {("a.jpg", "holiday"): -1}
    assert catalogue.decisions.redo_last().run is None
    check_invariants(catalogue)


def test_a_tag_that_stands_in_files_is_confirmed_where_it_was_doubted(catalogue):
    suggestion = pair(catalogue, "a.jpg", "sea")
    assert catalogue.decisions.decide_pairs([suggestion]).run is None  # no news
    with catalogue.database.run("train") as run, catalogue.database.transaction():
        catalogue.database.execute(
            "INSERT INTO doubts VALUES (?, ?, ?, 'wrong', 0.9, x'')", (*suggestion, run.id)
        )
    assert len(catalogue.decisions.decide_pairs([suggestion])) == 1
    assert select(catalogue, tags=(suggestion[1],)) == ["a.jpg"]
    check_invariants(catalogue)


def test_names_in_any_spelling_and_new_ones(catalogue):
    number = content(catalogue, "2024/d.jpg")
    catalogue.decisions.decide_pairs([(number, "Beach"), (number, "Évening")])
    assert set(decisions(catalogue)) == {("2024/d.jpg", "beach"), ("2024/d.jpg", "Évening")}
    assert catalogue.decisions.decide_pairs([(number, " évening ")]).n_already == 1
    check_invariants(catalogue)


@pytest.mark.parametrize("tag", ["", "  ", "\n"])
def test_a_tag_has_a_name(catalogue, tag):
    with pytest.raises(InvalidInput, match="must not be blank"):
        catalogue.decisions.decide_pairs([(content(catalogue, "a.jpg"), tag)])
    assert decisions(catalogue) == {}


def test_renamed_tags_are_what_they_were_renamed_to(catalogue):

    old = catalogue.tags.find(["dog"])[0]
    catalogue.tags.change("rename", ["dog"], "hound")
    catalogue.decisions.decide_pairs([(content(catalogue, "a.jpg"), old)])
    assert decisions(catalogue) == {("a.jpg", "hound"): 1}
    check_invariants(catalogue)


@pytest.mark.parametrize(
    ("n_before", "n_enough"), [(0, 200), (100, 200), (200, 400), (2000, 600), (8000, 2000)]
)
def test_how_many_answers_make_a_fit_worthwhile(n_before, n_enough):
    assert not fit_pays(n_enough - 1, n_before + n_enough - 1)
    assert fit_pays(n_enough, n_before + n_enough)


def test_what_a_review_lacks(catalogue):
    needs = catalogue.model.needs()
    assert (needs.tags, needs.model, needs.n_new) == (False, True, 4)
    offer(catalogue)
    assert catalogue.model.needs().n_new == 0
    catalogue.decisions.decide_pairs([pair(catalogue, "a.jpg", "holiday")])
    assert (catalogue.model.needs().n_decided, catalogue.model.needs().is_due) == (1, False)
    number = content(catalogue, "a.jpg")
    catalogue.decisions.decide_pairs([(number, f"tag {k}") for k in range(250)])
    assert catalogue.model.needs().is_due


def together(catalogue):
    return {pair(catalogue, doubt.path, doubt.tag) for doubt in catalogue.doubts.among_accepted()}


def test_what_was_accepted_with_the_rest_can_be_confirmed(catalogue):
    offer(catalogue)
    suggestions = [pair(catalogue, "a.jpg", "holiday"), pair(catalogue, "b.jpg", "holiday")]
    first = catalogue.decisions.decide_pairs(suggestions, together=True)
    assert together(catalogue) == set(suggestions)
    assert catalogue.decisions.decide_pairs(suggestions, together=True).run is None
    decided = catalogue.decisions.decide_pairs(suggestions[:1])  # looked at by itself
    assert decided.accepted == suggestions[:1]
    assert together(catalogue) == set(suggestions[1:])
    rows = catalogue.database.rows(
        "SELECT confidence, suggested_by FROM decisions WHERE content = ? ORDER BY id",
        suggestions[0][:1],
    )
    assert rows[0] == rows[1]  # it is an answer to the same suggestion
    catalogue.decisions.undo_last()
    assert catalogue.decisions.last_run() == first.run
    assert together(catalogue) == set(suggestions)
    catalogue.decisions.undo_last()
    assert open_suggestions(catalogue) == OFFERED
    check_invariants(catalogue)


def test_doubts_of_what_was_accepted_with_the_rest(catalogue):
    offer(catalogue)
    a, b = pair(catalogue, "a.jpg", "holiday"), pair(catalogue, "b.jpg", "holiday")
    single = pair(catalogue, "2024/d.jpg", "dog")
    catalogue.decisions.decide_pairs([a, b], together=True)
    catalogue.decisions.decide_pairs([single])
    doubts = catalogue.doubts.among_accepted()
    assert [(doubt.path, doubt.tag, doubt.confidence) for doubt in doubts] == [
        ("b.jpg", "holiday", 0.7),
        ("a.jpg", "holiday", 0.95),
    ]
    assert all(doubt.kind == "accepted" and doubt.was_accepted and doubt.kin for doubt in doubts)
    assert catalogue.doubts.among_accepted(1, 1) == doubts[1:]
    with catalogue.database.run("train") as run, catalogue.database.transaction():
        for content in (a, single):
            catalogue.database.execute(
                "INSERT INTO doubts VALUES (?, ?, ?, 'wrong', 0.7, x'')", (*content, run.id)
            )
    assert [(doubt.path, doubt.was_accepted) for doubt in catalogue.doubts.list_open()] == [
        ("a.jpg", True)
    ]
    catalogue.decisions.decide_pairs([a], rejected=[b])
    assert catalogue.doubts.list_open() == catalogue.doubts.among_accepted() == []


def test_two_numbers_of_one_tag_are_decided_on_once(catalogue):
    """A window still shows both of two tags that were merged."""
    offer(catalogue)
    beach, sea = (pair(catalogue, "2024/d.jpg", tag) for tag in ("beach", "sea"))
    catalogue.tags.change("merge", ["beach"], "sea")
    with pytest.raises(InvalidInput, match="both accepted and rejected"):
        catalogue.decisions.decide_pairs([beach], [sea])
    assert catalogue.decisions.decide_pairs([beach, sea]).accepted == [sea]
    catalogue.decisions.undo_last()
    assert decisions(catalogue) == {}
    check_invariants(catalogue)


# --- what a page showed before the suggestions were replaced ---------------------------------

FEWER = {"a.jpg": {"dog": 0.4}, "b.jpg": {"holiday": 0.6}, "2024/c.jpg": {}, "2024/d.jpg": {}}


def shown(catalogue, path, tag, confidence, run):
    return Shown(*pair(catalogue, path, tag), confidence, run)


def stored(catalogue):
    rows = catalogue.database.rows(
        "SELECT p.path, t.name, d.verdict, d.confidence, d.suggested_by FROM decisions d "
        "JOIN photographs p ON p.content = d.content JOIN tags t ON t.id = d.tag WHERE d.holds"
    )
    return {(path, tag): tuple(rest) for path, tag, *rest in rows}


def test_a_decision_is_stored_with_the_confidence_that_was_shown(catalogue):
    first = offer(catalogue)
    page = [
        shown(catalogue, p, "holiday", OFFERED[p]["holiday"], first) for p in ("a.jpg", "b.jpg")
    ]
    second = offer(catalogue, FEWER)
    batch = catalogue.decisions.decide_pairs(page[:1], page[1:], only_open=True)
    assert (len(batch), batch.n_already, batch.n_kept) == (2, 0, 0)
    assert stored(catalogue) == {
        ("a.jpg", "holiday"): (1, 0.95, first),  # nobody suggests it any more
        ("b.jpg", "holiday"): (-1, 0.6, second),
    }
    catalogue.decisions.undo_last()
    assert open_suggestions(catalogue) == {
        "a.jpg": {"dog": 0.4, "holiday": 0.95},  # open again, as after every undo
        "b.jpg": {"holiday": 0.6},
    }
    catalogue.decisions.redo_last()
    assert len(stored(catalogue)) == 2
    check_invariants(catalogue)


def test_decisions_of_another_window_are_kept(catalogue):
    run = offer(catalogue)
    page = [shown(catalogue, p, "holiday", OFFERED[p]["holiday"], run) for p in ("a.jpg", "b.jpg")]
    catalogue.decisions.decide_pairs(page[:1], page[1:])  # another window
    offer(catalogue, FEWER)
    batch = catalogue.decisions.decide_pairs(page, only_open=True, together=True)
    assert (batch.run, batch.n_already, batch.n_kept) == (None, 2, 1)
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1, ("b.jpg", "holiday"): -1}


def test_an_attempt_whose_answer_got_lost_may_be_changed(catalogue):
    offer(catalogue)
    suggestions = [pair(catalogue, p, "holiday") for p in ("a.jpg", "b.jpg")]
    first = catalogue.decisions.decide_pairs(suggestions, only_open=True, together=True)
    again = catalogue.decisions.decide_pairs(
        suggestions, only_open=True, together=True, repeats=[first.run]
    )
    assert (again.run, again.n_already, again.n_kept) == (None, 2, 0)
    other = catalogue.decisions.decide_pairs(
        suggestions[:1], suggestions[1:], only_open=True, together=True, repeats=[first.run]
    )
    assert (len(other.accepted), len(other.rejected), other.n_already) == (0, 1, 1)
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1, ("b.jpg", "holiday"): -1}
    check_invariants(catalogue)


def test_the_answer_to_a_doubt_is_stored_after_the_doubt_is_gone(catalogue):
    suggestion = Shown(*pair(catalogue, "a.jpg", "sea"))
    assert catalogue.decisions.decide_pairs([suggestion]).accepted == [suggestion[:2]]
    assert decisions(catalogue) == {("a.jpg", "sea"): 1}
    assert catalogue.decisions.decide_pairs([suggestion]).n_already == 1
    check_invariants(catalogue)


def test_a_run_that_does_not_exist_is_not_kept(catalogue):
    offer(catalogue)
    suggestion = shown(catalogue, "2024/c.jpg", "holiday", 0.5, 12345)
    catalogue.decisions.decide_pairs([suggestion])
    assert stored(catalogue) == {("2024/c.jpg", "holiday"): (1, 0.5, None)}
