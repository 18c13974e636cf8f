"""Objects some of whose arrays are read from a file when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

__all__ = ["Deferred", "Deferring"]


class Deferred:
    """Attributes that are read at first use.

    Parameters
    ----------
    names : tuple of str
    read : function without arguments
        Returns the attributes by their names.
    """

    def __init__(self, names: tuple[str, ...], read: Callable[[], dict[str, Any]]):
        self.names, self.read = names, read
        self.lock = RLock()  # whoever asks while another thread reads waits for what it reads


class Deferring:
    """A class whose objects may have a `Deferred`, in ``_deferred``; copies have all of it."""

    def __getattr__(self, name: str) -> Any:
        deferred = self.__dict__.get("_deferred")
        if deferred is not None and name in deferred.names:
            self._read_deferred()
        if name not in self.__dict__:  # where another thread may have put it since it was looked up
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self.__dict__[name]

    def __getstate__(self) -> Any:
        self._read_deferred()
        return super().__getstate__()

    def _read_deferred(self) -> None:
        deferred: Any = self.__dict__.get("_deferred")
        if deferred is None:
            return
        with deferred.lock:
            if "_deferred" in self.__dict__:
                self.__dict__.update(deferred.read())
                del self.__dict__["_deferred"]
