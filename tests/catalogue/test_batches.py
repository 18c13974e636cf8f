"""Steps of a review: one run each, taken back whole, and nothing decided twice."""

import pytest

from tagkin.catalogue import (
    Shown,
    accepted_together,
    change_tags,
    decide_batch,
    doubted_acceptances,
    doubtful,
    last_batch,
    last_undone,
    needs_of,
    redo_batch,
    search,
    tag_numbers,
    undo_batch,
    undo_run,
)
from tagkin.errors import InvalidInput

from .photographs import check_invariants
from .suggested import OFFERED, content, decisions, offer, open_suggestions


def pair(catalogue, path, tag):
    return content(catalogue, path), tag_numbers(catalogue, [tag])[0]


def test_one_step_is_one_run_and_the_command_line_takes_it_back_too(catalogue):
    offer(catalogue)
    yes = [pair(catalogue, "a.jpg", "holiday"), pair(catalogue, "b.jpg", "sea")]
    no = [pair(catalogue, "a.jpg", "dog")]
    batch = decide_batch(catalogue, yes, no)
    assert (batch.accepted, batch.rejected, len(batch)) == (yes, no, 3)
    assert decisions(catalogue) == {
        ("a.jpg", "holiday"): 1,
        ("b.jpg", "sea"): 1,
        ("a.jpg", "dog"): -1,
    }
    check_invariants(catalogue)
    assert undo_run(catalogue).undoes.id == batch.run
    assert open_suggestions(catalogue) == OFFERED
    check_invariants(catalogue)


def test_evidence_stays_with_a_decision(catalogue):
    offer(catalogue)
    decide_batch(catalogue, [pair(catalogue, "a.jpg", "holiday")])
    (row,) = catalogue.rows("SELECT confidence, length(evidence), suggested_by FROM decisions")
    assert row[:2] == (0.95, 16)
    assert row[2] is not None


def test_a_later_decision_takes_the_place_of_an_earlier_one(catalogue):
    offer(catalogue)
    one = pair(catalogue, "a.jpg", "holiday")
    first = decide_batch(catalogue, [one])
    assert decide_batch(catalogue, [one]).n_already == 1
    assert decide_batch(catalogue, rejected=[one], only_open=True).n_already == 1
    second = decide_batch(catalogue, rejected=[one])
    assert decisions(catalogue) == {("a.jpg", "holiday"): -1}
    assert last_batch(catalogue) == second.run
    undo_batch(catalogue)
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1}
    assert last_batch(catalogue) == first.run
    undo_batch(catalogue)
    assert open_suggestions(catalogue) == OFFERED
    assert last_undone(catalogue) is not None
    redo_batch(catalogue)
    redo_batch(catalogue)
    assert decisions(catalogue) == {("a.jpg", "holiday"): -1}
    assert redo_batch(catalogue).run is None
    check_invariants(catalogue)


def test_a_tag_that_stands_in_files_is_confirmed_where_it_was_doubted(catalogue):
    one = pair(catalogue, "a.jpg", "sea")
    assert decide_batch(catalogue, [one]).run is None  # no news
    with catalogue.run("train") as run, catalogue.transaction() as connection:
        connection.execute("INSERT INTO doubts VALUES (?, ?, ?, 'wrong', 0.9, x'')", (*one, run.id))
    assert len(decide_batch(catalogue, [one])) == 1
    assert [path for _, path in search(catalogue, [one[1]])] == ["a.jpg"]
    check_invariants(catalogue)


def test_names_in_any_spelling_and_new_ones(catalogue):
    number = content(catalogue, "2024/d.jpg")
    decide_batch(catalogue, [(number, "Beach"), (number, "Évening")])
    assert set(decisions(catalogue)) == {("2024/d.jpg", "beach"), ("2024/d.jpg", "Évening")}
    assert decide_batch(catalogue, [(number, " évening ")]).n_already == 1
    check_invariants(catalogue)


