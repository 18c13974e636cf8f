"""How objects of a class are stored, and what of them is checked before anything uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tagkin.errors import InvalidInput
from tagkin.storage.fields import Dimensions, Field, Floats, Refused, Sparse, Text, Value

__all__ = ["STORED", "Parameter", "Part", "Parts", "Stored", "is_model", "stored_form"]


@dataclass(frozen=True)
class Stored:
    """How objects of one class are stored. The class's name is part of the format."""

    module: str
    """The module that the class is imported from; its own may be a part of that."""
    parameters: Mapping[str, Field] = field(default_factory=dict)
    """What the class is made with."""
    learned: Mapping[str, Field] = field(default_factory=dict)
    """What it learns; without any of it, an object is not fitted."""
    checks: tuple[str, ...] = ()
    """Methods that raise `InvalidInput` where values do not go together."""
    some_of: tuple[tuple[str, ...], ...] = ()
    """Attributes of which one at least is not None."""
    at_most: tuple[tuple[str, str], ...] = ()
    """Pairs of dimensions of which the first is no larger."""
    takes: str = ""
    """The dimension of what a step of a pipeline gets."""
    gives: str = ""
    """The dimension of what it passes on."""
    left_out: tuple[str, ...] = ()
    """Attributes that are made again from the rest, on the host."""
    on_host: tuple[str, ...] = ()
    """Small arrays that are used on the host, whatever the device of the others."""
    apart: tuple[str, ...] = ()
    """Attributes in a file of their own, read at first use: the class is `Deferring`."""
    told_its_folder: bool = False
    """Whether `saved_to(folder)` and `opened_from(folder)` are called."""
    summarized: bool = False
    """Whether `summary()` is stored, to be read without the model."""

    def check(self, value: Any, sizes: Dimensions, where: str, *, fitted: bool = True) -> None:
        """Refuse an object that cannot be used; `fitted` is one that must have learned."""
        state = vars(value)
        learns = fitted or any(name in state for name in self.learned)
        fields = {**self.parameters, **(self.learned if learns else {})}
        for name in state.keys() - fields.keys() - {"_deferred"}:
            raise Refused(where, f"cannot have the attribute {name!r:.60}")
        deferred = state.get("_deferred")
        for name, kind in fields.items():
            if name in state:
                kind.check(state[name], sizes, f"{where}.{name}")
            elif not kind.absent and (deferred is None or name not in self.apart):
                raise Refused(where, f"lacks {name}")
        if learns:
            self._check_together(state, sizes, where)
        if deferred is not None:
            deferred.check_later(self, sizes, where)
        self.check_by_methods(value, where)

    def _check_together(self, state: dict[str, Any], sizes: Dimensions, where: str) -> None:
        for names in self.some_of:
            if all(state.get(name) is None for name in names):
                raise Refused(where, f"has neither {' nor '.join(names)}")
        for smaller, larger in self.at_most:
            few, many = sizes.size(smaller), sizes.size(larger)
            if few is not None and many is not None and few > many:
                raise Refused(where, f"has {few:,} where there are {many:,} at most")

    def check_apart(self, found: dict[str, Any], sizes: Dimensions, where: str) -> None:
        """Refuse what was read later."""
        for name in self.apart:
            self.learned[name].check(found.get(name), sizes, f"{where}.{name}")

    def check_by_methods(self, value: Any, where: str) -> None:
        """Ask the object itself whether its values go together."""
        for name in self.checks:
            try:
                getattr(value, name)()
            except InvalidInput as error:
                raise Refused(where, f"cannot be used: {error}") from error


STORED: dict[str, Stored] = {}
"""Every class that is stored; `tagkin.storage.schema` fills it. No other class is loaded."""


def stored_form(value: Any) -> Stored | None:
    """How an object is stored; None where its class is not one of those."""
    form, home = STORED.get(type(value).__name__), type(value).__module__
    return form if form and f"{home}.".startswith(f"{form.module}.") else None


def is_model(value: Any) -> bool:
    """Whether an object can be saved by itself or as a step of a pipeline."""
    form = stored_form(value)
    return form is not None and (hasattr(value, "describe") or bool(form.gives))


class Part(Field):
    """An object of one of these classes that has learned, with dimensions in common.

    Parameters
    ----------
    class_names : str
        Separated by blanks.
    needs : tuple of str
        Attributes that are not None here.
    sizes : str
        The part's own names of dimensions, and what they are called here.
    """

    def __init__(self, class_names: str, needs: tuple[str, ...] = (), **sizes: str):
        self._names, self._needs, self._sizes = class_names.split(), needs, sizes

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        form, name = stored_form(value), type(value).__name__
        if form is None or name not in self._names:
            raise Refused(where, f"is a {name}, not a {' or '.join(self._names)}")
        for needed in self._needs:
            if getattr(value, needed, None) is None:
                raise Refused(where, f"lacks {needed}")
        form.check(value, sizes.of_part(self._sizes.items()), where)


class Parts(Field):
    """A list of objects of one class."""

    def __init__(self, class_name: str):
        self._part = Part(class_name)

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if not isinstance(value, list):
            raise Refused(where, f"is a {type(value).__name__}, not a list")
        for i, one in enumerate(value):
            self._part.check(one, Dimensions(), f"{where}[{i}]")


class Parameter(Field):
    """What a person passed: a number, a text, an array, an object of ours, or several."""

    def _check(self, value: Any, sizes: Dimensions, where: str) -> None:
        if value is None or isinstance(value, bool):
            return
        form = stored_form(value)
        if form is not None:
            form.check(value, Dimensions(), where, fitted=False)
        elif isinstance(value, (int, float)):
            Value().check(value, sizes, where)
        elif isinstance(value, dict):
            for key, one in value.items():
                Text().check(key, sizes, where)
                self._check(one, sizes, f"{where}[{key!r:.60}]")
        elif isinstance(value, list):
            for i, one in enumerate(value):
                self._check(one, sizes, f"{where}[{i}]")
        elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
            wide = value.astype(np.float32) if value.dtype == np.float16 else value
            Floats(*(f"axis {i}" for i in range(wide.ndim))).check(wide, Dimensions(), where)
        elif hasattr(value, "indptr"):
            Sparse("rows", "columns", low=-1e30).check(value, Dimensions(), where)
        elif not isinstance(value, (str, np.ndarray)):
            raise Refused(where, f"is a {type(value).__name__}")
