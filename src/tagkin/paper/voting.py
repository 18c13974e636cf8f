"""Voting by neighbours: NNvot, tag relevance and 2PKNN."""

from __future__ import annotations

import math

import scipy.sparse

from tagkin.arrays import Array
from tagkin.arrays.checks import check_positive
from tagkin.arrays.labels import as_labels
from tagkin.errors import InvalidInput
from tagkin.neighbors import Neighbors
from tagkin.neighbors.lists import check_n_neighbors
from tagkin.paper.voting_records import CountVotes, RelevanceVotes, TwoPassVotes
from tagkin.records.forms import storable
from tagkin.transfer.neighbor_transfer import NeighborTransfer

__all__ = ["NeighborVoting", "TagRelevance", "TwoPassKNN"]

FORMS = ("paper", "authors")  # of 2PKNN


@storable
class NeighborVoting(NeighborTransfer):
    """NNvot: a label's score is the number of neighbours that have it, f(I, t) = kₜ.

    Parameters
    ----------
    n_neighbors : int, default 100
        K; all images if there are fewer.
    metric : "cosine" or "euclidean"
        Distance between images.
    weighted : bool, default False
        Add up the entries of y, such as the weights of denoised tags, instead of counting labels.

    Notes
    -----
    Probabilities are the share of the neighbours that have a label, kₜ/K. With `weighted` there
    are no probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.paper import NeighborVoting
    >>> X = np.array([[1, 0], [2, 0], [0, 1]])
    >>> Y = np.array([[1, 0], [1, 1], [0, 1]])
    >>> model = NeighborVoting(n_neighbors=2).fit(X, Y)
    >>> model.decision_function([[3.0, 0.1]])
    array([[2., 1.]])
    >>> model.predict_proba([[3.0, 0.1]])
    array([[1. , 0.5]])
    """

    model_: CountVotes

    def __init__(
        self,
        n_neighbors: int = 100,
        metric: str = "cosine",
        *,
        weighted: bool = False,
    ):
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.weighted = weighted

    def _as_labels(self, y: Array | None, n_rows: int) -> scipy.sparse.csr_array:
        return as_labels(y, n_rows, weighted=self.weighted)

    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> CountVotes:
        return CountVotes(labels=labels, n_neighbors=int(self.n_neighbors))

    def _has_probabilities(self) -> bool:
        return not self.weighted

    def _probabilities(self, scores: Array) -> Array:
        return self.model_.probabilities(scores)


@storable
class TagRelevance(NeighborVoting):
    """Tag relevance: votes beyond what a label's frequency explains, f(I, t) = kₜ − K nₜ/|S|.

    Parameters
    ----------
    n_neighbors : int, default 100
        K; all images if there are fewer.
    metric : "cosine" or "euclidean"
        Distance between images.
    weighted : bool, default False
        Add up the entries of y instead of counting labels.

    References
    ----------
    Li, Snoek, Worring. Learning social tag relevance by neighbor voting. IEEE Transactions on
    Multimedia, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.paper import TagRelevance
    >>> Z = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])  # embeddings
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # labels
    >>> model = TagRelevance(n_neighbors=2).fit(Z, Y)
    >>> model.suggest(np.array([[1.0, 0.2]]), n=1)[0][0].label
    0
    """

    model_: RelevanceVotes

    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> RelevanceVotes:
        return RelevanceVotes(labels=labels, n_neighbors=int(self.n_neighbors))

    def _has_probabilities(self) -> bool:
        return False


@storable
class TwoPassKNN(NeighborTransfer):
    """2PKNN: f(I, t) = Σ exp(−w d(I, Iⱼ)) y(j, t) over a balanced neighbourhood.

    Pass 1 collects the K₁ nearest images of every label. Pass 2 adds up their labels, with more
    weight for nearer images. Rare and frequent labels are represented equally.

    Parameters
    ----------
    n_per_label : int, default 2
        K₁; all images with a label if there are fewer.
    decay : float, default 1.0
        w. The authors try 1 to 30 with their form.
    form : "paper" or "authors"
        The paper's plain distance; or, as in the authors' code, the distance minus the least
        distance of the neighbourhood, divided by the mean of these differences, with each image's
        scores divided by their sum.
    metric : "cosine" or "euclidean"
        Distance between images.

    Notes
    -----
    Lists of neighbours are as long as the longest; shorter lists end with index −1 at distance ∞.
    `score_neighbors` runs both passes within its lists. Lists that contain all of pass 1, such as
    from `kneighbors`, give the scores of `decision_function`.

    References
    ----------
    Verma, Jawahar. Image annotation using metric learning in semantic neighbourhoods. ECCV, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin.paper import TwoPassKNN
    >>> Z = np.array([[1.0, 0.0], [0.9, 0.1], [0.1, 0.9], [0.0, 1.0]])  # embeddings
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1]])  # labels
    >>> model = TwoPassKNN(n_per_label=1).fit(Z, Y)
    >>> model.suggest(np.array([[1.0, 0.2]]), n=1)[0][0].label
    0
    """

    model_: TwoPassVotes

    def __init__(
        self,
        n_per_label: int = 2,
        decay: float = 1.0,
        *,
        form: str = "paper",
        metric: str = "cosine",
    ):
        self.n_per_label = n_per_label
        self.decay = decay
        self.form = form
        self.metric = metric

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_n_neighbors(self.n_per_label, math.inf)
        check_positive("decay", self.decay)
        if not isinstance(self.form, str) or self.form not in FORMS:
            raise InvalidInput(f"form must be one of {', '.join(FORMS)}; found {self.form!r}.")

    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> TwoPassVotes:
        return TwoPassVotes(
            labels=labels,
            n_per_label=int(self.n_per_label),
            decay=float(self.decay),
            by_authors=self.form == "authors",
        )
