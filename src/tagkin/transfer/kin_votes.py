"""Votes of neighbours mixed with a read-out of the same embeddings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, expit, namespace, row_blocks, to_numpy
from tagkin.arrays.labels import count_known
from tagkin.arrays.namespaces import LabelMatrix
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.records.forms import Axes, storable
from tagkin.records.rules import Flags, Number, Sparse
from tagkin.transfer.evidence import Evidence
from tagkin.transfer.neighbor_lists import distance_weights, on_device_of, sums_over_lists
from tagkin.transfer.readout import Readout
from tagkin.transfer.votes import NearestVotes

__all__ = ["Components", "KinVotes"]


@dataclass(frozen=True)
class VoteNumbers:
    """Numbers of the votes."""

    prior: float = 1e-3
    """ε, the vote of a label's share: the logit of a label without votes stays finite. Also the
    least share of the neighbours in a score: they can still be ranked."""
    rejection: int = 10
    """A rejection votes like this many neighbours without the label."""
    votes: float = 1 / 3
    """Weight of the votes; that of the read-out is the rest. An annotator learns weights of each
    label on held-out images instead."""


NUMBERS = VoteNumbers()


class Components(NamedTuple):
    """The two logits that `KinVotes` mixes, for every image and label, shape (n, D)."""

    votes: np.ndarray
    readout: np.ndarray


@storable
@dataclass(frozen=True, kw_only=True, eq=False)
class KinVotes(NearestVotes):
    """f(I, t) = ⅓ logit(votes) + ⅔ r(I, t), with the read-out r; see `KinReadout`."""

    takes_rejected = takes_incomplete = True
    temperature: Annotated[float, Number(above=0)]
    """τ: the rate at which weights of neighbours fall with distance."""
    # labels added after the fit have no read-out
    readout: Annotated[Readout | None, Axes(D="learned")]
    rejected: Annotated[scipy.sparse.csr_array | None, Sparse("N", "D")] = None
    """Rejected labels (N×D), if there are any."""
    complete: Annotated[np.ndarray | None, Flags("N").kept_on_host()] = None
    """Whether an image has all of its labels, shape (N,); None if all images have."""

    @property
    def regularization(self) -> float | None:
        """λ of the read-out; None without one."""
        return None if self.readout is None else self.readout.regularization

    def check_stored(self) -> None:
        """Raise `InvalidInput` if the parts of a stored record do not fit together."""
        if self.readout is not None and self.readout.n_labels > self.n_labels:
            raise InvalidInput(
                f"its read-out has {self.readout.n_labels:,} labels of {self.n_labels:,}"
            )

    # --- growing -------------------------------------------------------------------------

    def add(
        self, embeddings: Array, labels: scipy.sparse.csr_array, **known: LabelMatrix | None
    ) -> Self:
        """Return a record with further images, which are complete and without rejected labels."""
        n, (n_new, d) = self.n_images, labels.shape
        if self.rejected is not None:
            rejected = self.rejected.copy()
            rejected.resize(n + n_new, d)
            known["rejected"] = rejected
        if self.complete is not None:
            known["complete"] = np.append(self.complete, np.ones(n_new, dtype=bool))
        return super().add(embeddings, labels, **known)

    def relabel(
        self,
        labels: scipy.sparse.csr_array,
        *,
        rejected: scipy.sparse.csr_array | None = None,
        complete: np.ndarray | None = None,
        **known: LabelMatrix | None,
    ) -> Self:
        """Return a record with other labels, `rejected` labels (N×D) and `complete` images (N,)."""
        return super().relabel(
            labels,
            rejected=rejected if rejected is not None and rejected.nnz else None,
            complete=None if complete is None or complete.all() else complete,
            **known,
        )

    # --- using ---------------------------------------------------------------------------

    def components(self, embeddings: Array, neighbors: Neighbors | None = None) -> Components:
        """Return the logits of votes and read-out for embeddings (n×m), on the host.

        Without a read-out, its logit is that of the label's share. `neighbors` (n×k) are those
        that vote, if they are known.
        """
        votes = to_numpy(self._vote_scores(embeddings, neighbors))
        return Components(votes, self._read_out(embeddings, len(votes)))

    def probabilities(self, scores: Array) -> Array:
        """Return the logistic function of scores (n×D)."""
        return expit(scores)

    def describe(self) -> list[str]:
        """Return a few sentences that describe the record."""
        return [*super().describe(), *([] if self.readout is None else self.readout.describe())]

    def _finish_evidence(
        self, evidence: list[list[Evidence]], embeddings: Array | None
    ) -> list[list[Evidence]]:
        """Split scores between neighbours and read-out.

        The shares are in proportion to how much each raises the label's logit above that of the
        label's share of all images.
        """
        if self.readout is None or embeddings is None:
            return evidence
        readout, prior = self._read_out(embeddings, len(evidence)), _logit(self._label_shares)
        a, b = NUMBERS.votes, (1 - NUMBERS.votes)

        def add_readout(votes_only: Evidence, read: float) -> Evidence:
            t, vote_score = votes_only.label, votes_only.score
            lifts = np.maximum([a * (vote_score - prior[t]), b * (read - prior[t])], 0)
            weights = lifts if lifts.any() else np.array([a, b])
            # neighbours always keep a little, so they can still be ranked
            part = max(weights[0] / weights.sum(), NUMBERS.prior)
            score = float(a * vote_score + b * read)
            by_votes = part * score if len(votes_only.indices) else 0.0
            by_neighbors = votes_only.with_score(by_votes)
            return replace(by_neighbors, score=score, readout=score - by_votes)

        return [
            [add_readout(item, float(read[item.label])) for item in items]
            for items, read in zip(evidence, readout, strict=True)
        ]

    def _finish(self, votes: Array, embeddings: Array | None) -> Array:
        """Mix the logits (n×D) of votes and read-out; votes count alone without a read-out."""
        if self.readout is None or embeddings is None:
            return votes
        xp, known = namespace(votes), self.readout.n_labels
        for rows in row_blocks(votes.shape[0], 16 * self.n_labels, votes):
            read = self.readout.decision_function(embeddings[rows])
            votes[rows, :known] *= NUMBERS.votes
            votes[rows, :known] += (1 - NUMBERS.votes) * xp.astype(
                on_device_of(read, votes), votes.dtype
            )
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
        known: Array | float = 1.0
        if self.complete is not None:
            known = on_device_of(self._known_votes(neighbors, self.complete), votes)
        scores = _logit((votes + NUMBERS.prior * share) / (known + NUMBERS.prior))
        if self.rejected is None:
            return scores
        xp = namespace(votes)
        weights, indices = to_numpy(self._weights(neighbors)), to_numpy(neighbors.indices)
        against = on_device_of(sums_over_lists(self.rejected, indices, weights), votes)
        # rounding may bring votes slightly above the known ones
        silent = xp.clip(known - votes, 0.0, None) + NUMBERS.prior * (1 - share)
        return scores - xp.log1p((NUMBERS.rejection - 1) * against / silent)

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
