"""Further photographs and tags for what was learned already, without a new fit."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse

from tagkin.calibration import LabelCalibrator
from tagkin.errors import InvalidInput
from tagkin.features import Extraction
from tagkin.labels import Vocabulary

if TYPE_CHECKING:
    from tagkin.annotator.annotator import Annotator

__all__ = ["Extended", "extended"]


class Extended(NamedTuple):
    """What takes the place of an annotator's own; N photographs and D tags, old and new."""

    tags: list[list[str]]
    vocabulary: Vocabulary
    method: Any
    calibrator: LabelCalibrator
    held_out: scipy.sparse.csr_array
    """Of shape (N, D); nothing for new photographs and new tags."""


def extended(
    annotator: Annotator, seen: Extraction, rows: list[list[str]], known: np.ndarray
) -> Extended:
    """An annotator's parts with further photographs; the annotator itself stays as it is.

    Parameters
    ----------
    annotator : Annotator
        Fitted.
    seen : Extraction of n photographs
    rows : list of n lists of str
        Their tags.
    known : int array of shape (n,)
        Which photograph learned from each of them is, −1 where it is new.
    """
    fresh = np.flatnonzero(known < 0)
    tags = [*annotator.tags_, *(rows[i] for i in fresh)]
    for i in np.flatnonzero(known >= 0):
        tags[known[i]] = rows[i]
    # of tags that a photograph carried before it was counted already
    old = [annotator.tags_[k] if k >= 0 else () for k in known]
    news = [[t for t in row if t not in had] for row, had in zip(rows, old, strict=True)]
    vocabulary = deepcopy(annotator.vocabulary_).extend(news)
    Y = vocabulary.transform(tags)
    method, n_known = deepcopy(annotator.method_), len(annotator.tags_)
    if len(fresh):
        method.partial_fit(annotator.space_.transform(seen.features[fresh]), Y[n_known:])
    elif Y.shape[1] > method.n_labels_:
        raise InvalidInput(
            "New tags on photographs that are known already need a new fit: run fit again."
        )
    held_out = annotator.held_out_.copy()
    held_out.resize(Y.shape)
    calibrator = deepcopy(annotator.calibrator_).extend(Y.shape[1])
    return Extended(tags, vocabulary, method.relabel(Y), calibrator, held_out)
