import numpy as np
import pytest
import scipy.linalg
from scipy import stats

from tagkin import LandmarkMap, memory_budget
from tagkin.errors import InvalidInput
from tagkin.kernels import RBF, ArcCosine, Linear
from tagkin.space import pgso, rp_cholesky
from tagkin.space.landmark_map import choose_landmarks


def rows(n=200, d=10, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


# --- partial Gram–Schmidt ---


@pytest.mark.parametrize("kernel", [ArcCosine(), Linear(), RBF(gamma=0.1)], ids=repr)
def test_pgso_is_lapacks_pivoted_cholesky(kernel, as_array):
    X = as_array(rows())
    K = np.asarray(kernel(X))
    landmarks = pgso(lambda j: kernel(X, X[j : j + 1])[:, 0], kernel.diagonal(X))
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(K, lower=1)
    assert len(landmarks.pivots) == rank
    assert landmarks.pivots.tolist() == (pivots[:rank] - 1).tolist()
    expected = np.empty((len(K), rank))
    expected[pivots - 1] = np.tril(factor)[:, :rank]
    # the last pivots of a low-rank kernel are divided by roots of rounding
    np.testing.assert_allclose(landmarks.factor, expected, atol=1e-6)
    np.testing.assert_allclose(
        landmarks.factor @ landmarks.factor.T, K, atol=1e-11 * np.abs(K).max()
    )


def test_pgso_reads_the_columns_of_its_pivots_only():
    K = ArcCosine()(rows())
    asked = []

    def column(j):
        asked.append(j)
        return K[:, j]

    landmarks = pgso(column, K.diagonal(), max_rank=12)
    assert asked == landmarks.pivots.tolist()
    assert landmarks.factor.shape == (200, 12)


def test_pgso_factor_is_lower_triangular_at_the_pivots():
    K = ArcCosine()(rows())
    landmarks = pgso(lambda j: K[:, j], K.diagonal(), max_rank=40)
    L = landmarks.factor[landmarks.pivots]
    assert (np.triu(L, 1) == 0).all()
    new = K[:, landmarks.pivots] @ np.linalg.inv(L).T  # R_new = K_new[:, pivots] L⁻ᵀ
    np.testing.assert_allclose(new, landmarks.factor, atol=1e-10)


def test_pgso_takes_the_first_of_equals_and_ends_at_the_rank():
    X = np.eye(3)[[0, 0, 1, 2, 2]]
    K = X @ X.T
    landmarks = pgso(lambda j: K[:, j], K.diagonal())
    assert landmarks.pivots.tolist() == [0, 2, 3]


# --- randomly pivoted Cholesky ---


def test_rp_cholesky_draws_from_its_distribution():
    """Pairs of pivots against the probabilities of the definition, by a χ² test."""
    X = np.random.default_rng(3).standard_normal((5, 3)) * [[1], [2], [0.5], [1], [3]]
    K = X @ X.T
    expected = np.zeros((5, 5))
    for i in range(5):
        residual = K.diagonal() - K[i] ** 2 / K[i, i]
        residual[i] = 0
        expected[i] = K[i, i] / np.trace(K) * residual / residual.sum()
    rng = np.random.RandomState(0)
    n = 2000
    counts = np.zeros((5, 5))
    for _ in range(n):
        i, j = rp_cholesky(Linear(), X, 2, rng)
        counts[i, j] += 1
    possible = expected > 1e-12
    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], n * expected[possible]).pvalue > 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rp_cholesky_ends_at_the_rank(dtype, as_array):
    X = as_array(rows(300, 6).astype(dtype))
    pivots = rp_cholesky(Linear(), X, 100, np.random.RandomState(0))
    assert len(pivots) == len(set(pivots.tolist())) == 6


def test_rp_cholesky_approximates_as_well_as_greedy_pivots():
    """On uneven data (one large cluster, many small ones), where uniform landmarks are worse."""
    rng = np.random.default_rng(0)
    X = 0.2 * rng.standard_normal((1000, 12))
    X[:900, 0] += 5
    X[900:] += 5 * rng.standard_normal((100, 12))
    K = ArcCosine()(X)

    def residual(selection):
        features = LandmarkMap(n_landmarks=60, selection=selection, random_state=0).fit_transform(X)
        return np.trace(K - features @ features.T)

    assert np.linalg.eigvalsh(K)[:-60].sum() < residual("rpcholesky") < 1.1 * residual("pgso")
    assert residual("rpcholesky") < 0.7 * residual("uniform")


def test_most_pivots_can_be_drawn_at_once():
    """A quarter one after the other, the rest from what they leave: nearly as good."""
    rng = np.random.default_rng(0)
    X = 0.2 * rng.standard_normal((2000, 12))
    X[:1800, 0] += 5
    X[1800:] += 5 * rng.standard_normal((200, 12))
    X[1000:1100] = X[0]  # of which one pivot leaves nothing
    K = ArcCosine()(X)

    def residual(pivots):
        L = np.linalg.cholesky(K[np.ix_(pivots, pivots)] + 1e-12 * np.eye(len(pivots)))
        return np.trace(K) - (np.linalg.solve(L, K[pivots]) ** 2).sum()

    landmarks = {
        n: rp_cholesky(ArcCosine(), X, 200, np.random.RandomState(0), n_pivots=n) for n in (50, 200)
    }
    assert all(len(set(pivots.tolist())) == 200 for pivots in landmarks.values())
    uniform = np.random.RandomState(0).choice(2000, 200, replace=False)
    assert residual(landmarks[50]) < 1.5 * residual(landmarks[200])
    assert residual(landmarks[50]) < 0.5 * residual(uniform)
    assert np.isin(landmarks[50], [0, *range(1000, 1100)]).sum() <= 2


