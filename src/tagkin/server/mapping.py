"""The collection as a map, and where each photograph is in the semantic space.

Both are made beside the pages, after a fit, and kept in one file beside the catalogue. It can be
deleted at any time.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from tagkin.catalogue import Catalogue, TaggedContent
from tagkin.collection import Progress
from tagkin.filesystem import write_whole

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

__all__ = ["CollectionMap", "map_path", "write_map"]

_N_DRAWN = 2000
_N_COLOURS = 9
_N_DIMENSIONS = 256  # the leading ones of the space: those that tags have most to do with
_BLOCK = 1000


def map_path(catalogue: Path) -> Path:
    """Where the map of a catalogue lies."""
    return catalogue.with_suffix(".map")


class _Placed(NamedTuple):
    """Photographs that could be read, in the semantic space and, some of them, as they look."""

    each: list[TaggedContent]
    embeddings: np.ndarray
    drawn: list[int]
    """Which of them are drawn."""
    features: np.ndarray
    """Of those."""


def write_map(
    catalogue: Catalogue,
    annotator: Annotator,
    fingerprint: str,
    *,
    progress: Progress | None = None,
) -> Path:
    """Embed every photograph of a catalogue, and lay some of them out in the plane.

    Parameters
    ----------
    catalogue : Catalogue
    annotator : Annotator
        Fitted.
    fingerprint : str
        Of its model: a map of another one is old.
    """
    from tagkin.pages.map import lay_out, most_frequent

    step = progress or (lambda what, done, total: None)
    placed = _placed(catalogue, annotator, step)
    step("Drawing the map", 0, 1)
    tags = [placed.each[i].tags for i in placed.drawn]
    shown = most_frequent(tags, _N_COLOURS)
    arrays = {
        "contents": np.array([one.content for one in placed.each], np.int64),
        "embeddings": placed.embeddings,
        "drawn": np.array(placed.drawn, np.int64),
        "semantic": _scaled(lay_out(placed.embeddings[placed.drawn].astype(np.float32))),
        "visual": _scaled(lay_out(placed.features)),
        "colours": _colours(tags, shown),
    }
    path = map_path(catalogue.path)
    write_whole(path, save(arrays, {"model": fingerprint, "tags": json.dumps(shown)}), private=True)
    step("Drawing the map", 1, 1)
    return path


def _placed(catalogue: Catalogue, annotator: Annotator, step: Progress) -> _Placed:
    every = catalogue.photographs.with_tags()
    chosen = set(random.Random(0).sample(range(len(every)), min(_N_DRAWN, len(every))))  # noqa: S311
    each: list[TaggedContent] = []
    drawn: list[int] = []
    blocks, features = [np.zeros((0, 1), np.float16)], [np.zeros((0, 1), np.float32)]
    for start in range(0, len(every), _BLOCK):
        step("Embedding photographs", start, len(every))
        block = every[start : start + _BLOCK]
        seen = annotator.read_features([one.file for one in block])
        if not seen.files:
            continue
        row_of = {file: row for row, file in enumerate(seen.files)}
        wanted = []
        for k, one in enumerate(block):
            if one.file in row_of:
                if start + k in chosen:
                    drawn.append(len(each))
                    wanted.append(row_of[one.file])
                each.append(one)
        rows = [row_of[one.file] for one in block if one.file in row_of]
        blocks.append(_unit(np.asarray(annotator.space_.transform(seen.features))[rows]))
        features.append(np.asarray(seen.features)[wanted])
    some = [one for one in blocks[1:] if len(one)]
    return _Placed(
        each,
        np.concatenate(some) if some else blocks[0],
        drawn,
        np.concatenate(features[1:]) if each else features[0],
    )


def _unit(embeddings: np.ndarray) -> np.ndarray:
    """The leading dimensions, scaled to unit length: products of rows are cosines."""
    leading = embeddings[:, :_N_DIMENSIONS].astype(np.float32)
    length = np.linalg.norm(leading, axis=1, keepdims=True)
    return (leading / np.where(length > 0, length, 1)).astype(np.float16)


def _scaled(at: np.ndarray) -> np.ndarray:
    """Positions between 0 and 1."""
    if not len(at):
        return at.astype(np.float32)
    low, high = at.min(axis=0), at.max(axis=0)
    return ((at - low) / np.maximum(high - low, 1e-12)).astype(np.float32)


def _colours(tags: Sequence[Sequence[str]], shown: Sequence[str]) -> np.ndarray:
    """Of each photograph the rarest tag that has a colour; -1 where it has none."""
    counts = Counter(tag for row in tags for tag in row)
    own = [[k for k, tag in enumerate(shown) if tag in row] for row in tags]
    return np.array(
        [min(row, key=lambda k: counts[shown[k]]) if row else -1 for row in own], np.int64
    )


class CollectionMap:
    """The map of a catalogue as it lies on the disk; read when it is asked for, or is new.

    Parameters
    ----------
    catalogue : Path
    """

    def __init__(self, catalogue: Path):
        self._path = map_path(catalogue)
        self._lock = threading.Lock()
        self._of: tuple[int, int] | None = None
        self._arrays: dict[str, np.ndarray] = {}
        self._told: dict[str, Any] = {}
        self._rows: dict[int, int] = {}

    @property
    def model(self) -> str | None:
        """Fingerprint of the model that it was made with; None where there is no map."""
        with self._lock:
            return self._told.get("model") if self._read() else None

    def drawn(self) -> dict[str, Any] | None:
        """Photographs with their positions, from 0 to 1, and the tag that colours each."""
        with self._lock:
            if not self._read():
                return None
            arrays = self._arrays
            columns = (
                arrays["contents"][arrays["drawn"]],
                *arrays["semantic"].round(4).T,
                *arrays["visual"].round(4).T,
                arrays["colours"],
            )
            names = ("contents", "x", "y", "visual_x", "visual_y", "colours")
            lists = {name: column.tolist() for name, column in zip(names, columns, strict=True)}
            return {"tags": json.loads(self._told["tags"])} | lists

    def similar(self, content: int, n: int) -> list[tuple[int, float]] | None:
        """Photographs nearest to one in the semantic space, with cosines; None: not placed."""
        with self._lock:
            if not self._read() or content not in self._rows:
                return None
            contents, embeddings = self._arrays["contents"], self._arrays["embeddings"]
            row = self._rows[content]
        cosines = embeddings @ embeddings[row]
        cosines[row] = -np.inf
        n = min(n, len(cosines) - 1)
        near = np.argpartition(-cosines, n - 1)[:n] if n > 0 else np.zeros(0, int)
        near = near[np.argsort(-cosines[near], kind="stable")]
        return [(int(contents[i]), float(cosines[i])) for i in near]

    def _read(self) -> bool:
        """Whether there is a map; one that is new is read."""
        try:
            status = self._path.stat()
            of = status.st_mtime_ns, status.st_size
            if of == self._of:
                return True
            with safe_open(self._path, "numpy") as file:
                self._arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                self._told = file.metadata() or {}
            # products of half precision are slow on most processors
            self._arrays["embeddings"] = self._arrays["embeddings"].astype(np.float32)
            self._rows = {int(c): i for i, c in enumerate(self._arrays["contents"])}
        except (OSError, SafetensorError, KeyError):
            return False
        self._of = of
        return True
