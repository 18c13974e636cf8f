"""Names of people in XMP: in regions, and in the list of persons shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lxml import etree

from tagkin.collection.levels import tidy
from tagkin.collection.xmp import descriptions, items_of, value_of

__all__ = ["people_of"]

_REGIONS = "http://www.metadataworkinggroup.com/schemas/regions/"  # mwg-rs
_MICROSOFT = "{http://ns.microsoft.com/photo/1.2/t/Region#}PersonDisplayName"  # MPReg
_PERSONS = "{http://iptc.org/std/Iptc4xmpExt/2008-02-29/}PersonInImage"
_NAME, _TYPE = f"{{{_REGIONS}}}Name", f"{{{_REGIONS}}}Type"


def people_of(root: Any) -> list[str]:
    """Return the names of people in XMP, each once.

    They are the names of faces (``mwg-rs``), of Microsoft's regions (``MP``), and the names in
    ``Iptc4xmpExt:PersonInImage``.
    """
    # a name has no levels
    names = (tidy(name.replace("|", " ")) for name in _names(root))
    return list(dict.fromkeys(filter(None, names)))


def _names(root: Any) -> Iterator[str]:
    for node in root.iter(etree.Element):
        if _property(node, _TYPE) in ("", "Face"):  # not pets and barcodes
            yield _property(node, _NAME)
        yield _property(node, _MICROSOFT)
    for description in descriptions(root):
        yield description.get(_PERSONS) or ""
        for element in description.findall(_PERSONS):
            yield from map(value_of, items_of(element) or [element])


def _property(node: Any, name: str) -> str:
    """Return a property of a structure, which is an attribute or a child element."""
    return node.get(name) or node.findtext(name) or ""
