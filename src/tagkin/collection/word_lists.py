"""Text files with a tag, or a group of synonyms, on each line."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

from tagkin.collection.levels import tidy
from tagkin.errors import InvalidInput

__all__ = ["read_synonyms", "read_tag_list"]


def read_synonyms(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read synonyms from a text file, as a dict of tag to preferred tag.

    Each line is a group of tags, separated by commas, the preferred tag first. A tag with a comma
    in it needs double quotes. Blank lines and lines that begin with # are ignored.
    """
    preferred: dict[str, str] = {}
    for number, line in _lines(path):
        tags = [tag.strip() for tag in next(csv.reader([line], skipinitialspace=True))]
        first, *others = [tag for tag in tags if tag] or [""]
        if not others:
            raise InvalidInput(
                f"{path}, line {number}: found one tag, {line!r}. Write tags that mean the same "
                "on one line, separated by commas."
            )
        for tag in others:
            if preferred.setdefault(tag, first) != first:
                raise InvalidInput(
                    f"{path}, line {number}: {tag!r} stands for {first!r} here and for "
                    f"{preferred[tag]!r} further up. Keep it in one group."
                )
    return preferred


def read_tag_list(path: str | os.PathLike[str]) -> list[str]:
    """Read the tags of a text file, one on each line, with ``|`` between levels, each once.

    Blank lines and lines that begin with # are ignored.
    """
    return list(dict.fromkeys(filter(None, (tidy(line) for _, line in _lines(path)))))


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that is not blank or a comment."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text ({error}). Save it as UTF-8.") from error
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line and not line.startswith("#"):
            yield number, line