def test_no_more_are_drawn_than_the_kernel_has_rank():
    X = rows(300, 6)
    pivots = rp_cholesky(Linear(), X, 100, np.random.RandomState(0), n_pivots=25)
    assert len(pivots) == 6
    chosen = choose_landmarks(X, Linear(), 100, "rpcholesky", 0)
    assert len(chosen.points) == 6


@pytest.mark.parametrize("copies", [1, 3])
def test_dependent_landmarks_are_left_out(copies):
    """The Gram matrix is that of float64."""
    X = np.repeat(np.maximum(rows(80, 30), 0), copies, axis=0)
    landmarks = choose_landmarks(X.astype(np.float32), "arc-cosine", 1000, "uniform", 0)
    columns, gram, _ = landmarks.factor()
    assert len(columns.points) == 80
    expected = ArcCosine()(columns.points.astype(np.float64))
    np.testing.assert_allclose(gram, expected, atol=7e-7)
    assert gram.dtype == np.float64


# --- the map ---


@pytest.mark.parametrize("selection", ["rpcholesky", "pgso", "uniform"])
@pytest.mark.parametrize("kernel", ["arc-cosine", "rbf", Linear()], ids=repr)
def test_the_map_is_exact_when_every_image_is_a_landmark(selection, kernel, as_array):
    X = rows()
    landmark_map = LandmarkMap(kernel, 1000, selection=selection).fit(as_array(X))
    features = np.asarray(landmark_map.transform(as_array(X)))
    K = np.asarray(landmark_map.landmarks_.kernel(X))
    np.testing.assert_allclose(features @ features.T, K, atol=1e-10 * np.abs(K).max())
    if kernel == Linear():
        assert features.shape[1] == 10, "as many landmarks as the kernel has rank"


@pytest.mark.parametrize("selection", ["rpcholesky", "pgso", "uniform"])
def test_the_map_of_new_images_is_nystroms(selection):
    X, new = rows(), rows(30, seed=1)
    fitted = LandmarkMap(n_landmarks=40, selection=selection, random_state=0).fit(X)
    S = X[fitted.landmarks_.indices]
    expected = ArcCosine()(new, S) @ np.linalg.solve(ArcCosine()(S), ArcCosine()(S, new))
    with memory_budget(10_000):
        features = fitted.transform(new)
    assert features.shape == (30, 40)
    np.testing.assert_allclose(features @ features.T, expected, atol=1e-10)


def test_landmarks_can_be_given():
    X = rows()
    fitted = LandmarkMap(selection=X[:25]).fit(X)
    assert fitted.landmarks_.indices is None
    same = LandmarkMap(n_landmarks=100).fit(X[:25])
    np.testing.assert_allclose(fitted.transform(X), same.transform(X), atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("selection", ["rpcholesky", "pgso", "uniform"])
def test_duplicates_and_zero_vectors_are_left_out(selection, dtype):
    X = np.concatenate([rows(50)] * 4 + [np.zeros((5, 10))]).astype(dtype)
    fitted = LandmarkMap(n_landmarks=120, selection=selection, random_state=0).fit(X)
    chosen = fitted.landmarks_.indices
    assert len(np.unique(chosen % 50)) == len(chosen) <= 50
    assert (chosen < 200).all()
    features = fitted.transform(X)
    assert np.isfinite(features).all()
    assert (features[200:] == 0).all()


def test_a_sample_of_candidates_is_looked_at():
    """Choosing does not read the whole of a large collection."""
    X = rows(30_000, 4)
    X[0] = np.nan
    seed = next(
        s for s in range(9) if 0 not in np.random.RandomState(s).choice(30_000, 3000, replace=False)
    )
    chosen = choose_landmarks(X, "arc-cosine", 10, "rpcholesky", seed)
    assert len(chosen.indices) == 10


def test_the_same_seed_gives_the_same_landmarks():
    X = rows(3000)
    first, again = (
        LandmarkMap(n_landmarks=50, random_state=7).fit(X).landmarks_.indices for _ in range(2)
    )
    other = LandmarkMap(n_landmarks=50, random_state=8).fit(X).landmarks_.indices
    assert (first == again).all()
    assert not np.array_equal(first, other)


def test_clear_errors():
    X = rows()
    with pytest.raises(InvalidInput, match="n_landmarks must be a whole number from 1; found 0"):
        LandmarkMap(n_landmarks=0).fit(X)
    with pytest.raises(InvalidInput, match="one of rpcholesky, pgso, uniform or an array"):
        LandmarkMap(selection="kmeans").fit(X)
    with pytest.raises(InvalidInput, match="have 3 features and X has 10"):
        LandmarkMap(selection=X[:5, :3]).fit(X)
    with pytest.raises(InvalidInput, match="All 200 candidate landmarks are zero vectors"):
        LandmarkMap().fit(np.zeros((200, 4)))
