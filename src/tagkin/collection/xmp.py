"""Keywords and facts in XMP packets inside photographs and in sidecars."""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from lxml import etree

from tagkin.collection.facts import FACTS, XMP_NAMESPACES, Facts, read_xmp
from tagkin.collection.levels import tidy
from tagkin.images.image_files import amount, one_line

__all__ = [
    "FIELDS",
    "MAX_BYTES",
    "RDF",
    "SUBJECT",
    "TAGKIN",
    "Field",
    "NotXml",
    "Packet",
    "decode",
    "descriptions",
    "field_words",
    "items_of",
    "lists_of",
    "parse",
    "read_packet",
    "value_of",
]

MAX_BYTES = 8 << 20  # of a packet or a sidecar; usually far less
_MAX_ATTRIBUTES = 5_000  # of an element; sorting them takes long, and Lightroom has hundreds
_MAX_MARKUP = 200_000  # elements and attributes; 10,000 keywords in every field need 60,000
_LARGE = 1 << 20  # bytes; larger packets are searched for names of fields before parsing
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TAGKIN = "tagkin:ns/1.0/"  # the namespace of tagkin's own property
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True)
class Field:
    """An XMP property that holds keywords."""

    prefix: str
    local: str
    uri: str
    """The namespace of the prefix."""
    separator: str
    """Separates the levels of a keyword."""
    container: str
    """The kind of list that programs make for it: "Bag" or "Seq"."""
    is_made: bool = True
    """Whether tagkin adds the property to a file without it."""

    @property
    def name(self) -> str:
        """The usual name, such as ``dc:subject``."""
        return f"{self.prefix}:{self.local}"

    @property
    def tag(self) -> str:
        """The name in lxml, such as ``{namespace}subject``."""
        return f"{{{self.uri}}}{self.local}"

    def read(self, word: str) -> str:
        """Return a keyword with ``|`` between its levels.

        A level of ``digiKam:TagsList`` has ``|`` for ``/``, as Immich writes it.
        """
        return word.translate(str.maketrans(f"{self.separator}|", f"|{self.separator}"))

    def spell(self, tag: str) -> str:
        """Return the text of a tag in this property; the inverse of `read`."""
        return self.read(tag)

    def tidy(self, word: str) -> str:
        """Return a keyword of this property with normalized levels."""
        return self.spell(tidy(self.read(word)))


_WINDOWS, _BAG = ("MicrosoftPhoto", "LastKeywordXMP"), ("Bag", False)
FIELDS = (
    Field("lr", "hierarchicalSubject", "http://ns.adobe.com/lightroom/1.0/", "|", "Bag"),
    Field("digiKam", "TagsList", "http://www.digikam.org/ns/1.0/", "/", "Seq"),
    Field(*_WINDOWS, "http://ns.microsoft.com/photo/1.0/", "/", *_BAG),
    Field(*_WINDOWS, "http://ns.microsoft.com/photo/1.0", "/", *_BAG),  # as exiftool writes it
    Field(*("mediapro", "CatalogSets", "http://ns.iview-multimedia.com/mediapro/1.0/", "|"), *_BAG),
    Field("dc", "subject", "http://purl.org/dc/elements/1.1/", "|", "Bag"),
)
SUBJECT = FIELDS[-1]


Element: TypeAlias = Any
"""An element of lxml, which has no public name for its type."""


class NotXml(Exception):
    """The text is not well-formed XML; the message says where."""


class _Refused(NotXml):
    """The text was not parsed, well-formed or not."""


# --- parsing -----------------------------------------------------------------------------

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
# encodings in which the declaration itself reads like ASCII
_KNOWN = re.compile(r"(?i)utf-?8|(us-)?ascii|iso-8859|windows-|cp\d|koi8|shift_jis|euc-|gb|big5")
# possessive and atomic, so no text is searched twice
_DOCUMENT_TYPE = re.compile(r"(?>\s+|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE", re.DOTALL)


