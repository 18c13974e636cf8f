"""Render the templates of pages; every text is escaped."""

from __future__ import annotations

import base64
import hashlib
import math
import unicodedata
from functools import cache
from importlib import resources
from pathlib import PurePath
from typing import TYPE_CHECKING

from jinja2 import Environment

from tagkin.templating import shown, template_environment
from tagkin.wording import percent, shares_of, shares_text

if TYPE_CHECKING:
    from tagkin.annotator.suggestions import TagSuggestion

__all__ = ["environment", "read_part", "render", "shorten_name"]

_SHAPELESS = {"Cc", "Cs", "Cn"}  # controls, lone surrogates, unassigned characters


def render(template: str, **data: object) -> str:
    """Render a page from plain data; a mark replaces characters that HTML does not allow."""
    return shown(environment().get_template(template).render(data))


def read_part(name: str) -> str:
    """Read a page's style or script, which is inserted unchanged."""
    folder = resources.files("tagkin.pages").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


@cache
def environment() -> Environment:
    """Return the environment of the pages' templates, with their filters."""
    return template_environment(
        "tagkin.pages",
        clipped=_clip,
        digest=_digest,
        name=shorten_name,
        percent=percent,
        shares=_shares,
        sortable=_sortable,
        thousands=lambda n: f"{n:,}",
    )


def shorten_name(file: str, length: int = 26) -> str:
    """Return a file name without its folders; a long name loses its middle."""
    name = PurePath(file).name or file
    # a mark replaces characters without a shape
    name = "".join("\ufffd" if unicodedata.category(c) in _SHAPELESS else c for c in name)
    if len(name) <= length:
        return name
    tail = (length - 1) // 2
    return f"{name[: length - 1 - tail]}…{name[-tail:]}"


def _clip(share: float) -> float:
    """Clip a share to the range from 0 to 1 for a bar; 0 if unknown."""
    return 0.0 if math.isnan(share) else min(max(share, 0.0), 1.0)


def _shares(suggestion: TagSuggestion) -> str:
    """Say how much each input contributes to a suggestion."""
    return f"Suggested {shares_text(shares_of(suggestion))}."


def _sortable(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.6f}"


def _digest(text: str) -> str:
    """Return the hash of a style or a script for a content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
