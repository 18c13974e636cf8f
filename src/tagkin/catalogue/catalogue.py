"""The catalogue of a collection, and how it is opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self

from tagkin.catalogue import exchange, known_catalogues
from tagkin.catalogue.bursts import Bursts
from tagkin.catalogue.catching_up import catch_up
from tagkin.catalogue.collection_model import CollectionModel
from tagkin.catalogue.completeness import Completeness
from tagkin.catalogue.database import Database
from tagkin.catalogue.decisions import Decisions
from tagkin.catalogue.doubts import Doubts
from tagkin.catalogue.exchange import Imported
from tagkin.catalogue.explanation import Explained, explain_photograph
from tagkin.catalogue.filters import Filters
from tagkin.catalogue.moment_index import MomentIndex
from tagkin.catalogue.photographs import Photographs
from tagkin.catalogue.runs import Runs
from tagkin.catalogue.scanner import Scan, scan_folder
from tagkin.catalogue.selection import Selection
from tagkin.catalogue.source import Source, WriteOptions
from tagkin.catalogue.sources import check_new_root, open_source
from tagkin.catalogue.status import Status, read_status
from tagkin.catalogue.suggestions import Suggestions
from tagkin.catalogue.tag_file import TagFile
from tagkin.catalogue.tags import Tags
from tagkin.catalogue.undo import UndoResult, undo_run
from tagkin.catalogue.write_records import Writes
from tagkin.catalogue.write_run import WriteRun, write_tags
from tagkin.collection.sidecars import Convention
from tagkin.errors import InvalidInput, StorageError
from tagkin.images import Failure
from tagkin.progress import Progress, silent

__all__ = ["Catalogue", "open_catalogue", "open_for_scan"]

_N_COMPARED = 20  # photographs whose names and sizes identify a moved folder


class Catalogue:
    """The catalogue of one folder of photographs: an SQLite file.

    Open it with `open_catalogue` or `open_for_scan`. Its methods are the commands of the command
    line. Its parts are `photographs`, `tags`, `model` (training, and suggesting with it),
    `suggestions`, `doubts` (tags that seem wrong or missing), `decisions`, `completeness` (finished
    photographs and tags), `bursts`, `writes` and `runs` (the history, and the pace of a review).

    Examples
    --------
    >>> from tagkin.catalogue import ACCEPTED, Filters, open_for_scan
    >>> with open_for_scan(folder) as catalogue:                    # doctest: +SKIP
    ...     catalogue.scan()
    ...     catalogue.model.refit()
    ...     catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    ...     catalogue.write()
    ...     catalogue.undo()
    """

    def __init__(self, database: Database):
        self.database = database
        self.photographs = Photographs(database)
        self.tags = Tags(database)
        self.model = CollectionModel(database)
        self.suggestions = Suggestions(database)
        self.doubts = Doubts(database)
        self.decisions = Decisions(database)
        self.completeness = Completeness(database)
        self.bursts = Bursts(database)
        self.writes = Writes(database)
        self.runs = Runs(database)
        self._moments: MomentIndex | None = None

    def __enter__(self) -> Self:
        self.database.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.database.__exit__(kind, error, trace)

    def close(self) -> None:
        """Close the file and let the next writer in."""
        self.database.close()

    # --- places --------------------------------------------------------------------------

    @property
    def path(self) -> Path:
        """The SQLite file."""
        return self.database.path

    @property
    def root(self) -> Path:
        """The folder of photographs."""
        return self.database.root

    @property
    def server(self) -> str:
        """The program on whose server the photographs live; empty for a folder."""
        return known_catalogues.server_name(self.root)

    @property
    def moments(self) -> MomentIndex:
        """When and where photographs were taken, read again after a scan."""
        if self._moments is None or not self._moments.is_current(self.database):
            self._moments = MomentIndex(self.database)
        return self._moments

    @cached_property
    def source(self) -> Source:
        """Where the photographs live."""
        return open_source(self.database)

    def absolute(self, path: str) -> str:
        """Return the absolute path of a file, from its path in the catalogue."""
        return self.database.absolute(path)

    def relative(self, path: str | os.PathLike[str]) -> str:
        """Return the path of a file as the catalogue stores it, if it is in the collection."""
        return self.database.relative(path)

    # --- commands ------------------------------------------------------------------------

    def scan(
        self,
        tags: str | None = None,
        column: str | None = None,
        *,
        progress: Progress | None = None,
    ) -> Scan:
        """Bring the catalogue up to date with its folder; write nothing in the folder.

        Photographs in an unreadable folder are assumed to exist still. `tags` names a tag file to
        read besides the keywords in photographs and sidecars, with its `column` of tags. Default:
        the tag file of the last scan; in the first scan, ``metadata.jsonl`` or ``metadata.csv`` in
        the folder. "embedded" reads only keywords.
        """
        tag_file = None if tags is None else TagFile(tags, column)
        return scan_folder(self.database, self.source, progress or silent, tag_file)

    def catch_up(
        self,
        words: Sequence[str],
        *,
        progress: Progress,
        on_news: Callable[[Sequence[Failure]], None],
    ) -> bool:
        """Scan the folder, and learn and suggest until nothing is left to do.

        Return whether there are new suggestions. `words` are suggested by name if there are too few
        tags to learn from. `progress` is called from two threads: the scan
        reports `tagkin.progress.SCANNING`. `on_news` is called when a step has stored
        suggestions, with the files that could not be read.
        """
        return catch_up(self.database, self.source, words, progress=progress, on_news=on_news)

    def status(self) -> Status:
        """Return counts of photographs, tags, decisions and remaining work."""
        return read_status(self.database)

    def explain(self, path: str) -> Explained:
        """Return the facts of a photograph and where its tags come from, by path from the root."""
        return explain_photograph(self.database, path, self.moments)

    def write(
        self,
        filters: Filters | None = None,
        *,
        convention: Convention | None = None,
        embed: bool = False,
        remove: bool = False,
        align: bool = False,
        selection: Selection | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> WriteRun:
        """Write accepted tags that the files of a photograph lack.

        Parameters
        ----------
        filters : Filters, optional
        convention : Convention, optional
            How to name new sidecars. Default: see `tagkin.collection.sidecars.SidecarNaming`.
        embed : bool, default False
            Write into the photographs themselves, through exiftool, and into existing sidecars. RAW
            files other than DNG get sidecars nevertheless.
        remove : bool, default False
            Also remove rejected tags from the files that have them: from sidecars, and from
            photographs if `embed`.
        align : bool, default False
            Also bring the lists of tags in files in step where no tag is written: each list gets
            the tags of the others, and loses those that were removed in another list.
        selection : Selection, optional
            Only photographs that these filters of a page leave.
        dry_run : bool, default False
            Write nothing; return what would be written.
        progress : function of (what, done, total), optional
        """
        options = WriteOptions(convention, embed, remove, selection or Selection(), align)
        return write_tags(
            self.database,
            self.source,
            filters or Filters(),
            options,
            dry_run=dry_run,
            step=progress or silent,
        )

    def undo(self, run: int | None = None, *, progress: Progress | None = None) -> UndoResult:
        """Undo the writes, decisions, declarations and tag edits of a run.

        Files are restored byte for byte, or removed if the run created them. A file that somebody
        else changed since keeps these changes, and loses only the tags. If a file fails, the other
        files are still restored; undo again to retry. In a dry run, files are only listed. The
        default is the last run that can be undone; without one, the error is `InvalidInput`.
        """
        return undo_run(self.database, self.source, run, progress or silent)

    def export_lines(self) -> Iterator[dict[str, object]]:
        """Yield a person's decisions and edits of tags, as objects for JSON lines."""
        return exchange.export_lines(self.database)

    def import_lines(self, lines: Iterable[str]) -> Imported:
        """Import the lines of `export_lines`, all of them or none.

        Known records stay, so importing twice changes nothing. If two decisions on a tag of a
        photograph conflict, the later one wins. The decisions are one run that can be undone, and
        so is each edit of a tag.
        """
        return exchange.import_lines(self.database, lines)


