"""The model: the record of everything learned from images and labels, and how it scores images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy.sparse

from tagkin.annotator.label_input import NamedLabels
from tagkin.annotator.naming import describe_names, score_names
from tagkin.arrays import Array, to_numpy
from tagkin.calibration import Calibration, LabelErrors, UnannotatedLabels
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary
from tagkin.neighbors import Neighbors
from tagkin.records.forms import storable
from tagkin.records.rules import Indices, Sparse, TextLists, Texts
from tagkin.space import Space
from tagkin.tag_meanings import NamePrior, NameTable
from tagkin.transfer.kin_votes import KinVotes
from tagkin.transfer.votes import NeighborVotes
from tagkin.wording import count

__all__ = [
    "Model",
    "count_grouped",
    "describe_groups",
    "describe_model",
    "describe_photographs",
]

UNLIKELY = -100.0  # score of a label whose score was too low to be stored


@storable
@dataclass(frozen=True)
class Model:
    """Everything learned from N images with D labels, as it is stored."""

    space: Space
    method: NeighborVotes
    """Votes of the images learned from. Its ``labels`` (N×D) are the labels of these images."""
    calibrator: Calibration
    errors: LabelErrors
    """How often labels are wrong, and how often missing."""
    held_out: Annotated[scipy.sparse.csr_array, Sparse("N", "D", high=1)]
    """Probability (N×D) that the labels of an image belong there, and the most probable of its
    absent labels, by models that had not seen the image."""
    rejected: Annotated[scipy.sparse.csr_array, Sparse("N", "D")]
    """Rejected labels, shape (N, D)."""
    groups: Annotated[np.ndarray, Indices("N")]
    """Group that each image was held out with, shape (N,)."""
    names: NameTable | None = None
    """Meanings of the label names, if there was a prior."""
    unannotated: UnannotatedLabels | None = None
    """How often unannotated labels are right, if a person accepted some and rejected others."""
    vocabulary: Vocabulary | None = None
    """Vocabulary, if the labels were lists of tags."""
    column_names: Annotated[np.ndarray | None, Texts("D")] = None
    """Column names (D,), if the labels were a DataFrame."""
    tags: Annotated[list[list[str]] | None, TextLists("N")] = None
    """The N lists of tags, if the labels were such lists."""
    unknown_scores: Annotated[scipy.sparse.csr_array | None, Sparse("scored", "D", low=-1e30)] = (
        None
    )
    """Scores of the likely unknown labels of incomplete images, by models that had not seen the
    image. It has no rows for images added later."""

    def check_stored(self) -> None:
        """Raise `InvalidInput` if the parts of a stored model do not fit together."""
        if self.method.index is None:
            raise InvalidInput("its method has no neighbours")

    @property
    def labels(self) -> NamedLabels:
        """Labels of the images learned from."""
        return NamedLabels(self.method.labels, self.column_names, self.vocabulary, self.tags)

    @property
    def complete(self) -> np.ndarray:
        """Which of the images have all of their labels, shape (N,)."""
        mask = getattr(self.method, "complete", None)
        return np.ones(self.n_images, dtype=bool) if mask is None else mask

    @property
    def n_images(self) -> int:
        """Number of images learned from, N."""
        return self.method.n_images

    def replace_known_scores(self, scores: np.ndarray, known: np.ndarray) -> np.ndarray:
        """Return scores (n×D) with the stored ones of incomplete images.

        `known` (n,) is the number of each image among those learned from, or −1.
        """
        if self.unknown_scores is None:
            return scores
        stored, scores = self.unknown_scores, scores.copy()
        inside = (known >= 0) & (known < stored.shape[0])
        rows = np.flatnonzero(inside & ~self.complete[np.where(inside, known, 0)])
        scores[rows] = UNLIKELY
        entries = stored[known[rows]].tocoo()
        scores[rows[entries.row], entries.col] = entries.data
        return scores

    def embed(self, X: Array) -> Array:
        """Return embeddings (n×m) of features (n×d)."""
        found, learned = X.shape[1], self.space.landmarks.points.shape[1]
        if found != learned:
            raise InvalidInput(
                f"The model learned from {learned:,} features of each image; found {found:,}. Read "
                "all images with the same backbone."
            )
        return self.space.transform(X)

    def components(
        self,
        X: Array,
        prior: NamePrior | None,
        embeddings: Array | None = None,
        neighbors: Neighbors | None = None,
    ) -> tuple[np.ndarray, ...]:
        """Return the scores (n×D) that are mixed: of votes, read-out and names, for X (n×d).

        `embeddings` (n×m) and voting `neighbors` (n×k) are computed unless they are known.
        """
        learned = self.method.components(
            self.embed(X) if embeddings is None else embeddings, neighbors
        )
        return learned if self.names is None else (*learned, score_names(prior, X, self.names))

    def score(self, X: Array, prior: NamePrior | None) -> np.ndarray:
        """Return log-odds (n×D) of all labels for features (n×d)."""
        return self.calibrator.mix(self.components(X, prior))

    def probabilities(
        self, scores: np.ndarray, was_labelled: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the probability (n×D) that labels with these log-odds (n×D) are right.

        `was_labelled` (n,) tells which images a person has labelled. Default: none. It matters if
        the model has learned how often unannotated labels are right.
        """
        P = self.calibrator.probabilities(scores)
        if self.unannotated is None:
            return P
        if was_labelled is None:
            was_labelled = np.zeros(len(P), dtype=bool)
        return self.unannotated.predict_proba(P, was_labelled)


