"""Templates of pages, which escape every text and reject missing names."""

from __future__ import annotations

import re
from collections.abc import Callable

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["shown", "template_environment"]

# control characters and lone surrogates, which HTML, JSON or UTF-8 do not allow
_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def template_environment(package: str, **filters: Callable[..., object]) -> Environment:
    """Return the environment of a package's folder ``templates``, with its own filters."""
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
    """Replace characters that a page cannot contain by a mark."""
    return _UNFIT.sub("\ufffd", text)
