"""Votes of neighbours combined with a read-out of the same embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, expit, namespace, row_blocks, to_numpy
from tagkin.arrays.labels import as_labels, label_names
from tagkin.arrays.records import Axes, storable
from tagkin.arrays.rules import Flags, Floats, Sparse
from tagkin.errors import InvalidInput
from tagkin.neighbors import NeighborIndex, Neighbors
from tagkin.transfer._lists import on_device_of, sums_over_lists
from tagkin.transfer.base import (
    check_complete,
    check_positive,
    check_rejections,
    check_share,
    count_known,
)
from tagkin.transfer.evidence import Evidence
from tagkin.transfer.likelihood import distance_weights
from tagkin.transfer.mixture import Mixture, fit_mixture
from tagkin.transfer.neighbor_transfer import NeighborTransfer
from tagkin.transfer.readout import LogisticReadout

__all__ = ["Components", "KinReadout"]

_PRIOR = 1e-3  # vote of a label's share; keeps the logit of a label without votes finite
_LEAST_PART = 1e-3
# A rejection votes like this many neighbours without the label.
_REJECTION_VOTES = 10
_DEFAULT_WEIGHTS = (1 / 3, 2 / 3)  # weights of votes and read-out until `fit_mixture` learns them
# Label shares, computed once for each model and not saved with it.
_SHARES: WeakKeyDictionary[KinReadout, tuple[scipy.sparse.csr_array, np.ndarray]] = (
    WeakKeyDictionary()
)


class Components(NamedTuple):
    """The two logits that a `KinReadout` mixes, for every image and label, shape (n, D)."""

    votes: np.ndarray
    readout: np.ndarray


@storable
class KinReadout(NeighborTransfer):
    """Votes of an image's neighbours and a logistic read-out of its embedding, mixed per label.

    Several hundred neighbours vote with weights π = softmax(τ cos). With vₜ the votes of a label
    and pₜ its share of all images,

        f(I, t) = oₜ + aₜ logit((vₜ + ε pₜ)/(1 + ε)) + bₜ r(I, t),

    r being `LogisticReadout`. The two make different errors, so together they rank better.

    A rejection is stronger evidence than a label that nobody mentioned. The read-out takes
    rejected labels as absent for certain, and other absent labels as possibly forgotten. A
    neighbour with a rejection votes like ten neighbours without the label. With uₜ the weight of
    such neighbours, the odds of the votes, vₜ : 1 − vₜ, become vₜ : 1 − vₜ + 9 uₜ.

    Parameters
    ----------
    n_neighbors : int, default 400
        K; all images if there are fewer. An annotator learns how many of them vote.
    temperature : float, default 10.0
        τ: the rate at which weights of neighbours fall with distance.
    regularization : float, default 0.25
        λ of the read-out.
    n_landmarks : int, default 2048
        Most landmarks of the read-out.
    metric : "cosine" or "euclidean"
        Distance between images.
    index : index of `tagkin.neighbors`, optional
        Index to search instead of the exact search.
    random_state : int, RandomState or None, default 0
        Seed for choosing the landmarks.
    forgotten : float, default 0.1
        Assumed share of images without the label among those that show it; see
        `LogisticReadout`.

    Attributes
    ----------
    labels_ : CSR array of shape (N, D)
        Labels of the fitted images.
    rejected_ : CSR array of shape (N, D), or None without rejections
        Rejected labels.
    complete_ : array of N bool, or None if all images are complete
        Whether an image has all of its labels.
    readout_ : LogisticReadout, or None after `fit_neighbors`
    vote_weights_, readout_weights_, offsets_ : arrays of shape (D,)
        a, b and o: one third and two thirds until `fit_mixture` learns them from held-out images.
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.

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

    # labels that came later have no read-out
    readout_: Annotated[LogisticReadout | None, Axes(D="learned")]
    rejected_: Annotated[scipy.sparse.csr_array | None, Sparse("N", "D")]
    complete_: Annotated[np.ndarray | None, Flags("N").kept_on_host()]
    vote_weights_: Annotated[np.ndarray, Floats("D").kept_on_host()]
    readout_weights_: Annotated[np.ndarray, Floats("D").kept_on_host()]
    offsets_: Annotated[np.ndarray, Floats("D").kept_on_host()]

    def __init__(
        self,
        n_neighbors: int = 400,
        temperature: float = 10.0,
        regularization: float = 0.25,
        n_landmarks: int = 2048,
        metric: str = "cosine",
        index: NeighborIndex | None = None,
        random_state: Any = 0,
        forgotten: float = 0.1,
    ):
        self.n_neighbors = n_neighbors
        self.temperature = temperature
        self.regularization = regularization
        self.n_landmarks = n_landmarks
        self.metric = metric
        self.index = index
        self.random_state = random_state
        self.forgotten = forgotten

    @property
    def needs_embeddings(self) -> bool:
        """True, because the read-out needs embeddings."""
        return True

    # --- learning ------------------------------------------------------------------------

    def fit(
        self,
        X: Array,
        y: Any = None,
        *,
        groups: Array | None = None,
        rejected: Array | None = None,
        complete: Array | None = None,
        expected: Any = None,
        readout: LogisticReadout | None = None,
    ) -> Self:
        """Store embeddings X (N×m) and labels y (N×D), and fit the read-out.

        `rejected`, `complete` and `expected` are as in `LogisticReadout.fit`: votes are shares
        among the neighbours for which a label is known. Groups have no effect here, because
        `fit_mixture` learns from held-out images. A `readout` that is already fitted on these
        images is used unchanged.
        """
        self.check_parameters()
        if readout is None:
            readout = self.new_readout().fit(
                X, y, rejected=rejected, complete=complete, expected=expected
            )
        super().fit(X, y, groups=groups)
        self.readout_ = readout
        self.rejected_ = self._nonempty_rejections(rejected)
        self.complete_ = check_complete(complete, self.labels_.shape[0])
        return self.set_mixture(self._default_mixture(self.n_labels_, readout is not None))

    def partial_fit(
        self,
        X: Array,
        y: Any = None,
        *,
        rejected: Array | None = None,
        complete: Array | None = None,
    ) -> Self:
        """Add images as in `NeighborTransfer.partial_fit`.

        `rejected` (n×D) and `complete` (n,) are as in `fit`. They count among the votes at once.
        The read-out uses them after the next `fit`.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, rejected=rejected, complete=complete)
        fresh = None if complete is None else check_complete(complete, _length(y))
        known, n_known = self.complete_, self.labels_.shape[0]
        before = self.rejected_
        added = None
        if rejected is not None:
            added = check_rejections(rejected, self._as_labels(y, _length(y)), label_names(y))
        super().partial_fit(X, y)
        if before is not None or added is not None:
            shape = n_known, self.n_labels_
            old = (
                scipy.sparse.csr_array(shape, dtype=np.float32) if before is None else before.copy()
            )
            old.resize(shape)
            if added is None:
                added = scipy.sparse.csr_array((self.labels_.shape[0] - n_known, self.n_labels_))
            all_rejected = scipy.sparse.vstack([old, added], format="csr")
            self.rejected_ = self._nonempty_rejections(all_rejected)
        if known is not None or fresh is not None:
            n_fresh = self.labels_.shape[0] - n_known
            known = np.ones(n_known, bool) if known is None else known
            fresh = np.ones(n_fresh, bool) if fresh is None else fresh
            self.complete_ = np.concatenate([known, fresh])
        return self

    def relabel(
        self, y: Array, *, rejected: Array | None = None, complete: Array | None = None
    ) -> Self:
        """Replace labels as in `NeighborTransfer.relabel`, with `rejected` (N×D) and `complete`."""
        checked, mask = None, check_complete(complete, self.labels_.shape[0])
        if rejected is not None:
            labels = self._as_labels(y, self.labels_.shape[0])
            checked = check_rejections(rejected, labels, label_names(y))
        super().relabel(y)
        self.rejected_, self.complete_ = self._nonempty_rejections(checked), mask
        return self

    def fit_neighbors(self, indices: Array, distances: Array, y: Array) -> Self:
        """Fit as in `NeighborTransfer.fit_neighbors`. There is no read-out without embeddings."""
        super().fit_neighbors(indices, distances, y)
        self.readout_ = self.rejected_ = self.complete_ = None
        return self.set_mixture(self._default_mixture(self.n_labels_, False))

    def fit_mixture(self, components: Components, y: Array) -> Self:
        """Learn the weights of votes and read-out from held-out images.

        Parameters
        ----------
        components : Components
            From `components` of similar models that were fitted without these images.
        y : array of shape (n, D)
            Labels of the held-out images.
        """
        self._check_fitted()
        labels = as_labels(y, len(components.votes))
        if labels.shape[1] != self.n_labels_:
            raise InvalidInput(f"Found {labels.shape[1]} labels, but {self.n_labels_} are known.")
        return self.set_mixture(fit_mixture(*components, labels))

    def set_mixture(self, mixture: Mixture) -> Self:
        """Set the weights of votes and read-out."""
        self.vote_weights_, self.readout_weights_, self.offsets_ = mixture
        return self

    def new_readout(self) -> LogisticReadout:
        """Return an unfitted read-out with this model's parameters."""
        return LogisticReadout(
            self.regularization,
            self.n_landmarks,
            random_state=self.random_state,
            forgotten=self.forgotten,
        )

    def _nonempty_rejections(self, rejected: Array | None) -> scipy.sparse.csr_array | None:
        """Check rejections (N×D); return None if there are none."""
        checked = None if rejected is None else check_rejections(rejected, self.labels_)
        return checked if checked is not None and checked.nnz else None

    @staticmethod
    def _default_mixture(n_labels: int, has_readout: bool) -> Mixture:
        votes, readout = _DEFAULT_WEIGHTS if has_readout else (1.0, 0.0)
        return Mixture(np.full(n_labels, votes), np.full(n_labels, readout), np.zeros(n_labels))

    @property
    def mixture(self) -> Mixture:
        """Weights of votes and read-out."""
        return Mixture(self.vote_weights_, self.readout_weights_, self.offsets_)

    def _attributes_for(self, added: scipy.sparse.csr_array) -> dict[str, Any]:
        fresh = added.shape[1] - len(self.offsets_)
        return {
            "vote_weights_": np.append(self.vote_weights_, np.ones(fresh)),
            "readout_weights_": np.append(self.readout_weights_, np.zeros(fresh)),
            "offsets_": np.append(self.offsets_, np.zeros(fresh)),
        }

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        super().check_parameters()
        check_positive("temperature", self.temperature)
        check_share("forgotten", self.forgotten)

    def check_stored(self) -> None:
        """Raise `InvalidInput` if a stored model does not fit together."""
        if self.readout_ is not None and self.readout_.n_labels_ > self.n_labels_:
            raise InvalidInput(
                f"its read-out has {self.readout_.n_labels_:,} labels of {self.n_labels_:,}"
            )

    # --- using ---------------------------------------------------------------------------

    def components(self, X: Array) -> Components:
        """Return the logits of votes and read-out for embeddings X (n×m), on the host."""
        votes = to_numpy(super().decision_function(X))
        return Components(votes, self._read_out(X, len(votes)))

    def decision_function(self, X: Array) -> Array:
        """Return the logit of every label for every image, shape (n, D)."""
        votes = super().decision_function(X)
        return self._mix(votes, X)

    def score_neighbors(self, indices: Array, distances: Array, X: Array | None = None) -> Array:
        """Return the logit of every label, shape (n, D), from known neighbours.

        Parameters
        ----------
        indices, distances : arrays of shape (n, k)
            Nearest first; the first `n_neighbors` are used. Index −1 marks a missing neighbour.
        X : array of shape (n, m), optional
            The images' embeddings, for the read-out. Without them, only votes count.
        """
        return self._mix(super().score_neighbors(indices, distances), X)

    def explain(self, X: Array, labels: Any) -> list[list[Evidence]]:
        """Return the neighbours that support each label, with their shares of its score.

        See `NeighborTransfer.explain`. The read-out has a share as well. Votes and read-out share
        the score in proportion to how much they raise the label's logit above that of its share
        of all images.
        """
        return self._with_readout(super().explain(X, labels), X)

    def explain_neighbors(
        self, indices: Array, distances: Array, labels: Any, X: Array | None = None
    ) -> list[list[Evidence]]:
        """Explain labels from known neighbours (n×k), as in `score_neighbors`."""
        return self._with_readout(super().explain_neighbors(indices, distances, labels), X)

    def _with_readout(
        self, evidence: list[list[Evidence]], X: Array | None
    ) -> list[list[Evidence]]:
        readout, prior = self._read_out(X, len(evidence)), _logit(self._label_shares())
        a, b, o = self.mixture if X is not None else self._default_mixture(self.n_labels_, False)

        def add_readout(votes_only: Evidence, read: float) -> Evidence:
            t, vote_score = votes_only.label, votes_only.score
            lifts = np.maximum([a[t] * (vote_score - prior[t]), b[t] * (read - prior[t])], 0)
            weights = lifts if lifts.any() else np.array([a[t], b[t]])
            # neighbours always keep a little, so they can still be ranked
            part = max(weights[0] / max(weights.sum(), 1e-12), _LEAST_PART)
            score = float(o[t] + a[t] * vote_score + b[t] * read)
            by_votes = part * score if len(votes_only.indices) else 0.0
            by_neighbors = votes_only.with_score(by_votes)
            return replace(by_neighbors, score=score, readout=score - by_votes)

        return [
            [add_readout(item, float(read[item.label])) for item in items]
            for items, read in zip(evidence, readout, strict=True)
        ]

    def _mix(self, votes: Array, X: Array | None) -> Array:
        """Return scores (n×D) from the votes' logits, which may change in place."""
        if self.readout_ is None or X is None:
            weights = self._default_mixture(self.n_labels_, False) if X is None else self.mixture
            first, offset = weights.first, weights.offset
            return votes * on_device_of(first, votes) + on_device_of(offset, votes)
        xp = namespace(votes)
        a, b, o = (xp.astype(on_device_of(part, votes), votes.dtype) for part in self.mixture)
        known = self.readout_.n_labels_
        votes = votes * a + o
        for rows in row_blocks(votes.shape[0], 16 * self.n_labels_, votes):
            read = self.readout_.decision_function(X[rows])
            votes[rows, :known] += b[:known] * xp.astype(on_device_of(read, votes), votes.dtype)
        return votes

    def _read_out(self, X: Array | None, n: int) -> np.ndarray:
        """Return the read-out's logits (n×D), on the host; by default those of label shares."""
        scores = np.broadcast_to(_logit(self._label_shares()), (n, self.n_labels_)).copy()
        if self.readout_ is not None and X is not None:
            known = self.readout_.n_labels_
            scores[:, :known] = to_numpy(self.readout_.decision_function(X))
        return scores

    def _weights(self, neighbors: Neighbors) -> Array:
        xp = namespace(neighbors.indices)
        distances = xp.astype(neighbors.distances, xp.float64)
        return distance_weights(distances, float(self.temperature))

    def _scores(self, votes: Array, neighbors: Neighbors) -> Array:
        share = on_device_of(self._label_shares(), votes)
        known: Any = 1.0
        if self.complete_ is not None:
            known = on_device_of(self._known_votes(neighbors, self.complete_), votes)
        scores = _logit((votes + _PRIOR * share) / (known + _PRIOR))
        if self.rejected_ is None:
            return scores
        xp = namespace(votes)
        against = on_device_of(self._sum_votes(neighbors, self.rejected_), votes)
        # rounding may bring votes slightly above the known ones
        silent = (known - votes).clip(0, None) + _PRIOR * (1 - share)
        return scores - xp.log1p((_REJECTION_VOTES - 1) * against / silent)

    def _sum_votes(self, neighbors: Neighbors, labels: scipy.sparse.csr_array) -> np.ndarray:
        """Return the weight of neighbours with an entry in `labels` (N×D), shape (n, D)."""
        weights, indices = to_numpy(self._weights(neighbors)), to_numpy(neighbors.indices)
        return sums_over_lists(labels, indices, weights)

    def _known_votes(self, neighbors: Neighbors, complete: np.ndarray) -> np.ndarray:
        """Return W, the weight of neighbours for which a label is known, shape (n, D)."""
        weights, indices = to_numpy(self._weights(neighbors)), to_numpy(neighbors.indices)
        of_complete = (weights * complete[np.maximum(indices, 0)]).sum(axis=1)
        used, places = np.unique(np.maximum(indices, 0), return_inverse=True)
        said = self.labels_[used]
        if self.rejected_ is not None:
            said = said + self.rejected_[used]
        incomplete = scipy.sparse.diags_array((~complete[used]).astype(float), format="csr")
        known = scipy.sparse.csr_array(incomplete @ (said > 0).astype(float))
        votes = sums_over_lists(known, places.reshape(indices.shape), weights)
        return of_complete[:, None] + votes

    def _label_shares(self) -> np.ndarray:
        """Return the share of images with each label, between 0 and 1, shape (D,)."""
        labels, shares = _SHARES.get(self, (None, None))
        if labels is not self.labels_ or shares is None:
            n_known = count_known(self.labels_, self.rejected_, self.complete_)
            n_present = np.bincount(self.labels_.indices, minlength=self.n_labels_)
            shares = (n_present + 0.5) / (n_known + 1)
            _SHARES[self] = self.labels_, shares
        return shares

    def _has_probabilities(self) -> bool:
        return True

    def _probabilities(self, scores: Array) -> Array:
        return expit(scores)

    def describe(self) -> list[str]:
        """Return a few sentences that describe this model."""
        a, b, _ = self.mixture
        part = float(a.sum() / max(a.sum() + b.sum(), 1e-12))
        read = [] if self.readout_ is None else self.readout_.describe()
        return [*super().describe(), *read, f"Of a score {part:.0%} comes from neighbours."]


def _logit(p: Array) -> Array:
    xp = namespace(p)
    p = p.clip(1e-12, 1 - 1e-9)
    return xp.log(p) - xp.log1p(-p)


def _length(y: Any) -> int:
    return int(np.shape(y)[0]) if hasattr(y, "shape") else len(y)
