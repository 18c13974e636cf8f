"""Learn a semantic space from images on many machines, and compute embeddings."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from numbers import Integral
from typing import TYPE_CHECKING, NamedTuple, TypedDict, cast

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import Array, check_label_matrix
from tagkin.arrays.namespaces import LabelMatrix, Seed
from tagkin.distributed.chunks import (
    as_features,
    as_labels,
    blocks,
    check_block,
    fetch_rows,
    float_dtype,
    key,
    named_rows,
    put_in_graph,
)
from tagkin.distributed.cluster import client_or_current, compute, dask, detect_loss, result
from tagkin.errors import ClusterLost, InvalidInput
from tagkin.progress import Progress, with_progress
from tagkin.space import SemanticSpace, Space
from tagkin.space.landmark_map import choose_landmarks
from tagkin.space.moments import Moments
from tagkin.space.semantic_space import add_sums, start_from_landmarks
from tagkin.space.space import Landmarks
from tagkin.space.views import TextView, as_text_view

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from dask.delayed import Delayed
    from distributed import Client

__all__ = ["fit_space", "transform"]

_LABEL_SAMPLE = 2**17  # images whose labels a text view is fitted to
_BRANCHES = 4  # sums that one task adds up; each has the size of the landmarks squared
_ROUNDS = 32  # maximum number; after each round, this machine has the sums


class SumInputs(NamedTuple):
    """The inputs of a worker's sums over images."""

    view: TextView
    landmarks: Landmarks
    shift: Array


def fit_space(
    space: SemanticSpace,
    X: DaskArray,
    Y: DaskArray | LabelMatrix,
    *,
    client: Client | None = None,
    resume: bool = False,
    progress: bool | Progress = False,
) -> SemanticSpace:
    """Learn a space from features and labels on workers.

    This machine chooses the landmarks, among the same images as `SemanticSpace.fit`. Workers sum
    over their images, the sums are added in a tree, and this machine solves the space. It fits up
    to twice as many images as landmarks without the cluster.

    Parameters
    ----------
    space : SemanticSpace
        Fitted in place; if it fails, the space stays unchanged.
    X : Dask array of shape (N, d)
        A worker has a chunk in memory at a time; use chunks of 64 to 512 MiB.
    Y : Dask array of shape (N, D), of dense or CSR chunks, or an array in memory
        Labels. A text view that learns from labels uses at most 131,072 images.
    client : distributed.Client, optional
    resume : bool, default False
        Continue with a space that was learned from the first `space.n_images_` rows, as after a
        `ClusterLost`.
    progress : bool or function, default False
        Show a progress bar on a terminal; or call a function with the name of the step, the number
        of sums that arrived and their total.

    Raises
    ------
    ClusterLost
        If no worker is left. The space then includes the images whose sums had arrived.
    """
    space.check_parameters()
    client = client_or_current(client)
    X = as_features(X)
    Y = as_labels(Y, X)
    n = X.shape[0]
    if resume:
        learned = _copy_to_resume(space, X)
        if learned.n_images_ == n:
            return space
        X, Y = X[learned.n_images_ :], Y[learned.n_images_ :]
    elif _few(space, n):
        learned = clone(space).fit(*compute(X, Y, client=client))
        space.__dict__.update(vars(learned))
        return space
    else:
        learned = _start(clone(space), X, Y, client)
    try:
        _add_all(learned, X, Y, client, progress)
    except ClusterLost as error:
        raise _keep_partial(space, learned, n, error) from None
    if not learned.moments_.text_gram.any():
        raise InvalidInput(f"None of the {n} images has a label. Label some images first.")
    learned.solution()
    space.__dict__.update(vars(learned))
    return space


def _few(space: SemanticSpace, n: int) -> bool:
    """Whether choosing landmarks would fetch all images to this machine anyway."""
    if not isinstance(space.selection, str) or not isinstance(space.n_landmarks, Integral):
        return False
    return n <= max(2 * space.n_landmarks, 2048)


def _copy_to_resume(space: SemanticSpace, X: DaskArray) -> SemanticSpace:
    check_is_fitted(space)
    n, d = X.shape
    if space.n_images_ > n or space.n_features_in_ != d:
        raise InvalidInput(
            f"Cannot continue a space of {space.n_images_} images with {space.n_features_in_} "
            f"features: X has {n} and {d}. Pass all images, including the images already learned."
        )
    return copy.deepcopy(space)


def _keep_partial(
    space: SemanticSpace, learned: SemanticSpace, n: int, error: ClusterLost
) -> ClusterLost:
    """Keep the images whose sums have arrived, and return an error that says how to resume."""
    done = learned.n_images_
    if not done:
        return ClusterLost(f"{error} No sums had arrived yet.")
    space.__dict__.update(vars(learned))
    return ClusterLost(
        f"{error} The space has learned from the first {done:,} of {n:,} images; call fit_space "
        "with resume=True to continue from there."
    )


# --- before the sums ---------------------------------------------------------------------


class _Rows:
    """Rows of a Dask array, as `choose_landmarks` uses an array; fetched rows are cached."""

    def __init__(self, X: DaskArray, client: Client):
        self.shape, self._X, self._client = X.shape, X, client
        self.numbers = np.arange(0)
        self.held = np.empty((0, X.shape[1]), dtype=X.dtype)

    def __getitem__(self, numbers: np.ndarray) -> np.ndarray:
        """Return rows by number; the numbers of the first request must ascend."""
        if len(self.numbers) and np.isin(numbers, self.numbers).all():
            return self.held[np.searchsorted(self.numbers, numbers)]
        self.numbers, self.held = numbers, fetch_rows(self._X, numbers, self._client)
        return self.held


