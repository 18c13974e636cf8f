"""Against counting by hand, over every order of equal scores."""

from itertools import pairwise, permutations

import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import average_precision_score, precision_score, recall_score

from tagkin.arrays import memory_budget
from tagkin.errors import InvalidInput
from tagkin.evaluation import (
    average_precision,
    evaluate,
    mean_average_precision,
    top_labels,
)


def precision_in_order(y, order):
    """Average precision of one ranking, as it is defined."""
    hits, total = 0, 0.0
    for rank, image in enumerate(order, start=1):
        if y[image]:
            hits += 1
            total += hits / rank
    return total / hits if hits else np.nan


def expected_by_enumeration(y, s):
    """The mean over all orders of the images that respect the scores."""
    orders = [
        order
        for order in permutations(range(len(s)))
        if all(s[a] >= s[b] for a, b in pairwise(order))
    ]
    return np.mean([precision_in_order(y, order) for order in orders])


def expected_by_places(y, s):
    """The same for long lists: the sum over places of each group, written out with loops."""
    total = above = positives_above = 0
    for value in sorted(set(s.tolist()), reverse=True):
        group = y[s == value]
        m, p = len(group), int(group.sum())
        for i in range(1, m + 1):
            others = (i - 1) * (p - 1) / (m - 1) if m > 1 else 0
            total += p / m * (positives_above + 1 + others) / (above + i) if p else 0
        above, positives_above = above + m, positives_above + p
    return total / positives_above if positives_above else np.nan


def votes(n, n_labels, *, levels=4, density=0.3, seed=0):
    """Labels, and scores of which very many are equal."""
    rng = np.random.default_rng(seed)
    Y = rng.random((n, n_labels)) < density
    return Y, (rng.integers(0, levels, (n, n_labels)) + Y).astype(np.float32)


@pytest.mark.parametrize("seed", range(8))
def test_average_precision_is_the_mean_over_all_orders(seed):
    Y, S = votes(7, 5, levels=1 + seed % 4, seed=seed)
    precisions = average_precision(Y, S)
    for t in range(5):
        np.testing.assert_allclose(
            precisions[t], expected_by_enumeration(Y[:, t], S[:, t]), rtol=1e-13
        )


@pytest.mark.parametrize("levels", [1, 2, 10, 300])
def test_average_precision_with_long_ties(levels):
    Y, S = votes(600, 6, levels=levels, density=0.1)
    expected = [expected_by_places(Y[:, t], S[:, t]) for t in range(6)]
    np.testing.assert_allclose(average_precision(Y, S), expected, rtol=1e-12)


def test_average_precision_far_down_a_long_list():
    """A group of equal scores below very many others: differences of large numbers."""
    n = 1_000_000
    S = np.arange(n, 0, -1.0)[:, None]
    S[-3:] = 0
    Y = np.zeros((n, 1), dtype=bool)
    Y[-2:] = True
    i, above = np.arange(1, 4), n - 3
    expected = np.sum(2 / 3 * (1 + (i - 1) / 2) / (above + i)) / 2
    assert average_precision(Y, S)[0] == pytest.approx(expected, rel=1e-3)
    assert average_precision(Y, S)[0] == pytest.approx(expected, abs=1e-9)


def test_average_precision_without_ties_is_scikit_learns():
    rng = np.random.default_rng(0)
    Y = rng.random((200, 9)) < rng.random(9)
    S = rng.standard_normal((200, 9)) + Y
    precisions = average_precision(Y, S)
    np.testing.assert_allclose(precisions, average_precision_score(Y, S, average=None), rtol=1e-12)


def test_perfect_and_worst_rankings():
    Y = np.array([[1, 0], [1, 0], [0, 1], [0, 0]])
    np.testing.assert_allclose(average_precision(Y, Y), [1, 1])
    worst = [[0, 3], [0, 2], [1, 0], [1, 1]]
    np.testing.assert_allclose(average_precision(Y, worst), [5 / 12, 1 / 4])


def test_labels_on_no_image_are_left_out_of_the_mean():
    Y, S = votes(30, 4)
    Y[:, 2] = False
    precision = average_precision(Y, S)
    assert np.isnan(precision).tolist() == [False, False, True, False]
    assert mean_average_precision(Y, S) == pytest.approx(precision[[0, 1, 3]].mean())


def test_image_precision_is_the_transposed_measure():
    Y, S = votes(30, 8, density=0.1)
    assert (Y.sum(axis=1) == 0).any(), "some images have no label and are left out"
    assert evaluate(Y, S)["MiAP"] == pytest.approx(np.nanmean(average_precision(Y.T, S.T)))


