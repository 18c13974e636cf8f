"""Values of options and arguments that need no conversion, without what typer converts with.

Typer hands every value to pydantic, the defaults that nobody typed too, and importing that takes
as long as all of a short command. Texts, paths and whole numbers that are defaults are taken here
as they are; all others go to pydantic, and a typer that works another way is left alone.
"""

from __future__ import annotations

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
        if getattr(parameter, "_runtime_param", "unknown") is None:
            parameter._runtime_param = _AsItIs()
    return parameters


class _NotPlain(Exception):
    """A value is to be converted."""


class _AsItIs:
    """What typer calls for the value of a parameter."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command gets it."""
        described = param.type_descriptor
        try:
            if value is None:
                return () if param.multiple or param.nargs == -1 else None
            return _plain(value, described.annotation, described.parameter_info, param, ctx)
        except (_NotPlain, ImportError, AttributeError):
            from typer._coercion import build_runtime_param

            param._runtime_param = build_runtime_param(described)
            return param._runtime_param.coerce(value, param=param, ctx=ctx)


def _plain(value: Any, kind: Any, settings: Any, param: Any, ctx: Any) -> Any:
    if settings.parser is not None:
        raise _NotPlain
    if isinstance(value, (list, tuple)) and kind in (list[str], list[Path]):
        return [_plain(one, kind.__args__[0], settings, param, ctx) for one in value]
    if isinstance(value, str) and kind in (str, Path) and _is_unicode(value):
        return value if kind is str else _checked_path(Path(value), settings, param, ctx)
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


def _checked_path(path: Path, settings: Any, param: Any, ctx: Any) -> Any:
    """A path that is there where it has to be, and can be read."""
    from typer._param_types import coerce_cli_path

    return coerce_cli_path(path, settings, path_type=Path, param=param, ctx=ctx)
