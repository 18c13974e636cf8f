"""Values of options and arguments that need no conversion, without what typer converts with.

Typer hands every value to pydantic, the defaults that nobody typed too, and importing that takes
as long as all of a short command. Texts, paths and whole numbers are taken here as they are; all
others, and those that typer would refuse, go the way that they always go.

The door is ``process_value``, which every parameter has. What a parameter is, its own
``type_descriptor`` says; where a version of typer has none, or says it in other words, all values
go typer's way: commands are slower then, and do the same.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

__all__ = ["PlainCommand", "PlainGroup"]


class PlainCommand(TyperCommand):
    """A command that takes values that need no conversion as they are."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options and arguments."""
        return _with_plain_values(super().get_params(ctx))


class PlainGroup(TyperGroup):
    """Commands, and options before them that are taken likewise."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options."""
        return _with_plain_values(super().get_params(ctx))


def _with_plain_values(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        parameter.process_value = partial(_processed, parameter)
    return parameters


class _NotPlain(Exception):
    """A value is to be converted, or refused."""


def _processed(parameter: Any, ctx: Any, value: Any) -> Any:
    """The value as the command gets it."""
    try:
        taken = _taken(parameter, value)
    except (_NotPlain, AttributeError):
        return type(parameter).process_value(parameter, ctx, value)
    return taken if parameter.callback is None else parameter.callback(ctx, parameter, taken)


def _taken(parameter: Any, value: Any) -> Any:
    described = parameter.type_descriptor
    if parameter.required and value in (None, (), []):
        raise _NotPlain
    if value is None:
        return () if parameter.multiple or parameter.nargs == -1 else None
    return _plain(value, described.annotation, described.parameter_info)


def _plain(value: Any, kind: Any, settings: Any) -> Any:
    if settings.parser is not None:
        raise _NotPlain
    if isinstance(value, (list, tuple)) and kind in (list[str], list[Path]):
        return [_plain(one, kind.__args__[0], settings) for one in value]
    if isinstance(value, str) and kind in (str, Path) and _is_unicode(value):
        if kind is str:
            return value
        if _is_as_asked(value, settings):
            return Path(value)
    if type(value) is int and kind is int:
        least, most = settings.min, settings.max
        if (least is None or value >= least) and (most is None or value <= most):
            return value
    raise _NotPlain


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_as_asked(path: str, settings: Any) -> bool:
    """Whether a path is there where it has to be, and can be read: then it is taken as it is."""
    if settings.resolve_path or settings.writable or settings.path_type is not None:
        return False
    if not os.path.exists(path):
        return not settings.exists
    is_wanted = settings.dir_okay if os.path.isdir(path) else settings.file_okay
    return is_wanted and (not settings.readable or os.access(path, os.R_OK))
