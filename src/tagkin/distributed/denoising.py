"""Smooth tags over similar images on many machines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.base import clone

from tagkin.denoising import TagDenoiser
from tagkin.denoising.propagation import (
    as_tags,
    blend_tags,
    propagation_weights,
    spread,
)
from tagkin.denoising.trials import folds
from tagkin.distributed.chunks import (
    Block,
    as_features,
    as_labels,
    blocks,
    fetch_rows,
    float_dtype,
    key,
    named_rows,
    stack,
)
from tagkin.distributed.cluster import client_or_current, compute, dask
from tagkin.distributed.search import best_of_shards, shards
from tagkin.kernels.kernel import mean_pair_distance, sample_pairs
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.neighbors.neighbor_index import unit_rows

__all__ = ["denoise"]

SAMPLE_SIZE = 32_000  # images for choosing the settings
_BRANCHES = 8


class _Settings(NamedTuple):
    blend: float
    n_neighbors: int
    narrowing: float


def denoise(denoiser: TagDenoiser, X: Any, Y: Any, *, client: Any = None) -> Any:
    """Denoise tags (N×D) of images like `TagDenoiser.fit_transform`.

    With ``blend="auto"``, the amount of denoising is chosen immediately, on a sample. The rest is
    lazy.

    Parameters
    ----------
    denoiser : TagDenoiser
        The settings; it stays unfitted.
    X : Dask array of shape (N, d)
    Y : Dask array of shape (N, D), of dense or CSR chunks, or an array in memory
        Tags.
    client : distributed.Client, optional
        Only used for ``blend="auto"`` and ``scale="mean"``.

    Returns
    -------
    tags : Dask array of shape (N, D)
        CSR chunks of float32 with the rows of X's chunks, suitable as the Y of `fit_space`.
    """
    denoiser.check_parameters()
    X = as_features(X)
    Y = as_labels(Y, X)
    settings = _choose_settings(denoiser, X, Y, client)
    delayed = dask().delayed
    tags = [
        Block(
            delayed(_tags, pure=False)(y.value, y.start, y.n_rows, dask_key_name=key("tags")),
            y.start,
            y.stop,
        )
        for y in blocks(Y, "Y")
    ]
    finish = delayed(_finish, pure=False)
    propagated = (
        [None] * len(tags)
        if settings.blend == 0
        else _propagate(denoiser, settings, X, tags, client)
    )
    parts = [
        finish(raw.value, new, settings.blend, dask_key_name=key("denoised"))
        for raw, new in zip(tags, propagated, strict=True)
    ]
    return stack(
        parts, X.chunks[0], Y.shape[1], scipy.sparse.csr_array((0, Y.shape[1]), dtype=np.float32)
    )


def _choose_settings(denoiser: TagDenoiser, X: Any, Y: Any, client: Any) -> _Settings:
    """Return β, R and the narrowing of σ, as given or as chosen on a sample."""
    if denoiser.blend != "auto":
        return _Settings(float(denoiser.blend), int(denoiser.n_neighbors), 1.0)
    client = client_or_current(client)
    rows = np.arange(X.shape[0])
    if len(rows) > SAMPLE_SIZE:
        any_tag = Y.map_blocks(_has_tag, drop_axis=1, dtype=bool, meta=np.empty(0, bool))
        tagged = compute(any_tag, client=client)
        rows = np.sort(np.concatenate(folds(tagged, SAMPLE_SIZE, denoiser.random_state)[0]))
    features = fetch_rows(X, rows, client)
    chosen = clone(denoiser).fit(features, fetch_rows(Y, rows, client))
    base = denoiser.scale_of(chosen.index_.points_)
    narrowing = chosen.scale_ / base if base else 1.0
    return _Settings(float(chosen.blend_), int(chosen.n_neighbors_), narrowing)


def _has_tag(y: Any) -> np.ndarray:
    return np.asarray((y != 0).sum(axis=1)).ravel() > 0


def _tags(y: Any, start: int, n: int) -> scipy.sparse.csr_array:
    with named_rows(start, start + n):
        return as_tags(y, n)


# --- propagation -------------------------------------------------------------------------


def _propagate(
    denoiser: TagDenoiser, settings: _Settings, X: Any, tags: list[Block], client: Any
) -> list[Any]:
    """Return the weighted mean of the neighbours' tags for each block, summed over shards."""
    import dask.bag

    delayed = dask.delayed
    k = min(settings.n_neighbors, X.shape[0]) - 1
    scale = _scale(denoiser, X, client) * settings.narrowing
    indexed = shards(X, ExactNeighbors(denoiser.metric)) if k > 0 else []
    propagated = []
    for query, raw in zip(blocks(X, "X"), tags, strict=True):
        own = np.arange(query.start, query.stop)
        near = (
            best_of_shards(query, indexed, k, exclude=own, squared=True)
            if k > 0
            else Neighbors(np.empty((query.n_rows, 0), np.int64), np.empty((query.n_rows, 0)))
        )
        weights = delayed(_weights, pure=False)(near, scale, dask_key_name=key("weights"))
        parts = [
            delayed(_from_shard, pure=False)(
                near, weights, block.value, block.start, dask_key_name=key("propagate")
            )
            for block in tags
        ]
        parts.append(delayed(_own, pure=False)(weights, raw.value, dask_key_name=key("propagate")))
        bag = dask.bag.from_delayed(parts)
        propagated.append(bag.reduction(_add, _add, split_every=_BRANCHES).to_delayed(False))
    return propagated


