"""Which words are one tag: singular and plural, flat and hierarchical forms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["canonical_words", "plural_pairs", "whole_paths"]

Path = tuple[str, ...]
"""The normalised levels of a tag, the topmost first."""

_SHORTEST = 3  # letters of a word that may have a plural: "as" is not the plural of "a"
_IRREGULAR = {
    "child": "children",
    "foot": "feet",
    "goose": "geese",
    "man": "men",
    "mouse": "mice",
    "person": "people",
    "tooth": "teeth",
}
_HISSING = ("s", "x", "z", "ch", "sh")
_DEEPEST = 64  # levels; anything deeper is a cycle


def plural_pairs(words: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs (singular, plural) of which both are among the words, by the rules of English.

    Words are normalised tags; of several words in one, ``hot dog``, the last is inflected.

    >>> plural_pairs(["dogs", "dog", "hot dog", "bus", "berry", "berries", "wolves"])
    [('berry', 'berries'), ('dog', 'dogs')]
    """
    known = set(words)
    return sorted((word, form) for word in known for form in _plurals(word) if form in known)


def _plurals(word: str) -> list[str]:
    """Possible plurals of a word."""
    if len(word) < _SHORTEST:
        return []
    start, _, last = word.rpartition(" ")
    head = word[: len(word) - len(last)] if start else ""
    forms = [head + plural for one, plural in _IRREGULAR.items() if last == one]
    if last.endswith("man") and last != "man":
        forms.append(word[:-3] + "men")
    if word.endswith(_HISSING):
        return [*forms, word + "es"]
    if word.endswith("y") and word[-2] not in "aeiou ":
        return [*forms, word[:-1] + "ies"]
    if word.endswith("f"):
        forms.append(word[:-1] + "ves")
    if word.endswith("fe"):
        forms.append(word[:-2] + "ves")
    if word.endswith("o"):
        forms.append(word + "es")
    return [*forms, word + "s"]


def canonical_words(counts: Mapping[str, int], preferred: Iterable[str] = ()) -> dict[str, str]:
    """For each pair of singular and plural: the word that is replaced, and its replacement.

    Parameters
    ----------
    counts : mapping of str to int
        Words, normalised, and on how many images they are.
    preferred : iterable of str
        Words that are kept whatever the counts. Otherwise the more frequent one is, and the
        singular where they are equally frequent.
    """
    wanted = set(preferred)
    found: dict[str, str] = {}
    for one, several in plural_pairs(counts):
        rank = [(word in wanted, counts[word]) for word in (one, several)]
        other, chosen = (one, several) if rank[1] > rank[0] else (several, one)
        found.setdefault(other, chosen)
    # "a" for "as" and "as" for "ass" is "a" for all of them
    return {word: _followed(found, word) for word in found}


def _followed(steps: Mapping[str, str], word: str) -> str:
    seen = {word}
    while word in steps and steps[word] not in seen:
        word = steps[word]
        seen.add(word)
    return word


def whole_paths(counts: Mapping[Path, int]) -> dict[Path, tuple[Path, int]]:
    """For tags that are the end of another tag, such as ``dog`` of ``animal|dog``, that other.

    An end that several tags have, such as ``animal|dog`` and ``toy|dog``, belongs to none.

    Parameters
    ----------
    counts : mapping of paths to int
        Tags, parents among them, and on how many images they are.

    Returns
    -------
    whole : dict of path to (path, int)
        The end → the levels above it, and how many of these, from the lowest, the end implies:
        none where the end alone is the more frequent form, lest a stray ``misc|dog`` puts
        ``misc`` on every dog.
    """
    longer: dict[Path, set[Path]] = {}
    for path in counts:
        for n in range(1, len(path)):
            longer.setdefault(path[-n:], set()).add(path)
    above: dict[Path, tuple[Path, bool]] = {}
    for end, paths in longer.items():
        deepest = max(paths, key=lambda path: (len(path), path))
        if all(deepest[-len(path) :] == path for path in paths):
            often = sum(counts[path] for path in paths) >= counts.get(end, 0)
            above[end] = (deepest[: -len(end)], often)
    for end in [end for end in above if _followed_up(end, above) is None]:
        del above[end]  # "a|b" and "b|a" form a cycle
    found = {end: _followed_up(end, above) for end in above}
    return {end: whole for end, whole in found.items() if whole is not None}


def _followed_up(end: Path, above: Mapping[Path, tuple[Path, bool]]) -> tuple[Path, int] | None:
    """All levels above an end, and how many of them are implied; None in a cycle."""
    path, n_implied, all_implied = end, 0, True
    while len(path) <= _DEEPEST:
        n = next((n for n in range(len(path), 0, -1) if path[:n] in above), 0)
        if n == 0:
            return path[: -len(end)], n_implied
        more, implied = above[path[:n]]
        all_implied &= implied
        n_implied += len(more) if all_implied else 0
        path = more + path
    return None
