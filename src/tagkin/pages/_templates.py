"""The templates of pages: every text that goes into one is escaped."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from jinja2 import Environment

from tagkin.pages._text import name_of
from tagkin.templating import shown, template_environment
from tagkin.wording import shares_text

if TYPE_CHECKING:
    from tagkin.annotator.suggestions import TagSuggestion

__all__ = ["environment", "read_part", "render"]


def render(template: str, **data: object) -> str:
    """A page, drawn from plain data; a mark stands for characters that no page can hold."""
    return shown(environment().get_template(template).render(data))


def read_part(name: str) -> str:
    """A file that goes into a page as it is: its style or its script."""
    folder = resources.files("tagkin.pages").joinpath("templates")
    return folder.joinpath(name).read_text(encoding="utf-8")


@cache
def environment() -> Environment:
    return template_environment(
        "tagkin.pages",
        clipped=_clipped,
        digest=_digest,
        name=name_of,
        percent=_percent,
        shares=_shares,
        sortable=_sortable,
        thousands=lambda n: f"{n:,}",
    )


def _clipped(share: float) -> float:
    """A share as a part of a bar: between 0 and 1, and 0 where it is not known."""
    return 0.0 if math.isnan(share) else min(max(share, 0.0), 1.0)


def _percent(share: float, digits: int = 0) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.{digits}f} %"


def _shares(one: TagSuggestion) -> str:
    """How much kin, the photograph and the tag's name have to do with a suggestion."""
    return f"Suggested {shares_text(one.name_share, one.readout_share)}."


def _sortable(share: float) -> str:
    return "" if math.isnan(share) else f"{share:.6f}"


def _digest(text: str) -> str:
    """As a content security policy names a style or a script."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