def decode(data: bytes) -> tuple[str, bytes, str]:
    """Return the text of an XML file, its byte order mark, and its encoding.

    Raises `NotXml` if the bytes are not valid in the encoding of the mark, or the declared one, or
    UTF-8.
    """
    marks = [pair for pair in _MARKS if data.startswith(pair[0])]
    mark, encoding = marks[0] if marks else (b"", _detect_encoding(data))
    try:
        return data[len(mark) :].decode(encoding), mark, encoding
    except LookupError as error:
        raise NotXml(f"its encoding {encoding} is unknown") from error
    except UnicodeDecodeError as error:
        at = error.start + len(mark)
        raise NotXml(f"byte {at + 1:,} is not {encoding.upper()}") from error


def _detect_encoding(data: bytes) -> str:
    """Return the encoding of a file without a mark: UTF-8 if its bytes are valid, else as declared.

    Some programs declare another encoding and write UTF-8. Text in another encoding is hardly ever
    valid UTF-8.
    """
    declared = _DECLARED.match(data)
    name = declared[1].decode() if declared else "utf-8"
    if name.lower().startswith(("utf-16", "utf-32", "ucs-")):
        return "utf-8"  # the declaration is wrong, because it was read as ASCII
    if not _KNOWN.match(name):
        raise NotXml(f"its encoding {name} is unknown")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return name
    return "utf-8"


def parse(text: str) -> Element:
    """Parse XML and return its root element.

    Document types are rejected: XMP does not use them, and their entities can exhaust memory or
    name other files. Elements deeper than 256 levels, more than 5,000 attributes of an element, and
    more than 200,000 elements and attributes are rejected as well. All of these raise `NotXml`.
    """
    if _DOCUMENT_TYPE.match(text):
        fault = "declares entities" if "<!ENTITY" in text else "has a document type"
        raise _Refused(f"{fault} and was not read")
    if text.count("<") + (text.count('"') + text.count("'")) // 2 > _MAX_MARKUP:
        raise _Refused(f"has more than {_MAX_MARKUP:,} elements and was not read")
    parser = etree.XMLParser(
        encoding="utf-8",  # the text is decoded already, whatever it declares
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        strip_cdata=False,
    )
    try:
        root = etree.fromstring(text.encode("utf-8"), parser)
    except etree.XMLSyntaxError as error:
        raise NotXml(one_line(f"{error.msg}")) from error
    except UnicodeEncodeError as error:
        raise NotXml(f"{error.object[error.start]!r} is not a character") from error
    if any(len(element.attrib) > _MAX_ATTRIBUTES for element in root.iter(etree.Element)):
        raise _Refused(
            f"has an element with more than {_MAX_ATTRIBUTES:,} attributes and was not read"
        )
    return root


# --- reading -----------------------------------------------------------------------------


class Packet(NamedTuple):
    """What a packet or a sidecar says about its photograph."""

    lists: dict[str, list[str]]
    """The keywords in each property, see `lists_of`."""
    facts: Facts
    problem: str | None = None
    """Why it was not read; None if it was."""


def read_packet(packet: bytes) -> Packet:
    """Read the keywords and facts of a packet.

    XML that is not well-formed is not read. A packet larger than `MAX_BYTES` is not read, either;
    that is no problem if it has no field of keywords, such as a second picture from a telephone.
    """
    if len(packet) > _LARGE and not any(name in packet for name in _field_names()):
        return Packet({}, {})
    if len(packet) > MAX_BYTES:
        return Packet({}, {}, f"its XMP is more than {amount(MAX_BYTES)} and was not read")
    text = _packet_text(packet)
    if not text:
        return Packet({}, {}, "its XMP is not XML" if packet.strip(b"\0 \t\r\n") else None)
    try:
        root = parse(text)
    except _Refused as error:
        return Packet({}, {}, f"its XMP {error}")
    except NotXml as error:
        return Packet({}, {}, f"its XMP is not well-formed ({error}) and was not read")
    return Packet(lists_of(root), read_xmp(_properties_of(root)))


