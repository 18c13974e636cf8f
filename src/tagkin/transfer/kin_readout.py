"""Votes of the neighbours and a read-out of the same embeddings, joined."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, clip, expit, namespace, row_blocks, to_numpy
from tagkin.arrays.labels import as_labels, label_names
from tagkin.errors import InvalidInput
from tagkin.neighbors import NeighborIndex, Neighbors
from tagkin.transfer._likelihood import distance_weights
from tagkin.transfer._lists import on_device_of, sums_over_lists
from tagkin.transfer.base import check_positive, check_share, rejections
from tagkin.transfer.evidence import Evidence
from tagkin.transfer.mixture import Mixture, fit_mixture
from tagkin.transfer.neighbor_transfer import NeighborTransfer
from tagkin.transfer.readout import LogisticReadout

__all__ = ["Components", "KinReadout"]

_PRIOR = 1e-3  # weight of a label's share among the votes, so that no vote at all is a finite no
_LEAST_PART = 1e-3
# Neighbours that do not carry a label which one that rejected it counts for, among the votes.
_REJECTED = 10
_USUAL = (1 / 3, 2 / 3)  # weights of votes and read-out until held-out images say better
# Of the labels that a method holds: counted once, and not stored with it.
_SHARES: WeakKeyDictionary[KinReadout, tuple[scipy.sparse.csr_array, np.ndarray]] = (
    WeakKeyDictionary()
)


class Components(NamedTuple):
    """What a `KinReadout` mixes: logits of every label for every image, shape (n, D)."""

    votes: np.ndarray
    readout: np.ndarray


class KinReadout(NeighborTransfer):
    """Votes of an image's neighbours and a logistic read-out of its embedding, mixed per label.

    Neighbours vote with weights π = softmax(τ cos) over several hundred of them; with vₜ the
    votes of a label and pₜ its share of all images,

        f(I, t) = oₜ + aₜ logit((vₜ + ε pₜ)/(1 + ε)) + bₜ r(I, t),

    r being `LogisticReadout`. The two err differently: together they rank better than either.

    What a person rejected is a surer no than a label that nobody mentioned. To the read-out it is
    a certain one, where of the others some are forgotten; and a neighbour that rejected a label
    counts against it as ten do that do not carry it: with uₜ the weight of such neighbours, the
    odds of the votes, vₜ : 1 − vₜ, become vₜ : 1 − vₜ + 9 uₜ.

    Parameters
    ----------
    n_neighbors : int, default 400
        K; all images where there are fewer. An annotator learns how many of them vote.
    temperature : float, default 10.0
        τ: how fast the weights of neighbours fall with their distance.
    regularization : float, default 0.25
        λ of the read-out.
    n_landmarks : int, default 2048
        Landmarks of the read-out, at most.
    metric : "cosine" or "euclidean"
        How far images are apart.
    index : index of `tagkin.neighbors`, optional
        Searches instead of the exact search.
    random_state : int, RandomState or None, default 0
        Seed for choosing the landmarks.
    forgotten : float, default 0.1
        Of the images that show a label, the share that is taken not to carry it; see
        `LogisticReadout`.

    Attributes
    ----------
    labels_ : CSR array of shape (N, D)
        The labels that pass to others.
    rejected_ : CSR array of shape (N, D), or None where nothing was
        The labels that were rejected.
    readout_ : LogisticReadout, or None where neighbours were fitted without embeddings
    vote_weights_, readout_weights_, offsets_ : arrays of shape (D,)
        a, b and o: one third and two thirds until `fit_mixture` learns them from held-out images.
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.

    Notes
    -----
    Scores are logits, and probabilities their logistic function. Labels that `partial_fit` brings
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

    takes_rejected = True
    scores_are_logits = True

    readout_: LogisticReadout | None
    rejected_: scipy.sparse.csr_array | None
    vote_weights_: np.ndarray
    readout_weights_: np.ndarray
    offsets_: np.ndarray

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
        """Yes: the read-out is of embeddings."""
        return True

    # --- learning ------------------------------------------------------------------------

    def fit(
        self,
        X: Array,
        y: Any = None,
        *,
        groups: Array | None = None,
        rejected: Array | None = None,
        readout: LogisticReadout | None = None,
    ) -> Self:
        """Take embeddings X (N×m) and labels y (N×D), and learn the read-out.

        `rejected` (N×D) is above 0 where a person said that an image does not show a label.
        Groups change nothing here: what is learned about neighbours comes from held-out images.
        A `readout` that these images have taught already is taken as it is.
        """
        self._check_parameters()
        if readout is None:
            readout = self.new_readout().fit(X, y, rejected=rejected)
        super().fit(X, y, groups=groups)
        self.readout_ = readout
        self.rejected_ = self._refused(rejected)
        return self.set_mixture(self._usual_mixture(self.n_labels_, readout is not None))

    def partial_fit(self, X: Array, y: Any = None, *, rejected: Array | None = None) -> Self:
        """As for every method by neighbours; `rejected` (n×D) as in `fit`.

        It counts among the votes at once. The read-out learns of it with the next `fit`.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, rejected=rejected)
        before, n_known = self.rejected_, self.labels_.shape[0]
        added = None
        if rejected is not None:
            added = rejections(rejected, self._as_labels(y, _length(y)), label_names(y))
        super().partial_fit(X, y)
        if before is not None or added is not None:
            shape = n_known, self.n_labels_
            old = (
                scipy.sparse.csr_array(shape, dtype=np.float32) if before is None else before.copy()
            )
            old.resize(shape)
            if added is None:
                added = scipy.sparse.csr_array((self.labels_.shape[0] - n_known, self.n_labels_))
            both = scipy.sparse.vstack([old, added], format="csr")
            self.rejected_ = self._refused(both)
        return self

    def relabel(self, y: Array, *, rejected: Array | None = None) -> Self:
        """As for every method by neighbours; what was `rejected` (N×D) takes the place, too."""
        refused = None
        if rejected is not None:
            labels = self._as_labels(y, self.labels_.shape[0])
            refused = rejections(rejected, labels, label_names(y))
        super().relabel(y)
        self.rejected_ = self._refused(refused)
        return self

    def fit_neighbors(self, indices: Array, distances: Array, y: Array) -> Self:
        """As for every method by neighbours. Without embeddings there is no read-out."""
        super().fit_neighbors(indices, distances, y)
        self.readout_ = self.rejected_ = None
        return self.set_mixture(self._usual_mixture(self.n_labels_, False))

    def fit_mixture(self, components: Components, y: Array) -> Self:
        """Learn how much votes and read-out count, from images that were held out.

        Parameters
        ----------
        components : Components
            As `components` of models like this one, fitted without these images, gave them.
        y : array of shape (n, D)
            The labels of those images.
        """
        self._check_fitted()
        labels = as_labels(y, len(components.votes))
        if labels.shape[1] != self.n_labels_:
            raise InvalidInput(f"Found {labels.shape[1]} labels where {self.n_labels_} are known.")
        return self.set_mixture(fit_mixture(*components, labels))

    def set_mixture(self, mixture: Mixture) -> Self:
        """Take over how much votes and read-out count."""
        self.vote_weights_, self.readout_weights_, self.offsets_ = mixture
        return self

    def new_readout(self) -> LogisticReadout:
        """A read-out like this one's, not fitted."""
        return LogisticReadout(
            self.regularization,
            self.n_landmarks,
            random_state=self.random_state,
            forgotten=self.forgotten,
        )

    def _refused(self, rejected: Array | None) -> scipy.sparse.csr_array | None:
        """What was rejected (N×D), or None where nothing was."""
        found = None if rejected is None else rejections(rejected, self.labels_)
        return found if found is not None and found.nnz else None

    @staticmethod
    def _usual_mixture(n_labels: int, has_readout: bool) -> Mixture:
        votes, readout = _USUAL if has_readout else (1.0, 0.0)
        return Mixture(np.full(n_labels, votes), np.full(n_labels, readout), np.zeros(n_labels))

    def _mixture(self) -> Mixture:
        return Mixture(self.vote_weights_, self.readout_weights_, self.offsets_)

    def _widened(self, added: scipy.sparse.csr_array) -> dict[str, Any]:
        fresh = added.shape[1] - len(self.offsets_)
        return {
            "vote_weights_": np.append(self.vote_weights_, np.ones(fresh)),
            "readout_weights_": np.append(self.readout_weights_, np.zeros(fresh)),
            "offsets_": np.append(self.offsets_, np.zeros(fresh)),
        }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_positive("temperature", self.temperature)
        check_share("forgotten", self.forgotten)

    # --- using ---------------------------------------------------------------------------

    def components(self, X: Array) -> Components:
        """Logits of the votes and of the read-out for embeddings X (n×m), on the host."""
        votes = to_numpy(super().decision_function(X))
        return Components(votes, self._read_out(X, len(votes)))

    def decision_function(self, X: Array) -> Array:
        """Logit of every label for every image, shape (n, D)."""
        votes = super().decision_function(X)
        return self._joined(votes, X)

    def score_neighbors(self, indices: Array, distances: Array, X: Array | None = None) -> Array:
        """Logit of every label, shape (n, D), given the neighbours.

        Parameters
        ----------
        indices, distances : arrays of shape (n, k)
            Nearest first; the first `n_neighbors` are used. Index −1 stands for none.
        X : array of shape (n, m), optional
            The images' embeddings, for the read-out. Without them votes alone decide.
        """
        return self._joined(super().score_neighbors(indices, distances), X)

    def explain(self, X: Array, labels: Any) -> list[list[Evidence]]:
        """Which neighbours support each label, and how much of its score each one gives.

        As for every method by neighbours, and the read-out has a share as well. Votes and
        read-out share the score as they lift the label's logit above that of its share of all
        images.
        """
        return self._with_readout(super().explain(X, labels), X)

    def explain_neighbors(
        self, indices: Array, distances: Array, labels: Any, X: Array | None = None
    ) -> list[list[Evidence]]:
        """As `explain`, given the neighbours (n×k), as `score_neighbors` takes them."""
        return self._with_readout(super().explain_neighbors(indices, distances, labels), X)

    def _with_readout(
        self, evidence: list[list[Evidence]], X: Array | None
    ) -> list[list[Evidence]]:
        readout, prior = self._read_out(X, len(evidence)), _logit(self._shares())
        a, b, o = self._mixture() if X is not None else self._usual_mixture(self.n_labels_, False)

        def divided(one: Evidence, read: float) -> Evidence:
            t, votes = one.label, one.score
            lifts = np.maximum([a[t] * (votes - prior[t]), b[t] * (read - prior[t])], 0)
            weights = lifts if lifts.any() else np.array([a[t], b[t]])
            # a little is left for neighbours that carry it, so that the heaviest can be told
            part = max(weights[0] / max(weights.sum(), 1e-12), _LEAST_PART)
            score = float(o[t] + a[t] * votes + b[t] * read)
            by_votes = part * score if len(one.indices) else 0.0
            divided = one.with_score(by_votes)
            return replace(divided, score=score, readout=score - by_votes)

        return [
            [divided(one, float(read[one.label])) for one in of_image]
            for of_image, read in zip(evidence, readout, strict=True)
        ]

    def _joined(self, votes: Array, X: Array | None) -> Array:
        """Scores (n×D) from the votes' logits, which may be changed."""
        if self.readout_ is None or X is None:
            weights = self._usual_mixture(self.n_labels_, False) if X is None else self._mixture()
            first, offset = weights.first, weights.offset
            return votes * on_device_of(first, votes) + on_device_of(offset, votes)
        xp = namespace(votes)
        a, b, o = (xp.astype(on_device_of(part, votes), votes.dtype) for part in self._mixture())
        known = self.readout_.n_labels_
        votes = votes * a + o
        for rows in row_blocks(votes.shape[0], 16 * self.n_labels_, votes):
            read = self.readout_.decision_function(X[rows])
            votes[rows, :known] += b[:known] * xp.astype(on_device_of(read, votes), votes.dtype)
        return votes

    def _read_out(self, X: Array | None, n: int) -> np.ndarray:
        """The read-out's logits (n×D), on the host; a label without one gets its share's."""
        scores = np.broadcast_to(_logit(self._shares()), (n, self.n_labels_)).copy()
        if self.readout_ is not None and X is not None:
            known = self.readout_.n_labels_
            scores[:, :known] = to_numpy(self.readout_.decision_function(X))
        return scores

    def _weights(self, found: Neighbors) -> Array:
        xp = namespace(found.indices)
        distances = xp.astype(found.distances, xp.float64)
        return distance_weights(distances, float(self.temperature))

    def _scores(self, votes: Array, found: Neighbors) -> Array:
        share = on_device_of(self._shares(), votes)
        scores = _logit((votes + _PRIOR * share) / (1 + _PRIOR))
        rejected = self.rejected_
        if rejected is None:
            return scores
        xp = namespace(votes)
        against = on_device_of(self._votes_against(found, rejected), votes)
        # a vote of rounding beyond 1 leaves a little below 0
        silent = clip(1 - votes, 0, None) + _PRIOR * (1 - share)
        return scores - xp.log1p((_REJECTED - 1) * against / silent)

    def _votes_against(self, found: Neighbors, rejected: scipy.sparse.csr_array) -> np.ndarray:
        """u: the weight of neighbours that rejected each label, shape (n, D), on the host."""
        weights, indices = to_numpy(self._weights(found)), to_numpy(found.indices)
        return sums_over_lists(rejected, indices, weights)

    def _shares(self) -> np.ndarray:
        """Share of the images that carry each label, kept off 0 and 1, shape (D,)."""
        labels, shares = _SHARES.get(self, (None, None))
        if labels is not self.labels_ or shares is None:
            n, d = self.labels_.shape
            shares = (np.bincount(self.labels_.indices, minlength=d) + 0.5) / (n + 1)
            _SHARES[self] = self.labels_, shares
        return shares

    def _has_probabilities(self) -> bool:
        return True

    def _probabilities(self, scores: Array) -> Array:
        return expit(scores)

    def describe(self) -> list[str]:
        """What this model is, in a few sentences."""
        a, b, _ = self._mixture()
        part = float(a.sum() / max(a.sum() + b.sum(), 1e-12))
        read = [] if self.readout_ is None else self.readout_.describe()
        return [*super().describe(), *read, f"Of a score {part:.0%} comes from neighbours."]


def _logit(p: Array) -> Array:
    xp = namespace(p)
    p = clip(p, 1e-12, 1 - 1e-9)
    return xp.log(p) - xp.log1p(-p)


def _length(y: Any) -> int:
    return int(np.shape(y)[0]) if hasattr(y, "shape") else len(y)
