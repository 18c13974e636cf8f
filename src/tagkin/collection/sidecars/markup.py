"""The text of a sidecar: the positions of its elements, and edits of the text.

lxml would lose quotes, line ends and line breaks between attributes when it writes XML. So it only
reads. Edits insert or remove text, and every other byte stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape  # xml.sax.saxutils has the same, but imports network modules

from lxml import etree

from tagkin.collection.xmp import Element, NotXml, decode, parse

__all__ = ["Markup", "Span"]

# For text that lxml has parsed, so it is well-formed.
_TOKEN = re.compile(
    r"""<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>
    |<(?P<end>/?)(?P<name>[^\s/>]+)(?P<rest>(?:[^>"']+|"[^"]*"|'[^']*')*+)>""",
    re.DOTALL | re.VERBOSE,
)
_INDENT = re.compile(r"\r?\n[ \t]*\Z")
# a declaration up to an encoding that is not UTF-8
_OTHER = re.compile(r"""\A(<\?xml\s[^>]*?\bencoding\s*=\s*(["']))(?!(?i:utf-?8)\2)[\w.-]+(?=\2)""")


@dataclass
class Span:
    """The position of an element in the text.

    The start tag is ``text[start:inner]``, the content ``text[inner:inner_end]``, and the whole
    element ``text[start:end]``. An empty element ``<a/>`` is all start tag. The name includes the
    prefix in the file.
    """

    name: str
    start: int
    inner: int
    inner_end: int = -1
    end: int = -1


@dataclass
class Markup:
    """The text of an XML file as `tagkin.collection.xmp.decode` returns it, its tree and edits."""

    text: str
    mark: bytes
    encoding: str
    root: Element
    _spans: dict[Element, Span] = field(default_factory=dict)
    _changes: list[tuple[int, int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes) -> Markup:
        """Parse the bytes of a file; raise `NotXml` if it is not well-formed or would change."""
        text, mark, encoding = decode(data)
        if mark + text.encode(encoding) != data:
            raise NotXml(f"decoding and encoding it as {encoding} changes it")
        root = parse(text)
        spans = _spans_of(text)
        elements = list(root.iter(etree.Element))
        if len(elements) != len(spans):
            raise NotXml(f"found {len(elements):,} elements and {len(spans):,} start tags")
        return cls(text, mark, encoding, root, dict(zip(elements, spans, strict=True)))

    def span(self, element: Element) -> Span:
        """Return the position of an element."""
        return self._spans[element]

    def indent(self, at: int) -> str:
        """Return the line break and blanks before a position; empty after other text."""
        match = _INDENT.search(self.text, max(0, at - 1000), at)
        return match[0] if match else ""

    def escape(self, text: str) -> str:
        """Escape text for use between tags or double quotes."""
        return escape(text, quote=False).replace('"', "&quot;")

    # --- changes ---

    def insert(self, at: int, text: str) -> None:
        """Insert text; insertions at one position keep the order of the calls."""
        self._changes.append((at, at, text))

    def replace(self, start: int, end: int, text: str) -> None:
        """Replace text."""
        self._changes.append((start, end, text))

    def cut(self, element: Element) -> None:
        """Remove an element with its line break."""
        span = self.span(element)
        self.replace(span.start - len(self.indent(span.start)), span.end, "")

    def put_inside(self, element: Element, text: str, closing: str) -> None:
        """Append text to the content of an element.

        `closing` goes before the end tag, unless the end tag is on a separate line.
        """
        span = self.span(element)
        if span.inner == span.end:
            self.replace(span.end - 2, span.end, f">{text}{closing}</{span.name}>")
            return
        indent = self.indent(span.inner_end)
        self.insert(span.inner_end - len(indent), text + ("" if indent else closing))

    @property
    def is_changed(self) -> bool:
        """Whether there are edits to apply."""
        return bool(self._changes)

    def apply(self) -> bytes:
        """Return the edited file in UTF-8.

        exiftool and exiv2 ignore declared encodings such as ISO-8859-1 and windows-1252, and exiv2
        does not open UTF-16 and UTF-32.
        """
        pieces, at = [], 0
        for start, end, text in sorted(self._changes, key=lambda change: change[:2]):
            pieces += [self.text[at:start], text]
            at = end
        pieces.append(self.text[at:])
        text = "".join(pieces)
        mark = self.mark if self.encoding == "utf-8" else b""
        return mark + _OTHER.sub(r"\1UTF-8", text).encode("utf-8")


def _spans_of(text: str) -> list[Span]:
    """Return the positions of all elements, in the order of their start tags."""
    spans: list[Span] = []
    unclosed: list[Span] = []
    for token in _TOKEN.finditer(text):
        if token["name"] is None:
            continue
        if token["end"]:
            span = unclosed.pop()
            span.inner_end, span.end = token.start(), token.end()
            continue
        span = Span(token["name"], token.start(), token.end())
        spans.append(span)
        if token["rest"].endswith("/"):
            span.inner_end = span.end = token.end()
        else:
            unclosed.append(span)
    return spans
