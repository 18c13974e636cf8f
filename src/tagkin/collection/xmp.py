"""Keywords in XMP: packets inside photographs, and files beside them."""

from __future__ import annotations

import codecs
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from tagkin.images.files import amount, one_line

__all__ = [
    "FIELDS",
    "MAX_BYTES",
    "RDF",
    "Field",
    "NotXml",
    "decode",
    "descriptions",
    "items_of",
    "keywords_of",
    "parse",
    "value_of",
    "xmp_keywords",
]

MAX_BYTES = 8 << 20  # of a packet or a sidecar; they are far smaller
_MAX_MARKUP = 200_000  # elements and attributes: 10,000 keywords in every field are 60,000
_LARGE = 1 << 20  # bytes of a packet that is first looked through for names of fields
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True)
class Field:
    """A property that holds keywords.

    Attributes
    ----------
    prefix, local : str
        Its name as everybody writes it, such as ``dc`` and ``subject``.
    uri : str
        The namespace that the prefix stands for.
    separator : str
        What parts the levels of a keyword.
    container : str
        The kind of list that its programs make: "Bag" or "Seq".
    """

    prefix: str
    local: str
    uri: str
    separator: str
    container: str

    @property
    def name(self) -> str:
        """The name as everybody writes it: ``dc:subject``."""
        return f"{self.prefix}:{self.local}"

    @property
    def tag(self) -> str:
        """The name as lxml has it: ``{namespace}subject``."""
        return f"{{{self.uri}}}{self.local}"

    def read(self, word: str) -> str:
        """A keyword with its levels parted by ``|``."""
        return word if self.separator == "|" else word.replace(self.separator, "|")


FIELDS = (
    Field("lr", "hierarchicalSubject", "http://ns.adobe.com/lightroom/1.0/", "|", "Bag"),
    Field("digiKam", "TagsList", "http://www.digikam.org/ns/1.0/", "/", "Seq"),
    Field("dc", "subject", "http://purl.org/dc/elements/1.1/", "|", "Bag"),
)


class NotXml(Exception):
    """What was to be parsed is not well-formed; the message says where."""


class _Refused(NotXml):
    """Well-formed or not, it is not parsed."""


# --- parsing -----------------------------------------------------------------------------

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it starts with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
# those in which the declaration itself is readable before they are known
_KNOWN = re.compile(r"(?i)utf-?8|(us-)?ascii|iso-8859|windows-|cp\d|koi8|shift_jis|euc-|gb|big5")
# comments and instructions before it; each is taken whole and never tried again
_DOCUMENT_TYPE = re.compile(r"(?>\s+|<\?.*?\?>|<!--.*?-->)*+<!DOCTYPE", re.DOTALL)


def decode(data: bytes) -> tuple[str, bytes, str]:
    """The text of an XML file, its byte order mark, and its encoding.

    Raises
    ------
    NotXml
        If it is not text in the encoding that it has a mark of, or declares, or else in UTF-8.
    """
    found = [pair for pair in _MARKS if data.startswith(pair[0])]
    mark, encoding = found[0] if found else (b"", _declared(data))
    try:
        return data[len(mark) :].decode(encoding), mark, encoding
    except LookupError as error:
        raise NotXml(f"its encoding {encoding} is not known here") from error
    except UnicodeDecodeError as error:
        at = error.start + len(mark)
        raise NotXml(f"byte {at + 1:,} is not {encoding.upper()}") from error


def _declared(data: bytes) -> str:
    """The encoding of a file without a mark: UTF-8 if its bytes are, else the one it declares.

    Some programs declare another encoding and write UTF-8. Text in another encoding that happens
    to be valid UTF-8 is hardly ever found.
    """
    declared = _DECLARED.match(data)
    name = declared[1].decode() if declared else "utf-8"
    if name.lower().startswith(("utf-16", "utf-32", "ucs-")):
        return "utf-8"  # it cannot be: the declaration could be read
    if not _KNOWN.match(name):
        raise NotXml(f"its encoding {name} is not known here")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return name
    return "utf-8"


