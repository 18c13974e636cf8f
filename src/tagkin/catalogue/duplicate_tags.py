"""Likely duplicates among tags, such as dog, dogs and Dog. A person decides whether to merge."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tagkin.labels import normalize_tag, plural_pairs

__all__ = ["Duplicates", "find_duplicates", "find_same_meaning"]

_LONG = 6  # letters of a word with a likely typo; many shorter words differ by one letter
_RARE = 0.2  # share of the more frequent tag's count, at most, for a typo


@dataclass(frozen=True)
class Duplicates:
    """Tags that are likely the same."""

    keep: str
    """The tag on most photographs, or the tag of a synonym."""
    others: Sequence[str]
    why: str
    """The difference: spelling, plural or a letter; or the same meaning: synonym, translation."""


def find_duplicates(counts: Mapping[str, int]) -> list[Duplicates]:
    """Find tags that differ in case, spaces or hyphens, as singular and plural, or by one letter.

    The last only if one of the two is rare, because it may be a typo. `counts` are the photographs
    of each tag. Only tags that share a form are compared.
    """
    by_form: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        by_form[_form(name)].append(name)
    groups: list[tuple[str, list[str]]] = [
        ("spelling", names) for names in by_form.values() if len(names) > 1
    ]
    groups += [("plural", [*by_form[a], *by_form[b]]) for a, b in plural_pairs(by_form)]
    for a, b in _typos(by_form):
        few, many = sorted(sum(counts[name] for name in by_form[form]) for form in (a, b))
        if few <= _RARE * many:
            groups.append(("a letter", [*by_form[a], *by_form[b]]))
    return _choose_kept(groups, counts)


def find_same_meaning(counts: Mapping[str, int]) -> list[Duplicates]:
    """Find pairs of tags that mean the same, such as sundown and sunset, or Hund and dog.

    Raises
    ------
    MissingExtra
        If WordNet is not installed.
    """
    from tagkin.tag_meanings import find_synonyms  # takes a second

    pairs = find_synonyms(list(counts))
    return _choose_kept([(why, [first, second]) for first, second, why in pairs], counts)


def _choose_kept(
    groups: Iterable[tuple[str, list[str]]], counts: Mapping[str, int]
) -> list[Duplicates]:
    """Keep the most frequent tag of each group, which comes with its difference."""
    duplicates = []
    for why, names in groups:
        keep, *others = sorted(names, key=lambda name: (-counts[name], name))
        duplicates.append(Duplicates(keep, others, why))
    return sorted(duplicates, key=lambda group: (-counts[group.keep], group.keep))


def _form(name: str) -> str:
    """Return the tag without case, spaces, hyphens and dots."""
    key = normalize_tag(name)
    return re.sub(r"[\s_.'’\-]+", "", key) or key


def _typos(forms: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs that differ by one added, missing or other letter, or by two swapped letters.

    Such words are equal after one letter is removed from each, or from one.
    """
    pairs = {*plural_pairs(forms)}
    by_shorter: dict[str, list[str]] = defaultdict(list)
    for form in forms:
        if len(form) >= _LONG and not any(char.isdigit() for char in form):
            for shorter in {form, *(form[:i] + form[i + 1 :] for i in range(len(form)))}:
                by_shorter[shorter].append(form)
    seen: set[tuple[str, str]] = set()
    for alike in by_shorter.values():
        for i, a in enumerate(alike):
            for b in alike[:i]:
                pair = (min(a, b), max(a, b))
                known = pair in seen or pair in pairs or pair[::-1] in pairs
                if not known and _is_typo(a, b):
                    seen.add(pair)
                    yield pair


def _is_typo(a: str, b: str) -> bool:
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if start is None:
        return abs(len(a) - len(b)) == 1
    if len(a) == len(b):
        swapped = a[start : start + 2] == b[start : start + 2][::-1]
        return a[start + 1 :] == b[start + 1 :] or (swapped and a[start + 2 :] == b[start + 2 :])
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return longer[start + 1 :] == shorter[start:]
