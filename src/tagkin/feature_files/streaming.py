"""Fit, project and search features that do not fit in memory; resume after a stop."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

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
from tagkin.feature_files.files import FeatureFiles, open_features
from tagkin.filesystem import is_litter, replace_file, write_whole
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.progress import Progress, silent
from tagkin.space import SemanticSpace
from tagkin.storage import load, save

__all__ = ["fit_streamed", "nearest_streamed", "transform_streamed"]

# Images that landmarks are chosen among: for each landmark, and in all.
_CANDIDATES, FEWEST_CANDIDATES = 2, 2048


# --- fitting -----------------------------------------------------------------------------


def fit_streamed(
    space: SemanticSpace,
    features: str | os.PathLike[str] | FeatureFiles,
    Y: Array,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    save_every: float = 60.0,
    device: object = None,
    progress: Progress | None = None,
) -> SemanticSpace:
    """Learn a space from features on disk, in memory that does not grow with their number.

    Landmarks are chosen among a random sample of all images. A thread reads the next block
    while the space learns from this one.

    Parameters
    ----------
    space : SemanticSpace
        Fitted in place; if it fails, the space stays unchanged.
    features : path or FeatureFiles
        Features (N×d), see `open_features`.
    Y : array of shape (N, D), dense or sparse
        Labels, in memory.
    checkpoint : path of a folder, optional
        The state is saved there every `save_every` seconds. A call with the same features, labels
        and parameters resumes from there, with the same result. The checkpoint is removed at the
        end.
    save_every : float, default 60
        Seconds between saves; a stop loses at most this much work.
    device : torch device, optional
        Device for blocks and the space.
    progress : function, optional
        Called with the name of the step, the number of images learned from and N.
    """
    files, step = open_features(features), progress or silent
    Y = check_label_matrix(Y, len(files))
    saved_state = None
    if checkpoint is not None:
        saved_state = _Checkpoint(Path(checkpoint), _description(space, files, Y))
    restored, start = saved_state.restore(device) if saved_state else (None, 0)
    learned = clone(space) if restored is None else restored
    if restored is None:
        _start(learned, files, Y, device)
    last_save = time.monotonic()
    for rows, block in files.blocks(start):
        _learn(learned.partial_fit, block, Y, range(rows.start, rows.stop), device)
        step("Learning the space", rows.stop, len(files))
        if saved_state is not None and time.monotonic() - last_save >= save_every:
            saved_state.save(learned, rows.stop)
            last_save = time.monotonic()
    space.__dict__.update(vars(learned))
    if saved_state is not None:
        saved_state.remove()
    return space


def _start(space: SemanticSpace, files: FeatureFiles, Y: Array, device: object) -> None:
    """Choose landmarks among a sample of all images; number them by their rows in all images."""
    n = len(files)
    size = min(n, max(FEWEST_CANDIDATES, _CANDIDATES * space.n_landmarks))
    rng = check_random_state(space.random_state)
    rows = np.arange(n) if size == n else np.sort(rng.choice(n, size=size, replace=False))
    _learn(space.prepare, files.take(rows), Y, rows, device)
    indices = space.landmarks_.indices
    if indices is not None:
        space.landmarks_ = replace(space.landmarks_, indices=rows[indices])


def _learn(
    learn: Callable[[Array, Array], object],
    block: np.ndarray,
    Y: Array,
    rows: range | np.ndarray,
    device: object,
) -> None:
    """Call `learn` with features and labels of these rows; errors name rows of all images."""
    labels = Y[rows.start : rows.stop] if isinstance(rows, range) else Y[rows]
    if device is not None and isinstance(labels, np.ndarray):
        labels = on_device(labels, device)
    try:
        learn(_move(block, device), labels)
    except InvalidInput:
        check_finite(as_block(block, finite=False), rows=rows)
        raise


def _move(block: np.ndarray, device: object) -> Array:
    return block if device is None else on_device(block, device)


def _description(space: SemanticSpace, files: FeatureFiles, Y: Array) -> str:
    """Return a description that a checkpoint and the resuming call must share."""
    parameters = {
        name: _fingerprint(value) if hasattr(value, "dtype") else repr(value)
        for name, value in space.get_params(deep=False).items()
    }
    sparse = scipy.sparse.csr_array(Y) if scipy.sparse.issparse(Y) else None
    labels = [Y] if sparse is None else [sparse.indptr, sparse.indices, sparse.data]
    return json.dumps(
        {
            "space": parameters,
            "features": files.fingerprint(),
            "labels": [*Y.shape, _fingerprint(*labels)],
        }
    )


def _fingerprint(*arrays: Array) -> str:
    """Return a short text that changes with any number of the arrays."""
    digest = hashlib.sha256()
    for values in arrays:
        array = np.ascontiguousarray(to_numpy(values))
        digest.update(repr((array.shape, str(array.dtype))).encode())
        digest.update(array.data)
    return digest.hexdigest()[:16]


class _Checkpoint:
    """A folder with the current model, named by the number of images it has learned from.

    Models are renamed after they are complete, so every model in the folder is complete.
    """

    def __init__(self, folder: Path, description: str):
        self.folder = folder
        about = folder / "about.json"
        if about.exists():
            if about.read_text(encoding="utf-8") != description:
                raise InvalidInput(
                    f"The checkpoint {folder} belongs to other features, labels or parameters. "
                    "Remove it to start again, or choose another folder."
                )
            return
        if folder.exists() and not all(is_litter(path.name) for path in folder.iterdir()):
            raise InvalidInput(
                f"{folder} contains files that are not a checkpoint. Choose another folder."
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(about, description.encode())

    def _models(self) -> list[Path]:
        return sorted(self.folder.glob("images-*"))

    def restore(self, device: object) -> tuple[SemanticSpace | None, int]:
        """Return the newest model and the number of images it has learned from."""
        for path in reversed(self._models()):
            try:
                return load(path, device=device), int(path.name.split("-")[1])
            except StorageError:
                continue  # an earlier model may be intact
        return None, 0

    def save(self, space: SemanticSpace, n_images: int) -> None:
        """Save the model of the first `n_images` images, and remove older models."""
        old = self._models()
        save(space, self.folder / f"images-{n_images:012d}")
        for path in old:
            shutil.rmtree(path)

    def remove(self) -> None:
        """Remove the checkpoint."""
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

    Rows are first written to ``out`` + ".partial", which is renamed when complete; after a stop,
    the next call writes only the missing rows.

    Parameters
    ----------
    space : fitted SemanticSpace
        It projects on the device that it was learned on or loaded to.
    features : path or FeatureFiles
    out : path of the .npy file
        An existing file is never replaced.
    progress : function, optional
        Called with the name of the step, the number of images projected and N.
    """
    files, target, step = open_features(features), Path(out), progress or silent
    if target.exists():
        raise InvalidInput(f"{target} already exists. Remove it, or choose another name.")
    shape = len(files), space.n_components_
    dtype = np.dtype("float64" if files.dtype == np.float64 else "float32")
    learned = _fingerprint(space.text_mean_, space.readout_, space.landmarks_.points)
    description = f"{files.fingerprint()} {shape} {learned}"
    partial = target.with_name(target.name + ".partial")
    about = target.with_name(target.name + ".partial.json")
    if not about.exists() or about.read_text(encoding="utf-8") != description:
        partial.unlink(missing_ok=True)
        write_whole(about, description.encode())
    landmarks = space.landmarks_.points
    device = None if isinstance(landmarks, np.ndarray) else landmarks.device
    with partial.open("ab") as file:
        start = _resume(file, shape, dtype)
        for rows, block in files.blocks(start):
            embeddings = to_numpy(space.transform(_move(block, device)))
            file.write(np.ascontiguousarray(embeddings, dtype=dtype).data)
            file.flush()
            step("Projecting", rows.stop, len(files))
    replace_file(partial, target)
    about.unlink()
    return target


