"""Turn the arguments of `fit` into a problem to learn from."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tagkin.annotator.label_input import Labels as InputLabels
from tagkin.annotator.label_input import NamedLabels, read_labels, rejection_matrix
from tagkin.annotator.model import count_grouped
from tagkin.annotator.naming import Naming
from tagkin.annotator.problem import Labels, Problem, check_enough
from tagkin.arrays import Array, check_features, check_groups
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary
from tagkin.tag_meanings import NamePrior

__all__ = [
    "Learner",
    "find_groups",
    "groups_to_hold_out",
    "read_problem",
    "read_tags",
]


class Learner(Protocol):
    """Parameters of a `FeatureAnnotator` that say how to read its input."""

    vocabulary: Vocabulary | None
    prior: NamePrior | None
    random_state: int | None

    def check_parameters(self) -> None:
        """Reject parameters that no fit can use."""


def read_tags(rows: list[list[str]], vocabulary: Vocabulary) -> NamedLabels:
    """Read tags of photographs, which fit the vocabulary; reject tags that cannot be learned."""
    labels = read_labels(rows, len(rows), vocabulary)
    check_enough(labels.Y, "tagged photographs", "tag")
    return labels


def read_problem(
    estimator: Learner,
    X: Array,
    y: InputLabels | None,
    groups: Array | None,
    rejected: InputLabels | None = None,
    accepted: InputLabels | None = None,
) -> Problem:
    """Read features, labels, groups and decisions as `FeatureAnnotator.fit` takes them."""
    estimator.check_parameters()
    features = check_features(X, min_rows=2)
    n, vocabulary = features.shape[0], estimator.vocabulary
    labels = read_labels(y, n, Vocabulary() if vocabulary is None else vocabulary.unfitted())
    all_groups = find_groups(features, groups)
    no, yes = (
        None if decided is None else rejection_matrix(decided, n, labels)
        for decided in (rejected, accepted)
    )
    if no is not None and labels.Y.nnz and (no != labels.Y).nnz == 0:
        raise InvalidInput(
            "rejected has exactly the labels of the images. Pass the labels that a person "
            "rejected, or leave it out."
        )
    has_names = labels.vocabulary is not None or labels.names is not None
    return Problem(
        features,
        Labels.of(labels.Y, no, yes),
        groups_to_hold_out(all_groups),
        Naming.of(estimator.prior, labels.classes() if has_names else None),
        estimator.random_state,
        labels,
    )


def find_groups(features: Array, groups: Array | None) -> np.ndarray:
    """Return the groups (N,) that were passed, or near-duplicates among the features (N×d)."""
    if groups is not None:
        return check_groups(groups, features.shape[0])
    from tagkin.model_selection import find_groups as find_near_duplicates  # only learning needs it

    return find_near_duplicates(features)


def groups_to_hold_out(groups: np.ndarray) -> np.ndarray | None:
    """Return the groups, or None if no two images are in the same group."""
    return groups if count_grouped(groups)[1] else None
