"""Which catalogue belongs to which folder: one for each folder, in the user's data folder.

There is also the folder of a server, with its connection and small copies of its photographs. It is
the root of its catalogue. No other folder can name a server.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_data_dir

from tagkin.errors import InvalidInput, StorageError
from tagkin.filesystem import check_parent, make_private_folder, write_whole
from tagkin.tag_servers import SERVERS

__all__ = [
    "check_data_folder",
    "default_data_folder",
    "find_catalogue",
    "find_root",
    "forget_catalogue",
    "is_catalogued",
    "known_catalogues",
    "new_path",
    "remember",
    "server_folder",
    "server_name",
    "server_of",
]

_N_NAMED = 5  # collections in a message


def default_data_folder() -> Path:
    """Return ``TAGKIN_CATALOGUES`` if it is set, else ``tagkin`` in the user's data folder."""
    chosen = os.environ.get("TAGKIN_CATALOGUES")
    try:
        return Path(chosen or user_data_dir("tagkin", appauthor=False)).expanduser()
    except RuntimeError as error:  # a container may run as anybody
        raise StorageError(
            "This user has no home folder to keep catalogues in. Name a folder with "
            "TAGKIN_CATALOGUES."
        ) from error


def check_data_folder() -> None:
    """Raise `StorageError` if this user cannot keep catalogues in the data folder."""
    folder = default_data_folder()
    try:
        check_parent(folder / "catalogues")
    except OSError as error:
        user, owner = "this user", ""
        if hasattr(os, "geteuid"):
            user = f"user {os.geteuid()}"
            owner = f", and user {os.stat(error.filename).st_uid} owns it"
        raise StorageError(
            f"tagkin keeps catalogues in {folder}, but {error.filename} cannot be written by "
            f"{user} ({error.strerror}{owner}). Give it to {user}, or name another folder with "
            "TAGKIN_CATALOGUES."
        ) from error


def known_catalogues() -> dict[Path, Path]:
    """Return the existing catalogue of each scanned folder."""
    try:
        memory = json.loads(_memory_file().read_bytes().decode("utf-8"))
        known = {Path(root): Path(path) for root, path in memory.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {}  # no memory, or a damaged file
    return {root: path for root, path in known.items() if os.path.isfile(path)}


def is_catalogued(folder: Path, catalogue: Path | None) -> bool:
    """Whether the catalogue that a user named exists, or else one of the folder or one above it."""
    if catalogue is not None:
        return catalogue.exists()
    return find_root(folder, known_catalogues()) is not None


def find_root(place: Path, known: Mapping[Path, Path]) -> Path | None:
    """Return the known folder that a photograph or folder is, or is in; None if there is none."""
    here = Path(os.path.realpath(place))
    return next((folder for folder in (here, *here.parents) if folder in known), None)


def remember(root: Path, catalogue: Path, *, is_named: bool = False) -> None:
    """Store the catalogue of a folder, in place of earlier entries of either.

    A catalogue that was named with ``--catalogue`` does not replace another catalogue.
    """
    known = {r: c for r, c in known_catalogues().items() if c != catalogue}
    if is_named and find_root(root, known) is not None:
        return
    _store({**known, root: catalogue})


def forget_catalogue(root: Path) -> None:
    """Forget which catalogue a folder has; the file stays, and the next scan finds it."""
    _store({r: c for r, c in known_catalogues().items() if r != root})


def _store(known: Mapping[Path, Path]) -> None:
    memory = {str(r): str(c) for r, c in known.items()}
    path = _memory_file()
    try:
        make_private_folder(path.parent)
        write_whole(path, json.dumps(memory, indent=1).encode("utf-8"), private=True)
    except OSError as error:
        raise StorageError(
            f"{path}, which notes where catalogues are, cannot be written: {error.strerror}. "
            "Name another folder with TAGKIN_CATALOGUES."
        ) from error


def _memory_file() -> Path:
    return default_data_folder() / "collections.json"


def new_path(root: Path) -> Path:
    """Return the path for a folder's new catalogue."""
    key = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return default_data_folder() / "catalogues" / f"{root.name or 'photographs'}-{key}.sqlite"


def server_folder(server: str) -> Path:
    """Return the folder of the collection on a server, by its name in `tagkin.tag_servers`."""
    return default_data_folder().absolute() / "servers" / server


def server_name(root: Path) -> str:
    """Return the program whose server a root is the folder of; empty for other folders."""
    return SERVERS.get(server_of(root), "")


def server_of(root: Path) -> str:
    """Return the server that a root is the folder of, by its name; empty for other folders."""
    return next((name for name in SERVERS if root == server_folder(name).resolve()), "")


def find_catalogue(catalogue: Path | None, near: Path | None) -> Path:
    """Return the path of the catalogue that a command means; see `open_catalogue`."""
    if catalogue is not None:
        return catalogue.absolute()
    known = known_catalogues()
    root = find_root(near or Path(), known)
    if root is not None:
        return known[root]
    if near is not None:
        raise InvalidInput(
            f"{near} is not in a scanned folder. `tagkin scan FOLDER` makes a catalogue of a "
            "folder; --catalogue names one."
        )
    if len(known) == 1:
        return next(iter(known.values()))
    if not known:
        raise InvalidInput("There is no catalogue yet. Run `tagkin scan FOLDER` first.")
    named = ", ".join(str(root) for root in list(known)[:_N_NAMED])
    raise InvalidInput(
        f"There are catalogues of {len(known)} folders: {named}. Run the command in one "
        "of them, or name its catalogue with --catalogue."
    )
