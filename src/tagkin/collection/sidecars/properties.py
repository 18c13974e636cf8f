"""Add and remove items of lists in a sidecar, in every form that RDF allows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from lxml import etree

from tagkin.collection.sidecars.markup import Markup
from tagkin.collection.xmp import RDF, Element, Field, descriptions, items_of, value_of
from tagkin.errors import SidecarError

__all__ = ["Item", "add_properties", "is_repeated", "remove_items"]

Item = str | Mapping[str, str]
"""The text of an item, or its attributes in the namespace of the property."""

_CONTAINERS = tuple(f"{{{RDF}}}{kind}" for kind in ("Bag", "Seq", "Alt"))
_ATTRIBUTE = re.compile(r"""\s+([^\s=]+)\s*=\s*(?:"[^"]*"|'[^']*')""")


def add_properties(markup: Markup, properties: Sequence[tuple[Field, Sequence[Item]]]) -> None:
    """Add items to the lists of a sidecar, creating missing lists.

    Raises `SidecarError` if the sidecar has no RDF, or a property is not a list of texts.
    """
    home = _find_home(markup, [field for field, _ in properties])
    new: list[tuple[Field, list[Item]]] = []
    for field, items in properties:
        element = _find_property(markup, field)
        gathered = [*_gather(markup, element, field), *items]
        if element is None:
            new.append((field, gathered))
        else:
            _add_to(markup, element, field, gathered)
    if new:
        _put_properties(markup, home, new)


def is_repeated(markup: Markup, field: Field) -> bool:
    """Whether a property occurs in several places, which exiv2 rejects."""
    return len(_elements(markup, field)) + len(_holders(markup, field)) > 1


def _elements(markup: Markup, field: Field) -> list[Element]:
    return [element for d in descriptions(markup.root) for element in d.findall(field.tag)]


def _holders(markup: Markup, field: Field) -> list[Element]:
    """Return the descriptions that have the property as an attribute."""
    return [d for d in descriptions(markup.root) if field.tag in d.attrib]


def _gather(markup: Markup, element: Element | None, field: Field) -> list[str]:
    """Remove a property from all places but `element`; return the texts that were there.

    A list with comments stays in its place.
    """
    words: list[str] = []
    for other in _elements(markup, field):
        items = items_of(other) or [other]
        is_plain = not any(i.attrib or len(i) for i in items) and not other.attrib
        if other is not element and is_plain and not _has_comments(other):
            words += [value_of(item) for item in items]
            markup.cut(other)
    for holder in _holders(markup, field):
        _cut_attribute(markup, holder, field)
        words.append(holder.attrib[field.tag])
    existing = {value_of(item) for item in items_of(element)} if element is not None else set()
    return [word for word in dict.fromkeys(words) if word.strip() and word not in existing]


def _find_home(markup: Markup, fields: Sequence[Field]) -> Element:
    """Return the element for new properties: a description with others, the first, or the RDF."""
    rdf = next(markup.root.iter(f"{{{RDF}}}RDF"), None)
    if rdf is None:
        raise SidecarError("it is XML, but has no rdf:RDF, so it is not XMP")
    plain = [d for d in descriptions(markup.root) if d.tag == f"{{{RDF}}}Description"]
    names = {field.tag for field in fields}
    with_fields = (d for d in plain if names & ({*d.attrib} | {child.tag for child in d}))
    return next(with_fields, plain[0] if plain else rdf)


def _find_property(markup: Markup, field: Field) -> Element | None:
    """Return the element of a property, preferably one with a list, or None."""
    elements = _elements(markup, field)
    lists = (element for element in elements if _container(element) is not None)
    return next(lists, elements[0] if elements else None)


def _container(element: Element) -> Element | None:
    return next(element.iterchildren(*_CONTAINERS), None)


# --- existing properties -----------------------------------------------------------------


def _add_to(markup: Markup, element: Element, field: Field, items: Sequence[Item]) -> None:
    container = _container(element)
    if container is None:
        _make_list(markup, element, field, items)
        return
    names = _prefix_for(container, field)
    existing = list(container.iterchildren(f"{{{RDF}}}li"))
    if existing:
        last = markup.span(existing[-1])
        indent = markup.indent(last.start)
        for text in _format_items(markup, last.name, items, *names):
            markup.insert(last.end, indent + text)
        return
    outer, unit = _layout(markup, container)
    texts = _format_items(markup, _rdf_name(container, "li"), items, *names)
    markup.put_inside(container, "".join((outer and outer + unit) + text for text in texts), outer)


def _make_list(markup: Markup, element: Element, field: Field, items: Sequence[Item]) -> None:
    """Turn a single text or an empty property into a list."""
    if element.attrib or next(element.iterchildren(etree.Element), None) is not None:
        raise SidecarError(f"its {field.name} is not a list of tags")
    span = markup.span(element)
    outer, unit = _layout(markup, element)
    item = _rdf_name(element, "li")
    texts = _format_items(markup, item, items, *_prefix_for(element, field))
    if "".join(element.itertext()).strip():
        texts.insert(0, f"<{item}>{markup.text[span.inner : span.inner_end]}</{item}>")
        inside = _format_list(element, field, texts, outer, unit)
        markup.replace(span.inner, span.inner_end, inside + outer)
    else:
        markup.put_inside(element, _format_list(element, field, texts, outer, unit), outer)


