"""When, where and in which folder photographs were taken, as arrays to learn from.

Times are seconds by the camera's clock since 1970, NaN if unknown. `tidy_times` leaves out those
that are not times of capture, and brings the clocks of cameras together.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tagkin.collection.facts import Facts
from tagkin.collection.keywords import read_metadata
from tagkin.errors import UnreadableImage

__all__ = [
    "CLOCKS",
    "Clocks",
    "Moments",
    "align_cameras",
    "leave_out_unset",
    "read_moments",
    "tidy_times",
    "to_seconds",
]

_DAY = 86_400.0


class Moments(NamedTuple):
    """When, where and in which folder N photographs were taken."""

    times: np.ndarray
    """Seconds by the camera's clock, float64 of shape (N,); NaN if unknown."""
    places: np.ndarray
    """Latitude and longitude in degrees, float64 of shape (N, 2); NaN if unknown."""
    folders: np.ndarray
    """Folders from the root of the collection with / between them, texts of shape (N,); empty if
    unknown, and for the root itself."""

    def take(self, rows: Sequence[int] | np.ndarray) -> Moments:
        """Return those of some photographs."""
        rows = np.asarray(rows, np.int64)
        return Moments(*(array[rows] for array in self))


@dataclass(frozen=True)
class Clocks:
    """Numbers that say which times count, and when the clocks of two cameras differ."""

    unset: tuple[tuple[str, float], ...] = (
        ("1970-01-01", _DAY),
        ("1980-01-01", _DAY),
        ("2000-01-01", 60.0),
    )
    """Where clocks start that were never set, and for how many seconds nobody took photographs."""
    most_per_second: int = 60
    """Photographs of one camera: with more, the time is not that of each."""
    step: float = 300.0
    """Seconds of a moment, and to the moments of another camera at the same time."""
    longest_shift: float = 14 * 3600.0
    """Seconds between two time zones, at most."""
    fewest: int = 30
    """Moments of a camera that must meet those of the other."""
    sharpness: float = 2.0
    """How many times as many moments must meet than with any shift further away than `blur`."""
    blur: float = 1800.0
    """Seconds."""


CLOCKS = Clocks()


def to_seconds(taken: Sequence[str | None]) -> np.ndarray:
    """Return times in ISO 8601 as seconds, shape (N,); a date without a time is its midnight."""
    known = np.array([text is not None for text in taken], dtype=bool)
    seconds = np.full(len(taken), np.nan)
    texts = [text for text in taken if text is not None]
    seconds[known] = np.array(texts, "datetime64[us]").astype(np.int64) / 1e6
    return seconds


def tidy_times(seconds: np.ndarray, cameras: Sequence[str] | np.ndarray) -> np.ndarray:
    """Return the times of capture of a whole collection, shape (N,), NaN if unknown.

    Parameters
    ----------
    seconds : array of shape (N,)
        By the clock of each camera, see `to_seconds`.
    cameras : sequence of N str
        The name of each camera, empty if unknown.
    """
    return align_cameras(leave_out_unset(seconds, cameras), cameras)


def leave_out_unset(seconds: np.ndarray, cameras: Sequence[str] | np.ndarray) -> np.ndarray:
    """Return times (N,) with NaN for those that no photograph was taken at.

    These are midnights, because a date without a time is one, and the times of a clock that was
    never set: where clocks start, and where one camera has too many photographs in a second.
    """
    seconds = np.array(seconds, np.float64)
    seconds[~np.isfinite(seconds)] = np.nan
    seconds[seconds % _DAY == 0] = np.nan
    for start, length in CLOCKS.unset:
        since = seconds - np.datetime64(start, "s").astype(np.int64)
        seconds[(since >= 0) & (since < length)] = np.nan
    known = np.flatnonzero(~np.isnan(seconds))
    numbers, names = _number(cameras)
    instants = np.floor(seconds[known]) * len(names) + numbers[known]
    _, which, counts = np.unique(instants, return_inverse=True, return_counts=True)
    seconds[known[counts[which] > CLOCKS.most_per_second]] = np.nan
    return seconds


