"""The filters of a page: read from its address, shown as a bar, kept in links; what they leave."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Annotated, NamedTuple
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Query, Request
from pydantic import Field

from tagkin.catalogue import Catalogue
from tagkin.catalogue.open_index import OpenIndex, SelectedSuggestions
from tagkin.catalogue.selection import NONE, Facets, PhotographIndex, Selection
from tagkin.catalogue.selection import Selected as SelectedPhotographs
from tagkin.errors import StorageError
from tagkin.server.readers import Readers

MOST = 2**53  # the largest whole number in JavaScript
Number = Annotated[int, Field(ge=0, le=MOST)]
_Text = Annotated[str | None, Query(max_length=1000)]

NAMES = ("folder", "date", "camera", "lens", "rating", "type", "burst", "untagged", "run", "tag")
"""Parameters of an address that are filters."""
_CURSORS = ("after", "start")
_TITLES = {
    "folder": "Folder",
    "date": "Date",
    "camera": "Camera",
    "lens": "Lens",
    "rating": "Rating",
    "type": "File type",
    "burst": "Burst",
    "untagged": "Tags",
    "run": "Run",
    "tag": "Tag",
}
_WORDS = {
    ("burst", "any"): "in a burst",
    ("burst", NONE): "alone",
    ("untagged", "true"): "without tags",
    ("untagged", "false"): "with tags",
    ("rating", "-1"): "rejected",
    ("rating", NONE): "not rated",
    ("rating", "5"): "★★★★★",
}
_MONTHS = "January February March April May June July August September October November December"
Verdict = tuple[int, int, int | None]
"""A content, a tag, and 1 (accepted), -1 (rejected) or None (open again)."""


def read_selection(
    folder: _Text = None,
    date: Annotated[str | None, Query(pattern=r"^([0-9]{4}(-[0-9]{2})?|\(none\))$")] = None,
    camera: _Text = None,
    lens: _Text = None,
    rating: Annotated[str | None, Query(max_length=10)] = None,
    type: Annotated[str | None, Query(max_length=10)] = None,
    burst: Annotated[str | None, Query(pattern=r"^([0-9]{1,15}|any|\(none\))$")] = None,
    untagged: bool | None = None,
    run: Number | None = None,
    tags: Annotated[list[Number] | None, Query(alias="tag", max_length=20)] = None,
) -> Selection:
    """Return the selection that the address of a page names."""
    return Selection(
        folder, date, camera, lens, rating, type, burst, untagged, run, tuple(tags or ())
    )


Selected = Annotated[Selection, Depends(read_selection)]


class Token(NamedTuple):
    """A filter of a page, and the address of the page without it."""

    title: str
    text: str
    without: str


class FilterBar:
    """The filters of a page."""

    def __init__(self, request: Request, catalogue: Catalogue, selection: Selection):
        self._catalogue, self.selection = catalogue, selection
        self._path = request.url.path.removeprefix(request.base_url.path)
        self._items = request.query_params.multi_items()
        self.pairs = list(_pairs(selection))
        self._tags = {n: catalogue.tags.count(n).name for n in selection.tags}

    def link(self, address: str) -> str:
        """Return an address with the filters that it does not set itself."""
        own = {name for name, _ in parse_qsl(address.partition("?")[2])}
        pairs = [pair for pair in self.pairs if pair[0] not in own]
        if not pairs:
            return address
        return f"{address}{'&' if own else '?'}{urlencode(pairs)}"

    @property
    def tokens(self) -> list[Token]:
        """The filters that are set."""
        return [self._token(name, value) for name, value in self.pairs]

    @property
    def clear(self) -> str:
        """The address of the page without filters."""
        return self._address([pair for pair in self._items if pair[0] not in NAMES])

    def _token(self, name: str, value: str) -> Token:
        without = self._without(name, value)
        text = self._tags[int(value)] if name == "tag" else describe(name, value)
        return Token(_TITLES[name], text, without)

    def _without(self, name: str, value: str) -> str:
        if name == "tag":
            return self._address([pair for pair in self._items if pair != (name, value)])
        return self._address([pair for pair in self._items if pair[0] != name])

    def _address(self, items: Sequence[tuple[str, str]]) -> str:
        query = urlencode([pair for pair in items if pair[0] not in _CURSORS])
        return f"{self._path}?{query}" if query else self._path


def _pairs(selection: Selection) -> Iterator[tuple[str, str]]:
    """Yield the parameters of an address that give a selection."""
    for field in fields(selection):
        value = getattr(selection, field.name)
        if field.name == "tags":
            yield from (("tag", str(tag)) for tag in value)
        elif isinstance(value, bool):
            yield field.name, str(value).lower()
        elif value is not None:
            yield field.name, str(value)


def describe(name: str, value: str) -> str:
    """Return the value of a filter in words."""
    if (name, value) in _WORDS:
        return _WORDS[name, value]
    if value == NONE:
        return "unknown"
    if name == "burst":
        return "this one"
    if name == "rating":
        return f"{'★' * int(value)} and more"
    if name == "date" and "-" in value:
        month = int(value[5:])
        names = _MONTHS.split()
        return f"{names[month - 1]} {value[:4]}" if 1 <= month <= len(names) else value
    return value


# --- what they leave ---------------------------------------------------------------------------


class Views:
    """The photographs and open suggestions of a review in memory, read when filters need them.

    That takes a second or two at 100,000 photographs, so suggestions are read in the background
    as soon as a page shows the choices. Decisions need not wait for it.
    """

    def __init__(self, readers: Readers):
        self._readers = readers
        self._reading_photographs, self._reading = threading.Lock(), threading.Lock()
        self._photographs: PhotographIndex | None = None
        self._suggestions: OpenIndex | None = None
        self._lock = threading.Lock()
        self._meanwhile: list[Verdict] | None = None  # decisions while suggestions are read

    def select(self, catalogue: Catalogue, selection: Selection) -> View | None:
        """Return the view of the photographs that a selection leaves; None for all of them."""
        return None if selection.is_empty else View(self, catalogue, selection)

    def count(self, catalogue: Catalogue, selection: Selection) -> Facets:
        """Count the photographs that each choice of a filter leaves."""
        if self._suggestions is None and not self._reading.locked():
            threading.Thread(target=self._prepare, name="suggestions", daemon=True).start()
        return self.photographs(catalogue).count(catalogue.database, selection)

    def learn(self, verdicts: Sequence[Verdict]) -> None:
        """Follow decisions."""
        with self._lock:
            if self._meanwhile is not None:
                self._meanwhile += verdicts
            if self._suggestions is not None:
                self._suggestions.learn(verdicts)

    def photographs(self, catalogue: Catalogue) -> PhotographIndex:
        """Return the current photographs."""
        with self._reading_photographs:
            if self._photographs is None or not self._photographs.is_current(catalogue.database):
                self._photographs = PhotographIndex(catalogue.database)
            return self._photographs

    def suggestions(self, catalogue: Catalogue) -> OpenIndex:
        """Return the current open suggestions."""
        with self._reading:
            index = self._suggestions
            if index is None or not index.is_current(catalogue.database):
                with self._lock:
                    self._meanwhile = []
                index = OpenIndex(catalogue.database)
                with self._lock:
                    index.learn(self._meanwhile)
                    self._suggestions, self._meanwhile = index, None
            return index

    def _prepare(self) -> None:
        with self._readers.connection() as catalogue, contextlib.suppress(StorageError):
            self.suggestions(catalogue)


class View:
    """The photographs that the filters of one page leave."""

    def __init__(self, views: Views, catalogue: Catalogue, selection: Selection):
        self._views, self._catalogue = views, catalogue
        self.is_of_burst = (selection.burst or "").isdecimal()
        """Whether it is one burst, whose photographs are shown one by one."""
        index = views.photographs(catalogue)
        self.photographs: SelectedPhotographs = index.select(catalogue.database, selection)

    @cached_property
    def suggestions(self) -> SelectedSuggestions:
        """The open suggestions for them."""
        return self._views.suggestions(self._catalogue).select(self.photographs)


def facets_answer(
    catalogue: Catalogue, views: Views, selection: Selection
) -> list[dict[str, object]]:
    """Return the choices of each filter with the number of photographs that each would leave."""
    facets = views.count(catalogue, selection)
    chosen = dict(_pairs(selection))
    return [
        {
            "name": name,
            "title": _TITLES[name],
            "value": "" if name == "tag" else chosen.get(name, ""),
            "choices": _choices(catalogue, facets, name),
        }
        for name in NAMES
    ]


def _choices(catalogue: Catalogue, facets: Facets, name: str) -> list[tuple[str, str, int]]:
    """Return values, texts and counts of a filter."""
    if name == "tag":
        return [(str(number), tag, n) for number, tag, n in facets.tags]
    counts = facets.counts[name]
    if name == "run":
        runs = {str(run.id): run for run in catalogue.runs.history(300)}
        return [
            (value, f"{value} {runs[value].what}, {runs[value].started_at[:10]}", n)
            for value, n in counts
            if value in runs
        ]
    return [(value, describe(name, value), n) for value, n in counts]
