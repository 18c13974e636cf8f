"""Output: data to standard output or to a file, messages to standard error."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tagkin.cli.streams import discard, encode_text, visible
from tagkin.errors import StorageError
from tagkin.progress import Progress, silent
from tagkin.wording import count

if TYPE_CHECKING:
    from tagkin.annotator import Finding, PhotoSuggestions, Similar
    from tagkin.cli.console import StreamConsole
    from tagkin.images import Failure

_NAMED = 3  # files that could not be read
_ROOTS: dict[str, str] = {}  # roots that people know by a name
_CONTROLS = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


# --- to people ---------------------------------------------------------------------------


def data() -> StreamConsole:
    """Return standard output, for tables; it has no colours unless it is a terminal."""
    from tagkin.cli.console import StreamConsole

    return StreamConsole(stderr=False)


def say(*parts: str | tuple[str, str]) -> None:
    """Tell the person at the terminal a sentence, of parts that may have a style of rich.

    A closed stream stops nothing.
    """
    from tagkin.cli.console import StreamConsole

    console = StreamConsole(stderr=True)
    try:
        console.print(console.text(*parts), soft_wrap=not console.is_terminal)
    except OSError:
        discard(sys.stderr)


def note(text: str) -> None:
    """Tell something that stops nothing."""
    say(("Note:", "yellow"), f" {text}")


def report_problems(problems: Iterable[Failure], most: int | None = _NAMED) -> list[dict[str, str]]:
    """Name files that could not be read on standard error; return all of them for JSON."""
    reasons = {problem.file: problem.reason for problem in problems}
    if reasons:
        note(f"{count(len(reasons), 'file')} could not be read:")
    for k, (file, reason) in enumerate(reasons.items()):
        if k == most and len(reasons) > k + 1:
            say(f"  and {len(reasons) - k:,} more (--json names them all)")
            break
        say(f"  {relative(file)}: {reason}")
    return failure_rows(problems)


def failure_rows(failures: Iterable[Failure]) -> list[dict[str, str]]:
    """Return failures for JSON, one per file."""
    reasons = {failure.file: failure.reason for failure in failures}
    return [{"file": relative(file), "reason": reason} for file, reason in reasons.items()]


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Yield a function of (what, done, total) that draws if standard error is a terminal."""
    from tagkin.cli.console import StreamConsole, draw_progress

    console = StreamConsole(stderr=True)
    if not console.is_terminal:
        yield silent
        return
    with draw_progress(console) as step:
        yield step


def name_root(root: Path, name: str) -> None:
    """Let `relative` show a root by its name, as a person types it."""
    _ROOTS[str(root)] = name


def relative(path: str | os.PathLike[str]) -> str:
    """Return the path from the current folder if it lies below it, else the path unchanged."""
    text = os.fspath(path)
    for root, name in _ROOTS.items():
        if text == root or text.startswith(os.path.join(root, "")):
            return name + text[len(root) :]
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
    """Write data to standard output: UTF-8 and plain line ends, except to a terminal."""
    stream = sys.stdout
    if not hasattr(stream, "buffer") or stream.isatty():
        stream.write(text)
        return
    stream.flush()
    stream.buffer.write(encode_text(text))


def send_json(value: object) -> None:
    """Write a value to standard output as a line of JSON; see `json_line`."""
    send(json_line(value))


def json_line(value: object) -> str:
    """Return a value as a line of JSON; NaN is null, numbers have six digits.

    A byte of a file name that is not UTF-8 is written as JSON escapes of its surrogate, which
    Python reads back as the same name. Characters that control a terminal are escaped, too.
    """
    text = json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
    text = _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text.encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def csv_text(header: Sequence[str] | None, rows: Iterable[Sequence[object]]) -> str:
    """Return a CSV file with a header, or its later rows; numbers have six digits.

    A cell that a spreadsheet would read as a formula begins with ', which `read_tags` removes
    again, and control characters are replaced.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    if header is not None:
        writer.writerow(header)
    writer.writerows([_harmless(cell) for cell in row] for row in rows)
    return text.getvalue()


def _harmless(cell: object) -> object:
    from tagkin.collection.tag_files import guarded_cell

    if not isinstance(cell, str):
        return _plain(cell)
    return guarded_cell(re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", cell))


def document(result: PhotoSuggestions | Finding | Similar) -> object:
    """Return `to_dict()` with paths relative to the current folder."""
    return _with_relative_files(result.to_dict())


def _with_relative_files(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: relative(item) if key == "file" else _with_relative_files(item)
            for key, item in value.items()
        }
    return [_with_relative_files(item) for item in value] if isinstance(value, list) else value


# --- to files ----------------------------------------------------------------------------


def check_target(path: Path | None, overwrite: bool, suffixes: Sequence[str]) -> None:
    """Reject, before any work, a file that cannot be written or would be lost."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        name = visible(relative(path))  # what it is raised to writes it as it is
        raise typer.BadParameter(f"{name}: the name must end in {' or '.join(suffixes)}.")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise StorageError(
            f"There is no folder {relative(parent)}. Create it, or choose another name."
        )
    if not os.access(parent, os.W_OK):
        raise StorageError(
            f"Could not write {relative(path)}: permission denied in {relative(parent)}."
        )
    if path.exists() and not path.is_file():
        raise StorageError(f"{relative(path)} is not a regular file. Choose another name.")
    if path.exists() and not overwrite:
        raise StorageError(
            f"{relative(path)} is there already. Pass --overwrite to replace it, or choose "
            "another name."
        )


def write_file(path: Path, text: str) -> None:
    """Write a text file, all of it or nothing; call `check_target` first."""
    from tagkin.filesystem import write_whole

    try:
        write_whole(path, encode_text(text))
    except OSError as error:
        raise StorageError(
            f"Could not write {relative(path)}: {error.strerror or error}. An earlier file is "
            "unchanged; free some space or choose another place."
        ) from error
