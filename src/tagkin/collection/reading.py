"""Photographs in folders, and the tags that people put on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tagkin.collection.discovery import find_photographs
from tagkin.collection.keywords import find_keywords
from tagkin.collection.matching import match_table
from tagkin.collection.tag_files import TagTable, read_tags
from tagkin.errors import InvalidInput, Parameter, StorageError, UnreadableImage, pip_install
from tagkin.images import Failure
from tagkin.progress import Progress

__all__ = ["METADATA", "Collection", "Progress", "read_collection"]

METADATA = ("metadata.jsonl", "metadata.csv")  # found in the folder itself, as Hugging Face has it
# Where each kind of collection has its tags from; given: from a caller who knows.
_SOURCES = {"none": {"nowhere"}, "embedded": {"keywords"}, "file": {"file"}, "given": {"caller"}}
_SOURCES["both"] = _SOURCES["embedded"] | _SOURCES["file"]
_KEYWORDS = "the photographs' own keywords"
_EMBEDDED = Parameter("tags", "embedded")
_NAMED = 5  # examples in a message


@dataclass(frozen=True)
class Collection:
    """Photographs and their tags, in one order.

    Attributes
    ----------
    files : list of str
    tags : list of lists of str
        Empty where a photograph has none.
    source : str
        Where the tags come from, in words.
    tags_from : {"given", "embedded", "file", "both", "none"}
        Where the tags come from: a caller, keywords in the photographs, a tag file, both of
        these, or nowhere.
    tag_file : str
        The tag file, if there is one.
    absent : list of str
        Photographs that the tag file names and that are not there.
    failures : list of Failure
        What could not be read while looking.
    raw_of : dict of str to str
        Raw files of cameras, and for each the photograph of the same name beside it: the two are
        one photograph, of which the second is looked at. Keywords of both are its tags.
    unread_raw : list of str
        Raw files that were left out because nothing here can read them.
    """

    files: Sequence[str]
    tags: Sequence[Sequence[str]]
    source: str = ""
    absent: Sequence[str] = ()
    failures: Sequence[Failure] = ()
    tags_from: str = "given"
    tag_file: str = ""
    raw_of: Mapping[str, str] = field(default_factory=dict)
    unread_raw: Sequence[str] = ()

    def __post_init__(self) -> None:
        if len(self.files) != len(self.tags):
            raise InvalidInput(
                f"Found {len(self.files)} photographs and {len(self.tags)} lists of tags."
            )

    def __len__(self) -> int:
        return len(self.files)

    @property
    def n_tagged(self) -> int:
        """Photographs that carry a tag."""
        return sum(bool(row) for row in self.tags)

    def knows_tags_from(self, source: str) -> bool:
        """Whether tags that once came from `source` would be here, were they still there.

        They would not if they came from a tag file, and only keywords were looked at now. A
        caller who gives the tags, or says that there are none, knows.
        """
        return self.tags_from in ("given", "none") or _SOURCES[source] <= _SOURCES[self.tags_from]

    def tagged(self) -> Collection:
        """The photographs that carry a tag."""
        return self._where(lambda row: bool(row))

    def untagged(self) -> Collection:
        """The photographs that carry none."""
        return self._where(lambda row: not row)

    def _where(self, wanted: Callable[[Sequence[str]], bool]) -> Collection:
        rows = [i for i, row in enumerate(self.tags) if wanted(row)]
        files, tags = [self.files[i] for i in rows], [self.tags[i] for i in rows]
        return replace(self, files=files, tags=tags)


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
        A tag file (CSV or JSON Lines, see `tagkin.collection.tag_files`). Without it, a
        ``metadata.jsonl`` or ``metadata.csv`` in one of the folders; without that, the keywords
        in the photographs themselves and in XMP files beside them. "embedded" reads these
        keywords, whatever files there are, "both" the metadata file in the folder and the
        keywords together, "none" nothing.
    column : str, optional
        The column of tags in the file.
    progress : function of (what, done, all), optional

    Notes
    -----
    File names in a tag file are looked for beside the tag file, then in the folders given. A
    bare name may also stand for the one photograph of that name in any of their sub-folders.
    Names may be written as on Windows, with \ between folders, and in either Unicode form.
    Nothing is written.
    """
    folders = [Path(location) for location in locations]
    failures: list[Failure] = []
    raw: list[tuple[Path, Path | None]] = []
    files = find_photographs(
        *folders, on_skipped=failures.append, on_raw=lambda *pair: raw.append(pair)
    )
    if not files:
        raise InvalidInput(_nothing_in(folders, failures, len(raw)))
    raw_of = {str(one): str(beside) for one, beside in raw if beside is not None}
    kind, path = _asked_for(tags, folders)
    rows: list[list[str]] = [[] for _ in files]
    absent: list[str] = []
    if path is not None:
        table = _table(path, column, was_named=kind == "file" and tags is not None)
        matched, absent, unread = match_table(table, path, files, raw_of, folders)
        for i, found in matched.items():
            _add(rows[i], found)
        failures += unread
    if kind in ("embedded", "both"):
        failures += _add_keywords(rows, files, raw_of, progress)
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
        [str(one) for one, beside in raw if beside is None],
    )


