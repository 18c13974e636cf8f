"""Rules for the values of a record: type, shape and range, declared beside the field.

A field is annotated with its rule, ``coef: Annotated[Array, Floats("m", "D")]``. Axes go by
letters: N images, D labels, d features, m dimensions of an embedding, r landmarks of a space, p
landmarks of a read-out, q text features. Fields of one model that name the same letter must agree
on its size. Axes with longer names may be empty. See `tagkin.records.forms`.

Parameters of estimators have `check_parameters` instead, a method of a few lines in each: they may
be NumPy's numbers, and a message says what to pass, not which part of a file is damaged.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import Any, Self

import numpy as np

__all__ = [
    "AxisSizes",
    "Choice",
    "Either",
    "FileNames",
    "Flag",
    "Flags",
    "Floats",
    "Indices",
    "ListOf",
    "Number",
    "Refused",
    "Rule",
    "Size",
    "Sparse",
    "Table",
    "Text",
    "TextLists",
    "Texts",
    "Whole",
    "describe_value",
]

_LARGEST = 1e30  # beyond it float32 overflows in the first product
_MOST = 2**53  # whole numbers


class Refused(Exception):
    """A value breaks a rule; the message says where and how."""

    def __init__(self, where: str, reason: str):
        super().__init__(f"{where} {reason}")


class AxisSizes:
    """Sizes of the axes of a record, each with the field in which it was first seen."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, str]] = {}  # size and field of each axis
        self._names: dict[str, str] = {}  # of axes that have other names in `_seen`

    def note(self, axis: str, size: int, where: str) -> None:
        """Note the size of an axis. Refuse it if it differs from the size noted before."""
        may_be_empty = axis.islower() and len(axis) > 1
        if size < 1 and not may_be_empty:
            raise Refused(where, "is empty")
        known, first = self._seen.setdefault(self._names.get(axis, axis), (size, where))
        if known != size:
            raise Refused(where, f"has {size:,} entries where {first} has {known:,}")

    def get(self, axis: str) -> int | None:
        """Return the size of an axis, or None if it is not known yet."""
        seen = self._seen.get(self._names.get(axis, axis))
        return None if seen is None else seen[0]

    def rename(self, axes: Mapping[str, str]) -> AxisSizes:
        """Return the sizes for a part that has other names for some axes: own name → outer."""
        part = copy(self)
        outer = {own: self._names.get(name, name) for own, name in axes.items()}
        part._names = self._names | outer
        return part


class Rule(ABC):
    """A condition on a value."""

    may_be_none = False
    may_be_absent = False
    on_host = False
    """Whether an array stays on the host when the record is placed on a device."""

    def or_none(self) -> Self:
        """Return the same rule, which also allows None."""
        return self._changed("may_be_none")

    def or_absent(self) -> Self:
        """Return the same rule for an attribute that may be missing."""
        return self._changed("may_be_absent")

    def kept_on_host(self) -> Self:
        """Return the same rule for a small array that is used on the host."""
        return self._changed("on_host")

    def _changed(self, name: str) -> Self:
        rule = copy(self)
        setattr(rule, name, True)
        return rule

    def check(self, value: object, sizes: AxisSizes, where: str) -> None:
        """Raise `Refused` if the value breaks the rule."""
        if not (value is None and self.may_be_none):
            self._check(value, sizes, where)

    @abstractmethod
    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        """Check a value that is not an allowed None."""


# --- single values -----------------------------------------------------------------------


@dataclass(eq=False)
class Number(Rule):
    """A finite number."""

    low: float = -_LARGEST
    high: float = _LARGEST
    above: float = -math.inf

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise Refused(where, f"is {describe_value(value)}, not a number")
        if value <= self.above:
            raise Refused(where, f"is {describe_value(value)}, not above {self.above:.6g}")
        if not self.low <= value <= self.high:
            raise Refused(where, f"is {describe_value(value)}, {_between(self.low, self.high)}")


