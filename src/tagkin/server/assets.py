"""Templates and files of the page, read from the package once: no request names a path."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from jinja2 import Environment

from tagkin.templating import shown, template_environment

__all__ = ["Asset", "assets", "assets_version", "render"]

_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


class Asset(NamedTuple):
    """A file that pages use."""

    content: bytes
    kind: str


@cache
def assets() -> dict[str, Asset]:
    """All files in ``static``, by name with / between folders."""
    found = _files(resources.files("tagkin.server") / "static", "")
    return {
        name: Asset(file.read_bytes(), kind)
        for name, file in found
        if (kind := _KINDS.get(name[name.rfind(".") :])) is not None
    }


def _files(folder: Traversable, start: str) -> Iterator[tuple[str, Traversable]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _files(one, f"{start}{one.name}/")
        else:
            yield start + one.name, one


@cache
def assets_version() -> str:
    """In the address of every asset: another one when any of them is another."""
    content = hashlib.sha256()
    for name, asset in sorted(assets().items()):
        content.update(name.encode() + b"\0" + asset.content)
    return content.hexdigest()[:12]


def render(template: str, **data: object) -> str:
    """A page; every text that goes into it is escaped."""
    return shown(_environment().get_template(template).render(data, static=_static))


def _static(name: str) -> str:
    """Return the address of an asset, relative to the base of a page; the asset must exist."""
    if name not in assets():
        raise LookupError(f"There is no file {name} for pages.")
    return f"static/{assets_version()}/{name}"


@cache
def _environment() -> Environment:
    return template_environment(
        "tagkin.server",
        percent=lambda share: "–" if share is None else f"{100 * share:.0f} %",
        thousands=lambda n: f"{n:,.0f}",
    )
