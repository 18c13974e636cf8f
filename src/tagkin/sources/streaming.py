"""Fit, project and search features that are too many for memory, and go on after a stop."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from tagkin.arrays import (
    Array,
    as_block,
    check_finite,
    check_label_matrix,
    namespace,
    on_device,
    to_numpy,
)
from tagkin.errors import InvalidInput, StorageError
from tagkin.filesystem import is_litter, put_file, write_whole
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.progress import Progress
from tagkin.sources.files import FeatureFiles, open_features
from tagkin.space import SemanticSpace
from tagkin.storage import load, save

__all__ = ["fit_streamed", "nearest_streamed", "transform_streamed"]

# Images that landmarks are chosen among: for each landmark, and in all.
_CANDIDATES, _FEWEST = 2, 2048


# --- fitting -----------------------------------------------------------------------------


def fit_streamed(
    space: SemanticSpace,
    features: str | os.PathLike[str] | FeatureFiles,
    Y: Array,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    save_every: float = 60.0,
    device: Any = None,
    progress: Progress | None = None,
) -> SemanticSpace:
    """Learn a space from features on disk, in memory that does not grow with their number.

    Landmarks are chosen among a random sample of all images. A thread reads the next block
    while this one is learned from.

    Parameters
    ----------
    space : SemanticSpace
        Fitted anew, in place; if it fails, what was learned before stays.
    features : path or FeatureFiles
        Features (N×d), see `open_features`.
    Y : array of shape (N, D), dense or sparse
        Labels, in memory.
    checkpoint : path of a folder, optional
        What was learned is stored there every `save_every` seconds. A call with the same
        features, labels and parameters goes on from there, to the same result. That they are the
        same is told by their content, of which a gibibyte is read for it at most. It is removed
        at the end.
    save_every : float, default 60
        Seconds; what a stop can cost.
    device : torch device, optional
        Blocks are moved there, and the space is learned there.
    progress : function, optional
        Called with what is done, the number of images learned from and N.

    Returns
    -------
    space : SemanticSpace
    """
    files = open_features(features)
    Y = check_label_matrix(Y, len(files))
    marks = None
    if checkpoint is not None:
        marks = _Checkpoint(Path(checkpoint), _description(space, files, Y))
    restored, start = marks.restored(device) if marks else (None, 0)
    learned = clone(space) if restored is None else restored
    if restored is None:
        _start(learned, files, Y, device)
    saved = time.monotonic()
    for rows, block in files.blocks(start):
        _learn(learned.partial_fit, block, Y, range(rows.start, rows.stop), device)
        if progress is not None:
            progress("Learning the space", rows.stop, len(files))
        if marks is not None and time.monotonic() - saved >= save_every:
            marks.save(learned, rows.stop)
            saved = time.monotonic()
    space.__dict__.update(vars(learned))
    if marks is not None:
        marks.remove()
    return space


def _start(space: SemanticSpace, files: FeatureFiles, Y: Array, device: Any) -> None:
    """Choose landmarks among a sample of all images; they are named by their rows in all."""
    n = len(files)
    size = min(n, max(_FEWEST, _CANDIDATES * space.n_landmarks))
    rng = check_random_state(space.random_state)
    rows = np.arange(n) if size == n else np.sort(rng.choice(n, size=size, replace=False))
    _learn(space.prepare, files.take(rows), Y, rows, device)
    indices = space.landmarks_.indices
    if indices is not None:
        space.landmarks_ = replace(space.landmarks_, indices=rows[indices])


def _learn(
    learn: Callable[[Array, Array], Any], block: np.ndarray, Y: Array, rows: Any, device: Any
) -> None:
    """Pass features and labels of these rows on; an error names rows by their number in all."""
    labels = Y[rows.start : rows.stop] if isinstance(rows, range) else Y[rows]
    if device is not None and isinstance(labels, np.ndarray):
        labels = on_device(labels, device)
    try:
        learn(_placed(block, device), labels)
    except InvalidInput:
        check_finite(as_block(block, finite=False), rows=rows)
        raise


def _placed(block: np.ndarray, device: Any) -> Array:
    return block if device is None else on_device(block, device)


def _description(space: SemanticSpace, files: FeatureFiles, Y: Array) -> str:
    """What a checkpoint must have in common with a call that goes on from it."""
    parameters = {
        name: hashlib.sha256(to_numpy(value).tobytes()).hexdigest()
        if hasattr(value, "dtype")
        else repr(value)
        for name, value in space.get_params(deep=False).items()
    }
    return json.dumps(
        {"space": parameters, "features": files.fingerprint(), "labels": _labels_mark(Y)}
    )


def _labels_mark(Y: Array) -> str:
    """A short text for labels (N×D), which differs where any label does."""
    if scipy.sparse.issparse(Y):
        matrix = scipy.sparse.csr_array(Y)
        parts = [matrix.indptr, matrix.indices, matrix.data]
    else:
        parts = [to_numpy(Y)]
    seen = hashlib.sha256(repr(tuple(Y.shape)).encode())
    for part in parts:
        seen.update(str(part.dtype).encode())
        seen.update(np.ascontiguousarray(part).data)
    return seen.hexdigest()[:16]


class _Checkpoint:
    """A folder with what was learned so far: one model, named by the images that it has seen.

    Models are written whole and then named, so that one that is there is complete.
    """

    def __init__(self, folder: Path, description: str):
        self.folder = folder
        about = folder / "about.json"
        if about.exists():
            if about.read_text(encoding="utf-8") != description:
                raise InvalidInput(
                    f"The checkpoint {folder} belongs to other features, labels or parameters. "
                    "Remove it to begin anew, or choose another folder."
                )
            return
        if folder.exists() and not all(is_litter(path.name) for path in folder.iterdir()):
            raise InvalidInput(f"{folder} holds files that are not a checkpoint; it is left alone.")
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(about, description.encode())

    def _models(self) -> list[Path]:
        return sorted(self.folder.glob("images-*"))

    def restored(self, device: Any) -> tuple[SemanticSpace | None, int]:
        """The newest model and how many images it has seen."""
        for path in reversed(self._models()):
            try:
                return load(path, device=device), int(path.name.split("-")[1])
            except StorageError:
                continue  # an earlier one may be whole
        return None, 0

    def save(self, space: SemanticSpace, n_images: int) -> None:
        """Store what was learned from the first so many images, and drop what is older."""
        old = self._models()
        save(space, self.folder / f"images-{n_images:012d}")
        for path in old:
            shutil.rmtree(path)

    def remove(self) -> None:
        """Leave nothing behind."""
        for path in self._models():
            shutil.rmtree(path)
        (self.folder / "about.json").unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()


# --- projecting --------------------------------------------------------------------------


def transform_streamed(
    space: SemanticSpace,
    features: str | os.PathLike[str] | FeatureFiles,
    out: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
) -> Path:
    """Project features on disk into the space, to an ``.npy`` file (N × n_components_).

    Rows are written to ``out`` + ".partial" as they come, and named when they are complete; a
    call that was stopped goes on with the rows that are missing.

    Parameters
    ----------
    space : fitted SemanticSpace
        It projects where it was learned or loaded: on the processor or on a device.
    features : path or FeatureFiles
    out : path of the .npy file
        An existing file is never replaced.
    progress : function, optional
        Called with what is done, the number of images projected and N.

    Returns
    -------
    out : Path
    """
    files, target = open_features(features), Path(out)
    if target.exists():
        raise InvalidInput(f"{target} is there already. Remove it, or choose another name.")
    shape = len(files), space.n_components_
    dtype = np.dtype("float64" if files.dtype == np.float64 else "float32")
    description = f"{files.fingerprint()} {shape} {_mark_of(space)}"
    partial = target.with_name(target.name + ".partial")
    about = target.with_name(target.name + ".partial.json")
    if not about.exists() or about.read_text(encoding="utf-8") != description:
        partial.unlink(missing_ok=True)
        write_whole(about, description.encode())
    where = _device_of(space)
    with partial.open("ab") as file:
        start = _continued(file, shape, dtype)
        for rows, block in files.blocks(start):
            embeddings = to_numpy(space.transform(_placed(block, where)))
            file.write(np.ascontiguousarray(embeddings, dtype=dtype).data)
            file.flush()
            if progress is not None:
                progress("Projecting", rows.stop, len(files))
    put_file(partial, target)
    about.unlink()
    return target


def _continued(file: Any, shape: tuple[int, int], dtype: np.dtype) -> int:
    """How many whole rows a file has; what is not whole goes, and a new file gets its header."""
    if file.tell() == 0:
        header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        return 0
    with open(file.name, "rb") as reading:
        np.lib.format.read_magic(reading)
        np.lib.format.read_array_header_1_0(reading)
        begin = reading.tell()
    row_bytes = shape[1] * dtype.itemsize
    done = (file.tell() - begin) // row_bytes
    file.truncate(begin + done * row_bytes)
    file.seek(0, os.SEEK_END)
    return int(done)


def _mark_of(space: SemanticSpace) -> str:
    """A short text that changes when the space does."""
    seen = hashlib.sha256(to_numpy(space.text_mean_).tobytes())
    seen.update(to_numpy(space.readout_).tobytes())
    seen.update(to_numpy(space.landmarks_.points).tobytes())
    return seen.hexdigest()[:16]


def _device_of(space: SemanticSpace) -> Any:
    """The device of the space's landmarks; None for NumPy arrays."""
    points = space.landmarks_.points
    return None if isinstance(points, np.ndarray) else points.device


