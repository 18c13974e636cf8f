"""Text files with a tag on each line."""

from __future__ import annotations

import os
from pathlib import Path

from tagkin.collection.levels import tidy
from tagkin.errors import InvalidInput

__all__ = ["read_tag_list"]


def read_tag_list(path: str | os.PathLike[str]) -> list[str]:
    """Read the tags of a text file, one on each line, with ``|`` between levels, each once.

    Blank lines and lines that begin with # are ignored.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text ({error}). Save it as UTF-8.") from error
    tags = (tidy(line) for line in text.splitlines() if not line.lstrip().startswith("#"))
    return list(dict.fromkeys(filter(None, tags)))
