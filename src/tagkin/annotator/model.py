"""The model: the record of everything learned from images and labels, and how it scores images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import scipy.sparse

from tagkin.annotator.label_input import NamedLabels
from tagkin.annotator.naming import describe_names, score_names
from tagkin.arrays import Array, to_numpy
from tagkin.calibration import Calibration, CalibrationByKind, LabelErrors, UnannotatedLabels
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary
from tagkin.neighbors import Neighbors
from tagkin.records.forms import storable
from tagkin.records.rules import Indices, Sparse, TextLists, Texts
from tagkin.space import Space
from tagkin.tag_meanings import NamePrior, NameTable
from tagkin.transfer.kin_votes import KinVotes
from tagkin.transfer.occasions import Asked, Occasions, score_occasions
from tagkin.transfer.votes import NeighborVotes
from tagkin.wording import count

__all__ = [
    "Model",
    "count_grouped",
    "describe_clusters",
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
    calibration: Calibration
    errors: LabelErrors
    """How often labels are wrong, and how often missing."""
    belonging: Annotated[scipy.sparse.csr_array, Sparse("N", "D", high=1)]
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
    occasions: Occasions | None = None
    """When and where the images were taken, if that tells images apart."""
    by_kind: CalibrationByKind | None = None
    """Confidences of images without a learned image near in time. `calibration` has the others."""

    def check_stored(self) -> None:
        """Raise `InvalidInput` if the parts of a stored model do not fit together."""
        if self.method.index is None:
            raise InvalidInput("its method has no neighbours")
        if (self.occasions is None) != (self.by_kind is None):
            raise InvalidInput("it has occasions without confidences of their kinds")

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
        is_open = ~self.complete | np.pad(
            np.diff(stored.indptr) > 0, (0, self.n_images - stored.shape[0])
        )
        rows = np.flatnonzero(inside & is_open[np.where(inside, known, 0)])
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
        asked: Asked | None = None,
        embeddings: Array | None = None,
        neighbors: Neighbors | None = None,
    ) -> tuple[np.ndarray, ...]:
        """Return the scores (n×D) that are mixed, for X (n×d).

        They are those of votes, of the read-out, of time, place and folder, and of names.
        `embeddings` (n×m) and voting `neighbors` (n×k) are computed unless they are known.
        """
        learned = self.method.components(
            self.embed(X) if embeddings is None else embeddings, neighbors
        )
        occasions: tuple[np.ndarray, ...] = ()
        if self.occasions is not None:
            asked = Asked.new(None, X.shape[0]) if asked is None else asked
            occasions = score_occasions(
                self.occasions,
                asked.occasions,
                self.method.labels,
                own=asked.known,
                rejected=getattr(self.method, "rejected", None),
                complete=getattr(self.method, "complete", None),
            )
        names = () if self.names is None else (score_names(prior, X, self.names),)
        return *learned, *occasions, *names

    def kinds(self, asked: Asked | None, n_images: int) -> np.ndarray:
        """Return the kind of each of n images, shape (n,), by the nearest learned image in time.

        If its time is unknown, an image is near if a learned image is in its folder, else far. All
        images are near if the model knows no occasions.
        """
        if self.occasions is None:
            return np.zeros(n_images, np.intp)
        from tagkin.model_selection.kinds import Kind, kind_of_gap  # suggesting needs no more

        asked = Asked.new(None, n_images) if asked is None else asked
        near = self.occasions.near_in_time(asked.occasions, asked.known)
        counts = self._is_labelled[near.indices] & (near.indices >= 0)
        kinds = kind_of_gap(np.where(counts, near.distances, np.inf).min(axis=1))
        shared = self.occasions.shares_folder(asked.occasions, asked.known, self._is_labelled)
        is_untimed = np.ones(n_images, bool)
        if asked.occasions.times is not None and self.occasions.times is not None:
            is_untimed = np.isnan(asked.occasions.times)
        return np.where(is_untimed & shared, Kind.NEAR, kinds)

    @cached_property
    def _is_labelled(self) -> np.ndarray:
        """Whether labels of an image are known, shape (N,)."""
        return self.complete | (np.diff(self.method.labels.indptr) > 0)

    def calibration_of(self, kind: int) -> Calibration:
        """Return the confidences of a kind of images."""
        if self.by_kind is None:
            return self.calibration
        return (self.calibration, self.by_kind.event, self.by_kind.far)[kind]

    def mix(self, components: Sequence[np.ndarray], kinds: np.ndarray) -> np.ndarray:
        """Return log-odds (n×D) from components (n×D) of images of these kinds (n,)."""
        return self._of_kinds(
            kinds, lambda calibration, rows: calibration.mix([part[rows] for part in components])
        )

    def _of_kinds(
        self, kinds: np.ndarray, apply: Callable[[Calibration, np.ndarray | slice], np.ndarray]
    ) -> np.ndarray:
        """Return what is applied to the images of each kind (n,), shape (n, …)."""
        present = np.unique(kinds)
        if len(present) < 2:
            kind = int(present[0]) if len(present) else 0
            return apply(self.calibration_of(kind), slice(None))
        parts = [(np.flatnonzero(kinds == kind), kind) for kind in present]
        values = [apply(self.calibration_of(int(kind)), rows) for rows, kind in parts]
        whole = np.empty((len(kinds), *values[0].shape[1:]), dtype=values[0].dtype)
        for (rows, _), value in zip(parts, values, strict=True):
            whole[rows] = value
        return whole

    def score(self, X: Array, prior: NamePrior | None, asked: Asked | None = None) -> np.ndarray:
        """Return log-odds (n×D) of all labels for features (n×d)."""
        kinds = self.kinds(asked, X.shape[0])
        return self.mix(self.components(X, prior, asked), kinds)

    def shares(self, components: Sequence[np.ndarray], kinds: np.ndarray) -> np.ndarray:
        """Return the share (k, n, D) of each component in the evidence; see `Mixture.shares`."""

        def of_rows(calibration: Calibration, rows: np.ndarray | slice) -> np.ndarray:
            shares = calibration.mixture.shares([part[rows] for part in components])
            return shares.transpose(1, 0, 2)

        return self._of_kinds(kinds, of_rows).transpose(1, 0, 2)

    def calibrate(self, scores: np.ndarray, kinds: np.ndarray) -> np.ndarray:
        """Return the probability (n×D) that annotated labels with these log-odds are right."""
        return self._of_kinds(
            kinds, lambda calibration, rows: calibration.probabilities(scores[rows])
        )

    def probabilities(
        self,
        scores: np.ndarray,
        was_labelled: np.ndarray | None = None,
        kinds: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the probability (n×D) that labels with these log-odds (n×D) are right.

        `was_labelled` (n,) tells which images a person has labelled. Default: none. It matters if
        the model has learned how often unannotated labels are right. Default `kinds`: near.
        """
        P = self.calibrate(scores, np.zeros(len(scores), np.intp) if kinds is None else kinds)
        if self.unannotated is None:
            return P
        if was_labelled is None:
            was_labelled = np.zeros(len(P), dtype=bool)
        return self.unannotated.predict_proba(P, was_labelled)

    def thresholds(self, precision: float) -> np.ndarray:
        """Return the least probability of each kind with which suggestions reach a precision."""
        n_kinds = 1 if self.by_kind is None else 3
        return np.array([self.calibration_of(k).threshold(precision) for k in range(n_kinds)])