def _weights(near: Neighbors, scale: float) -> np.ndarray:
    """Return the weights of each image itself and of its neighbours, shape (n, 1 + k)."""
    squared = np.pad(np.asarray(near[1]), ((0, 0), (1, 0)))
    return propagation_weights(squared, float(scale))


def _from_shard(
    near: Neighbors, weights: np.ndarray, tags: scipy.sparse.csr_array, start: int
) -> list[scipy.sparse.csr_array]:
    """Return the contribution of one shard's neighbours to the propagated tags."""
    indices = near[0]
    here = (indices >= start) & (indices < start + tags.shape[0])
    return [spread(np.where(here, indices - start, -1), weights[:, 1:], tags)]


def _own(weights: np.ndarray, raw: scipy.sparse.csr_array) -> list[scipy.sparse.csr_array]:
    return [scipy.sparse.csr_array(scipy.sparse.diags_array(weights[:, 0].astype("f4")) @ raw)]


def _add(parts: Iterable[scipy.sparse.csr_array]) -> scipy.sparse.csr_array:
    first, *others = parts
    for part in others:
        first = first + part
    return first


def _finish(raw: scipy.sparse.csr_array, propagated: Any, blend: float) -> scipy.sparse.csr_array:
    """Blend raw and propagated tags."""
    mixed = raw if propagated is None else blend_tags(raw, propagated, blend)
    tags = scipy.sparse.csr_array(mixed, copy=True)
    tags.eliminate_zeros()
    tags.sort_indices()
    return tags


# --- σ -----------------------------------------------------------------------------------


def _scale(denoiser: TagDenoiser, X: Any, client: Any) -> Any:
    """Return σ over all images, as a number or a `Delayed`."""
    if denoiser.scale not in ("mean-squared", "mean"):
        return float(denoiser.scale)
    n = X.shape[0]
    points = X.astype(np.float64)
    if denoiser.metric == "cosine":
        dtype = float_dtype(X.dtype)
        points = X.map_blocks(unit_rows, "X", dtype=dtype, meta=np.empty((0, 0), dtype))
        points = points.astype(np.float64)
    if denoiser.scale == "mean-squared":
        deviations = points - points.mean(axis=0)
        return (deviations * deviations).sum().to_delayed().ravel()[0] * (2 / n)
    # the same pairs as on a single machine
    pairs = sample_pairs(n, random_state=denoiser.random_state)
    rows, positions = np.unique(np.concatenate(pairs), return_inverse=True)
    points = fetch_rows(X, rows, client_or_current(client))
    if denoiser.metric == "cosine":
        points = unit_rows(points, "X")
    return mean_pair_distance(points, *np.split(positions, 2))
