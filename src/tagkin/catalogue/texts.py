"""Lists and mappings that a catalogue keeps as JSON."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from tagkin.errors import StorageError

__all__ = ["damaged", "from_text"]

T = TypeVar("T", dict[str, Any], list[Any])


def from_text(text: Any, kind: type[T]) -> T:
    """What a text of a catalogue says: a ``dict`` or a ``list``.

    Raises
    ------
    StorageError
        If it says something else: SQLite does not notice bytes that changed inside a text.
    """
    try:
        found = json.loads(text)
    except (RecursionError, TypeError, ValueError) as error:
        raise damaged(str(error)) from error
    if not isinstance(found, kind):
        raise damaged(f"a {type(found).__name__} where a {kind.__name__} was kept")
    return found


def damaged(why: str) -> StorageError:
    """The error for a value of the catalogue that tagkin cannot have written."""
    return StorageError(
        f"The catalogue is damaged: a value in it is not as it was written ({why}). Put it aside "
        "and scan again: your tags are in your files; decisions come back with `tagkin import`, "
        "if they were exported."
    )
