"""What goes out: data to standard output or to a file, words to standard error."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from tagkin.cli.console import StreamConsole
from tagkin.cli.streams import discard, foreign, write_data

if TYPE_CHECKING:
    from tagkin.annotator import Finding, PhotoSuggestions, Similar

__all__ = [
    "csv_text",
    "data",
    "document",
    "json_line",
    "messages",
    "note",
    "only_one",
    "relative",
    "say",
    "send",
    "shown",
    "shown_tag",
    "shown_text",
]


# --- to people ---------------------------------------------------------------------------


def data() -> StreamConsole:
    """Standard output, for tables; without colours where it is not a terminal."""
    return StreamConsole(stderr=False)


def messages() -> StreamConsole:
    """Standard error, for words and progress."""
    return StreamConsole(stderr=True)


def say(text: str) -> None:
    """A sentence for the person at the terminal; `text` may have rich's markup.

    What is not ours goes into it by `shown`, `shown_tag` or `shown_text`. Words that nobody can
    read any more stop nothing.
    """
    console = messages()
    try:
        console.print(text, soft_wrap=not console.is_terminal)
    except OSError:
        discard(sys.stderr)


def note(text: str) -> None:
    """Something to know that stops nothing; plain text."""
    say(f"[yellow]Note:[/yellow] {shown_text(text)}")


def shown_text(text: str) -> str:
    """Text that is not ours, such as a reason, as a person is shown it: never read as markup."""
    return foreign(text)


def shown(path: str | os.PathLike[str]) -> str:
    """A path as a person is shown it, never read as markup."""
    return foreign(relative(path))


def shown_tag(tag: str) -> str:
    """A tag as a person is shown it, never read as markup."""
    return foreign(tag)


def relative(path: str | os.PathLike[str]) -> str:
    """The path from the current folder where it lies below it, else the path as it is."""
    text = os.fspath(path)
    if not os.path.isabs(text):
        return text
    try:
        here = os.getcwd()
    except OSError:
        return text
    inside = text.startswith(os.path.join(here, "")) and len(here) > 1
    return os.path.relpath(text, here) if inside else text


# --- to programs -------------------------------------------------------------------------


def send(text: str) -> None:
    """Write data to standard output as UTF-8, whatever the terminal."""
    write_data(text)


def json_line(value: Any) -> str:
    """A value as one line of JSON; NaN is null, numbers have six digits.

    A byte of a file name that is not UTF-8 is written as JSON escapes of its surrogate, which
    Python reads back as the same name.
    """
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def csv_text(
    header: Sequence[str], rows: Iterable[Sequence[Any]], *, verbatim: bool = False
) -> str:
    """A CSV file with a header; numbers have six digits.

    Unless it is to be verbatim, a cell that a spreadsheet would take for a formula has a ' before
    it, which `read_tags` takes away again, and control characters are replaced.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    cells = _plain if verbatim else _harmless
    writer.writerows([cells(cell) for cell in row] for row in rows)
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    from tagkin.collection.tag_files import guarded_cell

    if not isinstance(cell, str):
        return _plain(cell)
    return guarded_cell("".join("\ufffd" if _is_control(char) else char for char in cell))


def _is_control(char: str) -> bool:
    return char not in "\t\n" and unicodedata.category(char) == "Cc"


def document(one: PhotoSuggestions | Finding | Similar) -> dict[str, Any]:
    """What its `to_dict` says, with paths as a person here would name them."""
    found: dict[str, Any] = _with_relative_files(one.to_dict())
    return found


def _with_relative_files(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: relative(item) if key == "file" else _with_relative_files(item)
            for key, item in value.items()
        }
    return [_with_relative_files(item) for item in value] if isinstance(value, list) else value


def only_one(**flags: Any) -> None:
    """Refuse options that exclude each other."""
    given = [f"--{name.replace('_', '-')}" for name, value in flags.items() if value]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} do not go together: choose one of them.")
