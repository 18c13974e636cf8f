"""Measures of a map from photographs to words: names alone, and captions that find photographs."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from experiments.problem import data_folder
from tagkin.evaluation import mean_average_precision
from tagkin.features import FeatureCache, default_cache_folder, extract, get_backbone
from tagkin.tag_meanings import Meanings
from tagkin.tag_meanings.word_map import WordMap, normalize

__all__ = ["Captioned", "Photos", "measure_retrieval", "names_map", "read_photos"]


@dataclass(frozen=True)
class Captioned:
    """Photographs with captions.

    `X` (n×d) are features, `T` (M×v) sentence vectors of captions, `owners` (M,) the photograph
    of each, `V` (W×v) vectors of words, and `words` (M×k) the words of each caption, −1 for none.
    """

    X: np.ndarray
    T: np.ndarray
    owners: np.ndarray
    V: np.ndarray
    words: np.ndarray

    def some(self, photographs: np.ndarray) -> Captioned:
        """Return these photographs (m,) with their captions."""
        position = np.full(len(self.X), -1)
        position[photographs] = np.arange(len(photographs))
        owners = position[self.owners]
        rows = np.flatnonzero(owners >= 0)
        return replace(
            self,
            X=self.X[photographs],
            T=self.T[rows],
            owners=owners[rows],
            words=self.words[rows],
        )


class Photos(NamedTuple):
    """The folder of photographs: features (n×d), labels (n×D) with names, and captions."""

    features: np.ndarray
    Y: np.ndarray
    labels: list[str]
    captions: list[str]


def read_photos() -> Photos:
    """Read the folder of photographs, with the features of the default backbone."""
    folder = data_folder() / "photos"
    lines = (folder / "metadata.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    with FeatureCache(default_cache_folder()) as cache:
        files = [str(folder / row["file_name"]) for row in rows]
        features = extract(files, get_backbone(), cache=cache).features
    labels = sorted({label for row in rows for label in row["labels"]})
    Y = np.array([[label in row["labels"] for label in labels] for row in rows])
    return Photos(features, Y, labels, [row["caption"] for row in rows])


def embed(learned: WordMap, X: np.ndarray) -> np.ndarray:
    """Return unit vectors (n×m) of photographs whose features are square roots already."""
    return normalize((X - learned.image_mean) @ learned.image_map)


def names_map(learned: WordMap, X: np.ndarray, Y: np.ndarray, names: np.ndarray) -> str:
    """Return MAP in percent of labels Y (n×D) by their names' sentence vectors (D×v)."""
    vectors = learned.embed_words(names)
    rows = Meanings(vectors, np.zeros(len(vectors), dtype=bool)).table().rows
    used = Y.any(axis=0)
    scores = embed(learned, X) @ rows.T
    return f"{100 * mean_average_precision(Y[:, used], scores[:, used]):.1f}"


def measure_retrieval(learned: WordMap, data: Captioned) -> dict[str, str]:
    """Return how often a caption ranks its photograph first and in the first ten; median rank."""
    photographs, captions = embed(learned, data.X), learned.embed_words(data.T)
    scores = captions @ photographs.T
    own = scores[np.arange(len(captions)), data.owners]
    ranks = 1 + (scores > own[:, None]).sum(axis=1)
    return {
        "first": f"{100 * (ranks <= 1).mean():.0f} %",
        "first ten": f"{100 * (ranks <= 10).mean():.0f} %",
        "median rank": f"{np.median(ranks):.0f}",
    }
