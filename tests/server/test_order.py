"""Answers correct the confidences of their tag at once, and those of other tags a little."""

import numpy as np
import pytest

from tagkin.catalogue import ACCEPTED, Catalogue, Filters
from tagkin.server.asking import AnswerCurve, Answers, list_bands
from tagkin.server.order import Order, Reading
from tests.catalogue.suggested import content, offer

from .browser import Browser
from .conftest import tag

PATHS = ("a.jpg", "b.jpg", "2024/c.jpg", "2024/d.jpg")


@pytest.fixture
def offered(catalogue: Catalogue) -> Catalogue:
    """Twelve tags, each at 61 % for four photographs, of which none was tagged completely."""
    catalogue.completeness.declare_incomplete("")
    catalogue.database.execute("DELETE FROM suggestions")
    offer(catalogue, {path: {f"tag {i:02}": 0.61 for i in range(12)} for path in PATHS})
    return catalogue


def answer(catalogue: Catalogue, name: str, accepted: dict[str, bool]) -> None:
    pairs = {path: (content(catalogue, path), tag(catalogue, name)) for path in accepted}
    yes, no = ([pairs[p] for p, y in accepted.items() if y == value] for value in (True, False))
    catalogue.decisions.decide_pairs(yes, no)


def test_answers_change_the_confidences_of_their_tag(browser: Browser, offered: Catalogue) -> None:
    first, other = tag(offered, "tag 00"), tag(offered, "tag 01")
    a, b, c, _ = (content(offered, path) for path in PATHS)
    before = browser.get("/api/v1/state").json["expected"]
    browser.decide_page(first, {"accept": [], "reject": [a, b, c]})
    bands = list_bands(np.full(3, 0.61), np.zeros(3))
    start = AnswerCurve.start(bands)
    expected, others = (float(c.correct(np.array([0.61]))[0]) for c in (start.add(bands), start))
    assert expected < 0.4 < 0.55 < others < 0.61
    shown = browser.get(f"/api/v1/tags/{first}/suggestions").json
    assert shown["suggestions"][0]["confidence"] == pytest.approx(expected, abs=1e-4)
    assert shown["tag"]["expected"] == pytest.approx(expected, abs=0.05)
    untouched = browser.get(f"/api/v1/tags/{other}/suggestions").json
    confidences = [s["confidence"] for s in untouched["suggestions"]]
    assert confidences == pytest.approx([others] * 4, abs=1e-4)
    after = browser.get("/api/v1/state").json["expected"]
    assert after == pytest.approx(before - 4 * 0.61 + expected, abs=0.1)
    photograph = browser.photograph(PATHS[3])
    by_tag = {s["name"]: s["confidence"] for s in photograph["suggestions"]}
    assert by_tag["tag 00"] == pytest.approx(expected, abs=1e-4)
    assert by_tag["tag 01"] == pytest.approx(others, abs=1e-4)
    names = [row["name"] for row in browser.get("/api/v1/tags").json["tags"]]
    assert names[-1] == "tag 00"

    browser.post("/api/v1/undo", {})
    shown = browser.get(f"/api/v1/tags/{first}/suggestions").json["suggestions"]
    assert [s["confidence"] for s in shown] == [0.61] * 4


def test_a_rejected_tag_is_not_asked_next(offered: Catalogue) -> None:
    order = Order()
    question = Reading(offered, order).question("most-right")
    assert question is not None
    asked = question[0]
    name = offered.tags.count(asked).name
    answer(offered, name, dict.fromkeys(PATHS[:3], False))
    order.learn([asked])
    assert (Reading(offered, order).question("most-right") or (asked,))[0] != asked


def test_answers_to_an_earlier_model_do_not_count(offered: Catalogue) -> None:
    answer(offered, "tag 00", dict.fromkeys(PATHS[:2], False))
    assert len(Answers(*offered.suggestions.answers_to_model()).tags) == 2
    with offered.database.run("train"):
        pass
    assert not len(Answers(*offered.suggestions.answers_to_model()).tags)
    answer(offered, "tag 00", {PATHS[2]: True})  # to a suggestion before the training
    assert not len(Answers(*offered.suggestions.answers_to_model()).tags)
    offer(offered, {PATHS[3]: {"tag 00": 0.5, "tag 01": 1.0}})
    answer(offered, "tag 00", {PATHS[3]: True})
    answer(offered, "tag 01", {PATHS[3]: True})
    answers = Answers(*offered.suggestions.answers_to_model())
    assert answers.tags.tolist() == [tag(offered, "tag 01"), tag(offered, "tag 00")]
    assert answers.contents.tolist() == [content(offered, PATHS[3])] * 2
    assert answers.confidences.tolist() == [1.0, 0.5]
    assert answers.accepted.tolist() == [1, 1]


def test_the_last_answers_count_for_all_tags(offered: Catalogue) -> None:
    """Whichever model was asked about, but not what was accepted in bulk or undone."""
    answer(offered, "tag 00", {PATHS[0]: True, PATHS[1]: False})
    with offered.database.run("train"):
        pass
    offered.decisions.decide(ACCEPTED, Filters(tags=["tag 01"]))
    answer(offered, "tag 02", {PATHS[0]: True})
    last = Answers(*offered.suggestions.last_answers())
    assert last.confidences.tolist() == [0.61] * 3
    assert last.accepted.sum() == 2
    assert Answers(*offered.suggestions.last_answers(1)).tags.tolist() == [tag(offered, "tag 02")]


def test_what_was_accepted_in_bulk_is_not_an_answer(offered: Catalogue) -> None:
    offered.decisions.decide(ACCEPTED, Filters(tags=["tag 00"]))
    assert not len(Answers(*offered.suggestions.answers_to_model()).tags)


def test_the_forecast_is_of_the_best_pages(offered: Catalogue) -> None:
    offer(offered, {path: {"sure": 0.95, "not": 0.1} for path in PATHS})
    reading = Reading(offered, Order())
    assert reading.forecast(4) == pytest.approx(4 * 0.95)
    assert reading.forecast(2) == pytest.approx(2 * 0.95)
    assert reading.forecast(10**6) == pytest.approx(4 * (0.95 + 0.1))
