"""Tag files in CSV and JSON Lines, such as Hugging Face's metadata files.

A file has a column ``file_name`` and a column of tags, which is the requested column or the first
of ``tags``, ``labels``, ``tag`` and ``label``. Other columns are not read.

- In JSON Lines (``.jsonl``), the tags of an image are a list of texts, a text or null.
- In CSV (``.csv``), ``;`` separates tags, or ``,`` if no cell of the column has a ``;``.

Rows with the same file name are one image with all their tags. Files are UTF-8. A ' before =, +, -
or @ at the start of a CSV cell is removed: it stops spreadsheets from reading a formula.

`tagkin.collection.program_catalogues` reads ``digikam4.db``, ``.lrcat`` and ``.photoslibrary``.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tagkin.collection.matching import TagTable
from tagkin.errors import InvalidInput, Parameter, StorageError

__all__ = ["explain_found", "find_tag_file", "guarded_cell", "locate_tag_file", "read_tags"]

_METADATA = ("metadata.jsonl", "metadata.csv")  # found in the folder itself, as Hugging Face has it
_EMBEDDED = (" read only keywords with ", Parameter("tags", "embedded"), ".")
_MAX_BYTES = 1 << 27  # of a tag file: a million images have less
_MAX_LINE = 1 << 20  # characters of an image in JSON
_NAME = "file_name"
_COLUMNS = ("tags", "labels", "tag", "label")
_CATALOGUES = (".db", ".lrcat", ".sqlite")  # of other programs
_LIBRARY = ".photoslibrary"
_FORMULA = re.compile("'*[=+@-]")  # also after an own ', so reading reverses writing
_NOT_TEXT = re.compile("[\ud800-\udfff]")  # lone surrogates, which JSON can escape


class _Row(NamedTuple):
    """A row of a file, with its line number."""

    line: int
    cells: dict[str, object]


# --- reading -----------------------------------------------------------------------------


def locate_tag_file(path: Path) -> Path:
    """Return the database in a library of Apple Photos, which is a folder; else the path itself."""
    return path / "database" / "Photos.sqlite" if path.suffix.lower() == _LIBRARY else path


def find_tag_file(folder: Path) -> Path | None:
    """Return the ``metadata.jsonl`` or ``metadata.csv`` in a folder, if there is one."""
    paths, inside = [folder / name for name in _METADATA], Path(os.path.realpath(folder))
    files = [
        path
        for path in paths
        # nobody named what a link leads to
        if os.path.isfile(path) and Path(os.path.realpath(path)).is_relative_to(inside)
    ]
    if len(files) > 1:
        found = f"Found several tag files: {', '.join(map(str, files))}. Name the one to use, or"
        raise InvalidInput(found, *_EMBEDDED)
    return files[0] if files else None


@contextmanager
def explain_found() -> Iterator[None]:
    """Say of errors in a tag file that nobody named how to do without it."""
    try:
        yield
    except (InvalidInput, StorageError) as error:
        raise type(error)(*error.parts, " If it is not a tag file,", *_EMBEDDED) from error


def read_tags(path: str | os.PathLike[str], *, column: str | None = None) -> TagTable:
    """Read a tag file, or the catalogue of another program, in the order of its images.

    Parameters
    ----------
    path : path
        The tag file or catalogue.
    column : str, optional
        The column of tags in a CSV or JSON Lines file. Default: the first of tags, labels,
        tag and label.
    """
    path = locate_tag_file(Path(path))
    if path.exists() and not (path.is_file() or path.is_dir()):  # a device may have no end
        raise InvalidInput(f"{path} is not a file.")
    if path.suffix.lower() in _CATALOGUES:
        return _read_catalogue(path, column)
    parse = _choose_parser(path)
    rows = list(parse(_read_text(path), path))
    column = _choose_column(rows, column, path)
    if parse is _csv_rows:
        texts = [str(row.cells[column]) for row in rows]
        separator = ";" if any(";" in text for text in texts) else ","
        for row, text in zip(rows, texts, strict=True):
            row.cells[column] = text.split(separator)
    tags: dict[str, list[str]] = {}
    for row in rows:
        name = row.cells.get(_NAME)
        if not isinstance(name, str) or not name:
            raise _line_error(path, row.line, f"{_NAME} is {name!r}; expected an image's name.")
        tags.setdefault(name, []).extend(_tags_of(row, column, path))
    return TagTable(list(tags), list(tags.values()))


def _read_catalogue(path: Path, column: str | None) -> TagTable:
    # here, because few people have such files, and sqlite3 takes long to import
    from tagkin.collection import program_catalogues

    if column is not None:
        raise InvalidInput(f"{path} has no column {column}: the catalogue of a program has none.")
    readers = {
        ".db": program_catalogues.read_digikam,
        ".lrcat": program_catalogues.read_lightroom,
        ".sqlite": program_catalogues.read_apple_photos,
    }
    return readers[path.suffix.lower()](path)


def _choose_parser(path: Path) -> Callable[[str, Path], Iterator[_Row]]:
    parsers = {".csv": _csv_rows, ".jsonl": _json_rows}
    if path.suffix.lower() not in parsers:
        raise InvalidInput(
            f"{path}: the suffix of a tag file must be {' or '.join(parsers)}; tagkin also reads "
            f"catalogues of digiKam, Lightroom and Apple Photos (.db, .lrcat and {_LIBRARY})."
        )
    return parsers[path.suffix.lower()]


def _line_error(path: Path, line: int, problem: str) -> InvalidInput:
    return InvalidInput(f"{path}, line {line}: {problem}")


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > _MAX_BYTES:
        raise InvalidInput(f"{path} has more than {_MAX_BYTES:,} bytes.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # error.start does not count a byte order mark
        start = error.start + len(data) - len(error.object)
        line = data.count(b"\n", 0, start) + 1
        problem = f"byte 0x{data[start]:02x} is not UTF-8. Save the file as UTF-8."
        raise _line_error(path, line, problem) from error


def _csv_rows(text: str, path: Path) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            if header is None and cells:
                header = _check_header([cell.strip() for cell in cells], path, line)
            elif header is not None and cells:
                if len(cells) != len(header):
                    found = f"found {len(cells)} cells where the header has {len(header)}."
                    advice = 'Put "quotes" around a cell with commas.'
                    raise _line_error(path, line, f"{found} {advice}")
                yield _Row(line, dict(zip(header, map(_remove_guard, cells), strict=True)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise _line_error(path, line, f"not CSV ({error}). Check its quotes.") from error
    if header is None:
        raise InvalidInput(f"{path} is empty. Its first line must name the columns.")


def guarded_cell(cell: str) -> str:
    """Return a CSV cell with a ' before text that a spreadsheet would read as a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _remove_guard(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _check_header(header: list[str], path: Path, line: int) -> list[str]:
    twice = [name for name, n in Counter(header).items() if n > 1 and name]
    if _NAME not in header or twice:
        fault = f"the column {twice[0]} occurs twice" if twice else f"there is no column {_NAME}"
        columns = ", ".join(header)
        raise _line_error(path, line, f"{fault}; found {columns}. Separate columns by commas.")
    return header


