"""The filters of a page: read from its address, shown as a bar, kept in links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple
from urllib.parse import parse_qsl, urlencode

from fastapi import Depends, Query, Request
from pydantic import Field

from tagkin.catalogue import Catalogue
from tagkin.catalogue.selection import FILTERS, NONE, Facets, Selection
from tagkin.collection.facts import FACTS
from tagkin.server.readers import Views

MOST = 2**53  # the largest whole number in JavaScript
Number = Annotated[int, Field(ge=0, le=MOST)]

_CURSORS = ("after", "start")
_TITLES = {fact.name: fact.title for fact in FACTS if fact.name in FILTERS} | {
    "burst": "Burst",
    "untagged": "Tags",
    "tag": "Tag",
}
"""Titles of the filters, which are parameters of an address."""
_WORDS = {  # by the kind of a filter
    ("burst", "any"): "in a burst",
    ("burst", NONE): "alone",
    ("untagged", "true"): "without tags",
    ("untagged", "false"): "with tags",
    ("stars", "-1"): "rejected",
    ("stars", NONE): "not rated",
    ("stars", "5"): "★★★★★",
}
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def read_selection(
    request: Request,
    untagged: bool | None = None,
    tags: Annotated[list[Number] | None, Query(alias="tag", max_length=20)] = None,
) -> Selection:
    """Return the selection that the address of a page names."""
    choices = {name: request.query_params.get(name) or None for name in FILTERS}
    return Selection(untagged=untagged, tags=tags or (), **choices)


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
        return self._address([pair for pair in self._items if pair[0] not in _TITLES])

    def _token(self, name: str, value: str) -> Token:
        if name == "tag":  # there may be several
            others = [pair for pair in self._items if pair != (name, value)]
            return Token(_TITLES[name], self._tags[int(value)], self._address(others))
        others = [pair for pair in self._items if pair[0] != name]
        return Token(_TITLES[name], describe(name, value), self._address(others))

    def _address(self, items: Sequence[tuple[str, str]]) -> str:
        query = urlencode([pair for pair in items if pair[0] not in _CURSORS])
        return f"{self._path}?{query}" if query else self._path


def _pairs(selection: Selection) -> Iterator[tuple[str, str]]:
    """Yield the parameters of an address that give a selection."""
    yield from selection.choices
    if selection.untagged is not None:
        yield "untagged", str(selection.untagged).lower()
    yield from (("tag", str(tag)) for tag in selection.tags)


def describe(name: str, value: str) -> str:
    """Return the value of a filter in words."""
    kind = FILTERS.get(name, name)
    if (kind, value) in _WORDS:
        return _WORDS[kind, value]
    if value == NONE:
        return "unknown"
    if kind == "burst":
        return "this one"
    if kind == "stars":
        return f"{'★' * int(value)} and more"
    if kind == "month" and "-" in value:
        month = int(value[5:])
        return f"{MONTHS[month - 1]} {value[:4]}" if 1 <= month <= len(MONTHS) else value
    return value


# --- choices --------------------------------------------------------------------------------------


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
            "kind": FILTERS.get(name, name),
            "value": "" if name == "tag" else chosen.get(name, ""),
            "choices": _choices(catalogue, facets, name),
        }
        for name in _TITLES
    ]


def _choices(catalogue: Catalogue, facets: Facets, name: str) -> list[tuple[str, str, int]]:
    """Return values, texts and counts of a filter."""
    if name == "tag":
        return [(str(number), tag, n) for number, tag, n in facets.tags]
    counts = facets.counts[name]
    return [(value, describe(name, value), n) for value, n in counts]