def _resume(file: BinaryIO, shape: tuple[int, int], dtype: np.dtype) -> int:
    """Return the number of complete rows; cut off an incomplete row, or write the header."""
    if file.tell() == 0:
        header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        return 0
    with open(file.name, "rb") as reader:
        np.lib.format.read_magic(reader)
        np.lib.format.read_array_header_1_0(reader)
        data_start = reader.tell()
    row_bytes = shape[1] * dtype.itemsize
    done = (file.tell() - data_start) // row_bytes
    file.truncate(data_start + done * row_bytes)
    file.seek(0, os.SEEK_END)
    return int(done)


# --- searching ---------------------------------------------------------------------------


def nearest_streamed(
    queries: Array,
    points: str | os.PathLike[str] | FeatureFiles,
    n_neighbors: int,
    *,
    metric: str = "cosine",
    device: object = None,
) -> Neighbors:
    """Find the exact nearest points on disk (N×m) of each query (n×m) in memory.

    The result equals that of `tagkin.neighbors.nearest` over all points (with the Euclidean metric
    up to rounding). Memory holds the queries, a block of points, and the best neighbours so far.

    Parameters
    ----------
    queries : array of shape (n, m)
        A tensor on `device`, if given.
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
        index = ExactNeighbors(metric).fit(_move(block, device))
        local = index.kneighbors(queries, min(n_neighbors, rows.stop - rows.start))
        neighbors = Neighbors(local.indices + rows.start, local.distances)
        best = neighbors if best is None else _merge(best, neighbors, n_neighbors)
    assert best is not None
    return best


def _merge(first: Neighbors, second: Neighbors, k: int) -> Neighbors:
    """Return the k nearest of two lists for each query; the first list has the lower indices."""
    xp = namespace(first.indices)
    indices, distances = (xp.concat(pair, axis=1) for pair in zip(first, second, strict=True))
    order = xp.argsort(distances, axis=1, stable=True)[:, :k]
    return Neighbors(*(xp.take_along_axis(part, order, axis=1) for part in (indices, distances)))
