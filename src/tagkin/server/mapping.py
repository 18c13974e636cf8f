"""The map of the collection and the embeddings of its photographs.

The background process makes both after a fit, in a file beside the catalogue that can be deleted
at any time.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save
from threadpoolctl import threadpool_limits

from tagkin.catalogue import Catalogue, TaggedContent
from tagkin.filesystem import write_whole
from tagkin.labels import normalize_tag
from tagkin.progress import Progress, silent

if TYPE_CHECKING:
    from tagkin.annotator import Annotator

_N_DRAWN = 2000
_N_COLOURS = 9  # of static/look.css
_N_DIMENSIONS = 256  # leading dimensions of the space, which correlate most with tags
_N_DIRECTIONS = 50  # leading directions that positions depend on
_N_STEPS = 500  # of gradient descent, enough for a map
_FEWEST = 5  # fewer photographs are laid out by their two leading directions
_BLOCK = 1000


def map_path(catalogue: Path) -> Path:
    """Return the path of a catalogue's map."""
    return catalogue.with_suffix(".map")


def write_map(
    catalogue: Catalogue,
    annotator: Annotator,
    fingerprint: str,
    *,
    progress: Progress | None = None,
) -> Path:
    """Embed every photograph of a catalogue, and lay out at most 2,000 of them on a map.

    `fingerprint` identifies the model of the fitted annotator.
    """
    step = progress or silent
    photographs, embeddings = _embed(catalogue, annotator, step)
    step("Drawing the map", 0, 1)
    n = len(photographs)
    drawn = sorted(random.Random(0).sample(range(n), min(_N_DRAWN, n)))  # noqa: S311
    names, colours = colour_tags([photographs[i].tags for i in drawn], _N_COLOURS)
    arrays = {
        "contents": np.array([p.content for p in photographs], np.int64),
        "embeddings": embeddings,
        "drawn": np.array(drawn, np.int64),
        "positions": lay_out(embeddings[drawn]),
        "colours": np.array(colours, np.int64),
    }
    path = map_path(catalogue.path)
    write_whole(path, save(arrays, {"model": fingerprint, "tags": json.dumps(names)}), private=True)
    step("Drawing the map", 1, 1)
    return path


def _embed(
    catalogue: Catalogue, annotator: Annotator, step: Progress
) -> tuple[list[TaggedContent], np.ndarray]:
    """Return the readable photographs and their embeddings."""
    tagged = {photograph.file: photograph for photograph in catalogue.photographs.with_tags()}
    files = list(tagged)
    photographs: list[TaggedContent] = []
    embeddings: list[np.ndarray] = []
    for start in range(0, len(files), _BLOCK):
        step("Drawing the map", start, len(files))
        seen = annotator.read_features(files[start : start + _BLOCK])
        if seen.files:
            photographs += [tagged[file] for file in seen.files]
            embedded = _normalize(np.asarray(annotator.space_.transform(seen.features)))
            embeddings.append(embedded)
    empty = np.zeros((0, 1), np.float16)
    return photographs, np.concatenate(embeddings) if embeddings else empty


def colour_tags(rows: Sequence[Sequence[str]], n: int) -> tuple[list[str], list[int]]:
    """Return the n most frequent tags, and the position of each row's rarest among them, or −1.

    Spellings that differ only in case are the same tag, shown in its most frequent spelling.
    """
    spellings = Counter(tag for row in rows for tag in row)
    keys = {tag: normalize_tag(tag) for tag in spellings}
    folded = [{keys[tag] for tag in row} for row in rows]
    counts = Counter(key for row in folded for key in row)
    frequent = sorted(counts, key=lambda key: (-counts[key], key))[:n]
    written = [[tag for tag in spellings if keys[tag] == key] for key in frequent]
    names = [max(tags, key=spellings.__getitem__) for tags in written]
    shown = [[k for k, key in enumerate(frequent) if key in row] for row in folded]
    return names, [max(row, default=-1) for row in shown]


