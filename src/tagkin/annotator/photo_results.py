"""Turn results for numbered images into results for photographs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tagkin.annotator.suggestions import (
    Finding,
    Kin,
    LabelFinding,
    LabelSuggestion,
    PhotoSuggestions,
    Similar,
    SimilarImage,
    Support,
    TagSuggestion,
)

__all__ = ["LearnedPhotographs"]


class LearnedPhotographs(NamedTuple):
    """The N photographs learned from."""

    paths: Sequence[str]
    tags: Sequence[Sequence[str]]

    def suggestions(
        self, file: str, suggestions: Iterable[LabelSuggestion], present: Sequence[str]
    ) -> PhotoSuggestions:
        """Return the suggestions for a photograph with these present tags."""
        tags = [
            TagSuggestion(s.name, s.confidence, self.kin(s.support), s.name_share, s.readout_share)
            for s in suggestions
        ]
        return PhotoSuggestions(file, tuple(tags), tuple(present))

    def similar(self, images: Iterable[SimilarImage]) -> list[Similar]:
        """Return photographs similar to another."""
        return [
            Similar(self.paths[s.image], s.similarity, tuple(self.tags[s.image])) for s in images
        ]

    def finding(self, finding: LabelFinding) -> Finding:
        """Return a tag of a photograph that seems wrong or missing."""
        file, kin = self.paths[finding.image], self.kin(finding.support)
        return Finding(file, finding.name, finding.kind, finding.confidence, kin)

    def kin(self, support: Iterable[Support]) -> tuple[Kin, ...]:
        """Return the photographs that support a tag."""
        return tuple(Kin(self.paths[s.image], s.share, tuple(self.tags[s.image])) for s in support)
