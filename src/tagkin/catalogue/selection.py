"""Filters that choose the photographs of a page, and how many photographs each choice leaves.

The columns that filters test are in memory, because a page counts every choice of every filter. At
100,000 photographs, that takes milliseconds instead of seconds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from tagkin.catalogue.database import Database, Row
from tagkin.collection.facts import FACTS
from tagkin.errors import InvalidInput
from tagkin.images.formats import suffixes_of_type

__all__ = ["FILTERS", "NONE", "Facets", "Month", "PhotographIndex", "Selected", "Selection"]

NONE = "(none)"
"""The choice of photographs without a date, camera, lens, rating or burst."""

_RATINGS = ("5", "4", "3", "2", "1", "-1", NONE)
_N_VALUES = 300  # choices of a filter, most photographs first
_PAIRS = 2**31  # more than there are tags


_FACTS = {fact.name: fact for fact in FACTS if fact.filter is not None}
FILTERS: dict[str, str] = {name: str(fact.filter) for name, fact in _FACTS.items()}
FILTERS["burst"] = "burst"
"""The kind of each filter, by the name of a fact.

A choice of a kind is

- ``folder``: a folder from the root of the collection, with its subfolders;
- ``month``: a year, ``2024``, or a month, ``2024-05``, by the camera's clock;
- ``name``: such as a camera;
- ``stars``: the fewest stars, "1" to "5", or "-1" for rejected photographs;
- ``type``: a file type, such as jpg, tif or raw;
- ``burst``: the number of a burst, or "any" for photographs in a burst;

or `NONE`.
"""


@dataclass(frozen=True, init=False)
class Selection:
    """Filters of photographs, all of which apply.

    Parameters
    ----------
    untagged : bool, optional
        True: only without tags; False: only with tags.
    tags : tuple of int
        All these tags, in files or accepted.
    **choices : str or None
        Choices of `FILTERS` by name. None does not restrict.
    """

    choices: tuple[tuple[str, str], ...]
    """Names of filters and their choices, in the order of `FILTERS`."""
    untagged: bool | None
    tags: tuple[int, ...]

    def __init__(
        self, *, untagged: bool | None = None, tags: Sequence[int] = (), **choices: str | None
    ):
        for name in choices.keys() - FILTERS.keys():
            raise InvalidInput(f"{name} is not a filter. Use {', '.join(FILTERS)}.")
        pairs = [(name, choices[name]) for name in FILTERS if name in choices]
        chosen = tuple((name, choice) for name, choice in pairs if choice is not None)
        for name, choice in chosen:
            _KINDS[FILTERS[name]].check(choice)
        for name, value in (("choices", chosen), ("untagged", untagged), ("tags", tuple(tags))):
            object.__setattr__(self, name, value)

    def choice(self, name: str) -> str | None:
        """Return the choice of a filter, or None without one."""
        return dict(self.choices).get(name)

    def to_dict(self) -> dict[str, object]:
        """Return the filters that are set, for the history."""
        others = {"untagged": self.untagged, "tags": self.tags or None}
        return dict(self.choices) | {name: v for name, v in others.items() if v is not None}

    @property
    def is_empty(self) -> bool:
        """Whether there is no filter."""
        return self == Selection()


Counts = list[tuple[str, int]]
"""Choices, and the photographs that each leaves."""


class Facets(NamedTuple):
    """How many photographs each choice of a filter leaves, with the other filters unchanged."""

    counts: dict[str, Counts]
    """By the name of the filter, except tags."""
    tags: list[tuple[int, str, int]]
    """Tags by number and name, most photographs first."""


class Month(NamedTuple):
    """The photographs of a month."""

    month: str
    """Such as ``2024-05``; empty if it is unknown."""
    n_photographs: int
    n_tagged: int
    n_waiting: int
    """Photographs with likely suggestions."""


class Selected:
    """The photographs that filters leave."""

    def __init__(self, photographs: np.ndarray, contents: np.ndarray):
        self.numbers = photographs
        """Numbers of photographs, ascending."""
        self._contents = contents[contents >= 0]

    def has(self, contents: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return whether each content has a selected photograph, as an array."""
        return np.isin(np.asarray(contents, np.int64), self._contents, kind="table")


_Value = str | float | None
"""A value of a photograph, such as its folder, rating or burst."""


class _Column(NamedTuple):
    """Values of photographs, each once, and the position of each photograph's value."""

    values: list[_Value]
    codes: np.ndarray


