"""Text files with synonyms and with lists of tags.

A list of tags has one tag per line. It can have levels and synonyms, as a keyword list of
Lightroom has them: a line with one more tab is a level below, ``[brackets]`` hold a level that is
not itself a tag, and ``{braces}`` hold a synonym of the tag above.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tagkin.collection.levels import last_level, tidy
from tagkin.errors import InvalidInput

__all__ = ["format_tag_list", "read_synonyms", "read_tag_list"]

_MARKS = ("#", "[", "{")  # of a comment, a level that is not a tag, and a synonym


def read_synonyms(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read synonyms from a text file, as a dict of tag to preferred tag.

    Each line is a group of tags, separated by commas, the preferred tag first. A tag with a comma
    in it needs double quotes. Blank lines and lines that begin with # are ignored. In a list of
    tags, synonyms are in braces below their tag.
    """
    lines = list(_lines(path))
    if any(_within(line, "{}") for _, line in lines):
        return _read_levels(path)[1]
    preferred: dict[str, str] = {}
    for number, line in ((number, line.strip()) for number, line in lines):
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
    """Read the tags of a list, each once; ``dog`` one level below ``animal`` is ``animal|dog``."""
    return _read_levels(path)[0]


def _read_levels(path: str | os.PathLike[str]) -> tuple[list[str], dict[str, str]]:
    """Return the tags of a list, and the tag of each synonym."""
    tags: dict[str, None] = {}
    synonyms: dict[str, str] = {}
    above: list[str] = []
    for number, line in _lines(path):
        n_tabs = len(line) - len(line.lstrip("\t"))
        if n_tabs > len(above):
            raise InvalidInput(
                f"{path}, line {number}: {line.strip()!r} has {n_tabs} tabs before it, and a line "
                f"here can have {len(above)}. A level has one tab more than the level above it."
            )
        if synonym := _within(line, "{}"):
            if n_tabs:
                synonyms.setdefault(synonym, tidy("|".join(above[:n_tabs])))
            continue
        category = _within(line, "[]")
        above[n_tabs:] = [category or line.strip()]
        if not category:
            tags[tidy("|".join(above))] = None
    return list(filter(None, tags)), {s: tag for s, tag in synonyms.items() if tag in tags}


def _within(line: str, marks: str) -> str:
    """Return the text of a line within two marks, or nothing."""
    text = line.strip()
    return text[1:-1].strip() if text[0] == marks[0] and text[-1] == marks[1] else ""


def format_tag_list(tags: Iterable[str], synonyms: Mapping[str, str]) -> tuple[str, list[str]]:
    """Return the text of a list of tags with levels and synonyms, which `read_tag_list` reads.

    Also return the tags that such a list cannot hold, because a level begins with a mark.
    `synonyms` are synonym → tag; of a synonym with levels, the last level is one.

    Parameters
    ----------
    tags : iterable of str
        Tags, with ``|`` between levels.
    synonyms : mapping of str to str
        Synonyms, and the tag that each stands for.
    """
    levels_of = {tag: tag.split("|") for tag in tags}
    left_out = [tag for tag, ls in levels_of.items() if any(le.startswith(_MARKS) for le in ls)]
    names: dict[str, list[str]] = {}
    for synonym, tag in sorted(synonyms.items()):
        word = last_level(synonym)
        if word != last_level(tag) and not word.startswith(_MARKS):
            names.setdefault(tag, []).append(word)
    lines: list[str] = []
    above: list[str] = []
    wanted = levels_of.keys() - set(left_out)
    for tag in sorted(wanted, key=lambda tag: [(le.casefold(), le) for le in levels_of[tag]]):
        levels = levels_of[tag]
        for depth, level in enumerate(levels):
            if above[: depth + 1] != levels[: depth + 1]:
                known = "|".join(levels[: depth + 1])
                lines.append("\t" * depth + (level if known in wanted else f"[{level}]"))
                below = "\t" * (depth + 1)
                lines += [f"{below}{{{word}}}" for word in dict.fromkeys(names.get(known, ()))]
        above = levels
    return "".join(f"{line}\n" for line in lines), left_out


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that is not blank or a comment."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text ({error}). Save it as UTF-8.") from error
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield number, line
