"""Photographs by event: when one begins, what its heading says, and the groups of a tag's page."""

from itertools import pairwise

import numpy as np
import pytest

from tagkin.catalogue import Catalogue
from tagkin.catalogue.events import MOST, EventIndex, Moment, read_moments, split_events
from tagkin.server.by_event import title
from tests.catalogue.suggested import content, offer

from .browser import Browser
from .conftest import tag

PATHS = ("a.jpg", "b.jpg", "2024/c.jpg", "2024/d.jpg")


def times(*texts: str) -> np.ndarray:
    return np.array(texts, dtype="datetime64[ms]")


def test_a_pause_of_three_hours_ends_an_event() -> None:
    taken = times("2016-07-12T17:10", "2016-07-12T14:10", "2016-07-12T20:10", "2016-07-12T17:09:59")
    assert split_events(taken).tolist() == [0, 0, 1, 0]
    assert split_events(times()).tolist() == []


@pytest.mark.parametrize(
    ("taken", "heading"),
    [
        (("2016-07-12T14:10", "2016-07-12T15:30:59"), "Tue 12 July 2016, 14:10 to 15:30"),
        (("2016-07-12T14:10", "2016-07-12T14:10:20"), "Tue 12 July 2016, 14:10"),
        (("2016-07-12T14:10",), "12 July 2016, 14:10"),
        (("2016-07-12T22:10", "2016-07-13T01:05"), "Tue 12 July, 22:10 to Wed 13 July 2016, 01:05"),
        (
            ("2016-12-31T23:10", "2017-01-01T01:05"),
            "Sat 31 December 2016, 23:10 to Sun 1 January 2017, 01:05",
        ),
    ],
)
def test_headings(taken: tuple[str, ...], heading: str) -> None:
    assert title([Moment(time, "") for time in times(*taken)]) == heading


def put_times(catalogue: Catalogue, taken: dict[str, str | None]) -> None:
    for path, time in taken.items():
        catalogue.database.execute("UPDATE photographs SET taken = ? WHERE path = ?", (time, path))


def groups(browser: Browser, number: int) -> list[tuple[str, list[int]]]:
    """The headings of a tag's page, each with its photographs."""
    found = []
    for event in browser.get(f"/tags/{number}").elements("//div[contains(@class, 'event ')]"):
        heading = " ".join(event.xpath("string(h2)").split())
        found.append((heading, [int(n) for n in event.xpath(".//li/button/@data-content")]))
    return found


def test_a_tag_is_shown_by_event(browser: Browser, catalogue: Catalogue) -> None:
    """In the order of time, unlikely ones in groups of their own below the line."""
    offer(catalogue, {path: {"new": 0.9 if i else 0.2} for i, path in enumerate(PATHS)})
    a, b, c, d = (content(catalogue, path) for path in PATHS)
    put_times(
        catalogue,
        {
            "a.jpg": "2016-07-12T15:00:00",
            "b.jpg": "2016-07-12T15:30:00",
            "2024/c.jpg": "2015-01-02T03:04:05",
            "2024/d.jpg": "2016-07-12T14:10:00",
        },
    )
    assert groups(browser, tag(catalogue, "new")) == [
        ("2 January 2015, 03:04", [c]),
        ("Tue 12 July 2016, 14:10 to 15:30 · 2 photographs", [d, b]),
        ("12 July 2016, 15:00", [a]),
    ]


def test_photographs_without_a_time_come_last_by_folder(
    browser: Browser, catalogue: Catalogue
) -> None:
    offer(catalogue, {path: {"new": 0.9 - i / 100} for i, path in enumerate(PATHS)})
    a, b, c, d = (content(catalogue, path) for path in PATHS)
    number = tag(catalogue, "new")
    put_times(catalogue, dict.fromkeys(PATHS, None) | {"2024/d.jpg": "2016-07-12T14:10:00"})
    assert groups(browser, number) == [
        ("12 July 2016, 14:10", [d]),
        ("Top folder, without a time · 2 photographs", [a, b]),
        ("2024, without a time", [c]),
    ]
    put_times(catalogue, {"2024/c.jpg": "2016-07-12T14:10:00"})
    assert groups(browser, number)[1:] == [("Without a time · 2 photographs", [a, b])]