@dataclass(eq=False)
class Whole(Number):
    """A whole number."""

    low: float = 0
    high: float = _MOST

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if type(value) is not int:
            raise Refused(where, f"is {describe_value(value)}, not a whole number")
        super()._check(value, sizes, where)


@dataclass(eq=False)
class Size(Rule):
    """The size of an axis."""

    axis: str

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        Whole().check(value, sizes, where)
        assert isinstance(value, int)
        sizes.note(self.axis, value, where)


class Flag(Rule):
    """True or False."""

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if type(value) is not bool:
            raise Refused(where, f"is {describe_value(value)}, neither true nor false")


@dataclass(eq=False)
class Text(Rule):
    """A text that matches a pattern."""

    pattern: str = ""

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if not isinstance(value, str):
            raise Refused(where, f"is {describe_value(value)}, not a text")
        if self.pattern and not re.fullmatch(self.pattern, value):
            raise Refused(where, f"is {describe_value(value)}")


@dataclass(eq=False)
class Choice(Rule):
    """One of several texts."""

    names: Sequence[str]

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if not isinstance(value, str) or value not in self.names:
            raise Refused(where, f"is {describe_value(value)}, none of {', '.join(self.names)}")


# --- arrays ------------------------------------------------------------------------------


class _Array(Rule):
    """An array with these axes."""

    kinds = ""
    called = "an array"

    def __init__(self, *axes: str):
        self.axes = axes

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.kinds:
            raise Refused(where, f"is {describe_value(value)}, not {self.called}")
        if value.ndim != len(self.axes):
            raise Refused(where, f"has the shape {value.shape}, not ({', '.join(self.axes)})")
        for axis, size in zip(self.axes, value.shape, strict=True):
            sizes.note(axis, size, where)
        if value.size:
            self._check_numbers(value, sizes, where)

    def _check_numbers(self, value: np.ndarray, sizes: AxisSizes, where: str) -> None:
        pass


class Floats(_Array):
    """Numbers of type float32 or float64, from `low` to `high`, or with −∞ and ∞ if `endless`.

    NaN is refused, unless numbers may be `unknown`. A `triangular` array is a factor to solve with:
    no number on its diagonal is 0.
    """

    kinds = "f"
    called = "an array of numbers"

    def __init__(
        self,
        *axes: str,
        low: float = -_LARGEST,
        high: float = _LARGEST,
        endless: bool = False,
        triangular: bool = False,
        unknown: bool = False,
    ):
        super().__init__(*axes)
        self._low, self._high = (-math.inf, math.inf) if endless else (low, high)
        self._triangular, self._unknown = triangular, unknown

    def _check_numbers(self, value: np.ndarray, sizes: AxisSizes, where: str) -> None:
        if value.dtype.itemsize < 4:
            raise Refused(where, f"is an array of {value.dtype}")
        if self._unknown:
            value = value[~np.isnan(value)]
            if not value.size:
                return
        least, most = float(value.min()), float(value.max())  # NaN if any number is
        if math.isnan(least) or math.isnan(most):
            raise Refused(where, "has numbers that are NaN")
        if not (self._low <= least and most <= self._high):
            allowed = _between(self._low, self._high)
            raise Refused(where, f"has numbers from {least:.6g} to {most:.6g}, {allowed}")
        if self._triangular and not np.diagonal(value).all():
            raise Refused(where, "is singular: a number on its diagonal is 0")


class Indices(_Array):
    """Whole numbers from 0, and below the size of an axis that an earlier field has."""

    kinds = "iu"
    called = "an array of whole numbers"

    def __init__(self, *axes: str, below: str = "", ascending: bool = False):
        super().__init__(*axes)
        self._below, self._ascending = below, ascending

    def _check_numbers(self, value: np.ndarray, sizes: AxisSizes, where: str) -> None:
        below = sizes.get(self._below) if self._below else _MOST
        least, most = int(value.min()), int(value.max())
        if below is None:
            raise TypeError(f"{where}: an earlier field must have the axis {self._below}")
        if least < 0 or most >= below:
            raise Refused(where, f"has indices from {least} to {most}, of {below}")
        if self._ascending and (np.diff(value.astype(np.int64)) <= 0).any():
            raise Refused(where, "is not in ascending order")


