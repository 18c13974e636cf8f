"""Photographs by event: groups of a tag's page, headings, an event with its likely tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tagkin.catalogue import Catalogue
from tagkin.catalogue.events import EventIndex, Moment, read_moments, split_events
from tagkin.catalogue.open_index import OpenIndex
from tagkin.catalogue.selection import Month
from tagkin.server.answers import LIKELY, card, decisions_on
from tagkin.server.asking import page_value
from tagkin.server.filtering import MONTHS
from tagkin.server.order import Reading
from tagkin.server.stacks import Answer, stack_results
from tagkin.wording import count

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
    moments = read_moments(catalogue.database, [entry["content"] for entry in cards])
    timed = [entry for entry in cards if not np.isnat(moments[entry["content"]].time)]
    times = np.array([moments[entry["content"]].time for entry in timed], dtype="datetime64[ms]")
    numbers = split_events(times)
    events: dict[int, list[Answer]] = {}
    for at in np.argsort(times, kind="stable").tolist():
        events.setdefault(int(numbers[at]), []).append(timed[at])
    folders: dict[str, list[Answer]] = {}
    for entry in cards:
        moment = moments[entry["content"]]
        if np.isnat(moment.time):
            folders.setdefault(moment.folder, []).append(entry)
    groups = [(title([moments[c["content"]] for c in event]), event) for event in events.values()]
    groups += [
        (_UNTIMED if len(folders) == 1 else untimed_title(folder), folders[folder])
        for folder in sorted(folders)
    ]
    return [Group(text, some, sum(1 + len(c["stack"]) for c in some)) for text, some in groups]


# --- an event ---------------------------------------------------------------------------------


def next_event(
    reading: Reading, events: EventIndex, index: OpenIndex, passed: Sequence[int]
) -> int | None:
    """Return the first photograph of the event that pays most; None if nothing is likely.

    Events of photographs that a person `passed` come again after all others. An event is worth
    R^1.25 / E, see `best_page`: R of its likely suggestions are right, and E is one key for each of
    its tags, one click for each wrong photograph, and one key to go on.
    """
    tags, contents, p = reading.order.likely(reading.catalogue, index, LIKELY)
    if reading.selected is not None:
        has = reading.selected.photographs.has(contents)
        tags, contents, p = tags[has], contents[has], p[has]
    numbers = events.of(contents)
    known = numbers >= 0
    numbers, tags, p = numbers[known], tags[known], p[known]
    if not len(numbers):
        return None
    right = np.bincount(numbers, p, len(events))
    most = int(tags.max()) + 1
    pairs = np.sort(numbers * most + tags)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # np.unique takes ten times as long
    n_tags = np.bincount(pairs // most, minlength=len(events))
    values = page_value(right, 1 + n_tags + np.bincount(numbers, 1 - p, len(events)))
    others = events.of(np.array(passed, np.int64))
    left = np.setdiff1d(np.flatnonzero(right), others)
    left = left if len(left) else np.flatnonzero(right)
    return int(events.firsts[left[np.argmax(values[left])]])


def members_of(reading: Reading, events: EventIndex, content: int) -> list[int]:
    """Return the selected photographs of the event of a photograph, in the order of time."""
    (event,) = events.of(np.array([content])).tolist()
    members = [content] if event < 0 else events.members(event)
    if reading.selected is None:
        return members
    has = reading.selected.photographs.has(members)
    return [member for member, is_in in zip(members, has, strict=True) if is_in]


def event_answer(reading: Reading, contents: Sequence[int]) -> Answer:
    """Return the photographs of an event, the tags that are likely theirs, and those they have."""
    catalogue = reading.catalogue
    files = catalogue.photographs.files_of(contents)
    cards = [card(files[content]) for content in contents if content in files]
    moments = read_moments(catalogue.database, files)
    timed = [moment for moment in moments.values() if not np.isnat(moment.time)]
    folders = {moment.folder for moment in moments.values()}
    carried = catalogue.tags.on(list(files))
    offers = []
    for tag, suggestions in catalogue.suggestions.of_contents(files).items():
        likely = [s for s in reading.correct(tag, suggestions) if s.confidence >= LIKELY]
        if likely:
            n_have = len(carried.get(tag, ()))
            offers.append((sum(s.confidence for s in likely), tag, likely, n_have))
    offers.sort(key=lambda offer: (-offer[0], offer[1]))
    names = catalogue.tags.names_of([*carried, *(tag for _, tag, _, _ in offers)])
    return {
        "title": title(timed) if timed else untimed_title(min(folders, default="")),
        "folder": min(folders) if len(folders) == 1 else "",
        "cards": stack_results(catalogue, cards, apart=reading.is_of_burst),
        "n_photographs": len(cards),
        "offers": [
            {
                "tag": tag,
                "name": names[tag],
                "says": _reach(len(likely), n_have, len(cards)),
                "decisions": decisions_on(likely),
            }
            for _, tag, likely, n_have in offers
        ],
        "carried": sorted(
            ((names[tag], len(some)) for tag, some in carried.items()),
            key=lambda pair: (-pair[1], pair[0]),
        ),
    }


def _reach(n: int, n_have: int, n_photographs: int) -> str:
    """Say to how many photographs of an event a tag would go."""
    if n == n_photographs:
        return f"all {n}" if n > 1 else ""
    return f"the other {n}" if n + n_have == n_photographs else f"{n} of {n_photographs}"


# --- years ------------------------------------------------------------------------------------


def list_years(months: Sequence[Month]) -> list[tuple[str, list[Answer | None]]]:
    """Return years, the latest first, with their twelve months; None where nothing was taken."""
    years: dict[str, list[Answer | None]] = {}
    for month in months:
        if not month.month:
            continue
        name = f"{MONTHS[int(month.month[5:]) - 1]} {month.month[:4]}"
        says = (
            f"{name}: {count(month.n_photographs, 'photograph')}, {month.n_tagged:,} tagged, "
            f"{count(month.n_waiting, 'waits', 'wait')}"
        )
        row = years.setdefault(month.month[:4], [None] * 12)
        row[int(month.month[5:]) - 1] = {**month._asdict(), "says": says}
    return sorted(years.items(), reverse=True)


# --- headings ---------------------------------------------------------------------------------


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
