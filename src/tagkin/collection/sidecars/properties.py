"""Lists in a sidecar: items put into them and taken out, in every form that RDF may have."""

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
"""Writes items, given the name of an item, a prefix for the namespace of the property, and the
declaration of that prefix where it is not known there."""

_CONTAINERS = tuple(f"{{{RDF}}}{kind}" for kind in ("Bag", "Seq", "Alt"))
_ATTRIBUTE = re.compile(r"""\s+([^\s=]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def add_properties(markup: Markup, items: Sequence[tuple[Field, Items]]) -> None:
    """Add items to the lists of a sidecar; lists that it has not are made.

    Raises
    ------
    SidecarError
        If there is no RDF in it, or a property is something else than a list of texts.
    """
    home = _home(markup, [field for field, _ in items])
    fresh: list[Callable[[str, str], str]] = []
    for field, write in items:
        found = _property(markup, field)
        holders = [d for d in descriptions(markup.root) if field.tag in d.attrib]
        if found is not None:
            _add_to(markup, found, field, _gather(markup, found, holders, field, write))
        elif holders:
            start, end, raw = _attribute(markup, holders[0], field)
            markup.replace(start, end, "")
            others = _gather(markup, None, holders[1:], field, write)
            fresh.append(_new_property(home, field, others, raw))
        else:
            fresh.append(_new_property(home, field, write))
    if fresh:
        _put_properties(markup, home, fresh)


def is_repeated(markup: Markup, field: Field) -> bool:
    """Whether a property stands in several places, which exiv2 and the programs on it refuse."""
    places = [
        [*d.findall(field.tag), *([d] if field.tag in d.attrib else [])]
        for d in descriptions(markup.root)
    ]
    return sum(map(len, places)) > 1


def _gather(
    markup: Markup, found: Any, holders: Sequence[Any], field: Field, write: Items
) -> Items:
    """Take a property out of all places but one; its items there, and what `write` writes.

    A list with comments stays where it is.
    """
    words: list[str] = []
    for description in descriptions(markup.root):
        for other in description.findall(field.tag):
            items = items_of(other) or [other]
            is_plain = not any(i.attrib or len(i) for i in items) and not other.attrib
            if other is not found and is_plain and not _has_comments(other):
                words += [value_of(item) for item in items]
                markup.cut(other)
    for holder in holders:
        start, end, _ = _attribute(markup, holder, field)
        markup.replace(start, end, "")
        words.append(holder.attrib[field.tag])
    there = {value_of(item) for item in items_of(found)} if found is not None else set()
    moved = [word for word in dict.fromkeys(words) if word.strip() and word not in there]

    def all_items(item: str, prefix: str, declaration: str) -> list[str]:
        texts = [f"<{item}>{markup.escaped(word)}</{item}>" for word in moved]
        return texts + write(item, prefix, declaration)

    return all_items


def _home(markup: Markup, fields: Sequence[Field]) -> Any:
    """Where new properties go: beside the others, or into the first description, or into none."""
    rdf = next(markup.root.iter(f"{{{RDF}}}RDF"), None)
    if rdf is None:
        raise SidecarError("it is XML, but has no rdf:RDF, so it is not XMP")
    usual = [d for d in descriptions(markup.root) if d.tag == f"{{{RDF}}}Description"]
    names = {field.tag for field in fields}
    beside = (d for d in usual if names & ({*d.attrib} | {child.tag for child in d}))
    return next(beside, usual[0] if usual else rdf)


def _property(markup: Markup, field: Field) -> Any:
    """The element of a property; the one with a list in it, should there be several."""
    found = [one for d in descriptions(markup.root) for one in d.findall(field.tag)]
    return next((one for one in found if _container(one) is not None), found[0] if found else None)


def _container(found: Any) -> Any:
    return next(found.iterchildren(*_CONTAINERS), None)


# --- into a list that is there -----------------------------------------------------------


def _add_to(markup: Markup, found: Any, field: Field, write: Items) -> None:
    container = _container(found)
    if container is None:
        _make_list(markup, found, field, write)
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


def _make_list(markup: Markup, found: Any, field: Field, write: Items) -> None:
    """Make a list of a single text, or of nothing."""
    if found.attrib or next(found.iterchildren(etree.Element), None) is not None:
        raise SidecarError(f"its {field.name} is no list of tags but something else")
    span = markup.span(found)
    outer, unit = _layout(markup, found)
    raw = markup.text[span.inner : span.inner_end]
    has_text = bool("".join(found.itertext()).strip())
    names = _prefix_for(found, field)
    inside = _list(found, names, field, write, outer, unit, raw if has_text else None)
    if has_text:
        markup.replace(span.inner, span.inner_end, inside + outer)
    else:
        markup.put_inside(found, inside, outer)


def _list(
    scope: Any,
    names: tuple[str, str],
    field: Field,
    write: Items,
    indent: str,
    unit: str,
    raw: str | None = None,
) -> str:
    """A list with its items, each on a line of its own where there are lines.

    `names` are the prefix and its declaration for the items; `raw` is an item that is there.
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
    """A function that writes a property with that indentation."""
    prefix, declaration = _prefix_for(home, field)
    name = f"{prefix}:{field.local}"

    def text(indent: str, unit: str) -> str:
        inside = _list(home, (prefix, ""), field, write, indent, unit, raw)
        return f"{indent}<{name}{declaration}>{inside}{indent}</{name}>"

    return text


def _put_properties(markup: Markup, home: Any, fresh: Sequence[Callable[[str, str], str]]) -> None:
    outer, unit = _layout(markup, home)
    indent = outer and outer + unit
    if home.tag == f"{{{RDF}}}RDF":  # nothing in it yet
        prefix = next((p for p, uri in home.nsmap.items() if uri == RDF and p), "rdf")
        declared = "" if prefix in home.nsmap else f' xmlns:{prefix}="{RDF}"'
        deeper = indent and indent + unit
        inside = "".join(text(deeper, unit) for text in fresh)
        opening = f'<{prefix}:Description{declared} {prefix}:about="">'
        text = f"{indent}{opening}{inside}{indent}</{prefix}:Description>"
        markup.put_inside(home, text, outer)
        return
    children = list(home.iterchildren(etree.Element))
    if children:
        last = markup.span(children[-1])
        indent = markup.indent(last.start)
        unit = _unit(indent, outer) if indent else ""
        markup.insert(last.end, "".join(text(indent, unit) for text in fresh))
    else:
        markup.put_inside(home, "".join(text(indent, unit) for text in fresh), outer)


def _layout(markup: Markup, element: Any) -> tuple[str, str]:
    """The line break before an element with its blanks, and what a level more adds to it."""
    indent = markup.indent(markup.span(element).start)
    above = element.getparent()
    return indent, _unit(indent, "" if above is None else markup.indent(markup.span(above).start))


def _unit(inner: str, outer: str) -> str:
    deeper = inner.removeprefix(outer) if outer and inner.startswith(outer) else ""
    return deeper or " "


# --- names -------------------------------------------------------------------------------


def _rdf_name(scope: Any, local: str) -> str:
    """A name of RDF with the prefix that it has in an element."""
    prefixes = [prefix for prefix, uri in scope.nsmap.items() if uri == RDF]
    prefix = next((p for p in prefixes if p), None)
    return f"{prefix}:{local}" if prefix else local


def _prefix_for(scope: Any, field: Field) -> tuple[str, str]:
    """A prefix for the namespace of a property, and its declaration where an element lacks it."""
    known = next((p for p, uri in scope.nsmap.items() if uri == field.uri and p), None)
    if known:
        return known, ""
    prefix, n = field.prefix, 1
    while prefix in scope.nsmap:  # somebody's own, for something else
        n += 1
        prefix = f"{field.prefix}{n}"
    return prefix, f' xmlns:{prefix}="{field.uri}"'


def _attribute(markup: Markup, holder: Any, field: Field) -> tuple[int, int, str]:
    """Where a property stands that is written as an attribute, and its text as it is written."""
    span = markup.span(holder)
    start_of_names = span.start + 1 + len(span.name)
    for found in _ATTRIBUTE.finditer(markup.text, start_of_names, span.inner):
        prefix, _, local = found[1].rpartition(":")
        if local == field.local and prefix and holder.nsmap.get(prefix) == field.uri:
            return found.start(), found.end(), found[2] if found[2] is not None else found[3]
    raise SidecarError(f"its {field.name} is an attribute that could not be found")


# --- out of a list -----------------------------------------------------------------------


def remove_items(markup: Markup, field: Field, is_wanted: Callable[[Any], bool]) -> None:
    """Take items out of the lists of a property; a list that would be empty goes as a whole.

    Parameters
    ----------
    is_wanted : function of an item, or of a property that is no list
        Whether it goes. Asked from the last to the first.
    """
    for description in reversed(list(descriptions(markup.root))):
        for found in reversed(description.findall(field.tag)):
            items = items_of(found)
            going = [item for item in reversed(items or [found]) if is_wanted(item)]
            if len(going) == len(items or [found]) and not _has_comments(found):
                markup.cut(found)
            else:
                for item in going:
                    markup.cut(item)
        if field.tag in description.attrib:
            start, end, _ = _attribute(markup, description, field)
            single = etree.Element(field.tag)
            single.text = description.attrib[field.tag]
            if is_wanted(single):
                markup.replace(start, end, "")


def _has_comments(found: Any) -> bool:
    return any(not isinstance(node.tag, str) for node in found.iter())
