"""2PKNN: voting in a neighbourhood that represents every label."""

from __future__ import annotations

import math

import scipy.sparse

from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, NeighborIndex, Neighbors
from tagkin.neighbors.neighbor_index import check_n_neighbors
from tagkin.records.forms import storable
from tagkin.transfer.label_transfer import check_positive
from tagkin.transfer.neighbor_transfer import NeighborTransfer
from tagkin.transfer.twopass_votes import TwoPassVotes

__all__ = ["TwoPassKNN"]

FORMS = ("paper", "authors")


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

    Attributes
    ----------
    labels_ : CSR array of shape (N, D)
        Labels of the fitted images.
    n_labels_ : int
        D.
    classes_ : array of shape (D,)
        Names of the labels (columns of a DataFrame y), or column numbers.

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
    >>> from tagkin import TwoPassKNN
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

    def _new_index(self) -> NeighborIndex:
        return ExactNeighbors(self.metric)

    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> TwoPassVotes:
        return TwoPassVotes(
            labels=labels,
            n_per_label=int(self.n_per_label),
            decay=float(self.decay),
            by_authors=self.form == "authors",
        )
