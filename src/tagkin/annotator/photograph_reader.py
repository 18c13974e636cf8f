"""Read features of photographs with one backbone, through one cache."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tagkin.annotator.label_input import NamedLabels
from tagkin.annotator.photograph_input import (
    Photographs,
    TagLists,
    check_tags,
    explain_failures,
    list_paths,
    merge_copies,
    take_photographs,
)
from tagkin.collection.reading import Collection
from tagkin.errors import InvalidInput, MissingExtra, StorageError
from tagkin.features import (
    Backbone,
    Extraction,
    FeatureCache,
    default_cache_folder,
    extract,
    get_backbone,
)
from tagkin.progress import Progress
from tagkin.tag_meanings import CaptionEncoder, NamePrior

if TYPE_CHECKING:
    from tagkin.annotator.feature_annotator import FeatureAnnotator
    from tagkin.annotator.model import Model
    from tagkin.annotator.quality import Quality

__all__ = ["PhotographReader", "TaggedPhotographs"]


class TaggedPhotographs(NamedTuple):
    """Features and tags of photographs; copies of a photograph count once."""

    extraction: Extraction
    tags: list[list[str]]
    rejected: list[list[str]] | None
    accepted: list[list[str]] | None
    complete: np.ndarray
    """Which photographs have all of their tags."""

    def take(self, rows: np.ndarray) -> TaggedPhotographs:
        """Return some of the photographs, by their numbers."""
        lists = ([part[i] for i in rows] if part is not None else None for part in self[1:4])
        tags, rejected, accepted = lists
        extraction = take_photographs(self.extraction, rows)
        return TaggedPhotographs(extraction, tags or [], rejected, accepted, self.complete[rows])

    def learn(self, estimator: FeatureAnnotator, step: Progress) -> Model:
        """Let an estimator learn from the photographs; a series is held out as a whole."""
        labels, series = self._read_labels(estimator), self._find_series(step)
        estimator.fit(
            self.extraction.features,
            labels,
            groups=series,
            rejected=self.rejected,
            accepted=self.accepted,
            complete=self.complete,
            progress=step,
        )
        return estimator.model_

    def cross_validate(self, estimator: FeatureAnnotator, step: Progress) -> Quality:
        """Measure an estimator on the complete photographs; a series is held out as a whole."""
        complete = self.take(np.flatnonzero(self.complete))
        labels, series = complete._read_labels(estimator), complete._find_series(step)
        X, no = complete.extraction.features, complete.rejected
        return estimator.cross_validate(X, labels, groups=series, rejected=no, progress=step)

    def _read_labels(self, estimator: FeatureAnnotator) -> NamedLabels:
        """Read the tags with the vocabulary of an estimator; reject what cannot be learned."""
        from tagkin.annotator.problem_input import read_tags  # only learning needs it

        assert estimator.vocabulary is not None
        return read_tags(self.tags, estimator.vocabulary.unfitted())

    def _find_series(self, step: Progress) -> np.ndarray:
        from tagkin.annotator.series import find_series

        return find_series(self.extraction.files, self.extraction.features, progress=step)


class PhotographReader:
    """Reads features of photographs.

    Parameters
    ----------
    name : str
        Name or path of a backbone. It is opened at first use, because that takes a while.
    cache : FeatureCache or bool, default True
        Where features are kept: True for the user's cache folder, False for nowhere.
    """

    def __init__(self, name: str, cache: FeatureCache | bool = True):
        self.name, self.cache = name, cache

    def __getstate__(self) -> dict[str, object]:
        """Return the state for copies, which open the backbone themselves."""
        return {"name": self.name, "cache": self.cache}

    @cached_property
    def backbone(self) -> Backbone:
        """The backbone."""
        return get_backbone(self.name)

    @property
    def prior(self) -> NamePrior | None:
        """Scores photographs by the names of tags; None if the backbone knows no names."""
        if self.backbone.text_encoder is not None:
            return NamePrior(self.backbone.text_encoder)
        if not self.backbone.has_captions:
            return None
        with self.open_cache() as cache:  # the encoder opens it again for names
            return NamePrior(CaptionEncoder(cache))

    def require_prior(self) -> NamePrior:
        """Return the prior, or raise an error if the backbone knows no names."""
        prior = self.prior
        if prior is None:
            raise InvalidInput(
                f"The backbone {self.name} knows no words: words were learned for "
                "efficientnet-lite0-whole, and its .json file names no text encoder."
            )
        return prior

    def find_prior(self, features: np.ndarray, wanted: bool) -> tuple[NamePrior | None, str]:
        """Return the prior for such features (n×d) if it is wanted, or None and the reason."""
        if not wanted:
            return None, "They were not asked for (names=False)."
        if features.shape[1] != self.backbone.dimension:
            return None, f"These are not the features of {self.name}."
        try:
            prior = self.require_prior()
            prior.meanings(())
        except (InvalidInput, MissingExtra) as error:
            return None, str(error)
        return prior, ""

    def check_fingerprint(self, fingerprint: str) -> None:
        """Raise an error if a model was learned with a backbone of another fingerprint."""
        own = self.backbone.fingerprint
        if own != fingerprint:
            raise InvalidInput(
                f"This model was learned with another version of {self.name!r} (fingerprint "
                f"{fingerprint[:12]}, here {own[:12]}). Use the same weights, or train again."
            )

    def open_cache(self) -> AbstractContextManager[FeatureCache | None]:
        """Open the cache. A `FeatureCache` that the caller passed stays open."""
        if not isinstance(self.cache, (FeatureCache, bool)):
            raise InvalidInput(
                f"cache must be a FeatureCache, True or False; found {self.cache!r}."
            )
        if self.cache is True:
            try:
                return FeatureCache(default_cache_folder())
            except StorageError as error:
                warnings.warn(f"{error} The run goes on without a cache.", stacklevel=2)
                return nullcontext(None)
        return nullcontext(self.cache or None)

    def read(
        self,
        photographs: Photographs,
        progress: Progress | None = None,
        extract: Callable[..., Extraction] = extract,
    ) -> Extraction:
        """Read features, from the cache if they are there; `extract` computes the others."""
        if isinstance(photographs, Extraction):
            return photographs
        with self.open_cache() as cache:
            return extract(list_paths(photographs), self.backbone, cache=cache, progress=progress)

    def read_cached(self, digests: Sequence[str]) -> list[np.ndarray | None]:
        """Return the cached features of contents, each of shape (dimension,), or None."""
        rows = np.zeros((len(digests), self.backbone.dimension), np.float32)
        with self.open_cache() as cache:
            if cache is None:
                return [None] * len(digests)
            is_cached = cache.load(self.backbone, digests, rows)
        return [row if there else None for row, there in zip(rows, is_cached, strict=True)]

    def read_any(self, photographs: Photographs, progress: Progress | None) -> Extraction:
        """Read features, and raise an error if no photograph can be read."""
        extraction = self.read(photographs, progress)
        if not extraction.files:
            raise InvalidInput(explain_failures(extraction.failures))
        return extraction

    def read_tagged(
        self,
        photographs: Photographs,
        tags: TagLists | None,
        progress: Progress,
        rejected: TagLists | None = None,
        accepted: TagLists | None = None,
        complete: Sequence[bool] | None = None,
    ) -> TaggedPhotographs:
        """Read the photographs that have tags or rejected tags, or are complete.

        By default, those with tags are complete. A photograph is complete if one copy of it is.
        """
        files, rows = _list_tags(photographs, tags)
        if not any(rows):
            raise InvalidInput(f"None of the {len(files)} photographs has a tag. Tag some first.")
        no, yes = (
            None if lists is None else check_tags(files, lists) for lists in (rejected, accepted)
        )
        is_complete = [bool(row) for row in rows] if complete is None else list(complete)
        numbers = [i for i, row in enumerate(rows) if row or is_complete[i] or (no and no[i])]
        tagged = [files[i] for i in numbers]
        if isinstance(photographs, Extraction):
            extraction = take_photographs(photographs, numbers)
        else:
            extraction = self.read_any(tagged, progress)

        def merge(lists: list[list[str]]) -> tuple[Extraction, list[list[str]]]:
            return merge_copies(extraction, tagged, [lists[i] for i in numbers])

        once, merged_tags = merge(rows)
        known = {file for file, has_all in zip(files, is_complete, strict=True) if has_all}
        pairs = zip(extraction.files, extraction.digests, strict=True)
        digests = {digest for file, digest in pairs if file in known}
        return TaggedPhotographs(
            once,
            merged_tags,
            None if no is None else merge(no)[1],
            None if yes is None else merge(yes)[1],
            np.array([digest in digests for digest in once.digests], dtype=bool),
        )


def _list_tags(
    photographs: Photographs, tags: TagLists | None
) -> tuple[list[str], list[list[str]]]:
    """Return the paths and tags of photographs; a collection has its own tags."""
    files = list_paths(photographs)
    if isinstance(photographs, Collection):
        tags = photographs.tags
    return files, check_tags(files, tags)
