"""Decide whether a camera's previews can replace its photographs."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tagkin.errors import InvalidInput

__all__ = ["PreviewUse"]

# Cosine of the features of a preview and of its photograph. On resampled photographs, previews of
# quality 60 reach .98, and a background blurred by 6 of 1,152 pixels at most .96.
_ALIKE = 0.97
_FIRST = 8  # files of a camera that are decoded both ways before its previews are trusted
_ONE_IN = 50  # one in this many of its other files is also decoded both ways
_MAX_BAD = 0.05  # share of the checked files that may differ; a single file always may
_CHOICES = {"": True, "yes": True, "no": False}


@dataclass
class _Camera:
    """The files of a camera that were decoded both ways."""

    n_begun: int = 0
    n_checked: int = 0
    n_bad: int = 0

    @property
    def is_trusted(self) -> bool:
        return self.n_bad <= 1 + _MAX_BAD * self.n_checked


_lock = threading.Lock()
_cameras: defaultdict[bytes, _Camera] = defaultdict(_Camera)  # of all runs of this process


class PreviewUse:
    """Decodes previews instead of photographs, and checks a share of them; thread-safe.

    The first 8 files of each camera, and one in 50 of the others, are decoded both ways. If the
    features differ (a cosine below 0.97) for at least two files, and for more than one file in 20,
    the previews of this camera do not match, and its files are decoded in full.
    ``TAGKIN_PREVIEWS=no`` switches previews off.
    """

    def __init__(self) -> None:
        choice = os.environ.get("TAGKIN_PREVIEWS", "")
        if choice not in _CHOICES:
            raise InvalidInput(f"TAGKIN_PREVIEWS must be yes or no; found {choice!r}.")
        self._is_on = _CHOICES[choice]
        self._used: dict[int, bytes] = {}  # the camera of each file whose preview was decoded

    def decode(
        self, number: int, data: bytes, digest: str, min_side: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the pixels of a file, and the pixels of the full decode to check a preview."""
        from tagkin.images import decode, decode_preview  # not needed if all features are cached

        preview = decode_preview(data, min_side=min_side) if self._is_on else None
        if preview is None:
            return decode(data, min_side=min_side), None
        pixels, camera = preview
        with _lock:
            checks = _cameras[camera]
            if not checks.is_trusted:
                self._used.pop(number, None)
                is_checked = None
            else:
                self._used[number] = camera
                checks.n_begun += 1
                # by the content, so the result does not depend on the order of the files
                is_checked = checks.n_begun <= _FIRST or int(digest[:8], 16) % _ONE_IN == 0
        if is_checked is None:
            return decode(data, min_side=min_side), None
        return pixels, decode(data, min_side=min_side) if is_checked else None

    def check(self, number: int, features: np.ndarray, full: np.ndarray) -> np.ndarray:
        """Compare the features of a file's preview and full decode; return the features to use."""
        norms = float(np.linalg.norm(features) * np.linalg.norm(full))
        is_bad = float(features @ full) < _ALIKE * norms
        with _lock:
            checks = _cameras[self._used[number]]
            checks.n_checked += 1
            checks.n_bad += is_bad
            if is_bad:
                del self._used[number]
        return full if is_bad else features

    def is_misled(self, number: int) -> bool:
        """Whether a file has the features of a preview that turned out not to match."""
        with _lock:
            camera = self._used.get(number)
            return camera is not None and not _cameras[camera].is_trusted

    def find_mismatches(self) -> list[int]:
        """Return the files to decode in full, because their previews do not match."""
        return sorted(number for number in list(self._used) if self.is_misled(number))
