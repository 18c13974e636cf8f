"""Import the names of a package at first use.

Not by lazy_loader: reading lists from its stubs takes 17 ms of processor time at the first package,
where this takes .3 ms of the 200 that ``tagkin --version`` takes, and without stubs a type checker
needs the same lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["lazy_names"]


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return a package's ``__getattr__``, given the home module of each of its names."""

    def import_name(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        return value

    return import_name
