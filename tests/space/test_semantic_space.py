"""The space against the dense equation, and images that come and go."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from tagkin import SemanticSpace, memory_budget
from tagkin.errors import InvalidInput
from tagkin.kernels import RBF, ArcCosine, Linear
from tagkin.space import regularization_of_public_code
from tagkin.space.views import IndicatorView
from tests.conftest import assert_same, make_collection, relative_error
from tests.dense import cosines, dense_space, gram

# --- the answer is the paper's ---


@pytest.mark.parametrize("kappa", [0.05, 0.5, 2.0])
@pytest.mark.parametrize("kernel", [ArcCosine(), ArcCosine(1), RBF(gamma=0.05), Linear()], ids=repr)
def test_the_space_is_the_dense_equation(kernel, kappa, collection, as_array):
    X, Y, X_new = collection
    dense = dense_space(kernel(X), kernel(X_new, X), Y @ Y.T, kappa, 6)
    exact = SemanticSpace(kappa, kernel)  # every image a landmark, solved in the dual
    streamed = SemanticSpace(kappa, kernel, selection=X)  # the same landmarks, solved from sums
    for space in (exact, streamed):
        if space is streamed:
            space.set_params(selection=as_array(X))
        space.fit(as_array(X), as_array(Y))
        assert np.abs(np.asarray(space.correlations_) - dense.correlations).max() < 1e-8
        for data, psi in ((X, dense.psi), (X_new, dense.psi_new)):
            actual = gram(space.transform(as_array(data))) / len(X)  # ψ is scaled by √N
            assert np.abs(actual - gram(psi)).max() < 1e-8


@pytest.mark.parametrize("n_landmarks", [None, 1000])
@pytest.mark.parametrize(
    ("kernel", "scale", "kappa"),
    [
        (Linear(), 1, 1e-3),
        (Linear(), 30, 0.5),
        (Linear(), 1000, 0.5),
        (ArcCosine(normalized=False), 1, 0.5),
        (ArcCosine(), 1, 1e-3),
    ],
    ids=repr,
)
def test_large_kernels_keep_their_digits(kernel, scale, kappa, n_landmarks, collection):
    """Where ‖K‖/κ is large the printed equation loses digits; a ridge regression does not.

    ψψᵀ = P G⁻¹ Pᵀ with P the ridge prediction of T from the eigenvectors of K, and
    G = TᵀT + κI.
    """
    X, Y, X_new = (scale * collection.X, collection.Y, scale * collection.X_new)
    T = Y - Y.mean(axis=0)
    K = kernel(X)
    values, vectors = np.linalg.eigh(K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean())
    values, vectors = (a[..., values > 1e-12 * values[-1]] for a in (values, vectors))
    new = (kernel(X_new, X) - K.mean(axis=0)) @ vectors
    predicted = new @ ((vectors.T @ T) / (values + kappa)[:, None])
    expected = predicted @ np.linalg.solve(T.T @ T + kappa * np.eye(6), predicted.T)
    selection = "rpcholesky" if n_landmarks else X
    space = SemanticSpace(kappa, kernel, selection=selection).fit(X, Y)
    assert relative_error(gram(space.transform(X_new)) / len(X), expected) < 1e-6


def test_float32_keeps_its_digits_whatever_the_regularization():
    """An exact fit changes to float64 by itself where float32 would not do."""
    X, Y, X_new = make_collection(n=1000, d=40)
    for kernel, scale, kappa in (
        (ArcCosine(), 1, 1e-3),
        (ArcCosine(), 1, 0.5),
        (Linear(), 30, 0.5),
        (ArcCosine(normalized=False), 1, 0.5),
    ):
        wide = SemanticSpace(kappa, kernel).fit(scale * X.astype(np.float32).astype(float), Y)
        narrow = SemanticSpace(kappa, kernel).fit((scale * X).astype(np.float32), Y)
        actual = cosines(narrow.transform((scale * X_new).astype(np.float32).astype(float)))
        assert np.abs(actual - cosines(wide.transform(scale * X_new))).max() < 1e-4


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        (Linear(), np.float32),
        (Linear(), np.uint8),
        (ArcCosine(normalized=False), np.float32),
        (ArcCosine(1, normalized=False), np.uint8),
    ],
)
@pytest.mark.parametrize("n_landmarks", [100, 1000])
def test_narrow_features_under_kernels_that_amplify_rounding(kernel, n_landmarks, dtype):
    """Linear and un-normalised kernels take float64 blocks by themselves."""
    rng = np.random.default_rng(0)
    Y = (rng.random((600, 10)) < 0.2).astype(float)
    X = Y @ rng.random((10, 32)) + 0.5 * rng.random((600, 32))
    X = (40 * X if dtype == np.uint8 else X).astype(dtype)
    narrow = SemanticSpace(kernel=kernel, n_landmarks=n_landmarks, random_state=0).fit(X, Y)
    chosen = X[narrow.landmarks_.indices].astype(np.float64)
    wide = SemanticSpace(kernel=kernel, selection=chosen).fit(X.astype(np.float64), Y)
    for _ in range(2):
        psi = narrow.transform(X)
        assert psi.dtype == np.float32
        assert np.abs(cosines(psi) - cosines(wide.transform(X.astype(np.float64)))).max() < 1e-3
        narrow.partial_fit(X[:5], Y[:5])
        wide.partial_fit(X[:5].astype(np.float64), Y[:5])


def test_ontology_like_views_are_the_dense_equation(collection):
    """A text kernel Y S Yᵀ, through a view with features Y S^½."""
    X, Y, X_new = collection
    A = np.random.default_rng(1).standard_normal((6, 6))
    S = A @ A.T
    root = np.linalg.cholesky(S)

    class Ontology(IndicatorView):
        def transform(self, Y):
            return Y @ root

    dense = dense_space(ArcCosine()(X), ArcCosine()(X_new, X), Y @ S @ Y.T, 0.5, 6)
    space = SemanticSpace(text_view=Ontology()).fit(X, Y)
    np.testing.assert_allclose(
        gram(space.transform(X_new)) / len(X), gram(dense.psi_new), atol=1e-8
    )


def test_the_public_codes_regularisation_is_a_change_of_kappa(collection):
    """(1−κ')K² + κ'K in both views: the same directions, correlations times 1/(1−κ')."""
    X, Y, _ = collection
    prime = 0.3
    n = len(X)
    centre = np.eye(n) - 1 / n
    visual, text = centre @ ArcCosine()(X) @ centre, centre @ Y @ Y.T @ centre
    ridge = prime * np.eye(n)
    M = np.linalg.solve(
        (1 - prime) * visual + ridge, text @ np.linalg.solve((1 - prime) * text + ridge, visual)
    )
    public = np.sqrt(np.sort(np.linalg.eigvals(M).real)[::-1][:6])
    space = SemanticSpace(regularization_of_public_code(prime)).fit(X, Y)
    np.testing.assert_allclose(space.correlations_ / (1 - prime), public, atol=1e-10)
    assert regularization_of_public_code(0.5) == 1.0
    with pytest.raises(InvalidInput, match="between 0 and 1; found 1"):
        regularization_of_public_code(1)


@pytest.mark.parametrize("n_landmarks", [100, 2000])
def test_a_default_logistic_regression_learns_from_embeddings(n_landmarks):
    """Embeddings have about unit variance: far smaller ones would be regularised to nothing."""
    rng = np.random.default_rng(0)
    Y = (rng.random((1200, 5)) < 0.3).astype(int)
    X = Y @ rng.standard_normal((5, 16)) + 0.5 * rng.standard_normal((1200, 16))
    pipeline = make_pipeline(
        SemanticSpace(n_landmarks=n_landmarks), OneVsRestClassifier(LogisticRegression())
    )
    pipeline.fit(X[:800], Y[:800])
    assert f1_score(Y[800:], pipeline.predict(X[800:]), average="micro") > 0.98
    variances = pipeline[0].transform(X[:800]).var(axis=0)
    assert (variances < pipeline[0].correlations_ ** 2).all()
    assert (variances > 0.8 * pipeline[0].correlations_ ** 2).all()


@pytest.mark.parametrize("n_landmarks", [40, 1000])
def test_empirical_correlations_are_those_of_the_projections(n_landmarks):
    X, Y, _ = make_collection()
    kappa = 0.5
    space = SemanticSpace(kappa, n_landmarks=n_landmarks, scaling="unit").fit(X, Y)
    psi, text = space.transform(X), Y - Y.mean(axis=0)
    # the text direction that goes with a visual one: z ∝ (G+κI)⁻¹ T̂ᵀ ψ
    z = np.linalg.solve(text.T @ text + kappa * np.eye(6), text.T @ psi)
    expected = [np.corrcoef(psi[:, j], text @ z[:, j])[0, 1] for j in range(6)]
    np.testing.assert_allclose(space.correlations_, expected, atol=1e-8)


@pytest.mark.parametrize("n_landmarks", [60, 1000])
def test_scalings_differ_by_the_length_of_each_dimension(n_landmarks, collection):
    X, Y, X_new = collection

    def psi(scaling, data):
        space = SemanticSpace(n_landmarks=n_landmarks, scaling=scaling, random_state=0).fit(X, Y)
        return space.transform(data), space.correlations_

    (paper, correlations), (plain, _), (unit, empirical) = (
        psi(scaling, X) for scaling in ("correlation", "none", "unit")
    )
    np.testing.assert_allclose(paper, plain * correlations, atol=1e-12)
    np.testing.assert_allclose(unit.std(axis=0), empirical, atol=1e-9)
    np.testing.assert_allclose(unit, plain / plain.std(axis=0) * empirical, atol=1e-9)
    assert (empirical > correlations).all()
    assert (empirical <= 1).all()
    np.testing.assert_allclose(psi("correlation", X_new)[0], psi("none", X_new)[0] * correlations)


@pytest.mark.parametrize("scaling", ["correlation", "unit", "none"])
@pytest.mark.parametrize("n_landmarks", [60, 1000])
def test_single_precision_has_every_scaling(n_landmarks, scaling, collection, as_array):
    X, Y, X_new = collection

    def psi(dtype):
        space = SemanticSpace(n_landmarks=n_landmarks, scaling=scaling, random_state=0)
        space.fit(as_array(X.astype(dtype)), as_array(Y))
        return gram(space.transform(as_array(X_new.astype(dtype))))

    exact = psi(np.float64)
    assert np.abs(psi(np.float32) - exact).max() < 1e-3 * np.abs(exact).max()


def test_components_are_the_best_correlated(collection):
    X, Y, X_new = collection
    space = SemanticSpace().fit(X, Y)
    three = SemanticSpace(n_components=3).fit(X, Y)
    assert three.n_components_ == 3
    assert (np.diff(space.correlations_) < 0).all()
    np.testing.assert_allclose(three.transform(X_new), space.transform(X_new)[:, :3], atol=1e-12)
    assert SemanticSpace(n_components=99).fit(X, Y).n_components_ == 6
    assert three.get_feature_names_out().tolist() == [f"semanticspace{i}" for i in range(3)]


def test_kin_share_labels_more_often_in_the_space():
    """What it is for: neighbours by cosine carry more of an image's labels."""
    X, Y, _ = make_collection(n=600, d=30)
    train, test = slice(0, 400), slice(400, 600)
    space = SemanticSpace().fit(X[train], Y[train])

    def shared(Z):
        Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
        kin = np.argsort(-Z[test] @ Z[train].T, axis=1)[:, :10]
        return np.mean([(Y[train][k] == Y[test][i]).all(axis=1).mean() for i, k in enumerate(kin)])

    assert shared(space.transform(X)) > 1.5 * shared(X)


@pytest.mark.parametrize("selection", ["rpcholesky", "pgso", "uniform"])
def test_more_landmarks_come_closer_to_the_exact_space(selection):
    X, Y, X_new = make_collection(n=400)
    exact = cosines(SemanticSpace().fit(X, Y).transform(X_new))
    errors = [
        np.abs(
            cosines(
                SemanticSpace(n_landmarks=r, selection=selection, random_state=0)
                .fit(X, Y)
                .transform(X_new)
            )
            - exact
        ).mean()
        for r in (10, 60, 399)
    ]
    assert errors[0] > 1.5 * errors[1] > 3 * errors[2]


# --- streaming ---


def test_partial_fit_in_any_order_is_one_fit(collection, as_array):
    X, Y, X_new = collection
    blocks = [(X[:50], Y[:50]), (X[50:51], Y[50:51]), (X[51:110], Y[51:110]), (X[110:], Y[110:])]
    landmarks = X[::3]
    whole = SemanticSpace(selection=as_array(landmarks)).fit(as_array(X), as_array(Y))
    for order in itertools.permutations(blocks):
        if len(order[0][0]) == 1:
            continue
        space = SemanticSpace(selection=as_array(landmarks))
        for block in order:
            space.partial_fit(*map(as_array, block))
        assert space.n_images_ == 150
        embeddings = np.asarray(space.transform(as_array(X_new)))
        np.testing.assert_allclose(embeddings, whole.transform(as_array(X_new)), atol=1e-10)


def test_partial_fit_chooses_landmarks_from_its_first_block(collection):
    X, Y, X_new = collection
    space = SemanticSpace().partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert space.landmarks_.indices.max() < 100
    expected = SemanticSpace(selection=X[:100]).fit(X, Y)
    np.testing.assert_allclose(space.transform(X_new), expected.transform(X_new), atol=1e-9)


@pytest.mark.parametrize("n_landmarks", [40, 1000])
def test_forgetting_undoes_learning(n_landmarks, collection):
    X, Y, X_new = collection
    space = SemanticSpace(n_landmarks=n_landmarks, random_state=0).fit(X, Y)
    before = space.transform(X_new)
    other = make_collection(seed=5)
    space.partial_fit(other.X, other.Y)
    assert relative_error(space.transform(X_new), before) > 1e-2
    space.forget(other.X, other.Y)
    np.testing.assert_allclose(space.transform(X_new), before, atol=1e-8)
    space.forget(X[100:], Y[100:])
    expected = SemanticSpace(selection=space.landmarks_.points).fit(X[:100], Y[:100])
    np.testing.assert_allclose(space.transform(X_new), expected.transform(X_new), atol=1e-8)


def test_only_what_was_learned_can_be_forgotten(collection):
    X, Y, X_new = collection
    space = SemanticSpace().fit(X, Y)
    before = space.transform(X_new)
    with pytest.raises(InvalidInput, match="images that were not learned"):
        space.forget(X[:50], Y[:50] + 9 * np.eye(6)[2])
    with pytest.raises(InvalidInput, match="Cannot forget 149 of 150 images"):
        space.forget(X[:149], Y[:149])
    assert_same(space.transform(X_new), before)


def test_what_cannot_have_been_learned_is_noticed(collection):
    X, Y, X_new = collection
    space = SemanticSpace(n_landmarks=40, random_state=0).fit(X, Y)
    with pytest.raises(InvalidInput, match="were not learned"):
        space.forget(-X[:100], Y[:100] * 0)
    space.forget(X[:70], Y[:70])
    with pytest.raises(InvalidInput, match=r"were not learned|forgotten twice"):
        space.forget(X[:70], Y[:70]).transform(X_new)


@pytest.mark.parametrize("n_landmarks", [40, 1000])
def test_a_failed_fit_leaves_what_was_learned(n_landmarks, collection):
    X, Y, X_new = collection
    space = SemanticSpace(n_landmarks=n_landmarks, random_state=0).fit(X, Y)
    before = space.transform(X_new)
    for bad_X, bad_Y in ((X[:60], 0 * Y[:60] + 1), (X[:60, :5] * 0 + 1, Y[:60])):
        with pytest.raises(InvalidInput):
            space.fit(bad_X, bad_Y)
    assert space.n_images_ == 150
    assert_same(space.transform(X_new), before)
    space.set_params(regularization=-1)
    with pytest.raises(InvalidInput, match="regularization"):
        space.partial_fit(X, Y)
    assert space.n_images_ == 150


def test_the_callers_arrays_are_not_kept(collection):
    X, Y, X_new = collection
    landmarks, labels = X[:30].copy(), Y.copy()
    given = SemanticSpace(selection=landmarks).fit(X, Y)
    exact = SemanticSpace().fit(X, labels)
    before = given.transform(X_new)
    landmarks += 1
    labels[:] = 0
    assert_same(given.transform(X_new), before)
    expected = SemanticSpace().fit(X, Y).partial_fit(X, Y).transform(X_new)
    np.testing.assert_allclose(exact.partial_fit(X, Y).transform(X_new), expected)


def test_a_failed_call_adds_nothing(collection):
    X, Y, X_new = collection
    space = SemanticSpace().partial_fit(X, Y)
    before = space.transform(X_new)
    bad = X.copy()
    bad[-1, 3] = np.inf
    with memory_budget(5000), pytest.raises(InvalidInput, match="NaN or infinity"):
        space.partial_fit(bad, Y)
    assert space.n_images_ == 150
    assert_same(space.transform(X_new), before)
