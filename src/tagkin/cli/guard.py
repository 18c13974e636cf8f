"""How a command ends: with a code that scripts can rely on, and without a traceback."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import NoReturn, ParamSpec

import typer

from tagkin.cli.output import note, say
from tagkin.cli.streams import discard
from tagkin.errors import Parameter, TagkinError
from tagkin.version import __version__

DONE, FAILED, INTERRUPTED = 0, 1, 130
P = ParamSpec("P")


def guard_command(command: Callable[P, None]) -> Callable[P, None]:
    """Return the command with an exit code and a sentence for every way it can end."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _warnings_as_notes():
                command(*args, **kwargs)
            sys.stdout.flush()
        except (typer.Exit, typer.BadParameter):
            raise
        except BrokenPipeError:
            # the reader, such as head, closed the pipe
            discard(sys.stdout)
            raise typer.Exit(DONE) from None
        except KeyboardInterrupt:
            discard(sys.stdout)
            say(
                ("Interrupted.", "yellow"),
                " What was done so far is kept: the same command continues from there.",
            )
            raise typer.Exit(INTERRUPTED) from None
        except TagkinError as error:
            _fail("".join(map(_with_option, error.parts)))
        except OSError as error:
            discard(sys.stdout)
            where = f"{error.filename}: " if error.filename else ""
            _fail(f"{where}{error.strerror or error}.")
        except Exception as error:
            if os.environ.get("TAGKIN_DEBUG"):
                raise
            _fail(_report(error))

    return run


def _with_option(part: str | Parameter) -> str:
    """Return a part of a message, with the option in place of a parameter."""
    if not isinstance(part, Parameter):
        return str(part)
    option = f"--{part.name.replace('_', '-')}"
    return option if part.value in (None, True) else f"{option} {part.value}"


def _report(error: Exception) -> str:
    """Return an unforeseen error with the facts that a person can report."""
    import platform

    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return (
        f"internal error ({type(error).__name__}: {error}). Please report it with the command, "
        f"the versions (tagkin {__version__}, {system}) and the traceback that TAGKIN_DEBUG=1 "
        "shows."
    )


def _fail(text: str) -> NoReturn:
    say(("Error:", "red"), f" {text}")
    raise typer.Exit(FAILED) from None


@contextlib.contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """Show warnings for people as notes, once each; hide the others."""
    shown: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        if category is UserWarning and str(message) not in shown:
            shown.add(str(message))
            note(str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
