"""Read features of photographs with one backbone, through one cache."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property

import numpy as np

from tagkin.annotator.photograph_input import (
    KnownTags,
    Photographs,
    explain_failures,
    list_paths,
    take_photographs,
)
from tagkin.annotator.suggestions import split_root
from tagkin.collection.times import Moments, read_moments
from tagkin.errors import DamagedModel, InvalidInput, MissingExtra, StorageError
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

__all__ = ["PhotographReader"]


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
            raise DamagedModel(
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

    def read_known(
        self, photographs: Photographs, known: KnownTags, progress: Progress | None
    ) -> tuple[Extraction, KnownTags]:
        """Read features, and take what is known about the photographs that can be read."""
        files, extraction = list_paths(photographs), self.read_any(photographs, progress)
        left = iter(range(len(files)))
        rows = [next(i for i in left if files[i] == file) for file in extraction.files]
        return extraction, known.take(rows)

    def find_moments(self, extraction: Extraction, known: KnownTags, root: str) -> Moments:
        """Return when and where photographs were taken: as is known, or as their files say.

        Their folders are relative to `root`.
        """
        return read_moments(extraction.files, root) if known.moments is None else known.moments

    def find_together(
        self, extraction: Extraction, known: KnownTags, step: Progress
    ) -> tuple[Moments, np.ndarray]:
        """Return the moments of photographs to learn from, and the series of each, shape (N,)."""
        from tagkin.annotator.series import find_series

        step("Reading dates", 0, 1)
        moments = self.find_moments(extraction, known, split_root(extraction.files)[0])
        series = find_series(extraction.files, extraction.features, moments.times, progress=step)
        return moments, series

    def read_once(
        self, photographs: Photographs, known: KnownTags, progress: Progress | None
    ) -> tuple[Extraction, KnownTags]:
        """Read features; copies of a photograph count once, with the tags of all of them."""
        extraction, known = self.read_known(photographs, known, progress)
        first, merged = known.merge(extraction.digests)
        return take_photographs(extraction, first), merged

    def read_tagged(
        self, photographs: Photographs, known: KnownTags, progress: Progress | None
    ) -> tuple[Extraction, KnownTags]:
        """Read photographs that have tags or rejected tags, or are complete, as `read_once`.

        If examples are all that is known, the others are read, too.
        """
        files, tags, rejected = list_paths(photographs), known.tags, known.rejected
        if not any(tags):
            raise InvalidInput(f"None of the {len(files)} photographs has a tag. Tag some first.")
        from tagkin.annotator.problem import has_examples_only  # only learning needs it

        has_all = known.has_all
        if has_examples_only(has_all, *known.count_tags()):
            return self.read_once(photographs, known, progress)
        rows = [
            i
            for i, row in enumerate(tags)
            if row or has_all[i] or (rejected is not None and rejected[i])
        ]
        some: Photographs = [files[i] for i in rows]
        if isinstance(photographs, Extraction):
            some = take_photographs(photographs, rows)
        return self.read_once(some, known.take(rows), progress)