def _start(space: SemanticSpace, X: DaskArray, Y: DaskArray, client: Client) -> SemanticSpace:
    """Return a space with landmarks and a fitted view, before any image is added."""
    if isinstance(space.selection, str) and space.selection == "pgso":
        raise InvalidInput(
            "The selection 'pgso' compares every image with every landmark on one machine. Use "
            "'rpcholesky' or 'uniform', or pass landmarks."
        )
    rows = _Rows(X, client)
    chosen = choose_landmarks(
        cast("Array", rows), space.kernel, space.n_landmarks, space.selection, space.random_state
    )
    landmarks, _, _ = chosen.precise(space.regularization).factor()
    sample = rows.held if len(rows.held) else landmarks.points
    shift = landmarks.columns(sample[:: -(-len(sample) // 256)]).mean(axis=0, dtype=np.float64)
    view = as_text_view(space.text_view)
    labels = _sample_labels(Y, space.random_state, client)
    view.fit(labels)
    n_text = view.transform(labels[:1]).shape[1]
    return start_from_landmarks(space, landmarks, view, shift, n_text)


def _sample_labels(Y: DaskArray, random_state: Seed, client: Client) -> LabelMatrix:
    n = Y.shape[0]
    numbers = np.arange(n)
    if n > _LABEL_SAMPLE:
        rng = check_random_state(random_state)
        numbers = np.unique(rng.randint(n, size=_LABEL_SAMPLE))
    return check_label_matrix(fetch_rows(Y, numbers, client), len(numbers))


# --- the sums ----------------------------------------------------------------------------


def _add_all(
    space: SemanticSpace, X: DaskArray, Y: DaskArray, client: Client, progress: bool | Progress
) -> None:
    """Add the sums over all images, round by round, in order."""
    inputs = SumInputs(space.text_view_, space.landmarks_, space.moments_.shift)
    with detect_loss(client):
        shared = client.persist(put_in_graph(inputs, "landmarks"))
        # first images first, because a lost cluster leaves the sums of the first rounds
        rounds = enumerate(_rounds(shared, X, Y))
        futures = [client.compute(tree, priority=-i) for i, tree in rounds]
    for future in with_progress(futures, len(futures), "Learning the space", progress):
        add_sums(space, result(future, client, Moments))
        future.release()


def _rounds(inputs: Delayed, X: DaskArray, Y: DaskArray) -> list[Delayed]:
    """Return sums over consecutive images, each the root of a tree."""
    import dask.bag

    compute_sums = dask.delayed(_sums, pure=False)
    leaves = [
        compute_sums(inputs, x.value, y.value, x.start, dask_key_name=key("sums"))
        for x, y in zip(blocks(X, "X"), blocks(Y, "Y"), strict=True)
    ]
    size = max(2 * _BRANCHES, -(-len(leaves) // _ROUNDS))
    reduce = functools.partial(dask.bag.Bag.reduction, split_every=_BRANCHES)
    return [
        reduce(dask.bag.from_delayed(leaves[i : i + size]), _add, _add).to_delayed(False)
        for i in range(0, len(leaves), size)
    ]


def _sums(inputs: SumInputs, x: np.ndarray, y: LabelMatrix, start: int) -> list[Moments]:
    """Return the sums over the images of one block, as a list of one for the bag."""
    n = x.shape[0]
    with named_rows(start, start + n):
        labels = check_label_matrix(y, n)
        text = check_label_matrix(
            inputs.view.transform(labels), n, name="text features", signed=True
        )
        return [Moments.of(x, text, inputs.landmarks, inputs.shift)]


def _add(parts: Iterable[Moments]) -> Moments:
    """Return the sum; do not change the parts, because a task may run again."""
    first, *others = parts
    total = copy.deepcopy(first)
    for part in others:
        total.add(part)
    return total


# --- using -------------------------------------------------------------------------------


def transform(space: SemanticSpace, X: DaskArray) -> DaskArray:
    """Return embeddings of images X (N×d) as a lazy Dask array (N × n_components_).

    Compute it with `compute`, or with Dask's ``to_zarr``, ``to_npy_stack`` and so on, which keep
    finished chunks.

    Parameters
    ----------
    space : SemanticSpace
        A fitted space.
    X : Dask array of shape (N, d)
        Features.
    """
    X = as_features(X)
    check_is_fitted(space)
    if X.shape[1] != space.n_features_in_:
        raise InvalidInput(
            f"X has {X.shape[1]} features, but SemanticSpace is expecting {space.n_features_in_} "
            "features as input."
        )
    if not isinstance(space.landmarks_.points, np.ndarray):
        raise InvalidInput(
            f"The space is on the device {space.landmarks_.points.device}, but workers compute "
            "with NumPy arrays. Load it without a device."
        )
    dtype = float_dtype(X.dtype)
    return dask().array.map_blocks(
        _project,
        X,
        space=put_in_graph(space.space_, "space"),
        claimed=X.dtype,
        dtype=dtype,
        chunks=(X.chunks[0], (space.n_components_,)),
        meta=np.empty((0, 0), dtype=dtype),
        name=key("project"),
    )


# Dask's record of a block, of which the position in the array is used
_BlockInfo = TypedDict("_BlockInfo", {"array-location": list[tuple[int, int]]})


def _project(
    rows: np.ndarray,
    space: Space,
    claimed: np.dtype,
    block_info: dict[int, _BlockInfo],
) -> Array:
    start, stop = block_info[0]["array-location"][0]
    check_block(rows, claimed, start, "X")
    with named_rows(start, stop):
        return space.transform(rows)
