"""Compare spellings of tags, and find singulars and plurals."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["most_frequent", "normalize_tag", "plural_pairs"]

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


def normalize_tag(tag: str) -> str:
    """Return the form for comparing tags: NFKC, case folded, white space as single spaces.

    >>> normalize_tag("  Traffic  Light ") == normalize_tag("traffic light")
    True
    """
    # normalise twice, because case folding can undo the normal form ("ΐ")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", tag).casefold())
    return " ".join(folded.split())


def most_frequent(spellings: Mapping[str, int]) -> str:
    """Return the most frequent form, such as dog or animal|dog, in its most frequent spelling.

    The first one wins a tie.
    """
    forms: Counter[str] = Counter()
    for spelling, n in spellings.items():
        forms[normalize_tag(spelling)] += n
    form = max(forms, key=forms.__getitem__)
    return max((s for s in spellings if normalize_tag(s) == form), key=spellings.__getitem__)


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