def parse(text: str) -> Any:
    """The root element of XML that refers to nothing outside and declares nothing of its own.

    A document type is refused, and with it entities, which can be made to fill the memory or to
    name other files: nobody writes XMP so. Elements deeper than 256 levels are refused as well, and
    so are more than 200,000 elements and attributes, each of which takes a hundred bytes and more.

    Raises
    ------
    NotXml
    """
    if _DOCUMENT_TYPE.match(text):
        what = "declares entities" if "<!ENTITY" in text else "has a document type"
        raise _Refused(f"{what} and was not read")
    if text.count("<") + (text.count('"') + text.count("'")) // 2 > _MAX_MARKUP:
        raise _Refused(f"has more than {_MAX_MARKUP:,} elements and was not read")
    parser = etree.XMLParser(
        encoding="utf-8",  # whatever it declares: it is text already
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        strip_cdata=False,
    )
    try:
        return etree.fromstring(text.encode("utf-8"), parser)
    except etree.XMLSyntaxError as error:
        raise NotXml(one_line(f"{error.msg}")) from error
    except UnicodeEncodeError as error:
        raise NotXml(f"{error.object[error.start]!r} is not a character") from error


# --- reading -----------------------------------------------------------------------------


def xmp_keywords(packet: bytes) -> tuple[list[str], str | None]:
    """The keywords of a packet, levels parted by ``|``, and what is wrong with it, if anything.

    XML that is not well-formed is searched as text for what can be saved. Of a packet larger than
    `MAX_BYTES` nothing is read; large ones without the name of a field, such as those in which
    telephones keep a second picture, have none.
    """
    if len(packet) > _LARGE and not any(name in packet for name in _names_of_fields()):
        return [], None
    if len(packet) > MAX_BYTES:
        return [], f"its XMP is more than {amount(MAX_BYTES)} and was not read"
    text = _NOT_XML.sub("", _decoded(packet))
    text = text[max(0, text.find("<")) : text.rfind(">") + 1]
    if not text:
        return [], None if not packet.strip(b"\0 \t\r\n") else "its XMP is not XML"
    try:
        return list(keywords_of(parse(text))), None
    except _Refused as error:
        return [], f"its XMP {error}"
    except NotXml as error:
        what = f"its XMP is not well-formed ({error}); what could be saved of it was read"
        return list(_from_text(text)), what


@functools.cache
def _names_of_fields() -> list[bytes]:
    """The names of fields in every encoding that a packet can be in."""
    encodings = ("utf-8", *(encoding for _, encoding in _MARKS[:4]))
    return [field.local.encode(encoding) for field in FIELDS for encoding in encodings]


def _decoded(packet: bytes) -> str:
    """The text of a packet, whatever is in it."""
    try:
        return decode(packet)[0]
    except NotXml:
        marks = [encoding for mark, encoding in _MARKS if packet.startswith(mark)]
        return packet.decode(marks[0] if marks else "latin-1", "replace")


def keywords_of(root: Any) -> Iterator[str]:
    """Keywords of the photograph: not those of regions or earlier versions, deeper in the tree."""
    for description in descriptions(root):
        for field in FIELDS:
            if field.tag in description.attrib:
                yield field.read(description.attrib[field.tag])
            for found in description.findall(field.tag):
                yield from (field.read(value_of(item)) for item in items_of(found) or [found])


def descriptions(root: Any) -> Iterator[Any]:
    """The elements that hold the properties of the photograph."""
    for rdf in _outermost(root, f"{{{RDF}}}RDF"):
        yield from rdf.iterchildren(etree.Element)


def items_of(found: Any) -> list[Any]:
    """The items of a property that is a list, of any kind; not items inside of others."""
    return list(_outermost(found, f"{{{RDF}}}li"))


def _outermost(top: Any, tag: str) -> Iterator[Any]:
    """Elements of that name, `top` or below it, that are in no other such element.

    So whoever looks through each of them sees no element twice.
    """
    left = [top]
    while left:
        node = left.pop()
        if node.tag == tag:
            yield node
        else:
            left += reversed(node)


def value_of(item: Any) -> str:
    """The text of an item, or of a property that is no list; qualified or not."""
    value = f"{{{RDF}}}value"
    inside = (node.get(value) for node in item.iter(etree.Element))
    qualified = next(item.iter(value), item)
    return next((text for text in inside if text), None) or _text(qualified)


def _text(node: Any) -> str:
    """The text before the first element in it; comments part it, and are no part of it."""
    parts = [node.text]
    for child in node:
        if isinstance(child.tag, str):
            break
        parts.append(child.tail)
    return "".join(filter(None, parts))


# --- what can be saved from what is not XML ----------------------------------------------

# each piece ends at the next "<", so that no text is gone through twice
_ITEM = re.compile(r"<rdf:li\b[^<>]*>([^<]*)</rdf:li>")
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#x([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def _from_text(text: str) -> Iterator[str]:
    for field in FIELDS:
        for piece in re.split(rf"<{field.name}\b", text)[1:]:
            for item in _ITEM.finditer(piece.split(f"</{field.name}", 1)[0]):
                yield field.read(_REFERENCE.sub(_character, item[1]))


def _character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name = reference.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
