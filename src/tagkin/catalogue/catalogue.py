"""A catalogue: what is known of the photographs in one folder, and what was decided."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tagkin.catalogue import locations
from tagkin.catalogue.database import Database, sql_text
from tagkin.catalogue.texts import from_text
from tagkin.errors import InvalidInput, StorageError

__all__ = ["Catalogue", "Run", "now", "open_catalogue", "open_for_scan"]

_SAME_SIZE = 20  # photographs whose names and sizes tell a folder that was moved


@dataclass
class Run:
    """A run that goes on: one command, or one step on the page."""

    id: int
    outcome: dict[str, Any] = field(default_factory=dict)
    """What came of it, in numbers; kept when it ends."""
    model: str | None = None
    """Fingerprint of the model that it made or used."""


class Catalogue(Database):
    """One SQLite file that holds what is known of one folder of photographs.

    Open it with `open_catalogue` or `open_for_scan`. The functions of `tagkin.catalogue` work on
    it; the tables are in `tagkin.catalogue.migrations`.
    """

    _root: Path | None = None

    @property
    def root(self) -> Path:
        """The folder of photographs."""
        if self._root is None:
            self._root = Path(self.value("SELECT root FROM collection"))
        return self._root

    @property
    def settings(self) -> dict[str, Any]:
        """Where tags are read from: the parameters of the last scan."""
        return from_text(self.value("SELECT settings FROM collection"), dict)

    @property
    def model_folder(self) -> Path:
        """Where the model is that was learned from this collection."""
        return self.path.with_suffix(".model")

    def learned_model(self) -> Path:
        """Where that model is; a `StorageError` says what to do where there is none."""
        if not self.model_folder.is_dir():
            raise StorageError(
                f"No model was learned from {self.root} yet. `tagkin train` learns one."
            )
        return self.model_folder

    def absolute(self, path: str) -> str:
        """The whole path of a photograph, from the one in the catalogue."""
        return os.path.join(self.root, *path.split("/"))

    def relative(self, path: str | os.PathLike[str]) -> str:
        """The path of a photograph as the catalogue has it.

        Raises
        ------
        InvalidInput
            If it lies outside the collection.
        """
        whole, root = os.path.abspath(path), str(self.root)
        for one, other in ((whole, root), (os.path.realpath(whole), os.path.realpath(root))):
            if one == other:
                return ""
            if one.startswith(os.path.join(other, "")):
                return os.path.relpath(one, other).replace(os.sep, "/")
        raise InvalidInput(f"{path} does not lie in {root}, whose catalogue this is.")

    @contextlib.contextmanager
    def run(
        self,
        what: str,
        parameters: dict[str, Any] | None = None,
        *,
        model: str | None = None,
        undoes: int | None = None,
    ) -> Iterator[Run]:
        """A run: it is in the history from now on, with its outcome when it ends.

        One that fails or is killed stays there without an end. Inside a transaction it is all
        or nothing.
        """
        with self.transaction() as connection:
            added = connection.execute(
                "INSERT INTO runs (what, started_at, model, parameters, undoes) "
                "VALUES (?, ?, ?, ?, ?)",
                (what, now(), model, json.dumps(parameters or {}), undoes),
            )
        run = Run(int(added.lastrowid or 0), model=model)
        yield run
        with self.transaction() as connection:
            connection.execute(
                "UPDATE runs SET ended_at = ?, outcome = ?, model = ? WHERE id = ?",
                (now(), json.dumps(run.outcome), run.model, run.id),
            )


def now() -> str:
    """The time as the catalogue keeps it: UTC, to the microsecond."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


# --- opening -----------------------------------------------------------------------------


def open_catalogue(
    path: Path | None = None,
    near: Path | None = None,
    *,
    write: bool = False,
    command: str = "tagkin",
    dry_run: bool = False,
) -> Catalogue:
    """The catalogue at a path, of a photograph or folder, or the only one there is.

    See `tagkin.catalogue.locations.find_catalogue` for which one that is, and `Database` for
    the other parameters.
    """
    found = locations.find_catalogue(path, near)
    return Catalogue(found, write=write, command=command, dry_run=dry_run)


def open_for_scan(
    folder: Path | None,
    path: Path | None = None,
    *,
    command: str = "scan",
    dry_run: bool = False,
) -> Catalogue:
    """The catalogue of a folder, made where it has none; one that was moved is recognised.

    Parameters
    ----------
    folder : path, optional
        Without it, the folder whose catalogue `path` is, or the only one that was scanned.
    path : path, optional
        Where the catalogue is, or is to be. A folder that has another catalogue keeps that as its
        own.
    command : str, default "scan"
        What the writer is doing, for whoever comes second.
    dry_run : bool, default False
        Make nothing, and remember nothing: what is opened is a copy in memory.
    """
    if folder is None:
        found = open_catalogue(path, write=True, command=command, dry_run=dry_run)
        if not os.path.isdir(found.root):
            said = f"{found.root} is not there. If the folder was moved: tagkin scan FOLDER"
            found.close()
            raise InvalidInput(said)
        return found
    if not os.path.isdir(folder):
        raise InvalidInput(f"{folder} is not a folder. Check the path.")
    root = Path(os.path.realpath(folder))
    is_named = path is not None
    path = path.absolute() if path is not None else _path_for(root)
    if not path.exists():
        from tagkin.catalogue.listing import check_listing, list_folder

        check_listing(root, list_folder(root))  # a mistyped folder leaves no catalogue behind
    catalogue = Catalogue(path, write=True, create=True, command=command, dry_run=dry_run)
    try:
        _take_root(catalogue, root)
        if not dry_run:
            locations.remember(root, path, is_named=is_named)
    except BaseException:
        catalogue.close()
        raise
    return catalogue


def _path_for(root: Path) -> Path:
    """The catalogue of a folder: its own, that of the folder it was before, or a new one."""
    around = locations.catalogue_of(root)
    if around is not None:
        known = {path: known for known, path in locations.known_catalogues().items()}
        if known[around] != root:
            raise InvalidInput(
                f"{root} lies in {known[around]}, which has a catalogue. Scan that folder, or name "
                "a catalogue of its own with --catalogue."
            )
        return around
    for former, path in locations.known_catalogues().items():
        if not os.path.exists(former) and _holds(root, path):
            return path
    return locations.new_path(root)


def _holds(folder: Path, path: Path) -> bool:
    """Whether most of some photographs of a catalogue are in a folder: it was moved there."""
    with Catalogue(path, write=False) as catalogue:
        some = catalogue.rows(
            "SELECT path, size FROM photographs WHERE gone IS NULL ORDER BY id LIMIT ?",
            (_SAME_SIZE,),
        )
    there = sum(_size(os.path.join(folder, *name.split("/"))) == size for name, size in some)
    return 2 * there > len(some)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _take_root(catalogue: Catalogue, root: Path) -> None:
    """Note where the folder is; a catalogue of another folder that is still there is refused."""
    former = catalogue.value("SELECT root FROM collection")
    if former is not None and former != str(root) and os.path.isdir(former):
        raise InvalidInput(
            f"{catalogue.path} is the catalogue of {former}. One folder has one catalogue: name "
            f"another file for that of {root}."
        )
    with catalogue.transaction() as connection:
        connection.execute(
            "INSERT INTO collection VALUES (1, CAST(? AS TEXT), '{}') "
            "ON CONFLICT (id) DO UPDATE SET root = excluded.root",
            (sql_text(str(root)),),
        )
    catalogue._root = root
