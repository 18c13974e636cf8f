"""Where catalogues are: one for each folder of photographs, in the user's folder for data."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from platformdirs import user_data_dir

from tagkin.errors import InvalidInput, StorageError
from tagkin.filesystem import make_private_folder, write_whole

__all__ = [
    "catalogue_of",
    "default_data_folder",
    "find_catalogue",
    "known_catalogues",
    "other_catalogues",
    "remember",
]

_NAMED = 5  # collections in a message


def default_data_folder() -> Path:
    """Where catalogues are kept unless another place is asked for.

    ``TAGKIN_CATALOGUES`` where it is set, else ``tagkin`` in the user's folder for data.
    """
    chosen = os.environ.get("TAGKIN_CATALOGUES")
    try:
        return Path(chosen or user_data_dir("tagkin", appauthor=False)).expanduser()
    except RuntimeError as error:  # a container may run as anybody
        raise StorageError(
            "This user has no home folder to keep catalogues in. Name a folder with "
            "TAGKIN_CATALOGUES."
        ) from error


def known_catalogues() -> dict[Path, Path]:
    """Folders of photographs that were scanned, and the catalogue of each that is still there."""
    return _known()[0]


def other_catalogues(root: Path) -> list[Path]:
    """Catalogues that know a folder and are used only where ``--catalogue`` names them."""
    return [path for path, other in _known()[1].items() if other == root]


def _known() -> tuple[dict[Path, Path], dict[Path, Path]]:
    """Return the catalogue of each folder, and the folder of each further catalogue."""
    try:
        kept = json.loads(_memory().read_bytes().decode("utf-8"))
        used = {Path(root): Path(path) for root, path in kept["collections"].items()}
        others = {Path(path): Path(root) for path, root in kept.get("others", {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}, {}  # nothing is remembered, or nothing that can be used
    return (
        {root: path for root, path in used.items() if os.path.isfile(path)},
        {path: root for path, root in others.items() if os.path.isfile(path)},
    )


def remember(root: Path, catalogue: Path, *, is_named: bool = False) -> None:
    """Keep which catalogue a folder has; each of the two belongs to one of the other.

    A catalogue that was named with ``--catalogue`` does not take the place of another one.
    """
    used, others = _known()
    others.pop(catalogue, None)
    used = {r: c for r, c in used.items() if c != catalogue}
    if is_named and any(folder in used for folder in (root, *root.parents)):
        others[catalogue] = root
    else:
        used[root] = catalogue
    kept = {
        "collections": {str(r): str(c) for r, c in used.items()},
        "others": {str(c): str(r) for c, r in others.items()},
    }
    path = _memory()
    try:
        make_private_folder(path.parent)
        write_whole(path, json.dumps(kept, indent=1).encode("utf-8"), private=True)
    except OSError as error:
        raise StorageError(
            f"Which catalogue belongs to {root} cannot be kept in {path}: {error.strerror}. Name "
            "another folder for such data with TAGKIN_CATALOGUES."
        ) from error


def _memory() -> Path:
    return default_data_folder() / "collections.json"


def catalogue_of(root: Path) -> Path | None:
    """The catalogue of a folder of photographs, or of the nearest folder around it."""
    known = known_catalogues()
    return next((known[folder] for folder in (root, *root.parents) if folder in known), None)


def new_path(root: Path) -> Path:
    """Where a folder's catalogue goes that has none yet."""
    key = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return default_data_folder() / "catalogues" / f"{root.name or 'photographs'}-{key}.sqlite"


def find_catalogue(catalogue: Path | None = None, near: Path | None = None) -> Path:
    """The catalogue that a command means.

    Parameters
    ----------
    catalogue : path, optional
        The one that was named.
    near : path, optional
        A photograph or a folder of the collection. Without it, the current folder; where that
        lies in no collection, the only collection that there is.
    """
    if catalogue is not None:
        return catalogue.absolute()
    known = known_catalogues()
    here = Path(os.path.realpath(near if near is not None else os.curdir))
    found = next((known[folder] for folder in (here, *here.parents) if folder in known), None)
    if found is not None:
        return found
    if near is not None:
        raise InvalidInput(
            f"{near} lies in no folder that was scanned. `tagkin scan FOLDER` makes a catalogue of "
            "a folder; --catalogue names one."
        )
    if len(known) == 1:
        return next(iter(known.values()))
    if not known:
        raise InvalidInput("There is no catalogue yet. `tagkin scan FOLDER` makes one of a folder.")
    named = ", ".join(str(root) for root in list(known)[:_NAMED])
    raise InvalidInput(
        f"There are catalogues of {len(known)} folders: {named}. Go to one of them, or name its "
        "catalogue with --catalogue."
    )
