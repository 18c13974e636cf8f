"""Photographs and tags as a caller may pass them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from tagkin.annotator.label_input import KnownLabels
from tagkin.collection.reading import Collection
from tagkin.errors import InvalidInput
from tagkin.features import Extraction
from tagkin.images import Failure

__all__ = [
    "Photographs",
    "TagLists",
    "check_tags",
    "current_tags",
    "explain_failures",
    "list_paths",
    "merge_copies",
    "read_known",
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


def current_tags(
    photographs: Photographs, present: TagLists | None = None
) -> Callable[[str, Sequence[str]], list[str]]:
    """Return a function of a photograph and its learned tags that returns its current tags.

    These are the `present` tags if the caller passes them. A collection knows the current tags;
    other tags were deleted.
    """
    if present is not None:
        paths = list_paths(photographs)
        passed = dict(zip(paths, check_tags(paths, present), strict=True))
        return lambda file, learned: list(passed[file])
    if not isinstance(photographs, Collection):
        return lambda file, learned: list(learned)
    now = dict(zip(photographs.files, photographs.tags, strict=True))
    return lambda file, learned: list(now[file])


def check_tags(files: Sequence[str], tags: TagLists | None) -> list[list[str]]:
    """Return the tags of each photograph as a list, without blank tags."""
    if tags is None:
        raise InvalidInput("Pass the tags of the photographs: one list of tags each.")
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


def read_known(
    photographs: Photographs,
    present: TagLists | None,
    rejected: TagLists | None,
    complete: Sequence[bool] | None,
    offered: TagLists | None,
) -> Callable[[Sequence[str], Sequence[Sequence[str]]], tuple[list[list[str]], KnownLabels]]:
    """Check what a caller knows of the tags of photographs.

    Returns a function of some of their files and the tags learned from these (see `current_tags`)
    that returns the tags that these files have, and all that is known.
    """
    paths = list_paths(photographs)
    tags_now = current_tags(photographs, present)
    no, still_open = (
        dict(zip(paths, check_tags(paths, lists or [None] * len(paths)), strict=True))
        for lists in (rejected, offered)
    )
    is_complete = None if complete is None else dict(zip(paths, complete, strict=True))

    def select(
        files: Sequence[str], learned: Sequence[Sequence[str]]
    ) -> tuple[list[list[str]], KnownLabels]:
        tags = [tags_now(file, own) for file, own in zip(files, learned, strict=True)]
        mask = None
        if is_complete is not None:
            mask = np.array([is_complete[file] for file in files], dtype=bool)
        lists = [no[file] for file in files], mask, [still_open[file] for file in files]
        return tags, KnownLabels(tags, *lists)

    return select


def merge_copies(
    extraction: Extraction, files: Sequence[str], tags: Sequence[Sequence[str]]
) -> tuple[Extraction, list[list[str]]]:
    """Return the first photograph of each content, with the tags of all its copies.

    `files` are the photographs to read, and `tags` their tags; `extraction` may lack some of them.
    """
    tags_of: dict[str, list[str]] = {}
    for file, row in zip(files, tags, strict=True):
        tags_of.setdefault(file, []).extend(row)
    merged: dict[str, list[str]] = {}
    first = []
    for i, (file, digest) in enumerate(zip(extraction.files, extraction.digests, strict=True)):
        if digest not in merged:
            first.append(i)
        merged.setdefault(digest, []).extend(tags_of[file])
    unique = [list(dict.fromkeys(row)) for row in merged.values()]
    return take_photographs(extraction, first), unique


def explain_failures(failures: Sequence[Failure]) -> str:
    """Say why no photograph could be read."""
    if not failures:
        return "No photograph was named. Pass at least one."
    first = "; ".join(f"{failure.file}: {failure.reason}" for failure in failures[:3])
    if len(failures) == 1:
        return f"The photograph could not be read. {first}"
    return f"None of the {len(failures)} photographs could be read. {first}"
