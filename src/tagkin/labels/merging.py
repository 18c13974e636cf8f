"""Find forms of the same tag: singular and plural, flat and hierarchical."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["canonical_words", "plural_pairs", "whole_paths"]

Path = tuple[str, ...]
"""The normalised levels of a tag, top level first."""

_SHORTEST = 3  # letters of a word with a plural: "as" is not the plural of "a"
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


def plural_pairs(words: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs (singular, plural) of English words that are both among the words.

    Words are normalised tags. A tag of several words, such as ``hot dog``, inflects its last word.

    >>> plural_pairs(["dogs", "dog", "hot dog", "bus", "berry", "berries", "wolves"])
    [('berry', 'berries'), ('dog', 'dogs')]
    """
    known = set(words)
    return sorted((word, form) for word in known for form in _plurals(word) if form in known)


def _plurals(word: str) -> list[str]:
    """Return possible plurals of a word."""
    if len(word) < _SHORTEST:
        return []
    start, _, last = word.rpartition(" ")
    head = word[: len(word) - len(last)] if start else ""
    forms = [head + plural for singular, plural in _IRREGULAR.items() if last == singular]
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
    """Choose a form of each word with a plural; return a dict of replaced word → replacement.

    Parameters
    ----------
    counts : mapping of str to int
        Number of images with each normalised word.
    preferred : iterable of str
        Words that are never replaced. Otherwise the more frequent form wins, and the singular in
        a tie.
    """
    favourites = set(preferred)
    replacements: dict[str, str] = {}
    for singular, plural in plural_pairs(counts):
        rank = [(word in favourites, counts[word]) for word in (singular, plural)]
        other, chosen = (singular, plural) if rank[1] > rank[0] else (plural, singular)
        replacements.setdefault(other, chosen)
    # "a" for "as" and "as" for "ass" is "a" for all of them
    return {word: _follow(replacements, word) for word in replacements}


def _follow(steps: Mapping[str, str], word: str) -> str:
    seen = {word}
    while word in steps and steps[word] not in seen:
        word = steps[word]
        seen.add(word)
    return word


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