class PhotographIndex:
    """The columns of all existing photographs that filters test.

    It is read once; `is_current` tells whether a scan or a training ended since.
    """

    def __init__(self, database: Database):
        self._key = _last_change(database)
        stored = [fact.name for fact in _FACTS.values() if fact.from_path is None]
        names = ["p.path", "c.burst", *(f"p.{name}" for name in stored)]
        rows = database.rows(
            f"SELECT p.id, coalesce(p.content, -1), {', '.join(names)} FROM photographs p "
            "LEFT JOIN contents c ON c.id = p.content WHERE p.gone IS NULL ORDER BY p.id"
        )
        ids, contents, paths, bursts, *values = (
            zip(*rows, strict=True) if rows else [()] * (2 + len(names))
        )
        self._ids, self._contents = np.array(ids, np.int64), np.array(contents, np.int64)
        columns = dict(zip(stored, values, strict=True))
        for name, fact in _FACTS.items():
            if fact.from_path is not None:
                columns[name] = tuple(map(fact.from_path, paths))
        columns["burst"] = bursts
        self._columns = {
            name: _encode(map(_KINDS[kind].key, columns[name])) for name, kind in FILTERS.items()
        }
        self._answers: tuple[int | None, dict[tuple[str | int, ...], np.ndarray]] = (None, {})
        self._found = _pairs(database, "SELECT photograph, tag FROM found")

    def is_current(self, database: Database) -> bool:
        """Whether no scan or training ended since this was read."""
        return self._key == _last_change(database)

    def select(self, database: Database, selection: Selection) -> Selected:
        """Return the photographs that a selection leaves."""
        mask = self._combine(self._masks(database, selection))
        return Selected(self._ids[mask], self._contents[mask])

    def count(self, database: Database, selection: Selection) -> Facets:
        """Count the photographs that each choice leaves.

        The counts of a filter ignore its own choice, so another can be chosen; further tags add to
        the chosen ones.
        """
        masks = self._masks(database, selection)
        counts = {name: self._count_choices(name, masks, selection) for name in self._columns}
        others = self._combine(masks, but="untagged")
        n_untagged = int(self._untagged(database)[others].sum())
        untagged = [("true", n_untagged), ("false", int(others.sum()) - n_untagged)]
        counts["untagged"] = [pair for pair in untagged if pair[1]]
        return Facets(counts, self._count_tags(database, self._combine(masks)))

    def count_months(self, database: Database, waiting: np.ndarray) -> list[Month]:
        """Count the photographs of each month, the earliest first, an unknown month last.

        `waiting` are the contents with likely suggestions.
        """
        column = self._columns["taken"]
        tagged, waits = ~self._untagged(database), np.isin(self._contents, waiting, kind="table")
        n = len(column.values)
        counts = [
            np.bincount(column.codes[mask], minlength=n) for mask in (slice(None), tagged, waits)
        ]
        months = [
            Month(str(value or ""), *row)
            for value, *row in zip(column.values, *(c.tolist() for c in counts), strict=True)
        ]
        return sorted(months, key=lambda month: (not month.month, month.month))

    def _count_choices(
        self, name: str, masks: dict[str, np.ndarray], selection: Selection
    ) -> Counts:
        column, sums = self._columns[name], dict[str, int]()
        codes = column.codes[self._combine(masks, but=name)]
        counts = np.bincount(codes, minlength=len(column.values)).tolist()
        kind = _KINDS[FILTERS[name]]
        for value, n in zip(column.values, counts, strict=True):
            for choice in kind.choices(value) if n else ():
                sums[choice] = sums.get(choice, 0) + n
        left = list(sums.items())
        if name == "burst":  # others are too many to choose from
            left = [pair for pair in left if pair[0] in ("any", NONE, selection.choice(name))]
        if kind.order is not None:
            return sorted(left, key=kind.order)
        return sorted(left, key=_most_first)[:_N_VALUES]

    # --- masks ---------------------------------------------------------------------------

    def _masks(self, database: Database, selection: Selection) -> dict[str, np.ndarray]:
        """Return the photographs (N,) that each filter leaves."""
        masks = {}
        for name, choice in selection.choices:
            column, leaves = self._columns[name], _KINDS[FILTERS[name]].leaves
            matches = np.array([leaves(choice, value) for value in column.values], dtype=bool)
            masks[name] = matches[column.codes] if len(matches) else np.zeros(0, bool)
        if selection.untagged is not None:
            masks["untagged"] = self._untagged(database) == selection.untagged
        for tag in selection.tags:
            masks[f"tag {tag}"] = self._tagged(database, tag)
        return masks

    def _combine(self, masks: dict[str, np.ndarray], but: str = "") -> np.ndarray:
        result = np.ones(len(self._ids), bool)
        for name, mask in masks.items():
            if name != but:
                result &= mask
        return result

    def _untagged(self, database: Database) -> np.ndarray:
        return self._among_contents(database, "SELECT id FROM contents WHERE n_tags = 0")

    def _tagged(self, database: Database, tag: int) -> np.ndarray:
        accepted = "SELECT content FROM decisions WHERE tag = ? AND verdict = 1 AND holds"
        in_files = "SELECT photograph FROM found WHERE tag = ?"
        return self._among_contents(database, accepted, tag) | np.isin(
            self._ids, _numbers(database, in_files, tag)
        )

    def _among_contents(self, database: Database, query: str, *values: int) -> np.ndarray:
        """Return whether a query returns the content of each photograph.

        Answers are cached until the next run; every decision is a run.
        """
        last = database.value("SELECT max(id) FROM runs")
        if self._answers[0] != last:
            self._answers = last, {}
        answers = self._answers[1]
        if (query, *values) not in answers:
            answers[query, *values] = np.isin(self._contents, _numbers(database, query, *values))
        return answers[query, *values]

    def _count_tags(self, database: Database, mask: np.ndarray) -> list[tuple[int, str, int]]:
        """Count photographs by tag, in files or accepted."""
        accepted = _pairs(
            database,
            "SELECT p.id, d.tag FROM decisions d JOIN photographs p ON p.content = d.content "
            "AND p.gone IS NULL WHERE d.holds AND d.verdict = 1",
        )
        pairs = np.unique(np.concatenate([self._found, accepted]))
        photographs, tags_of = np.divmod(pairs, _PAIRS)
        counts = np.bincount(tags_of[np.isin(photographs, self._ids[mask], kind="table")])
        tags = database.rows("SELECT id, name FROM tags")
        named = [(t, name, int(counts[t])) for t, name in tags if t < len(counts) and counts[t]]
        return sorted(named, key=lambda tag: (-tag[2], tag[1]))[:_N_VALUES]


