"""The keywords inside a photograph, as exiftool reads them, and how it is told to change them.

Tags go into XMP. A photograph that has IPTC keywords, too, gets the new tags in both: programs that
read IPTC first would not see them otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tagkin.collection.levels import last_level, merged, tidy
from tagkin.collection.sidecars.editing import Added
from tagkin.collection.sidecars.fields import going_values, missing_values
from tagkin.collection.xmp import FIELDS, Field

__all__ = ["READING", "Inside"]

_IPTC = "IPTC:Keywords"
_GROUPS = {"dc": "XMP-dc", "lr": "XMP-lr", "digiKam": "XMP-digiKam"}
_LONGEST = 64  # bytes of an IPTC keyword
_MARK = "\x1f"  # before each value: JSON of exiftool has true for the keyword "TRUE"
_SUBJECT = next(field for field in FIELDS if field.local == "subject")


def _name(field: Field) -> str:
    return f"{_GROUPS[field.prefix]}:{field.local[0].upper()}{field.local[1:]}"


READING = (
    *("-j", "-G1", "-api", "Filter=$_ = chr(31).$_ unless ref $_"),
    *(f"-{_name(field)}" for field in FIELDS),
    *("-IPTC:all", "-Photoshop:IPTCDigest", "-File:CurrentIPTCDigest"),
)
"""Arguments for exiftool; `Inside.of` understands what it says."""


@dataclass(frozen=True)
class Inside:
    """The keywords in a photograph.

    Attributes
    ----------
    fields : dict
        The tags in each property of XMP.
    iptc : list of str
        The IPTC keywords.
    is_utf8, is_declared : bool
        Whether its IPTC is UTF-8, and whether it says so.
    has_digest : bool
        Whether a digest says that IPTC and XMP are in step.
    """

    fields: dict[Field, list[str]]
    iptc: list[str]
    is_utf8: bool
    is_declared: bool
    has_digest: bool

    @classmethod
    def of(cls, said: str) -> Inside:
        """What exiftool says to `READING`."""
        (found,) = json.loads(said, parse_float=str, parse_int=str)
        fields = {
            field: [t for t in (tidy(field.read(w)) for w in _words(found.get(_name(field)))) if t]
            for field in FIELDS
        }
        is_declared = "IPTC:CodedCharacterSet" in found
        iptc = _words(found.get(_IPTC))
        if is_declared:
            is_utf8 = _words(found["IPTC:CodedCharacterSet"]) == ["UTF8"]
        else:
            texts = [w for key in found if key.startswith("IPTC:") for w in _words(found[key])]
            is_utf8 = None not in map(_from_latin, texts)
            iptc = [_from_latin(word) or word for word in iptc] if is_utf8 else iptc
        digest = found.get("Photoshop:IPTCDigest")
        has_digest = digest is not None and digest == found.get("File:CurrentIPTCDigest")
        return cls(fields, iptc, is_utf8, is_declared, has_digest)

    @property
    def tags(self) -> list[str]:
        """The tags in XMP, each once."""
        return merged(tag for some in self.fields.values() for tag in some)

    def missing(self, new: Sequence[str], known: Iterable[str]) -> Added:
        """What new tags need, as properties and values; `known` is as in `with_tags`."""
        others = [*known, *self.tags]
        values = {f: missing_values(f, self.fields[f], new, others) for f in FIELDS}
        added = [(field.name, value) for field in FIELDS for value in values[field]]
        if self.iptc:
            ends = dict.fromkeys(self._shortened(last_level(tag)) for tag in new)
            added += [(_IPTC, word) for word in ends if word not in self.iptc]
        return tuple(added)

    def has(self, added: Added) -> bool:
        """Whether all IPTC keywords that were to be added are here."""
        return {word for name, word in added if name == _IPTC} <= set(self.iptc)

    def additions(self, added: Added) -> list[str]:
        """What exiftool is told to put in."""
        names = {field.name: _name(field) for field in FIELDS}
        changes = [f"-{names[name]}+={value}" for name, value in added if name in names]
        words = [word for name, word in added if name == _IPTC]
        if not self.is_utf8 and any(_bytes_in_latin(word) is None for word in words):
            # all of its text is written anew, in UTF-8; what is assigned joins the keywords copied
            changes += ["-tagsFromFile", "@", "-IPTC:all", "-IPTC:CodedCharacterSet=UTF8"]
            changes += [f"-{_IPTC}={word}" for word in words]
        else:
            changes += [f"-{_IPTC}+={word}" for word in words]
            if self.is_utf8 and not self.is_declared and not "".join(words).isascii():
                changes += ["-charset", "iptc=UTF8", "-IPTC:CodedCharacterSet=UTF8"]
        return changes + (["-IPTCDigest=new"] if words and self.has_digest else [])

    def removals(self, added: Added) -> list[str]:
        """What exiftool is told to take out of what was added, as far as it is there."""
        going = going_values(self.fields, [pair for pair in added if pair[0] != _IPTC])
        changes = [
            f"-{_name(field)}-={word}"
            for field in FIELDS
            for word in going[field.name]
            if tidy(field.read(word)) in self.fields[field]
        ]
        staying = {
            self._shortened(w) for w in self.fields[_SUBJECT] if w not in going["dc:subject"]
        }
        ours = {word for name, word in added if name == _IPTC} - staying
        words = [word for word in self.iptc if word in ours]
        changes += [f"-{_IPTC}-={word}" for word in words]
        if words and self.is_utf8 and not self.is_declared:
            changes += ["-charset", "iptc=UTF8"]
        return changes + (["-IPTCDigest=new"] if words and self.has_digest else [])

    def _shortened(self, word: str) -> str:
        """A word in the bytes that IPTC has for it."""
        data = None if self.is_utf8 else _bytes_in_latin(word)
        if data is not None:
            return word[:_LONGEST]
        return word.encode()[:_LONGEST].decode("utf-8", "ignore")


def _words(value: Any) -> list[str]:
    """The texts of a tag that may be a list."""
    words = value if isinstance(value, list) else [] if value is None else [value]
    return [str(word).removeprefix(_MARK) for word in words]


def _bytes_in_latin(word: str) -> bytes | None:
    """The bytes of a text in windows-1252, which exiftool calls Latin; None if it has none."""
    try:
        return b"".join(
            one.encode("latin-1") if one in _UNDEFINED else one.encode("cp1252") for one in word
        )
    except UnicodeEncodeError:
        return None


_UNDEFINED = "\x81\x8d\x8f\x90\x9d"


def _from_latin(text: str) -> str | None:
    """UTF-8 that exiftool took for Latin; None if it is Latin."""
    data = _bytes_in_latin(text)
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
