"""Tables and figures as people are shown them: few lines, much air."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from tagkin.cli.output import shown

if TYPE_CHECKING:
    from tagkin.annotator import Kin

__all__ = ["bar", "count", "facts", "file_table", "kin_text", "percent", "seconds", "size"]

_BAR = 10  # characters


def file_table(*columns: str, kin: bool = False) -> Table:
    """A table whose first column is a file; `kin` adds a last one, cut where it is too long."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, show_edge=False)
    for k, name in enumerate(columns):
        number = name in {"Sure", "Share", "Alike", "Photographs", "Average precision"}
        table.add_column(
            name,
            justify="right" if number else "left",
            overflow="ellipsis" if k else "fold",
            no_wrap=bool(k),
            style="cyan" if name == "Tag" else "",
        )
    if kin:
        table.add_column("Kin", overflow="ellipsis", no_wrap=True, style="dim", ratio=1)
    return table


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Names and values, one pair a line."""
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, value)
    return grid


def kin_text(kin: Iterable[Kin]) -> str:
    """Kin in one line, the heaviest first."""
    return ", ".join(f"{shown(one.file)} ({percent(one.share)})" for one in kin)


def percent(share: float) -> str:
    """A share as a person reads it."""
    return "–" if math.isnan(share) else f"{100 * share:.0f} %"


def bar(share: float) -> str:
    """A share as a bar of characters."""
    filled = round(_BAR * min(max(share, 0.0), 1.0))
    return f"[cyan]{'━' * filled}[/cyan][bright_black]{'━' * (_BAR - filled)}[/bright_black]"


def count(n: int, one: str, several: str) -> str:
    """A number with its word: 1 photograph, 1,200 photographs."""
    return f"{n:,} {one if n == 1 else several}"


def seconds(time: float) -> str:
    """A time as a person says it: 8 s, 2 min 5 s, 1 h 3 min."""
    whole = round(time)
    if whole < 60:
        return f"{time:.1f} s" if time < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(n_bytes: int) -> str:
    """An amount of bytes as a person says it."""
    amount = float(n_bytes)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} GB"