def test_of_copies_the_earliest_time_counts(catalogue: Catalogue) -> None:
    put_times(catalogue, {"a.jpg": "2016-07-12T14:10:00.250", "b.jpg": "2016-07-12T15:10:00"})
    a, b = content(catalogue, "a.jpg"), content(catalogue, "b.jpg")
    catalogue.database.execute("UPDATE photographs SET content = ? WHERE content = ?", (a, b))
    moments = read_moments(catalogue.database, [a, b])
    assert moments == {a: Moment(np.datetime64("2016-07-12T14:10:00.250"), "")}


@pytest.mark.parametrize("taken", ["2016-07-12", "2016-07-12T00:00:00", "2000-01-01T00:00:12"])
def test_no_photograph_was_taken_by_a_clock_that_was_never_set(
    catalogue: Catalogue, taken: str
) -> None:
    put_times(catalogue, {"a.jpg": taken})
    a = content(catalogue, "a.jpg")
    assert np.isnat(read_moments(catalogue.database, [a])[a].time)


# --- the events of a collection ----------------------------------------------------------------


def test_events_of_all_photographs(catalogue: Catalogue) -> None:
    """In the order of time; of a folder, those without a time are one event."""
    a, b, c, d = (content(catalogue, path) for path in PATHS)
    put_times(
        catalogue,
        {
            "a.jpg": "2016-07-12T15:30:00",
            "b.jpg": "2016-07-12T15:00:00",
            "2024/c.jpg": None,
            "2024/d.jpg": None,
        },
    )
    events = EventIndex(catalogue.database)
    numbers = events.of(np.array([a, b, c, d, 999])).tolist()
    assert numbers == [0, 0, 2, 2, -1]  # one is a file that is no picture, in the top folder
    assert (events.members(0), events.members(2)) == ([b, a], [c, d])
    assert (len(events), int(events.firsts[0])) == (3, b)


def test_an_event_that_is_too_large_for_a_page_is_several(catalogue: Catalogue) -> None:
    run, n = catalogue.runs.history(1)[0].id, MOST + 10
    with catalogue.database.transaction():
        catalogue.database.execute("DELETE FROM doubts")
        for k in range(n):
            catalogue.database.execute(
                "INSERT INTO contents (digest) VALUES (?)", (k.to_bytes(32, "big"),)
            )
            number = catalogue.database.value("SELECT max(id) FROM contents")
            catalogue.database.execute(
                "INSERT INTO photographs (path, content, size, mtime, inode, added, taken) "
                "VALUES (?, ?, 1, 1, 1, ?, ?)",
                (f"many/{k}.jpg", number, run, f"2001-01-01T12:00:{k % 60:02}"),
            )
    events = EventIndex(catalogue.database)
    assert [len(events.members(event)) for event in range(2)] == [MOST, 10]


def test_an_empty_catalogue_has_no_events(catalogue: Catalogue) -> None:
    catalogue.database.execute("UPDATE photographs SET gone = 1")
    events = EventIndex(catalogue.database)
    assert len(events) == 0
    assert events.of(np.array([1])).tolist() == [-1]


def test_events_that_pay_most_come_first(browser: Browser, catalogue: Catalogue) -> None:
    catalogue.database.execute("DELETE FROM suggestions")
    offer(
        catalogue,
        {
            "a.jpg": {"one": 0.9, "two": 0.6, "three": 0.2},
            "b.jpg": {"one": 0.9},
            "2024/c.jpg": {"one": 0.4},
            "2024/d.jpg": {"one": 0.8},
        },
    )
    a, b, c = (content(catalogue, path) for path in PATHS[:3])
    put_times(catalogue, dict.fromkeys(PATHS, None))
    assert browser.next_event() == a
    assert browser.next_event(f"not={b}") == c  # of the same event
    assert browser.next_event(f"not={a},{c}") == a  # all were passed, so they come again
    browser.post("/api/v1/decisions", {"accept": [[a, "one"], [b, "one"]]})
    assert browser.next_event() == c  # what was decided pays no more
    every = [[content(catalogue, path), tag] for path in PATHS for tag in ("one", "two", "three")]
    browser.post("/api/v1/decisions", {"accept": every})
    assert browser.next_event() is None
    assert browser.get("/events?not=x").status == 422