# --- opening -----------------------------------------------------------------------------


def open_catalogue(
    path: Path | None = None,
    near: Path | None = None,
    *,
    write: bool = False,
    command: str = "tagkin",
    is_lent: bool = False,
    dry_run: bool = False,
) -> Catalogue:
    """Open the catalogue at a path, or that of the collection which a photograph or folder is in.

    The default of `near` is the current folder, or the only collection. The other options are as in
    `Database`.
    """
    path = known_catalogues.find_catalogue(path, near)
    return Catalogue(Database(path, write=write, command=command, is_lent=is_lent, dry_run=dry_run))


def open_for_scan(
    folder: Path | None, path: Path | None = None, *, command: str = "scan", dry_run: bool = False
) -> Catalogue:
    """Open the catalogue of a folder, create it if needed, and recognise a moved folder.

    The default is the folder of the catalogue `path`, or the only scanned folder. If the folder has
    another catalogue than `path`, that stays its default. A dry run creates and remembers nothing.
    """
    if folder is None:
        catalogue = open_catalogue(path, write=True, command=command, dry_run=dry_run)
        if not os.path.isdir(catalogue.root):
            catalogue.close()
            raise InvalidInput(
                f"{catalogue.root} does not exist. If the folder was moved: tagkin scan FOLDER"
            )
        return catalogue
    if not os.path.isdir(folder):
        raise InvalidInput(f"{folder} is not a folder. Check the path.")
    root = Path(os.path.realpath(folder))
    is_named = path is not None
    path = path.absolute() if path is not None else _choose_path(root)
    if is_named and not path.parent.is_dir():
        raise InvalidInput(
            f"There is no folder {path.parent} for the catalogue. Make it, or name another place."
        )
    if not path.exists():
        check_new_root(root)
    database = Database(path, write=True, create=True, command=command, dry_run=dry_run)
    try:
        _set_root(database, root)
        if not dry_run:
            known_catalogues.remember(root, path, is_named=is_named)
    except BaseException:
        database.close()
        raise
    return Catalogue(database)


