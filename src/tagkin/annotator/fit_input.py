"""What a caller passes to fit a `FeatureAnnotator`, as a problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from tagkin.annotator.label_input import InputLabels, read_labels, rejection_matrix
from tagkin.annotator.naming import Naming
from tagkin.annotator.problem import Labels, Problem, find_groups
from tagkin.arrays import Array, check_finite_features
from tagkin.arrays.labels import check_complete
from tagkin.errors import InvalidInput
from tagkin.labels import Vocabulary
from tagkin.tag_meanings import NamePrior
from tagkin.transfer.occasions import Occasions

__all__ = ["Given", "read_problem"]


class Given(NamedTuple):
    """What is known of N images beside features and labels; see `FeatureAnnotator.fit`."""

    groups: Array | None = None
    rejected: InputLabels | None = None
    accepted: InputLabels | None = None
    complete: Array | None = None
    times: Array | None = None
    places: Array | None = None
    folders: Sequence[str] | None = None


class _Estimator(Protocol):
    vocabulary: Vocabulary | None
    prior: NamePrior | None
    random_state: int | None

    def check_parameters(self) -> None: ...


def read_problem(estimator: _Estimator, X: Array, y: InputLabels | None, given: Given) -> Problem:
    """Read all that a fit takes, with the parameters of an estimator."""
    estimator.check_parameters()
    features = check_finite_features(X, min_rows=2)
    n, vocabulary = features.shape[0], estimator.vocabulary
    labels = read_labels(y, n, Vocabulary() if vocabulary is None else vocabulary.unfitted())
    no, yes = (
        None if decided is None else rejection_matrix(decided, n, labels)
        for decided in (given.rejected, given.accepted)
    )
    if no is not None and labels.Y.nnz and (no != labels.Y).nnz == 0:
        raise InvalidInput(
            "rejected has exactly the labels of the images. Pass the labels that a person "
            "rejected, or leave it out."
        )
    has_names = labels.vocabulary is not None or labels.names is not None
    occasions = Occasions.read(given.times, given.places, given.folders, n)
    return Problem(
        features,
        Labels.of(labels.Y, no, yes, check_complete(given.complete, n)),
        find_groups(features, given.groups),
        Naming.of(estimator.prior, labels.classes() if has_names else None),
        estimator.random_state,
        labels,
        None if occasions is None else occasions.only_telling(),
    )
