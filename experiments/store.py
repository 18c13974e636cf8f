"""Results on disk: one archive for each, at a path made of dataset and parameters.

A result that is there is not computed again, so that a rerun skips what is done and a killed run
goes on where it was. Archives are written whole or not at all, and hold plain arrays only.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tagkin.filesystem import whole_file

__all__ = ["Missing", "Store", "slug"]

Arrays = dict[str, np.ndarray]
_LONGEST = 120


def slug(parameters: Mapping[str, Any]) -> str:
    """Parameters as a readable part of a file name; what is too long or odd ends in a hash."""
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
    """A result that is asked for and not there."""


class Store:
    """A folder of results."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.read_only = False
        """Where it is set, what is missing is not made: `Missing` is raised."""
        self.n_made = 0
        """How many results were put here."""

    def path(self, what: str, /, **parameters: Any) -> Path:
        """Where the result of a kind with these parameters is, or will be."""
        return self.folder / what / f"{slug(parameters) or 'all'}.npz"

    def has(self, what: str, /, **parameters: Any) -> bool:
        """Whether the result is there."""
        return self.path(what, **parameters).exists()

    def get(self, what: str, /, **parameters: Any) -> Arrays:
        """The result; it must be there."""
        path = self.path(what, **parameters)
        try:
            with np.load(path, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            raise Missing(f"{path} is not there: python -m experiments run makes it.") from None
        except (zipfile.BadZipFile, ValueError, OSError) as error:
            raise SystemExit(f"{path} cannot be read ({error}). Remove it and run again.") from None

    def once(
        self, what: str, make: Callable[[], Mapping[str, Any]], /, **parameters: Any
    ) -> Arrays:
        """The result, made and kept if it is not there yet."""
        if not self.read_only and not self.has(what, **parameters):
            self.put(what, make(), **parameters)
        return self.get(what, **parameters)

    def put(self, what: str, arrays: Mapping[str, Any], /, **parameters: Any) -> None:
        """Keep a result."""
        plain = {name: np.asarray(value) for name, value in arrays.items()}
        for name, value in plain.items():
            if value.dtype.hasobject:
                raise TypeError(f"{what}: {name} holds objects; results are plain arrays.")
        path = self.path(what, **parameters)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, **plain)  # type: ignore[arg-type]
        self.n_made += 1
