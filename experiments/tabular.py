"""A table that can be written as CSV, Markdown or HTML."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from experiments.templating import render

__all__ = ["Table"]


class _Cell(NamedTuple):
    """A cell of a table in HTML."""

    is_number: bool
    parts: list[str]


@dataclass
class Table:
    """Rows of cells under a title. Floats are written with one decimal, None as an empty cell."""

    name: str
    """Name of its file and of its HTML anchor."""
    title: str
    columns: list[str]
    rows: list[list[Any]] = field(default_factory=list)
    note: str = ""

    def csv(self) -> str:
        """The table as CSV, with numbers in full."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow(["" if c is None else f"{c:.6g}" if _real(c) else c for c in row])
        return file.getvalue()

    def markdown(self) -> str:
        """The table as Markdown."""
        numeric = [all(c is None or _number(c) for c in column) for column in self._by_column()]
        lines = [f"### {self.title}", ""]
        lines.append("| " + " | ".join(self.columns) + " |")
        lines.append("|" + "|".join("---:" if right else "---" for right in numeric) + "|")
        lines += ["| " + " | ".join(map(_text, row)) + " |" for row in self.rows]
        return "\n".join([*lines, "", *([self.note, ""] if self.note else [])])

    def html(self) -> str:
        """The table as HTML; **bold** cells are bold."""
        rows = [[_Cell(c is None or _number(c), _parts(c)) for c in row] for row in self.rows]
        return render("table.html.jinja", table=self, rows=rows)

    def _by_column(self) -> list[tuple[Any, ...]]:
        return list(zip(*self.rows, strict=True)) if self.rows else [()] * len(self.columns)


def _real(cell: Any) -> bool:
    return isinstance(cell, float)


def _number(cell: Any) -> bool:
    return isinstance(cell, (int, float)) or (
        isinstance(cell, str) and cell.replace(",", "").lstrip("+−-<").replace(".", "", 1).isdigit()
    )


def _parts(cell: Any) -> list[str]:
    """The text of a cell in pieces, plain and bold in turn."""
    return re.split(r"\*\*(.+?)\*\*", _text(cell))


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if _real(cell):
        return f"{cell:.1f}".replace("-", "−")
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
