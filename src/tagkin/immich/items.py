"""Photographs and tags as an Immich server sends them, checked and in our words."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tagkin.errors import ServerError, SidecarError
from tagkin.immich.library import Asset, choose_path

__all__ = [
    "check_writable",
    "from_value",
    "is_shown",
    "nonsense",
    "read_asset",
    "read_checksum",
    "read_moment",
    "to_value",
]

_SHOWN = ("timeline", "archive")


def is_shown(item: Mapping[str, Any]) -> bool:
    """Whether a photograph has a preview, and is neither hidden, locked, lost nor in the trash."""
    is_away = item.get("isTrashed") or item.get("isOffline") or item.get("thumbhash") is None
    return not is_away and item.get("visibility", _SHOWN[0]) in _SHOWN


def check_writable(path: str, item: Mapping[str, Any]) -> None:
    """Reject a photograph whose tags Immich would lose."""
    if item.get("libraryId") is not None:
        raise SidecarError(
            f"{path}: in an external library. If that is read-only, Immich forgets the tags at its "
            "next extraction of metadata. Tag the library's own folder: Immich reads sidecars."
        )
    if item.get("thumbhash") is None:
        raise SidecarError(
            f"{path}: Immich is still reading it after an upload, and would forget new tags. Write "
            "again later."
        )
    if item.get("isTrashed"):
        raise SidecarError(f"{path}: in Immich's trash. Restore it, then write again.")


def read_asset(address: str, item: Mapping[str, Any], known: Asset | None) -> Asset:
    """Return a photograph of a search; a known one keeps its path."""
    try:
        exif = item.get("exifInfo") or {}
        moment = datetime.fromisoformat(item["localDateTime"]).replace(tzinfo=None, microsecond=0)
        checksum = read_checksum(item["checksum"])
        path = choose_path(item["originalFileName"], f"{moment:%Y-%m}", checksum)
        make, model = (" ".join(str(exif.get(key) or "").split()) for key in ("make", "model"))
        repeats_make = bool(make) and model.casefold().startswith(make.split()[0].casefold())
        return Asset(
            str(item["id"]),
            path if known is None else known.path,
            checksum,
            moment.isoformat() if exif.get("dateTimeOriginal") else None,
            model if repeats_make else f"{make} {model}".strip(),
        )
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise nonsense(address, error) from error


def read_checksum(checksum: str) -> str:
    """Return a SHA-1 in hexadecimal, given in base64."""
    try:
        digest = base64.b64decode(checksum, validate=True)
    except binascii.Error as error:
        raise ValueError(f"the checksum {checksum!r}") from error
    if len(digest) != 20:
        raise ValueError(f"the checksum {checksum!r}")
    return digest.hex()


def read_moment(address: str, moment: Any) -> str:
    """Return a moment in a form that can be compared as text."""
    try:
        return datetime.fromisoformat(moment).isoformat(timespec="microseconds")
    except (TypeError, ValueError) as error:
        raise nonsense(address, error) from error


def to_value(tag: str) -> str:
    """Return a tag as Immich spells it: / between levels, and | in place of / in a level."""
    return "/".join(level.replace("/", "|") for level in tag.split("|"))


def from_value(value: str) -> str:
    """Invert `to_value`."""
    return "|".join(level.replace("|", "/") for level in value.split("/"))


def nonsense(address: str, error: object) -> ServerError:
    """Return the error for an answer that Immich does not give."""
    return ServerError(f"{address} does not answer as Immich 3 does ({error!r}).")