@pytest.mark.parametrize("tag", ["", "  ", "\n"])
def test_a_tag_has_a_name(catalogue, tag):
    with pytest.raises(InvalidInput, match="A tag has a name"):
        decide_batch(catalogue, [(content(catalogue, "a.jpg"), tag)])
    assert decisions(catalogue) == {}


def test_renamed_tags_are_what_they_were_renamed_to(catalogue):
    from tagkin.catalogue import change_tags

    old = tag_numbers(catalogue, ["dog"])[0]
    change_tags(catalogue, "rename", ["dog"], "hound")
    decide_batch(catalogue, [(content(catalogue, "a.jpg"), old)])
    assert decisions(catalogue) == {("a.jpg", "hound"): 1}
    check_invariants(catalogue)


def test_what_a_review_lacks(catalogue):
    needs = needs_of(catalogue)
    assert (needs.tags, needs.model, needs.suggestions, needs.n_new) == (False, True, True, 0)
    offer(catalogue)
    assert not needs_of(catalogue).suggestions
    decide_batch(catalogue, [pair(catalogue, "a.jpg", "holiday")])
    assert (needs_of(catalogue).n_decided, needs_of(catalogue).is_due) == (1, False)
    number = content(catalogue, "a.jpg")
    decide_batch(catalogue, [(number, f"tag {k}") for k in range(250)])
    assert needs_of(catalogue).is_due


def test_what_was_accepted_with_the_rest_can_be_confirmed(catalogue):
    offer(catalogue)
    some = [pair(catalogue, "a.jpg", "holiday"), pair(catalogue, "b.jpg", "holiday")]
    first = decide_batch(catalogue, some, together=True)
    assert accepted_together(catalogue, some) == set(some)
    assert decide_batch(catalogue, some, together=True).run is None
    kept = decide_batch(catalogue, some[:1])  # looked at by itself
    assert kept.accepted == some[:1]
    assert accepted_together(catalogue, some) == set(some[1:])
    rows = catalogue.rows(
        "SELECT confidence, suggested_by FROM decisions WHERE content = ? ORDER BY id", some[0][:1]
    )
    assert rows[0] == rows[1]  # it is an answer to the same suggestion
    undo_batch(catalogue)
    assert last_batch(catalogue) == first.run
    assert accepted_together(catalogue, some) == set(some)
    undo_batch(catalogue)
    assert open_suggestions(catalogue) == OFFERED
    check_invariants(catalogue)


def test_doubts_of_what_was_accepted_with_the_rest(catalogue):
    offer(catalogue)
    a, b = pair(catalogue, "a.jpg", "holiday"), pair(catalogue, "b.jpg", "holiday")
    single = pair(catalogue, "2024/d.jpg", "dog")
    decide_batch(catalogue, [a, b], together=True)
    decide_batch(catalogue, [single])
    each = [(*single, 0.01), (*b, 0.2), (*a, 0.6), (-1, -1, 0.7)]
    found = doubted_acceptances(catalogue, each)
    assert [(one.path, one.tag, one.confidence) for one in found] == [
        ("b.jpg", "holiday", 0.2),
        ("a.jpg", "holiday", 0.6),
    ]
    assert all(one.kind == "accepted" and one.was_accepted and one.kin for one in found)
    assert doubted_acceptances(catalogue, each, 1, 1) == found[1:]
    with catalogue.run("train") as run, catalogue.transaction() as connection:
        for one in (a, single):
            connection.execute(
                "INSERT INTO doubts VALUES (?, ?, ?, 'wrong', 0.7, x'')", (*one, run.id)
            )
    assert [(one.path, one.was_accepted) for one in doubtful(catalogue)] == [("a.jpg", True)]
    decide_batch(catalogue, [a], rejected=[b])
    assert doubtful(catalogue) == doubted_acceptances(catalogue, each) == []


