"""Photographs in folders, and the tags that people put on them."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tagkin.errors import InvalidInput, UnreadableImage
from tagkin.images import Failure, find_keywords, find_photographs
from tagkin.labels.tag_files import TagTable, read_tags

__all__ = ["Collection", "Progress", "read_collection"]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

METADATA = ("metadata.jsonl", "metadata.csv")  # found in the folder itself, as Hugging Face has it
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
    absent : list of str
        Photographs that the tag file names and that are not there.
    failures : list of Failure
        What could not be read while looking.
    """

    files: Sequence[str]
    tags: Sequence[Sequence[str]]
    source: str = ""
    absent: Sequence[str] = ()
    failures: Sequence[Failure] = ()

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

    def tagged(self) -> Collection:
        """The photographs that carry a tag."""
        return self._where(lambda row: bool(row))

    def untagged(self) -> Collection:
        """The photographs that carry none."""
        return self._where(lambda row: not row)

    def _where(self, wanted: Callable[[Sequence[str]], bool]) -> Collection:
        rows = [i for i, row in enumerate(self.tags) if wanted(row)]
        return Collection(
            [self.files[i] for i in rows],
            [self.tags[i] for i in rows],
            self.source,
            self.absent,
            self.failures,
        )


def read_collection(
    places: Iterable[str | os.PathLike[str]],
    tags: str | os.PathLike[str] | None = None,
    *,
    column: str | None = None,
    progress: Progress | None = None,
) -> Collection:
    r"""Find photographs and read their tags.

    Parameters
    ----------
    places : files and folders
    tags : path, optional
        A tag file (CSV or JSON Lines, see `tagkin.labels.tag_files`). Without it, a
        ``metadata.jsonl`` or ``metadata.csv`` in one of the folders; without that, the keywords
        in the photographs themselves and in XMP files beside them.
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
    folders = [Path(place) for place in places]
    failures: list[Failure] = []
    files = find_photographs(*folders, on_skipped=failures.append)
    if not files:
        raise InvalidInput(_nothing_in(folders, failures))
    path = Path(tags) if tags is not None else _metadata_in(folders)
    if path is None:
        return _with_keywords(files, failures, progress)
    return _with_table(files, read_tags(path, column=column), path, folders, failures)


def _nothing_in(places: Sequence[Path], failures: Sequence[Failure]) -> str:
    """What to say where no photograph was found."""
    named = ", ".join(map(str, places)) or "no folder"
    said = f"No photograph in {named}. tagkin reads JPEG, PNG, WebP, TIFF, GIF and BMP files."
    reasons = "; ".join(f"{one.file}: {one.reason}" for one in failures[:_NAMED])
    return f"{said} {len(failures):,} could not be read: {reasons}" if failures else said


def _metadata_in(places: Sequence[Path]) -> Path | None:
    paths = dict.fromkeys(place / name for place in places for name in METADATA)
    found = [path for path in paths if os.path.isfile(path)]  # False also where nobody may look
    if len(found) > 1:
        raise InvalidInput(
            f"Found several tag files: {', '.join(map(str, found))}. Say which one to use."
        )
    return found[0] if found else None


def _with_keywords(
    files: Sequence[Path], failures: list[Failure], progress: Progress | None
) -> Collection:
    tags = []
    for i, file in enumerate(files):
        if progress is not None:
            progress("Reading keywords", i, len(files))
        try:
            found, problems = find_keywords(file)
        except UnreadableImage as error:
            found, problems = [], [Failure(str(file), str(error))]
        tags.append(found)
        failures += problems
    if progress is not None:
        progress("Reading keywords", len(files), len(files))
    source = "the photographs' own keywords"
    return Collection([str(file) for file in files], tags, source, (), failures)


def _with_table(
    files: Sequence[Path],
    table: TagTable,
    path: Path,
    places: Sequence[Path],
    failures: list[Failure],
) -> Collection:
    if not len(table):
        raise InvalidInput(f"{path} names no photograph. Write tags into it, or leave it out.")
    folders = [path.parent, *(p if p.is_dir() else p.parent for p in places)]
    whereabouts = {os.path.abspath(file): i for i, file in enumerate(files)}
    by_name: dict[str, list[int]] = {}
    for i, file in enumerate(files):
        by_name.setdefault(file.name, []).append(i)
    tags: list[list[str]] = [[] for _ in files]
    absent: list[str] = []
    for name, row in zip(table.file_names, table.tags, strict=True):
        spelled = _spellings(name)
        paths = (os.path.abspath(folder / one) for one in spelled for folder in folders)
        there = [whereabouts[path] for path in paths if path in whereabouts]
        there = there[:1] or next((by_name[one] for one in spelled if one in by_name), [])
        if len(there) != 1:
            absent.append(name)
            continue
        own = tags[there[0]]
        own += [tag for tag in row or () if tag not in own]
    if len(absent) == len(table):
        first = ", ".join(absent[:_NAMED])
        raise InvalidInput(
            f"None of the {len(table)} photographs that {path} names is there: {first}, … Names "
            f"are looked for in {', '.join(dict.fromkeys(map(str, folders)))}."
        )
    return Collection([str(file) for file in files], tags, str(path), absent, failures)


def _spellings(name: str) -> list[str]:
    """A name as it stands, with the separators of this system, and in both Unicode forms."""
    own = name.replace("\\", "/")
    forms = (unicodedata.normalize(form, own) for form in ("NFC", "NFD"))
    return list(dict.fromkeys((name, own, *forms)))
