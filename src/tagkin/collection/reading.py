"""Photographs in folders, and the tags that people put on them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tagkin.collection.discovery import find_photographs
from tagkin.collection.keywords import read_metadata
from tagkin.errors import InvalidInput, Parameter, StorageError, UnreadableImage, pip_install
from tagkin.images import Failure
from tagkin.progress import Progress, silent

if TYPE_CHECKING:
    from tagkin.collection.tag_tables import TagTable

__all__ = ["METADATA", "Collection", "read_collection"]

METADATA = ("metadata.jsonl", "metadata.csv")  # found in the folder itself, as Hugging Face has it
_KEYWORDS = "the photographs' own keywords"
_EMBEDDED = Parameter("tags", "embedded")
_NAMED = 5  # examples in a message


@dataclass(frozen=True)
class Collection:
    """Photographs and their tags, in one order."""

    files: Sequence[str]
    tags: Sequence[Sequence[str]]
    """The tags of each photograph; an empty list if it has no tags."""
    source: str = ""
    """Where the tags come from, in words."""
    absent: Sequence[str] = ()
    """Missing photographs that the tag file names."""
    failures: Sequence[Failure] = ()
    """Files and folders that could not be read."""
    tags_from: str = "given"
    """"given" by a caller, "embedded" in the photographs, from a "file", "both", or "none"."""
    tag_file: str = ""
    """The tag file, or an empty string."""
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

    def knows_tags_from(self, source: str) -> bool:
        """Whether this collection would have read tags that once came from `source`.

        Tags from a tag file, for example, are not known if only keywords were read now. A caller
        who passes the tags, or no tags, knows all of them.
        """
        reads_both = self.tags_from == "both" and source in ("embedded", "file")
        return self.tags_from in ("given", "none", source) or reads_both

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
    column: str | None = None,
    progress: Progress | None = None,
) -> Collection:
    r"""Find photographs and read their tags.

    Parameters
    ----------
    locations : files and folders
    tags : path, "embedded", "both" or "none", optional
        A tag file (CSV or JSON Lines, see `tagkin.collection.tag_files`). Default: a
        ``metadata.jsonl`` or ``metadata.csv`` in one of the folders, else the keywords in the
        photographs and their XMP sidecars. "embedded" always reads these keywords, "both" reads
        the metadata file and the keywords, "none" reads no tags.
    column : str, optional
        The column of tags in the file.
    progress : function of (what, done, all), optional

    Notes
    -----
    File names in a tag file are relative to its folder or to one of the locations. A bare name
    may also be that of a photograph in a subfolder, if no other photograph has the same name.
    Names may contain ``\`` between folders, as on Windows, and be in either Unicode form.
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
    kind, path = _choose_source(tags, folders)
    rows: list[list[str]] = [[] for _ in files]
    absent: list[str] = []
    if path is not None:
        from tagkin.collection.matching import match_table  # most photographs carry their tags

        table = _read_table(path, column, was_named=kind == "file" and tags is not None)
        matched, absent, unread = match_table(table, path, files, raw_of, folders)
        for i, row in matched.items():
            rows[i] = row
        failures += unread
    if kind in ("embedded", "both"):
        failures += _add_keywords(rows, files, raw_of, progress or silent)
    source = {"file": f"{path}", "both": f"{path} and {_KEYWORDS}", "none": "no place"}
    return Collection(
        [str(file) for file in files],
        rows,
        source.get(kind, _KEYWORDS),
        absent,
        failures,
        kind,
        "" if path is None else str(path),
        raw_of,
        [str(file) for file, developed in raw if developed is None],
    )


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


def _choose_source(
    tags: str | os.PathLike[str] | None, locations: Sequence[Path]
) -> tuple[str, Path | None]:
    """Return the kind of source to read tags from, and the tag file or None."""
    source = "" if tags is None else os.fspath(tags)
    if source in ("embedded", "none"):
        return source, None
    if source and source != "both":
        return "file", Path(source)
    path = _find_metadata_file(locations)
    if path is None and source:
        raise InvalidInput(
            f"No {' or '.join(METADATA)} in {', '.join(map(str, locations))}. Name a tag file, or "
            "read only the keywords with ",
            _EMBEDDED,
            ".",
        )
    return source or ("embedded" if path is None else "file"), path


def _find_metadata_file(locations: Sequence[Path]) -> Path | None:
    candidates = dict.fromkeys(location / name for location in locations for name in METADATA)
    paths = [path for path in candidates if os.path.isfile(path)]  # False also if not permitted
    if len(paths) > 1:
        raise InvalidInput(
            f"Found several tag files: {', '.join(map(str, paths))}. Name the file to use, or "
            "read the keywords in the photographs with ",
            _EMBEDDED,
            ".",
        )
    return paths[0] if paths else None


def _read_table(path: Path, column: str | None, *, was_named: bool) -> TagTable:
    """Read a tag file; a file that the user did not name may hold something else."""
    from tagkin.collection.tag_files import read_tags

    try:
        table = read_tags(path, column=column)
        if not len(table):
            raise InvalidInput(f"{path} names no photograph. Add rows to it, or remove it.")
    except (InvalidInput, StorageError) as error:
        if was_named:
            raise
        hint = " If it is not a tag file, read the keywords in the photographs with "
        raise type(error)(*error.parts, hint, _EMBEDDED, ".") from error
    return table


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