# --- searching ---------------------------------------------------------------------------


def nearest_streamed(
    queries: Array,
    points: str | os.PathLike[str] | FeatureFiles,
    n_neighbors: int,
    *,
    metric: str = "cosine",
    device: Any = None,
) -> Neighbors:
    """The nearest points on disk (N×m) of each query (n×m) in memory, exactly.

    The result is that of `tagkin.neighbors.nearest` over all points (with the Euclidean metric
    up to rounding); memory holds the queries, a block of points, and the best so far.

    Parameters
    ----------
    queries : array of shape (n, m)
        A tensor on `device`, where one is given.
    points : path or FeatureFiles
    n_neighbors : int
        At most N.
    metric : "cosine" or "euclidean"
    device : torch device, optional
        Blocks of points are moved there.
    """
    files = open_features(points)
    if n_neighbors > len(files):
        raise InvalidInput(
            f"Asked for {n_neighbors} neighbours among {len(files)} points. Ask for at most "
            f"{len(files)}."
        )
    best: Neighbors | None = None
    for rows, block in files.blocks():
        index = ExactNeighbors(metric).fit(_placed(block, device))
        found = index.kneighbors(queries, min(n_neighbors, rows.stop - rows.start))
        found = Neighbors(found.indices + rows.start, found.distances)
        best = found if best is None else _nearer(best, found, n_neighbors)
    assert best is not None
    return best


def _nearer(first: Neighbors, second: Neighbors, k: int) -> Neighbors:
    """The k nearest of two lists for each query; indices in the first are the lower ones."""
    xp = namespace(first.indices)
    indices, distances = (xp.concat(pair, axis=1) for pair in zip(first, second, strict=True))
    order = xp.argsort(distances, axis=1, stable=True)[:, :k]
    return Neighbors(*(xp.take_along_axis(part, order, axis=1) for part in (indices, distances)))
