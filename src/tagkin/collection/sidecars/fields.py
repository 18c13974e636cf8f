"""What each property of a sidecar says of a tag, and what tagkin's own says of what it wrote."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tagkin.collection.levels import last_level, merged, tidy
from tagkin.collection.xmp import FIELDS, Field, descriptions, items_of, value_of
from tagkin.errors import InvalidInput

__all__ = [
    "PROVENANCE",
    "Provenance",
    "WrittenTag",
    "checked_tags",
    "field_tags",
    "field_value",
    "going_values",
    "has_tag",
    "missing_values",
    "written_tags",
]

PROVENANCE = Field("tagkin", "Written", "tagkin:ns/1.0/", "|", "Bag")
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True)
class Provenance:
    """Who says that tags are right.

    Attributes
    ----------
    run : str
        The run that writes them, as the history of tagkin names it.
    confidence : mapping of str to float
        How sure tagkin was of a tag, a probability; tags that a person gave have none.
    """

    run: str
    confidence: Mapping[str, float] = dataclasses.field(default_factory=dict)

    def of(self, tag: str) -> WrittenTag:
        """What it says of one tag."""
        return WrittenTag(tag, self.run, self.confidence.get(tag))


@dataclass(frozen=True)
class WrittenTag:
    """A tag in a sidecar that tagkin wrote, the run, and how sure it was."""

    tag: str
    run: str
    confidence: float | None = None

    def properties(self) -> dict[str, str]:
        """What the sidecar says of it, by the names there."""
        said = {"Tag": self.tag, "Run": self.run}
        if self.confidence is not None:
            said["Confidence"] = f"{self.confidence:.3f}"
        return said


def written_tags(root: Any) -> Iterator[tuple[Any, WrittenTag]]:
    """The items of a sidecar that say what tagkin wrote, and what they say.

    Other programs may write a structure in its long form: its parts as elements.
    """
    for description in descriptions(root):
        for found in description.findall(PROVENANCE.tag):
            for item in items_of(found):
                said = {
                    name: item.get(f"{{{PROVENANCE.uri}}}{name}")
                    or item.findtext(f".//{{{PROVENANCE.uri}}}{name}")
                    for name in ("Tag", "Run", "Confidence")
                }
                if said["Tag"]:
                    sure = _number(said["Confidence"])
                    yield item, WrittenTag(said["Tag"], said["Run"] or "", sure)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def checked_tags(tags: Iterable[str]) -> list[str]:
    """Tags in one spelling, each once.

    Raises
    ------
    InvalidInput
        If one is empty, or has a character that XML cannot hold.
    """
    tags = list(tags)
    for tag in tags:
        if not tidy(tag):
            raise InvalidInput(f"The tag {tag!r} is empty. Leave it out.")
        if _NOT_IN_XML.search(tidy(tag)):
            raise InvalidInput(
                f"The tag {tag!r} has a character that no XMP can hold. Rename the tag."
            )
    return merged(tags)


def field_tags(root: Any, field: Field) -> list[str]:
    """The tags that one property has, with their levels."""
    words = [d.attrib[field.tag] for d in descriptions(root) if field.tag in d.attrib]
    for description in descriptions(root):
        for found in description.findall(field.tag):
            words += [value_of(item) for item in items_of(found) or [found]]
    return [tag for tag in (tidy(field.read(word)) for word in words) if tag]


def field_value(field: Field, tag: str) -> str | None:
    """A tag as a property has it; None where it cannot have it."""
    if field.local == "subject":
        return last_level(tag)
    if field.separator == "|":
        return tag
    return None if field.separator in tag else tag.replace("|", field.separator)


def has_tag(tags: Iterable[str], tag: str) -> bool:
    """Whether a tag is among others, or is the last level of one of them."""
    tags = set(tags)
    return tag in tags or tag in {last_level(one) for one in tags}


def missing_values(
    field: Field, there: Sequence[str], new: Sequence[str], others: Iterable[str]
) -> list[str]:
    """What a property has to get: the new tags, or all of them where it is made.

    Parameters
    ----------
    field : Field
    there : sequence of str
        The tags that it has.
    new : sequence of str
        Tags to be added.
    others : iterable of str
        Tags that the photograph has in other properties or elsewhere.
    """
    wanted = merged([*others, *new])
    wanted.sort(key=lambda tag: tag in new)  # those that were there come first
    values = [(tag, field_value(field, tag)) for tag in (new if there else wanted)]
    if not there and any(value is None for _, value in values):
        return []  # a list without some of the tags would hide them
    looked_for = last_level if field.local == "subject" else str
    missing = (v for tag, v in values if v is not None and not has_tag(there, looked_for(tag)))
    return list(dict.fromkeys(missing))


def going_values(
    there: Mapping[Field, Sequence[str]], added: Iterable[tuple[str, str]]
) -> dict[str, Counter[str]]:
    """What has to be taken out of each property, by its name, and how often.

    The last level of a tag that was written stays in ``dc:subject`` where another tag that is
    there now ends in it.
    """
    going: dict[str, Counter[str]] = {field.name: Counter() for field in (*FIELDS, PROVENANCE)}
    for name, value in added:
        if name in going:  # a catalogue may name a property that tagkin does not write
            going[name][tidy(value)] += 1
    written = {last_level(tag) for tag in going[PROVENANCE.name]}
    ends: set[str] = set()
    for field in FIELDS:  # dc:subject is the last of them
        wanted = going[field.name]
        if field.local == "subject":
            for value in ends & written:
                wanted.pop(value, None)
        left = Counter(there[field])
        left.subtract({tidy(field.read(value)): n for value, n in wanted.items()})
        ends |= {last_level(tag) for tag, n in left.items() if n > 0}
    return going