def test_two_numbers_of_one_tag_are_decided_on_once(catalogue):
    """A window still shows both of two tags that were merged."""
    offer(catalogue)
    beach, sea = (pair(catalogue, "2024/d.jpg", tag) for tag in ("beach", "sea"))
    change_tags(catalogue, "merge", ["beach"], "sea")
    with pytest.raises(InvalidInput, match="both accepted and rejected"):
        decide_batch(catalogue, [beach], [sea])
    assert decide_batch(catalogue, [beach, sea]).accepted == [sea]
    undo_batch(catalogue)
    assert decisions(catalogue) == {}
    check_invariants(catalogue)


# --- what a page showed before the suggestions were replaced ---------------------------------

FEWER = {"a.jpg": {"dog": 0.4}, "b.jpg": {"holiday": 0.6}, "2024/c.jpg": {}, "2024/d.jpg": {}}


def shown(catalogue, path, tag, confidence, run):
    return Shown(*pair(catalogue, path, tag), confidence, run)


def stored(catalogue):
    rows = catalogue.rows(
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
    batch = decide_batch(catalogue, page[:1], page[1:], only_open=True)
    assert (len(batch), batch.n_already, batch.n_kept) == (2, 0, 0)
    assert stored(catalogue) == {
        ("a.jpg", "holiday"): (1, 0.95, first),  # nobody suggests it any more
        ("b.jpg", "holiday"): (-1, 0.6, second),
    }
    undo_batch(catalogue)
    assert open_suggestions(catalogue) == {
        "a.jpg": {"dog": 0.4, "holiday": 0.95},  # open again, as after every undo
        "b.jpg": {"holiday": 0.6},
    }
    redo_batch(catalogue)
    assert len(stored(catalogue)) == 2
    check_invariants(catalogue)


def test_decisions_of_another_window_are_kept(catalogue):
    run = offer(catalogue)
    page = [shown(catalogue, p, "holiday", OFFERED[p]["holiday"], run) for p in ("a.jpg", "b.jpg")]
    decide_batch(catalogue, page[:1], page[1:])  # another window
    offer(catalogue, FEWER)
    batch = decide_batch(catalogue, page, only_open=True, together=True)
    assert (batch.run, batch.n_already, batch.n_kept) == (None, 2, 1)
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1, ("b.jpg", "holiday"): -1}


def test_an_attempt_whose_answer_got_lost_may_be_changed(catalogue):
    offer(catalogue)
    some = [pair(catalogue, p, "holiday") for p in ("a.jpg", "b.jpg")]
    first = decide_batch(catalogue, some, only_open=True, together=True)
    again = decide_batch(catalogue, some, only_open=True, together=True, repeats=[first.run])
    assert (again.run, again.n_already, again.n_kept) == (None, 2, 0)
    other = decide_batch(
        catalogue, some[:1], some[1:], only_open=True, together=True, repeats=[first.run]
    )
    assert (len(other.accepted), len(other.rejected), other.n_already) == (0, 1, 1)
    assert decisions(catalogue) == {("a.jpg", "holiday"): 1, ("b.jpg", "holiday"): -1}
    check_invariants(catalogue)


def test_the_answer_to_a_doubt_is_stored_after_the_doubt_is_gone(catalogue):
    one = Shown(*pair(catalogue, "a.jpg", "sea"))
    assert decide_batch(catalogue, [one]).accepted == [one[:2]]
    assert decisions(catalogue) == {("a.jpg", "sea"): 1}
    assert decide_batch(catalogue, [one]).n_already == 1
    check_invariants(catalogue)


def test_a_run_that_does_not_exist_is_not_kept(catalogue):
    offer(catalogue)
    one = shown(catalogue, "2024/c.jpg", "holiday", 0.5, 12345)
    decide_batch(catalogue, [one])
    assert stored(catalogue) == {("2024/c.jpg", "holiday"): (1, 0.5, None)}
