"""Keywords in XMP: packets inside photographs, and files beside them."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException, ElementTree

__all__ = ["xmp_keywords"]

_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
# Where keywords stand, under the prefix that everybody gives it, and what parts its levels.
_PROPERTIES = {
    "lr:hierarchicalSubject": ("{http://ns.adobe.com/lightroom/1.0/}hierarchicalSubject", "|"),
    "digiKam:TagsList": ("{http://www.digikam.org/ns/1.0/}TagsList", "/"),
    "dc:subject": ("{http://purl.org/dc/elements/1.1/}subject", "|"),
}
_LEVELS = dict(_PROPERTIES.values())
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def xmp_keywords(packet: bytes) -> tuple[list[str], str | None]:
    """The keywords of a packet, levels parted by ``|``, and what is wrong with it, if anything.

    XML that is not well-formed is searched as text for what can be saved. XML that declares
    entities is refused: nobody writes XMP so, and they can be made to fill the memory.
    """
    text = _NOT_XML.sub("", _decoded(packet))
    text = text[max(0, text.find("<")) : text.rfind(">") + 1]
    if not text:
        return [], None if not packet.strip(b"\0 \t\r\n") else "its XMP is not XML"
    try:
        return list(_from_tree(ElementTree.fromstring(text))), None
    except DefusedXmlException as error:
        return [], f"its XMP declares entities and was not read ({type(error).__name__})"
    except (ParseError, ValueError) as error:
        what = f"its XMP is not well-formed ({error}); what could be saved of it was read"
        return list(_from_text(text)), what


def _decoded(packet: bytes) -> str:
    for mark, encoding in (
        (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it starts with
        (codecs.BOM_UTF32_BE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if packet.startswith(mark):
            return packet.decode(encoding, "replace")
    try:
        return packet.decode("utf-8-sig")
    except UnicodeDecodeError:
        return packet.decode("latin-1")


def _from_tree(root: Any) -> Iterator[str]:
    """Keywords of the photograph: not those of regions or earlier versions, deeper in the tree."""
    for rdf in root.iter(f"{_RDF}RDF"):
        for description in rdf:
            for name, separator in _LEVELS.items():
                if name in description.attrib:
                    yield _level(description.attrib[name], separator)
                for found in description.findall(name):
                    yield from (_level(word, separator) for word in _values(found))


def _values(found: Any) -> Iterator[str]:
    """The texts of a property: items of a Bag, Seq or Alt, else one; qualified or not."""
    items = list(found.iter(f"{_RDF}li")) or [found]
    for item in items:
        qualified = next(item.iter(f"{_RDF}value"), None)
        text = item.text if qualified is None else qualified.text
        inside = (node.get(f"{_RDF}value") for node in item.iter())
        yield next((value for value in inside if value), None) or text or ""


def _level(word: str, separator: str) -> str:
    return word if separator == "|" else word.replace(separator, "|")


# --- what can be saved from what is not XML ----------------------------------------------

# each piece ends at the next "<", so that no text is gone through twice
_ITEM = re.compile(r"<rdf:li\b[^<>]*>([^<]*)</rdf:li>")
_REFERENCE = re.compile(r"&(?:#([0-9]{1,7})|#x([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));")
_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def _from_text(text: str) -> Iterator[str]:
    for name, (_, separator) in _PROPERTIES.items():
        for piece in re.split(rf"<{name}\b", text)[1:]:
            for item in _ITEM.finditer(piece.split(f"</{name}", 1)[0]):
                yield _level(_REFERENCE.sub(_character, item[1]), separator)


def _character(reference: re.Match[str]) -> str:
    decimal, hexadecimal, name = reference.groups()
    if name:
        return _NAMED[name]
    code = int(decimal) if decimal else int(hexadecimal, 16)
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
