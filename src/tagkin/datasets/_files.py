"""What every reader does with files: read them, and say at once all that is wrong with them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import scipy.sparse

from tagkin.errors import StorageError

__all__ = ["Files", "Source", "label_matrix", "unpacked"]


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from.

    Attributes
    ----------
    title : str
        The dataset's name as people write it.
    home : str
        Who publishes it, and where.
    downloads : mapping of str to str
        Name of a download → what it is, and its size.
    """

    title: str
    home: str
    downloads: Mapping[str, str]


@dataclass
class Files:
    """The files of a dataset in a folder. `check` says all that is wrong with them, at once.

    A method that reads a file which cannot be read remembers that, and gives something empty.
    """

    folder: Path
    source: Source
    looked_at: dict[str, str] = field(default_factory=dict)
    """Path of a file in the folder → what is wrong with it, or an empty text."""

    def wrong(self, path: str, what: str) -> None:
        """Remember what is wrong with a file; the first finding stays."""
        self.looked_at[path] = self.looked_at.get(path) or what

    def check(self) -> None:
        """Refuse the folder if anything was found to be wrong, and say what to download."""
        problems = {path: what for path, what in self.looked_at.items() if what}
        if not problems:
            return
        lines = [
            f"{self.source.title} cannot be read from {self.folder}: found "
            f"{len(problems)} of {len(self.looked_at)} files missing or damaged."
        ]
        if not self.folder.is_dir():
            lines[0] += " There is no such folder."
        lines += [f"  {what or 'as expected':12}  {path}" for path, what in self._shown()]
        lines.append(f"Download from {self.source.home}:")
        lines += [f"  {name}: {what}" for name, what in self.source.downloads.items()]
        raise StorageError("\n".join(lines))

    def _shown(self, most: int = 40) -> list[tuple[str, str]]:
        """Files and findings in the order of reading; of very many, those with problems first."""
        shown = list(self.looked_at.items())
        if len(shown) <= most:
            return shown
        shown.sort(key=lambda item: not item[1])
        return [*shown[:most], (f"… and {len(shown) - most} more files", "")]

    def read(self, path: str) -> bytes:
        """The bytes of a file; none where it cannot be read."""
        self.looked_at.setdefault(path, "")
        try:
            return (self.folder / path).read_bytes()
        except FileNotFoundError:
            self.wrong(path, "missing")
        except OSError as error:
            self.wrong(path, f"cannot be read ({error.strerror or error})")
        return b""

    def exists(self, path: str) -> None:
        """Remember whether a file is there."""
        self.looked_at.setdefault(path, "")
        if not (self.folder / path).is_file():
            self.wrong(path, "missing")

    def arrays(self, path: str, names: Iterable[str]) -> dict[str, np.ndarray]:
        """Named arrays of an ``.npz`` archive; an empty mapping where one cannot be read."""
        self.looked_at.setdefault(path, "")
        found: dict[str, np.ndarray] = {}
        try:
            with (self.folder / path).open("rb") as file, np.load(file) as archive:
                for name in names:
                    found[name] = archive[name]
        except FileNotFoundError:
            self.wrong(path, "missing")
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            self.wrong(path, f"damaged ({error})")
        return {} if self.looked_at[path] else found


def label_matrix(
    rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
    """Sparse float32 matrix with 1 at the pairs of row and column; repeated pairs count once."""
    matrix = scipy.sparse.csr_array(
        (np.ones(len(rows), np.float32), (rows, columns)), shape=shape, dtype=np.float32
    )
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return matrix


def unpacked(bits: np.ndarray, n_columns: int) -> scipy.sparse.csr_array:
    """Bit-packed rows as a sparse float32 matrix with `n_columns` columns."""
    return scipy.sparse.csr_array(np.unpackbits(bits, axis=1)[:, :n_columns], dtype=np.float32)
