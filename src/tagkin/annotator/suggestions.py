"""Records of suggestions and findings, with their confidence and the images that support them.

`LabelSuggestion`, `LabelFinding`, `Support` and `SimilarImage` have numbers of images among those
learned from. The other records have paths of photographs, for people: the command line writes their
`to_dict` with ``--json``, with rounded numbers and paths relative to the current folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import PurePath
from typing import NamedTuple

import numpy as np

from tagkin.errors import InvalidInput

__all__ = [
    "Finding",
    "Kin",
    "LabelFinding",
    "LabelSuggestion",
    "LearnedPhotographs",
    "PhotoSuggestions",
    "Similar",
    "SimilarImage",
    "Support",
    "TagSuggestion",
    "join_root",
    "split_root",
    "suggestion_columns",
]


class Support(NamedTuple):
    """An image learned from that supports a label."""

    image: int
    """Number of the image, from 0."""
    share: float
    """Share of the evidence for the label. The shares of all supporting images, of the read-out and
    of the name add up to 1."""


class LabelSuggestion(NamedTuple):
    """A label for an image."""

    name: str | int
    """Entry of `classes_`: a tag, the column of a DataFrame, or the column's number."""
    confidence: float
    """Probability that the label is right: of suggestions with .8, 80 % are."""
    label: int
    """Column of the label matrix."""
    support: tuple[Support, ...]
    """Images that support the label, largest shares first."""
    name_share: float
    """Share of the label's name in the evidence."""
    readout_share: float
    """Share of the read-out of the image itself. Supporting images have the remaining share."""
    time_share: float = 0.0
    """Share of the images taken at about the same time."""
    place_share: float = 0.0
    """Share of the images taken at about the same place."""
    folder_share: float = 0.0
    """Share of the images in the same folder and folders near it."""


class LabelFinding(NamedTuple):
    """A label that seems wrong on an image learned from, or seems to be missing from it."""

    image: int
    """Number of the image, from 0."""
    name: str | int
    """Entry of `classes_`."""
    kind: str
    """Either "wrong" or "missing"."""
    confidence: float
    """Probability that the finding is right: of findings with .8, 80 % are."""
    label: int
    """Column of the label matrix."""
    support: tuple[Support, ...]
    """Images with a missing label; for a wrong label, the nearest images, which rarely have it."""


class SimilarImage(NamedTuple):
    """An image learned from that is near another image in the semantic space."""

    image: int
    """Number of the image, from 0."""
    similarity: float
    """Cosine in the space, or 1/(1 + d) if the method's distance d is Euclidean; at most 1."""


