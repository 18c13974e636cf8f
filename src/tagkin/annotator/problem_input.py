"""Make a problem to learn from of what a caller passes to `fit`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from tagkin.annotator.decisions import Decisions
from tagkin.annotator.grouping import find_groups, groups_to_hold_out
from tagkin.annotator.label_input import Labels, read_labels, rejection_matrix, subtract_labels
from tagkin.annotator.naming import Naming
from tagkin.annotator.problem import Problem, check_enough, n_folds
from tagkin.arrays import Array, check_features, to_numpy
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary
from tagkin.tag_meanings import NamePrior

__all__ = ["read_decisions", "read_problem", "read_tags"]


def read_tags(rows: list[list[str]], vocabulary: Vocabulary) -> Labels:
    """Read tags of photographs, which fit the vocabulary; reject tags that cannot be learned."""
    labels = read_labels(rows, len(rows), vocabulary)
    check_enough(labels.Y, "tagged photographs", "tag")
    return labels


def read_problem(
    features: Any,
    labels: Labels,
    groups: Array | None,
    rejected: Any,
    *,
    prior: NamePrior | None,
    seed: int | None,
) -> Problem:
    """Read groups and rejected labels as `FeatureAnnotator.fit` takes them."""
    n = features.shape[0]
    all_groups = find_groups(features, groups, n_folds(n))
    matrix = None
    if rejected is not None:
        matrix = subtract_labels(rejection_matrix(rejected, n, labels), labels.Y)
    has_names = labels.vocabulary is not None or labels.names is not None
    return Problem(
        features,
        labels.Y,
        groups_to_hold_out(all_groups),
        matrix if matrix is not None and matrix.nnz else None,
        Naming.of(prior, labels.classes() if has_names else None),
        seed=seed,
        labels=labels,
    )


def read_decisions(
    problem: Problem, accepted: Any, unlabelled: tuple[Array, Any] | None, was_labelled: Any
) -> Problem:
    """Add decisions as `FeatureAnnotator.fit` takes them; accepted labels count if present."""
    if accepted is None:
        return problem
    (n, n_features), labels = problem.X.shape, problem.labels or Labels(problem.Y)
    matrix = rejection_matrix(accepted, n, labels).multiply(labels.Y)
    decisions = Decisions(scipy.sparse.csr_array(matrix), problem.rejected)
    if was_labelled is not None:
        before = np.asarray(to_numpy(was_labelled), dtype=bool)
        if before.shape != (n,):
            raise InvalidInput(
                f"was_labelled has the shape {before.shape}; expected one value for each of the "
                f"{n} images."
            )
        decisions = replace(decisions, was_labelled=before)
    if unlabelled is None:
        return replace(problem, decisions=decisions)
    features = check_features(unlabelled[0], name="rejected_unlabelled")
    if features.shape[1] != n_features:
        raise InvalidInput(
            f"The images of rejected_unlabelled have {features.shape[1]} features, and X has "
            f"{n_features}."
        )
    rejected = rejection_matrix(unlabelled[1], features.shape[0], labels)
    decisions = replace(decisions, unlabelled=features, rejected_unlabelled=rejected)
    return replace(problem, decisions=decisions)
