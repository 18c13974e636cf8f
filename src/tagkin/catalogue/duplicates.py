"""Tags that may be one: dog, dogs and Dog. They are found and offered, never merged unasked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tagkin.catalogue.tags import TagCounts
from tagkin.labels import normalize_tag, plural_pairs

__all__ = ["Duplicates", "near_duplicates"]

_LONG = 6  # letters of a word in which one may be a slip: of shorter ones too many differ by one
_RARE = 0.2  # of the more frequent tag's count, for a slip


@dataclass(frozen=True)
class Duplicates:
    """Tags that may be one."""

    keep: str
    """The one on most photographs."""
    others: Sequence[str]
    why: str
    """What they differ in: spelling, plural, or a letter."""


def near_duplicates(tags: Sequence[TagCounts]) -> list[Duplicates]:
    """Tags that differ in case, spaces or hyphens, as singular and plural, or by one letter.

    The last only where one of the two is rare: it may be a slip. Every tag is looked at once, by
    the forms that it could be mistaken for; no two tags are compared that share none.
    """
    counts = {tag.name: tag.n_found + tag.n_accepted for tag in tags}
    by_form: dict[str, list[str]] = defaultdict(list)
    for name in counts:
        by_form[_form(name)].append(name)
    groups: list[tuple[str, list[str]]] = [
        ("spelling", names) for names in by_form.values() if len(names) > 1
    ]
    groups += [("plural", [*by_form[a], *by_form[b]]) for a, b in plural_pairs(by_form)]
    for a, b in _slips(by_form):
        few, many = sorted(sum(counts[name] for name in by_form[form]) for form in (a, b))
        if few <= _RARE * many:
            groups.append(("a letter", [*by_form[a], *by_form[b]]))
    found = []
    for why, names in groups:
        keep, *others = sorted(names, key=lambda name: (-counts[name], name))
        found.append(Duplicates(keep, others, why))
    return sorted(found, key=lambda one: (-counts[one.keep], one.keep))


def _form(name: str) -> str:
    """A tag without what people write now so, now so: case, spaces, hyphens, dots."""
    key = normalize_tag(name)
    return re.sub(r"[\s_.'’\-]+", "", key) or key


def _slips(forms: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs that differ by one letter more, less or other, or by two that changed places.

    Words that do have a form in common when one letter is left out of each, or of one.
    """
    pairs = {*plural_pairs(forms)}
    by_rest: dict[str, list[str]] = defaultdict(list)
    for form in forms:
        if len(form) >= _LONG and not any(char.isdigit() for char in form):
            for rest in {form, *(form[:i] + form[i + 1 :] for i in range(len(form)))}:
                by_rest[rest].append(form)
    seen: set[tuple[str, str]] = set()
    for alike in by_rest.values():
        for i, a in enumerate(alike):
            for b in alike[:i]:
                pair = (min(a, b), max(a, b))
                known = pair in seen or pair in pairs or pair[::-1] in pairs
                if not known and _is_one_slip(a, b):
                    seen.add(pair)
                    yield pair


def _is_one_slip(a: str, b: str) -> bool:
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
    if start is None:
        return abs(len(a) - len(b)) == 1
    if len(a) == len(b):
        swapped = a[start : start + 2] == b[start : start + 2][::-1]
        return a[start + 1 :] == b[start + 1 :] or (swapped and a[start + 2 :] == b[start + 2 :])
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return longer[start + 1 :] == shorter[start:]
