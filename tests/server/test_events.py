"""Photographs by event: when one begins, what its heading says, and the groups of a tag's page."""

import numpy as np
import pytest

from tagkin.catalogue import Catalogue
from tagkin.catalogue.events import Moment, read_moments, split_events
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
