"""Photographs and tags as a caller may pass them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from tagkin.collection.reading import Collection
from tagkin.collection.times import Moments
from tagkin.errors import InvalidInput
from tagkin.features import Extraction
from tagkin.images import Failure

__all__ = [
    "KnownTags",
    "Photographs",
    "TagLists",
    "explain_failures",
    "list_paths",
    "take_photographs",
]

Path: TypeAlias = "str | os.PathLike[str]"
Photographs: TypeAlias = "Path | Iterable[Path] | Collection | Extraction"
"""A path, several paths, a `Collection`, or an `Extraction`."""
TagLists: TypeAlias = "Sequence[Iterable[str] | None]"
"""The tags of each photograph; None means no tags."""


def list_paths(photographs: Photographs) -> list[str]:
    """Return the paths of photographs."""
    if isinstance(photographs, (str, os.PathLike)):
        return [os.fspath(photographs)]
    if isinstance(photographs, (Collection, Extraction)):
        return list(photographs.files)
    return [os.fspath(file) for file in photographs]


def take_photographs(extraction: Extraction, rows: Sequence[int] | np.ndarray) -> Extraction:
    """Return some of the photographs."""
    return replace(
        extraction,
        files=[extraction.files[i] for i in rows],
        features=extraction.features[np.asarray(rows, dtype=np.int64)],
        digests=[extraction.digests[i] for i in rows],
    )


class KnownTags(NamedTuple):
    """What is known about the tags of n photographs: a list for each, or None for nothing."""

    present: list[list[str]] | None = None
    rejected: list[list[str]] | None = None
    accepted: list[list[str]] | None = None
    offered: list[list[str]] | None = None
    complete: np.ndarray | None = None
    """Which photographs have all of their tags."""
    moments: Moments | None = None
    """When and where they were taken; None if only their files say it."""

    @classmethod
    def of(
        cls,
        photographs: Photographs,
        present: TagLists | None = None,
        *,
        complete: Sequence[bool] | None = None,
        moments: Moments | None = None,
        **others: TagLists | None,
    ) -> Self:
        """Check what a caller knows; a collection has its own tags."""
        files = list_paths(photographs)
        if present is None and isinstance(photographs, Collection):
            present = photographs.tags
        lists = {
            name: None if tags is None else _check_tags(files, tags)
            for name, tags in {"present": present, **others}.items()
        }
        mask = None if complete is None else np.array(complete, dtype=bool)
        if mask is not None and len(mask) != len(files):
            raise InvalidInput(f"Found {len(files)} photographs and {len(mask)} in complete.")
        if moments is not None and len(moments.times) != len(files):
            raise InvalidInput(
                f"Found {len(files)} photographs and the moments of {len(moments.times)}."
            )
        return cls(**lists, complete=mask, moments=moments)

    @property
    def tags(self) -> list[list[str]]:
        """The present tags; an error if there are none to learn from."""
        if self.present is None:
            raise InvalidInput("Pass the tags of the photographs: one list of tags each.")
        return self.present

    @property
    def has_all(self) -> np.ndarray:
        """Which photographs have all of their tags; by default, those with tags."""
        if self.complete is not None:
            return self.complete
        return np.array([bool(row) for row in self.tags], dtype=bool)

    def count_tags(self) -> tuple[np.ndarray, np.ndarray]:
        """Return how many tags each photograph has, and how many of them were accepted."""
        accepted = [[]] * len(self.tags) if self.accepted is None else self.accepted
        return np.array([*map(len, self.tags)]), np.array([*map(len, accepted)])

    def take(self, rows: Sequence[int] | np.ndarray) -> KnownTags:
        """Return what is known about some photographs."""
        numbers = np.asarray(rows, dtype=int)
        complete = None if self.complete is None else self.complete[numbers]
        moments = None if self.moments is None else self.moments.take(numbers)
        known = self._map(lambda lists: [lists[i] for i in rows], complete)
        return known._replace(moments=moments)

    def merge(self, digests: Sequence[str]) -> tuple[list[int], KnownTags]:
        """Return the first photograph of each content, and what is known about all its copies.

        It is complete if one copy is.
        """
        copies: dict[str, list[int]] = {}
        for i, digest in enumerate(digests):
            copies.setdefault(digest, []).append(i)
        groups = list(copies.values())

        def join(lists: list[list[str]]) -> list[list[str]]:
            of_copies = ((lists[i] for i in group) for group in groups)
            return [list(dict.fromkeys(chain.from_iterable(rows))) for rows in of_copies]

        complete = self.complete
        if complete is not None:
            complete = np.array([complete[group].any() for group in groups], dtype=bool)
        first = [group[0] for group in groups]
        moments = None if self.moments is None else self.moments.take(first)
        return first, self._map(join, complete)._replace(moments=moments)

    def _map(
        self, change: Callable[[list[list[str]]], list[list[str]]], complete: np.ndarray | None
    ) -> KnownTags:
        present, rejected, accepted, offered = (
            None if lists is None else change(lists) for lists in self[:4]
        )
        return KnownTags(present, rejected, accepted, offered, complete)


def _check_tags(files: Sequence[str], tags: TagLists) -> list[list[str]]:
    """Return the tags of each photograph as a list, without blank tags."""
    if len(files) != len(tags):
        raise InvalidInput(f"Found {len(files)} photographs and {len(tags)} lists of tags.")
    return [_check_row(file, row) for file, row in zip(files, tags, strict=True)]


def _check_row(file: str, row: object) -> list[str]:
    if row is None:
        return []
    if not isinstance(row, list) and (
        isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable)
    ):
        raise InvalidInput(
            f"The tags of {file} are {row!r}; expected a list of tags, or None for no tags."
        )
    tags = list(row)
    for tag in tags:
        if not isinstance(tag, str):
            raise InvalidInput(
                f"The tags of {file} hold {tag!r} ({type(tag).__name__}); a tag is a text."
            )
    return [tag for tag in tags if tag.replace("|", " ").strip()]  # "|" has no level, either


def explain_failures(failures: Sequence[Failure]) -> str:
    """Say why no photograph could be read."""
    if not failures:
        return "No photograph was named. Pass at least one."
    first = "; ".join(f"{failure.file}: {failure.reason}" for failure in failures[:3])
    if len(failures) == 1:
        return f"The photograph could not be read. {first}"
    return f"None of the {len(failures)} photographs could be read. {first}"
