"""How an annotator looks at photographs: through one backbone, and into one cache."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any

from sklearn.base import BaseEstimator

from tagkin.annotator.photographs import (
    Photographs,
    TagLists,
    all_unreadable,
    merged,
    paths_of,
    subset,
    tag_rows,
)
from tagkin.arrays.records import LEFT_OUT
from tagkin.collection.reading import Collection
from tagkin.errors import InvalidInput, StorageError
from tagkin.features import (
    Backbone,
    Extraction,
    FeatureCache,
    default_cache_folder,
    extract,
    get_backbone,
)
from tagkin.progress import Progress
from tagkin.tag_meanings import ClassPrior, NamePrior, TextPrior

__all__ = ["PhotographFeatures"]


class PhotographFeatures(BaseEstimator):
    """The part of an `Annotator` that makes features of photographs."""

    backbone: str
    cache: FeatureCache | bool
    fingerprint_: str
    _opened: Annotated[tuple[str, Backbone] | None, LEFT_OUT] = None
    _opened_prior: Annotated[tuple[Backbone | None, NamePrior | None], LEFT_OUT] = (None, None)

    def look(
        self,
        photographs: Photographs,
        *,
        progress: Progress | None = None,
        extract: Callable[..., Extraction] = extract,
    ) -> Extraction:
        """Features of photographs, from the cache where they are there.

        Pass what it returns to `fit`, `suggest` and the others instead of paths; its `failures`
        are the photographs that could not be read. `extract` does the work of
        `tagkin.features.extract` elsewhere: `tagkin.distributed.extract` does on a cluster.
        """
        if isinstance(photographs, Extraction):
            return photographs
        with self._opened_cache() as cache:
            return extract(paths_of(photographs), self._backbone(), cache=cache, progress=progress)

    def _backbone(self) -> Backbone:
        """Opened once for each name, and kept: that takes longer than what is asked of it."""
        name, backbone = self._opened or ("", None)
        if backbone is None or name != self.backbone:
            backbone = get_backbone(self.backbone)
            self._opened = self.backbone, backbone
        return backbone

    def _prior(self) -> NamePrior | None:
        """What the backbone makes of the names of tags; None where it can make nothing of them."""
        backbone = self._backbone()
        if self._opened_prior[0] is not backbone:
            self._opened_prior = backbone, _prior_of(backbone)
        return self._opened_prior[1]

    def __getstate__(self) -> dict[str, Any]:
        """What copies get: a network that runs is of this process alone."""
        state = super().__getstate__()
        return {k: v for k, v in state.items() if k not in ("_opened", "_opened_prior")}

    def _opened_cache(self) -> AbstractContextManager[FeatureCache | None]:
        if not isinstance(self.cache, (FeatureCache, bool)):
            raise InvalidInput(f"cache is a FeatureCache, True or False; found {self.cache!r}.")
        if self.cache is True:
            try:
                return FeatureCache(default_cache_folder())
            except StorageError as error:
                warnings.warn(f"{error} The run goes on without a cache.", stacklevel=2)
                return nullcontext(None)
        return nullcontext(self.cache or None)  # one that was given is the giver's to close

    def _check_backbone(self) -> None:
        """Refuse to compare photographs seen by one backbone with those seen by another."""
        found = self._backbone().fingerprint
        if found != self.fingerprint_:
            raise InvalidInput(
                f"This model was learned with another version of {self.backbone!r} (fingerprint "
                f"{self.fingerprint_[:12]}, here {found[:12]}). Use the same weights, or train "
                "again."
            )

    def _readable(self, photographs: Photographs, progress: Progress | None) -> Extraction:
        seen = self.look(photographs, progress=progress)
        if not seen.files:
            raise InvalidInput(all_unreadable(seen.failures))
        return seen

    def _tagged(
        self,
        photographs: Photographs,
        tags: TagLists | None,
        step: Progress,
        *decided: TagLists | None,
    ) -> tuple[Extraction, list[list[str]], list[list[list[str]] | None]]:
        """Features of photographs that carry tags, each content once, those tags and others.

        `decided` are further lists of tags for each photograph, such as those rejected for it.
        """
        if isinstance(photographs, Collection):
            tags = photographs.tags
        files = paths_of(photographs)
        rows = tag_rows(files, tags)
        kept = [i for i, row in enumerate(rows) if row]
        if not kept:
            raise InvalidInput(
                f"No tag at all: none of the {len(files)} photographs carries one. Tag some first."
            )
        if isinstance(photographs, Extraction):
            seen = subset(photographs, kept)
        else:
            seen = self._readable([files[i] for i in kept], step)
        named = [files[i] for i in kept]
        once, merged_rows = merged(seen, named, [rows[i] for i in kept])
        others: list[list[list[str]] | None] = []
        for given in decided:
            found = None if given is None else tag_rows(files, given)
            others.append(
                None if found is None else merged(seen, named, [found[i] for i in kept])[1]
            )
        return once, merged_rows, others

    def _rejected_alone(
        self,
        photographs: Photographs,
        tags: TagLists | None,
        rejected: TagLists | None,
        seen: Extraction,
        step: Progress,
    ) -> tuple[Any, list[list[str]]] | None:
        """Features of photographs without tags, others than those `seen`, and what was rejected."""
        if not rejected:
            return None
        if isinstance(photographs, Collection):
            tags = photographs.tags
        files = paths_of(photographs)
        rows, no = tag_rows(files, tags), tag_rows(files, rejected)
        kept = [i for i in range(len(files)) if no[i] and not rows[i]]
        if not kept:
            return None
        named = [files[i] for i in kept]
        if isinstance(photographs, Extraction):
            others = subset(photographs, kept)
        else:
            others = self.look(named, progress=step)
        tagged = set(seen.digests)
        fresh = [i for i, digest in enumerate(others.digests) if digest not in tagged]
        if not fresh:
            return None
        once, refused = merged(subset(others, fresh), named, [no[i] for i in kept])
        return once.features, refused


def _prior_of(backbone: Backbone) -> NamePrior | None:
    if backbone.text_encoder is not None:
        return TextPrior(backbone.text_encoder)
    return None if backbone.classifier is None else ClassPrior(backbone.classifier)
