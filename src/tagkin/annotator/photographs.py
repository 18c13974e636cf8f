"""Photographs as a caller may name them, and as they were seen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tagkin.annotator.collection import Collection
from tagkin.features import Extraction
from tagkin.images import Failure

__all__ = ["Photographs", "all_unreadable", "merged", "paths_of", "rows_of"]

Photographs = Any
"""A path, several, a `Collection`, or the `Extraction` of photographs that were looked at."""


def paths_of(photographs: Photographs) -> list[str]:
    """Where the photographs are."""
    if isinstance(photographs, (str, os.PathLike)):
        return [os.fspath(photographs)]
    if isinstance(photographs, (Collection, Extraction)):
        return list(photographs.files)
    return [os.fspath(file) for file in photographs]


def rows_of(seen: Extraction, rows: Sequence[int] | np.ndarray) -> Extraction:
    """Some of the photographs."""
    return replace(
        seen,
        files=[seen.files[i] for i in rows],
        features=seen.features[np.asarray(rows, dtype=np.int64)],
        digests=[seen.digests[i] for i in rows],
    )


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
    return rows_of(seen, first), [list(dict.fromkeys(row)) for row in together.values()]


def all_unreadable(failures: Sequence[Failure]) -> str:
    """What to say where no photograph could be read."""
    first = "; ".join(f"{one.file}: {one.reason}" for one in failures[:3])
    if len(failures) == 1:
        return f"The photograph could not be read. {first}"
    return f"None of the {len(failures)} photographs could be read. {first}"
