"""Results on disk: one archive per result, with the dataset and parameters in its path.

A stored result is not computed again, so a rerun skips finished work and an interrupted run
resumes. Archives are written whole or not at all, and contain plain arrays only.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tagkin.filesystem import atomic_write

__all__ = ["Missing", "Store", "slug"]

Arrays = dict[str, np.ndarray]
_LONGEST = 120
_SMALL = 2**16  # bytes


def slug(parameters: Mapping[str, Any]) -> str:
    """Parameters as a readable file name; long or unsafe names end in a hash."""
    text = ",".join(f"{name}={_written(value)}" for name, value in parameters.items())
    safe = "".join(c if c.isalnum() or c in "=,.+-_" else "_" for c in text)
    if len(safe) <= _LONGEST and safe == text:
        return safe
    digest = hashlib.sha256(
        json.dumps(dict(parameters), default=str, sort_keys=True).encode()
    ).hexdigest()
    return f"{safe[:_LONGEST]}-{digest[:10]}"


def _written(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


class Missing(LookupError):
    """A result was requested that is not stored."""


class Store:
    """A folder of results."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.read_only = False
        """If set, a missing result is not computed: `Missing` is raised."""
        self._small: dict[Path, Arrays] = {}

    def path(self, what: str, /, **parameters: Any) -> Path:
        """Path of the result of this kind with these parameters."""
        return self.folder / what / f"{slug(parameters) or 'all'}.npz"

    def has(self, what: str, /, **parameters: Any) -> bool:
        """Whether the result is stored."""
        return self.path(what, **parameters).exists()

    def get(self, what: str, /, **parameters: Any) -> Arrays:
        """Load a stored result; small ones, which are asked for again and again, are kept."""
        path = self.path(what, **parameters)
        if path in self._small:
            return dict(self._small[path])
        try:
            with np.load(path, allow_pickle=False) as archive:
                found = {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            raise Missing(f"{path} is missing: run python -m experiments run.") from None
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise SystemExit(f"{path} cannot be read ({error}). Remove it and run again.") from None
        if sum(value.nbytes for value in found.values()) <= _SMALL:
            for value in found.values():
                value.flags.writeable = False
            self._small[path] = found
        return dict(found)

    def get_or_compute(
        self, what: str, compute: Callable[[], Mapping[str, Any]], /, **parameters: Any
    ) -> Arrays:
        """Load the result; compute and store it first if it is missing."""
        if not self.read_only and not self.has(what, **parameters):
            self.put(what, compute(), **parameters)
        return self.get(what, **parameters)

    def put(self, what: str, arrays: Mapping[str, Any], /, **parameters: Any) -> None:
        """Store a result."""
        plain = {name: np.asarray(value) for name, value in arrays.items()}
        for name, value in plain.items():
            if value.dtype.hasobject:
                raise TypeError(f"{what}: {name} holds objects; results must be plain arrays.")
        path = self.path(what, **parameters)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **plain)  # type: ignore[arg-type]
        self._small.pop(path, None)