def align_cameras(seconds: np.ndarray, cameras: Sequence[str] | np.ndarray) -> np.ndarray:
    """Return times (N,) by the clock of the camera with most times, where others surely differ.

    The clock of another camera is shifted if many of its moments then meet moments of that camera,
    twice as many as with any other shift, and as with none. So cameras that were not used together
    stay as they are. So do those that went on for hours, because they meet with many shifts.
    """
    numbers, names = _number(cameras)
    known = ~np.isnan(seconds) & np.array([name != "" for name in names], dtype=bool)[numbers]
    counts = np.bincount(numbers[known], minlength=len(names))
    first, *others = np.argsort(-counts, kind="stable")[: max(1, np.count_nonzero(counts))]
    moments = _moments(seconds[known & (numbers == first)])
    shifted = np.array(seconds, np.float64)
    for camera in others:
        own = known & (numbers == camera)
        shifted[own] += CLOCKS.step * _find_shift(_moments(seconds[own]), moments)
    return shifted


def _number(cameras: Sequence[str] | np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Return the number of each camera, shape (N,), and the names by number."""
    codes = {name: number for number, name in enumerate(dict.fromkeys(cameras))}
    numbers = np.fromiter(map(codes.__getitem__, cameras), np.int64, len(cameras))
    return numbers, list(codes) or [""]


def _moments(seconds: np.ndarray) -> np.ndarray:
    """Return the steps of time in which photographs were taken, each once, ascending."""
    return np.unique(np.floor(seconds / CLOCKS.step).astype(np.int64))


def _find_shift(moments: np.ndarray, others: np.ndarray) -> int:
    """Return how many steps later one camera's moments meet those of another, 0 if in doubt."""
    if len(moments) < CLOCKS.fewest:
        return 0
    exact = _count_meetings(moments, others)
    near = _count_meetings(moments, np.unique(np.concatenate([others - 1, others, others + 1])))
    most = len(near) // 2
    best = int(np.argmax(2 * near + exact))
    blur = round(CLOCKS.blur / CLOCKS.step)
    elsewhere = np.abs(np.arange(len(near)) - best) > blur
    is_sure = near[best] >= max(CLOCKS.fewest, CLOCKS.sharpness * near[elsewhere].max())
    return best - most if is_sure and abs(best - most) > blur else 0


def _count_meetings(moments: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how many moments meet another with each shift, from the earliest to the latest."""
    most = round(CLOCKS.longest_shift / CLOCKS.step)
    starts = np.searchsorted(others, moments - most)
    lengths = np.searchsorted(others, moments + most, side="right") - starts
    rows = np.repeat(np.arange(len(moments)), lengths)
    columns = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    shifts = others[starts[rows] + columns] - moments[rows]
    return np.bincount(shifts + most, minlength=2 * most + 1)


# --- files -------------------------------------------------------------------------------


def read_moments(files: Sequence[str], root: str | os.PathLike[str]) -> Moments:
    """Read when and where photographs were taken, from the files and their sidecars.

    The clocks of cameras are not brought together, because other photographs of them are read at
    another time. A photograph outside `root` has no folder.

    Parameters
    ----------
    files : sequence of N paths
        Missing and unreadable files have no time and no place.
    root : path
        The folder of the collection.
    """
    with ThreadPoolExecutor() as pool:
        facts = list(pool.map(_read_facts, files))
    seconds = to_seconds([_text(of_file, "taken") for of_file in facts])
    cameras = [
        f"{of_file.get('camera', '')} {of_file.get('serial', '')}".strip() for of_file in facts
    ]
    names = ("latitude", "longitude")
    places = [[of_file.get(name, np.nan) for name in names] for of_file in facts]
    top = os.path.abspath(root)
    folders = [_folder_from(top, os.path.dirname(os.path.abspath(file))) for file in files]
    return Moments(
        leave_out_unset(seconds, cameras),
        np.array(places, np.float64).reshape(-1, 2),
        np.array(folders, dtype=object),
    )


def _read_facts(file: str) -> Facts:
    try:
        return read_metadata(file).facts
    except UnreadableImage:
        return {}


def _text(facts: Facts, name: str) -> str | None:
    return str(facts[name]) if name in facts else None


def _folder_from(root: str, folder: str) -> str:
    if not folder.startswith(os.path.join(root, "")):
        return ""
    return os.path.relpath(folder, root).replace(os.sep, "/")
