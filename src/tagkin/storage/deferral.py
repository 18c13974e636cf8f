"""What a model keeps apart, and reads when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tagkin.arrays.deferring import Deferred
from tagkin.errors import DamagedModel
from tagkin.storage.fields import Dimensions, Refused
from tagkin.storage.forms import Stored

__all__ = ["Later"]

Read = Callable[[], dict[str, np.ndarray]]
Decode = Callable[[Any, dict[str, np.ndarray]], Any]


class Later:
    """The arrays that are apart, read once for all objects.

    Parameters
    ----------
    read : function
        Returns the arrays by name.
    decode : function of an encoded value and the arrays
    """

    def __init__(self, read: Read, decode: Decode):
        self._read, self.decode = read, decode
        self._arrays: dict[str, np.ndarray] | None = None

    def of(self, form: Stored, encoded: dict[str, Any]) -> Deferred:
        """For an object of a class: its attributes that are apart."""
        return _Apart(self, form, encoded)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays that are apart."""
        if self._arrays is None:
            self._arrays = self._read()
        return self._arrays


class _Apart(Deferred):
    """Attributes of one object, checked when they are read."""

    def __init__(self, later: Later, form: Stored, encoded: dict[str, Any]):
        super().__init__(tuple(encoded), self._checked)
        self._later, self._form, self._encoded = later, form, encoded
        self._sizes, self._where = Dimensions(), "model"
        self.place: Callable[[Any], Any] = _as_it_is

    def check_later(self, form: Stored, sizes: Dimensions, where: str) -> None:
        """Remember what is known of the object by then."""
        self._sizes, self._where = sizes, where

    def _checked(self) -> dict[str, Any]:
        arrays = self._later.arrays
        found = {k: self._later.decode(v, arrays) for k, v in self._encoded.items()}
        try:
            self._form.check_apart(found, self._sizes, self._where)
        except Refused as refusal:
            raise DamagedModel(f"{refusal}. The model is damaged; save it again.") from refusal
        # sums are added to, and a file that is mapped cannot be written
        return {k: self.place(_writable(v)) for k, v in found.items()}


def _as_it_is(value: Any) -> Any:
    return value


def _writable(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value
