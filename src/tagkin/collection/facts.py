"""The facts of a photograph: when, where and with what it was taken.

`FACTS` is the table of them. Reading files, sidecars and Immich, the columns of a catalogue,
filters, pages and JSON follow from it. A new fact is a row here, and a migration of the catalogue
that adds its column.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal, NamedTuple, TypeAlias

__all__ = [
    "EXIF_TAGS",
    "FACTS",
    "XMP_NAMESPACES",
    "Fact",
    "Facts",
    "describe_facts",
    "merge_embedded",
    "merge_facts",
    "read_exif",
    "read_immich",
    "read_xmp",
    "stored_facts",
]

FactValue: TypeAlias = str | int | float
Facts: TypeAlias = Mapping[str, FactValue]
"""Facts of a photograph by name, as columns and JSON have them. Unknown facts are missing."""

_LONGEST = 100  # characters of a text; cameras write fewer
_TIME = re.compile(
    r"(\d{4})[:-](\d\d?)[:-](\d\d?)(?:[T ](\d\d?):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?"
)
_DEGREES = re.compile(r"(\d+),(\d+(?:\.\d+)?)(?:,(\d+(?:\.\d+)?))?([NSEW])")
_SCANNERS = (b"\1", b"\2")  # of film and of prints, in EXIF's `FileSource`; 3 is a camera
_SIGNS = {"N": 1, "E": 1, "S": -1, "W": -1}


class FactSource(NamedTuple):
    """Where a fact is written, and how it is read from there."""

    keys: tuple[Any, ...]
    """Tags of EXIF, names of XMP properties, or keys of Immich."""
    read: Callable[..., FactValue | None]
    """A function of the value of each key: bytes of EXIF, a text of XMP, JSON of Immich. A missing
    value is empty, or None in JSON."""


@dataclass(frozen=True)
class Fact:
    """A fact of a photograph. It is written in files, or follows from the path."""

    name: str
    """In catalogues, addresses of pages and JSON."""
    title: str
    """On pages. Facts with one title are shown together."""
    column: Literal["TEXT", "INTEGER", "REAL"] = "TEXT"
    exif: FactSource | None = None
    xmp: FactSource | None = None
    immich: FactSource | None = None
    is_newer_in_xmp: bool = False
    """Whether XMP in a photograph counts before EXIF, because most programs change only that. XMP
    in a sidecar always does."""
    from_path: Callable[[str], str] | None = None
    """Computes it from the path in the collection, so it has no column."""
    filter: str | None = None
    """The kind of its filter, see `tagkin.catalogue.selection`; None if it has no filter."""
    text: Callable[[Any], str] | None = str
    """Its text on pages; None if it is not shown."""


# --- texts -------------------------------------------------------------------------------


def _decode(value: bytes) -> str:
    return _clean(value.partition(b"\0")[0][:_LONGEST].decode("latin-1"))


def _clean(text: str | None) -> str:
    return " ".join((text or "")[:_LONGEST].split())


def _first(*texts: str | None) -> str:
    return next(filter(None, map(_clean, texts)), "")


# --- time --------------------------------------------------------------------------------


def _time(text: str) -> str | None:
    """Return a time in ISO 8601, by the camera's clock: a time zone does not count.

    A date without a time stays a date.
    """
    match = _TIME.match(text.strip())
    if match is None:
        return None
    *parts, fraction = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    try:
        if len(numbers) == 3:
            return date(*numbers).isoformat()
        moment = datetime(*numbers)  # type: ignore[arg-type]  # at least five numbers
    except ValueError:  # such as zeros from a camera whose clock was never set
        return None
    return moment.replace(microsecond=int((fraction or "").ljust(6, "0"))).isoformat()


def _time_in_exif(original: bytes, part: bytes, digitized: bytes, source: bytes) -> str | None:
    """Return the time of capture to the sub-second. The day of scanning is another time."""
    if source[:1] in _SCANNERS and digitized in (b"", original):
        return None
    digits = _decode(part)
    return _time(_decode(original) + (f".{digits}" if digits.isdecimal() else ""))


def _time_in_xmp(original: str, created: str) -> str | None:
    return _time(original) or _time(created)


def _time_in_immich(local: str, original: str | None) -> str | None:
    """Return the local time of the capture; without one, Immich has the time of the file."""
    return _time(local) if original else None


def _describe_time(taken: str) -> str:
    moment = datetime.fromisoformat(taken)
    day = f"{moment:%a} {moment.day} {moment:%B %Y}"
    return f"{day}, {moment:%H:%M:%S}" if "T" in taken else day


# --- camera and rating -------------------------------------------------------------------


def _camera(make: str | None, model: str | None) -> str:
    """Return make and model; models often repeat the make."""
    make, model = _clean(make), _clean(model)
    repeats_make = bool(make) and model.casefold().startswith(make.split()[0].casefold())
    return model if repeats_make else f"{make} {model}".strip()


def _stars(rating: str | float | None) -> int | None:
    """Return 1 to 5 stars, or -1 for a rejected photograph."""
    try:
        stars = int(float(rating or 0))
    except (OverflowError, ValueError):
        return None
    return stars if stars and -1 <= stars <= 5 else None


def _stars_in_exif(rating: bytes) -> int | None:
    return _stars(int.from_bytes(rating[:2], "little"))


def _describe_stars(stars: int) -> str:
    return "rejected" if stars < 0 else "★" * stars


# --- place -------------------------------------------------------------------------------


def _place(latitude: float | None, longitude: float | None) -> tuple[float, float] | None:
    """Return degrees; (0, 0) is what devices write that do not know where they are."""
    if latitude is None or longitude is None or latitude == longitude == 0:
        return None
    if not (abs(latitude) <= 90 and abs(longitude) <= 180):
        return None
    return round(latitude, 6), round(longitude, 6)


def _place_in_exif(
    south: bytes, latitude: bytes, west: bytes, longitude: bytes
) -> tuple[float, float] | None:
    return _place(_degrees_in_exif(south, latitude), _degrees_in_exif(west, longitude))


def _degrees_in_exif(direction: bytes, value: bytes) -> float | None:
    """Return degrees from three fractions; minutes and seconds may be missing, as 0/0."""
    sign = _SIGNS.get(_decode(direction).upper())
    if sign is None or len(value) != 24:
        return None
    fractions = list(struct.iter_unpack("<II", value))
    if not fractions[0][1] or any(above and not below for above, below in fractions):
        return None
    degrees, minutes, seconds = (above / (below or 1) for above, below in fractions)
    return sign * (degrees + minutes / 60 + seconds / 3600)


def _place_in_xmp(latitude: str, longitude: str) -> tuple[float, float] | None:
    return _place(_degrees_in_xmp(latitude), _degrees_in_xmp(longitude))


def _degrees_in_xmp(text: str) -> float | None:
    """Return degrees from ``49,15.5N`` or ``49,15,30N``, or from a number."""
    match = _DEGREES.fullmatch(text.strip())
    if match is None:
        try:
            return float(text)
        except ValueError:
            return None
    degrees, minutes, seconds = (float(part or 0) for part in match.groups()[:3])
    return _SIGNS[match[4]] * (degrees + minutes / 60 + seconds / 3600)


def _half(index: int, keys: tuple[Any, ...], read: Callable[..., Any]) -> FactSource:
    """Return the source of a latitude (0) or longitude (1), from that of a place."""

    def read_half(*values: Any) -> float | None:
        place = read(*values)
        return None if place is None else place[index]

    return FactSource(keys, read_half)


def _coordinate(name: str, index: int, directions: str) -> Fact:
    return Fact(
        name,
        "Place",
        "REAL",
        exif=_half(index, (1, 2, 3, 4), _place_in_exif),
        xmp=_half(index, ("exif:GPSLatitude", "exif:GPSLongitude"), _place_in_xmp),
        immich=_half(index, ("latitude", "longitude"), _place),
        text=lambda degrees: f"{abs(degrees):.4f}° {directions[degrees < 0]}",
    )


# --- the table ---------------------------------------------------------------------------


FACTS = (
    Fact(
        "folder",
        "Folder",
        from_path=lambda path: path.rpartition("/")[0],
        filter="folder",
        text=None,  # pages show it beside the name
    ),
    Fact(
        "taken",
        "Date",
        exif=FactSource((0x9003, 0x9291, 0x9004, 0xA300), _time_in_exif),
        xmp=FactSource(("exif:DateTimeOriginal", "photoshop:DateCreated"), _time_in_xmp),
        immich=FactSource(("localDateTime", "dateTimeOriginal"), _time_in_immich),
        filter="month",
        text=_describe_time,
    ),
    Fact(
        "camera",
        "Camera",
        exif=FactSource((0x010F, 0x0110), lambda *texts: _camera(*map(_decode, texts))),
        xmp=FactSource(("tiff:Make", "tiff:Model"), _camera),
        immich=FactSource(("make", "model"), _camera),
        filter="name",
    ),
    Fact(
        "serial",
        "Serial number",
        exif=FactSource((0xA431,), _decode),
        xmp=FactSource(("exifEX:BodySerialNumber", "aux:SerialNumber"), _first),
        text=None,
    ),
    Fact(
        "lens",
        "Lens",
        exif=FactSource((0xA434,), _decode),
        xmp=FactSource(("exifEX:LensModel", "aux:Lens"), _first),
        immich=FactSource(("lensModel",), _clean),
        filter="name",
    ),
    Fact(
        "rating",
        "Rating",
        "INTEGER",
        exif=FactSource((0x4746,), _stars_in_exif),
        xmp=FactSource(("xmp:Rating",), _stars),
        immich=FactSource(("rating",), _stars),
        is_newer_in_xmp=True,
        filter="stars",
        text=_describe_stars,
    ),
    Fact(
        "type",
        "File type",
        from_path=lambda path: path[path.rfind(".") :].lower(),
        filter="type",
        text=None,
    ),
    _coordinate("latitude", 0, "NS"),
    _coordinate("longitude", 1, "EW"),
)
XMP_NAMESPACES = {
    "aux": "http://ns.adobe.com/exif/1.0/aux/",
    "exif": "http://ns.adobe.com/exif/1.0/",
    "exifEX": "http://cipa.jp/exif/1.0/",
    "photoshop": "http://ns.adobe.com/photoshop/1.0/",
    "tiff": "http://ns.adobe.com/tiff/1.0/",
    "xmp": "http://ns.adobe.com/xap/1.0/",
}
EXIF_TAGS = frozenset(tag for fact in FACTS if fact.exif for tag in fact.exif.keys)


def stored_facts() -> list[Fact]:
    """Return the facts that have a column in the catalogue."""
    return [fact for fact in FACTS if fact.from_path is None]


# --- reading -----------------------------------------------------------------------------


def read_exif(tags: Mapping[int, bytes]) -> Facts:
    """Return the facts in the values of EXIF tags, whose numbers are little-endian."""
    pairs = [(fact.name, fact.exif) for fact in FACTS if fact.exif]
    return _read(pairs, lambda tag: tags.get(tag, b""))


def read_xmp(properties: Mapping[str, str]) -> Facts:
    """Return the facts in XMP properties by name, such as ``xmp:Rating``."""
    pairs = [(fact.name, fact.xmp) for fact in FACTS if fact.xmp]
    return _read(pairs, lambda name: properties.get(name, ""))


def read_immich(item: Mapping[str, Any]) -> Facts:
    """Return the facts in a photograph as Immich sends it; the values may have any type."""
    exif = item.get("exifInfo") or {}
    pairs = [(fact.name, fact.immich) for fact in FACTS if fact.immich]
    return _read(pairs, lambda key: exif.get(key, item.get(key)))


def _read(sources: list[tuple[str, FactSource]], value_of: Callable[[Any], Any]) -> Facts:
    values = {name: source.read(*map(value_of, source.keys)) for name, source in sources}
    return {name: value for name, value in values.items() if value not in (None, "")}


def merge_facts(*sources: Facts) -> Facts:
    """Return the facts of several sources; the first that has a fact counts.

    A time may get the more precise form of a later source: programs often leave out sub-seconds.
    """
    merged: dict[str, FactValue] = {}
    for facts in sources:
        for name, value in facts.items():
            if name == "taken" and str(value).startswith(str(merged.get(name, ""))):
                merged[name] = value
            merged.setdefault(name, value)
    return merged


def merge_embedded(exif: Facts, xmp: Facts) -> Facts:
    """Return the facts inside a photograph."""
    newer = {fact.name for fact in FACTS if fact.is_newer_in_xmp}
    return merge_facts({name: xmp[name] for name in newer & xmp.keys()}, exif, xmp)


def describe_facts(facts: Facts) -> list[tuple[str, str]]:
    """Return titles and texts for people, in the order of the table."""
    texts: dict[str, list[str]] = {}
    for fact in FACTS:
        if fact.text is not None and fact.name in facts:
            texts.setdefault(fact.title, []).append(fact.text(facts[fact.name]))
    return [(title, ", ".join(parts)) for title, parts in texts.items()]
