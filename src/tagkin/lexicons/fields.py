"""The fields of all lines of a text file, found at once: a line at a time takes seconds."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

__all__ = ["Fields"]

_SPACE, _NEWLINE = b" \n"
_MOST_DIGITS = 9
_DIGITS = np.full(256, 255, dtype=np.uint8)
_DIGITS[list(b"0123456789")] = range(10)
_DIGITS[list(b"abcdef")] = _DIGITS[list(b"ABCDEF")] = range(10, 16)


@dataclass(frozen=True)
class Fields:
    """The fields of n lines, which white space separates; what follows a | belongs to none.

    Lines that begin with a space, and empty ones, are left out.

    Attributes
    ----------
    data : bytes
        The lines, each up to its |.
    lines : int array of shape (n,)
        Numbers of the lines, from 1.
    first, n_fields : int arrays of shape (n,)
        The first field of each line, and how many there are.
    starts, ends : int arrays of shape (m,)
        Where each field stands in the data.
    """

    data: bytes
    lines: np.ndarray
    first: np.ndarray
    n_fields: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, data: bytes) -> Fields:
        """The fields of a file's bytes."""
        data = re.sub(rb"\|[^\n]*", b"", data)
        characters = np.frombuffer(data, dtype=np.uint8)
        line_ends = np.append(np.flatnonzero(characters == _NEWLINE), len(data))
        line_starts = np.append(0, line_ends[:-1] + 1)
        # a field begins where there is no space and one was before it, and ends likewise
        changes = np.diff(np.concatenate([[True], characters <= _SPACE, [True]]).view(np.int8))
        starts, ends = np.flatnonzero(changes < 0), np.flatnonzero(changes > 0)
        first, last = np.searchsorted(starts, line_starts), np.searchsorted(starts, line_ends)
        kept = np.flatnonzero(last > first)
        kept = kept[characters[line_starts[kept]] != _SPACE]
        return cls(data, kept + 1, first[kept], (last - first)[kept], starts, ends)

    def __len__(self) -> int:
        return len(self.first)

    def line(self, i: int) -> str:
        """The whole of line i, without white space at its end."""
        text = self.data.split(b"\n", int(self.lines[i]))[self.lines[i] - 1]
        return text.decode("utf-8", "replace").rstrip()

    def texts(self, fields: np.ndarray) -> list[str]:
        """Fields (k,) as they are written."""
        bounds = zip(self.starts[fields].tolist(), self.ends[fields].tolist(), strict=True)
        if self.data.isascii():
            text = self.data.decode("ascii")
            return [text[start:end] for start, end in bounds]
        return [self.data[start:end].decode("utf-8", "replace") for start, end in bounds]

    def are(self, fields: np.ndarray, text: bytes) -> np.ndarray:
        """Which of the fields (k,) are a text."""
        same = self.ends[fields] - self.starts[fields] == len(text)
        for i, character in enumerate(text):
            same &= self._at(self.starts[fields] + i) == character
        return same

    def end_with(self, fields: np.ndarray, character: bytes) -> np.ndarray:
        """Which of the fields (k,) end with a character."""
        return self._at(self.ends[fields] - 1) == ord(character)

    def numbers(self, fields: np.ndarray) -> np.ndarray:
        """The numbers (k,) that fields are, NaN where one is none."""
        return np.array([_number(text) for text in self.texts(fields)], dtype=np.float64)

    def integers(self, fields: np.ndarray, base: int = 10, *, less: int = 0) -> np.ndarray:
        """Whole numbers that fields (k,) are, but for `less` characters at their ends.

        −1 stands for what is no number, or is longer than nine digits.
        """
        starts, ends = self.starts[fields], self.ends[fields] - less
        values = np.zeros(len(fields), dtype=np.int64)
        bad = (ends <= starts) | (ends - starts > _MOST_DIGITS)
        for i in range(min(_MOST_DIGITS, int((ends - starts).max(initial=0)))):
            inside = starts + i < ends
            digits = _DIGITS[self._at(starts + i)]
            bad |= inside & (digits >= base)
            values = np.where(inside, base * values + digits, values)
        return np.where(bad, -1, values)

    def _at(self, positions: np.ndarray) -> np.ndarray:
        """Characters at positions (k,); those after the last count as spaces."""
        characters = np.frombuffer(self.data, dtype=np.uint8)
        inside = np.minimum(positions, len(self.data) - 1)
        return np.where(positions < len(self.data), characters[inside], _SPACE)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
