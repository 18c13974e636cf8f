"""Likely duplicates among tags, such as dog, dogs and Dog. A person decides whether to merge."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tagkin.labels import normalize_tag, plural_pairs

__all__ = ["Duplicates", "find_duplicates", "find_same_meaning"]

_LONG = 6  # letters of a word with a likely typo; many shorter words differ by one letter
# Among 378 common tags, six pairs have a cosine of .76 or more: flower and blossom, turtle and
# tortoise, couch and sofa, ocean and sea, crocodile and alligator, car and vehicle.
_SURE = 0.76  # cosine of two names that mean the same, whatever the photographs
_TOGETHER = 0.5  # share of the photographs with one tag that have both, for other names
_TYPO = 0.35  # least cosine of a word and its typo; that of feather and weather is .2
_RARE = 0.2  # share of the more frequent tag's count, at most, for a typo


@dataclass(frozen=True)
class Duplicates:
    """Tags that are likely the same."""

    keep: str
    """The tag on most photographs."""
    others: Sequence[str]
    why: str
    """The difference: spelling, plural or a letter; or the same meaning."""


def find_duplicates(counts: Mapping[str, int]) -> list[Duplicates]:
    """Find tags that differ in case, spaces or hyphens, as singular and plural, or by one letter.

    The last only if one of the two is rare, because it may be a typo, and if the map of words
    finds their names alike. `counts` are the photographs of each tag.
    """
    by_form: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        by_form[_form(name)].append(name)
    groups: list[tuple[str, list[str]]] = [
        ("spelling", names) for names in by_form.values() if len(names) > 1
    ]
    groups += [("plural", [*by_form[a], *by_form[b]]) for a, b in plural_pairs(by_form)]
    totals = {form: sum(counts[name] for name in names) for form, names in by_form.items()}
    typos = [
        pair
        for pair in _typos(by_form)
        if min(map(totals.__getitem__, pair)) <= _RARE * max(map(totals.__getitem__, pair))
    ]
    for a, b in _alike(typos):
        groups.append(("a letter", [*by_form[a], *by_form[b]]))
    return _choose_kept(groups, counts)


def find_same_meaning(
    counts: Mapping[str, int], count_both: Callable[[str, str], int]
) -> list[Duplicates]:
    """Find pairs of tags that mean the same, such as car and automobile, or Hund and dog.

    Names that are only likely to mean the same count if half of the photographs with one of the
    tags have both. `count_both` returns the number of photographs with both.
    """
    from tagkin.tag_meanings import find_same_meaning  # reads the encoder

    pairs = []
    for first, second, cosine in find_same_meaning(list(counts)):
        is_same = cosine >= _SURE
        if not is_same:
            n_both = count_both(first, second)
            is_same = n_both >= _TOGETHER * max(counts[first] + counts[second] - n_both, 1)
        if is_same:
            pairs.append(("meaning", [first, second]))
    return _choose_kept(pairs, counts)


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


def _alike(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs with names near each other, unlike two words such as river and rover."""
    if not pairs:
        return []
    from tagkin.tag_meanings import name_cosines  # reads the encoder

    return [
        pair for pair, cosine in zip(pairs, name_cosines(pairs), strict=True) if cosine >= _TYPO
    ]


def _is_typo(a: str, b: str) -> bool:
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if start is None:
        return abs(len(a) - len(b)) == 1
    if len(a) == len(b):
        swapped = a[start : start + 2] == b[start : start + 2][::-1]
        return a[start + 1 :] == b[start + 1 :] or (swapped and a[start + 2 :] == b[start + 2 :])
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return longer[start + 1 :] == shorter[start:]
