"""Tags of images in files: CSV and JSON Lines, among them Hugging Face's metadata files.

A file has a column ``file_name`` and a column of tags: ``tags``, else ``labels``, else ``tag``,
else ``label``, or the one asked for. Other columns are not read.

- A column called ``tag`` or ``label`` holds one tag as it stands: one row for each pair of image
  and tag, and an empty cell for an image without tags.
- Any other holds all tags of the image: in JSON Lines (``.jsonl``) a list of texts, null or
  nothing for none; in CSV (``.csv``) one text, in which the tags are separated by ``;``, or
  by ``|`` if no cell of the column has a ``;``, or by ``,`` if none has either.

Rows with the same file name are one image with the tags of all of them. Files are UTF-8. A ' before
=, +, - or @ at the start of a cell of CSV is not part of it: it keeps spreadsheets from taking the
cell for a formula.

CSV files that exiftool wrote are read as well: images by ``SourceFile``, their tags from
``Keywords``, ``Subject`` and ``HierarchicalSubject`` together.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tagkin.collection import exiftool_tables
from tagkin.errors import InvalidInput, Parameter, StorageError
from tagkin.filesystem import write_whole

__all__ = ["TagTable", "guarded_cell", "read_tags", "write_tags"]

_NAME = "file_name"
_COLUMNS = ("tags", "labels", "tag", "label")
_ONE_TAG = ("tag", "label")
_SEPARATORS = (";", "|", ",")
_FORMULA = re.compile("'*[=+@-]")  # also behind ' of its own, so that there is a way back
_NOT_TEXT = re.compile("[\ud800-\udfff]")  # halves of pairs, which JSON has escapes for


@dataclass(frozen=True)
class TagTable:
    """Images by file name, and their tags.

    Space around a tag, blank tags and repeated tags of an image are left out, so that every
    table can be written in every format and read back the same.

    Attributes
    ----------
    file_names : list of str, each once
    tags : list of lists of str, one for each file name
    repeated : tuple of str
        File names that stood in several rows of the file where one was expected; their tags
        were put together. Not looked at when tables are compared.
    """

    file_names: Sequence[str]
    tags: Sequence[Sequence[str] | None]
    repeated: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if len(self.file_names) != len(self.tags):
            raise InvalidInput(
                f"Found {len(self.file_names)} file names and {len(self.tags)} lists of tags."
            )
        for name, row in zip(self.file_names, self.tags, strict=True):
            if not isinstance(name, str) or not name:
                raise InvalidInput(f"A file name is a text that is not empty; found {name!r}.")
            if isinstance(row, str) or not all(isinstance(tag, str) for tag in row or ()):
                raise InvalidInput(f"The tags of {name!r} must be a list of texts; found {row!r}.")
        twice = [name for name, n in Counter(self.file_names).items() if n > 1]
        if twice:
            raise InvalidInput(f"The file name {twice[0]!r} is there twice. Put its tags together.")
        tidy = [[tag.strip() for tag in row or ()] for row in self.tags]
        object.__setattr__(self, "file_names", list(self.file_names))
        object.__setattr__(self, "tags", [[t for t in dict.fromkeys(row) if t] for row in tidy])

    def __len__(self) -> int:
        return len(self.file_names)


class _Row(NamedTuple):
    """One row of a file: where it stands, and its columns."""

    line: int
    cells: dict[str, Any]


# --- reading -----------------------------------------------------------------------------


def read_tags(
    path: str | os.PathLike[str], *, column: str | None = None, separator: str | None = None
) -> TagTable:
    """Read the tags of images from a CSV or JSON Lines file, by its suffix.

    Parameters
    ----------
    path : path
        ``.csv``, or ``.jsonl`` such as Hugging Face's ``metadata.jsonl``.
    column : str or None
        The column of tags; None takes the first there is of tags, labels, tag, label.
    separator : str or None
        What separates the tags in a cell of a CSV file; None takes the first of ``;``, ``|``
        and ``,`` that occurs in the column.

    Returns
    -------
    table : TagTable
        Images in the order of the file.
    """
    path = Path(path)
    parse = _parser(path)
    rows = list(parse(_decoded(path), path))
    if parse is _csv_rows and rows and _NAME not in rows[0].cells:
        return _of_exiftool(rows, column, separator, path)
    column = _tag_column(rows, column, path)
    if parse is _csv_rows and column not in _ONE_TAG:
        _split_cells(rows, column, separator)
    tags: dict[str, list[str]] = {}
    repeated: dict[str, None] = {}
    for row in rows:
        name = row.cells.get(_NAME)
        if not isinstance(name, str) or not name:
            raise _wrong(path, row.line, f"{_NAME} is {name!r}; expected the name of an image.")
        if name in tags and column not in _ONE_TAG:
            repeated[name] = None
        tags.setdefault(name, []).extend(_tags_of(row, column, path))
    return TagTable(list(tags), list(tags.values()), tuple(repeated))


def _parser(path: Path) -> Any:
    parsers = {".csv": _csv_rows, ".jsonl": _json_rows}
    if path.suffix.lower() not in parsers:
        raise InvalidInput(
            f"{path}: the suffix says the format of a tag file. Use {' or '.join(parsers)}."
        )
    return parsers[path.suffix.lower()]


def _wrong(path: Path, line: int, what: str) -> InvalidInput:
    return InvalidInput(f"{path}, line {line}: {what}")


def _decoded(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if path.suffix.lower() == ".csv" and exiftool_tables.SOURCE.encode() in data[:16]:
            return data.decode("utf-8-sig", "surrogateescape")  # names of files can be any bytes
        # a byte order mark is not counted in error.start
        start = error.start + len(data) - len(error.object)
        line = data.count(b"\n", 0, start) + 1
        what = f"byte 0x{data[start]:02x} is not UTF-8. Save the file as UTF-8."
        raise _wrong(path, line, what) from error


def _csv_rows(text: str, path: Path) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            if header is None and cells:
                header = _checked_header([cell.strip() for cell in cells], path, line)
            elif header is not None and cells:
                if len(cells) != len(header):
                    what = f"found {len(cells)} cells where the header has {len(header)}."
                    raise _wrong(path, line, f'{what} Put "quotes" around a cell with commas.')
                yield _Row(line, dict(zip(header, map(_unguarded, cells), strict=True)))
            line = reader.line_num + 1
    except csv.Error as error:
        raise _wrong(path, line, f"not CSV ({error}). Check its quotes.") from error
    if header is None:
        raise InvalidInput(f"{path} is empty. Its first line has to name the columns.")


def guarded_cell(cell: str) -> str:
    """A cell of CSV with a ' before what a spreadsheet would take for a formula."""
    return f"'{cell}" if _FORMULA.match(cell) else cell


