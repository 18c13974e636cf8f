"""Votes of neighbours combined with a read-out of the same embeddings."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Self

import scipy.sparse

from tagkin.arrays import Array
from tagkin.arrays.checks import check_positive
from tagkin.arrays.labels import check_complete, check_rejections, label_names
from tagkin.arrays.namespaces import Seed
from tagkin.neighbors import Neighbors
from tagkin.records.forms import storable
from tagkin.transfer.kin_votes import Components, KinVotes
from tagkin.transfer.label_transfer import check_share
from tagkin.transfer.logistic_readout import LogisticReadout
from tagkin.transfer.neighbor_transfer import NeighborTransfer

__all__ = ["KinReadout"]


@storable
class KinReadout(NeighborTransfer):
    """Votes of an image's neighbours, mixed with a logistic read-out of its embedding.

    Several hundred neighbours vote with weights π = softmax(τ cos). With vₜ the votes of a label
    and pₜ its share of all images,

        f(I, t) = ⅓ logit((vₜ + ε pₜ)/(1 + ε)) + ⅔ r(I, t),

    where r is the `LogisticReadout` and ε = 0.001. The two make different errors, so together they
    rank better. An annotator learns weights for each label on held-out images instead.

    A rejection is stronger evidence than a label that nobody mentioned. The read-out takes
    rejected labels as absent for certain, and other absent labels as possibly forgotten. A
    neighbour with a rejection votes like ten neighbours without the label. With uₜ the weight of
    such neighbours, the odds of the votes, vₜ : 1 − vₜ, become vₜ : 1 − vₜ + 9 uₜ.

    Parameters
    ----------
    n_neighbors : int, default 400
        K; all images if there are fewer.
    temperature : float, default 10.0
        τ: the rate at which weights of neighbours fall with distance.
    regularization : float, default 0.25
        λ of the read-out.
    n_landmarks : int, default 2048
        Most landmarks of the read-out.
    metric : "cosine" or "euclidean"
        Distance between images.
    random_state : int, RandomState or None, default 0
        Seed for choosing the landmarks.
    forgotten : float, default 0.1
        Assumed share of images without the label among those that show it; see
        `LogisticReadout`.

    Attributes
    ----------
    rejected_ : CSR array of shape (N, D), or None without rejections
        Rejected labels.
    complete_ : array of N bool, or None if all images are complete
        Whether an image has all of its labels.
    readout_ : Readout, or None after fit_neighbors

    Notes
    -----
    Scores are logits, and probabilities their logistic function. Labels that `partial_fit` adds
    have votes only, until the next `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.transfer import KinReadout
    >>> X = np.array([[1, 0], [2, 0.5], [0, 1], [0.3, 2]])
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> KinReadout().fit(X, Y).predict([[3.0, 0.1]])
    array([[1, 0]])
    """

    takes_rejected = takes_incomplete = True
    scores_are_logits = True

    model_: KinVotes

    readout_ = property(attrgetter("model_.readout"))
    rejected_ = property(attrgetter("model_.rejected"))
    complete_ = property(attrgetter("model_.complete"))

    def __init__(
        self,
        n_neighbors: int = 400,
        temperature: float = 10.0,
        *,
        regularization: float = 0.25,
        n_landmarks: int = 2048,
        metric: str = "cosine",
        random_state: Seed = 0,
        forgotten: float = 0.1,
    ):
        self.n_neighbors = n_neighbors
        self.temperature = temperature
        self.regularization = regularization
        self.n_landmarks = n_landmarks
        self.metric = metric
        self.random_state = random_state
        self.forgotten = forgotten

    # --- learning ------------------------------------------------------------------------

    def fit(
        self,
        X: Array,
        y: Array | None = None,
        *,
        groups: Array | None = None,
        rejected: Array | None = None,
        complete: Array | None = None,
        expected: Array | None = None,
    ) -> Self:
        """Store embeddings X (N×m) and labels y (N×D), and fit the read-out.

        `rejected`, `complete` and `expected` are as in `LogisticReadout.fit`: votes are shares
        among the neighbours for which a label is known. Groups have no effect here.

        Parameters
        ----------
        X : array of shape (N, m)
            Embeddings of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        groups : array of shape (N,), optional
            Which images belong together, such as the shots of a burst.
        rejected : sparse or dense array of shape (N, D), optional
            Labels that somebody rejected.
        complete : array of shape (N,) of bool, optional
            Whether the absent labels of an image are known to be wrong. Default: all.
        expected : array of shape (N, D), optional
            Expected values of unknown labels, as in `LogisticReadout.fit`.
        """
        self.check_parameters()
        readout = LogisticReadout(
            self.regularization,
            self.n_landmarks,
            random_state=self.random_state,
            forgotten=self.forgotten,
        )
        readout.fit(X, y, expected=expected, rejected=rejected, complete=complete)
        super().fit(X, y)
        votes = replace(self.model_, readout=readout.readout_)
        labels, names = votes.labels, label_names(y)
        self.model_ = votes.relabel(
            labels,
            rejected=None if rejected is None else check_rejections(rejected, labels, names),
            complete=check_complete(complete, votes.n_images),
        )
        return self

    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> KinVotes:
        return KinVotes(
            labels=labels,
            n_neighbors=int(self.n_neighbors),
            temperature=float(self.temperature),
            readout=None,
        )

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        super().check_parameters()
        check_positive("temperature", self.temperature)
        check_share("forgotten", self.forgotten)

    # --- using ---------------------------------------------------------------------------

    def components(self, X: Array) -> Components:
        """Return the logits of votes and read-out for embeddings X (n×m), on the host."""
        self._check_fitted()
        return self.model_.components(self.check_queries(X))

    def _has_probabilities(self) -> bool:
        return True

    def _probabilities(self, scores: Array) -> Array:
        return self.model_.probabilities(scores)
