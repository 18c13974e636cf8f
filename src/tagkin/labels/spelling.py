"""Spellings of tags: which of them are one tag, and what else a tag implies."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tagkin.errors import InvalidInput

__all__ = ["TagReader", "normalize_tag"]

# Joins the levels of a normalised tag. White space to Python, so that no level contains it,
# and before every letter, so that children sort right after their parent.
_JOINT = "\x1f"


def normalize_tag(tag: str) -> str:
    """The form in which tags are compared: NFKC, case folded, white space as single spaces.

    >>> normalize_tag("  Traffic  Light ") == normalize_tag("traffic light")
    True
    """
    # folding can undo the normal form ("ΐ"), hence once before and once after
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", tag).casefold())
    return " ".join(folded.split())


class TagReader:
    """From an image's list of tags to pairs (normalised tag, spelling), parents and all.

    `Vocabulary` documents the parameters.
    """

    def __init__(
        self,
        aliases: Mapping[str, str] | None,
        separator: str | Sequence[str] | None,
        imply_parents: bool,
    ):
        self._separators = [separator] if isinstance(separator, str) else list(separator or ())
        if not all(isinstance(s, str) and s.strip() for s in self._separators):
            raise InvalidInput(
                f'separator must be a text such as "|", several of them, or None; found '
                f"{separator!r}."
            )
        self._imply_parents = imply_parents
        self._aliases: dict[tuple[str, ...], list[str]] = {}
        self._known: dict[str, list[tuple[str, str]]] = {}  # every spelling is worked out once
        self._read_aliases(aliases or {})

    def _read_aliases(self, aliases: Mapping[str, str]) -> None:
        for alias, target in aliases.items():
            if not (isinstance(alias, str) and isinstance(target, str)):
                raise InvalidInput(f"aliases map text to text; found {alias!r}: {target!r}.")
            key, levels = _key(self._levels(alias)), self._levels(target)
            if not key or not levels:
                raise InvalidInput(
                    f"An alias or its tag is blank: {alias!r}: {target!r}. Remove it."
                )
            if key == _key(levels):
                continue  # a tag that stands for itself
            if _key(self._aliases.get(key, levels)) != _key(levels):
                raise InvalidInput(f"Two aliases for {alias!r} lead to different tags. Keep one.")
            self._aliases[key] = levels
        for key in self._aliases:
            self._resolved(list(key))

    def _levels(self, tag: str) -> list[str]:
        """The levels of a tag in the user's spelling; empty ones are left out."""
        for separator in self._separators[1:]:
            tag = tag.replace(separator, self._separators[0])
        levels = tag.split(self._separators[0]) if self._separators else [tag]
        return [" ".join(level.split()) for level in levels if normalize_tag(level)]

    def _resolved(self, levels: list[str]) -> list[str]:
        """Levels with aliases put in: the longest that matches first, until none does."""
        path = [levels]
        for _ in range(len(self._aliases) + len(levels) + 1):
            key = _key(levels)
            lengths = (n for n in range(len(key), 0, -1) if key[:n] in self._aliases)
            n = next(lengths, 0)
            if n == 0:
                return levels
            levels = self._aliases[key[:n]] + levels[n:]
            path.append(levels)
        names = " → ".join(repr(self._joined(step)) for step in path[:4])
        raise InvalidInput(f"The aliases lead in a circle: {names} … Remove one of them.")

    def _joined(self, levels: Sequence[str]) -> str:
        return self._separators[0].join(levels) if self._separators else levels[0]

    def tags_of(self, row: Any, number: int) -> Iterator[tuple[str, str]]:
        """Pairs (normalised tag, spelling) of every tag of one image; blank ones are left out."""
        if row is None:
            return
        if isinstance(row, (str, bytes, Mapping)) or not isinstance(row, Iterable):
            raise InvalidInput(
                f"Row {number} is {row!r}; expected a list of tags, or None for no tags."
            )
        for tag in row:
            if not isinstance(tag, str):
                raise InvalidInput(
                    f"Row {number} holds {tag!r} ({type(tag).__name__}); a tag is a text. Leave "
                    "missing ones out, or convert it with str()."
                )
            if tag not in self._known:
                self._known[tag] = self._worked_out(tag)
            yield from self._known[tag]

    def _worked_out(self, tag: str) -> list[tuple[str, str]]:
        levels = self._resolved(self._levels(tag))
        lengths = range(1 if self._imply_parents else max(1, len(levels)), len(levels) + 1)
        parts = [levels[:n] for n in reversed(lengths)]
        return [(_JOINT.join(_key(part)), self._joined(part)) for part in parts]


def _key(levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(normalize_tag(level) for level in levels)