# --- models in words and numbers ---------------------------------------------------------


def describe_groups(groups: Array | None, image: str = "photograph", plural: str = "series") -> str:
    """Say how many photographs are in how many series; empty if no photograph is."""
    if groups is None:
        return ""
    n_images, n_groups = count_grouped(groups)
    return f"{count(n_images, image)} in {n_groups:,} {plural}" if n_groups else ""


def describe_clusters(clusters: np.ndarray, what: str) -> str:
    """Say how many photographs are in how many events or trips that are held out as a whole."""
    from tagkin.model_selection.kinds import is_small

    n_images, n_clusters = count_grouped(clusters[is_small(clusters)])
    return f"{count(n_images, 'photograph')} in {count(n_clusters, what)}" if n_clusters else ""


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
    from tagkin.model_selection.kinds import KINDS, number_clusters

    known, together = model.occasions, [describe_groups(model.groups)]
    if known is not None:
        times, folders, n = known.times, known.folders, model.n_images
        together = [
            describe_clusters(number_clusters(times, folders, gap, n), what)
            for what, gap in (("event", KINDS.event), ("trip", KINDS.trip))
        ]
    listed = ", and ".join(filter(None, together))
    return [
        _describe_size(model, "tagged photograph", "tag"),
        *([f"Held out as a whole: {listed}."] if listed else ()),
        f"Reads photographs with {backbone}.",
        *_describe_parts(model),
    ]


def _describe_size(model: Model, image: str, label: str) -> str:
    n, n_labels = model.method.labels.shape
    return f"Learned from {count(n, image)} and {count(n_labels, label)}."


def _describe_parts(model: Model) -> list[str]:
    parts = (model.space, model.method, model.calibration, model.unannotated)
    return [
        *(() if model.vocabulary is None else model.vocabulary.describe()[1:]),
        *(() if model.names is None else (describe_names(model.names),)),
        *(line for part in parts if part is not None for line in part.describe()),
        _describe_weights(model),
    ]


def _describe_weights(model: Model) -> str:
    names = ["votes", "read-out"] if isinstance(model.method, KinVotes) else ["score"]
    if model.occasions is not None:
        names += model.occasions.inputs
    if model.names is not None:
        names.append("name")
    weights = zip(names, model.calibration.mixture.common, strict=True)
    common = ", ".join(f"{name} {weight:.2g}" for name, weight in weights)
    return f"Weights of a label with few images: {common}."
