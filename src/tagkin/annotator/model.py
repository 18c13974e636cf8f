"""The model: the record of what was learned from images and labels, and how it scores images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.annotator.label_input import Labels
from tagkin.annotator.naming import LearnedNames
from tagkin.arrays import Array, to_numpy
from tagkin.calibration import LabelCalibrator, LabelErrors, UnannotatedLabels
from tagkin.labels import Vocabulary
from tagkin.tag_meanings import NamePrior

__all__ = ["Model"]


@dataclass(frozen=True)
class Model:
    """Everything learned from N images with D labels."""

    space: Any
    """Semantic space, or None if neighbours are found among the features."""
    method: Any
    """Method by neighbours. Its ``labels_`` (N×D) are the labels of the images."""
    calibrator: LabelCalibrator
    errors: LabelErrors
    """How often labels are wrong, and how often missing."""
    held_out: scipy.sparse.csr_array
    """Probability (N×D) that the labels of an image belong there, and the most probable of its
    absent labels, by models that had not seen the image."""
    rejected: scipy.sparse.csr_array
    """Rejected labels, shape (N, D)."""
    groups: np.ndarray
    """Group that each image was held out with, shape (N,)."""
    blend: float = 0.0
    """Share of propagated tags in the labels that the space was learned from."""
    names: LearnedNames | None = None
    """Meanings and weights of the label names, if there was a prior."""
    unannotated: UnannotatedLabels | None = None
    """How often unannotated labels are right, if a person accepted some and rejected others."""
    vocabulary: Vocabulary | None = None
    """Vocabulary, if the labels were lists of tags."""
    column_names: np.ndarray | None = None
    """Column names (D,), if the labels were a DataFrame."""
    tags: list[list[str]] | None = None
    """The N lists of tags, if the labels were such lists."""

    @property
    def labels(self) -> Labels:
        """Labels of the images learned from."""
        return Labels(self.method.labels_, self.column_names, self.vocabulary, self.tags)

    @property
    def n_images(self) -> int:
        """N."""
        return int(self.method.labels_.shape[0])

    def embed(self, X: Array) -> Array:
        """Return embeddings (n×m) of features (n×d)."""
        return X if self.space is None else self.space.transform(X)

    def score(self, X: Array, prior: NamePrior | None) -> np.ndarray:
        """Return scores (n×D) of all labels for features (n×d)."""
        scores = to_numpy(self.method.decision_function(self.embed(X)))
        return scores if self.names is None else self.names.combine(prior, X, scores)

    def probabilities(
        self, scores: np.ndarray, was_labelled: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the probability (n×D) that labels with these scores (n×D) are right.

        `was_labelled` (n,) tells which images a person has labelled. Default: none. It matters if
        the model has learned how often unannotated labels are right.
        """
        P = to_numpy(self.calibrator.predict_proba(scores))
        if self.unannotated is None:
            return P
        if was_labelled is None:
            was_labelled = np.zeros(len(P), dtype=bool)
        return self.unannotated.predict_proba(P, was_labelled)
