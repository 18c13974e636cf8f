"""Lists that people write: tags that mean the same, and tags to leave out."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

from tagkin.errors import InvalidInput

__all__ = ["read_synonyms", "read_tag_list"]


def read_synonyms(path: str | os.PathLike[str]) -> dict[str, str]:
    """Tags that mean the same, from a text file: tag → the tag to use in its place.

    A line is a group, its tags separated by commas, the tag to use first. A tag with a comma in
    it stands in double quotes. Blank lines and lines that begin with # say nothing.
    """
    found: dict[str, str] = {}
    for number, line in _lines(path):
        tags = [tag.strip() for tag in next(csv.reader([line], skipinitialspace=True))]
        first, *others = [tag for tag in tags if tag] or [""]
        if not others:
            raise InvalidInput(
                f"{path}, line {number}: found one tag, {line!r}. A line is a group of tags that "
                "mean the same, separated by commas."
            )
        for tag in others:
            if found.setdefault(tag, first) != first:
                raise InvalidInput(
                    f"{path}, line {number}: {tag!r} stands for {first!r} here and for "
                    f"{found[tag]!r} further up. Keep it in one group."
                )
    return found


def read_tag_list(path: str | os.PathLike[str]) -> list[str]:
    """Tags from a text file, one a line; blank lines and lines that begin with # say nothing."""
    return [line for _, line in _lines(path)]


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Lines that say something, and their numbers."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text ({error}). Save it as UTF-8.") from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()
