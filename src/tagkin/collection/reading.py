"""Photographs in a folder, and the tags that people put on them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tagkin.collection.discovery import find_photographs
from tagkin.collection.keywords import read_metadata
from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images import Failure

__all__ = ["Collection", "read_collection"]


@dataclass(frozen=True)
class Collection:
    """Photographs and their tags, in one order."""

    files: Sequence[str]
    tags: Sequence[Sequence[str]]
    """The tags of each photograph; an empty list if it has no tags."""
    failures: Sequence[Failure] = ()
    """Files and folders that could not be read."""

    def __post_init__(self) -> None:
        if len(self.files) != len(self.tags):
            raise InvalidInput(
                f"Found {len(self.files)} photographs and {len(self.tags)} lists of tags."
            )

    def __len__(self) -> int:
        return len(self.files)

    @property
    def n_tagged(self) -> int:
        """Number of photographs with tags."""
        return sum(bool(row) for row in self.tags)

    def tagged(self) -> Collection:
        """Return the photographs with tags."""
        pairs = [pair for pair in zip(self.files, self.tags, strict=True) if pair[1]]
        return replace(self, files=[file for file, _ in pairs], tags=[row for _, row in pairs])

    def untagged(self) -> Collection:
        """Return the photographs without tags."""
        files = [file for file, row in zip(self.files, self.tags, strict=True) if not row]
        return replace(self, files=files, tags=[[] for _ in files])


def read_collection(folder: str | os.PathLike[str], *, tags: str | None = None) -> Collection:
    """Find the photographs in a folder, and read their tags, as a catalogue does.

    Tags are in photographs, in their sidecars and in a tag file. The tags of a RAW file beside a
    photograph of the same name are the photograph's, too.

    Parameters
    ----------
    folder : path
        The folder, whose subfolders are read, too.
    tags : str, optional
        A tag file or the catalogue of another program (see `read_tags`), from the folder if it is
        relative, or "embedded" for none. Default: the folder's ``metadata.jsonl`` or
        ``metadata.csv``, if there is one.
    """
    failures: list[Failure] = []
    raw_files: dict[Path, list[Path]] = {}

    def note_raw(raw: Path, photograph: Path | None) -> None:
        if photograph is not None:
            raw_files.setdefault(photograph, []).append(raw)

    files = find_photographs(folder, on_skipped=failures.append, on_raw=note_raw)
    if not files:
        reasons = "".join(f" {failure.file}: {failure.reason}." for failure in failures[:5])
        raise InvalidInput(f"No photograph in {os.fspath(folder)}.{reasons}")
    rows = []
    for file in files:
        found: dict[str, None] = {}
        for path in (file, *raw_files.get(file, ())):
            try:
                metadata = read_metadata(path)
            except UnreadableImage as error:
                failures.append(Failure(str(path), str(error)))
                continue
            found |= dict.fromkeys(metadata.tags)
            failures += metadata.problems
        rows.append(list(found))
    developed = {str(raw): str(file) for file, raws in raw_files.items() for raw in raws}
    for i, named in _read_tag_file(Path(folder), tags, files, developed).items():
        rows[i] = list(dict.fromkeys([*named, *rows[i]]))
    return Collection([str(file) for file in files], rows, failures)


def _read_tag_file(
    folder: Path, tags: str | None, files: Sequence[Path], developed: Mapping[str, str]
) -> dict[int, list[str]]:
    """Return the tags in a tag file by the index of their photograph."""
    if tags == "embedded":
        return {}
    # here, because few collections have such files
    from tagkin.collection.matching import match_table
    from tagkin.collection.tag_files import find_tag_file, locate_tag_file, read_tags

    file = locate_tag_file(folder / tags) if tags else find_tag_file(folder)
    return {} if file is None else match_table(read_tags(file), file, files, developed, folder)[0]
