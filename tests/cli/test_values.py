"""Values that need no conversion are taken as they are, and as typer would have them."""

import os
from pathlib import Path
from typing import Annotated

import pytest
import typer
import typer.main
from typer.core import TyperCommand, TyperOption

from tagkin.cli.values import PlainCommand


def _run(
    one: str = "a",
    place: Path | None = None,
    n: int = 3,
    many: list[Path] | None = None,
    named: list[str] | None = None,
    share: float | None = None,
    least: Annotated[int, typer.Option(min=1, max=4)] = 2,
    there: Annotated[Path | None, typer.Option(exists=True)] = None,
    folder: Annotated[Path | None, typer.Option(file_okay=False)] = None,
    file: Annotated[Path | None, typer.Option(dir_okay=False)] = None,
    loud: bool = False,
) -> None:
    taken.append({**locals()})


taken: list[dict[str, object]] = []

COMMANDS = [
    [],
    ["--one", "täg", "--place", "x/../y", "--n", "5", "--many", ".", "--many", "", "--loud"],
    ["--named", "b", "--named", "c", "--share", ".5", "--least", "4"],
    ["--n", "5.0"],
    ["--n", "five"],
    ["--least", "5"],
    ["--there", "nowhere"],
    ["--there", "."],
    ["--folder", ".", "--file", __file__],
    ["--folder", __file__],
    ["--file", "."],
    ["--place"],
    ["--one", os.fsdecode(b"\xff")],
    ["--place", os.fsdecode(b"\xff")],
    ["--many", os.fsdecode(b"\xff"), "--many", "x"],
    ["--share", "1e400", "--n", " 7 "],
]


def outcome(cls, arguments):
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(cls=cls)(_run)
    taken.clear()
    try:
        typer.main.get_command(app).main(list(arguments), "test", standalone_mode=False)
    except Exception as error:
        return type(error).__name__, getattr(error, "message", str(error))
    return dict(taken[0]), {name: type(value) for name, value in taken[0].items()}


@pytest.mark.parametrize("arguments", COMMANDS, ids=str)
def test_values_are_those_that_typer_would_make(arguments):
    assert outcome(PlainCommand, arguments) == outcome(None, arguments)


class _OtherOption(TyperOption):
    """Keeps what describes it where nobody looks for it."""

    def process_value(self, ctx, value):
        self.type_descriptor = self.described
        try:
            return super().process_value(ctx, value)
        finally:
            del self.type_descriptor


class _OtherTyper(TyperCommand):
    def get_params(self, ctx):
        for option in super().get_params(ctx):
            if hasattr(option, "type_descriptor") and option.name != "help":
                option.__class__ = _OtherOption
                option.described = option.type_descriptor
                del option.type_descriptor
        return super().get_params(ctx)


class _PlainOfOther(PlainCommand, _OtherTyper):
    """The command on such a typer."""


@pytest.mark.parametrize("arguments", COMMANDS, ids=str)
def test_a_typer_that_works_another_way_is_left_alone(arguments):
    assert outcome(_PlainOfOther, arguments) == outcome(None, arguments)
