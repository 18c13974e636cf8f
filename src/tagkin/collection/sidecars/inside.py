"""The keywords inside a photograph, and exiftool's arguments to read and change them.

Tags go into XMP. A photograph with IPTC keywords gets the new tags in both, because some programs
read IPTC first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tagkin.collection.levels import first_spellings, fold, last_level, merge_tags, tidy
from tagkin.collection.sidecars.editing import Added
from tagkin.collection.sidecars.tag_fields import (
    PROVENANCE,
    FieldTags,
    missing_values,
    spell_values,
    tags_to_spread,
    tidy_fields,
    values_of_tags,
    values_to_remove,
)
from tagkin.collection.tag_lists import IPTC, WINDOWS
from tagkin.collection.xmp import FIELDS, SUBJECT, Field

__all__ = ["READING", "Inside", "drop_mark", "forget_tags", "mark_tags"]

_GROUPS = {"MicrosoftPhoto": "XMP-microsoft"}  # others are XMP- and the prefix
_LONGEST = 64  # bytes of an IPTC keyword
_MARK = "\x1f"  # before each value, because exiftool's JSON has true for the keyword "TRUE"


def _name(field: Field) -> str:
    group = _GROUPS.get(field.prefix, f"XMP-{field.prefix}")
    return f"{group}:{field.local[0].upper()}{field.local[1:]}"


_NAMES = {field.name: _name(field) for field in FIELDS}  # as exiftool has them
READING = (
    *("-j", "-G1", "-api", "Filter=$_ = chr(31).$_ unless ref $_"),
    *(f"-{name}" for name in _NAMES.values()),
    *("-IFD0:XPKeywords", "-IPTC:all", "-Photoshop:IPTCDigest", "-File:CurrentIPTCDigest"),
)
"""Arguments of exiftool; `Inside.of` parses its output."""


@dataclass(frozen=True)
class Inside:
    """The keywords in a photograph."""

    spellings: FieldTags
    """The tags in each property of XMP, as they are spelled there."""
    iptc: list[str]
    """The IPTC keywords."""
    is_utf8: bool
    """Whether its IPTC is UTF-8."""
    is_declared: bool
    """Whether its IPTC declares a character set."""
    has_digest: bool
    """Whether a digest confirms that IPTC and XMP agree."""
    windows: list[str]
    """The keywords that Windows wrote."""

    @classmethod
    def of(cls, output: str) -> Inside:
        """Parse the output of exiftool for `READING`."""
        (metadata,) = json.loads(output, parse_float=str, parse_int=str)
        spellings = {f: [f.read(word) for word in _words(metadata, _NAMES[f.name])] for f in FIELDS}
        is_declared = "IPTC:CodedCharacterSet" in metadata
        iptc = _words(metadata, IPTC)
        if is_declared:
            is_utf8 = _words(metadata, "IPTC:CodedCharacterSet") == ["UTF8"]
        else:
            keys = (key for key in metadata if key.startswith("IPTC:"))
            is_utf8 = None not in (
                _from_latin(word) for key in keys for word in _words(metadata, key)
            )
            iptc = [_from_latin(word) or word for word in iptc] if is_utf8 else iptc
        digest = metadata.get("Photoshop:IPTCDigest")
        has_digest = digest is not None and digest == metadata.get("File:CurrentIPTCDigest")
        windows = [word for text in _words(metadata, "IFD0:XPKeywords") for word in text.split(";")]
        return cls(spellings, iptc, is_utf8, is_declared, has_digest, windows)

    @cached_property
    def fields(self) -> FieldTags:
        """The tags in each property of XMP, normalized."""
        return tidy_fields(self.spellings)

    @property
    def tags(self) -> list[str]:
        """The tags in XMP, each once."""
        return merge_tags(tag for tags in self.fields.values() for tag in tags)

    def missing(self, new: Sequence[str], known: Iterable[str] | None) -> Added:
        """Return the properties and texts to add for new tags; `known` is as in `with_tags`."""
        own = [tag for tags in self.spellings.values() for tag in tags]
        others = tags_to_spread(own, known)
        values = {f: missing_values(f, self.fields[f], new, others) for f in FIELDS}
        added = [(field.name, value) for field in FIELDS for value in values[field]]
        names = [last_level(tag) for tag in merge_tags([*others, *new])]
        if self.iptc:
            there = set(map(fold, self.iptc))
            words = first_spellings(map(self._shorten, names))
            added += [(IPTC, word) for word in words if fold(word) not in there]
        if self.windows:
            there = set(map(fold, self.windows))
            added += [(WINDOWS, name) for name in first_spellings(names) if fold(name) not in there]
        return tuple(dict.fromkeys(added))

    def values_of(self, tags: Iterable[str]) -> Added:
        """Return the properties and texts to remove for tags, with a mark for each tag.

        A text stays if another tag needs it.
        """
        tags = list(map(tidy, tags))
        marks = [(PROVENANCE.name, tag) for tag in tags]
        values = [*values_of_tags(self.fields, tags), *marks]
        to_remove = values_to_remove(self.fields, values)
        removed = spell_values(self.spellings, to_remove)
        kept = {fold(w) for w in self.fields[SUBJECT] if w not in to_remove[SUBJECT.name]}
        names = [name for name in map(last_level, tags) if fold(name) not in kept]
        short = {fold(self._shorten(name)) for name in names}
        removed += [(IPTC, word) for word in self.iptc if fold(word) in short]
        last_levels = set(map(fold, names))
        removed += [(WINDOWS, word) for word in self.windows if fold(word) in last_levels]
        return (*removed, *marks) if removed else ()

    def without(self, removed: Added) -> Inside:
        """Return the keywords without removed texts of XMP and Windows."""
        texts = {
            (field, tidy(field.read(v))) for field in FIELDS for n, v in removed if n == field.name
        }
        spellings = {
            f: [tag for tag in tags if (f, tidy(tag)) not in texts]
            for f, tags in self.spellings.items()
        }
        windows = [word for word in self.windows if (WINDOWS, word) not in removed]
        return replace(self, spellings=spellings, windows=windows)

    def holds(self, name: str, value: str) -> bool:
        """Whether a property has a text."""
        if name in (IPTC, WINDOWS):
            return value in (self.iptc if name == IPTC else self.windows)
        fields = [field for field in FIELDS if field.name == name]
        return any(tidy(field.read(value)) in self.fields[field] for field in fields)

    def has(self, added: Added) -> bool:
        """Whether all added IPTC keywords are here."""
        return {word for name, word in added if name == IPTC} <= set(self.iptc)

    def additions(self, added: Added) -> list[str]:
        """Return exiftool's arguments that add these texts."""
        changes = [f"-{_NAMES[name]}+={value}" for name, value in added if name in _NAMES]
        windows = [word for name, word in added if name == WINDOWS]
        changes += _set_windows([*self.windows, *windows]) if windows else []
        words = [word for name, word in added if name == IPTC]
        if not self.is_utf8 and any(_bytes_in_latin(word) is None for word in words):
            # rewrite all IPTC text in UTF-8; assigned keywords join the copied keywords
            changes += ["-tagsFromFile", "@", "-IPTC:all", "-IPTC:CodedCharacterSet=UTF8"]
            changes += [f"-{IPTC}={word}" for word in words]
        else:
            changes += [f"-{IPTC}+={word}" for word in words]
            if self.is_utf8 and not self.is_declared and not "".join(words).isascii():
                changes += ["-charset", "iptc=UTF8", "-IPTC:CodedCharacterSet=UTF8"]
        return changes + (["-IPTCDigest=new"] if words and self.has_digest else [])

    def removals(self, added: Added) -> list[str]:
        """Return exiftool's arguments that remove added texts that are still there."""
        to_remove = values_to_remove(self.fields, [pair for pair in added if pair[0] != IPTC])
        values = dict.fromkeys(spell_values(self.spellings, to_remove))
        changes = [f"-{_NAMES[name]}-={value}" for name, value in values]
        subjects = [w for w in self.fields[SUBJECT] if w not in to_remove["dc:subject"]]
        ours = {word for name, word in added if name == IPTC} - set(map(self._shorten, subjects))
        words = [word for word in self.iptc if word in ours]
        changes += [f"-{IPTC}-={word}" for word in words]
        windows = [word for word in self.windows if (WINDOWS, word) not in added]
        changes += _set_windows(windows) if windows != self.windows else []
        if words and self.is_utf8 and not self.is_declared:
            changes += ["-charset", "iptc=UTF8"]
        return changes + (["-IPTCDigest=new"] if words and self.has_digest else [])

    def _shorten(self, word: str) -> str:
        """Cut a word to the bytes that fit into IPTC."""
        data = None if self.is_utf8 else _bytes_in_latin(word)
        if data is not None:
            return word[:_LONGEST]
        return word.encode()[:_LONGEST].decode("utf-8", "ignore")