def _normalize(embeddings: np.ndarray) -> np.ndarray:
    """Scale the leading dimensions to unit length, so products of rows are cosines."""
    leading = embeddings[:, :_N_DIMENSIONS].astype(np.float32)
    length = np.linalg.norm(leading, axis=1, keepdims=True)
    return (leading / np.where(length > 0, length, 1)).astype(np.float16)


def lay_out(X: np.ndarray) -> np.ndarray:
    """Return positions from 0 to 1, close for photographs with similar cosines (t-SNE).

    The rows are scaled to unit length and projected onto their 50 leading directions; t-SNE starts
    from the first two directions. One thread gives the same positions for the same input.
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE
    from sklearn.preprocessing import normalize

    if not len(X) or not np.ptp(X, axis=0).any():
        return np.zeros((len(X), 2), np.float32)
    unit = normalize(X.astype(np.float64))
    with threadpool_limits(1):
        leading = PCA(min(_N_DIRECTIONS, *unit.shape), random_state=0).fit_transform(unit)
        positions = np.pad(leading, ((0, 0), (0, max(0, 2 - leading.shape[1]))))[:, :2]
        if len(X) >= _FEWEST and leading.any():
            start = 1e-4 * positions / positions.std(axis=0).max()
            perplexity = min(30.0, (len(X) - 1) / 3)
            positions = TSNE(
                perplexity=perplexity,
                init=start.astype(np.float32),
                max_iter=_N_STEPS,
                random_state=0,
                n_jobs=1,
            ).fit_transform(leading.astype(np.float32))
    low, high = positions.min(axis=0), positions.max(axis=0)
    return ((positions - low) / np.maximum(high - low, 1e-12)).astype(np.float32)


class Place(NamedTuple):
    """A photograph on the map, with coordinates from 0 to 1."""

    content: int
    position: tuple[float, float]
    colour: int
    """Position of its tag among the coloured tags, or −1."""


class CollectionMap:
    """The map file of a catalogue, read at first use and after each change."""

    def __init__(self, catalogue: Path):
        self._path = map_path(catalogue)
        self._lock = threading.Lock()
        self._file_status: tuple[int, int] | None = None
        self._arrays: dict[str, np.ndarray] = {}
        self._metadata: dict[str, str] = {}
        self._rows: dict[int, int] = {}

    @property
    def model(self) -> str | None:
        """Fingerprint of the map's model; None if there is no map."""
        with self._lock:
            return self._metadata.get("model") if self._read() else None

    def drawn(self) -> tuple[list[str], list[Place]]:
        """Return the coloured tags, and the photographs on the map; none if there is no map."""
        with self._lock:
            if not self._read():
                return [], []
            arrays = self._arrays
            columns = (
                arrays["contents"][arrays["drawn"]],
                arrays["positions"].round(4),
                arrays["colours"],
            )
            rows = zip(*(column.tolist() for column in columns), strict=True)
            return json.loads(self._metadata["tags"]), [Place(*row) for row in rows]

    def similar(self, content: int, n: int) -> list[int] | None:
        """Return the nearest photographs; None if this one is not on the map."""
        with self._lock:
            if not self._read() or content not in self._rows:
                return None
            contents, embeddings = self._arrays["contents"], self._arrays["embeddings"]
            row = self._rows[content]
        cosines = embeddings @ embeddings[row]
        cosines[row] = -np.inf
        n = min(n, len(cosines) - 1)
        nearest = np.argpartition(-cosines, n - 1)[:n] if n > 0 else np.zeros(0, int)
        nearest = nearest[np.argsort(-cosines[nearest], kind="stable")]
        neighbours: list[int] = contents[nearest].tolist()
        return neighbours

    def _read(self) -> bool:
        """Read the map if it has changed; return whether there is a map."""
        try:
            status = self._path.stat()
            file_status = status.st_mtime_ns, status.st_size
            if file_status == self._file_status:
                return True
            with safe_open(self._path, "numpy") as file:
                self._arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
                self._metadata = file.metadata() or {}
            # most processors are slow at half precision
            self._arrays["embeddings"] = self._arrays["embeddings"].astype(np.float32)
            self._rows = {int(c): i for i, c in enumerate(self._arrays["contents"])}
        except (OSError, SafetensorError, KeyError):
            return False
        self._file_status = file_status
        return True
