"""Add and remove items of lists in a sidecar, in every form that RDF allows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from lxml import etree

from tagkin.collection.sidecars.markup import Markup
from tagkin.collection.xmp import RDF, Field, descriptions, items_of, value_of
from tagkin.errors import SidecarError

__all__ = ["Items", "add_properties", "is_repeated", "remove_items"]

Items = Callable[[str, str, str], list[str]]
"""Formats items, given the element name of an item, a prefix for the namespace of the property,
and the declaration of that prefix or an empty text."""

_CONTAINERS = tuple(f"{{{RDF}}}{kind}" for kind in ("Bag", "Seq", "Alt"))
_ATTRIBUTE = re.compile(r"""\s+([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def add_properties(markup: Markup, items: Sequence[tuple[Field, Items]]) -> None:
    """Add items to the lists of a sidecar, creating missing lists.

    Raises
    ------
    SidecarError
        If the sidecar has no RDF, or a property is not a list of texts.
    """
    home = _find_home(markup, [field for field, _ in items])
    new_properties: list[Callable[[str, str], str]] = []
    for field, write in items:
        element = _find_property(markup, field)
        holders = [d for d in descriptions(markup.root) if field.tag in d.attrib]
        if element is not None:
            write = _gather(markup, element, holders, field, write)
            _add_to(markup, element, field, write)
        elif holders:
            start, end, raw = _find_attribute(markup, holders[0], field)
            markup.replace(start, end, "")
            write = _gather(markup, None, holders[1:], field, write)
            new_properties.append(_new_property(home, field, write, raw))
        else:
            new_properties.append(_new_property(home, field, write))
    if new_properties:
        _put_properties(markup, home, new_properties)


def is_repeated(markup: Markup, field: Field) -> bool:
    """Whether a property occurs in several places, which exiv2 rejects."""
    counts = (
        len(d.findall(field.tag)) + (field.tag in d.attrib) for d in descriptions(markup.root)
    )
    return sum(counts) > 1


def _gather(
    markup: Markup, element: Any, holders: Sequence[Any], field: Field, write: Items
) -> Items:
    """Remove a property from all places but `element`; write the items from there before others.

    A list with comments stays in its place.
    """
    words: list[str] = []
    for description in descriptions(markup.root):
        for other in description.findall(field.tag):
            items = items_of(other) or [other]
            is_plain = not any(i.attrib or len(i) for i in items) and not other.attrib
            if other is not element and is_plain and not _has_comments(other):
                words += [value_of(item) for item in items]
                markup.cut(other)
    for holder in holders:
        start, end, _ = _find_attribute(markup, holder, field)
        markup.replace(start, end, "")
        words.append(holder.attrib[field.tag])
    existing = {value_of(item) for item in items_of(element)} if element is not None else set()
    moved = [word for word in dict.fromkeys(words) if word.strip() and word not in existing]

    def write_all(item: str, prefix: str, declaration: str) -> list[str]:
        texts = [f"<{item}>{markup.escape(word)}</{item}>" for word in moved]
        return texts + write(item, prefix, declaration)

    return write_all


def _find_home(markup: Markup, fields: Sequence[Field]) -> Any:
    """Return the element for new properties: a description with others, the first, or the RDF."""
    rdf = next(markup.root.iter(f"{{{RDF}}}RDF"), None)
    if rdf is None:
        raise SidecarError("it is XML, but has no rdf:RDF, so it is not XMP")
    plain = [d for d in descriptions(markup.root) if d.tag == f"{{{RDF}}}Description"]
    names = {field.tag for field in fields}
    with_fields = (d for d in plain if names & ({*d.attrib} | {child.tag for child in d}))
    return next(with_fields, plain[0] if plain else rdf)


def _find_property(markup: Markup, field: Field) -> Any:
    """Return the element of a property, preferably one with a list, or None."""
    elements = [element for d in descriptions(markup.root) for element in d.findall(field.tag)]
    lists = (element for element in elements if _container(element) is not None)
    return next(lists, elements[0] if elements else None)


def _container(element: Any) -> Any:
    return next(element.iterchildren(*_CONTAINERS), None)


# --- existing properties -----------------------------------------------------------------


def _add_to(markup: Markup, element: Any, field: Field, write: Items) -> None:
    container = _container(element)
    if container is None:
        _make_list(markup, element, field, write)
        return
    items = list(container.iterchildren(f"{{{RDF}}}li"))
    if items:
        last = markup.span(items[-1])
        indent = markup.indent(last.start)
        for text in write(last.name, *_prefix_for(container, field)):
            markup.insert(last.end, indent + text)
        return
    outer, unit = _layout(markup, container)
    texts = write(_rdf_name(container, "li"), *_prefix_for(container, field))
    inside = "".join(f"{outer and outer + unit}{text}" for text in texts)
    markup.put_inside(container, inside, outer)


def _make_list(markup: Markup, element: Any, field: Field, write: Items) -> None:
    """Turn a single text or an empty property into a list."""
    if element.attrib or next(element.iterchildren(etree.Element), None) is not None:
        raise SidecarError(f"its {field.name} is not a list of tags")
    span = markup.span(element)
    outer, unit = _layout(markup, element)
    raw = markup.text[span.inner : span.inner_end]
    has_text = bool("".join(element.itertext()).strip())
    names = _prefix_for(element, field)
    inside = _format_list(element, names, field, write, outer, unit, raw if has_text else None)
    if has_text:
        markup.replace(span.inner, span.inner_end, inside + outer)
    else:
        markup.put_inside(element, inside, outer)


def _format_list(
    scope: Any,
    names: tuple[str, str],
    field: Field,
    write: Items,
    indent: str,
    unit: str,
    raw: str | None = None,
) -> str:
    """Format a list with its items, each on its own line if there is an indent.

    `names` are the prefix for the items and its declaration; `raw` is an existing item.
    """
    inner, deeper = (indent + unit, indent + 2 * unit) if indent else ("", "")
    item, kind = _rdf_name(scope, "li"), _rdf_name(scope, field.container)
    texts = [] if raw is None or not raw.strip() else [f"<{item}>{raw}</{item}>"]
    texts += write(item, *names)
    inside = "".join(deeper + text for text in texts)
    return f"{inner}<{kind}>{inside}{inner}</{kind}>"


# --- new properties ----------------------------------------------------------------------


def _new_property(
    home: Any, field: Field, write: Items, raw: str | None = None
) -> Callable[[str, str], str]:
    """Return a function that formats a property, given its indent and the indent per level."""
    prefix, declaration = _prefix_for(home, field)
    name = f"{prefix}:{field.local}"

    def format_property(indent: str, unit: str) -> str:
        inside = _format_list(home, (prefix, ""), field, write, indent, unit, raw)
        return f"{indent}<{name}{declaration}>{inside}{indent}</{name}>"

    return format_property


def _put_properties(
    markup: Markup, home: Any, properties: Sequence[Callable[[str, str], str]]
) -> None:
    outer, unit = _layout(markup, home)
    indent = outer and outer + unit
    if home.tag == f"{{{RDF}}}RDF":  # it has no description yet
        prefix = next((p for p, uri in home.nsmap.items() if uri == RDF and p), "rdf")
        declared = "" if prefix in home.nsmap else f' xmlns:{prefix}="{RDF}"'
        deeper = indent and indent + unit
        inside = "".join(formatted(deeper, unit) for formatted in properties)
        opening = f'<{prefix}:Description{declared} {prefix}:about="">'
        text = f"{indent}{opening}{inside}{indent}</{prefix}:Description>"
        markup.put_inside(home, text, outer)
        return
    children = list(home.iterchildren(etree.Element))
    if children:
        last = markup.span(children[-1])
        indent = markup.indent(last.start)
        unit = _unit(indent, outer) if indent else ""
        markup.insert(last.end, "".join(formatted(indent, unit) for formatted in properties))
    else:
        texts = (formatted(indent, unit) for formatted in properties)
        markup.put_inside(home, "".join(texts), outer)


def _layout(markup: Markup, element: Any) -> tuple[str, str]:
    """Return the indent of an element with its line break, and the indent per level."""
    indent = markup.indent(markup.span(element).start)
    above = element.getparent()
    return indent, _unit(indent, "" if above is None else markup.indent(markup.span(above).start))


def _unit(inner: str, outer: str) -> str:
    deeper = inner.removeprefix(outer) if outer and inner.startswith(outer) else ""
    return deeper or " "


# --- names -------------------------------------------------------------------------------


def _rdf_name(scope: Any, local: str) -> str:
    """Return a name in the RDF namespace with its prefix in an element."""
    prefixes = [prefix for prefix, uri in scope.nsmap.items() if uri == RDF]
    prefix = next((p for p in prefixes if p), None)
    return f"{prefix}:{local}" if prefix else local


def _prefix_for(scope: Any, field: Field) -> tuple[str, str]:
    """Return a prefix for the namespace of a property, and its declaration if needed."""
    known = next((p for p, uri in scope.nsmap.items() if uri == field.uri and p), None)
    if known:
        return known, ""
    prefix, n = field.prefix, 1
    while prefix in scope.nsmap:  # taken by another namespace
        n += 1
        prefix = f"{field.prefix}{n}"
    return prefix, f' xmlns:{prefix}="{field.uri}"'


def _find_attribute(markup: Markup, holder: Any, field: Field) -> tuple[int, int, str]:
    """Return the start, end and escaped text of a property that is an attribute."""
    span = markup.span(holder)
    start_of_names = span.start + 1 + len(span.name)
    for match in _ATTRIBUTE.finditer(markup.text, start_of_names, span.inner):
        prefix, _, local = match[1].rpartition(":")
        if local == field.local and prefix and holder.nsmap.get(prefix) == field.uri:
            return match.start(), match.end(), match[2] if match[2] is not None else match[3]
    raise SidecarError(f"its {field.name} is an attribute that could not be found")


# --- removing items ----------------------------------------------------------------------


def remove_items(markup: Markup, field: Field, is_wanted: Callable[[Any], bool]) -> None:
    """Remove items from the lists of a property, or the whole property if no item would remain.

    `is_wanted` says whether to remove an item, or a property that is a single text. It is called
    from the last to the first.
    """
    for description in reversed(list(descriptions(markup.root))):
        for element in reversed(description.findall(field.tag)):
            items = items_of(element) or [element]
            unwanted = [item for item in reversed(items) if is_wanted(item)]
            if len(unwanted) == len(items) and not _has_comments(element):
                markup.cut(element)
            else:
                for item in unwanted:
                    markup.cut(item)
        if field.tag in description.attrib:
            start, end, _ = _find_attribute(markup, description, field)
            single = etree.Element(field.tag)
            single.text = description.attrib[field.tag]
            if is_wanted(single):
                markup.replace(start, end, "")


def _has_comments(element: Any) -> bool:
    return any(not isinstance(node.tag, str) for node in element.iter())
