"""The semantic space, in which images with the same labels are near each other."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Annotated, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from tagkin.arrays import (
    Array,
    as_block,
    check_features,
    check_label_matrix,
    check_same_features,
)
from tagkin.arrays.checks import check_weights, not_fitted
from tagkin.arrays.labels import TakesLabelMatrix, check_names, label_names
from tagkin.arrays.namespaces import LabelMatrix, Seed, is_sparse
from tagkin.errors import InvalidInput
from tagkin.kernels import Kernel
from tagkin.records.forms import storable
from tagkin.records.rules import Either, Floats, Size, Sparse, Texts, Whole
from tagkin.space.landmark_map import choose_landmarks
from tagkin.space.moments import Moments, first_sums
from tagkin.space.solution import SCALINGS, Solving, canonical_correlations, solve, solve_exactly
from tagkin.space.space import Landmarks, Projection, Space
from tagkin.space.views import TextView, as_text_view, text_features
from tagkin.wording import count

__all__ = ["SemanticSpace", "add_sums", "fit_draft", "start_from_landmarks", "uses_landmarks"]


@storable
class SemanticSpace(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesLabelMatrix, BaseEstimator
):
    """The paper's semantic space: regularised kernel CCA of visual features and labels.

    It solves (K^V+κI)⁻¹ K^T (K^T+κI)⁻¹ K^V α = λ²α (the paper's equation 12) for centred
    kernels and projects an image to ψ = √N K^V A R (equation 13). The factor √N makes the variance
    of dimension j over the N training images about λⱼ², so any scikit-learn estimator can learn
    from embeddings; it changes no cosine. Neighbours are then found by cosine. The solution comes
    from sums over the images and a matrix of the size of the landmarks. So memory does not grow
    with the number of images, and images can be added (`partial_fit`) and removed (`forget`) later.

    Parameters
    ----------
    regularization : float, default 0.5
        κ > 0. `regularization_of_public_code` converts the κ' of Hardoon's code.
    kernel : str or Kernel, default "arc-cosine"
        The visual kernel: a name in `tagkin.kernels.KERNELS`, such as "rbf", or an object of
        `tagkin.kernels`.
    text_view : str or TextView, default "indicator"
        How labels become text features: a name, or an object with ``fit(Y)`` and
        ``transform(Y)``.
    n_landmarks : int, default 4096
        Images that express the visual kernel. With as many as there are images the solution is
        exact and costs a factorisation of an N×N matrix.
    selection : "rpcholesky", "pgso", "uniform", or an array of shape (r, d)
        How to choose the landmarks, see `LandmarkMap`; or the landmarks themselves.
    n_components : int or None
        Number of best correlated dimensions to keep; None keeps all with a correlation above 0,
        at most the number of labels.
    scaling : "correlation", "unit" or "none"
        Length of dimension j: its correlation λⱼ times the projection (the paper); the
        projection scaled to unit variance over the training images, times its empirical
        correlation (Hardoon's public code); the plain projection.
    random_state : int, RandomState or None, default 0
        Seed of the random selections.

    Attributes
    ----------
    correlations_ : array of shape (n_components_,)
        λ, descending; with ``scaling="unit"`` the empirical correlations, in that order. With more
        than 1,024 text features and without `n_components`, dimensions are not the canonical ones:
        the space is the same, but rotated, at a fraction of the cost.
    n_components_ : int
        Dimensions of the space.
    readout_ : array of shape (n_components_, q)
        ``text_mean_ + psi @ readout_`` is the ridge regression of the text features.
    text_mean_ : array of shape (q,)
        Mean of the text features.
    landmarks_ : Landmarks
        The kernel with its constants, the landmarks' features (``points``), and their rows in the X
        of `fit` or of the first `partial_fit` (``indices``, None if an array was given).
    text_view_ : TextView
        The fitted view.
    n_images_ : int
        Images learned from, without forgotten ones.

    Notes
    -----
    Blocks are float32 if the features are (float32, float16, 8- and 16-bit integers), else
    float64. Sums and factors are float64, but an exact fit of float32 features factors the float32
    kernel if its rounding is small compared with κ. If float32 is not precise enough (a linear
    kernel, kernel values above 20 κ), blocks are float64 too. For given landmarks the result does
    not depend on the order or the blocks of the images, the number of threads or the device:
    cosines in the space agree to 1e-10 for float64 features. For float32 features they agree to
    1e-4 in an exact fit. With landmarks they usually agree to 1e-4, and at worst to a few 1e-2, if
    very many images hardly differ.

    References
    ----------
    Uricchio, Ballan, Seidenari, Del Bimbo. Automatic image annotation via label transfer in
    the semantic space. Pattern Recognition, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from tagkin import SemanticSpace
    >>> rng = np.random.default_rng(0)
    >>> Y = (rng.random((200, 5)) < 0.3).astype(float)
    >>> X = Y @ rng.standard_normal((5, 16)) + rng.standard_normal((200, 16))
    >>> space = SemanticSpace().fit(X, Y)
    >>> space.transform(X).shape
    (200, 5)
    """

    def __init__(
        self,
        regularization: float = 0.5,
        kernel: str | Kernel = "arc-cosine",
        *,
        text_view: str | TextView = "indicator",
        n_landmarks: int = 4096,
        selection: str | Array = "rpcholesky",
        n_components: int | None = None,
        scaling: str = "correlation",
        random_state: Seed = 0,
    ):
        self.regularization = regularization
        self.kernel = kernel
        self.text_view = text_view
        self.n_landmarks = n_landmarks
        self.selection = selection
        self.n_components = n_components
        self.scaling = scaling
        self.random_state = random_state

    text_view_: TextView
    landmarks_: Landmarks
    n_images_: Annotated[int, Whole()]
    # None after an exact fit, until images are added or forgotten
    _moments: Moments | None
    # text features of an exact fit, until there are sums
    _exact_text: Annotated[
        LabelMatrix | None, Either(Sparse("r", "q", low=-1e30), Floats("r", "q")).or_none()
    ]
    # None if the sums have changed since
    _solution: Projection | None
    _label_names: Annotated[np.ndarray | None, Texts("D").or_none().or_absent()]
    n_features_in_: Annotated[int, Size("d").or_absent()]
    feature_names_in_: Annotated[np.ndarray, Texts("d").or_absent()]

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Array, y: Array | None = None, sample_weight: Array | None = None) -> Self:
        """Learn the space from images and labels. If it fails, the space stays unchanged.

        Parameters
        ----------
        X : array of shape (N, d)
        y : labels of shape (N, D), dense or sparse
        sample_weight : array of shape (N,), optional
            Weights ω ≥ 0 of the images. All sums are weighted, Σ ωᵢ (kᵢ − k̄)(tᵢ − t̄)ᵀ and the like,
            with weighted means, so an image of weight 2 is the same as two. κ does not scale with
            the weights; scale them to a mean of 1 to keep its meaning. Landmarks and the text view
            do not depend on weights.
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self,
        X: Array,
        y: LabelMatrix | None,
        sample_weight: Array | None = None,
        *,
        draft: bool = False,
    ) -> Self:
        """Learn the space; a `draft` of an exact fit is not rotated (see `solution`)."""
        features, labels = self._check_input(X, y, first=True)
        weights = check_weights(sample_weight, features.shape[0])
        view, text, landmarks = self._begin(features, labels)
        n, d = features.shape
        # a kernel of low rank has few independent landmarks, which are exact as well
        exact = not uses_landmarks(self, n) and landmarks.kernel.max_rank(d) >= n
        if exact and weights is None:
            solution, kept_text = solve_exactly(landmarks, text, self._solving(), draft=draft)
            self._keep(X, y, view, landmarks, None)
            self._exact_text = kept_text
        else:
            landmarks, gram, moments = first_sums(features, text, landmarks, weights)
            solution = solve(landmarks, moments, self._solving(), gram)
            self._keep(X, y, view, landmarks, moments)
        self._solution = solution
        return self

    def prepare(self, X: Array, y: Array) -> Self:
        """Choose the landmarks among a sample of all images, from which `partial_fit` then learns.

        Use it if images come in parts and the first part does not represent them all.

        Parameters
        ----------
        X : array of shape (N, d)
            Features of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        """
        self.prepare_landmarks(X, y)
        return self

    def prepare_landmarks(self, X: Array, y: Array) -> Array:
        """Do the work of `prepare`, and return k(S, S) of the landmarks, shape (r, r).

        Parameters
        ----------
        X : array of shape (N, d)
            Features of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        """
        features, labels = self._check_input(X, y, first=True)
        view, text, landmarks = self._begin(features, labels)
        landmarks, gram, _ = landmarks.factor()
        moments = Moments.zeros(landmarks.mean_columns(features), text.shape[1])
        self._keep(X, y, view, landmarks, moments)
        return gram

    def partial_fit(
        self, X: Array, y: Array | None = None, sample_weight: Array | None = None
    ) -> Self:
        """Add images. The first call chooses the landmarks among its images.

        The result equals one `fit` of all images with the same landmarks and weights. The space is
        solved at its next use, so many small calls cost little. If a call fails, it adds no image.

        Parameters
        ----------
        X : array of shape (N, d)
            Features of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        sample_weight : array of shape (N,), optional
            The weight of each image. Default: 1.
        """
        first = not self.__sklearn_is_fitted__()
        features, labels = self._check_input(X, y, first=first)
        weights = check_weights(sample_weight, features.shape[0])
        if first:
            view, text, landmarks = self._begin(features, labels)
            landmarks, _, moments = first_sums(features, text, landmarks, weights)
            self._keep(X, y, view, landmarks, moments)
        else:
            add_sums(self, self._sum_images(features, labels, weights))
        return self

    def forget(self, X: Array, y: Array, sample_weight: Array | None = None) -> Self:
        """Remove images; pass the labels and weights that they were learned with.

        The space has sums, not images. So it notices images that cannot be in the sums, but not
        every image that it never learned.

        Parameters
        ----------
        X : array of shape (N, d)
            Features of N images.
        y : array or sparse matrix of shape (N, D)
            Labels: 0 if absent.
        sample_weight : array of shape (N,), optional
            The weights that the images were learned with.
        """
        self._check_fitted()
        X, labels = self._check_input(X, y, first=False)
        if X.shape[0] > self.n_images_ - 2:
            few = f"Cannot forget {X.shape[0]} of {self.n_images_} images: at least 2 must stay."
            raise InvalidInput(f"{few} Fit a new space instead.")
        gone = self._sum_images(X, labels, check_weights(sample_weight, X.shape[0]))
        if not self.moments_.holds(gone):
            raise InvalidInput(
                "Cannot forget images that were not learned: their features or labels weigh more "
                "than those of all images of the space. Pass images that are in it, with the "
                "labels that they were learned with."
            )
        self.moments_.subtract(gone)
        self.n_images_, self._solution = self.moments_.count, None
        return self

    def _check_input(self, X: Array, Y: Array | None, *, first: bool) -> tuple[Array, Array]:
        """Return features and labels as arrays; check them and the parameters."""
        self.check_parameters()
        features = check_features(X, min_rows=2 if first else 1)
        if not first:
            check_same_features(self, X)
        check_names(None if first else getattr(self, "_label_names", None), Y)
        return features, check_label_matrix(Y, features.shape[0])

    def check_parameters(self) -> None:
        """Reject parameters that no fit could use."""
        kappa = self.regularization
        if isinstance(kappa, bool) or not isinstance(kappa, Real) or not 0 < kappa < math.inf:
            raise InvalidInput(
                f"regularization must be a positive number; found {self.regularization!r}. "
                "Without it every kernel CCA has trivial solutions."
            )
        if not isinstance(self.scaling, str) or self.scaling not in SCALINGS:
            names = ", ".join(SCALINGS)
            raise InvalidInput(f"scaling must be one of {names}; found {self.scaling!r}.")
        m = self.n_components
        if m is not None and (isinstance(m, bool) or not isinstance(m, Integral) or m < 1):
            raise InvalidInput(f"n_components must be a whole number from 1, or None; found {m!r}.")

    def check_stored(self) -> None:
        """Raise `InvalidInput` if a stored space can neither project nor learn."""
        if self._solution is None and self._moments is None:
            raise InvalidInput("it has neither a solution nor sums")

    def _begin(self, X: Array, Y: LabelMatrix) -> tuple[TextView, LabelMatrix, Landmarks]:
        """Return a fitted view, its text features, and landmarks among the images."""
        view = as_text_view(self.text_view)
        view.fit(Y)
        text = text_features(view, Y)
        if not (text.data if is_sparse(text) else text).any():
            raise InvalidInput(
                f"No label at all: none of the {X.shape[0]} images has any of the "
                f"{Y.shape[1]} labels. A space is learned from labels; tag some images first."
            )
        landmarks = choose_landmarks(
            X, self.kernel, self.n_landmarks, self.selection, self.random_state
        )
        return view, text, landmarks.precise(self.regularization)

    def _keep(
        self,
        X: Array,
        y: LabelMatrix | None,
        view: TextView,
        landmarks: Landmarks,
        moments: Moments | None,
    ) -> None:
        """Set all fitted attributes, after learning succeeded; nothing is solved yet."""
        validate_data(self, X, skip_check_array=True, reset=True)
        self.text_view_, self.landmarks_, self._label_names = view, landmarks, label_names(y)
        self.n_images_ = landmarks.points.shape[0] if moments is None else moments.count
        self._moments = moments
        self._exact_text, self._solution = None, None

    def _sum_images(self, X: Array, Y: Array, weights: np.ndarray | None) -> Moments:
        """Return sums over images to add or to forget."""
        text = text_features(self.text_view_, Y)
        return Moments.of(X, text, self.landmarks_, self.moments_.shift, weights)

    @property
    def moments_(self) -> Moments:
        """The sums over all images, which after an exact fit are computed at first use."""
        self._check_fitted()
        if self._moments is None:
            if self._exact_text is None:
                raise InvalidInput(
                    "This space has no sums, so it can neither learn from further images nor "
                    "forget any. Fit it again."
                )
            points = as_block(self.landmarks_.points, double=True)
            shift = self.solution().kernel_mean
            moments = Moments.of(points, self._exact_text, self.landmarks_, shift)
            self._moments, self._exact_text = moments, None
        return self._moments

    # --- solving -------------------------------------------------------------------------

    def _solving(self) -> Solving:
        return Solving(self.regularization, self.scaling, self.n_components)

    def solution(self, gram: Array | None = None, *, draft: bool = False) -> Projection:
        """Return the solution, which is computed at first use; `gram` is k(S, S) if it is known.

        A `draft` leaves out the rotation to canonical directions, an eigenproblem of the number of
        text features: embeddings have the same lengths and cosines. With float32 kernel columns it
        is solved in float32.

        Parameters
        ----------
        gram : array of shape (r, r), optional
            k(S, S), if it is known.
        draft : bool, default False
            Leave out the rotation to canonical directions.
        """
        self._check_fitted()
        if self._solution is None:
            self.check_parameters()
            sums = self.landmarks_, self.moments_
            self._solution = solve(*sums, self._solving(), gram, draft=draft)
        return self._solution

    # --- using ---------------------------------------------------------------------------

    def transform(self, X: Array) -> Array:
        """Project features X (n×d) into the space: ψ (n × n_components_), in X's precision."""
        self._check_fitted()
        features = check_features(X)
        check_same_features(self, X)
        return self.space_.transform(features)

    @property
    def space_(self) -> Space:
        """The record that embeds images."""
        return Space(self.landmarks_, self.solution(), float(self.regularization), self.n_images_)

    @property
    def correlations_(self) -> Array:
        """Canonical correlations, best first; an unrotated space computes them at each call."""
        correlations = self.solution().correlations
        if correlations is not None:
            return correlations
        return canonical_correlations(self.landmarks_, self.moments_, self.regularization)

    @property
    def n_components_(self) -> int:
        """Dimensions of the space."""
        return self.solution().coefficients.shape[1]

    @property
    def readout_(self) -> Array:
        """Coefficients of text features from embeddings, shape (n_components_, q).

        ``text_mean_ + psi @ readout_`` is the kernel ridge regression of the text features (of the
        labels, with the indicator view), which is a by-product of the space.
        """
        return self.solution().readout

    @property
    def text_mean_(self) -> Array:
        """Mean of the text features over the images, shape (q,)."""
        return self.solution().text_mean

    def describe(self) -> list[str]:
        """Return a few sentences that describe this space."""
        try:
            return self.space_.describe()
        except InvalidInput as error:
            return [f"Learned from {count(self.n_images_, 'image')}. Not usable yet. {error}"]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise not_fitted(
                "This SemanticSpace is not fitted yet. Call fit(X, y) or partial_fit(X, y) first."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_moments")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# --- sums from other machines and from parts ---------------------------------------------


def uses_landmarks(space: SemanticSpace, n_images: int) -> bool:
    """Return whether a fit of `n_images` uses landmarks, not the kernel of all pairs."""
    return not isinstance(space.selection, str) or n_images > space.n_landmarks


def fit_draft(space: SemanticSpace, X: Array, y: Array) -> SemanticSpace:
    """Fit a space whose embeddings are used, but not its directions; see `solution`."""
    return space._fit(X, y, draft=True)


def start_from_landmarks(
    space: SemanticSpace, landmarks: Landmarks, view: TextView, shift: Array, n_text: int
) -> SemanticSpace:
    """Start a space without images, which `add_sums` adds.

    Landmarks are independent, the view is fitted, and its text features have the width `n_text`.
    The shift (r,) estimates the mean kernel column, see `Moments`.
    """
    space.check_parameters()
    space._keep(landmarks.points, None, view, landmarks, Moments.zeros(shift, n_text))
    return space


def add_sums(space: SemanticSpace, moments: Moments) -> None:
    """Add the sums over images, from `Moments.of` with the space's landmarks and shift."""
    space.moments_.add(moments)
    space.n_images_, space._solution = space.moments_.count, None
