"""Templates of pages: every text that goes into one is escaped, and no name may be missing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["shown", "template_environment"]

# what HTML, JSON or UTF-8 cannot hold: control characters and halves of surrogate pairs
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def template_environment(package: str, **filters: Callable[..., Any]) -> Environment:
    """The templates in a package's folder ``templates``, with filters of its own."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= filters
    return environment


def shown(text: str) -> str:
    """A text as a page can hold it: a mark stands for what none can."""
    return _UNFIT.sub("\ufffd", text)
