"""What a person is shown: suggested tags, how sure they are, and the kin that support them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Finding", "Kin", "PhotoSuggestions", "Similar", "TagSuggestion"]


@dataclass(frozen=True)
class Kin:
    """A tagged photograph that carries a suggested tag."""

    file: str
    """Where it is."""
    share: float
    """Its share of the support for the tag; the shares of all kin of a suggestion add up to 1."""


@dataclass(frozen=True)
class TagSuggestion:
    """A tag for a photograph."""

    tag: str
    confidence: float
    """How probable it is that the tag is right, from 0 to 1: of suggestions with .8, 80 % are."""
    kin: tuple[Kin, ...]
    """The photographs that support it, those with the largest share first."""


@dataclass(frozen=True)
class PhotoSuggestions:
    """What is suggested for one photograph, the surest first."""

    file: str
    suggestions: tuple[TagSuggestion, ...]
    tags: tuple[str, ...] = ()
    """Tags that it carries already, where they are known; they are not suggested again."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists, ready for JSON."""
        suggested = [asdict(one) for one in self.suggestions]
        return {"file": self.file, "tags": list(self.tags), "suggestions": suggested}


@dataclass(frozen=True)
class Similar:
    """A tagged photograph near another one in the semantic space."""

    file: str
    similarity: float
    """1 is the same: the cosine in the space, or 1/(1 + d) where the method's distance d is
    Euclidean."""
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """A tag that seems wrong on a tagged photograph, or seems to be missing from it."""

    file: str
    tag: str
    kind: str
    """Either "wrong" or "missing"."""
    confidence: float
    """How probable it is that the finding is right, from 0 to 1."""
    kin: tuple[Kin, ...]
    """For a missing tag, the photographs that carry it; for a wrong one, those nearest, of which
    few or none do."""