def _packet_text(packet: bytes) -> str:
    """Return the XML in a packet, without characters that XML does not allow."""
    text = _NOT_XML.sub("", _decode_leniently(packet))
    return text[max(0, text.find("<")) : text.rfind(">") + 1]


@functools.cache
def _field_names() -> list[bytes]:
    """Return the names of fields in every encoding of packets."""
    return [field.local.encode(encoding) for field in FIELDS for _, encoding in _MARKS]


def _decode_leniently(packet: bytes) -> str:
    """Return the text of a packet, with replacements for invalid bytes."""
    try:
        return decode(packet)[0]
    except NotXml:
        marks = [encoding for mark, encoding in _MARKS if packet.startswith(mark)]
        return packet.decode(marks[0] if marks else "latin-1", "replace")


def lists_of(root: Element) -> dict[str, list[str]]:
    """Return the keywords of the photograph in each property that is there, with ``|`` for levels.

    Keywords of its regions or earlier versions are omitted.
    """
    lists: dict[str, list[str]] = {}
    for description in descriptions(root):
        for field in FIELDS:
            if field.tag in description.attrib or description.find(field.tag) is not None:
                words = map(field.read, field_words(description, field))
                lists.setdefault(field.name, []).extend(words)
    return lists


def _properties_of(root: Element) -> dict[str, str]:
    """Return the texts of the properties that hold facts, by name; the first of each counts."""
    texts: dict[str, str] = {}
    for description in descriptions(root):
        for name, tag in _fact_tags():
            element = description.find(tag)
            if tag in description.attrib:
                texts.setdefault(name, description.attrib[tag])
            elif element is not None:
                texts.setdefault(name, value_of(next(iter(items_of(element)), element)))
    return texts


@functools.cache
def _fact_tags() -> list[tuple[str, str]]:
    """Return the names of the properties that hold facts, and their names in lxml."""
    names = {name for fact in FACTS if fact.xmp for name in fact.xmp.keys}
    parts = [(name, *name.split(":")) for name in sorted(names)]
    return [(name, f"{{{XMP_NAMESPACES[prefix]}}}{local}") for name, prefix, local in parts]


def field_words(description: Element, field: Field) -> Iterator[str]:
    """Yield the texts of a property in a description, an attribute first."""
    if field.tag in description.attrib:
        yield description.attrib[field.tag]
    for element in description.findall(field.tag):
        yield from map(value_of, items_of(element) or [element])


def descriptions(root: Element) -> Iterator[Element]:
    """Yield the elements that hold the properties of the photograph."""
    for rdf in _outermost(root, f"{{{RDF}}}RDF"):
        yield from rdf.iterchildren(etree.Element)


def items_of(element: Element) -> list[Element]:
    """Return the items of a property that is a list of any kind, without nested items."""
    return list(_outermost(element, f"{{{RDF}}}li"))


def _outermost(top: Element, tag: str) -> Iterator[Element]:
    """Yield `top` and elements below it with that tag, without nested ones."""
    left = [top]
    while left:
        node = left.pop()
        if node.tag == tag:
            yield node
        else:
            left += reversed(node)


def value_of(item: Element) -> str:
    """Return the text of an item or of a single property, with or without qualifiers."""
    value = f"{{{RDF}}}value"
    inside = (node.get(value) for node in item.iter(etree.Element))
    qualified = next(item.iter(value), item)
    return next((text for text in inside if text), None) or _text(qualified)


def _text(node: Element) -> str:
    """Return the text before the first child element, without comments."""
    parts = [node.text]
    for child in node:
        if isinstance(child.tag, str):
            break
        parts.append(child.tail)
    return "".join(filter(None, parts))