def _format_items(
    markup: Markup, name: str, items: Iterable[Item], prefix: str, declaration: str
) -> list[str]:
    texts = []
    for item in items:
        if isinstance(item, str):
            texts.append(f"<{name}>{markup.escape(item)}</{name}>")
        else:
            pairs = (f' {prefix}:{key}="{markup.escape(value)}"' for key, value in item.items())
            texts.append(f"<{name}{declaration}{''.join(pairs)}/>")
    return texts


def _format_list(scope: Element, field: Field, texts: Sequence[str], indent: str, unit: str) -> str:
    """Format a list with its items, each on its own line if there is an indent."""
    inner, deeper = (indent + unit, indent + 2 * unit) if indent else ("", "")
    kind = _rdf_name(scope, field.container)
    inside = "".join(deeper + text for text in texts)
    return f"{inner}<{kind}>{inside}{inner}</{kind}>"


# --- new properties ----------------------------------------------------------------------


def _put_properties(
    markup: Markup, home: Element, properties: Sequence[tuple[Field, Sequence[Item]]]
) -> None:
    outer, unit = _layout(markup, home)
    indent = outer and outer + unit

    def format_all(indent: str, unit: str) -> str:
        return "".join(_format_property(markup, home, *p, indent, unit) for p in properties)

    children = list(home.iterchildren(etree.Element))
    if home.tag == f"{{{RDF}}}RDF":  # it has no description yet
        prefix = next((p for p, uri in home.nsmap.items() if uri == RDF and p), "rdf")
        declared = "" if prefix in home.nsmap else f' xmlns:{prefix}="{RDF}"'
        inside = format_all(indent and indent + unit, unit)
        opening = f'<{prefix}:Description{declared} {prefix}:about="">'
        text = f"{indent}{opening}{inside}{indent}</{prefix}:Description>"
        markup.put_inside(home, text, outer)
    elif children:
        last = markup.span(children[-1])
        indent = markup.indent(last.start)
        markup.insert(last.end, format_all(indent, _unit(indent, outer) if indent else ""))
    else:
        markup.put_inside(home, format_all(indent, unit), outer)


def _format_property(
    markup: Markup, home: Element, field: Field, items: Sequence[Item], indent: str, unit: str
) -> str:
    prefix, declaration = _prefix_for(home, field)
    name = f"{prefix}:{field.local}"
    texts = _format_items(markup, _rdf_name(home, "li"), items, prefix, "")
    inside = _format_list(home, field, texts, indent, unit)
    return f"{indent}<{name}{declaration}>{inside}{indent}</{name}>"


def _layout(markup: Markup, element: Element) -> tuple[str, str]:
    """Return the indent of an element with its line break, and the indent per level."""
    indent = markup.indent(markup.span(element).start)
    above = element.getparent()
    return indent, _unit(indent, "" if above is None else markup.indent(markup.span(above).start))


def _unit(inner: str, outer: str) -> str:
    deeper = inner.removeprefix(outer) if outer and inner.startswith(outer) else ""
    return deeper or " "


# --- names -------------------------------------------------------------------------------


def _rdf_name(scope: Element, local: str) -> str:
    """Return a name in the RDF namespace with its prefix in an element."""
    prefix = next((p for p, uri in scope.nsmap.items() if uri == RDF and p), None)
    return f"{prefix}:{local}" if prefix else local


def _prefix_for(scope: Element, field: Field) -> tuple[str, str]:
    """Return a prefix for the namespace of a property, and its declaration if needed."""
    known = next((p for p, uri in scope.nsmap.items() if uri == field.uri and p), None)
    if known:
        return known, ""
    prefix, n = field.prefix, 1
    while prefix in scope.nsmap:  # taken by another namespace
        n += 1
        prefix = f"{field.prefix}{n}"
    return prefix, f' xmlns:{prefix}="{field.uri}"'


# --- removing items ----------------------------------------------------------------------


def remove_items(
    markup: Markup, field: Field, wanted: Counter[str], read_value: Callable[[Element], str]
) -> None:
    """Remove items of a property with wanted values, the last first, as often as counted.

    `read_value` gets an item, or the element of a property that is a single text. A list that
    would be empty is removed, unless it has comments.
    """
    left = Counter(wanted)

    def is_wanted(item: Element) -> bool:
        value = read_value(item)
        left[value] -= 1
        return left[value] >= 0

    for description in reversed(list(descriptions(markup.root))):
        for element in reversed(description.findall(field.tag)):
            items = items_of(element) or [element]
            unwanted = [item for item in reversed(items) if is_wanted(item)]
            if len(unwanted) == len(items) and not _has_comments(element):
                unwanted = [element]
            for item in unwanted:
                markup.cut(item)
        if field.tag in description.attrib:
            single = etree.Element(field.tag)
            single.text = description.attrib[field.tag]
            if is_wanted(single):
                _cut_attribute(markup, description, field)


def _cut_attribute(markup: Markup, holder: Element, field: Field) -> None:
    """Remove a property that is an attribute."""
    span = markup.span(holder)
    start_of_names = span.start + 1 + len(span.name)
    for match in _ATTRIBUTE.finditer(markup.text, start_of_names, span.inner):
        prefix, _, local = match[1].rpartition(":")
        if local == field.local and prefix and holder.nsmap.get(prefix) == field.uri:
            markup.replace(match.start(), match.end(), "")
            return
    raise SidecarError(f"its {field.name} is an attribute that could not be found")


def _has_comments(element: Element) -> bool:
    return any(not isinstance(node.tag, str) for node in element.iter())
