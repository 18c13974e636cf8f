"""Beach and beach are one tag: for counts, for decisions and for suggestions."""

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters
from tagkin.catalogue.tag_records import tag_number

from .conftest import Folder
from .photographs import check_invariants, keep_decisions
from .suggested import content, decisions, offer, open_suggestions

C = "2024/c.jpg"


@pytest.fixture
def capital(catalogue: Catalogue, folder: Folder) -> Catalogue:
    """c.jpg has Beach in its sidecar, others have beach."""
    folder.tag(C, ["Beach"])
    catalogue.scan()
    return catalogue


def decide(catalogue: Catalogue, tag: str, verdict: int) -> int | None:
    """Decide on a tag of c.jpg in exactly this spelling."""
    pair = [(content(catalogue, C), tag_number(catalogue.database, tag))]
    yes, no = (pair, []) if verdict == ACCEPTED else ([], pair)
    return catalogue.decisions.decide_pairs(yes, no).run


def n_tags(catalogue: Catalogue) -> int:
    query = "SELECT n_tags FROM contents WHERE id = ?"
    return int(catalogue.database.value(query, (content(catalogue, C),)))


def learned(catalogue: Catalogue) -> list[str]:
    """The tags that a model learns for c.jpg."""
    number = content(catalogue, C)
    (tags,) = [c.tags for c in catalogue.photographs.with_tags() if c.content == number]
    return tags


def test_a_rejection_in_another_spelling_leaves_it_untagged(capital: Catalogue) -> None:
    assert (n_tags(capital), learned(capital)) == (1, ["Beach"])
    n_untagged = capital.photographs.count().n_untagged
    run = decide(capital, "beach", REJECTED)
    assert (n_tags(capital), learned(capital)) == (0, [])
    assert capital.photographs.count().n_untagged == n_untagged + 1
    assert capital.tags.on([content(capital, C)]) == {}
    check_invariants(capital)
    assert run is not None
    capital.undo(run)
    assert (n_tags(capital), learned(capital)) == (1, ["Beach"])
    check_invariants(capital)


def test_an_acceptance_in_another_spelling_is_no_second_tag(capital: Catalogue) -> None:
    assert decide(capital, "beach", ACCEPTED) is None  # the file has it
    decide(capital, "beach", REJECTED)
    decide(capital, "BEACH", ACCEPTED)
    assert decisions(capital)[C, "beach"] == ACCEPTED
    assert (n_tags(capital), {tag.lower() for tag in learned(capital)}) == (1, {"beach"})
    assert decide(capital, "Beach", ACCEPTED) is None  # decided already
    check_invariants(capital)


def test_an_undo_suggests_no_tag_that_a_file_has_in_another_spelling(
    catalogue: Catalogue, folder: Folder
) -> None:
    offer(catalogue)
    run = catalogue.decisions.decide(ACCEPTED, Filters(photographs=[C])).run
    folder.tag(C, ["dog", "BEACH"])
    catalogue.scan()
    assert run is not None
    catalogue.undo(run)
    assert "beach" not in open_suggestions(catalogue).get(C, {})
    check_invariants(catalogue)


def test_a_redo_ends_the_decision_on_another_spelling(catalogue: Catalogue) -> None:
    first = decide(catalogue, "harbour", ACCEPTED)
    assert first is not None
    undone = catalogue.undo(first).run
    decide(catalogue, "Harbour", REJECTED)
    catalogue.undo(undone)
    held = {tag: v for (path, tag), v in decisions(catalogue).items() if path == C}
    assert held == {"Harbour": REJECTED}, "the later one counts"
    check_invariants(catalogue)


def test_a_decision_of_an_edited_photograph_meets_one_on_another_spelling(
    catalogue: Catalogue, folder: Folder
) -> None:
    decide(catalogue, "harbour", ACCEPTED)
    folder.put(C, "c, edited")
    catalogue.scan()
    decide(catalogue, "Harbour", REJECTED)
    keep_decisions(catalogue)
    held = {tag: v for (path, tag), v in decisions(catalogue).items() if path == C}
    assert held == {"Harbour": REJECTED}, "the later one counts"
    check_invariants(catalogue)