# --- models in words and numbers ---------------------------------------------------------


def describe_groups(groups: Array | None, image: str = "photograph", plural: str = "series") -> str:
    """Say how many photographs are in how many series; empty if no photograph is."""
    if groups is None:
        return ""
    n_images, n_groups = count_grouped(groups)
    return f"{count(n_images, image)} in {n_groups:,} {plural}" if n_groups else ""


def count_grouped(groups: Array) -> tuple[int, int]:
    """Count the images in groups of two or more, and these groups."""
    sizes = np.unique(to_numpy(groups), return_counts=True)[1]
    several = sizes[sizes > 1]
    return int(several.sum()), len(several)


def describe_model(model: Model) -> list[str]:
    """Return a few sentences that describe a model of images."""
    together = describe_groups(model.groups, "image", "groups")
    return [
        _describe_size(model, "labelled image", "label"),
        *([f"Held out together: {together}."] if together else ()),
        *_describe_parts(model),
    ]


def describe_photographs(model: Model, backbone: str) -> list[str]:
    """Return a few sentences that describe a model of photographs."""
    together = describe_groups(model.groups)
    return [
        _describe_size(model, "tagged photograph", "tag"),
        *([f"Held out as a whole: {together}."] if together else ()),
        f"Reads photographs with {backbone}.",
        *_describe_parts(model),
    ]


def _describe_size(model: Model, image: str, label: str) -> str:
    n, n_labels = model.method.labels.shape
    return f"Learned from {count(n, image)} and {count(n_labels, label)}."


def _describe_parts(model: Model) -> list[str]:
    parts = (model.space, model.method, model.calibrator, model.unannotated)
    return [
        *(() if model.vocabulary is None else model.vocabulary.describe()[1:]),
        *(() if model.names is None else (describe_names(model.names),)),
        *(line for part in parts if part is not None for line in part.describe()),
        _describe_weights(model),
    ]


def _describe_weights(model: Model) -> str:
    names = ["votes", "read-out"] if isinstance(model.method, KinVotes) else ["score"]
    if model.names is not None:
        names.append("name")
    weights = zip(names, model.calibrator.mixture.common, strict=True)
    common = ", ".join(f"{name} {weight:.2g}" for name, weight in weights)
    return f"Weights of a label with few images: {common}."
