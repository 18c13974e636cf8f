import csv
import io
from collections import Counter

import numpy as np
import pytest
import scipy.sparse

from tagkin.arrays import memory_budget
from tagkin.errors import InvalidInput
from tagkin.evaluation import (
    average_precision,
    label_report,
    top_labels,
)


@pytest.fixture
def scored():
    """Labels of 80 images and scores that know something of them; one label is on none."""
    rng = np.random.default_rng(0)
    Y = rng.random((80, 9)) < rng.uniform(0.05, 0.4, 9)
    Y[:, 4] = False
    return Y, rng.standard_normal((80, 9)) + Y


def rows_of(report):
    return list(csv.DictReader(io.StringIO(report.to_csv())))


def confusions_by_hand(Y, A, t):
    """What is wrongly given to images on which t is missed, most frequent first."""
    counts = Counter()
    for carried, given in zip(Y, A, strict=True):
        if carried[t] and not given[t]:
            counts.update(np.flatnonzero(given & ~carried).tolist())
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:3]


def assert_confusions(report, Y, A):
    for t in range(Y.shape[1]):
        confusions = [
            (label, count)
            for label, count in zip(report.confused_with[t], report.confused_count[t], strict=True)
            if label >= 0
        ]
        assert confusions == confusions_by_hand(Y, A, t)


def test_the_report_of_the_best_labels(scored):
    Y, S = scored
    report = label_report(Y, S, n=3)
    np.testing.assert_array_equal(report.names, [str(t) for t in range(9)])
    np.testing.assert_array_equal(report.support, Y.sum(axis=0))
    np.testing.assert_array_equal(report.average_precision, average_precision(Y, S))
    assigned = np.zeros_like(Y)
    np.put_along_axis(assigned, top_labels(S, 3), True, axis=1)
    np.testing.assert_array_equal(report.n_assigned, assigned.sum(axis=0))
    hits = (assigned & Y).sum(axis=0)
    np.testing.assert_allclose(report.precision, hits / assigned.sum(axis=0))
    np.testing.assert_array_equal(np.isnan(report.recall), np.arange(9) == 4)
    np.testing.assert_allclose(np.nan_to_num(report.recall), hits / np.maximum(Y.sum(axis=0), 1))
    assert np.isnan(report.min_score).all()
    assert_confusions(report, Y, assigned)
    assert (report.confused_with[4] == -1).all(), "what no image carries is not missed"
    assert (report.confused_count[4] == 0).all()


@pytest.mark.parametrize("min_score", [0.8, -np.inf, np.inf, "each"])
def test_the_report_of_least_scores(scored, min_score):
    Y, S = scored
    S[3, 2] = np.inf
    min_scores = np.linspace(-1, 2, 9) if min_score == "each" else min_score
    report = label_report(Y, S, min_scores=min_scores)
    # what is never assigned is not, even at an infinite score
    given = (min_scores <= S) & np.broadcast_to(np.less(min_scores, np.inf), S.shape)
    np.testing.assert_array_equal(report.n_assigned, given.sum(axis=0))
    with np.errstate(invalid="ignore"):  # of nothing no share is known
        np.testing.assert_allclose(report.precision, (Y & given).sum(axis=0) / given.sum(axis=0))
        np.testing.assert_allclose(report.recall, (Y & given).sum(axis=0) / Y.sum(axis=0))
    np.testing.assert_array_equal(report.min_score, np.broadcast_to(min_scores, 9))
    assert_confusions(report, Y, given)


def test_a_confusion_that_is_plain_to_see():
    """Two wolves are taken for dogs, one wolf is seen; a dog beside a wolf is no mistake."""
    Y = np.array([[1, 0, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0]])
    S = np.array([[0, 1, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0]])
    report = label_report(Y, S, names=["wolf", "dog", "snow"], n=1)
    assert report.confused_with[0].tolist() == [1, -1, -1]
    assert report.confused_count[0].tolist() == [2, 0, 0]
    confused = {row["name"]: row["confused_with"] for row in rows_of(report)}
    assert confused == {"wolf": "dog (2)", "dog": "", "snow": "dog (1)"}