def _nothing_in(locations: Sequence[Path], failures: Sequence[Failure], n_raw: int) -> str:
    """What to say where no photograph was found."""
    named = ", ".join(map(str, locations)) or "no folder"
    said = f"No photograph in {named}. tagkin reads JPEG, PNG, WebP, TIFF, GIF and BMP files."
    if n_raw:
        said += f" Raw files, of which there are {n_raw:,}, need {pip_install('raw')}."
    reasons = "; ".join(f"{one.file}: {one.reason}" for one in failures[:_NAMED])
    return f"{said} {len(failures):,} could not be read: {reasons}" if failures else said


def _asked_for(
    tags: str | os.PathLike[str] | None, locations: Sequence[Path]
) -> tuple[str, Path | None]:
    """Where tags are to be read from, and the tag file where there is one."""
    asked = "" if tags is None else os.fspath(tags)
    if asked in ("embedded", "none"):
        return asked, None
    if asked and asked != "both":
        return "file", Path(asked)
    path = _metadata_in(locations)
    if path is None and asked:
        raise InvalidInput(
            f"No {' or '.join(METADATA)} in {', '.join(map(str, locations))}. Name a tag file, or "
            "read the keywords alone with ",
            _EMBEDDED,
            ".",
        )
    return asked or ("embedded" if path is None else "file"), path


def _metadata_in(locations: Sequence[Path]) -> Path | None:
    paths = dict.fromkeys(location / name for location in locations for name in METADATA)
    found = [path for path in paths if os.path.isfile(path)]  # False also where nobody may look
    if len(found) > 1:
        raise InvalidInput(
            f"Found several tag files: {', '.join(map(str, found))}. Say which one to use, or "
            "read the keywords in the photographs with ",
            _EMBEDDED,
            ".",
        )
    return found[0] if found else None


def _table(path: Path, column: str | None, *, was_named: bool) -> TagTable:
    """The tags in a file; one that nobody named may be something else."""
    try:
        table = read_tags(path, column=column)
        if not len(table):
            raise InvalidInput(f"{path} names no photograph. Write tags into it, or leave it out.")
    except (InvalidInput, StorageError) as error:
        if was_named:
            raise
        hint = " If it is not a tag file, read the keywords in the photographs with "
        raise type(error)(*error.parts, hint, _EMBEDDED, ".") from error
    return table


def _add_keywords(
    rows: list[list[str]],
    files: Sequence[Path],
    raw_of: Mapping[str, str],
    progress: Progress | None,
) -> list[Failure]:
    """Add the keywords of each photograph to its row; what could not be read."""
    failures: list[Failure] = []
    also: dict[str, list[str]] = {}
    for raw, beside in raw_of.items():
        also.setdefault(beside, []).append(raw)
    for i, file in enumerate(files):
        if progress is not None:
            progress("Reading keywords", i, len(files))
        for one in (str(file), *also.get(str(file), ())):
            try:
                found, problems = find_keywords(one)
            except UnreadableImage as error:
                found, problems = [], [Failure(one, str(error))]
            _add(rows[i], found)
            failures += problems
    if progress is not None:
        progress("Reading keywords", len(files), len(files))
    return failures


def _add(row: list[str], tags: Iterable[str]) -> None:
    there = set(row)
    row += [tag for tag in dict.fromkeys(tags) if tag not in there]
