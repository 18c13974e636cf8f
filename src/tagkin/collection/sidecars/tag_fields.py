"""How each XMP property represents a tag, and tagkin's own property for written tags."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from unicodedata import normalize

from tagkin.collection.levels import first_spellings, fold, last_level, merge_tags, tidy
from tagkin.collection.xmp import (
    FIELDS,
    SUBJECT,
    TAGKIN,
    Element,
    Field,
    descriptions,
    field_words,
    items_of,
)
from tagkin.errors import InvalidInput

__all__ = [
    "PROVENANCE",
    "Provenance",
    "WrittenTag",
    "check_tags",
    "field_spellings",
    "has_tag",
    "marked_values",
    "missing_values",
    "spell_values",
    "tags_to_spread",
    "tidy_fields",
    "values_of_tags",
    "values_to_remove",
    "written_tags",
]

PROVENANCE = Field("tagkin", "Written", TAGKIN, "|", "Bag")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Provenance:
    """The origin of written tags."""

    mark: str
    """The run that writes them, as ``tagkin history`` names it, a dash, and digits that no other
    write has: run numbers are repeated in other catalogues."""
    confidence: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """The probability of each suggested tag; tags from a person have no entry."""

    def of(self, tag: str) -> WrittenTag:
        """Return the record of a tag."""
        return WrittenTag(tag, self.mark, self.confidence.get(tag))


@dataclass(frozen=True)
class WrittenTag:
    """A tag in a sidecar that tagkin wrote, with its run and confidence."""

    tag: str
    mark: str
    """As in `Provenance`; it identifies the write."""
    confidence: float | None = None

    @property
    def run(self) -> str:
        """The number of the run in its catalogue."""
        return self.mark.partition("-")[0]

    def properties(self) -> dict[str, str]:
        """Return the properties of the record in a sidecar."""
        properties = {"Tag": self.tag, "Run": self.mark}
        if self.confidence is not None:
            properties["Confidence"] = f"{self.confidence:.3f}"
        return properties


def written_tags(root: Element) -> Iterator[tuple[Element, WrittenTag]]:
    """Yield the elements of a sidecar that record tagkin's tags, and their records.

    Other programs may turn the attributes of these elements into child elements.
    """
    for description in descriptions(root):
        for element in description.findall(PROVENANCE.tag):
            for item in items_of(element):
                tag, run, confidence = (
                    item.get(f"{{{PROVENANCE.uri}}}{name}")
                    or item.findtext(f".//{{{PROVENANCE.uri}}}{name}")
                    for name in ("Tag", "Run", "Confidence")
                )
                if tag:
                    number = None
                    with suppress(ValueError):
                        number = float(confidence or "")
                    yield item, WrittenTag(tag, run or "", number)


def check_tags(tags: Iterable[str]) -> list[str]:
    """Return normalized tags, each once; reject empty tags and characters that are not XML."""
    tags = list(tags)
    for tag in tags:
        if not tidy(tag):
            raise InvalidInput(f"The tag {tag!r} is empty. Leave it out.")
        if _NOT_IN_XML.search(tidy(tag)):
            raise InvalidInput(
                f"The tag {tag!r} has a character that XMP does not allow. Rename the tag."
            )
    return merge_tags(tags)


FieldTags = Mapping[Field, Sequence[str]]
"""The tags in each property, with their levels."""


def field_spellings(root: Element) -> FieldTags:
    """Return the tags in each property as they are spelled there."""
    return {
        field: [field.read(word) for d in descriptions(root) for word in field_words(d, field)]
        for field in FIELDS
    }


def tidy_fields(spellings: FieldTags) -> FieldTags:
    """Return normalized tags."""
    return {field: list(filter(None, map(tidy, tags))) for field, tags in spellings.items()}


def spell_values(
    spellings: FieldTags, values: Mapping[str, Collection[str]]
) -> list[tuple[str, str]]:
    """Return the properties and texts of these values, as they are spelled in a file."""
    return [
        (field.name, field.spell(tag))
        for field, tags in spellings.items()
        for tag in tags
        if field.spell(tidy(tag)) in values[field.name]
    ]


def _field_value(field: Field, tag: str) -> str:
    """Return the text of a tag in a property."""
    return last_level(tag) if field.local == "subject" else field.spell(tag)


def has_tag(tags: Iterable[str], tag: str) -> bool:
    """Whether a tag is among the tags, or is the last level of one of them."""
    key = fold(tag)
    return any(key in (fold(other), fold(last_level(other))) for other in tags)


def tags_to_spread(own: Sequence[str], known: Iterable[str] | None) -> list[str]:
    """Return the tags that all lists of a file get, as the file spells them.

    These are the `known` tags of the photograph, by default all of its `own`.
    """
    if known is None:
        return list(own)
    known = list(known)
    wanted = set(map(fold, known))
    return [*known, *(tag for tag in own if fold(tag) in wanted)]


def missing_values(
    field: Field, existing: Sequence[str], new: Sequence[str], others: Iterable[str]
) -> list[str]:
    """Return the texts to add to a property for new tags, and for `others` of the photograph.

    Others keep their decomposed letters, because other programs would show another composition as a
    second tag. Properties that tagkin does not make get nothing if they have no `existing` tags.
    """
    if not existing and not field.is_made:
        return []
    others = list(others)
    spellings = {tidy(tag): tag for tag in others if normalize("NFC", tag) == tidy(tag)}
    wanted = merge_tags([*others, *new])
    wanted.sort(key=lambda tag: tag in new)  # new tags come last
    key = last_level if field.local == "subject" else str
    missing = (tag for tag in wanted if not has_tag(existing, key(tag)))
    return first_spellings(_field_value(field, spellings.get(tag, tag)) for tag in missing)


def values_of_tags(existing: FieldTags, tags: Iterable[str]) -> list[tuple[str, str]]:
    """Return the properties and texts that spell tags, each as often as it is there."""
    tags = list(tags)
    wanted, names = set(map(fold, tags)), {fold(last_level(tag)) for tag in tags}
    listed = [fold(tag) for f in FIELDS if f.local != "subject" for tag in existing[f]]
    names |= _repeated_parents(set(map(fold, existing[SUBJECT])), listed, wanted)
    return [
        (field.name, field.spell(tag))
        for field in FIELDS
        for tag in existing[field]
        if fold(tag) in wanted or (field is SUBJECT and fold(tag) in names)
    ]


def _repeated_parents(
    subjects: set[str], listed: Sequence[str], dropped: Collection[str]
) -> set[str]:
    """Return the parents of dropped tags that ``dc:subject`` only repeats, as darktable does."""
    parents = [set(tag.split("|")[:-1]) for tag in listed if tag in dropped]
    kept = [tag.split("|") for tag in listed if tag not in dropped]
    repeated = set().union(*(levels for levels in parents if levels <= subjects))
    return repeated.difference(*kept)


def marked_values(added: Iterable[tuple[str, str]], tags: Collection[str]) -> list[tuple[str, str]]:
    """Return the added texts that spell one of the tags, which a mark names with their parents.

    A new property also got other tags of the photograph; these are a person's.
    """
    whole, names = set(map(fold, tags)), {fold(last_level(tag)) for tag in tags}
    spelled = {f.name: whole | names if f.local == "subject" else whole for f in FIELDS}
    read = {field.name: field.read for field in FIELDS}
    return [
        (name, value)
        for name, value in added
        if name not in read or fold(read[name](value)) in spelled[name]
    ]


def values_to_remove(
    existing: FieldTags, added: Iterable[tuple[str, str]]
) -> dict[str, Counter[str]]:
    """Return the texts to remove from each property by name, and how often.

    A text that another program spells in another case now is removed in that spelling. The last
    level of a written tag stays in ``dc:subject`` if a remaining tag ends in it.
    """
    fields = {field.name: field for field in (*FIELDS, PROVENANCE)}
    values: dict[str, Counter[str]] = {name: Counter() for name in fields}
    for name, value in added:
        if name in fields:
            text = _respell(fields[name].tidy(value), fields[name], existing)
            values[name][text] += 1
    written = {fold(last_level(tag)) for tag in values[PROVENANCE.name]}
    last_levels: set[str] = set()
    for field in FIELDS:  # dc:subject is the last field
        wanted = values[field.name]
        if field.local == "subject":
            for value in [v for v in wanted if fold(v) in last_levels & written]:
                wanted.pop(value)
        left = Counter(existing[field])
        left.subtract({tidy(field.read(value)): n for value, n in wanted.items()})
        last_levels |= {fold(last_level(tag)) for tag, n in left.items() if n > 0}
    return values


def _respell(text: str, field: Field, existing: FieldTags) -> str:
    """Return the text of a tag as a property spells it now."""
    tag, tags = field.read(text), existing.get(field, ())
    same = (other for other in tags if fold(other) == fold(tag))
    return text if tag in tags else field.spell(next(same, tag))
