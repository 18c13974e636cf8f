"""An audit of labels by probabilities that come from elsewhere."""

import numpy as np
import pandas
import pytest
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsRestClassifier

from tagkin import audit_labels
from tagkin.errors import InvalidInput

WRONG, MISSING = 0.02, 0.1  # rates among absent and among belonging labels


@pytest.fixture(scope="module")
def collection():
    """Probabilities q that 8 labels belong, what belongs, and labels with errors."""
    rng = np.random.default_rng(0)
    Q = 1 / (1 + np.exp(-rng.normal(-3, 4, (4000, 8))))
    belongs = rng.random(Q.shape) < Q
    forgotten, invented = rng.random(Q.shape) < MISSING, rng.random(Q.shape) < WRONG
    return Q, belongs, np.where(belongs, ~forgotten, invented)


def posterior(Q, Y):
    """The probability of an error by Bayes, with the true rates."""
    present = (1 - Q) * WRONG + Q * (1 - MISSING)
    return np.where(Y, (1 - Q) * WRONG / present, Q * MISSING / (1 - present))


def test_confidences_are_those_of_bayes_with_the_true_rates(collection):
    Q, _, Y = collection
    findings = audit_labels(Y, Q, n=Q.size)
    assert {(f.image, f.label) for f in findings} == set(np.ndindex(Q.shape))
    rows, columns = [f.image for f in findings], [f.label for f in findings]
    expected = posterior(Q, Y)[rows, columns]
    confidences = np.array([f.confidence for f in findings])
    assert np.abs(confidences - expected).mean() < 0.01
    assert np.corrcoef(confidences, expected)[0, 1] > 0.97


def test_findings_are_right_as_often_as_they_say(collection):
    Q, belongs, Y = collection
    findings = audit_labels(Y, Q)
    right = [belongs[f.image, f.label] != Y[f.image, f.label] for f in findings]
    confidences = [f.confidence for f in findings]
    assert len(findings) > 200
    assert confidences == sorted(confidences, reverse=True)
    assert min(confidences) >= 0.5
    assert np.mean(right) == pytest.approx(np.mean(confidences), abs=0.05)
    assert all(f.kind == ("wrong" if Y[f.image, f.label] else "missing") for f in findings)
    assert all(f.support == () and f.name == f.label for f in findings)
    wrong = audit_labels(Y, Q, kind="wrong")
    assert wrong == [f for f in findings if f.kind == "wrong"]
    assert audit_labels(Y, Q, n=7, kind="wrong") == wrong[:7]


def test_probabilities_need_not_be_calibrated(collection):
    Q, _, Y = collection
    odds = (Q / (1 - Q)) ** 0.4
    findings = audit_labels(Y, odds / (1 + odds), n=Q.size)
    rows, columns = [f.image for f in findings], [f.label for f in findings]
    confidences = np.array([f.confidence for f in findings])
    assert np.abs(confidences - posterior(Q, Y)[rows, columns]).mean() < 0.01


def test_every_form_of_labels_gives_the_same_and_a_frame_has_names(collection):
    Q, _, Y = collection
    expected = audit_labels(Y, Q, n=50)
    assert audit_labels(scipy.sparse.csr_array(Y * 1.0), Q, n=50) == expected
    named = audit_labels(pandas.DataFrame(Y * 1, columns=list("abcdefgh")), Q, n=50)
    assert [f.name for f in named] == ["abcdefgh"[f.label] for f in expected]
    assert audit_labels(Y, Q, groups=np.arange(len(Y)), n=50) == expected


def test_probabilities_of_scikit_learn_find_the_errors():
    rng = np.random.default_rng(1)
    belongs = rng.random((600, 4)) < 0.3
    X = belongs @ rng.normal(size=(4, 12)) * 2 + rng.normal(size=(600, 12))
    Y = belongs ^ (rng.random(belongs.shape) < np.where(belongs, 0.15, 0.03))
    model = OneVsRestClassifier(LogisticRegression())
    P = cross_val_predict(model, X, Y.astype(int), cv=5, method="predict_proba")
    for kind, errors in (("wrong", Y & ~belongs), ("missing", belongs & ~Y)):
        findings = audit_labels(Y, P, n=Y.size, kind=kind)
        is_error = [errors[f.image, f.label] for f in findings]
        assert sum(is_error) == errors.sum()
        assert roc_auc_score(is_error, [f.confidence for f in findings]) > 0.9


def test_labels_on_all_or_no_images_and_probabilities_of_0_and_1(collection):
    Q, _, Y = (part[:300].copy() for part in collection)
    Y[:, 0], Y[:, 1] = True, False
    Q[:5], Q[5:10] = 0.0, 1.0
    findings = audit_labels(Y, Q, n=Y.size)
    assert all(0 <= f.confidence <= 1 for f in findings)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"P": np.full((20, 2), 1.5)}, "P must hold probabilities from 0 to 1"),
        ({"P": np.full((20, 2), np.nan)}, "P holds nan at row 0"),
        ({"P": np.full((20, 3), 0.5)}, "Y and P must have one row per image"),
        ({"kind": "odd"}, "kind must be"),
        ({"n": -1}, "n must be"),
        ({"groups": [1, 2]}, "groups"),
    ],
)
def test_what_cannot_be_audited_is_refused(change, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        audit_labels(**{"Y": np.eye(20, 2), "P": np.full((20, 2), 0.5)} | change)
