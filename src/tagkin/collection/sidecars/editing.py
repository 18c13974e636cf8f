"""Tags put into the text of a sidecar, and taken out again. Bytes in, bytes out; no file.

Changed are the three properties of keywords, and one of tagkin's own that says which tags it wrote:

- ``dc:subject`` has the last level of a tag, ``dog``;
- ``lr:hierarchicalSubject`` has all of it, ``animal|dog``;
- ``digiKam:TagsList`` has ``animal/dog``, unless a level has a ``/`` of its own;
- ``tagkin:Written`` names the tag, the run, and how sure tagkin was.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lxml import etree

from tagkin.collection.levels import merged, tidy
from tagkin.collection.sidecars.fields import (
    PROVENANCE,
    Provenance,
    WrittenTag,
    checked_tags,
    field_tags,
    going_values,
    has_tag,
    missing_values,
    written_tags,
)
from tagkin.collection.sidecars.markup import Markup
from tagkin.collection.sidecars.properties import Items, add_properties, is_repeated, remove_items
from tagkin.collection.xmp import (
    FIELDS,
    RDF,
    NotXml,
    descriptions,
    keywords_of,
    value_of,
)
from tagkin.errors import SidecarError

__all__ = ["Added", "provenance_of", "tags_of", "with_tags", "without_tags"]

Added = tuple[tuple[str, str], ...]
"""What was put into a sidecar: pairs of a property and the text that it got."""

NEW = b"""<?xml version="1.0" encoding="UTF-8"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="tagkin">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:dc="http://purl.org/dc/elements/1.1/"
    xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
    xmlns:digiKam="http://www.digikam.org/ns/1.0/"
    xmlns:tagkin="tagkin:ns/1.0/">
  </rdf:Description>
 </rdf:RDF>
