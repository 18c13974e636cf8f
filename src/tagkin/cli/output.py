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
from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from tagkin.annotator import Kin

__all__ = [
    "csv_text",
    "data",
    "json_line",
    "kin_rows",
    "messages",
    "note",
    "only_one",
    "relative",
    "say",
    "send",
    "shown",
    "shown_tag",
]

_WIDE = 160  # columns where nobody's window is known, so that little is cut


# --- to people ---------------------------------------------------------------------------


def data() -> Console:
    """Standard output, for tables; without colours where it is not a terminal."""
    return _console(stderr=False)


def messages() -> Console:
    """Standard error, for words and progress."""
    return _console(stderr=True)


def _console(stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDE
    return console


def say(text: str) -> None:
    """A sentence for the person at the terminal; `text` may have rich's markup."""
    console = messages()
    console.print(text, soft_wrap=not console.is_terminal)


def note(text: str) -> None:
    """Something to know that stops nothing; plain text."""
    say(f"[yellow]Note:[/yellow] {escape(shown_text(text))}")


def shown_text(text: str) -> str:
    """Text that does nothing to a terminal: control characters and broken ones are replaced."""
    return "".join("�" if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} else c for c in text)


def shown(path: str | os.PathLike[str]) -> str:
    """A path as a person is shown it, safe in rich's markup."""
    return escape(shown_text(relative(path)))


def shown_tag(tag: str) -> str:
    """A tag as a person is shown it, safe in rich's markup."""
    return escape(shown_text(tag))


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
    """Write data to standard output as it is."""
    sys.stdout.write(text)


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


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A CSV file with a header; numbers have six digits."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([_plain(cell) for cell in row] for row in rows)
    return text.getvalue()


def kin_rows(kin: Iterable[Kin]) -> list[dict[str, Any]]:
    """Kin for JSON."""
    return [{"file": relative(one.file), "share": one.share} for one in kin]


def only_one(**flags: Any) -> None:
    """Refuse options that exclude each other."""
    given = [f"--{name.replace('_', '-')}" for name, value in flags.items() if value]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} do not go together: choose one of them.")
