"""Photographs in folders, and the tags that people put on them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

from tagkin.collection.discovery import find_photographs
from tagkin.collection.keywords import read_metadata
from tagkin.errors import InvalidInput, UnreadableImage, pip_install
from tagkin.images import Failure
from tagkin.progress import Progress, silent

__all__ = ["Collection", "read_collection"]

_NAMED = 5  # examples in a message


@dataclass(frozen=True)
class Collection:
    """Photographs and their tags, in one order."""

    files: Sequence[str]
    tags: Sequence[Sequence[str]]
    """The tags of each photograph; an empty list if it has no tags."""
    absent: Sequence[str] = ()
    """Missing photographs that the tag file names."""
    failures: Sequence[Failure] = ()
    """Files and folders that could not be read."""
    raw_of: Mapping[str, str] = field(default_factory=dict)
    """Raw files that have a photograph of the same name, and that photograph. The two count as one
    photograph. Its pixels come from the second file, its tags from both."""
    unread_raw: Sequence[str] = ()
    """Raw files that were left out because the extra ``raw`` is not installed."""

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


def read_collection(
    locations: Iterable[str | os.PathLike[str]],
    tags: str | os.PathLike[str] | None = None,
    *,
    progress: Progress | None = None,
) -> Collection:
    """Find photographs and read their tags, in the photographs and their XMP sidecars.

    Parameters
    ----------
    locations : files and folders
    tags : path or "embedded", optional
        A file with more tags, in CSV, JSON Lines or the catalogue of a program; see `read_tags`.
        Default: a ``metadata.jsonl`` or ``metadata.csv`` in one of the folders, if there is one.
        "embedded" reads only keywords.
    progress : function of (what, done, all), optional

    Notes
    -----
    File names in a tag file are relative to its folder or to one of the locations. A bare name
    may also be that of a photograph in a subfolder, if no other photograph has the same name.
    Names may have backslashes between folders, as on Windows, and be in either Unicode form.
    """
    folders = [Path(location) for location in locations]
    failures: list[Failure] = []
    raw: list[tuple[Path, Path | None]] = []
    files = find_photographs(
        *folders, on_skipped=failures.append, on_raw=lambda *pair: raw.append(pair)
    )
    if not files:
        raise InvalidInput(_no_photographs_message(folders, failures, len(raw)))
    raw_of = {str(file): str(developed) for file, developed in raw if developed is not None}
    rows: list[list[str]] = [[] for _ in files]
    absent: list[str] = []
    # here, because most photographs carry their tags
    from tagkin.collection.matching import match_table
    from tagkin.collection.tag_files import explain_found, find_tag_file, read_tags

    path = find_tag_file(folders) if tags is None else Path(tags)
    if path is not None and tags != "embedded":
        with explain_found() if tags is None else nullcontext():
            table = read_tags(path)
            if not len(table):
                raise InvalidInput(f"{path} names no photograph. Add rows to it, or leave it out.")
            matched, absent, unread = match_table(table, path, files, raw_of, folders)
        for i, row in matched.items():
            rows[i] = row
        failures += unread
    failures += _add_keywords(rows, files, raw_of, progress or silent)
    unread_raw = [str(file) for file, developed in raw if developed is None]
    names = [str(file) for file in files]
    return Collection(names, rows, absent, failures, raw_of, unread_raw)


def _no_photographs_message(
    locations: Sequence[Path], failures: Sequence[Failure], n_raw: int
) -> str:
    names = ", ".join(map(str, locations)) or "no folder"
    message = (
        f"No photograph in {names}. tagkin reads JPEG, PNG, WebP, TIFF, GIF, BMP, PSD and JPEG "
        "2000 files."
    )
    if n_raw:
        message += f" Found {n_raw:,} raw files; they need {pip_install('raw')}."
    reasons = "; ".join(f"{failure.file}: {failure.reason}" for failure in failures[:_NAMED])
    return f"{message} {len(failures):,} could not be read: {reasons}" if failures else message


def _add_keywords(
    rows: list[list[str]], files: Sequence[Path], raw_of: Mapping[str, str], progress: Progress
) -> list[Failure]:
    """Add the keywords of each photograph to its row; return the failures."""
    failures: list[Failure] = []
    raw_files: dict[str, list[str]] = {}
    for raw, developed in raw_of.items():
        raw_files.setdefault(developed, []).append(raw)
    for i, file in enumerate(files):
        progress("Reading keywords", i, len(files))
        for path in (str(file), *raw_files.get(str(file), ())):
            try:
                metadata = read_metadata(path)
            except UnreadableImage as error:
                failures.append(Failure(path, str(error)))
                continue
            rows[i] = list(dict.fromkeys([*rows[i], *metadata.tags]))
            failures += metadata.problems
    progress("Reading keywords", len(files), len(files))
    return failures