def _as_dict(record: PhotoSuggestions | Similar | Finding) -> dict[str, object]:
    """Return a dataclass and its nested dataclasses as dicts and lists."""

    def with_lists(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return {name: list(v) if isinstance(v, tuple) else v for name, v in pairs}

    return asdict(record, dict_factory=with_lists)


@dataclass(frozen=True)
class Kin:
    """A tagged photograph that supports a suggested tag."""

    file: str
    """Path of the photograph."""
    share: float
    """Share of the evidence for the tag. The shares of all kin, of the read-out and of the name add
    up to 1."""
    tags: tuple[str, ...] = ()
    """Tags of the photograph."""


@dataclass(frozen=True)
class TagSuggestion:
    """A tag for a photograph."""

    tag: str
    confidence: float
    """Probability that the tag is right: of suggestions with .8, 80 % are."""
    kin: tuple[Kin, ...]
    """Tagged photographs that support the tag, largest shares first."""
    name_share: float
    """Share of the tag's name in the evidence."""
    readout_share: float
    """Share of the read-out of the photograph itself. Kin have the remaining share."""
    time_share: float = 0.0
    """Share of the photographs taken at about the same time."""
    place_share: float = 0.0
    """Share of the photographs taken at about the same place."""
    folder_share: float = 0.0
    """Share of the photographs in the same folder and folders near it."""


@dataclass(frozen=True)
class PhotoSuggestions:
    """Suggestions for one photograph, most confident first."""

    file: str
    suggestions: tuple[TagSuggestion, ...]
    tags: tuple[str, ...] = ()
    """Known tags of the photograph, which are not suggested again."""

    def to_dict(self) -> dict[str, object]:
        """Return plain dicts and lists for JSON."""
        values = _as_dict(self)
        return {name: values[name] for name in ("file", "tags", "suggestions")}


@dataclass(frozen=True)
class Similar:
    """A tagged photograph near another photograph in the semantic space."""

    file: str
    similarity: float
    """Cosine in the space, or 1/(1 + d) if the method's distance d is Euclidean; at most 1."""
    tags: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """Return plain dicts and lists for JSON."""
        return _as_dict(self)


@dataclass(frozen=True)
class Finding:
    """A tag that seems wrong on a tagged photograph, or seems to be missing from it."""

    file: str
    tag: str
    kind: str
    """Either "wrong" or "missing"."""
    confidence: float
    """Probability that the finding is right."""
    kin: tuple[Kin, ...]
    """Photographs with a missing tag; for a wrong tag, the nearest, which rarely have it."""

    def to_dict(self) -> dict[str, object]:
        """Return plain dicts and lists for JSON."""
        return _as_dict(self)


def split_root(paths: Iterable[str | os.PathLike[str]]) -> tuple[str, list[str]]:
    """Return the common folder of files, and their names in it with / between folders.

    If there is no common folder (several drives on Windows), it is empty, and the names are
    absolute paths.
    """
    whole = [os.path.abspath(path) for path in paths]
    try:
        root = os.path.commonpath([os.path.dirname(path) for path in whole])
    except ValueError:  # no path at all, or several drives
        return "", [PurePath(path).as_posix() for path in whole]
    within = len(os.path.join(root, ""))  # with the separator, which the root of a drive has itself
    return root, [path[within:].replace(os.sep, "/") for path in whole]


def join_root(root: str, name: str) -> str:
    """Return the path of a name that `split_root` returned."""
    return os.path.join(root, *name.split("/")) if root else name


@dataclass(frozen=True)
class LearnedPhotographs:
    """The N photographs learned from."""

    paths: Sequence[str]
    tags: Sequence[Sequence[str]]
    digests: Sequence[str] | np.ndarray

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {digest: i for i, digest in enumerate(self.digests)}

    def find(self, digests: Iterable[str]) -> np.ndarray:
        """Return the number of the photograph with each digest, or −1, shape (n,)."""
        return np.array([self._numbers.get(digest, -1) for digest in digests], dtype=np.int64)

    def suggestions(
        self, file: str, suggestions: Iterable[LabelSuggestion], present: Iterable[str]
    ) -> PhotoSuggestions:
        """Return the suggestions for a photograph with these present tags."""
        tags = [
            TagSuggestion(
                str(s.name),
                s.confidence,
                self.kin(s.support),
                s.name_share,
                s.readout_share,
                s.time_share,
                s.place_share,
                s.folder_share,
            )
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
        return Finding(file, str(finding.name), finding.kind, finding.confidence, kin)

    def kin(self, support: Iterable[Support]) -> tuple[Kin, ...]:
        """Return the photographs that support a tag."""
        return tuple(Kin(self.paths[s.image], s.share, tuple(self.tags[s.image])) for s in support)


def suggestion_columns(
    suggested: Sequence[PhotoSuggestions] | Sequence[Sequence[LabelSuggestion]],
) -> dict[str, np.ndarray]:
    """Return suggestions as arrays with an entry for each; ``pandas.DataFrame`` accepts the result.

    Parameters
    ----------
    suggested : list
        Result of `Annotator.suggest` or `FeatureAnnotator.suggest`, for n images.

    Returns
    -------
    columns : dict of str to array of shape (m,)
        ``file``, the path of the photograph, or ``image``, the row of the features; ``tag``;
        ``confidence``; and the shares ``kin_share`` (of all kin), ``readout_share`` and
        ``name_share``, which add up to 1. The order is that of `suggested`.

    Examples
    --------
    >>> from tagkin.annotator import LabelSuggestion, suggestion_columns
    >>> sea = LabelSuggestion("sea", 0.9, 0, (), 0.0, 0.0)
    >>> boat = LabelSuggestion("boat", 0.6, 1, (), 0.25, 0.0)
    >>> columns = suggestion_columns([[sea, boat], [], [sea]])
    >>> columns["image"].tolist(), columns["tag"].tolist()
    ([0, 0, 2], ['sea', 'boat', 'sea'])
    >>> columns["kin_share"].tolist()
    [1.0, 0.75, 1.0]
    """
    first, dtype = "image", "int64"
    entries: list[tuple[str | int, str | int, TagSuggestion | LabelSuggestion]] = []
    rows: Sequence[PhotoSuggestions | Sequence[LabelSuggestion]] = suggested
    for image, row in enumerate(rows):
        if isinstance(row, PhotoSuggestions):
            first, dtype = "file", "object"
            entries += [(row.file, s.tag, s) for s in row.suggestions]
        else:
            entries += [(image, s.name, s) for s in row]
    images, tags, suggestions = zip(*entries, strict=True) if entries else ((), (), ())
    if not all(isinstance(s, TagSuggestion | LabelSuggestion) for s in suggestions):
        raise InvalidInput(
            "Pass the result of Annotator.suggest or FeatureAnnotator.suggest; found suggestions "
            f"of type {type(suggestions[0]).__name__}."
        )
    inputs = ("readout", "name", "time", "place", "folder")
    shares = {
        f"{name}_share": np.array([getattr(s, f"{name}_share") for s in suggestions], np.float64)
        for name in inputs
    }
    return {
        first: np.array(images, dtype=dtype),
        "tag": np.array(tags, dtype=object),
        "confidence": np.array([s.confidence for s in suggestions], dtype=np.float64),
        "kin_share": np.asarray(1 - np.sum([*shares.values()], axis=0)),
        **shares,
    }
