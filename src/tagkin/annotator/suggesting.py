"""From features to suggestions, with the photographs that support them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tagkin.annotator.picking import Rule, heard, kin_of, without_itself
from tagkin.annotator.suggestions import PhotoSuggestions, TagSuggestion
from tagkin.arrays import to_numpy

if TYPE_CHECKING:
    from tagkin.annotator.annotator import Annotator

__all__ = ["suggestions_of"]


def suggestions_of(
    annotator: Annotator,
    files: Sequence[str],
    features: np.ndarray,
    known: np.ndarray,
    own: Sequence[Sequence[str]],
    rule: Rule,
    n_kin: int,
) -> list[PhotoSuggestions]:
    """Suggestions for some photographs, few enough to be in memory with all tags.

    Parameters
    ----------
    annotator : Annotator
        Fitted.
    files : sequence of n str
    features : array of shape (n, d)
    known : int array of shape (n,)
        Which photograph learned from each is, or −1; it does not support a tag of its own.
    own : sequence of n sequences of str
        Tags that they carry, which are not suggested.
    rule : Rule
        What a tag must reach.
    n_kin : int
        Kin to name for each suggestion, at most.
    """
    method, vocabulary = annotator.method_, annotator.vocabulary_
    found = without_itself(method.kneighbors(annotator.space_.transform(features)), known)
    scores = to_numpy(method.score_neighbors(*found))
    P = to_numpy(annotator.calibrator_.predict_proba(scores))
    free = heard(found, method.labels_)
    free[vocabulary.transform(own).nonzero()] = False
    evidence = method.explain_neighbors(*found, rule.picked(scores, P, free))
    names, result = vocabulary.names, []
    for i, file in enumerate(files):
        suggested = tuple(
            TagSuggestion(names[e.label], float(P[i, e.label]), kin_of(e, annotator.paths_, n_kin))
            for e in evidence[i]
            if len(e.indices)
        )
        result.append(PhotoSuggestions(file, suggested, tuple(own[i])))
    return result
