"""Add tags to the bytes of a sidecar, and remove them.

``dc:subject`` has the last level of a tag, ``dog``; ``lr:hierarchicalSubject`` has all levels,
``animal|dog``; ``digiKam:TagsList`` has ``animal/dog``, and ``music/AC|DC`` for ``music|AC/DC``;
``tagkin:Written`` names the tag, the run and the confidence.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from lxml import etree

from tagkin.collection.levels import fold, merge_tags, tidy
from tagkin.collection.sidecars.markup import Markup
from tagkin.collection.sidecars.properties import Item, add_properties, is_repeated, remove_items
from tagkin.collection.sidecars.tag_fields import (
    PROVENANCE,
    Provenance,
    WrittenTag,
    check_tags,
    field_spellings,
    has_tag,
    marked_values,
    missing_values,
    spell_values,
    tags_to_spread,
    tidy_fields,
    values_of_tags,
    values_to_remove,
    written_tags,
)
from tagkin.collection.tag_lists import merge_lists
from tagkin.collection.xmp import (
    FIELDS,
    RDF,
    Element,
    Field,
    NotXml,
    descriptions,
    lists_of,
    value_of,
)
from tagkin.errors import SidecarError

__all__ = [
    "Added",
    "drop_tags",
    "provenance_of",
    "put_back_values",
    "tags_of",
    "with_tags",
    "without_tags",
]

Added = tuple[tuple[str, str], ...]
"""Pairs of a property and a text that was added to it, or removed."""

_DROPPED = f"{{{PROVENANCE.uri}}}dropped"
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
    """Return the tags in a sidecar, each once, as `tagkin.collection.read_keywords` does."""
    return list(merge_lists({"": lists_of(_parse(xml).root)}).tags)


def provenance_of(xml: bytes) -> list[WrittenTag]:
    """Return the tags in a sidecar that tagkin wrote, as the sidecar records them."""
    return [written for _, written in written_tags(_parse(xml).root)]


def with_tags(
    xml: bytes | None,
    tags: Iterable[str],
    provenance: Provenance | None = None,
    known: Iterable[str] | None = None,
    *,
    align: bool = False,
) -> tuple[bytes, Added]:
    """Add tags to a sidecar; return its new bytes, and the added texts for `without_tags`.

    `xml` is the current sidecar, or None for a new one. If there is nothing to add, the bytes are
    unchanged. The message of a `SidecarError` is only the reason why the sidecar is not XMP.

    `known` are the tags of the photograph, wherever they are; by default those of the sidecar. If a
    tag is added, or with `align`, all properties also get these, because some programs read only
    one property, or the sidecar instead of the photograph.
    """
    markup = _parse(NEW if xml is None else xml)
    root = markup.root
    spellings = field_spellings(root)
    in_fields = tidy_fields(spellings)
    existing = merge_tags(tag for tags in in_fields.values() for tag in tags)
    named = [*existing, *merge_lists({"": lists_of(root)}).tags]
    new = [tag for tag in check_tags(tags) if not has_tag(named, tag)]
    if not new and not align:
        return (b"" if xml is None else xml), ()
    own = [tag for tags in spellings.values() for tag in tags]
    others = tags_to_spread(own, known)
    values = {field: missing_values(field, in_fields[field], new, others) for field in FIELDS}
    if not any(values.values()):
        return (b"" if xml is None else xml), ()
    items: list[tuple[Field, Sequence[Item]]] = [
        (field, values[field]) for field in FIELDS if values[field] or is_repeated(markup, field)
    ]
    if provenance is not None and new:
        items.append((PROVENANCE, [provenance.of(tag).properties() for tag in new]))
    add_properties(markup, items)
    added = [(field.name, value) for field in FIELDS for value in values[field]]
    added += [(PROVENANCE.name, tag) for tag in new if provenance is not None]
    return _apply_changes(markup), tuple(added)


def drop_tags(xml: bytes, tags: Iterable[str]) -> tuple[bytes, Added]:
    """Remove tags from a sidecar, whoever wrote them; return its new bytes and the removed texts.

    The last level of a tag stays in ``dc:subject`` if a remaining tag ends in it. `put_back_values`
    adds the removed texts again. Raises `SidecarError` if the sidecar is not XMP.
    """
    markup = _parse(xml)
    tags = list(map(tidy, tags))
    spellings = field_spellings(markup.root)
    existing = tidy_fields(spellings)
    values = values_of_tags(existing, tags)
    keys = set(map(fold, tags))
    records = [record.tag for _, record in written_tags(markup.root) if fold(record.tag) in keys]
    marks = [(PROVENANCE.name, tag) for tag in {*tags, *records}]
    to_remove = values_to_remove(existing, [*values, *marks])
    removed = spell_values(spellings, to_remove)
    _remove_values(markup, to_remove)
    if not markup.is_changed:
        return xml, ()
    removed += [(PROVENANCE.name, tag) for tag in records]
    return _apply_changes(markup), tuple(removed)


def put_back_values(xml: bytes, removed: Iterable[tuple[str, str]], before: bytes) -> bytes:
    """Add the texts that `drop_tags` removed and that are not there now.

    `before` is the sidecar from which they were removed; it has the records of ``tagkin:Written``.
    Raises `SidecarError` if the sidecar is not XMP.
    """
    removed = list(removed)
    markup = _parse(xml)
    items: list[tuple[Field, Sequence[Item]]] = []
    for field, tags in tidy_fields(field_spellings(markup.root)).items():
        n_left = Counter(map(fold, tags))
        n_left.subtract(fold(field.read(value)) for name, value in removed if name == field.name)
        missing = []
        for name, value in removed:
            if name == field.name and n_left[tag := fold(field.read(value))] < 0:
                n_left[tag] += 1
                missing.append(value)
        items.append((field, missing))
    there = {record.tag for _, record in written_tags(markup.root)}
    records = [
        record.properties()
        for record in provenance_of(before)
        if (PROVENANCE.name, record.tag) in removed and record.tag not in there
    ]
    items = [(field, values) for field, values in (*items, (PROVENANCE, records)) if values]
    if not items:
        return xml
    add_properties(markup, items)
    return _apply_changes(markup)


def without_tags(xml: bytes, added: Iterable[tuple[str, str]], mark: str) -> bytes:
    """Remove from a sidecar the texts that `with_tags` added and that are still there.

    Only texts of tags that ``tagkin:Written`` names with this mark are removed: all others are a
    person's. The last level of a tag stays in ``dc:subject`` if a remaining tag ends in it. Raises
    `SidecarError` if the sidecar is not XMP.
    """
    markup = _parse(xml)
    named = [record for _, record in written_tags(markup.root) if record.mark == mark]
    values = marked_values(added, {tidy(record.tag) for record in named})
    records = {tidy(record.tag) for record in named}
    values = [pair for pair in values if pair[0] != PROVENANCE.name or tidy(pair[1]) in records]
    to_remove = values_to_remove(tidy_fields(field_spellings(markup.root)), values)
    _remove_values(markup, to_remove, mark)
    return _apply_changes(markup) if markup.is_changed else xml


def _remove_values(
    markup: Markup, to_remove: Mapping[str, Counter[str]], mark: str | None = None
) -> None:
    """Remove texts, and records with a mark; without one, records of all writes."""
    for field in FIELDS:
        remove_items(markup, field, to_remove[field.name], _read_item(field))
    written = {
        item: tidy(record.tag)
        for item, record in written_tags(markup.root)
        if mark in (None, record.mark)
    }
    remove_items(markup, PROVENANCE, to_remove[PROVENANCE.name], lambda i: written.get(i, ""))


def _read_item(field: Field) -> Callable[[Element], str]:
    return lambda item: field.tidy(value_of(item))


# --- checks that nothing else changes ----------------------------------------------------


def _parse(xml: bytes) -> Markup:
    try:
        return Markup.of(xml)
    except NotXml as error:
        raise SidecarError(f"it is not well-formed XML ({error})") from error


def _apply_changes(markup: Markup) -> bytes:
    """Return the changed file, after a check that everything else is unchanged."""
    changed = markup.apply()
    try:
        after = Markup.of(changed).root
    except NotXml as error:
        raise SidecarError(f"the edit would make it ill-formed ({error})") from error
    if _canonical_rest(after) != _canonical_rest(markup.root):
        raise SidecarError("the edit would change more than its tags")
    return changed


def _canonical_rest(root: Element) -> bytes:
    """Return the canonical XML of everything but the properties that may change."""
    tree = copy.deepcopy(root.getroottree())
    names = [field.tag for field in (*FIELDS, PROVENANCE)]
    for description in list(descriptions(tree.getroot())):
        for name in names:
            description.attrib.pop(name, None)
        for element in description.findall("*"):
            if element.tag in names:
                element.tag = _DROPPED
        etree.strip_elements(description, _DROPPED, with_tail=False)
        _drop_blanks(description)
        if not len(description) and not {*description.attrib} - {f"{{{RDF}}}about"}:
            description.tag = _DROPPED
    etree.strip_elements(tree, _DROPPED, with_tail=False)
    for rdf in tree.getroot().iter(f"{{{RDF}}}RDF"):
        _drop_blanks(rdf)
    try:
        return etree.tostring(tree, method="c14n")
    except etree.C14NError as error:  # such as a relative namespace
        raise SidecarError(
            "it has no canonical XML form, so the edit cannot be verified"
        ) from error


def _drop_blanks(element: Element) -> None:
    """Drop the blanks between child elements, which have no meaning there."""
    if element.text is not None and not element.text.strip():
        element.text = None
    for child in element:
        if child.tail is not None and not child.tail.strip():
            child.tail = None