def test_an_event_says_to_how_many_a_tag_would_go(browser: Browser, catalogue: Catalogue) -> None:
    catalogue.database.execute("DELETE FROM suggestions")
    offer(
        catalogue,
        {
            "a.jpg": {"all": 0.9, "sand": 0.6},
            "b.jpg": {"all": 0.7, "less": 0.4},
            "2024/c.jpg": {"all": 0.8},
            "2024/d.jpg": {"all": 0.8, "dog": 0.7},
        },
    )
    put_times(catalogue, {path: f"2016-07-12T14:0{k}:00" for k, path in enumerate(sorted(PATHS))})
    page = browser.get(f"/events/{content(catalogue, 'b.jpg')}")
    assert "<h1>Tue 12 July 2016, 14:00 to 14:03</h1>" in page.text
    offers = [
        " ".join(item.xpath("string(button)").split())
        for item in page.elements("//*[@id='offers']/li")
    ]
    assert offers == ["1 all all 4", "2 dog 1 of 4", "3 sand 1 of 4"]
    shown = page.elements("//*[@id='grid']//button/@data-content")
    assert [int(n) for n in shown] == [content(catalogue, path) for path in sorted(PATHS)]
    assert "beach (2)" in page.text
    browser.post("/api/v1/decisions", {"accept": [[content(catalogue, "a.jpg"), "all"]]})
    page = browser.get(f"/events/{content(catalogue, 'b.jpg')}")
    assert "the other 3" in page.text


def test_a_photograph_alone_is_an_event_of_one(browser: Browser, catalogue: Catalogue) -> None:
    put_times(catalogue, {path: f"20{k + 10}-07-12T14:00:00" for k, path in enumerate(PATHS)})
    a = content(catalogue, "a.jpg")
    assert browser.get(f"/events/{a}").elements("//*[@id='photograph']")
    page = browser.get(f"/photographs/{a}?not=7,8")
    (following,) = page.elements("//*[@id='next']/@href")
    assert following == f"events?not=7,8,{a}"


def test_a_photograph_leads_through_its_event(browser: Browser, catalogue: Catalogue) -> None:
    put_times(catalogue, {path: f"2016-07-12T14:0{k}:00" for k, path in enumerate(reversed(PATHS))})
    contents = [content(catalogue, path) for path in reversed(PATHS)]
    for number, following in pairwise(contents):
        page = browser.get(f"/photographs/{number}")
        assert page.elements("//*[@id='next']/@href") == [f"photographs/{following}"]
        assert page.elements("//*[@id='its-event']/@href") == [f"events/{number}"]
    page = browser.get(f"/photographs/{contents[-1]}")
    assert page.elements("//*[@id='next']/@href") == [f"events?not={contents[-1]}"]


def test_the_overview_shows_months(browser: Browser, catalogue: Catalogue) -> None:
    """How much of each is tagged, and what waits; a click opens its events."""
    put_times(
        catalogue,
        {
            "a.jpg": "2016-07-12T14:00:00",
            "b.jpg": "2016-07-13T14:00:00",
            "2024/c.jpg": "2015-01-02T03:04:05",
            "2024/d.jpg": None,
        },
    )
    catalogue.database.execute(
        "DELETE FROM suggestions WHERE content = ?", (content(catalogue, "2024/c.jpg"),)
    )
    page = browser.get("/overview")
    assert page.elements("//table[@id='years']//th[@scope='row']/text()") == ["2016", "2015"]
    links = page.elements("//table[@id='years']//a")
    assert [(link.get("href"), link.get("title")) for link in links] == [
        ("events?taken=2016-07", "July 2016: 2 photographs, 2 tagged, 2 wait"),
        ("search?taken=2015-01", "January 2015: 1 photograph, 1 tagged, 0 wait"),
    ]
    shown = browser.next_event("taken=2016-07")
    assert shown in {content(catalogue, "a.jpg"), content(catalogue, "b.jpg")}