def test_rows_are_ordered_with_small_counts_damped():
    """A tag on two images that happens to lead its ranking is behind one that is well known."""
    Y = np.zeros((100, 5), dtype=int)
    S = np.tile(np.linspace(1, 0, 100)[:, None], (1, 5))
    Y[:40, 0] = 1  # known well: AP 1 on 40 images
    Y[:2, 1] = 1  # luck: AP 1 on 2
    Y[-2:, 2] = 1  # bad luck: AP near 0 on 2
    Y[-40:, 3] = 1  # known to be bad, on 40; label 4 is on none
    report = label_report(Y, S, names=list("abcde"))
    assert report.order.tolist() == [0, 1, 2, 3, 4]
    reversed_ = label_report(Y[:, ::-1], S, names=list("edcba"))
    assert reversed_.names[reversed_.order].tolist() == list("abcde")
    mean = report.average_precision[:4].mean()
    for t in range(4):
        n, own = Y[:, t].sum(), report.average_precision[t]
        assert report.damped_precision[t] == pytest.approx((n * own + 10 * mean) / (n + 10))
    assert np.isnan(report.damped_precision[4])


def test_equal_labels_are_ordered_by_images_and_then_by_name():
    Y = np.array([[1, 1, 1, 0], [1, 1, 1, 0], [1, 0, 0, 0]])
    S = np.array([[3], [2], [1]]) * np.ones(4)
    report = label_report(Y, S, names=["z", "y", "x", "none"])
    assert report.names[report.order].tolist() == ["z", "x", "y", "none"]


def test_without_any_label_on_any_image_there_is_an_order_still(scored):
    Y, S = scored
    report = label_report(np.zeros_like(Y), S)
    assert report.order.tolist() == list(range(9))
    assert np.isnan(report.damped_precision).all()


def test_the_report_does_not_depend_on_kind_or_blocks(scored, as_array):
    Y, S = scored
    for min_scores in (None, np.linspace(0, 1, 9)):
        expected = label_report(Y, S, min_scores=min_scores)
        for labels in (as_array(Y), scipy.sparse.csr_array(Y * 2)):
            with memory_budget(1):
                wanted = None if min_scores is None else as_array(min_scores)
                again = label_report(labels, as_array(S), min_scores=wanted)
            for name, value in vars(expected).items():
                np.testing.assert_array_equal(getattr(again, name), value)


def test_the_csv_holds_the_report_in_its_order(scored):
    Y, S = scored
    names = ["a,b", 'say "c"', "é", *"defghi"]
    report = label_report(Y, S, names=names, min_scores=[*[0.5] * 8, np.inf])
    rows = rows_of(report)
    assert [row["name"] for row in rows] == report.names[report.order].tolist()
    for column in set(rows[0]) - {"name", "confused_with"}:
        numbers = [float(row[column] or "nan") for row in rows]
        np.testing.assert_allclose(numbers, getattr(report, column)[report.order], rtol=1e-5)
    assert rows[-1]["name"] == names[4], "what no image carries is last"
    assert rows[-1]["average_precision"] == ""
    assert list(rows[0])[:4] == ["name", "support", "average_precision", "damped_precision"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"names": ["a", "b"]}, "each of the 9 labels; found 2 names"),
        ({"min_scores": [0.5, 0.5]}, r"each of the 9 labels.*found shape \(2,\)"),
        ({"min_scores": np.nan}, r"not NaN; found shape \(\) with NaN"),
        ({"n": 0}, "whole number from 1"),
    ],
)
def test_unusable_options_are_refused(scored, options, message):
    with pytest.raises(InvalidInput, match=message):
        label_report(*scored, **options)