def _unguarded(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def _checked_header(header: list[str], path: Path, line: int) -> list[str]:
    twice = [name for name, n in Counter(header).items() if n > 1 and name]
    if not {_NAME, exiftool_tables.SOURCE} & set(header) or twice:
        what = f"the column {twice[0]} is there twice" if twice else f"there is no column {_NAME}"
        found = ", ".join(header)
        raise _wrong(path, line, f"{what}; found {found}. Columns are separated by commas.")
    return header


def _json_rows(text: str, path: Path) -> Iterator[_Row]:
    # not splitlines: JSON texts may contain other line separators as they are
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            cells = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise _wrong(path, line, f"not JSON ({error}). Correct or remove it.") from error
        if not isinstance(cells, dict):
            raise _wrong(path, line, f"expected an object with {_NAME}; found {content[:60]!r}.")
        yield _Row(line, cells)


def _tag_column(rows: list[_Row], column: str | None, path: Path) -> str:
    """The column asked for, or the first usual one; rows of a CSV file have all columns."""
    there = dict.fromkeys(name for row in rows for name in row.cells)
    wanted = _COLUMNS if column is None else (column,)
    found = [name for name in wanted if name in there]
    if not found and rows:
        raise InvalidInput(
            f"{path} has no column {' or '.join(wanted)}; found {', '.join(map(str, there))}. Name "
            "the column of tags with ",
            Parameter("column", "NAME"),
            ".",
        )
    return found[0] if found else wanted[0]


def _split_cells(rows: list[_Row], column: str, separator: str | None) -> None:
    if separator is None:
        used = (s for s in _SEPARATORS if any(s in row.cells[column] for row in rows))
        separator = next(used, _SEPARATORS[0])
    for row in rows:
        row.cells[column] = row.cells[column].split(separator)


def _tags_of(row: _Row, column: str, path: Path) -> list[str]:
    value = row.cells.get(column)
    if value is None:
        return []
    tags = [value] if column in _ONE_TAG else value
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        expected = "a text" if column in _ONE_TAG else "a list of texts"
        raise _wrong(path, row.line, f"{column} is {value!r}; expected {expected}.")
    return [_NOT_TEXT.sub("\ufffd", tag) for tag in tags]


def _of_exiftool(
    rows: list[_Row], column: str | None, separator: str | None, path: Path
) -> TagTable:
    """Files without tags are left out: exiftool lists all there are, images or not."""
    header = list(rows[0].cells)
    columns = exiftool_tables.tag_columns(header, column)
    if not columns:
        raise InvalidInput(
            f"{path} is as exiftool writes it, and has no column {column or 'of tags'}; found "
            f"{', '.join(header)}. Write {', '.join(exiftool_tables.COLUMNS)} into it, or name the "
            "column of tags with ",
            Parameter("column", "NAME"),
            ".",
        )
    tags: dict[str, list[str]] = {}
    for row in rows:
        if any(_NOT_TEXT.search(row.cells[name]) for name in columns):
            raise _wrong(path, row.line, "its tags are not UTF-8. Save the file as UTF-8.")
        found = exiftool_tables.tags_of(row.cells, columns, separator)
        if found:
            tags.setdefault(row.cells[exiftool_tables.SOURCE], []).extend(found)
    return TagTable(list(tags), list(tags.values()))


# --- writing -----------------------------------------------------------------------------


def write_tags(path: str | os.PathLike[str], table: TagTable, *, overwrite: bool = False) -> None:
    """Write the tags of images to a CSV or JSON Lines file, by its suffix: all or nothing.

    `read_tags` gives the same table back. CSV has one row per image with its tags separated
    by ``;``, or, where a tag has a separator in it, one row for each image and tag.

    Parameters
    ----------
    path : path
        ``.csv`` or ``.jsonl``. An existing file is replaced only with `overwrite`, when the
        new one is complete; columns that it has besides are not kept.
    table : TagTable
    """
    path = Path(path)
    text = _csv_text(table) if _parser(path) is _csv_rows else _json_text(table)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        around = text[max(0, error.start - 30) : error.end]
        raise InvalidInput(f"Not text that UTF-8 can hold: {around!r}. Rename it.") from error
    try:
        path = path.resolve()
        if path.exists() and not overwrite:
            overwrite_it = Parameter("overwrite", True)
            raise StorageError(f"{path} is there already. Pass ", overwrite_it, " to replace it.")
        write_whole(path, data)
    except StorageError:
        raise
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise StorageError(
            f"Could not write {path}: {reason}. What was there before is still there."
        ) from error


def _json_text(table: TagTable) -> str:
    rows = zip(table.file_names, table.tags, strict=True)
    lines = (json.dumps({_NAME: n, "tags": t}, ensure_ascii=False) for n, t in rows)
    return "".join(f"{line}\n" for line in lines)


def _csv_text(table: TagTable) -> str:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    rows = list(zip(table.file_names, table.tags, strict=True))
    if any(s in tag for _, tags in rows for tag in tags or () for s in _SEPARATORS):
        writer.writerow([_NAME, "tag"])
        cells = ([name, tag] for name, tags in rows for tag in tags or [""])
    else:
        writer.writerow([_NAME, "tags"])
        cells = ([name, _SEPARATORS[0].join(tags or ())] for name, tags in rows)
    writer.writerows(map(guarded_cell, row) for row in cells)
    return out.getvalue()
