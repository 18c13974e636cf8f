"""The pictures of a page: each is embedded once, and used wherever it is needed."""

from __future__ import annotations

from tagkin.pages._html import Markup, data_uri, element
from tagkin.pages._text import name_of
from tagkin.pages._thumbnails import jpeg

__all__ = ["Pictures"]

_LARGE, _SMALL = 200, 104  # pixels of the longer side


class Pictures:
    """Collects the kin of a page as symbols; makes the large pictures in place."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._symbols: list[Markup] = []

    def large(self, file: str) -> Markup:
        """A photograph as it is shown on its card."""
        data, width, height = jpeg(file, _LARGE)
        return element(
            "img",
            src=data_uri(data, "image/jpeg"),
            width=width,
            height=height,
            alt=f"Photograph {name_of(file)}",
            loading="lazy",
        )

    def small(self, file: str) -> Markup:
        """The middle of a photograph, as a square that refers to the one copy of it.

        Its name stands beside it, so that it says nothing to a screen reader.
        """
        if file not in self._numbers:
            self._numbers[file] = len(self._numbers)
            self._symbols.append(self._symbol(file))
        return element(
            "svg",
            element("use", href=f"#k{self._numbers[file]}", width="100%", height="100%"),
            class_="thumb",
            aria_hidden="true",
        )

    def _symbol(self, file: str) -> Markup:
        data, width, height = jpeg(file, _SMALL)
        image = element("image", href=data_uri(data, "image/jpeg"), width=width, height=height)
        return element(
            "symbol",
            image,
            id=f"k{self._numbers[file]}",
            viewBox=f"0 0 {width} {height}",
            preserveAspectRatio="xMidYMid slice",
        )

    def store(self) -> Markup | None:
        """The one copy of every kin; goes anywhere on the page and shows nothing itself."""
        if not self._symbols:
            return None
        return element("svg", *self._symbols, class_="pictures", aria_hidden="true")
