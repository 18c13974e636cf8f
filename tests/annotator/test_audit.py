import numpy as np
import pytest
import scipy.sparse
from sklearn.metrics import roc_auc_score

from tagkin import Annotator
from tagkin.annotator.audit import error_probabilities
from tagkin.calibration import LabelErrors
from tagkin.errors import InvalidInput

from .conftest import NAMES, SPACE, SyntheticPhotographs, row_of, seen


def test_doubts_are_those_of_bayes():
    """Against the posterior written out entry by entry."""
    rng = np.random.default_rng(0)
    Y = rng.random((50, 4)) < [0.1, 0.3, 0.5, 0.8]
    Q = rng.uniform(0.05, 0.95, (50, 4))
    errors = LabelErrors(np.ones(4), np.zeros(4), *rng.uniform(0.01, 0.3, (2, 4)), 0.1, 0.1)
    rows, columns, doubt = error_probabilities(
        scipy.sparse.csr_array(Q), scipy.sparse.csr_array(Y * 1.0), errors
    )
    assert len(doubt) == 200
    for i, t, probability in zip(rows, columns, doubt, strict=True):
        q, a, e = Q[i, t], errors.wrong_rates[t], errors.missing_rates[t]
        seen_if_it_belongs, seen_if_not = (1 - e, a) if Y[i, t] else (e, 1 - a)
        belongs = q * seen_if_it_belongs / (q * seen_if_it_belongs + (1 - q) * seen_if_not)
        assert probability == pytest.approx(1 - belongs if Y[i, t] else belongs)


def test_a_tag_on_all_photographs_is_not_doubted_for_that():
    synthetic = SyntheticPhotographs(120)
    tags = [[*row, "always"] for row in synthetic.tags]
    findings = Annotator(space=SPACE).fit(seen(synthetic.X), tags).audit(kind="wrong")
    assert "always" not in {finding.tag for finding in findings}


def test_wrong_and_missing_tags_are_found():
    synthetic = SyntheticPhotographs(240, seed=1, forgotten=0.1, noise=0.3)
    rng = np.random.default_rng(2)
    tags = [list(row) for row in synthetic.tags]
    misled = rng.choice(240, 24, replace=False)
    for i in misled:
        tags[i].append(
            rng.choice([name for name in NAMES if name not in synthetic.named(i)] or ["-"])
        )
    annotator = Annotator().fit(seen(synthetic.X), tags)
    wrong = annotator.audit(100_000, kind="wrong", n_kin=1)
    is_wrong = [f.tag not in synthetic.named(row_of(f.file)) for f in wrong]
    assert roc_auc_score(is_wrong, [f.confidence for f in wrong]) > 0.9
    missing = annotator.audit(100_000, kind="missing", n_kin=1)
    is_missing = [f.tag in synthetic.named(row_of(f.file)) for f in missing]
    assert roc_auc_score(is_missing, [f.confidence for f in missing]) > 0.9


def test_findings_come_with_kin_the_surest_first(fitted, synthetic):
    findings = fitted.audit(30)
    assert [f.confidence for f in findings] == sorted(
        (f.confidence for f in findings), reverse=True
    )
    for finding in findings:
        own = set(synthetic.tags[row_of(finding.file)])
        assert (finding.tag in own) == (finding.kind == "wrong")
        assert finding.kin
        assert finding.file not in {kin.file for kin in finding.kin}
        if finding.kind == "missing":
            assert all(finding.tag in synthetic.tags[row_of(kin.file)] for kin in finding.kin)
    assert all(f.confidence >= 0.5 for f in fitted.audit())


def test_an_unknown_kind_is_refused(fitted):
    with pytest.raises(InvalidInput, match="kind"):
        fitted.audit(kind="odd")
