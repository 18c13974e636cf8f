"""Photographs as a caller may name them, and as they were seen."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from tagkin.collection.reading import Collection
from tagkin.errors import InvalidInput
from tagkin.features import Extraction
from tagkin.images import Failure

__all__ = [
    "Photographs",
    "TagLists",
    "all_unreadable",
    "merged",
    "paths_of",
    "said_before",
    "subset",
    "tag_rows",
    "tags_now",
]

Path: TypeAlias = "str | os.PathLike[str]"
Photographs: TypeAlias = "Path | Iterable[Path] | Collection | Extraction"
"""A path, several, a `Collection`, or the `Extraction` of photographs that were looked at."""
TagLists: TypeAlias = "Sequence[Iterable[str] | None]"
"""The tags of each photograph, None where there are none."""


def paths_of(photographs: Photographs) -> list[str]:
    """Where the photographs are."""
    if isinstance(photographs, (str, os.PathLike)):
        return [os.fspath(photographs)]
    if isinstance(photographs, (Collection, Extraction)):
        return list(photographs.files)
    return [os.fspath(file) for file in photographs]


def subset(seen: Extraction, rows: Sequence[int] | np.ndarray) -> Extraction:
    """Some of the photographs."""
    return replace(
        seen,
        files=[seen.files[i] for i in rows],
        features=seen.features[np.asarray(rows, dtype=np.int64)],
        digests=[seen.digests[i] for i in rows],
    )


def tags_now(
    photographs: Photographs, learned_from: str
) -> Callable[[str, Sequence[str]], list[str]]:
    """A function of a photograph and its tags when it was learned from: those that it carries now.

    A collection has the tags as they are now, and what is not there any more was deleted; unless
    the tags that were learned came from somewhere that was not looked at for the collection.
    """
    if not isinstance(photographs, Collection):
        return lambda file, learned: list(learned)
    now = dict(zip(photographs.files, photographs.tags, strict=True))
    if photographs.knows_tags_from(learned_from):
        return lambda file, learned: list(now[file])
    return lambda file, learned: list(dict.fromkeys([*now[file], *learned]))


def tag_rows(files: Sequence[str], tags: Any) -> list[list[str]]:
    """The tags of each photograph as a list; blank ones are none."""
    if tags is None:
        raise InvalidInput("Pass the tags of the photographs: one list of tags each.")
    if len(files) != len(tags):
        raise InvalidInput(f"Found {len(files)} photographs and {len(tags)} lists of tags.")
    return [_tags_of(file, row) for file, row in zip(files, tags, strict=True)]


def _tags_of(file: str, row: Any) -> list[str]:
    if row is None:
        return []
    if not isinstance(row, list) and (
        isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable)
    ):
        raise InvalidInput(
            f"The tags of {file} are {row!r}; expected a list of tags, or None for no tags."
        )
    found = list(row)
    for tag in found:
        if not isinstance(tag, str):
            raise InvalidInput(
                f"The tags of {file} hold {tag!r} ({type(tag).__name__}); a tag is a text."
            )
    # of a hierarchy without a level nothing is left, either
    return [tag for tag in found if tag.replace("|", " ").strip()]


def said_before(
    tags: Sequence[Sequence[str]], accepted: Sequence[Sequence[str]] | None
) -> list[bool] | None:
    """Which photographs carried tags before some of them were accepted; None where none were."""
    if accepted is None:
        return None
    return [bool(set(row) - set(taken)) for row, taken in zip(tags, accepted, strict=True)]


def merged(
    seen: Extraction, files: Sequence[str], tags: Sequence[Sequence[str]]
) -> tuple[Extraction, list[list[str]]]:
    """Photographs of the same content as one, the first, with the tags of all of them.

    Parameters
    ----------
    seen : Extraction
        Those that could be read.
    files, tags : sequences of one length
        The photographs that were to be read, and the tags of each.
    """
    tags_of: dict[str, list[str]] = {}
    for file, row in zip(files, tags, strict=True):
        tags_of.setdefault(file, []).extend(row)
    together: dict[str, list[str]] = {}
    first = []
    for i, (file, digest) in enumerate(zip(seen.files, seen.digests, strict=True)):
        if digest not in together:
            first.append(i)
        together.setdefault(digest, []).extend(tags_of[file])
    return subset(seen, first), [list(dict.fromkeys(row)) for row in together.values()]


def all_unreadable(failures: Sequence[Failure]) -> str:
    """What to say where no photograph could be read."""
    if not failures:
        return "No photograph was named. Pass one at least."
    first = "; ".join(f"{one.file}: {one.reason}" for one in failures[:3])
    if len(failures) == 1:
        return f"The photograph could not be read. {first}"
    return f"None of the {len(failures)} photographs could be read. {first}"