def _last_change(database: Database) -> Row | None:
    return database.row(
        "SELECT max(id), count(*) FROM runs WHERE id IN (SELECT run FROM tag_changes) "
        "OR (what IN ('scan', 'train', 'suggest') AND ended_at IS NOT NULL)"
    )


def _numbers(database: Database, query: str, *values: int) -> np.ndarray:
    return np.array(database.column(query, values), np.int64)


def _pairs(database: Database, query: str) -> np.ndarray:
    """Return pairs of numbers, each as one number."""
    rows = database.rows(query)
    return np.fromiter((first * _PAIRS + second for first, second in rows), np.int64, len(rows))


def _encode(values: Iterable[_Value]) -> _Column:
    codes: dict[_Value, int] = {}
    numbers = [codes.setdefault(value, len(codes)) for value in values]
    return _Column(list(codes), np.array(numbers, np.int32))


# --- kinds of filters --------------------------------------------------------------------


def _parents(folder: _Value) -> list[str]:
    """Return a folder and all folders above it."""
    path = PurePosixPath(str(folder))
    return [name for name in map(str, (path, *path.parents)) if name != "."]


def _month(time: _Value) -> _Value:
    return None if time is None else str(time)[:7]


def _months(month: _Value) -> list[str]:
    return [NONE] if month is None else [str(month)[:4], str(month)]


def _names(name: _Value) -> list[str]:
    return [NONE if name is None else str(name)]


def _stars(rating: _Value) -> list[str]:
    if rating is None or rating == -1:
        return [NONE if rating is None else "-1"]
    return [str(stars) for stars in range(1, int(rating) + 1)]


def _types(suffix: _Value) -> list[str]:
    name = str(suffix)
    with suppress(InvalidInput):  # if this installation does not read it any more
        name = suffixes_of_type(name)[0]
    return [name.removeprefix(".")]


def _bursts(burst: _Value) -> list[str]:
    return [NONE] if burst is None else ["any", str(burst)]


def _most_first(count: tuple[str, int]) -> tuple[object, ...]:
    return count[0] == NONE, -count[1], count[0]


def _latest_first(count: tuple[str, int]) -> tuple[object, ...]:
    """Order years, latest first, each followed by its months; no date comes last."""
    year = count[0][:4]
    return count[0] == NONE, -int(year) if year.isdecimal() else 0, count[0]


def _check(pattern: str, what: str) -> Callable[[str], None]:
    """Return a function that rejects choices which do not match a pattern."""

    def check(choice: str) -> None:
        if choice != NONE and not re.fullmatch(pattern, choice):
            raise InvalidInput(f"{choice!r} is not {what}.")

    return check


class _Kind:
    """A kind of filter: the choices that leave a value, their order, and a check of choices.

    Without an order, the choices of most photographs come first, and others are left out. `key`
    returns the part of a value that counts.
    """

    def __init__(
        self,
        choices: Callable[[_Value], list[str]],
        order: Callable[[tuple[str, int]], Any] | None = None,
        check: Callable[[str], object] = str,
        key: Callable[[_Value], _Value] = lambda value: value,
    ):
        self.choices, self.order, self.check, self.key = choices, order, check, key

    def leaves(self, choice: str, value: _Value) -> bool:
        """Whether a choice leaves the photographs with a value."""
        return choice in self.choices(value)


class _Folders(_Kind):
    def leaves(self, choice: str, value: _Value) -> bool:
        choice = choice.strip("/")
        return choice in ("", ".") or choice in _parents(value)


class _Types(_Kind):
    def leaves(self, choice: str, value: _Value) -> bool:
        return value in suffixes_of_type(choice)


_KINDS = {
    "folder": _Folders(_parents, itemgetter(0)),
    "month": _Kind(_months, _latest_first, _check(r"\d{4}(-\d\d)?", "a year or a month"), _month),
    "name": _Kind(_names),
    "stars": _Kind(
        _stars,
        lambda count: _RATINGS.index(count[0]),
        _check("[1-5]|-1", f"a rating. Use 1 to 5, -1 or {NONE}"),
    ),
    "type": _Types(_types, check=suffixes_of_type),
    "burst": _Kind(_bursts, _most_first, _check(r"any|\d{1,15}", "the number of a burst")),
}
