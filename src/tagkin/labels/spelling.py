"""Resolve spellings of tags to the same tag, and find the tags that a tag implies."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tagkin.errors import InvalidInput
from tagkin.labels.merging import canonical_words, whole_paths

__all__ = ["TagReader", "leaf_of", "most_frequent", "normalize_tag"]

Levels = tuple[list[str], int]
"""Levels above a tag, and how many of them, from the lowest, it implies."""

# Joins the levels of a normalised tag. Python counts it as white space, so no level contains it. It
# sorts before every letter, so children come right after their parent.
_JOINT = "\x1f"


def normalize_tag(tag: str) -> str:
    """Return the form for comparing tags: NFKC, case folded, white space as single spaces.

    >>> normalize_tag("  Traffic  Light ") == normalize_tag("traffic light")
    True
    """
    # normalise twice, because case folding can undo the normal form ("ΐ")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", tag).casefold())
    return " ".join(folded.split())


def most_frequent(spellings: Mapping[str, int]) -> str:
    """Return the most frequent form, such as dog or dogs, in its most frequent spelling.

    The first one wins a tie.
    """
    forms: Counter[str] = Counter()
    for spelling, n in spellings.items():
        forms[normalize_tag(spelling)] += n
    form = max(forms, key=forms.__getitem__)
    return max((s for s in spellings if normalize_tag(s) == form), key=spellings.__getitem__)


def leaf_of(key: str) -> str:
    """Return the last level of a normalised tag from a `TagReader`."""
    return key.rpartition(_JOINT)[2]


class TagReader:
    """Turns an image's list of tags into pairs (normalised tag, spelling), with implied parents.

    `Vocabulary` documents the first three parameters; `forms` learns the others.

    Parameters
    ----------
    words : mapping of str to str, optional
        Normalised level → the level that replaces it.
    above : mapping of str to (levels, int), optional
        Normalised tag → levels that belong above it, and how many of them, from the lowest, it
        implies.
    """

    def __init__(
        self,
        aliases: Mapping[str, str] | None,
        separator: str | Sequence[str] | None,
        imply_parents: bool,
        words: Mapping[str, str] | None = None,
        above: Mapping[str, Levels] | None = None,
    ):
        self._words, self._above = dict(words or {}), dict(above or {})
        self._separators = [separator] if isinstance(separator, str) else list(separator or ())
        if not all(isinstance(s, str) and s.strip() for s in self._separators):
            raise InvalidInput(
                f'separator must be a text such as "|", several of them, or None; found '
                f"{separator!r}."
            )
        self._imply_parents = imply_parents
        self._aliases: dict[tuple[str, ...], list[str]] = {}
        self._known: dict[str, list[tuple[str, str]]] = {}  # cache of resolved spellings
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
                continue  # an alias for itself
            if _key(self._aliases.get(key, levels)) != _key(levels):
                raise InvalidInput(f"Two aliases for {alias!r} lead to different tags. Keep one.")
            self._aliases[key] = levels
        for key in self._aliases:
            self._resolve(list(key))

    def _levels(self, tag: str) -> list[str]:
        """Return the levels of a tag in the user's spelling, without empty levels."""
        for separator in self._separators[1:]:
            tag = tag.replace(separator, self._separators[0])
        levels = tag.split(self._separators[0]) if self._separators else [tag]
        return [" ".join(level.split()) for level in levels if normalize_tag(level)]

    def _resolve(self, levels: list[str]) -> list[str]:
        """Replace aliases, longest match first, until no alias matches."""
        path = [levels]
        for _ in range(len(self._aliases) + len(levels) + 1):
            key = _key(levels)
            lengths = (n for n in range(len(key), 0, -1) if key[:n] in self._aliases)
            n = next(lengths, 0)
            if n == 0:
                return levels
            levels = self._aliases[key[:n]] + levels[n:]
            path.append(levels)
        names = " → ".join(repr(self._join(step)) for step in path[:4])
        raise InvalidInput(f"The aliases lead in a circle: {names} … Remove one of them.")

    def _join(self, levels: Sequence[str]) -> str:
        return self._separators[0].join(levels) if self._separators else levels[0]

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
        levels, key = self._read(tag)
        prefixes = (_JOINT.join(key[:n]) for n in range(len(key), 0, -1))
        prefix = next((prefix for prefix in prefixes if prefix in self._above), "")
        above, n_implied = self._above.get(prefix, ((), 0))
        parents = self._merge_words(_key(above))
        # in the user's spelling, because the most frequent spelling is shown
        parts = [(parents + key[:n], levels[:n]) for n in range(len(levels), 0, -1)]
        implied = range(len(parents), len(parents) - n_implied, -1)
        parts += [(parents[:n], list(above[:n])) for n in implied]
        if not self._imply_parents:
            parts = parts[:1]
        return [(_JOINT.join(path), self._join(part)) for path, part in parts]

    def _read(self, tag: str) -> tuple[list[str], tuple[str, ...]]:
        """Return a tag's levels and their normalised form, with aliases and plurals resolved."""
        levels = self._resolve(self._levels(tag))
        if self._words:
            # an alias may refer to the other form
            merged = [self._words.get(normalize_tag(level), level) for level in levels]
            resolved = self._resolve(merged)
            levels = levels if _key(resolved) == _key(merged) else resolved
        return levels, self._merge_words(_key(levels))

    def _merge_words(self, key: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._words.get(word, word) for word in key)

    def forms(
        self, tags: Mapping[str, int], plurals: bool, levels: bool
    ) -> tuple[dict[str, str], dict[str, Levels]]:
        """Learn `words` and `above`, which merge forms of a tag, from tags and their counts."""
        counts: Counter[str] = Counter()
        if plurals:
            for tag, n in tags.items():
                counts.update(dict.fromkeys(_key(self._levels(tag)), n))
            aliased = [*self._aliases, *map(_key, self._aliases.values())]
            self._words = canonical_words(counts, {word for key in aliased for word in key})
        if not levels:
            return self._words, {}
        paths: Counter[tuple[str, ...]] = Counter()
        spellings: dict[str, Counter[str]] = {}
        for tag, n in tags.items():
            tag_levels, key = self._read(tag)
            for word, level in zip(key, tag_levels, strict=True):
                spellings.setdefault(word, Counter())[level] += n
            for end in range(1 if self._imply_parents else len(key), len(key) + 1):
                paths[key[:end]] += n
        shown = {word: most_frequent(counter) for word, counter in spellings.items()}
        above = {
            _JOINT.join(end): ([shown[word] for word in path], n_implied)
            for end, (path, n_implied) in whole_paths(paths).items()
        }
        return self._words, above


def _key(levels: Sequence[str]) -> tuple[str, ...]:
    return tuple(normalize_tag(level) for level in levels)
