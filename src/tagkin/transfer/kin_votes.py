"""Votes of neighbours mixed with a read-out of the same embeddings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, expit, namespace, row_blocks, to_numpy
from tagkin.arrays.labels import count_known
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.records.forms import Axes, storable
from tagkin.records.rules import Flags, Floats, Number, Sparse
from tagkin.transfer.evidence import Evidence
from tagkin.transfer.neighbor_lists import distance_weights, on_device_of, sums_over_lists
from tagkin.transfer.readout import Readout
from tagkin.transfer.votes import NearestVotes

__all__ = ["Components", "KinVotes", "Mixture"]

_PRIOR = 1e-3  # ε, the vote of a label's share: the logit of a label without votes stays finite
_LEAST_PART = 1e-3  # least share of the neighbours in a score
# A rejection votes like this many neighbours without the label.
_REJECTION_VOTES = 10


@storable
@dataclass(frozen=True, eq=False)
class Mixture:
    """f = oₜ + aₜ u + bₜ v for two scores u and v of each label."""

    first: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """a (D,), not below 0."""
    second: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """b (D,), not below 0."""
    offset: Annotated[np.ndarray, Floats("D").kept_on_host()]
    """o (D,)."""

    @classmethod
    def uniform(cls, n_labels: int, first: float, second: float) -> Mixture:
        """Return the same weights for D labels."""
        return cls(np.full(n_labels, first), np.full(n_labels, second), np.zeros(n_labels))

    @property
    def parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """a, b and o."""
        return self.first, self.second, self.offset

    def move_origin(self, level: np.ndarray) -> Mixture:
        """Return the mixture of u + l and v + l, for the levels l (D,)."""
        return replace(self, offset=self.offset - (self.first + self.second) * level)

    def __call__(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return mixed logits (n×D)."""
        return self.offset + self.first * u + self.second * v

    def spread(self, columns: np.ndarray, n_labels: int) -> Mixture:
        """Expand to D = `n_labels` labels; these columns have the weights learned here.

        The other labels get the mean weights and an offset of 0.
        """
        spread = Mixture.uniform(n_labels, float(self.first.mean()), float(self.second.mean()))
        for wide, known in zip(spread.parts, self.parts, strict=True):
            wide[columns] = known
        return spread


