"""The nouns of WordNet, as whoever asks for meanings sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeVar

import numpy as np

__all__ = ["Listed", "Lists", "Nouns", "ancestors"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Listed(Protocol[T_co]):
    """Lists by number."""

    def __getitem__(self, i: int, /) -> tuple[T_co, ...]: ...


@dataclass(frozen=True)
class Nouns:
    """The nouns of WordNet; synsets are numbered from 0 in the order of the file."""

    offsets: np.ndarray  # synset -> its offset field, the name that other files know it by
    words: Listed[str]  # synset -> its words as they are written
    hypernyms: Listed[int]  # synset -> its hypernyms, those of instances among them
    lemmas: Mapping[str, int]  # lemma -> its number, in the order of the index
    senses: Listed[int]  # number of a lemma -> its synsets, most frequent sense first
    plurals: dict[str, tuple[str, ...]]  # irregular plural -> its singulars

    @cached_property
    def numbers(self) -> dict[int, int]:
        """Offset of a synset -> its number."""
        return {offset: number for number, offset in enumerate(self.offsets.tolist())}


class Lists(Generic[T]):
    """Lists one after the other; list i ends before the start of the next."""

    def __init__(self, values: list[T], lengths: np.ndarray):
        self._values = values
        self._starts = [0, *np.cumsum(lengths).tolist()]

    def __getitem__(self, i: int) -> tuple[T, ...]:
        return tuple(self._values[self._starts[i] : self._starts[i + 1]])


def ancestors(hypernyms: Listed[int], synset: int) -> set[int]:
    """The synset and all that is above it."""
    found, todo = {synset}, [synset]
    while todo:
        new = set(hypernyms[todo.pop()]) - found
        found |= new
        todo.extend(new)
    return found
