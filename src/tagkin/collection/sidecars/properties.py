"""Add and remove items of lists in a sidecar, in every form that RDF allows.

A list gets new items at its end. A property that is a text or an attribute, or that is in several
places, becomes one list.
"""

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
_ROOTS = ("xmpmeta", "xapmeta", "RDF")
_UNREAD = re.compile(r"\s*<(?:!--|\?(?!xml|xpacket))")  # exiftool and exiv2 look at the start only
_ATTRIBUTE = re.compile(r"""\s+([^\s=]+)\s*=\s*(?:"[^"]*"|'[^']*')""")


class _Escaped(str):
    """The text of an item as it is in the file, perhaps with comments."""


def add_properties(markup: Markup, properties: Sequence[tuple[Field, Sequence[Item]]]) -> None:
    """Add items to the lists of a sidecar, creating missing lists.

    Raises `SidecarError` if the sidecar has no RDF, or a property is not a list of texts.
    """
    home = _find_home(markup, [field for field, _ in properties])
    new: list[tuple[Field, Sequence[Item]]] = []
    for field, items in properties:
        elements = _elements(markup, field)
        lists = (element for element in elements if _container(element) is not None)
        place = next(lists, elements[0] if elements else None)
        items = [*_gather(markup, place, field), *items]
        if place is None:
            new.append((field, items))
        elif (container := _container(place)) is not None:
            _append(markup, container, field, items)
        else:
            _make_list(markup, place, field, items)
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


def _container(element: Element) -> Element | None:
    return next(element.iterchildren(*_CONTAINERS), None)


def _find_home(markup: Markup, fields: Sequence[Field]) -> Element:
    """Return the element for new properties: a description with others, the first, or the RDF."""
    rdf = next(markup.root.iter(f"{{{RDF}}}RDF"), None)
    if rdf is None:
        raise SidecarError("it is XML, but has no rdf:RDF, so it is not XMP")
    if (name := etree.QName(markup.root).localname) not in _ROOTS:
        raise SidecarError(f"its XMP is inside <{name}>, where no program reads it")
    if _UNREAD.match(markup.text):
        raise SidecarError("it begins with a comment, so no program reads it as XMP")
    plain = [d for d in descriptions(markup.root) if d.tag == f"{{{RDF}}}Description"]
    names = {field.tag for field in fields}
    with_fields = (d for d in plain if names & ({*d.attrib} | {child.tag for child in d}))
    return next(with_fields, plain[0] if plain else rdf)


def _gather(markup: Markup, place: Element | None, field: Field) -> list[Item]:
    """Remove a property from all places but the list `place`; return the texts that were there.

    A further list with comments stays in its place. A text in place of the list is to be replaced.
    """
    words: dict[str, Item] = {}
    for element in _elements(markup, field):
        is_list = _container(element) is not None
        if element is place and is_list:
            continue
        items = items_of(element) if is_list else [element]
        is_plain = not element.attrib and not (is_list and _has_comments(element))
        if is_plain and not any(i.attrib or any(i.iterchildren(etree.Element)) for i in items):
            spans = [markup.span(item) for item in items]
            texts = (_Escaped(markup.text[span.inner : span.inner_end]) for span in spans)
            words |= zip(map(value_of, items), texts, strict=True)
            if element is not place:
                markup.cut(element)
        elif element is place:
            raise SidecarError(f"its {field.name} is not a list of tags")
    for holder in _holders(markup, field):
        _cut_attribute(markup, holder, field)
        words.setdefault(holder.attrib[field.tag], holder.attrib[field.tag])
    container = None if place is None else _container(place)
    existing = set() if container is None else {value_of(item) for item in items_of(container)}
    return [item for word, item in words.items() if word.strip() and word not in existing]


# --- text --------------------------------------------------------------------------------


def _append(markup: Markup, container: Element, field: Field, items: Sequence[Item]) -> None:
    """Add items at the end of a list."""
    existing = list(container.iterchildren(f"{{{RDF}}}li"))
    names = _prefix_for(container, field)
    if existing:
        last = markup.span(existing[-1])
        texts = _format_items(markup, last.name, items, *names)
        indent = markup.indent(last.start)
        markup.insert(last.end, "".join(indent + text for text in texts))
        return
    outer = markup.indent(markup.span(container).start)
    texts = _format_items(markup, _rdf_name(container, "li"), items, *names)
    markup.put_inside(container, "".join(_deeper(outer) + text for text in texts), outer)


def _make_list(markup: Markup, element: Element, field: Field, items: Sequence[Item]) -> None:
    """Replace a property that is a text, or empty, by a list."""
    span = markup.span(element)
    indent = markup.indent(span.start)
    text = _format_property(markup, element.getparent(), field, items, indent)
    markup.replace(span.start, span.end, text.removeprefix(indent))


def _put_properties(
    markup: Markup, home: Element, properties: Sequence[tuple[Field, Sequence[Item]]]
) -> None:
    outer = markup.indent(markup.span(home).start)
    children = list(home.iterchildren(etree.Element))
    indent = markup.indent(markup.span(children[-1]).start) if children else _deeper(outer)
    opening = closing = ""
    if home.tag == f"{{{RDF}}}RDF":  # it has no description yet
        prefix = next((p for p, uri in home.nsmap.items() if uri == RDF and p), "rdf")
        declared = "" if prefix in home.nsmap else f' xmlns:{prefix}="{RDF}"'
        opening = f'{indent}<{prefix}:Description{declared} {prefix}:about="">'
        closing = f"{indent}</{prefix}:Description>"
        indent = _deeper(indent)
    texts = (_format_property(markup, home, *pair, indent) for pair in properties)
    markup.put_inside(home, opening + "".join(texts) + closing, indent and outer)


def _format_property(
    markup: Markup, home: Element, field: Field, items: Sequence[Item], indent: str
) -> str:
    """Format a list with its items, each on its own line if there is an indent."""
    prefix, declaration = _prefix_for(home, field)
    name, kind = f"{prefix}:{field.local}", _rdf_name(home, field.container)
    inner = _deeper(indent)
    texts = _format_items(markup, _rdf_name(home, "li"), items, prefix, "")
    inside = "".join(_deeper(inner) + text for text in texts)
    return f"{indent}<{name}{declaration}>{inner}<{kind}>{inside}{inner}</{kind}>{indent}</{name}>"


def _format_items(
    markup: Markup, name: str, items: Iterable[Item], prefix: str, declaration: str
) -> list[str]:
    texts = []
    for item in items:
        if isinstance(item, str):
            text = item if isinstance(item, _Escaped) else markup.escape(item)
            texts.append(f"<{name}>{text}</{name}>")
        else:
            pairs = (f' {prefix}:{key}="{markup.escape(value)}"' for key, value in item.items())
            texts.append(f"<{name}{declaration}{''.join(pairs)}/>")
    return texts


def _deeper(indent: str) -> str:
    """Return the indent of the next level; none on the same line."""
    return indent and indent + ("\t" if indent.endswith("\t") else " ")


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