_WRITTEN = "XMP-tagkin:Written"  # see exiftool.config


def mark_tags(tags: Iterable[str], mark: str) -> list[str]:
    """Return exiftool's arguments that record written tags in ``tagkin:Written``."""
    return [f"-{_WRITTEN}+={{Tag={_escape(tag)},Run={mark}}}" for tag in tags]


def drop_mark(mark: str) -> list[str]:
    """Return exiftool's arguments that remove the records of a write."""
    return [f"-{_WRITTEN}-={{Run={mark}}}"]


def forget_tags(removed: Added) -> list[str]:
    """Return exiftool's arguments that remove the records of removed tags."""
    tags = [tag for name, tag in removed if name == PROVENANCE.name]
    return [f"-{_WRITTEN}-={{Tag={_escape(tag)}}}" for tag in tags]


def _escape(text: str) -> str:
    """Escape the characters that end a value in a structure of exiftool."""
    return "".join(f"|{char}" if char in "|,{}[]" else char for char in text)


def _set_windows(words: Sequence[str]) -> list[str]:
    return [f"-IFD0:XPKeywords={';'.join(words)}"]


def _words(metadata: Mapping[str, object], key: str) -> list[str]:
    """Return the texts of a metadata tag, which may be missing, a text or a list."""
    value = metadata.get(key, [])
    words = value if isinstance(value, list) else [value]
    return [str(word).removeprefix(_MARK) for word in words]


def _bytes_in_latin(word: str) -> bytes | None:
    """Encode a text in windows-1252, which exiftool calls Latin; None if that is impossible."""
    undefined = "\x81\x8d\x8f\x90\x9d"
    try:
        return b"".join(char.encode("latin-1" if char in undefined else "cp1252") for char in word)
    except UnicodeEncodeError:
        return None


def _from_latin(text: str) -> str | None:
    """Return UTF-8 text that exiftool read as Latin; None if it is Latin."""
    data = _bytes_in_latin(text)
    try:
        return None if data is None else data.decode("utf-8")
    except UnicodeDecodeError:
        return None
