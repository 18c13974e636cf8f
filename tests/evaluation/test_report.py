import csv
import html
import io
import re
import sys
from collections import Counter
from functools import partial

import numpy as np
import pytest
import scipy.sparse

from tagkin.arrays import memory_budget
from tagkin.calibration import expected_calibration_error, reliability_curve
from tagkin.errors import InvalidInput, MissingExtra
from tagkin.evaluation import (
    average_precision,
    draw_reliability,
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
    frame = report.to_frame().loc[[0, 1, 2]]
    assert frame["confused_with"].tolist() == ["dog (2)", "", "dog (1)"]


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


def test_all_tables_have_the_same_order(scored):
    report = label_report(*scored, names=list("abcdefghi"))
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    expected = report.names[report.order].tolist()
    assert [row["name"] for row in rows] == expected == report.to_frame()["name"].tolist()
    drawn = [label.get_text() for label in report.draw().axes[0].get_yticklabels()]
    assert drawn == expected[:-1]
    assert expected[-1] == "e", "what no image carries is last"
    assert report.to_frame().index.tolist() == report.order.tolist()


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


def test_the_csv_holds_the_frame(scored):
    Y, S = scored
    names = ["a,b", 'say "c"', "é", *"defghi"]
    report = label_report(Y, S, names=names, min_scores=[*[0.5] * 8, np.inf])
    rows = list(csv.DictReader(io.StringIO(report.to_csv())))
    frame = report.to_frame()
    assert sorted(row["name"] for row in rows) == sorted(names)
    assert list(rows[0]) == list(frame.columns)
    for column in frame.columns.drop(["name", "confused_with"]):
        numbers = [float(row[column] or "nan") for row in rows]
        np.testing.assert_allclose(numbers, frame[column], rtol=1e-5)
    assert rows[-1]["name"] == names[4]
    assert rows[-1]["average_precision"] == "", "no image carries it"
    assert [row["confused_with"] for row in rows] == frame["confused_with"].tolist()


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


# --- figures -----------------------------------------------------------------------------


def texts(figure):
    """The texts that a figure shows, as its SVG file has them."""
    import matplotlib as mpl

    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        figure.savefig(out, format="svg")
    return {
        html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", out.getvalue())
    }


def bars(axes):
    return [patch.get_width() for patch in axes.patches]


def test_the_figure_shows_every_label_that_is_there(scored):
    report = label_report(*scored, names=["$x$", *"abcdefgh"])
    figure = report.draw()
    left, right = figure.axes
    there = ~np.isnan(report.average_precision)
    assert bars(left) == report.average_precision[report.order[:8]].tolist()
    assert bars(right) == report.support[report.order[:8]].tolist()
    assert {label.get_text() for label in left.get_yticklabels()} == set(report.names[there])
    assert "1 more on no image" in figure.get_suptitle()
    shown = texts(figure)
    assert {"$x$", *report.names[there]} <= shown, "a name that looks like a formula is none"


def test_the_figure_of_many_labels_shows_first_and_last():
    rng = np.random.default_rng(0)
    Y = rng.random((60, 50)) < 0.3
    report = label_report(Y, rng.standard_normal((60, 50)) + Y)
    figure = report.draw(n_labels=11)
    ranked = report.average_precision[report.order].tolist()
    assert bars(figure.axes[0]) == ranked[:6] + ranked[-5:]
    assert any("39 labels in between" in text.get_text() for text in figure.axes[0].texts)
    assert len(bars(report.draw(n_labels=1).axes[0])) == 2


def test_the_reliability_figure():
    rng = np.random.default_rng(0)
    P = rng.random((200, 5)) * 0.6
    Y = rng.random(P.shape) < P
    figure = draw_reliability(Y, P, n_bins=10)
    above, below = figure.axes
    assert len(above.lines[1].get_xdata()) == 6, "empty bins are left out"
    assert sum(patch.get_height() for patch in below.patches) == 1000
    curve = reliability_curve(Y, P, 10)
    full = curve.n_pairs > 0
    np.testing.assert_allclose(above.lines[1].get_xdata(), curve.predicted[full])
    np.testing.assert_allclose(above.lines[1].get_ydata(), curve.observed[full])
    error = f"{expected_calibration_error(Y, P, 10):.2g}"
    assert any(error in text for text in texts(figure))


def test_nothing_to_draw_is_said(scored):
    Y, S = scored
    with pytest.raises(InvalidInput, match="nothing to draw"):
        label_report(np.zeros_like(Y), S).draw()


def test_missing_packages_are_named(scored, monkeypatch):
    report = label_report(*scored)
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtra, match=r"pip install pandas"):
        report.to_frame()
    for draw in (report.draw, partial(draw_reliability, np.ones((2, 2)), np.ones((2, 2)))):
        with pytest.raises(MissingExtra, match=r"pip install matplotlib"):
            draw()
    assert report.to_csv().startswith("name,support,")