class Flags(_Array):
    """An array of True and False."""

    kinds = "b"
    called = "an array of flags"


@dataclass(eq=False)
class Sparse(Rule):
    """A CSR array with sorted entries, each once, finite and from `low` to `high`."""

    rows: str
    columns: str
    low: float = 0.0
    high: float = _LARGEST

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if not hasattr(value, "indptr"):
            raise Refused(where, f"is {describe_value(value)}, not a sparse matrix")
        matrix: Any = value  # of SciPy, which this module does not import
        Floats("entries", low=self.low, high=self.high).check(matrix.data, AxisSizes(), where)
        if not matrix.has_canonical_format:
            raise Refused(where, "has entries that are not in order, or twice")
        sizes.note(self.rows, matrix.shape[0], where)
        sizes.note(self.columns, matrix.shape[1], where)


# --- texts -------------------------------------------------------------------------------


@dataclass(eq=False)
class Texts(Rule):
    """Texts, as a list or an array."""

    axis: str = ""

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        n = len(_check_texts(value, where))
        if self.axis:
            sizes.note(self.axis, n, where)


@dataclass(eq=False)
class FileNames(Texts):
    """Names of files, none of which leads out of its folder."""

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        super()._check(value, sizes, where)
        names = _check_texts(value, where)
        joined = "\0".join(names)
        if ".." not in joined and joined.count("\0") < max(1, len(names)):
            return  # one test for all names, which may be a hundred thousand
        for name in names:
            if "\0" in name or (".." in name and ".." in re.split(r"[/\\]", name)):
                shown = describe_value(name)
                raise Refused(where, f"names {shown}, which is not a photograph's name")


@dataclass(eq=False)
class TextLists(Rule):
    """Lists of texts."""

    axis: str

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if not isinstance(value, list):
            raise Refused(where, f"is {describe_value(value)}, not lists of texts")
        if not set(map(type, value)) <= {list} or not set(
            map(type, chain.from_iterable(value))
        ) <= {str}:
            row = next(r for r in value if type(r) is not list or not set(map(type, r)) <= {str})
            shown = describe_value(row)
            raise Refused(where, f"has {shown} where a list of texts is expected")
        sizes.note(self.axis, len(value), where)


# --- containers --------------------------------------------------------------------------


class Table(Rule):
    """A dict from texts to values of one kind."""

    def __init__(self, of: Rule):
        self.of = of

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if not isinstance(value, dict) or not all(type(key) is str for key in value):
            raise Refused(where, f"is {describe_value(value)}, not a table")
        for key, entry in value.items():
            self.of.check(entry, sizes, f"{where}[{describe_value(key)}]")


class ListOf(Rule):
    """A list of values of one kind."""

    def __init__(self, of: Rule):
        self.of = of

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        if not isinstance(value, list):
            raise Refused(where, f"is {describe_value(value)}, not a list")
        for i, entry in enumerate(value):
            self.of.check(entry, sizes, f"{where}[{i}]")


class Either(Rule):
    """A value that obeys one of several rules."""

    def __init__(self, *rules: Rule):
        self._rules = rules

    def _check(self, value: object, sizes: AxisSizes, where: str) -> None:
        refusals = []
        for rule in self._rules:
            try:
                rule.check(value, sizes, where)
            except Refused as refusal:
                refusals.append(refusal)
            else:
                return
        raise refusals[-1]


def _check_texts(value: object, where: str) -> list[str]:
    is_array = isinstance(value, np.ndarray) and value.dtype == object and value.ndim == 1
    texts = list(value) if isinstance(value, list | np.ndarray) else []
    if not (isinstance(value, list) or is_array) or not set(map(type, texts)) <= {str}:
        raise Refused(where, f"is {describe_value(value)}, not a list of texts")
    return texts


def describe_value(value: object) -> str:
    """Describe any value in a few words."""
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
