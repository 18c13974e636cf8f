"""The tags that a tag file has for the photographs in a folder."""

from pathlib import Path
from typing import NamedTuple

from tagkin.collection import find_photographs, read_tags
from tagkin.collection.matching import match_table


class Matched(NamedTuple):
    """Tags by path from the folder, and names of missing photographs."""

    tags: dict[str, list[str]]
    absent: list[str]


def match_tags(folder: Path, tag_file: Path) -> Matched:
    """Match as a scan does."""
    raw_of: dict[str, str] = {}

    def note_raw(raw: Path, photograph: Path | None) -> None:
        raw_of[str(raw)] = str(photograph)

    files = find_photographs(folder, on_raw=note_raw)
    matched, absent = match_table(read_tags(tag_file), tag_file, files, raw_of, folder)
    names = [file.relative_to(folder).as_posix() for file in files]
    return Matched({names[i]: tags for i, tags in matched.items()}, absent)
