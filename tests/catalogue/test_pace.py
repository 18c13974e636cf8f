"""The pace of a review: seconds per answer, and what the next answers bring."""

import datetime

import pytest

from tagkin.catalogue import Catalogue

from .suggested import content, offer

PAGES = {
    "a.jpg": {f"tag {i:02}": 0.9 for i in range(30)},
    "b.jpg": {f"tag {i:02}": 0.5 for i in range(30)},
}


def answer(catalogue: Catalogue, path: str, n: int, seconds: float) -> None:
    """Answer the next open suggestions of a photograph in one step, so long after the last."""
    pairs = catalogue.database.rows(
        "SELECT content, tag FROM suggestions WHERE content = ? ORDER BY tag LIMIT ?",
        (content(catalogue, path), n),
    )
    run = catalogue.decisions.decide_pairs(pairs).run
    last = catalogue.database.value("SELECT max(started_at) FROM runs WHERE id < ?", (run,))
    moment = datetime.datetime.fromisoformat(last) + datetime.timedelta(seconds=seconds)
    catalogue.database.execute(
        "UPDATE runs SET started_at = ? WHERE id = ?", (moment.isoformat(), run)
    )


def test_the_median_answer_counts(catalogue: Catalogue) -> None:
    offer(catalogue, PAGES)
    answer(catalogue, "a.jpg", 1, 5)  # the first step: nobody knows when it began
    answer(catalogue, "a.jpg", 10, 20)
    assert catalogue.runs.seconds_per_answer() is None  # too few
    answer(catalogue, "a.jpg", 10, 30)
    answer(catalogue, "b.jpg", 1, 60)  # one answer that took long
    assert catalogue.runs.seconds_per_answer() == pytest.approx(3)
    answer(catalogue, "b.jpg", 20, 4000)  # after a break: nobody knows how long it took
    assert catalogue.runs.seconds_per_answer() == pytest.approx(3)


def test_a_script_has_no_pace_of_a_person(catalogue: Catalogue) -> None:
    offer(catalogue, PAGES)
    for _ in range(25):
        answer(catalogue, "a.jpg", 1, 0.1)  # faster than anybody reacts
    assert catalogue.runs.seconds_per_answer() is None
    for _ in range(3):
        answer(catalogue, "b.jpg", 8, 2)  # pages that nobody has looked at for long enough
    assert catalogue.runs.seconds_per_answer() is None
    answer(catalogue, "b.jpg", 6, 30)
    assert catalogue.runs.seconds_per_answer() == pytest.approx(0.25)
