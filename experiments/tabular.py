"""A table that can be written as CSV, Markdown or HTML."""

from __future__ import annotations

import csv
import html
import io
import re
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Table"]


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
        """The table as HTML."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>"
            + "".join(
                f"<td{' class=n' if c is None or _number(c) else ''}>{_html(c)}</td>" for c in row
            )
            + "</tr>\n"
            for row in self.rows
        )
        note = f"<p class=note>{html.escape(self.note)}</p>" if self.note else ""
        return (
            f'<h3 id="{self.name}">{html.escape(self.title)}</h3>\n<div class=wide><table>'
            f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>{note}\n"
        )

    def _by_column(self) -> list[tuple[Any, ...]]:
        return list(zip(*self.rows, strict=True)) if self.rows else [()] * len(self.columns)


def _real(cell: Any) -> bool:
    return isinstance(cell, float)


def _number(cell: Any) -> bool:
    return isinstance(cell, (int, float)) or (
        isinstance(cell, str) and cell.replace(",", "").lstrip("+−-<").replace(".", "", 1).isdigit()
    )


def _html(cell: Any) -> str:
    """A cell as HTML; **bold** becomes <b>."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(_text(cell)))


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if _real(cell):
        return f"{cell:.1f}".replace("-", "−")
    return f"{cell:,}" if isinstance(cell, int) else str(cell)
