"""Answers to the photographs of a moment count at once for the others taken then."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tagkin.catalogue import Catalogue, OpenSuggestion, open_for_scan
from tagkin.server import Review
from tagkin.server.near_answers import AnswersInTime, NearAnswers
from tagkin.server.order import Order, Reading
from tests.catalogue.suggested import content, new_suggestion, store
from tests.catalogue.test_facts import old
from tests.collection.test_facts import packet, photograph

from .browser import Browser, Running
from .conftest import tag

HOUR = 3600.0
MORNING = [f"morning-{i}.jpg" for i in range(8)]
OTHERS = ["later.jpg", "untimed.jpg"]
UNKNOWN = [f"more {i:02}.jpg" for i in range(70)]  # of other years, more likely than the morning


def put(root: Path, name: str, time: str | None, tags: tuple[str, ...] = ()) -> None:
    path = old(photograph(root / name, time))
    if tags:
        items = "".join(f"<rdf:li>{tag}</rdf:li>" for tag in tags)
        subject = f'<dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Bag>{items}'
        path.with_suffix(".xmp").write_bytes(packet("", f"{subject}</rdf:Bag></dc:subject>"))


@pytest.fixture
def trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalogue]:
    """A tagged day, of which every photograph has Lisbon and few have wrasse; others are asked."""
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    root = tmp_path / "photos"
    root.mkdir()
    for i in range(24):
        tags = ("Lisbon", "wrasse") if i in (2, 8) else ("Lisbon",)
        put(root, f"tagged {i}.jpg", f"2023:05:01 10:{i:02}:01", tags)
    for i, name in enumerate(MORNING):
        put(root, name, f"2024:05:01 10:{4 * i:02}:00")
    put(root, "later.jpg", "2024:05:03 10:00:00")
    put(root, "untimed.jpg", None)
    with open_for_scan(root) as catalogue:
        catalogue.scan()
        with catalogue.database.run("suggest") as run:
            each = [new_suggestion(name, 0.4) for name in ("Lisbon", "wrasse", "new")]
            asked = [content(catalogue, name) for name in [*MORNING, *OTHERS]]
            store(catalogue, run.id, [(number, each) for number in asked])
        yield catalogue


def answer(catalogue: Catalogue, name: str, paths: list[str], accepted: bool = True) -> None:
    pairs = [(content(catalogue, path), tag(catalogue, name)) for path in paths]
    catalogue.decisions.decide_pairs(pairs if accepted else [], [] if accepted else pairs)


def confidences(catalogue: Catalogue, name: str, order: Order | None = None) -> dict[str, float]:
    """The corrected confidences of a tag, by path, in their order."""
    reading = Reading(catalogue, order or Order())
    number = tag(catalogue, name)
    listed = reading.correct(number, reading.suggestions(number, 100))
    files = catalogue.photographs.files_of([s.content for s in listed])
    return {files[s.content].path: s.confidence for s in listed}


def test_the_equation() -> None:
    answers = AnswersInTime(np.array([0.0, HOUR]), np.array([1, 0]), 0.5)
    times = np.array([0.5 * HOUR, 0.0, -30 * HOUR, np.nan, 25 * HOUR])
    weights = np.array([[1 / 2, 1 / 2], [1, 1 / 3], [0, 0], [0, 0], [0, 1 / 49]])
    p = np.array([0.2, 0.4, 0.6, 0.8, 0.7])
    expected = (weights[:, 0] + 0.5 * p) / (weights.sum(1) + 0.5)
    np.testing.assert_allclose(answers.correct(times, p), expected)


def test_only_the_nearest_answers_count() -> None:
    """So a day of thousands of answers takes no longer."""
    n = 500
    some = AnswersInTime(np.arange(n) * 60.0, np.repeat([1, 0], [400, 100]), 1.0)
    (at_start, at_end) = some.correct(np.array([0.0, n * 60.0]), np.array([0.5, 0.5]))
    assert at_start > 0.9
    assert at_end < 0.1  # the last 50 answers rejected it


def test_accepting_raises_the_rest_of_that_day(trip: Catalogue) -> None:
    answer(trip, "Lisbon", MORNING[:3])
    shown = confidences(trip, "Lisbon")
    others = [shown[name] for name in OTHERS]
    assert others[0] == pytest.approx(others[1])  # another day, and no time: only the curve
    assert others[0] < 0.75
    assert min(shown[name] for name in MORNING[3:]) > 0.8
    assert list(shown)[:5] == sorted(MORNING[3:])  # nearest first
    assert list(shown.values()) == sorted(shown.values(), reverse=True)


def test_rejecting_lowers_it(trip: Catalogue) -> None:
    answer(trip, "Lisbon", MORNING[:3], accepted=False)
    shown = confidences(trip, "Lisbon")
    assert max(shown[name] for name in MORNING[3:]) < 0.1 < shown["later.jpg"] - 0.1
    assert shown["later.jpg"] == pytest.approx(shown["untimed.jpg"])
    assert set(list(shown)[:2]) == set(OTHERS)


def test_a_tag_of_single_photographs_hardly_moves(trip: Catalogue) -> None:
    answer(trip, "wrasse", MORNING[:3])
    shown = confidences(trip, "wrasse")
    assert 0 < max(shown[name] for name in MORNING[3:]) - shown["later.jpg"] < 0.15
    read = NearAnswers(lambda catalogue: catalogue.moments).read(trip)
    # 24 are near another wrasse: 2 of them have it
    assert read[tag(trip, "wrasse")].strength == pytest.approx((2 + 24 - 3) / 3)


def test_the_strength_of_answers_is_that_of_the_tag(trip: Catalogue) -> None:
    for name in ("Lisbon", "new"):
        answer(trip, name, MORNING[:1])
    read = NearAnswers(lambda catalogue: catalogue.moments).read(trip)
    assert read[tag(trip, "Lisbon")].strength == 0.3
    assert read[tag(trip, "new")].strength == 1  # nobody knows yet
    answer(trip, "new", ["untimed.jpg"])
    assert len(NearAnswers(lambda catalogue: catalogue.moments).read(trip)) == 2


def test_photographs_deep_in_the_list_come_first(trip: Catalogue) -> None:
    """Not only those of the page; all pages together show each photograph once."""
    put_unknown(trip)
    answer(trip, "Lisbon", MORNING[:3])
    number, order = tag(trip, "Lisbon"), Order()
    reading = Reading(trip, order)
    first = reading.suggestions(number, 5)
    assert {s.content for s in first} == {content(trip, name) for name in MORNING[3:]}
    assert all(s.run is not None for s in first)
    question = reading.question("most-right")
    assert question is not None
    assert question.tag == number
    assert {s.content for s in question.suggestions} >= {s.content for s in first}
    seen, after = [], None
    while page := reading.suggestions(number, 7, after):
        seen += [s.content for s in page]
        after = page[-1]
    assert len(seen) == len(set(seen)) == len(UNKNOWN) + 5 + 2


def test_the_order_follows_the_answers_to_its_tag_only(trip: Catalogue) -> None:
    """Ordering every tag anew after every answer would take long."""
    order, number = Order(), tag(trip, "Lisbon")
    assert order.rank(trip, number) is None
    answer(trip, "Lisbon", MORNING[:1])
    order.learn([number])
    first = order.rank(trip, number)
    answer(trip, "wrasse", MORNING[:3])
    order.learn([tag(trip, "wrasse")])
    assert order.rank(trip, number) is first
    reading = Reading(trip, order)
    seen, after = [], None
    while page := reading.suggestions(number, 2, after):
        seen += [s.content for s in page]
        after = page[-1]
    assert len(seen) == len(set(seen)) == 9
    answer(trip, "Lisbon", MORNING[1:2])
    order.learn([number])
    second = order.rank(trip, number)
    assert first is not None
    assert second is not None
    assert set(first.contents) - set(second.contents) == {content(trip, MORNING[1])}
    answered = OpenSuggestion(content(trip, MORNING[1]), "", 0.4)
    left = {s.content for s in reading.suggestions(number, 100, answered)}
    assert {content(trip, name) for name in OTHERS} < left  # those less likely than it
    order.renew()
    assert order.rank(trip, number) is not second


def put_unknown(catalogue: Catalogue) -> None:
    """Photographs of other years, more likely than the morning."""
    for i, name in enumerate(UNKNOWN):
        put(catalogue.root, name, f"20{i % 20:02}:03:01 10:{i // 20:02}:07")
    catalogue.scan()
    with catalogue.database.run("suggest") as run:
        each = [(content(catalogue, name), [new_suggestion("Lisbon", 0.6)]) for name in UNKNOWN]
        store(catalogue, run.id, each)


def test_the_next_page_has_what_rose(trip: Catalogue, tmp_path: Path) -> None:
    """It begins with them, though the former page left others open, which no page repeats."""
    put_unknown(trip)
    review = Review(trip, tmp_path / "cache", fits=False)
    running = Running(review)
    browser = Browser(running.port)
    browser.open(running.access.key)
    number = tag(trip, "Lisbon")

    def page(query: str = "") -> tuple[list[int], str]:
        shown = browser.get(f"/tags/{number}?n=20{query}")
        (grid,) = shown.elements("//*[@id='grid']")
        tiles = grid.xpath(".//li/button/@data-content")
        return [int(one) for one in tiles], grid.get("data-next")

    first, after = page()
    accepted = [content(trip, name) for name in MORNING[:3]]
    rest = {content(trip, name) for name in MORNING[3:]}
    assert not rest & set(first)
    left = [[one, number] for one in first]
    browser.decide_page(number, {"accept": accepted, "reject": [], "left": left})
    second, after = page(f"&after={after}")
    assert rest < set(second)
    assert not set(first) & set(second)
    left = [[one, number] for one in second]
    browser.post("/api/v1/decisions", {"accept": [], "reject": [], "left": left})
    third, _ = page(f"&after={after}")
    assert len(third) == 20
    assert not {*first, *second} & set(third)
    running.stop()
    review.close()


def test_pages_and_filters_follow_until_undo(trip: Catalogue, tmp_path: Path) -> None:
    review = Review(trip, tmp_path / "cache", fits=False)
    running = Running(review)
    browser = Browser(running.port)
    browser.open(running.access.key)
    number = tag(trip, "Lisbon")
    address = f"/api/v1/tags/{number}/suggestions"
    rest = [content(trip, name) for name in MORNING[3:]]

    def shown(query: str = "") -> dict[int, float]:
        cards = browser.get(f"{address}{query}").json["suggestions"]
        return {one["content"]: one["confidence"] for one in cards}

    before, expected = shown(), browser.get("/api/v1/state").json["expected"]
    assert set(before.values()) == {0.4}
    accepted = [content(trip, name) for name in MORNING[:3]]
    browser.decide_page(number, {"accept": accepted, "reject": []})
    after = shown()
    assert min(after[one] for one in rest) > 0.8
    assert list(after)[:5] == rest
    tags = {row["name"]: row["expected"] for row in browser.get("/api/v1/tags").json["tags"]}
    assert tags["Lisbon"] == pytest.approx(sum(after.values()), abs=0.01)
    assert browser.get("/api/v1/state").json["expected"] > expected
    only = shown("?taken=2024")
    assert list(only)[:5] == rest
    assert content(trip, "untimed.jpg") not in only
    photograph_page = browser.photograph(MORNING[7])["suggestions"]
    assert {s["name"]: s["confidence"] for s in photograph_page}["Lisbon"] == after[rest[-1]]
    browser.post("/api/v1/undo", {})
    assert shown() == before
    running.stop()
    review.close()


def test_events_follow_answers(trip: Catalogue, tmp_path: Path) -> None:
    """An event that answers made likely comes, and one that they made unlikely does not."""
    with trip.database.run("suggest") as run:  # the morning is one event, later.jpg another
        every = [(content(trip, name), [new_suggestion("Lisbon", 0.4)]) for name in MORNING]
        later = [(content(trip, "later.jpg"), [new_suggestion("Lisbon", 0.6)])]
        trip.suggestions.replace(run.id, every + later)
    review = Review(trip, tmp_path / "cache", fits=False)
    running = Running(review)
    browser = Browser(running.port)
    browser.open(running.access.key)
    lisbon, event = tag(trip, "Lisbon"), content(trip, MORNING[0])

    def waiting() -> dict[str, str]:
        months = browser.get("/overview").elements("//table[@id='years']//a/@title")
        return {title.partition(":")[0]: title.rpartition(", ")[2] for title in months}

    assert browser.next_event() == content(trip, "later.jpg")
    assert waiting()["May 2024"] == "1 waits"
    accepted = [content(trip, name) for name in MORNING[:3]]
    browser.decide_page(lisbon, {"accept": accepted, "reject": []})
    assert browser.next_event() == event
    assert waiting()["May 2024"] == "6 wait"
    assert len(browser.get(f"/events/{event}").elements("//*[@id='offers']/li")) == 1
    browser.post("/api/v1/undo")
    browser.decide_page(lisbon, {"accept": [], "reject": [content(trip, "later.jpg")]})
    assert browser.next_event() is None
    assert waiting()["May 2024"] == "0 wait"
    running.stop()
    review.close()
