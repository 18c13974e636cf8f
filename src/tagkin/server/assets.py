"""Templates, scripts and styles of the page, read from the package once."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources
from typing import NamedTuple

from jinja2 import Environment

from tagkin.templating import shown, template_environment
from tagkin.wording import percent

_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """A file that pages use."""

    content: bytes
    kind: str


@cache
def assets() -> dict[str, Asset]:
    """Return the files in ``static`` by name; a request can name no other path."""
    return {
        file.name: Asset(file.read_bytes(), kind)
        for file in (resources.files("tagkin.server") / "static").iterdir()
        if (kind := _KINDS.get(file.name[file.name.rfind(".") :])) is not None
    }


@cache
def assets_version() -> str:
    """Return a digest of all assets, which is part of their addresses."""
    content = hashlib.sha256()
    for name, asset in sorted(assets().items()):
        content.update(name.encode() + b"\0" + asset.content)
    return content.hexdigest()[:12]


def render(template: str, **data: object) -> str:
    """Render a page; every text in it is escaped."""
    return shown(_environment().get_template(template).render(data, static=_static))


def _static(name: str) -> str:
    """Return the address of an existing asset, relative to the base of a page."""
    if name not in assets():
        raise LookupError(f"There is no file {name} for pages.")
    return f"static/{assets_version()}/{name}"


@cache
def _environment() -> Environment:
    return template_environment(
        "tagkin.server",
        percent=percent,
        thousands=lambda n: f"{n:,.0f}",
    )
