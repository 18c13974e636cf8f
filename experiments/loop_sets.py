"""The collections of evenings: photographs, some of them tagged, and new ones."""

from __future__ import annotations

from functools import cache

import numpy as np

from experiments.evening_model import Collection
from experiments.moments import Personal, list_scored, load_personal
from experiments.names import Task, load_task
from tagkin.tag_meanings import CaptionEncoder, NamePrior
from tagkin.transfer.occasions import Occasions

__all__ = ["PERSONAL", "SEEDS", "SETS", "draw"]

SETS = {"photos": "photographs", "flickr8k": "Flickr8k", "traveller": "a traveller"}
PERSONAL = "traveller"
"""The set of one person's collection, with the times of its photographs."""
SEEDS = tuple(range(11, 17))  # others chose what the page does


def draw(name: str, seed: int, n: int, n_tagged: int, n_new: int) -> Collection:
    """Draw n photographs, of which some are tagged, and new ones.

    The photographs of Flickr8k are of the half of its training images on which nothing was chosen,
    with test images as new ones. Of a person's collection, all photographs are drawn.
    """
    rng = np.random.default_rng(seed)
    if name == PERSONAL:
        return _draw_personal(name, rng, n_tagged)
    task = _load(name)
    if name == "photos":
        every = np.union1d(task.train, task.test)
        rows, new = np.split(rng.permutation(every)[: n + n_new], [n])
    else:
        half = np.array_split(np.random.default_rng(5).permutation(task.train), 2)[1]
        rows, new = rng.permutation(half)[:n], rng.permutation(task.test)[:n_new]
    truth = task.Y[np.append(rows, new)].toarray() > 0
    X = np.asarray(task.X[np.append(rows, new)], dtype=np.float32)
    return _take_known(X, truth, n, n_tagged, task.labels, task.prior)


def _draw_personal(name: str, rng: np.random.Generator, n_tagged: int) -> Collection:
    every = _load_personal(name)
    photographs = every.take(rng.permutation(len(every.X)))
    names = list_scored(photographs.tags)
    truth = photographs.matrix(names) > 0
    occasions = Occasions.read(**photographs.moments(), n_images=len(truth))
    prior = NamePrior(CaptionEncoder())
    drawn = _take_known(photographs.X, truth, len(truth), n_tagged, names, prior)
    return drawn._replace(occasions=occasions)


def _take_known(
    X: np.ndarray,
    truth: np.ndarray,
    n: int,
    n_tagged: int,
    names: list[str],
    prior: NamePrior | None,
) -> Collection:
    """Return a collection with the tags that its tagged photographs have; the rest are new."""
    columns = np.flatnonzero(truth[:n_tagged].any(axis=0))
    n_never = int(truth[n_tagged:n].sum() - truth[n_tagged:n, columns].sum())
    known = [names[i] for i in columns.tolist()]
    truth = truth[:, columns]
    return Collection(X[:n], truth[:n], n_tagged, X[n:], truth[n:], n_never, known, prior)


@cache
def _load(name: str) -> Task:
    return load_task(name)


@cache
def _load_personal(name: str) -> Personal:
    return load_personal(name)