</x:xmpmeta>
"""


def tags_of(xml: bytes) -> list[str]:
    """The tags in a sidecar, each once, as `tagkin.collection.read_keywords` gives them."""
    return merged(keywords_of(_markup(xml).root))


def provenance_of(xml: bytes) -> list[WrittenTag]:
    """What a sidecar says that tagkin wrote into it."""
    return [said for _, said in written_tags(_markup(xml).root)]


def with_tags(
    xml: bytes | None,
    tags: Iterable[str],
    provenance: Provenance | None = None,
    known: Iterable[str] = (),
) -> tuple[bytes, Added]:
    """Add tags to a sidecar.

    Parameters
    ----------
    xml : bytes or None
        The sidecar as it is; None makes a new one.
    tags : iterable of str
        Levels are parted by ``|``. Those that the sidecar has stay as they are.
    provenance : Provenance, optional
        Who says so; without it, the sidecar does not say that tagkin wrote them.
    known : iterable of str
        Tags that the photograph has elsewhere, such as inside. A property that is made anew gets
        them too, as well as those of the other properties: programs that look at one property
        first, or at the sidecar instead of the photograph, would no longer see them.

    Returns
    -------
    xml : bytes
        The same bytes where there was nothing to add.
    added : tuple of pairs
        Properties and the texts that they got, for `without_tags`.

    Raises
    ------
    SidecarError
        If it is not XMP. The message is the reason alone.
    InvalidInput
        If a tag cannot be written.
    """
    markup = _markup(NEW if xml is None else xml)
    there = merged(keywords_of(markup.root))
    new = [tag for tag in checked_tags(tags) if not has_tag(there, tag)]
    if not new:
        return (b"" if xml is None else xml), ()
    values = {
        field: missing_values(field, field_tags(markup.root, field), new, [*known, *there])
        for field in FIELDS
    }
    items = [
        (field, _texts(markup, values[field]))
        for field in FIELDS
        if values[field] or is_repeated(markup, field)
    ]
    if provenance is not None:
        items.append((PROVENANCE, _statements(markup, [provenance.of(tag) for tag in new])))
    add_properties(markup, items)
    added = [(field.name, value) for field in FIELDS for value in values[field]]
    added += [(PROVENANCE.name, tag) for tag in new if provenance is not None]
    return _result(markup), tuple(added)


def _texts(markup: Markup, values: Sequence[str]) -> Items:
    def write(item: str, prefix: str, declaration: str) -> list[str]:
        return [f"<{item}>{markup.escaped(value)}</{item}>" for value in values]

    return write


def _statements(markup: Markup, said: Sequence[WrittenTag]) -> Items:
    def write(item: str, prefix: str, declaration: str) -> list[str]:
        parts = (
            "".join(f' {prefix}:{n}="{markup.escaped(v)}"' for n, v in one.properties().items())
            for one in said
        )
        return [f"<{item}{declaration}{part}/>" for part in parts]

    return write


def without_tags(xml: bytes, added: Iterable[tuple[str, str]]) -> bytes:
    """Take out of a sidecar what `with_tags` put in, as far as it is still there.

    The last level of a tag stays in ``dc:subject`` where another tag that is there now ends in it.

    Raises
    ------
    SidecarError
        If it is not XMP.
    """
    markup = _markup(xml)
    going = going_values({f: field_tags(markup.root, f) for f in FIELDS}, added)
    for field in FIELDS:
        wanted = going[field.name]
        remove_items(markup, field, _counting(wanted, lambda item: tidy(value_of(item))))
    said = {item: one.tag for item, one in written_tags(markup.root)}
    wanted = going[PROVENANCE.name]
    remove_items(markup, PROVENANCE, _counting(wanted, lambda item: tidy(said.get(item, ""))))
    return _result(markup) if markup.is_changed else xml


def _counting(wanted: Counter[str], value: Callable[[Any], str]) -> Callable[[Any], bool]:
    """Whether an item is one of those, each as often as it is named."""
    left = Counter(wanted)

    def is_wanted(item: Any) -> bool:
        found = value(item)
        left[found] -= 1
        return left[found] >= 0

    return is_wanted


# --- what stays --------------------------------------------------------------------------


def _markup(xml: bytes) -> Markup:
    try:
        return Markup.of(xml)
    except NotXml as error:
        raise SidecarError(f"it is not well-formed XML ({error})") from error


def _result(markup: Markup) -> bytes:
    """The changed file, when everything else is as it was."""
    changed = markup.changed()
    try:
        after = Markup.of(changed).root
    except NotXml as error:
        raise SidecarError(f"with the change it would not be well-formed ({error})") from error
    if _rest(after) != _rest(markup.root):
        raise SidecarError("the change would have touched more than its tags")
    return changed


def _rest(root: Any) -> bytes:
    """Canonical XML of everything but the properties that may change."""
    tree = copy.deepcopy(root.getroottree())
    names = [field.tag for field in (*FIELDS, PROVENANCE)]
    for description in list(descriptions(tree.getroot())):
        for name in names:
            description.attrib.pop(name, None)
        for found in description.findall("*"):
            if found.tag in names:
                _drop(found)
        _close_up(description)
        if not len(description) and not {*description.attrib} - {f"{{{RDF}}}about"}:
            _drop(description)
    for rdf in tree.getroot().iter(f"{{{RDF}}}RDF"):
        _close_up(rdf)
    try:
        return etree.tostring(tree, method="c14n")
    except etree.C14NError as error:  # such as of a namespace that is not absolute
        raise SidecarError("it has no canonical form, so that no change can be checked") from error


def _drop(element: Any) -> None:
    """Remove an element and leave the text after it."""
    above, before = element.getparent(), element.getprevious()
    if before is None:
        above.text = (above.text or "") + (element.tail or "")
    else:
        before.tail = (before.tail or "") + (element.tail or "")
    above.remove(element)


def _close_up(element: Any) -> None:
    """Drop the blanks between the elements in an element: they mean nothing there."""
    if element.text is not None and not element.text.strip():
        element.text = None
    for child in element:
        if child.tail is not None and not child.tail.strip():
            child.tail = None