@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 100])
@pytest.mark.parametrize("levels", [1, 3, 1000])
def test_top_labels_are_those_of_a_full_sort(n, levels):
    _, S = votes(50, 9, levels=levels)
    expected = np.lexsort((np.broadcast_to(np.arange(9), S.shape), -S), axis=1)[:, :n]
    np.testing.assert_array_equal(top_labels(S, n), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float64, bool])
def test_scores_of_any_real_dtype(dtype):
    Y, S = votes(40, 9)
    S = (S > 2) if dtype is bool else S
    assert evaluate(Y, S.astype(dtype)) == evaluate(Y, S.astype(float))
    np.testing.assert_array_equal(top_labels(S.astype(dtype), 3), top_labels(S.astype(float), 3))


def test_infinite_scores_rank_like_others():
    Y, S = votes(30, 6, levels=3)
    infinite = S.copy()
    infinite[S.max() == S], infinite[S.min() == S] = np.inf, -np.inf
    assert evaluate(Y, infinite, n=2) == evaluate(Y, S, n=2)
    np.testing.assert_array_equal(top_labels(infinite, 4), top_labels(S, 4))


def test_precision_and_recall_by_hand():
    Y = np.array([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]])
    S = np.array([[3, 2, 1, 0], [3, 1, 2, 0], [3, 2, 2, 0]])  # gives 01, 02, 01
    metrics = evaluate(Y, S, n=2)
    # label 3 is never given, and labels 2 and 3 are on no image
    assert metrics["macro_precision"] == pytest.approx(np.mean([2 / 3, 1 / 2, 0, 0]))
    assert metrics["macro_recall"] == pytest.approx(np.mean([1, 1 / 2, 0, 0]))
    assert metrics["n_plus"] == 2
    assert isinstance(metrics["n_plus"], int)


@pytest.mark.parametrize("n", [1, 3])
def test_both_means_over_labels_are_scikit_learns(n):
    """Over all labels, as the paper has it, and over labels on some image, as MAP is."""
    Y, S = votes(60, 12, levels=1000, density=0.3)
    Y[:, [2, 7, 8]] = 0
    metrics = evaluate(Y, S, n)
    assigned = np.zeros_like(Y, dtype=int)
    np.put_along_axis(assigned, top_labels(S, n), 1, axis=1)
    present = np.flatnonzero(Y.any(axis=0))
    for name, labels in {"macro": None, "present": present}.items():
        options = {"labels": labels, "average": "macro", "zero_division": 0}
        for measure in (precision_score, recall_score):
            expected = measure(Y, assigned, **options)
            key = f"{name}_{measure.__name__.removesuffix('_score')}"
            assert metrics[key] == pytest.approx(expected), key
    assert metrics["present_recall"] == pytest.approx(metrics["macro_recall"] * 12 / 9)


@pytest.mark.parametrize("n", [1, 3, 20])
@pytest.mark.parametrize("levels", [2, 1000])
def test_precision_and_recall_of_images_are_counted(n, levels):
    """Image by image with sets, as a person would count."""
    Y, S = votes(60, 9, levels=levels, density=0.1)
    true_labels = [set(np.flatnonzero(row)) for row in Y]
    assert set() in true_labels, "some images have no label and are left out"
    top_labels = [set(sorted(range(9), key=lambda t: (-row[t], t))[:n]) for row in S]
    metrics = evaluate(Y, S, n)
    pairs = [
        (have, suggested) for have, suggested in zip(true_labels, top_labels, strict=True) if have
    ]
    right = [len(have & suggested) for have, suggested in pairs]
    precision = [k / len(suggested) for k, (_, suggested) in zip(right, pairs, strict=True)]
    recall = [k / len(have) for k, (have, _) in zip(right, pairs, strict=True)]
    assert metrics["image_precision"] == pytest.approx(np.mean(precision))
    assert metrics["image_recall"] == pytest.approx(np.mean(recall))
    assert metrics["hit_rate"] == pytest.approx(np.mean([k > 0 for k in right]))


def test_rare_labels_pull_macro_precision_down_and_not_that_of_images():
    """Each image has the common label and one of its own; the common ones are all that is said."""
    Y = np.hstack([np.ones((20, 1)), np.eye(20)])
    S = np.tile(np.r_[2.0, 1.0, np.zeros(19)], (20, 1))
    metrics = evaluate(Y, S, n=2)
    assert metrics["image_precision"] == pytest.approx((19 * 0.5 + 1) / 20)
    assert metrics["image_recall"] == pytest.approx((19 * 0.5 + 1) / 20)
    assert metrics["hit_rate"] == 1
    assert metrics["macro_precision"] == pytest.approx((1 + 1 / 20) / 21)


def test_more_labels_asked_for_than_there_are_means_all():
    Y, S = votes(20, 3)
    metrics = evaluate(Y, S, n=5)
    assert metrics["macro_precision"] == pytest.approx(Y.mean())
    assert metrics["macro_recall"] == 1


