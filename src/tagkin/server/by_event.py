"""Photographs by event: the groups of a tag's page, and their headings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tagkin.catalogue import Catalogue
from tagkin.catalogue.events import Moment, read_moments, split_events
from tagkin.server.filtering import MONTHS
from tagkin.server.stacks import Answer

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_UNTIMED = "Without a time"


class Group(NamedTuple):
    """Cards of one event."""

    title: str
    cards: list[Answer]
    n_photographs: int


def group_cards(catalogue: Catalogue, cards: Sequence[Answer]) -> list[Group]:
    """Return cards by event, in the order of time; those without a time come last.

    If these lie in several folders, each folder is a group. Cards without a time keep their order.
    """
    moments = read_moments(catalogue.database, [card["content"] for card in cards])
    timed = [card for card in cards if not np.isnat(moments[card["content"]].time)]
    times = np.array([moments[card["content"]].time for card in timed], dtype="datetime64[ms]")
    numbers = split_events(times)
    events: dict[int, list[Answer]] = {}
    for at in np.argsort(times, kind="stable").tolist():
        events.setdefault(int(numbers[at]), []).append(timed[at])
    folders: dict[str, list[Answer]] = {}
    for card in cards:
        moment = moments[card["content"]]
        if np.isnat(moment.time):
            folders.setdefault(moment.folder, []).append(card)
    groups = [(title([moments[c["content"]] for c in event]), event) for event in events.values()]
    groups += [
        (_UNTIMED if len(folders) == 1 else untimed_title(folder), folders[folder])
        for folder in sorted(folders)
    ]
    return [Group(text, some, sum(1 + len(c["stack"]) for c in some)) for text, some in groups]


def untimed_title(folder: str) -> str:
    """Return the heading of photographs without a time in a folder."""
    return f"{folder or 'Top folder'}, without a time"


def title(moments: Sequence[Moment]) -> str:
    """Return the heading of an event, such as "Sat 12 July 2016, 14:10 to 15:30"."""
    times = [moment.time for moment in moments]
    first, last = min(times), max(times)
    if first.astype("datetime64[m]") == last.astype("datetime64[m]"):
        day = _day(first)  # of a single photograph, there is little room
        return (
            f"{day.partition(' ')[2] if len(times) == 1 else day} {_year(first)}, {_clock(first)}"
        )
    if first.astype("datetime64[D]") == last.astype("datetime64[D]"):
        return f"{_day(first)} {_year(first)}, {_clock(first)} to {_clock(last)}"
    year = "" if _year(first) == _year(last) else f" {_year(first)}"
    return f"{_day(first)}{year}, {_clock(first)} to {_day(last)} {_year(last)}, {_clock(last)}"


def _day(time: np.datetime64) -> str:
    day = time.astype("datetime64[D]").item()
    return f"{_DAYS[day.weekday()]} {day.day} {MONTHS[day.month - 1]}"


def _year(time: np.datetime64) -> int:
    return int(time.astype("datetime64[D]").item().year)


def _clock(time: np.datetime64) -> str:
    return str(time.astype("datetime64[m]").item().strftime("%H:%M"))
