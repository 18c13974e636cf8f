"""A table of results."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Table"]


class Table(NamedTuple):
    """Rows of cells; None is an empty cell."""

    name: str
    """Name of its file."""
    columns: list[str]
    rows: list[list[Any]]
