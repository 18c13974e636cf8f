"""Synthetic contents for a feature cache, kept in it and looked for."""

import functools
import sqlite3

import numpy as np

from tagkin.features import Backbone, FeatureCache
from tagkin.features.backbone import fingerprint_of

D = 7


class Numbers(Backbone):
    """A backbone that a cache can keep features of; it is never called."""

    def __init__(self, name="numbers", dimension=D):
        self.name, self.dimension, self.fingerprint = name, dimension, fingerprint_of(name)

    def __call__(self, batch):
        raise NotImplementedError


NUMBERS = Numbers()


@functools.cache  # the killed processes have little time
def content(i):
    """A synthetic content's digest and its features, which follow from its number."""
    return f"{i:064x}", np.random.default_rng(i).standard_normal(D).astype(np.float32)


def keep(cache, numbers, backbone=NUMBERS):
    digests, rows = zip(*map(content, numbers), strict=True)
    cache.store(backbone, digests, np.stack(rows))


def held(cache, numbers, backbone=NUMBERS):
    """Which of these contents a cache has; every one it has must be right."""
    numbers = list(numbers)
    out = np.full((len(numbers), D), np.nan, dtype=np.float32)
    hits = cache.load(backbone, [content(i)[0] for i in numbers], out)
    for i, there, row in zip(numbers, hits, out, strict=True):
        np.testing.assert_array_equal(row, content(i)[1] if there else np.full(D, np.nan))
    return {i for i, there in zip(numbers, hits, strict=True) if there}


def fill(folder, numbers):
    with FeatureCache(folder) as cache:
        for i in numbers:
            keep(cache, [i])


def cached(folder, numbers):
    with FeatureCache(folder) as fresh:
        return held(fresh, numbers)


def database(folder):
    return folder / "features.sqlite"


def is_sound(folder):
    connection = sqlite3.connect(database(folder))
    try:
        return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def change(folder, *statements):
    connection = sqlite3.connect(database(folder))
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
