"""Files of vectors as INRIA's groups publish them: a length and the numbers, again and again.

============  ===================  =========================
suffix        length               numbers
============  ===================  =========================
``.hvecs``    uint16               uint16
``.hvecs32``  uint32               uint32
``.fvecs``    int32                float32
``.dvecs``    int32                float64
``.ivecs``    int32                int32
``.bvecs``    int32                uint8
============  ===================  =========================

All are little-endian; the ``s`` of the suffix may be missing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from tagkin.errors import InvalidInput, StorageError

__all__ = ["VectorFormat", "read_vectors"]

_FORMATS = {
    "hvec": ("<u2", "<u2"),
    "hvec32": ("<u4", "<u4"),
    "fvec": ("<u4", "<f4"),
    "dvec": ("<u4", "<f8"),
    "ivec": ("<u4", "<i4"),
    "bvec": ("<u4", "<u1"),
}


class VectorFormat(NamedTuple):
    """Types of the length in front of each vector, and of its numbers."""

    length: np.dtype
    numbers: np.dtype

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """The format that the suffix of a file says."""
        name = Path(path).name
        suffix = re.fullmatch(r".*\.([a-z]vec)s?(32)?", name, flags=re.IGNORECASE)
        kind = "".join(part or "" for part in suffix.groups()).lower() if suffix else ""
        if kind not in _FORMATS:
            known = ", ".join(f".{k.replace('vec', 'vecs')}" for k in _FORMATS)
            raise InvalidInput(f"{name}: the suffix says the format of vectors. Known: {known}.")
        length, numbers = _FORMATS[kind]
        return cls(np.dtype(length), np.dtype(numbers))

    def parse(self, data: bytes) -> np.ndarray:
        """The vectors in `data`, one a row, shape (n, d). A ValueError says what is damaged."""
        if len(data) < self.length.itemsize:
            raise ValueError("no vector in it")
        d = int(np.frombuffer(data, self.length, count=1)[0])
        row = np.dtype([("length", self.length), ("numbers", self.numbers, (d,))])
        n, rest = divmod(len(data), row.itemsize)
        if d == 0 or rest:
            raise ValueError(
                f"{len(data):,} bytes are not a whole number of vectors with {d} numbers each; "
                "the file may have been cut off"
            )
        rows = np.frombuffer(data, row, count=n)
        other = np.flatnonzero(rows["length"] != d)
        if other.size:
            found = rows["length"][other[0]]
            raise ValueError(f"vector {other[0]} has {found} numbers where the first has {d}")
        return np.ascontiguousarray(rows["numbers"])


def read_vectors(path: str | os.PathLike[str]) -> np.ndarray:
    """Vectors of equal length from a file, such as the features published with TagProp.

    Parameters
    ----------
    path : path
        The suffix says the format: ``.hvecs``, ``.hvecs32``, ``.fvecs``, ``.dvecs``,
        ``.ivecs`` or ``.bvecs``, with or without the ``s``.

    Returns
    -------
    vectors : array of shape (n, d)
    """
    form = VectorFormat.of(path)
    try:
        return form.parse(Path(path).read_bytes())
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error
    except ValueError as error:
        raise StorageError(f"{path} is damaged: {error}. Download it again.") from error
