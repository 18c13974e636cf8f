"""2PKNN: voting in a neighbourhood that represents every label."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import Self

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, check_groups
from tagkin.arrays.labels import label_names
from tagkin.errors import InvalidInput
from tagkin.neighbors import ExactNeighbors, Neighbors
from tagkin.neighbors.neighbor_index import check_metric, check_n_neighbors, keep_neighbors
from tagkin.records.forms import storable
from tagkin.transfer.label_transfer import check_positive
from tagkin.transfer.margins import learn_dimension_weights, sample_size
from tagkin.transfer.neighbor_lists import on_device_of, on_host
from tagkin.transfer.neighbor_transfer import NeighborTransfer
from tagkin.transfer.twopass_votes import TwoPassVotes, apply_weights, balanced_neighbors

__all__ = ["TwoPassKNN"]

FORMS = ("paper", "authors")
_MOST_OF_A_GROUP = 20  # images that metric learning skips


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
    label_maximum : bool, default False
        Divide each label's scores by their maximum over the images of a call, as the authors'
        code does over the test set. An image's scores then depend on the other images.
    metric_learning : bool, default False
        2PKNN-ML: learn a weight for each dimension that brings images with common labels nearer
        than others by a margin. Distances are then weighted squared Euclidean distances.
    metric : "cosine" or "euclidean"
        Distance between images. With metric learning, "cosine" scales embeddings to unit
        length.
    random_state : int or None, default 0
        Seed of metric learning's sample of images.

    Attributes
    ----------
    dimension_weights_ : array of shape (m,), or None
        Learned weights, of mean 1.
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
    >>> model.suggest(np.array([[1.0, 0.2]]), n_best=1)[0][0].label
    0
    """

    model_: TwoPassVotes

    dimension_weights_ = property(attrgetter("model_.dimension_weights"))

    def __init__(
        self,
        n_per_label: int = 2,
        decay: float = 1.0,
        *,
        form: str = "paper",
        label_maximum: bool = False,
        metric_learning: bool = False,
        metric: str = "cosine",
        random_state: int | None = 0,
    ):
        self.n_per_label = n_per_label
        self.decay = decay
        self.form = form
        self.label_maximum = label_maximum
        self.metric_learning = metric_learning
        self.metric = metric
        self.random_state = random_state

    def check_parameters(self) -> None:
        """Raise `InvalidInput` for parameters that no fit could use."""
        check_n_neighbors(self.n_per_label, np.inf)
        check_positive("decay", self.decay)
        if not isinstance(self.form, str) or self.form not in FORMS:
            raise InvalidInput(f"form must be one of {', '.join(FORMS)}; found {self.form!r}.")

    # --- learning ------------------------------------------------------------------------

    @property
    def needs_embeddings(self) -> bool:
        """Whether a metric is learned from embeddings."""
        return bool(self.metric_learning)

    def fit(self, X: Array, y: Array | None = None, *, groups: Array | None = None) -> Self:
        """Store embeddings X (N×m) and labels y (N×D); with metric learning, learn weights.

        If it fails, the model does not change. With `groups` (N,), metric learning ignores
        neighbours in an image's own group.

        Parameters
        ----------
        X : array of shape (N, m)
            Embeddings of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        groups : array of shape (N,), optional
            Which images belong together, such as the shots of a burst.
        """
        self.check_parameters()
        embeddings, labels = self._check_fit_input(X, y)
        names = label_names(y)
        weights = None
        if self.metric_learning:
            weights = self._learn_weights(embeddings, labels, groups)
        index = ExactNeighbors(self.metric if weights is None else "euclidean")
        index.fit(apply_weights(embeddings, weights, self.metric))
        return self._keep(replace(self._make_votes(labels, weights), index=index), names, X)

    def _learn(self, labels: scipy.sparse.csr_array, neighbors: Neighbors | None) -> TwoPassVotes:
        if self.metric_learning:
            raise InvalidInput(
                "Metric learning needs embeddings, not only neighbours. Use fit(X, y), or "
                "metric_learning=False."
            )
        return self._make_votes(labels, None)

    def _make_votes(
        self, labels: scipy.sparse.csr_array, weights: np.ndarray | None
    ) -> TwoPassVotes:
        return TwoPassVotes(
            labels=labels,
            n_per_label=int(self.n_per_label),
            decay=float(self.decay),
            by_authors=self.form == "authors",
            label_maximum=bool(self.label_maximum),
            metric=self.metric,
            dimension_weights=weights,
        )

    def _learn_weights(
        self, embeddings: Array, labels: scipy.sparse.csr_array, groups: Array | None
    ) -> np.ndarray:
        """Learn weights from the balanced neighbourhoods of a sample of labelled images."""
        check_metric(self.metric)
        unweighted = apply_weights(embeddings, np.ones(embeddings.shape[1]), self.metric)
        labelled = np.flatnonzero(np.diff(labels.indptr))
        rng = np.random.default_rng(self.random_state)
        sample = np.sort(rng.permutation(labelled)[: sample_size(embeddings.shape[1])])
        if not len(sample):
            return np.ones(embeddings.shape[1])
        n = embeddings.shape[0]
        codes = np.arange(n) if groups is None else check_groups(groups, n)
        # more than needed, because the image itself and its group are the nearest
        n_more = min(int(np.bincount(codes).max()), _MOST_OF_A_GROUP)
        index = ExactNeighbors("euclidean").fit(unweighted)
        queries = unweighted[on_device_of(sample, unweighted)]
        n_near = self.n_per_label + n_more
        neighbors = on_host(balanced_neighbors(index, queries, labels, n_near))
        others = (neighbors.indices >= 0) & (codes[neighbors.indices] != codes[sample][:, None])
        return learn_dimension_weights(
            unweighted, labels, sample, keep_neighbors(neighbors, others)
        )
