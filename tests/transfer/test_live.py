"""Scores that follow decisions, against dense equations and fits from scratch."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from tagkin.errors import InvalidInput
from tagkin.transfer.live import LiveScores

N, D, TAU = 90, 4, 5.0


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(N, 3))
    return {
        "candidates": scipy.sparse.csc_array(
            np.where(rng.random((N, D)) < 0.7, rng.uniform(0.02, 0.97, (N, D)), 0)
        ),
        "embeddings": embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True),
        "features": rng.normal(size=(N, 5)) / 2,
        "support": rng.uniform(1, 3, N),
    }


def decisions(problem, label, n, seed=1):
    """Some of a label's candidates, and what a person says of them."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(problem["candidates"][:, [label]].nonzero()[0], n, replace=False)
    return rows, np.where(problem["features"][rows, 0] + rng.normal(0, 0.3, n) > 0, 1, -1)


def logit(p):
    return np.log(p) - np.log1p(-p)


def dense(problem, label, rows, verdicts, regularization=0.3, a0=0.6, mu=10.0):
    """Logits by the equation: votes in a loop, and a general optimiser."""
    p0 = problem["candidates"].toarray()[:, label]
    E = problem["embeddings"]
    shift = np.zeros(N)
    for i in range(N):
        if p0[i] == 0:
            continue
        weight = votes = 0.0
        for j, verdict in zip(rows, verdicts, strict=True):
            if i != j:
                e = np.exp(TAU * (E[i] @ E[j] - 1)) / problem["support"][i]
                weight, votes = weight + e, votes + e * (verdict > 0)
        shift[i] = logit((p0[i] + votes) / (1 + weight)) - logit(p0[i])
    A = np.column_stack([problem["features"], np.ones(N), shift])
    z0, y = logit(np.where(p0 > 0, p0, 0.5)), verdicts > 0
    penalties = np.array([regularization] * 5 + [0.05, mu])
    prior = np.array([0.0] * 6 + [a0])

    def loss(theta):
        z = z0[rows] + A[rows] @ theta
        return np.sum(np.logaddexp(0, z) - y * z) + penalties @ (theta - prior) ** 2 / 2

    found = scipy.optimize.minimize(loss, prior, method="BFGS", options={"gtol": 1e-7})
    return z0 + A @ found.x


def test_scores_are_those_of_the_equation(problem):
    live = LiveScores(**problem, temperature=TAU)
    rows, verdicts = decisions(problem, 2, 30)
    live.learn(2, rows, verdicts)
    found, p = live.open(2)
    expected = dense(problem, 2, rows, verdicts)[found]
    assert len(found) == problem["candidates"][:, [2]].nnz - 30
    np.testing.assert_allclose(logit(p), expected, atol=2e-3)
    assert np.all(np.diff(p) <= 0)


@pytest.mark.parametrize("n", [3, 40])
def test_batches_give_what_all_at_once_gives(problem, n):
    rows, verdicts = decisions(problem, 1, n)
    at_once, in_parts = (LiveScores(**problem, temperature=TAU) for _ in range(2))
    at_once.learn(1, rows, verdicts)
    for part in np.array_split(np.random.default_rng(2).permutation(n), 3):
        in_parts.learn(1, rows[part], verdicts[part])
    one, other = at_once.open(1), in_parts.open(1)
    order, theirs = np.argsort(one[0]), np.argsort(other[0])
    np.testing.assert_array_equal(one[0][order], other[0][theirs])
    np.testing.assert_allclose(logit(one[1][order]), logit(other[1][theirs]), atol=2e-3)


def test_other_labels_stay_as_they_are(problem):
    live = LiveScores(**problem)
    before = [live.open(t) for t in range(D)]
    live.learn(0, *decisions(problem, 0, 20))
    for t in range(1, D):
        np.testing.assert_array_equal(live.open(t)[1], before[t][1])


def test_what_was_taken_back_counts_for_nothing(problem):
    live, other = LiveScores(**problem), LiveScores(**problem)
    rows, verdicts = decisions(problem, 3, 25)
    live.learn(3, rows, verdicts)
    live.learn(3, rows[:10], np.zeros(10))
    other.learn(3, rows[10:], verdicts[10:])
    np.testing.assert_allclose(live.open(3)[1], other.open(3)[1], atol=1e-3)
    live.learn(3, rows, np.zeros(25))
    assert live.n_decided(3) == 0
    np.testing.assert_allclose(
        np.sort(live.open(3)[1]),
        np.sort(problem["candidates"][:, [3]].data),
        rtol=1e-5,
    )


def test_a_label_that_is_mostly_rejected_falls(problem):
    live = LiveScores(**problem)
    rows, p = live.open(0)
    before = dict(zip(rows.tolist(), p.tolist(), strict=True))
    live.learn(0, rows[:20], np.full(20, -1))
    rows, p = live.open(0)
    assert all(now < before[row] for row, now in zip(rows.tolist(), p.tolist(), strict=True))


def test_a_change_of_mind(problem):
    live, other = LiveScores(**problem), LiveScores(**problem)
    rows, verdicts = decisions(problem, 3, 25)
    live.learn(3, rows, -verdicts)
    live.learn(3, rows, verdicts)
    other.learn(3, rows, verdicts)
    np.testing.assert_allclose(live.open(3)[1], other.open(3)[1], atol=1e-3)


def test_images_for_which_nobody_suggested_it(problem):
    live = LiveScores(**problem)
    outside = np.setdiff1d(np.arange(N), problem["candidates"][:, [1]].nonzero()[0])[:6]
    rows, verdicts = decisions(problem, 1, 10)
    live.learn(1, rows, verdicts)
    live.learn(1, outside, np.ones(6))
    assert live.n_decided(1) == 16
    assert not np.isin(outside, live.open(1)[0]).any()
    assert np.isfinite(live.open(1)[1]).all()


def test_labels_of_one_image(problem):
    live = LiveScores(**problem)
    table = problem["candidates"].toarray()
    found = live.of_image(7)
    assert [t for t, _ in found] == np.argsort(-table[7], kind="stable")[: len(found)].tolist()
    np.testing.assert_allclose([p for _, p in found], np.sort(table[7])[::-1][: len(found)], 1e-5)
    live.learn(found[0][0], np.array([7]), np.array([1]))
    assert [t for t, _ in live.of_image(7)] == [t for t, _ in found[1:]]


def test_parts_of_different_length_are_refused(problem):
    with pytest.raises(InvalidInput, match="support has 3 rows, but candidates has 90"):
        LiveScores(**(problem | {"support": np.ones(3)}))


def test_what_was_accepted_is_judged_without_its_own_decision(problem):
    """To first order: .15 logits from fits that leave one decision out."""
    live = LiveScores(**problem, temperature=TAU)
    rows, verdicts = decisions(problem, 2, 40)
    assert len(live.accepted(2)[0]) == 0
    live.learn(2, rows, verdicts)
    found, p = live.accepted(2)
    assert sorted(found) == sorted(rows[verdicts > 0])
    expected = [dense(problem, 2, rows[rows != row], verdicts[rows != row])[row] for row in found]
    np.testing.assert_allclose(logit(p), expected, atol=0.15)
    surer = dense(problem, 2, rows, verdicts)[found]  # by its own yes
    assert np.all(logit(p) <= surer + 2e-3)
    assert np.all(np.diff(p) >= 0)
