"""The semantic space: where images that carry the same labels are near each other."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Annotated, Any, Self

import numpy as np
import scipy.sparse
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
from tagkin.arrays.checks import not_fitted
from tagkin.arrays.labels import TakesLabelMatrix, check_names, label_names
from tagkin.arrays.records import Later, storable
from tagkin.arrays.rules import Either, Floats, Size, Sparse, Texts, Whole
from tagkin.errors import InvalidInput
from tagkin.kernels import Kernel
from tagkin.space.landmarks import Landmarks
from tagkin.space.moments import Moments, first_sums
from tagkin.space.provenance import remember
from tagkin.space.refitting import Refits
from tagkin.space.solution import (
    SCALINGS,
    SOLVING,
    Projection,
    canonical_correlations,
    solve,
    solve_exactly,
)
from tagkin.space.space import Space
from tagkin.space.views import TextView, as_text_view, text_features
from tagkin.wording import count

__all__ = ["SemanticSpace"]


@storable
class SemanticSpace(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesLabelMatrix, BaseEstimator
):
    """The paper's semantic space: regularised kernel CCA of visual features and labels.

    It solves (K^V+κI)⁻¹ K^T (K^T+κI)⁻¹ K^V α = λ²α (the paper's equation 12) for centred
    kernels and projects an image to ψ = K^V A R (equation 13); neighbours are then found by
    cosine. The answer comes from sums over the images and a matrix of the size of the
    landmarks: memory is bounded whatever the number of images, and images can be added
    (`partial_fit`) and taken out (`forget`) later.

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
        Images that the visual kernel is expressed by. With as many as there are images the
        solution is exact and costs a factorisation of an N×N matrix.
    selection : "rpcholesky", "pgso", "uniform", or an array of shape (r, d)
        How the landmarks are chosen, see `LandmarkMap`; an array is taken as the landmarks.
    n_components : int or None
        Keep the best correlated dimensions; None keeps all that carry anything, at most the
        number of labels.
    scaling : "correlation", "unit" or "none"
        Length of dimension j: its correlation λⱼ times the projection (the paper); the
        projection brought to unit norm over the training images, times its empirical
        correlation there (Hardoon's public code); the projection as it is.
    random_state : int, RandomState or None, default 0
        Seed of the random selections.

    Attributes
    ----------
    correlations_ : array of shape (n_components_,)
        λ, descending; with ``scaling="unit"`` the empirical correlations, in that order. With more
        than 1,024 text features, dimensions are not those of the correlations, unless
        `n_components` asks for them: the same space, rotated, at a fraction of the cost.
    n_components_ : int
        Dimensions of the space.
    readout_ : array of shape (n_components_, q)
        ``text_mean_ + psi @ readout_`` is the ridge regression of the text features.
    text_mean_ : array of shape (q,)
        Mean of the text features.
    landmarks_ : Landmarks
        The kernel with its constants, and the landmarks' features.
    landmark_indices_ : int array of shape (r,), or None where an array was given
        The landmarks' rows in the X of `fit`, or of the first `partial_fit`.
    text_view_ : TextView
        The fitted view.
    n_images_ : int
        Images learned from, less those forgotten.

    Notes
    -----
    Blocks are float32 where the features are (float32, float16, 8- and 16-bit integers) and
    float64 otherwise; sums and factors are float64, except that an exact fit of float32
    features factors the float32 kernel as long as its rounding is small beside κ. Where float32
    would not do (a linear kernel, kernel values above 20 κ), blocks are float64 too. For given
    landmarks the result does not depend on the order or the blocks in which images come, nor
    on the number of threads or the device: cosines in the space agree to 1e-10 for float64
    features. For float32 features they agree to 1e-4 in an exact fit; with landmarks to about
    1e-4 as a rule, and to a few 1e-2 at worst, where very many images hardly differ.

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
        text_view: str | TextView = "indicator",
        n_landmarks: int = 4096,
        selection: str | Array = "rpcholesky",
        n_components: int | None = None,
        scaling: str = "correlation",
        random_state: Any = 0,
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
    # None after an exact fit, until images are added or taken out
    _moments: Later[Moments] | None
    # text features of an exact fit, as long as there are no sums
    _exact_text: Annotated[Any, Either(Sparse("r", "q", low=-1e30), Floats("r", "q")).or_none()]
    # None if the sums have changed since
    _solution: Projection | None
    _label_names: Annotated[Any, Texts("D").or_none().or_absent()]
    n_features_in_: Annotated[int, Size("d").or_absent()]
    feature_names_in_: Annotated[np.ndarray, Texts("d").or_absent()]

    # --- learning ------------------------------------------------------------------------

    def fit(self, X: Array, y: Any = None) -> Self:
        """Learn the space from features X (N×d) and labels y (N×D, dense or sparse).

        If it fails, what was learned before stays.
        """
        features, labels = self._validated(X, y, first=True)
        view, text, landmarks = self._begin(features, labels)
        n, d = features.shape
        # of a kernel of low rank, the independent landmarks are few and just as exact
        if not self.landmarks_pay(n) and landmarks.kernel.max_rank(d) >= n:
            solution, kept_text = solve_exactly(landmarks, text, **self._solving())
            self._keep(X, y, view, landmarks, None, kept_text, solution)
        else:
            landmarks, gram, moments = first_sums(features, text, landmarks)
            solution = solve(landmarks, moments, gram, **self._solving())
            self._keep(X, y, view, landmarks, moments, None, solution)
        return self

    def prepare(self, X: Array, y: Array) -> Self:
        """Choose the landmarks among a sample of all images; `partial_fit` then learns from all.

        For collections that come in parts, where the first part does not stand for all.
        """
        self.prepared(X, y)
        return self

    def prepared(self, X: Array, y: Array) -> Array:
        """As `prepare`; return k(S, S) of the landmarks, shape (r, r)."""
        features, labels = self._validated(X, y, first=True)
        view, text, landmarks = self._begin(features, labels)
        landmarks, gram = landmarks.independent()
        moments = Moments.zeros(landmarks.mean_columns(features), text.shape[1])
        self._keep(X, y, view, landmarks, moments, None, None)
        return gram

    def partial_fit(self, X: Array, y: Any = None) -> Self:
        """Add images. The first call chooses the landmarks among its images.

        The result equals one `fit` of all images with the same landmarks. It is solved for
        when it is next asked for, so that many small calls cost little. If a call fails,
        nothing of it is added.
        """
        first = not self.__sklearn_is_fitted__()
        features, labels = self._validated(X, y, first=first)
        if first:
            view, text, landmarks = self._begin(features, labels)
            landmarks, _, moments = first_sums(features, text, landmarks)
            self._keep(X, y, view, landmarks, moments, None, None)
        else:
            self.add_moments(self._sums_of(features, labels))
        return self

    def forget(self, X: Array, y: Array) -> Self:
        """Take images out again, given the labels that they were learned with.

        The space holds sums, not images: it notices images that it cannot hold, not every one
        that it never learned.
        """
        self._check_fitted()
        X, labels = self._validated(X, y, first=False)
        if X.shape[0] > self.n_images_ - 2:
            few = f"Cannot forget {X.shape[0]} of {self.n_images_} images: at least 2 must stay."
            raise InvalidInput(f"{few} Fit a new space instead.")
        gone = self._sums_of(X, labels)
        if not self.moments_.holds(gone):
            raise InvalidInput(
                "Cannot forget images that were not learned: their features or labels weigh more "
                "than those of all images of the space. Pass images that are in it, with the "
                "labels that they were learned with."
            )
        self.moments_.subtract(gone)
        self.n_images_, self._solution = self.moments_.count, None
        return self

    def _validated(self, X: Array, Y: Array, *, first: bool) -> tuple[Array, Array]:
        """Features and labels as arrays, checked together with the parameters."""
        self.check_parameters()
        features = check_features(X, min_rows=2 if first else 1)
        if not first:
            check_same_features(self, X)
        check_names(None if first else getattr(self, "_label_names", None), Y)
        return features, check_label_matrix(Y, features.shape[0])

    def check_parameters(self) -> None:
        """Refuse parameters that no fit could use."""
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

    def _begin(self, X: Array, Y: Array) -> tuple[TextView, Array, Landmarks]:
        """A fitted view, its text features, and landmarks among the images."""
        view = as_text_view(self.text_view)
        view.fit(Y)
        text: Any = text_features(view, Y)
        if not (text.data if scipy.sparse.issparse(text) else text).any():
            raise InvalidInput(
                f"No label at all: none of the {X.shape[0]} images carries any of the "
                f"{Y.shape[1]} labels. A space is learned from labels; tag some images first."
            )
        landmarks = Landmarks.choose(
            X, self.kernel, self.n_landmarks, self.selection, self.random_state
        )
        return view, text, landmarks.precise(self.regularization)

    def _keep(
        self,
        X: Array,
        y: Any,
        view: TextView,
        landmarks: Landmarks,
        moments: Moments | None,
        exact_text: Array | None,
        solution: Projection | None,
    ) -> None:
        """Replace what was learned, when all of it has succeeded."""
        validate_data(self, X, skip_check_array=True, reset=True)
        self.text_view_, self.landmarks_, self._label_names = view, landmarks, label_names(y)
        self.n_images_ = landmarks.points.shape[0] if moments is None else moments.count
        self._moments = None if moments is None else Later.known(moments)
        self._exact_text, self._solution = exact_text, solution

    def landmarks_pay(self, n_images: int) -> bool:
        """Whether a fit of so many images goes by landmarks, not by the kernel of all pairs."""
        return not isinstance(self.selection, str) or n_images > self.n_landmarks

    def sums_of(self, X: Array, y: Array) -> Moments:
        """Sums over further images, such as `add_moments` takes them."""
        self._check_fitted()
        return self._sums_of(*self._validated(X, y, first=False))

    def _sums_of(self, X: Array, Y: Array) -> Moments:
        """Sums over further images, to be added or taken out."""
        text = text_features(self.text_view_, Y)
        return Moments.of(X, text, self.landmarks_, self.moments_.shift)

    def refits(self, known: Array, others: Array) -> Refits:
        """Spaces like this one for any labels of the known images, the visual side kept.

        For trials on a sample, such as those of `TagDenoiser`: the landmarks are evenly spaced
        known images, as many as this space asks for.

        Parameters
        ----------
        known, others : arrays of shape (n, d) and (m, d)
        """
        self.check_parameters()
        points = known[:: -(-known.shape[0] // self.n_landmarks)]
        landmarks = Landmarks.choose(points, self.kernel, self.n_landmarks, points, None)
        landmarks, _ = landmarks.precise(self.regularization).independent()
        return Refits(landmarks, known, others, self.regularization)

    # --- sums that come from elsewhere ---------------------------------------------------

    def begin(self, landmarks: Landmarks, view: TextView, shift: Array, n_text: int) -> Self:
        """Take landmarks and a fitted view, and hold no image yet; `add_moments` brings them.

        Parameters
        ----------
        landmarks : Landmarks
            Independent of each other, see `Landmarks.independent`.
        view : TextView
        shift : array of shape (r,)
            An estimate of the mean kernel column, see `Moments`.
        n_text : int
            Width q of the view's text features.
        """
        self.check_parameters()
        moments = Moments.zeros(shift, n_text)
        self._keep(landmarks.points, None, view, landmarks, moments, None, None)
        return self

    def add_moments(self, moments: Moments) -> Self:
        """Add images by their sums: `Moments.of` with this space's landmarks and shift."""
        self.moments_.add(moments)
        self.n_images_, self._solution = self.moments_.count, None
        return self

    @property
    def moments_(self) -> Moments:
        """The sums over all images; after an exact fit they are made when first needed."""
        self._check_fitted()
        if self._moments is None:
            if self._exact_text is None:
                raise InvalidInput(
                    "This space holds no sums, and so cannot learn from further images, or forget "
                    "any. Fit it again."
                )
            points = as_block(self.landmarks_.points, double=True)
            shift = self.solution().kernel_mean
            moments = Moments.of(points, self._exact_text, self.landmarks_, shift)
            self._moments, self._exact_text = Later.known(moments), None
        return self._moments.get()

    # --- solving -------------------------------------------------------------------------

    def solve(self, landmark_gram: Array | None = None, *, draft: bool = False) -> Self:
        """Solve for the directions now; `landmark_gram` is k(S, S) where it is known.

        A `draft` leaves out the rotation to canonical directions, which takes an eigenproblem of
        the number of text features: embeddings have the same lengths and cosines. With float32
        kernel columns it is solved in float32.
        """
        self.solution(landmark_gram, draft=draft)
        return self

    def _solving(self) -> dict[str, Any]:
        """The parameters that the solution depends on."""
        return {name: getattr(self, name) for name in SOLVING}

    def solution(self, gram: Array | None = None, *, draft: bool = False) -> Projection:
        """What images are projected by; `gram` is k(S, S) where it is known."""
        self._check_fitted()
        if self._solution is None:
            self.check_parameters()
            known = self.landmarks_, self.moments_, gram
            self._solution = solve(*known, draft=draft, **self._solving())
        return self._solution

    # --- using ---------------------------------------------------------------------------

    def transform(self, X: Array) -> Array:
        """Project features X (n×d) into the space: ψ (n × n_components_), in X's precision."""
        self._check_fitted()
        features = check_features(X)
        check_same_features(self, X)
        psi = self.space_.transform(features)
        remember(psi, self)
        return psi

    @property
    def space_(self) -> Space:
        """The record that embeds images."""
        return Space(self.landmarks_, self.solution(), float(self.regularization), self.n_images_)

    @property
    def correlations_(self) -> Array:
        """Canonical correlations, best first; where they were spared, solved for at each call."""
        found = self.solution().correlations
        if found is not None:
            return found
        return canonical_correlations(self.landmarks_, self.moments_, self.regularization)

    @property
    def n_components_(self) -> int:
        """Dimensions of the space."""
        return self.solution().coefficients.shape[1]

    @property
    def readout_(self) -> Array:
        """Text features from embeddings, shape (n_components_, q).

        ``text_mean_ + psi @ readout_`` is the kernel ridge regression of the text features
        (of the labels, with the indicator view), which the space holds at no cost.
        """
        return self.solution().readout

    @property
    def text_mean_(self) -> Array:
        """Mean of the text features over the images, shape (q,)."""
        return self.solution().text_mean

    @property
    def landmark_indices_(self) -> Array | None:
        """Rows of the first X that are the landmarks, shape (r,); None where they were given."""
        self._check_fitted()
        return self.landmarks_.indices

    def describe(self) -> list[str]:
        """Return a few sentences that describe this space."""
        try:
            return self.space_.describe()
        except InvalidInput as error:
            return [f"Learned from {count(self.n_images_, 'image')}. Not to be used yet. {error}"]

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
