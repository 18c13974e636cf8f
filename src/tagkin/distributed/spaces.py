"""The semantic space from images that lie on many machines, and the way into it."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tagkin.arrays import Array, check_label_matrix
from tagkin.distributed.blocks import (
    as_features,
    as_labels,
    blocks,
    carried,
    checked,
    fetch_rows,
    float_dtype,
    key,
    named_rows,
)
from tagkin.distributed.cluster import bar, client_or_current, dask, result, submitting
from tagkin.errors import ClusterLost, InvalidInput
from tagkin.space import SemanticSpace
from tagkin.space.landmarks import Landmarks
from tagkin.space.moments import Moments
from tagkin.space.views import TextView, as_text_view

__all__ = ["fit_space", "transform"]

_FEW = 2048
_LABELS_LOOKED_AT = 2**17  # images whose labels a text view is fitted to
_BRANCHES = 4  # sums that one task adds up: each is of the size of the landmarks squared
_ROUNDS = 32  # at most: after each, what was summed up is safe here


class Question(NamedTuple):
    """What a worker needs to sum over images."""

    view: TextView
    landmarks: Landmarks
    shift: Array


def fit_space(
    space: SemanticSpace,
    X: Any,
    Y: Any,
    *,
    client: Any = None,
    resume: bool = False,
    progress: bool = False,
) -> SemanticSpace:
    """Learn a space from features and labels that workers hold or read.

    Landmarks are chosen here, once, among the very images that `SemanticSpace.fit` would choose
    them from. Workers sum over their images; the sums meet in a tree, and the space is solved
    here. Up to twice as many images as landmarks are fitted here, without the cluster.

    Parameters
    ----------
    space : SemanticSpace
        Fitted in place. If it fails, what was learned before stays.
    X : Dask array of shape (N, d)
        Its chunks are what a worker holds at a time: 64 to 512 MiB are good.
    Y : Dask array of shape (N, D), of dense or CSR chunks, or an array in memory
        Labels. A text view that learns from labels sees those of 131,072 images at most.
    client : distributed.Client, optional
        By default the one that is in use.
    resume : bool, default False
        Go on with a space that was learned from the first of these images, as after a
        `ClusterLost`: the first `space.n_images_` rows are left out.
    progress : bool, default False
        Show Dask's own bar. On the dashboard, the tasks are ``tagkin-sums``.

    Returns
    -------
    space : SemanticSpace

    Raises
    ------
    ClusterLost
        Where no worker is left. The space then holds the images whose sums had come in.
    """
    space.check_parameters()
    client = client_or_current(client)
    X = as_features(X)
    Y = as_labels(Y, X)
    n = X.shape[0]
    if resume:
        learned = _continued(space, X)
        if learned.n_images_ == n:
            return space
        X, Y = X[learned.n_images_ :], Y[learned.n_images_ :]
    elif _few(space, n):
        everything = np.arange(n)
        learned = clone(space).fit(
            fetch_rows(X, everything, client), fetch_rows(Y, everything, client)
        )
        space.__dict__.update(vars(learned))
        return space
    else:
        learned = _begun(clone(space), X, Y, client)
    try:
        _add_all(learned, X, Y, client, progress)
    except ClusterLost as error:
        raise _kept(space, learned, n, error) from None
    if not learned.moments_.text_gram.any():
        raise InvalidInput(f"No label at all: none of the {n} images carries any. Tag some first.")
    learned.solve()
    space.__dict__.update(vars(learned))
    return space


def _few(space: SemanticSpace, n: int) -> bool:
    """Whether all images would be looked at here anyway, to choose landmarks among them."""
    if not isinstance(space.selection, str) or not isinstance(space.n_landmarks, Integral):
        return False
    return n <= max(2 * space.n_landmarks, _FEW)


def _continued(space: SemanticSpace, X: Any) -> SemanticSpace:
    check_is_fitted(space)
    n, d = X.shape
    if space.n_images_ > n or space.n_features_in_ != d:
        raise InvalidInput(
            f"Cannot go on with a space of {space.n_images_} images of {space.n_features_in_} "
            f"features: X has {n} and {d}. Pass all images, also those that were learned from."
        )
    return copy.deepcopy(space)


def _kept(space: SemanticSpace, learned: SemanticSpace, n: int, error: ClusterLost) -> ClusterLost:
    """Keep the images whose sums have come, and say how to go on."""
    done = learned.n_images_
    if not done:
        return ClusterLost(f"{error} No sums had come back yet.")
    space.__dict__.update(vars(learned))
    return ClusterLost(
        f"{error} The space has learned from the first {done:,} of {n:,} images; call fit_space "
        "with resume=True to go on from there."
    )


# --- before the sums ---------------------------------------------------------------------


class _Rows:
    """Rows of a Dask array, fetched when they are asked for by number; those are kept."""

    def __init__(self, X: Any, client: Any):
        self.shape, self._X, self._client = X.shape, X, client
        self.numbers = np.arange(0)
        self.held = np.empty((0, X.shape[1]), dtype=X.dtype)

    def __getitem__(self, numbers: np.ndarray) -> np.ndarray:
        """Rows by number; those asked for first ascend."""
        if len(self.numbers) and np.isin(numbers, self.numbers).all():
            return self.held[np.searchsorted(self.numbers, numbers)]
        self.numbers, self.held = numbers, fetch_rows(self._X, numbers, self._client)
        return self.held


def _begun(space: SemanticSpace, X: Any, Y: Any, client: Any) -> SemanticSpace:
    """A space with landmarks and a fitted view, that has learned from no image yet."""
    if isinstance(space.selection, str) and space.selection == "pgso":
        raise InvalidInput(
            "The selection 'pgso' compares every image with every landmark on one machine. Use "
            "'rpcholesky' or 'uniform', or pass landmarks."
        )
    rows: Any = _Rows(X, client)  # an array as far as choosing goes
    chosen = Landmarks.choose(
        rows, space.kernel, space.n_landmarks, space.selection, space.random_state
    )
    landmarks, _ = chosen.precise(space.regularization).independent()
    some = rows.held if len(rows.held) else landmarks.points
    shift = landmarks.columns(some[:: -(-len(some) // 256)]).mean(axis=0, dtype=np.float64)
    view = as_text_view(space.text_view)
    labels = _some_labels(Y, space.random_state, client)
    view.fit(labels)
    n_text = view.transform(labels[:1]).shape[1]
    return space.begin(landmarks, view, shift, n_text)


def _some_labels(Y: Any, random_state: Any, client: Any) -> Array:
    n = Y.shape[0]
    numbers = np.arange(n)
    if n > _LABELS_LOOKED_AT:
        rng = check_random_state(random_state)
        numbers = np.unique(rng.randint(n, size=_LABELS_LOOKED_AT))
    return check_label_matrix(fetch_rows(Y, numbers, client), len(numbers))


# --- the sums ----------------------------------------------------------------------------


def _add_all(space: SemanticSpace, X: Any, Y: Any, client: Any, progress: bool) -> None:
    """Add the sums over all images, round after round, in their order."""
    question = Question(space.text_view_, space.landmarks_, space.moments_.shift)
    with submitting(client):
        asked = client.persist(carried(question, "landmarks"))
        # the first images first, so that what is finished at any time is of use
        rounds = enumerate(_rounds(asked, X, Y))
        futures = [client.compute(tree, priority=-i) for i, tree in rounds]
    with bar(futures, client, progress):
        while futures:
            space.add_moments(result(futures[0], client))
            futures.pop(0).release()


def _rounds(question: Any, X: Any, Y: Any) -> list[Any]:
    """Sums over consecutive images, each the root of a tree."""
    import dask.bag

    summed = dask.delayed(_sums, pure=False)
    leaves = [
        summed(question, x.value, y.value, x.start, dask_key_name=key("sums"))
        for x, y in zip(blocks(X, "X"), blocks(Y, "Y"), strict=True)
    ]
    size = max(2 * _BRANCHES, -(-len(leaves) // _ROUNDS))
    together = functools.partial(dask.bag.Bag.reduction, split_every=_BRANCHES)
    return [
        together(dask.bag.from_delayed(leaves[i : i + size]), _added, _added).to_delayed(False)
        for i in range(0, len(leaves), size)
    ]


def _sums(question: Question, x: np.ndarray, y: Array, start: int) -> list[Moments]:
    """Sums over the images of one block, as a list of one, which is what a bag holds."""
    n = x.shape[0]
    with named_rows(start, start + n):
        labels = check_label_matrix(y, n)
        text = check_label_matrix(
            question.view.transform(labels), n, name="text features", signed=True
        )
        return [Moments.of(x, text, question.landmarks, question.shift)]


def _added(parts: Iterable[Moments]) -> Moments:
    """Their sum; the parts stay as they are, since a task may run again."""
    first, *others = parts
    total = copy.deepcopy(first)
    for part in others:
        total.add(part)
    return total


# --- using -------------------------------------------------------------------------------


def transform(space: SemanticSpace, X: Any) -> Any:
    """Embeddings of images, as a Dask array (N × n_components_) like X (N×d).

    Nothing is computed before it is asked for: by `compute`, or by Dask's own
    ``to_zarr``, ``to_npy_stack`` and so on, which keep what is finished.
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
            f"The space is on the device {space.landmarks_.points.device}, and workers compute "
            "with NumPy arrays. Load it without a device."
        )
    dtype = float_dtype(X.dtype)
    return dask().array.map_blocks(
        _projected,
        X,
        space=carried(space.without_moments(), "space"),
        claimed=X.dtype,
        dtype=dtype,
        chunks=(X.chunks[0], (space.n_components_,)),
        meta=np.empty((0, 0), dtype=dtype),
        name=key("project"),
    )


def _projected(
    rows: np.ndarray,
    space: SemanticSpace,
    claimed: np.dtype,
    block_info: Any = None,
) -> Array:
    start, stop = block_info[0]["array-location"][0]
    checked(rows, claimed, False, start, "X")
    with named_rows(start, stop):
        return space.transform(rows)