def test_evaluate_has_the_mean_of_average_precision():
    Y, S = votes(60, 12)
    metrics = evaluate(Y, S, n=3)
    assert metrics["MAP"] == mean_average_precision(Y, S)


def test_answers_do_not_depend_on_the_kind_of_array(as_array):
    Y, S = votes(60, 12)
    expected = evaluate(Y, S)
    assert evaluate(as_array(Y.astype(np.float32)), as_array(S)) == expected
    assert evaluate(Y.tolist(), S.tolist()) == expected
    np.testing.assert_array_equal(top_labels(as_array(S), 4), top_labels(S, 4))
    for kind in (scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array):
        assert evaluate(kind(Y * 2.5), as_array(S)) == expected


def test_sparse_labels_with_zeros_and_duplicates_are_read_and_left_alone():
    Y, S = votes(20, 4)
    rows, columns = np.nonzero(Y)
    csr = scipy.sparse.csr_array((20, 4))
    csr.data = np.tile([1.0, 2.0, 0.0], len(rows))  # the label, again, and a zero beside it
    csr.indices = np.stack([columns, columns, (columns + 1) % 4], axis=1).ravel()
    csr.indptr = 3 * np.r_[0, np.cumsum(np.bincount(rows, minlength=20))]
    for part in (csr.data, csr.indices, csr.indptr):
        part.flags.writeable = False
    assert evaluate(csr, S) == evaluate(Y, S)


def test_one_label_may_be_a_vector():
    Y, S = votes(20, 1)
    assert average_precision(Y[:, 0], S) == average_precision(Y, S)


def test_answers_do_not_depend_on_the_blocks():
    Y, S = votes(40, 11)
    for labels in (Y, scipy.sparse.csr_array(Y)):
        with memory_budget(1):
            one_by_one = evaluate(labels, S), top_labels(S, 3), average_precision(labels, S)
        assert one_by_one[0] == pytest.approx(evaluate(Y, S), rel=1e-14)
        np.testing.assert_array_equal(one_by_one[1], top_labels(S, 3))
        np.testing.assert_array_equal(one_by_one[2], average_precision(Y, S))


@pytest.mark.parametrize("measure", [evaluate, average_precision, mean_average_precision])
def test_nan_is_refused_where_it_is(measure):
    Y, S = votes(20, 5)
    S[13, 2] = np.nan
    for budget in (1, 2**20):
        with memory_budget(budget), pytest.raises(InvalidInput, match="nan at row 13, column 2"):
            measure(Y, S)


@pytest.mark.parametrize(
    ("Y", "S", "message"),
    [
        (np.ones((3, 2)), np.ones((3, 4)), r"\(3, 2\) and \(3, 4\)"),
        (np.ones((3, 2)), np.ones((4, 2)), r"\(3, 2\) and \(4, 2\)"),
        (np.ones(3), np.ones((3, 2)), r"\(3, 1\) and \(3, 2\)"),
        (np.ones((3, 2)), np.ones(3), r"S must have two dimensions.*\(3,\)"),
        (np.ones((0, 2)), np.ones((0, 2)), r"S is empty: shape \(0, 2\)"),
        (np.ones((2, 0)), np.ones((2, 0)), r"S is empty: shape \(2, 0\)"),
        (np.full((3, 2), np.nan), np.ones((3, 2)), "Input Y contains NaN"),
        (scipy.sparse.csr_array([[np.nan]]), np.ones((1, 1)), "Input Y contains NaN"),
        (np.ones((3, 2)), np.full((3, 2), "a"), "S must hold real numbers"),
        (np.ones((3, 2)), np.ones((3, 2)) * 1j, "S must hold real numbers"),
        (np.ones((3, 2)), scipy.sparse.csr_array(np.ones((3, 2))), "S is a sparse matrix"),
        (np.zeros((3, 2)), np.ones((3, 2)), "No image has any label"),
    ],
)
def test_unusable_input_is_refused(Y, S, message):
    with pytest.raises(InvalidInput, match=message):
        evaluate(Y, S)


def test_unusable_parameters_are_refused():
    _, S = votes(5, 3)
    for n in (0, -1, 2.5, True):
        with pytest.raises(InvalidInput, match="whole number from 1"):
            top_labels(S, n)


@pytest.mark.parametrize("n", [1, 2, 3, 20, 99, 100, 101, 299, 10**4, 10**6])
def test_one_label_among_equal_scores_has_a_harmonic_number_over_n(n):
    """Each rank is as likely as any other: Σ 1/i over n, by the digamma function."""
    from scipy.special import digamma

    precisions = average_precision(np.eye(n, 1), np.zeros((n, 1)))
    np.testing.assert_allclose(precisions, (digamma(n + 1) + np.euler_gamma) / n, rtol=1e-14)
