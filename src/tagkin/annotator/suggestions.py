"""What is suggested and found, how sure it is, and the neighbours or kin that support it.

`LabelSuggestion`, `LabelFinding`, `Support` and `SimilarImage` name images by their number among
those learned from. The others name photographs, and are what a person is shown: the `to_dict` of
each is what the command line writes with ``--json``, but for paths, which it writes relative to
the current folder, and the digits of numbers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

__all__ = [
    "Finding",
    "Kin",
    "LabelFinding",
    "LabelSuggestion",
    "PhotoSuggestions",
    "Similar",
    "SimilarImage",
    "Support",
    "TagSuggestion",
]


class Support(NamedTuple):
    """An image learned from that supports a label."""

    image: int
    """Its number, from 0."""
    share: float
    """Its part of the support; the shares of all supporting images add up to 1."""


class LabelSuggestion(NamedTuple):
    """A label for an image."""

    name: Any
    """Entry of `classes_`: a tag, the column of a DataFrame, or the column's number."""
    confidence: float
    """How probable it is that the label is right, from 0 to 1: of suggestions with .8, 80 % are."""
    label: int
    """Column of the label matrix."""
    support: tuple[Support, ...]
    """The images that support it, those with the largest shares first."""
    name_share: float = 0.0
    """The part of the label's name in the evidence for it; 1 where no image supports it."""
    readout_share: float = 0.0
    """The part that was read off the image itself, by what images with the label have in common.
    What is left to 1 is the part of the images that support it."""


class LabelFinding(NamedTuple):
    """A label that seems wrong on an image learned from, or seems to be missing from it."""

    image: int
    """Its number, from 0."""
    name: Any
    """Entry of `classes_`."""
    kind: str
    """Either "wrong" or "missing"."""
    confidence: float
    """How probable it is that the finding is right, from 0 to 1: of findings with .8, 80 % are."""
    label: int
    """Column of the label matrix."""
    support: tuple[Support, ...]
    """For a missing label, the images that carry it; for a wrong one, those nearest, of which
    few or none do."""


class SimilarImage(NamedTuple):
    """An image learned from that is near another one in the semantic space."""

    image: int
    """Its number, from 0."""
    similarity: float
    """1 is the same: the cosine in the space, or 1/(1 + d) where the method's distance d is
    Euclidean."""


def _plain(one: Any) -> dict[str, Any]:
    """A dataclass, and those in it, as dicts and lists."""

    def with_lists(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in pairs}

    return asdict(one, dict_factory=with_lists)


@dataclass(frozen=True)
class Kin:
    """A tagged photograph that carries a suggested tag."""

    file: str
    """Where it is."""
    share: float
    """Its part of the support for the tag; the shares of all kin of a suggestion add up to 1."""
    tags: tuple[str, ...] = ()
    """The tags that it carries."""


@dataclass(frozen=True)
class TagSuggestion:
    """A tag for a photograph."""

    tag: str
    confidence: float
    """How probable it is that the tag is right, from 0 to 1: of suggestions with .8, 80 % are."""
    kin: tuple[Kin, ...]
    """The tagged photographs that support it, those with the largest shares first."""
    name_share: float = 0.0
    """The part of the tag's name in the evidence for it, from 0 to 1. Where it is 1 there are no
    kin yet: the tag is suggested from its name alone."""
    readout_share: float = 0.0
    """The part that was read off the photograph itself, by what photographs with the tag have in
    common. What is left to 1 is the part of all kin."""


@dataclass(frozen=True)
class PhotoSuggestions:
    """What is suggested for one photograph, the surest first."""

    file: str
    suggestions: tuple[TagSuggestion, ...]
    tags: tuple[str, ...] = ()
    """Tags that it carries already, where they are known; they are not suggested again."""

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists, ready for JSON."""
        plain = _plain(self)
        return {name: plain[name] for name in ("file", "tags", "suggestions")}


@dataclass(frozen=True)
class Similar:
    """A tagged photograph near another one in the semantic space."""

    file: str
    similarity: float
    """1 is the same: the cosine in the space, or 1/(1 + d) where the method's distance d is
    Euclidean."""
    tags: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists, ready for JSON."""
        return _plain(self)


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

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts and lists, ready for JSON."""
        return _plain(self)
