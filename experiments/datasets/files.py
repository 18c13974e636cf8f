"""What every reader does with files: read them, and say at once all that is wrong with them."""

from __future__ import annotations

import contextlib
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

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
        Who publishes it, and where: what comes after "Get them from".
    downloads : mapping of str to str
        Name of a download → what it is.
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
        if problems.keys() == self.looked_at.keys() and {*problems.values()} == {"missing"}:
            downloads = ", ".join(self.source.downloads)
            raise StorageError(
                f"{self.source.title} is not in {self.folder}. Set TAGKIN_DATA to the folder that "
                f"has it, or get it ({downloads}) from {self.source.home}."
            )
        lines = [
            f"{self.source.title} cannot be read from {self.folder}: found "
            f"{len(problems)} of {len(self.looked_at)} files missing or damaged."
        ]
        if not self.folder.is_dir():
            lines[0] += " There is no such folder."
        lines += [f"  {what or 'as expected':12}  {path}" for path, what in self._shown()]
        lines.append(f"Get them from {self.source.home}:")
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

    @contextlib.contextmanager
    def using(self, path: str) -> Iterator[None]:
        """Take an error within a ``with`` statement as damage of the file in use."""
        try:
            yield
        except (ValueError, IndexError, TypeError) as error:
            self.wrong(path, f"damaged ({error})")
            self.check()

    def exists(self, path: str) -> bool:
        """Whether a file is there; remembers if it is not."""
        self.looked_at.setdefault(path, "")
        if not (self.folder / path).is_file():
            self.wrong(path, "missing")
        return not self.looked_at[path]

    def either(self, *folders: str) -> str:
        """The first of several places in the folder that is there, else the first."""
        return next((name for name in folders if (self.folder / name).exists()), folders[0])

    def lines(self, path: str) -> list[str]:
        """Lines of a text file, without space around them and without blank ones at the end."""
        # a tag with bytes that are not UTF-8 is like no other tag: no reason to refuse the rest
        text = self.read(path).decode("utf-8-sig", errors="replace").rstrip()
        if not text:
            self.wrong(path, "empty")
        return [line.strip() for line in text.split("\n")] if text else []

    def vectors(self, path: str) -> np.ndarray:
        """Vectors of equal length in an ``.hvecs`` file, one a row.

        For each vector it holds the length and the numbers, as uint16, little-endian.
        """
        data = self.read(path)
        numbers = np.frombuffer(data[: len(data) // 2 * 2], "<u2")
        width = 1 + int(numbers[0]) if len(numbers) else 1
        if self.looked_at[path]:
            return np.empty((0, 0))
        if width == 1 or len(data) % (2 * width):
            self.wrong(
                path,
                f"damaged ({len(data):,} bytes are not a whole number of vectors with {width - 1} "
                "numbers each; the file may have been cut off)",
            )
            return np.empty((0, 0))
        rows = numbers.reshape(-1, width)
        if (other := np.flatnonzero(rows[:, 0] != width - 1)).size:
            found = f"vector {other[0]} has {rows[other[0], 0]} numbers where the first has"
            self.wrong(path, f"damaged ({found} {width - 1})")
            return np.empty((0, 0))
        return rows[:, 1:]

    def same_number(self, path: str, found: int, what: str, expected: int, other: str) -> None:
        """Remember if a file has not as many of something as another file has."""
        if found != expected and not self.looked_at[path] and not self.looked_at[other]:
            self.wrong(path, f"has {found:,} {what} where {other} has {expected:,}")

    def find_images(
        self, names: Sequence[str], places: Sequence[str]
    ) -> tuple[list[str], np.ndarray] | None:
        """Paths of images, and whether each is there; None where no place has any of them.

        A place is a pattern for a path, in which ``{0}`` stands for the name as listed and
        ``{0.name}`` for its last part. The first place that has an image is taken.
        """
        for place in places:
            if not (self.folder / place.partition("{")[0]).is_dir():
                continue
            paths = [place.format(PurePosixPath(name)) for name in names]
            root = str(self.folder)
            there = np.array([os.path.isfile(f"{root}/{path}") for path in paths], dtype=bool)
            if there.any():
                return paths, there
        return None

    def images(self, names: Sequence[str], places: Sequence[str]) -> list[str] | None:
        """Paths of images that have to be all there, or all not there (then None)."""
        found = self.find_images(names, places)
        if found is None:
            return None
        for path, there in zip(*found, strict=True):
            self.looked_at.setdefault(path, "")
            if not there:
                self.wrong(path, "missing")
        return found[0]

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
