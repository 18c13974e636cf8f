"""The pictures of a page, each embedded once."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tagkin.annotator.suggestions import Kin
from tagkin.pages.thumbnails import jpeg

__all__ = ["Picture", "Pictures", "data_uri", "pictures_of"]

_N_KIN = 6  # shown per suggestion; the others are summed up
_LARGE, _SMALL = 200, 104  # pixels of the longer side


class Picture(NamedTuple):
    """A small copy of a photograph."""

    id: str
    src: str
    width: int
    height: int


class Pictures(NamedTuple):
    """Photographs by their files: large ones for cards, small ones for kin."""

    large: dict[str, Picture]
    small: dict[str, Picture]
    n_kin: int = _N_KIN


def pictures_of(files: Iterable[str], kin: Iterable[Sequence[Kin]]) -> Pictures:
    """Return small copies of the cards' photographs and kin; read each photograph once."""
    kin_files = (relative.file for relatives in kin for relative in relatives[:_N_KIN])
    return Pictures(_make_copies(files, _LARGE, "p"), _make_copies(kin_files, _SMALL, "k"))


def _make_copies(files: Iterable[str], size: int, prefix: str) -> dict[str, Picture]:
    copies = {}
    for k, file in enumerate(dict.fromkeys(files)):
        data, width, height = jpeg(file, size)
        copies[file] = Picture(f"{prefix}{k}", data_uri(data, "image/jpeg"), width, height)
    return copies


def data_uri(data: bytes, kind: str) -> str:
    """Return a file's content as a data URI."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"
