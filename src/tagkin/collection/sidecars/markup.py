"""A sidecar as it is written: where each element stands in the text, and changes to the text.

lxml says what an XML file means, but writes it anew in its own way: quotes, line ends and line
breaks between attributes would be lost. So it only reads. Changes are pieces of text that are
put in or taken out, and everything else stays as it is, byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape  # xml.sax.saxutils has the same, and imports what speaks to the network
from typing import Any

from lxml import etree

from tagkin.collection.xmp import NotXml, decode, parse

__all__ = ["Markup", "Span"]

# Text that lxml has parsed: what is not well-formed need not be told from it any more.
_TOKEN = re.compile(
    r"""<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>
    |<(?P<end>/?)(?P<name>[^\s/>]+)(?P<rest>(?:[^>"']+|"[^"]*"|'[^']*')*+)>""",
    re.DOTALL | re.VERBOSE,
)
_PAIRS = re.compile("[\U00010000-\U0010ffff]")
_INDENT = re.compile(r"\r?\n[ \t]*\Z")
_ENCODING = re.compile(r"""\A(<\?xml\s[^>]*?\bencoding\s*=\s*)(["'])([\w.-]+)\2""")


@dataclass
class Span:
    """Where an element stands: its start tag, what is inside, and its end.

    Attributes
    ----------
    name : str
        Its name with the prefix that the file gives it.
    start, inner, inner_end, end : int
        The start tag is ``text[start:inner]``, what is inside ``text[inner:inner_end]``, and the
        whole element ``text[start:end]``. An empty element ``<a/>`` is all start tag.
    """

    name: str
    start: int
    inner: int
    inner_end: int = -1
    end: int = -1

    @property
    def is_empty_tag(self) -> bool:
        """Whether it is written ``<a/>``."""
        return self.inner == self.end


@dataclass
class Markup:
    """The text of an XML file, its tree, and the changes to be made.

    Attributes
    ----------
    text, mark, encoding : str, bytes, str
        As `tagkin.collection.xmp.decode` gives them.
    root : element
    """

    text: str
    mark: bytes
    encoding: str
    root: Any
    _spans: dict[Any, Span] = field(default_factory=dict)
    _changes: list[tuple[int, int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes) -> Markup:
        """Read a file.

        Raises
        ------
        NotXml
            If it is not well-formed, or would not be the same again when it is encoded.
        """
        text, mark, encoding = decode(data)
        if mark + text.encode(encoding) != data:
            raise NotXml(f"it is not the same when it is encoded as {encoding} again")
        root = parse(text)
        spans = _spans_of(text)
        elements = list(root.iter(etree.Element))
        if len(elements) != len(spans):
            raise NotXml(f"found {len(elements):,} elements and {len(spans):,} start tags")
        return cls(text, mark, encoding, root, dict(zip(elements, spans, strict=True)))

    def span(self, element: Any) -> Span:
        """Where an element stands."""
        return self._spans[element]

    def indent(self, at: int) -> str:
        """The line break and the blanks before a position; nothing where other text is there."""
        found = _INDENT.search(self.text, max(0, at - 1000), at)
        return found[0] if found else ""

    def escaped(self, text: str) -> str:
        """Text as it is written between tags or between double quotes.

        exiftool does not read the pairs that UTF-16 has for emoji: there they are numbers.
        """
        text = escape(text, quote=False).replace('"', "&quot;")
        if self.encoding.startswith("utf-16"):
            return _PAIRS.sub(lambda pair: f"&#{ord(pair[0])};", text)
        return text

    # --- changes ---

    def insert(self, at: int, text: str) -> None:
        """Put text in; what is put in at one position stays in the order of the calls."""
        self._changes.append((at, at, text))

    def replace(self, start: int, end: int, text: str) -> None:
        """Put text in the place of other text."""
        self._changes.append((start, end, text))

    def cut(self, element: Any) -> None:
        """Take an element out, with its line break."""
        span = self.span(element)
        self.replace(span.start - len(self.indent(span.start)), span.end, "")

    def put_inside(self, element: Any, text: str, closing: str) -> None:
        """Put text in as the last of what an element holds; its end tag comes after `closing`.

        Where the end tag stands on a line of its own already, it stays there.
        """
        span = self.span(element)
        if span.is_empty_tag:
            self.replace(span.end - 2, span.end, f">{text}{closing}</{span.name}>")
            return
        indent = self.indent(span.inner_end)
        self.insert(span.inner_end - len(indent), text + ("" if indent else closing))

    @property
    def is_changed(self) -> bool:
        """Whether there is any change to be made."""
        return bool(self._changes)

    def changed(self) -> bytes:
        """The file with its changes, in UTF-8 unless it is in UTF-16 or UTF-32.

        exiftool and exiv2 do not read ISO-8859-1, windows-1252 and the like as declared.
        """
        pieces, at = [], 0
        for start, end, text in sorted(self._changes, key=lambda change: change[:2]):
            pieces += [self.text[at:start], text]
            at = end
        pieces.append(self.text[at:])
        text = "".join(pieces)
        if self.mark:
            return self.mark + text.encode(self.encoding)
        return _ENCODING.sub(_as_utf8, text).encode("utf-8")


def _as_utf8(declaration: re.Match[str]) -> str:
    before, quote, name = declaration.groups()
    is_utf8 = name.lower() in ("utf-8", "utf8")
    return declaration[0] if is_utf8 else f"{before}{quote}UTF-8{quote}"


def _spans_of(text: str) -> list[Span]:
    """Every element, in the order of their start tags."""
    spans: list[Span] = []
    waiting: list[Span] = []
    for token in _TOKEN.finditer(text):
        if token["name"] is None:
            continue
        if token["end"]:
            span = waiting.pop()
            span.inner_end, span.end = token.start(), token.end()
            continue
        span = Span(token["name"], token.start(), token.end())
        spans.append(span)
        if token["rest"].endswith("/"):
            span.inner_end = span.end = token.end()
        else:
            waiting.append(span)
    return spans