def _json_rows(text: str, path: Path) -> Iterator[_Row]:
    # not splitlines, because JSON texts may contain other line separators
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        if len(content) > _MAX_LINE:
            raise _line_error(path, line, f"it has more than {_MAX_LINE:,} characters.")
        try:
            cells = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _line_error(path, line, f"not JSON ({error}). Correct or remove it.") from error
        if not isinstance(cells, dict):
            raise _line_error(
                path, line, f"expected an object with {_NAME}; found {content[:60]!r}."
            )
        yield _Row(line, cells)


def _choose_column(rows: list[_Row], column: str | None, path: Path) -> str:
    """Return the requested column, or the first usual column in the file."""
    columns = dict.fromkeys(name for row in rows for name in row.cells)
    wanted = _COLUMNS if column is None else (column,)
    usable = [name for name in wanted if name in columns]
    if not usable and rows:
        raise InvalidInput(
            f"{path} has no column {column or 'of tags'}; found {', '.join(map(str, columns))}. "
            "Rename the column of tags to 'tags', or name it with ",
            Parameter("column", "NAME"),
            ".",
        )
    return usable[0] if usable else wanted[0]


def _tags_of(row: _Row, column: str, path: Path) -> list[str]:
    value = row.cells.get(column)
    if value is None:
        return []
    tags = [value] if isinstance(value, str) else value
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise _line_error(path, row.line, f"{column} is {value!r}; expected a list of texts.")
    return [_NOT_TEXT.sub("\ufffd", tag) for tag in tags]
