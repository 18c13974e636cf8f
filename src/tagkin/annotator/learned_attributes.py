"""What an annotator has learned from features, by the names that it has at the annotator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from tagkin.annotator.feature_annotator import FeatureAnnotator
from tagkin.annotator.grouping import n_in_groups
from tagkin.calibration import LabelCalibrator, LabelErrors
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary

__all__ = ["LearnedAttributes"]


class LearnedAttributes:
    """The part of an `Annotator` that shows the attributes of its estimator as its own."""

    estimator_: FeatureAnnotator
    backbone: str
    fingerprint_: str

    if TYPE_CHECKING:  # of the annotator itself

        def describe(self) -> list[str]:
            """What the annotator is, in a few sentences."""

    def check_stored(self) -> None:
        """Raise `InvalidInput` if a stored model has no tags."""
        if self.estimator_.tags_ is None or self.estimator_.vocabulary_ is None:
            raise InvalidInput("it has no tags")

    @property
    def tags_(self) -> list[list[str]]:
        """Tags of the photographs learned from, as they were given."""
        return self.estimator_.tags_ or []

    @property
    def vocabulary_(self) -> Vocabulary:
        """The tags that are known."""
        vocabulary = self.estimator_.vocabulary_
        assert vocabulary is not None
        return vocabulary

    @property
    def space_(self) -> Any:
        """The semantic space."""
        return self.estimator_.space_

    @property
    def method_(self) -> Any:
        """The method by neighbours."""
        return self.estimator_.method_

    @property
    def calibrator_(self) -> LabelCalibrator:
        """What makes confidences of scores."""
        return self.estimator_.calibrator_

    @property
    def held_out_(self) -> scipy.sparse.csr_array:
        """Probabilities of tags by models that had not seen the photograph, shape (N, D)."""
        return self.estimator_.held_out_

    @property
    def errors_(self) -> LabelErrors:
        """How often tags are wrong and missing."""
        return self.estimator_.errors_

    @property
    def groups_(self) -> np.ndarray:
        """The series of each photograph learned from, by number."""
        return self.estimator_.groups_

    def n_in_series(self) -> tuple[int, int]:
        """How many of the photographs learned from are in series, and how many series there are."""
        return n_in_groups(self.groups_)

    @property
    def blend_(self) -> float:
        """How much the tags were denoised for the space."""
        return self.estimator_.blend_

    def summary(self) -> dict[str, Any]:
        """What this annotator is, as numbers and texts: a model can be asked for it at once.

        Tags have the number of photographs that carry them now; some may have been taken off
        photographs since the vocabulary counted them.
        """
        n_in_series, n_series = self.n_in_series()
        counts = (int(n) for n in self.method_.labels_.sum(axis=0))
        return {
            "photographs": int(self.method_.labels_.shape[0]),
            "in_series": n_in_series,
            "series": n_series,
            "tags": dict(zip(self.vocabulary_.names_, counts, strict=True)),
            "dropped": dict(self.vocabulary_.dropped_),
            "backbone": self.backbone,
            "fingerprint": self.fingerprint_,
            "denoised": float(self.blend_),
            "description": self.describe(),
        }