class Components(NamedTuple):
    """The two logits that `KinVotes` mixes, for every image and label, shape (n, D)."""

    votes: np.ndarray
    readout: np.ndarray


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class KinVotes(NearestVotes):
    """f(I, t) = oₜ + aₜ logit(votes) + bₜ r(I, t), with the read-out r; see `KinReadout`."""

    takes_rejected = takes_incomplete = True
    temperature: Annotated[float, Number(above=0)]
    """τ: the rate at which weights of neighbours fall with distance."""
    # labels added after the fit have no read-out
    readout: Annotated[Readout | None, Axes(D="learned")]
    mixture: Mixture
    rejected: Annotated[scipy.sparse.csr_array | None, Sparse("N", "D")] = None
    """Rejected labels (N×D), if there are any."""
    complete: Annotated[np.ndarray | None, Flags("N").kept_on_host()] = None
    """Whether an image has all of its labels, shape (N,); None if all images have."""

    @property
    def settings(self) -> dict[str, Any]:
        """Tuned parameters of the estimator that made the record."""
        settings = super().settings | {"temperature": self.temperature}
        penalty = {} if self.readout is None else {"regularization": self.readout.regularization}
        return settings | penalty

    def check_stored(self) -> None:
        """Raise `InvalidInput` if the parts of a stored record do not fit together."""
        if self.readout is not None and self.readout.n_labels > self.n_labels:
            raise InvalidInput(
                f"its read-out has {self.readout.n_labels:,} labels of {self.n_labels:,}"
            )

    # --- growing -------------------------------------------------------------------------

    def add(
        self,
        embeddings: Array,
        labels: scipy.sparse.csr_array,
        *,
        rejected: scipy.sparse.csr_array | None = None,
        complete: np.ndarray | None = None,
        **learned: Any,
    ) -> Self:
        """Return a record with further images, their `rejected` labels (n×D') and `complete`."""
        n, (n_new, d) = self.n_images, labels.shape
        if self.rejected is not None or rejected is not None:
            parts = [
                scipy.sparse.csr_array((rows, d), dtype=np.float32) if part is None else part.copy()
                for part, rows in ((self.rejected, n), (rejected, n_new))
            ]
            parts[0].resize(n, d)
            stacked = scipy.sparse.vstack(parts, format="csr")
            learned["rejected"] = stacked if stacked.nnz else None
        if self.complete is not None or complete is not None:
            known, fresh = (
                np.ones(rows, dtype=bool) if mask is None else mask
                for mask, rows in ((self.complete, n), (complete, n_new))
            )
            learned["complete"] = np.concatenate([known, fresh])
        return super().add(embeddings, labels, **learned)

    def relabel(
        self,
        labels: scipy.sparse.csr_array,
        *,
        rejected: scipy.sparse.csr_array | None = None,
        complete: np.ndarray | None = None,
        **learned: Any,
    ) -> Self:
        """Return a record with other labels, `rejected` labels (N×D) and `complete` images."""
        return super().relabel(
            labels,
            rejected=rejected if rejected is not None and rejected.nnz else None,
            complete=None if complete is None or complete.all() else complete,
            **learned,
        )

    def _extend(self, labels: scipy.sparse.csr_array) -> dict[str, Any]:
        fresh = Mixture.uniform(labels.shape[1] - self.n_labels, 1.0, 0.0)
        pairs = zip(self.mixture.parts, fresh.parts, strict=True)
        return {"mixture": Mixture(*(np.append(known, new) for known, new in pairs))}

    # --- using ---------------------------------------------------------------------------

    def components(self, embeddings: Array) -> Components:
        """Return the logits of votes and read-out for embeddings (n×m), on the host."""
        votes = to_numpy(self._vote_scores(embeddings))
        return Components(votes, self._read_out(embeddings, len(votes)))

    def probabilities(self, scores: Array) -> Array:
        """Return the logistic function of scores (n×D)."""
        return expit(scores)

    def describe(self) -> list[str]:
        """Return a few sentences that describe the record."""
        a, b, _ = self.mixture.parts
        part = float(a.sum() / max(a.sum() + b.sum(), 1e-12))
        read = [] if self.readout is None else self.readout.describe()
        return [*super().describe(), *read, f"{part:.0%} of a score comes from neighbours."]

    def _finish_evidence(
        self, evidence: list[list[Evidence]], embeddings: Array | None
    ) -> list[list[Evidence]]:
        """Split scores between neighbours and read-out.

        The shares are in proportion to how much each raises the label's logit above that of the
        label's share of all images.
        """
        readout, prior = self._read_out(embeddings, len(evidence)), _logit(self._label_shares)
        a, b, o = self._mixture_for(embeddings).parts

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

    def _mixture_for(self, embeddings: Array | None) -> Mixture:
        """Return the mixture, or votes alone if there are no embeddings to read out."""
        return Mixture.uniform(self.n_labels, 1.0, 0.0) if embeddings is None else self.mixture

    def _finish(self, votes: Array, embeddings: Array | None) -> Array:
        """Mix the logits (n×D) of votes and read-out."""
        mixture = self._mixture_for(embeddings)
        if self.readout is None or embeddings is None:
            first, offset = (on_device_of(p, votes) for p in (mixture.first, mixture.offset))
            return votes * first + offset
        xp = namespace(votes)
        a, b, o = (xp.astype(on_device_of(part, votes), votes.dtype) for part in mixture.parts)
        known = self.readout.n_labels
        votes = votes * a + o
        for rows in row_blocks(votes.shape[0], 16 * self.n_labels, votes):
            read = self.readout.decision_function(embeddings[rows])
            votes[rows, :known] += b[:known] * xp.astype(on_device_of(read, votes), votes.dtype)
        return votes

    def _read_out(self, embeddings: Array | None, n: int) -> np.ndarray:
        """Return the read-out's logits (n×D), on the host; without one, logits of label shares."""
        scores = np.broadcast_to(_logit(self._label_shares), (n, self.n_labels)).copy()
        if self.readout is not None and embeddings is not None:
            known = self.readout.n_labels
            scores[:, :known] = to_numpy(self.readout.decision_function(embeddings))
        return scores

    def _weights(self, neighbors: Neighbors) -> Array:
        xp = namespace(neighbors.indices)
        distances = xp.astype(neighbors.distances, xp.float64)
        return distance_weights(distances, float(self.temperature))

    def _scores(self, votes: Array, neighbors: Neighbors) -> Array:
        share = on_device_of(self._label_shares, votes)
        known: Any = 1.0
        if self.complete is not None:
            known = on_device_of(self._known_votes(neighbors, self.complete), votes)
        scores = _logit((votes + _PRIOR * share) / (known + _PRIOR))
        if self.rejected is None:
            return scores
        xp = namespace(votes)
        weights, indices = to_numpy(self._weights(neighbors)), to_numpy(neighbors.indices)
        against = on_device_of(sums_over_lists(self.rejected, indices, weights), votes)
        # rounding may bring votes slightly above the known ones
        silent = (known - votes).clip(0, None) + _PRIOR * (1 - share)
        return scores - xp.log1p((_REJECTION_VOTES - 1) * against / silent)

    def _known_votes(self, neighbors: Neighbors, complete: np.ndarray) -> np.ndarray:
        """Return W, the weight of neighbours for which a label is known, shape (n, D)."""
        weights, indices = to_numpy(self._weights(neighbors)), to_numpy(neighbors.indices)
        of_complete = (weights * complete[np.maximum(indices, 0)]).sum(axis=1)
        used, places = np.unique(np.maximum(indices, 0), return_inverse=True)
        observed = self.labels[used]
        if self.rejected is not None:
            observed = observed + self.rejected[used]
        incomplete = scipy.sparse.diags_array((~complete[used]).astype(float), format="csr")
        known = scipy.sparse.csr_array(incomplete @ (observed > 0).astype(float))
        votes = sums_over_lists(known, places.reshape(indices.shape), weights)
        return of_complete[:, None] + votes

    @cached_property
    def _label_shares(self) -> np.ndarray:
        """The share of images with each label, between 0 and 1, shape (D,)."""
        n_known = count_known(self.labels, self.rejected, self.complete)
        n_present = np.bincount(self.labels.indices, minlength=self.n_labels)
        return np.asarray((n_present + 0.5) / (n_known + 1))


def _logit(p: Array) -> Array:
    xp = namespace(p)
    p = p.clip(1e-12, 1 - 1e-9)
    return xp.log(p) - xp.log1p(-p)
