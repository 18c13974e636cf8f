"""The photographs and tags of a server: as it sends them, checked, and as they were last listed.

A path has the month and the name of a photograph, and the start of its checksum. It lasts: a
photograph keeps it while the server knows its id, whatever changes there, and has it again if the
same file is uploaded anew.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tagkin.collection.facts import Facts, read_immich
from tagkin.errors import WriteError
from tagkin.filesystem import make_private_folder, write_whole
from tagkin.immich.client import Json, UnusableAnswer

__all__ = [
    "Asset",
    "check_answer",
    "check_writable",
    "from_value",
    "is_shown",
    "read_asset",
    "read_assets",
    "read_checksum",
    "read_id",
    "read_tag",
    "store_assets",
    "to_value",
]

_FILE = "library.json"
_LONGEST = 80  # characters of a name
_MOST_BYTES = 160  # of a name in UTF-8; file systems take 255 with its ending
_LONGEST_TAG = 500  # characters, as in files
_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")  # Immich has UUIDs; an id is a part of addresses
_SHOWN = ("timeline", "archive")
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"/\\|?*]')  # in names on some system


@dataclass(frozen=True)
class Asset:
    """A photograph on the server."""

    id: str
    path: str
    """In the catalogue."""
    checksum: str
    """SHA-1 of the original file, in hexadecimal."""
    facts: Facts
    """When, where and with what it was taken."""


def read_assets(folder: Path) -> dict[str, Asset]:
    """Read the last listing in a folder, by path; empty if there is none, or it is damaged."""
    try:
        stored = json.loads((folder / _FILE).read_bytes())
        return {asset["path"]: _restore_asset(**asset) for asset in stored}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _restore_asset(id: str, path: str, checksum: str, **more: Any) -> Asset:
    """Return a stored photograph; the next listing has the facts that a former one lacks."""
    return Asset(id, path, checksum, dict(more.get("facts", {})))


def store_assets(folder: Path, assets: Mapping[str, Asset]) -> None:
    """Keep a listing in a folder, for this user alone."""
    make_private_folder(folder)
    stored = json.dumps([asdict(asset) for asset in assets.values()])
    write_whole(folder / _FILE, stored.encode(), private=True)


def _choose_path(name: str, month: str, checksum: str) -> str:
    """Return the path of a photograph by its name and the month in which it was taken."""
    stem = _FORBIDDEN.sub("_", name.rpartition(".")[0] or name).strip(". ")[:_LONGEST]
    stem = stem.encode()[:_MOST_BYTES].decode(errors="ignore")
    return f"{month.replace('-', '/')}/{stem.rstrip('. ') or 'photograph'}-{checksum[:12]}.jpg"


# --- as the server sends them ------------------------------------------------------------


def is_shown(item: Mapping[str, Json]) -> bool:
    """Whether a photograph has a preview, and is neither hidden, locked, lost nor in the trash."""
    is_away = item.get("isTrashed") or item.get("isOffline") or item.get("thumbhash") is None
    return not is_away and item.get("visibility", _SHOWN[0]) in _SHOWN


def check_writable(path: str, item: Mapping[str, Json]) -> None:
    """Reject a photograph whose tags Immich would lose."""
    if item.get("libraryId") is not None:
        raise WriteError(
            f"{path}: in an external library. If that is read-only, Immich forgets the tags at its "
            "next extraction of metadata. Tag the library's own folder: Immich reads sidecars."
        )
    if item.get("thumbhash") is None:
        raise WriteError(
            f"{path}: Immich is still reading it after an upload, and would forget new tags. Write "
            "again later."
        )
    if item.get("isTrashed"):
        raise WriteError(f"{path}: in Immich's trash. Restore it, then write again.")


def read_asset(address: str, item: Mapping[str, Json], known: Asset | None) -> Asset:
    """Return a photograph of a search; a known one keeps its path."""
    with check_answer(address):
        moment = datetime.fromisoformat(item["localDateTime"])
        checksum = read_checksum(item["checksum"])
        path = _choose_path(item["originalFileName"], f"{moment:%Y-%m}", checksum)
        path = path if known is None else known.path
        return Asset(read_id(item), path, checksum, read_immich(item))


def read_id(item: Json) -> str:
    """Return the id of a photograph or a tag.

    Raises one of the errors that `check_answer` turns into an `UnusableAnswer`.
    """
    id = item["id"]
    if _ID.fullmatch(id) is None:
        raise ValueError(f"the id {id[:20]!r}")
    return str(id)


def read_tag(tag: Json) -> tuple[str, str]:
    """Return the id and the name of a tag; errors are as in `read_id`."""
    name = from_value(tag["value"])
    if len(name) > _LONGEST_TAG:
        raise ValueError(f"a tag of {len(name):,} characters")
    return read_id(tag), name


def read_checksum(checksum: str) -> str:
    """Return a SHA-1 in hexadecimal, given in base64."""
    try:
        digest = base64.b64decode(checksum, validate=True)
    except binascii.Error as error:
        raise ValueError(f"the checksum {checksum!r}") from error
    if len(digest) != 20:
        raise ValueError(f"the checksum {checksum!r}")
    return digest.hex()


def to_value(tag: str) -> str:
    """Return a tag as Immich spells it: / between levels, and | in place of / in a level."""
    return "/".join(level.replace("/", "|") for level in tag.split("|") if level)


def from_value(value: str) -> str:
    """Invert `to_value`."""
    return "|".join(level.replace("|", "/") for level in value.split("/"))


@contextmanager
def check_answer(address: str) -> Iterator[None]:
    """Turn errors from an answer of another form into an `UnusableAnswer`."""
    try:
        yield
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
        text = f"{address} does not answer as Immich 3 does ({repr(error)[:100]})."
        raise UnusableAnswer(text) from error
