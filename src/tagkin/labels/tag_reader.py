"""Resolve tags with levels, such as ``animal|dog``, and find the tags that a tag implies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tagkin.errors import InvalidInput
from tagkin.labels.spelling import most_frequent, normalize_tag

__all__ = ["TagReader", "Wholes", "leaf_of", "whole_paths"]

Path = tuple[str, ...]
"""The normalised levels of a tag, top level first."""

# Joins the levels of a normalised tag. Python counts it as white space, so no level contains it. It
# sorts before every letter, so children come right after their parent.
_JOINT = "\x1f"


def leaf_of(key: str) -> str:
    """Return the last level of a normalised tag from a `TagReader`."""
    return key.rpartition(_JOINT)[2]


class Wholes(NamedTuple):
    """By normalised tag, the levels that belong above it, and how many of them it implies.

    The implied ones are the lowest.
    """

    above: Mapping[str, list[str]]
    n_implied: Mapping[str, int]


class TagReader:
    """Turns an image's list of tags into pairs (normalised tag, spelling), with implied parents.

    `Vocabulary` documents the first two parameters; `find_wholes` finds the last.
    """

    def __init__(self, separator: str | None, imply_parents: bool, wholes: Wholes | None = None):
        if separator is not None and not (isinstance(separator, str) and separator.strip()):
            raise InvalidInput(
                f'separator must be a text such as "|", or None; found {separator!r}.'
            )
        self._separator, self._imply_parents = separator, imply_parents
        self._wholes = Wholes({}, {}) if wholes is None else wholes
        self._known: dict[str, list[tuple[str, str]]] = {}  # cache of resolved spellings

    def tags_of(self, row: object, number: int) -> Iterator[tuple[str, str]]:
        """Yield pairs (normalised tag, spelling) of an image's tags, without blank tags."""
        if row is None:
            return
        if not isinstance(row, list) and (
            isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable)
        ):
            raise InvalidInput(
                f"Row {number} is {row!r}; expected a list of tags, or None for no tags."
            )
        for tag in row:
            if not isinstance(tag, str):
                raise InvalidInput(
                    f"Row {number} contains {tag!r} ({type(tag).__name__}); a tag is a text. Leave "
                    "missing tags out, or convert it with str()."
                )
            if tag not in self._known:
                self._known[tag] = self._pairs_of(tag)
            yield from self._known[tag]

    def _pairs_of(self, tag: str) -> list[tuple[str, str]]:
        levels = self._levels(tag)
        key = _key(levels)
        prefixes = (_JOINT.join(key[:n]) for n in range(len(key), 0, -1))
        prefix = next((prefix for prefix in prefixes if prefix in self._wholes.above), "")
        above, n_implied = self._wholes.above.get(prefix, []), self._wholes.n_implied.get(prefix, 0)
        parents = _key(above)
        # in the user's spelling, because the most frequent spelling is shown
        parts = [(parents + key[:n], levels[:n]) for n in range(len(levels), 0, -1)]
        implied = range(len(parents), len(parents) - n_implied, -1)
        parts += [(parents[:n], above[:n]) for n in implied]
        if not self._imply_parents:
            parts = parts[:1]
        return [(_JOINT.join(path), (self._separator or "").join(part)) for path, part in parts]

    def _levels(self, tag: str) -> list[str]:
        """Return the levels of a tag in the user's spelling, without empty levels."""
        levels = tag.split(self._separator) if self._separator else [tag]
        return [" ".join(level.split()) for level in levels if normalize_tag(level)]

    def find_wholes(self, tags: Mapping[str, int]) -> Wholes:
        """Find tags that are the end of another tag, given tags and their numbers of images."""
        paths: Counter[Path] = Counter()
        spellings: dict[str, Counter[str]] = {}
        for tag, n in tags.items():
            levels = self._levels(tag)
            key = _key(levels)
            for word, level in zip(key, levels, strict=True):
                spellings.setdefault(word, Counter())[level] += n
            for end in range(1 if self._imply_parents else len(key), len(key) + 1):
                paths[key[:end]] += n
        shown = {word: most_frequent(counter) for word, counter in spellings.items()}
        wholes = {_JOINT.join(end): whole for end, whole in whole_paths(paths).items()}
        return Wholes(
            {end: [shown[word] for word in path] for end, (path, _) in wholes.items()},
            {end: n_implied for end, (_, n_implied) in wholes.items()},
        )


def _key(levels: Iterable[str]) -> Path:
    return tuple(normalize_tag(level) for level in levels)


def whole_paths(counts: Mapping[Path, int]) -> dict[Path, tuple[Path, int]]:
    """Map tags that are the end of another tag, such as ``dog`` of ``animal|dog``, to that tag.

    An end of different tags, such as ``animal|dog`` and ``toy|dog``, is left out.

    Parameters
    ----------
    counts : mapping of paths to int
        Number of images with each tag, parents included.

    Returns
    -------
    whole : dict of path to (path, int)
        The end → the levels above it, and how many of them, from the lowest, the end implies.
        It is 0 if the end alone is the more frequent form, to keep a stray ``misc|dog`` from
        adding ``misc`` to every dog.
    """
    longer: dict[Path, set[Path]] = {}
    for path in counts:
        for n in range(1, len(path)):
            longer.setdefault(path[-n:], set()).add(path)
    above: dict[Path, tuple[Path, bool]] = {}
    for end, paths in longer.items():
        deepest = max(paths, key=lambda path: (len(path), path))
        if all(deepest[-len(path) :] == path for path in paths):
            implied = sum(counts[path] for path in paths) >= counts.get(end, 0)
            above[end] = (deepest[: -len(end)], implied)
    for end in [end for end in above if _follow_up(end, above) is None]:
        del above[end]  # "a|b" and "b|a" form a cycle
    wholes = {end: _follow_up(end, above) for end in above}
    return {end: whole for end, whole in wholes.items() if whole is not None}


def _follow_up(end: Path, above: Mapping[Path, tuple[Path, bool]]) -> tuple[Path, int] | None:
    """Return all levels above an end, and how many of them are implied; None in a cycle."""
    path, n_implied, all_implied = end, 0, True
    followed: set[Path] = set()
    while True:
        n = next((n for n in range(len(path), 0, -1) if path[:n] in above), 0)
        if n == 0:
            return path[: -len(end)], n_implied
        if path[:n] in followed:
            return None
        followed.add(path[:n])
        more, implied = above[path[:n]]
        all_implied &= implied
        n_implied += len(more) if all_implied else 0
        path = more + path
