"""Pieces of HTML in which every text from outside is escaped.

`Markup` is a text that is HTML already; everything else that goes into an element is escaped.
"""

from __future__ import annotations

import base64
import html
import unicodedata
from collections.abc import Iterable

__all__ = ["Markup", "bar", "data_uri", "element", "join", "safe_text"]

_EMPTY = {"br", "img", "meta", "rect", "line", "path", "use", "image", "polyline"}
_KEPT = {"\n", "\t"}


class Markup(str):
    """A text that is HTML already."""

    __slots__ = ()


def safe_text(text: object) -> str:
    """The text, escaped, with a mark in place of signs that HTML or UTF-8 cannot hold."""
    signs = (
        "\ufffd" if sign not in _KEPT and unicodedata.category(sign) in {"Cc", "Cs"} else sign
        for sign in str(text)
    )
    return html.escape("".join(signs), quote=True)


def element(tag: str, *content: object, **attributes: object) -> Markup:
    """An element; content that is no `Markup` is escaped, and so are all attributes.

    ``class_`` is class, ``aria_label`` is aria-label; an attribute that is None or False is left
    out, and one that is True has no value.
    """
    opening = tag
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        opening += f" {name}" if value is True else f' {name}="{safe_text(value)}"'
    if tag in _EMPTY:
        return Markup(f"<{opening}>" if tag in {"br", "img", "meta"} else f"<{opening}/>")
    return Markup(f"<{opening}>{join(content)}</{tag}>")


def join(content: Iterable[object], between: str = "") -> Markup:
    """Contents one after the other; None is left out."""
    parts = (c if isinstance(c, Markup) else safe_text(c) for c in content if c is not None)
    return Markup(between.join(parts))


def bar(share: float, kind: str = "fill") -> Markup:
    """A level bar; the number stands beside it, so that it says nothing to a screen reader."""
    width = f"{100 * min(max(share, 0.0), 1.0):.1f}%"
    return element(
        "svg",
        element("rect", class_="track", width="100%", height="100%"),
        element("rect", class_=kind, width=width, height="100%"),
        class_="bar",
        aria_hidden="true",
    )


def data_uri(data: bytes, kind: str) -> str:
    """A file's content as an address."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