def _choose_path(root: Path) -> Path:
    """Return the path of a folder's catalogue: its own, that of its former place, or a new one."""
    known = known_catalogues.known_catalogues()
    outer = known_catalogues.find_root(root, known)
    if outer == root:
        return known[root]
    if outer is not None:
        raise InvalidInput(
            f"{root} is in {outer}, which has a catalogue. Scan that folder, or name another "
            "catalogue with --catalogue."
        )
    for former, path in known.items():
        if not os.path.exists(former) and _was_moved_to(root, path):
            return path
    return known_catalogues.new_path(root)


def _was_moved_to(folder: Path, path: Path) -> bool:
    """Whether a folder has most of the first photographs of a catalogue."""
    try:
        with Database(path, write=False) as database:
            rows = database.rows(
                "SELECT path, size FROM photographs WHERE gone IS NULL ORDER BY id LIMIT ?",
                (_N_COMPARED,),
            )
    except StorageError:  # of another version, or damaged
        return False
    files = [(os.path.join(folder, name), size) for name, size in rows]
    n_same = sum(os.path.isfile(file) and os.path.getsize(file) == size for file, size in files)
    return 2 * n_same > len(rows)


def _set_root(database: Database, root: Path) -> None:
    """Store the folder, unless the catalogue belongs to another existing folder."""
    former = database.value("SELECT root FROM collection")
    if former is not None and former != str(root) and os.path.isdir(former):
        raise InvalidInput(
            f"{database.path} is the catalogue of {former}. Name another file for the catalogue "
            f"of {root}."
        )
    database.root = root
