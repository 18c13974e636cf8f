"""What an attribute of a stored object must be: a small language to declare it in.

A field is declared with the names of its dimensions, ``Floats("N", "m")``. All fields of a model
that name the same dimension must agree on it, so that shapes are held against each other without
a line of code for each pair. `tagkin.storage.schema` has a declaration for everything stored.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np
import scipy.sparse

__all__ = [
    "Choice",
    "Columns",
    "Counts",
    "Dim",
    "Dimensions",
    "Either",
    "Field",
    "FileNames",
    "Flag",
    "Flags",
    "Floats",
    "Indices",
    "Levels",
    "Refused",
    "Sparse",
    "Table",
    "Text",
    "TextLists",
    "Texts",
    "Value",
    "Whole",
]

_LARGEST = 1e30  # beyond it float32 overflows in the first product
_MOST = 2**53  # whole numbers


class Refused(Exception):
    """What is stored cannot be used; the message says where and why."""

    def __init__(self, where: str, found: str):
        super().__init__(f"{where} {found}")


class Dimensions:
    """The sizes that go by one name in an object, and where they were seen first."""

    def __init__(self, known: dict[str, list[Any]] | None = None):
        self._known = known or {}

    def seen(self, name: str, size: int, where: str) -> None:
        """Note a size; refuse another than was seen before, and nothing at all."""
        may_be_none = name.islower() and len(name) > 1
        if size < 1 and not may_be_none:
            raise Refused(where, "is empty")
        cell = self._known.setdefault(name, [])
        if not cell:
            cell.extend((size, where))
        elif cell[0] != size:
            raise Refused(where, f"has {size:,} entries where {cell[1]} has {cell[0]:,}")

    def size(self, name: str) -> int | None:
        """A size that was seen, or None."""
        cell = self._known.get(name)
        return cell[0] if cell else None

    def of_part(self, names: Iterable[tuple[str, str]]) -> Dimensions:
        """For a part of the object, by its own names of sizes that both have."""
        return Dimensions({own: self._known.setdefault(outer, []) for own, outer in names})


class Field(ABC):
    """A value that is stored."""

    none = False
    absent = False

    def or_none(self) -> Self:
        """The same, or None."""
        other = copy(self)
        other.none = True
        return other

    def or_absent(self) -> Self:
        """The same, or not there at all."""
        other = copy(self)
        other.absent = True
        return other

    def check(self, value: Any, sizes: Dimensions, where: str) -> None:
        """Refuse a value that cannot be used."""
        if not (value is None and self.none):
            self._check(value, sizes, where)

    @abstractmethod
    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        """Refuse a value, not None, that cannot be used."""


# --- single values -----------------------------------------------------------------------


@dataclass(eq=False)
class Value(Field):
    """A finite number."""

    low: float = -_LARGEST
    high: float = _LARGEST
    above: float = -math.inf
    nan: bool = False

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if type(value) not in (int, float):
            raise Refused(where, f"is {_shown(value)}, not a number")
        if self.nan and math.isnan(value):
            return
        if not (self.low <= value <= self.high and value > self.above):
            raise Refused(
                where, f"is {value:.6g}, {_between(max(self.low, self.above), self.high)}"
            )


@dataclass(eq=False)
class Whole(Field):
    """A whole number."""

    low: int = 0
    high: int = _MOST

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if type(value) is not int:
            raise Refused(where, f"is {_shown(value)}, not a whole number")
        if not self.low <= value <= self.high:
            raise Refused(where, f"is {_shown(value)}, {_between(self.low, self.high)}")


@dataclass(eq=False)
class Dim(Field):
    """A whole number that says how many there are of something, by one name or several."""

    name: str
    other: str = ""

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        Whole().check(value, sizes, where)
        for name in filter(None, (self.name, self.other)):
            sizes.seen(name, value, where)


@dataclass(eq=False)
class Flag(Field):
    """True or False."""

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if type(value) is not bool:
            raise Refused(where, f"is {_shown(value)}, neither true nor false")


@dataclass(eq=False)
class Text(Field):
    """A text, perhaps of certain characters."""

    pattern: str = ""

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if not isinstance(value, str):
            raise Refused(where, f"is {_shown(value)}, not a text")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise Refused(where, f"is {_shown(value)}")


@dataclass(eq=False)
class Choice(Field):
    """One of several texts."""

    names: tuple[str, ...]

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if value not in self.names or not isinstance(value, str):
            raise Refused(where, f"is {_shown(value)}, none of {', '.join(self.names)}")


# --- arrays ------------------------------------------------------------------------------


class _Array(Field):
    """An array, its dimensions by name; those that never change by their size."""

    kinds = ""
    called = "an array"

    def __init__(self, *shape: str | int):
        self.shape = shape

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.kinds:
            raise Refused(where, f"is {_shown(value)}, not {self.called}")
        if value.ndim != len(self.shape):
            shape = ", ".join(map(str, self.shape))
            raise Refused(where, f"has the shape {value.shape}, not ({shape})")
        for name, size in zip(self.shape, value.shape, strict=True):
            if isinstance(name, str):
                sizes.seen(name, size, where)
            elif size != name:
                raise Refused(where, f"has {size:,} entries, not {name:,}")
        if value.size:
            self._check_numbers(value, sizes, where)

    def _check_numbers(self, value: np.ndarray, sizes: Dimensions, where: str) -> None:
        pass


class Floats(_Array):
    """Numbers, float32 or float64, from `low` to `high` and more than `above`.

    Parameters
    ----------
    shape : str or int
        Names of the dimensions, or their sizes.
    endless : bool
        Whether −∞ and ∞ are numbers, too.
    ascending : bool
    triangular : bool
        Whether it is a factor to solve with: nothing on its diagonal is 0.
    """

    kinds = "f"
    called = "an array of numbers"

    def __init__(
        self,
        *shape: str | int,
        low: float = -_LARGEST,
        high: float = _LARGEST,
        above: float = -math.inf,
        endless: bool = False,
        ascending: bool = False,
        triangular: bool = False,
    ):
        super().__init__(*shape)
        self._low, self._high = (-math.inf, math.inf) if endless else (low, high)
        self._above, self._ascending, self._triangular = above, ascending, triangular

    def _check_numbers(self, value: np.ndarray, sizes: Dimensions, where: str) -> None:
        if value.dtype.itemsize < 4:
            raise Refused(where, f"is an array of {value.dtype}")
        least, most = float(value.min()), float(value.max())  # either is NaN where any is
        if math.isnan(least) or math.isnan(most):
            raise Refused(where, "has numbers that are NaN")
        if not (self._low <= least and most <= self._high) or (
            least <= self._above and not math.isinf(self._above)
        ):
            low = max(self._low, self._above)
            raise Refused(
                where, f"has numbers from {least:.6g} to {most:.6g}, {_between(low, self._high)}"
            )
        if self._ascending and (np.diff(value) < 0).any():
            raise Refused(where, "is not in ascending order")
        if self._triangular and not np.diagonal(value).all():
            raise Refused(where, "is singular: a number on its diagonal is 0")


class Indices(_Array):
    """Whole numbers from 0, below a number or the size of that name."""

    kinds = "iu"
    called = "an array of whole numbers"

    def __init__(self, *shape: str | int, below: str | int = _MOST, ascending: bool = False):
        super().__init__(*shape)
        self._below, self._ascending = below, ascending

    def _check_numbers(self, value: np.ndarray, sizes: Dimensions, where: str) -> None:
        below = sizes.size(self._below) if isinstance(self._below, str) else self._below
        least, most = int(value.min()), int(value.max())
        if least < 0 or most >= (_MOST if below is None else below):
            raise Refused(where, f"has indices from {least} to {most}, of {below}")
        if self._ascending and (np.diff(value.astype(np.int64)) <= 0).any():
            raise Refused(where, "is not in ascending order")


class Flags(_Array):
    """True or False, several times."""

    kinds = "b"
    called = "an array of flags"


@dataclass(eq=False)
class Sparse(Field):
    """A CSR array: sorted, every entry once, finite numbers from `low` to `high`.

    Columns from the size `within` on, where there is one, are empty.
    """

    rows: str
    columns: str
    low: float = 0.0
    high: float = _LARGEST
    within: str = ""

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if not scipy.sparse.issparse(value):
            raise Refused(where, f"is {_shown(value)}, not a sparse matrix")
        Floats("entries", low=self.low, high=self.high).check(value.data, Dimensions(), where)
        if not value.has_canonical_format:
            raise Refused(where, "has entries that are not in order, or twice")
        sizes.seen(self.rows, value.shape[0], where)
        sizes.seen(self.columns, value.shape[1], where)
        filled = sizes.size(self.within) if self.within else None
        if filled is not None and value.nnz and int(value.indices.max()) >= filled:
            raise Refused(where, f"has entries beyond the {filled:,} columns that are known")


# --- texts -------------------------------------------------------------------------------


@dataclass(eq=False)
class Texts(Field):
    """Texts, as a list or an array."""

    size: str = ""

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        listed = isinstance(value, list) or (
            isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1
        )
        if not listed or not set(map(type, value)) <= {str}:
            raise Refused(where, f"is {_shown(value)}, not a list of texts")
        if self.size:
            sizes.seen(self.size, len(value), where)


@dataclass(eq=False)
class FileNames(Texts):
    """Names of files, none of which leads out of the folder that it is in."""

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        super()._check(value, sizes, where)
        together = "\0".join(value)
        if ".." not in together and together.count("\0") < max(1, len(value)):
            return  # all of a hundred thousand at once
        for name in value:
            if "\0" in name or (".." in name and ".." in re.split(r"[/\\]", name)):
                raise Refused(where, f"names {_shown(name)}, which is not a photograph's name")


@dataclass(eq=False)
class TextLists(Field):
    """Lists of texts."""

    size: str

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if not isinstance(value, list):
            raise Refused(where, f"is {_shown(value)}, not lists of texts")
        if not set(map(type, value)) <= {list} or not set(
            map(type, chain.from_iterable(value))
        ) <= {str}:
            row = next(r for r in value if type(r) is not list or not set(map(type, r)) <= {str})
            raise Refused(where, f"has {_shown(row)} where a list of texts is expected")
        sizes.seen(self.size, len(value), where)


# --- tables ------------------------------------------------------------------------------


class Table(Field):
    """Values of one kind, by text."""

    def __init__(self, of: Field):
        self.of = of

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if not isinstance(value, dict) or not all(type(key) is str for key in value):
            raise Refused(where, f"is {_shown(value)}, not a table")
        for key, one in value.items():
            self.of.check(one, sizes, f"{where}[{_shown(key)}]")


class Counts(Table):
    """How often texts occur; with `some`, at least one of them."""

    def __init__(self, *, some: bool = False):
        super().__init__(Whole())
        self.some = some

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        super()._check(value, sizes, where)
        if self.some and not value:
            raise Refused(where, "is empty")


class Columns(Table):
    """The columns of texts, in order: 0, 1, 2, …"""

    def __init__(self, size: str):
        super().__init__(Whole())
        self.size = size

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        super()._check(value, sizes, where)
        if list(value.values()) != list(range(len(value))):
            raise Refused(where, "does not number the columns one after the other")
        sizes.seen(self.size, len(value), where)


class Levels(Field):
    """Levels that belong above a tag, and how many of them it implies."""

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if not isinstance(value, list) or len(value) != 2:
            raise Refused(where, f"is {_shown(value)}, not levels and their number")
        Texts().check(value[0], sizes, where)
        Whole(0, len(value[0])).check(value[1], sizes, where)


class Either(Field):
    """One of several kinds of value."""

    def __init__(self, *fields: Field):
        self._fields = fields

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        refusals = []
        for one in self._fields:
            try:
                one.check(value, sizes, where)
            except Refused as refusal:
                refusals.append(refusal)
            else:
                return
        raise refusals[-1]


def _shown(value: Any) -> str:
    """A value in a few words: nothing long, whatever it is."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of the shape {value.shape}"
    if isinstance(value, (dict, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and abs(value) > _MOST:
        return "a number of very many digits"
    if not isinstance(value, (str, int, float, type(None))):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _between(low: float, high: float) -> str:
    return f"not from {low:.6g} to {high:.6g}"
