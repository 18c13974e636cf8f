"""Tables and numbers for people: few lines, much air."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from tagkin.cli.output import data, relative
from tagkin.wording import count, percent

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN = 20  # rows of a dry run
_NUMBERS = ("Confidence", "Similarity", "Run", "Size", "Photographs")
_STYLES = {"Tag": "cyan", "Tags": "cyan", "Kin": "dim"}


def plain_table(*columns: str, right: Collection[str] = _NUMBERS) -> Table:
    """Return a table as all of ours look; columns of numbers are aligned on the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(
        box=SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0), pad_edge=False, show_edge=False
    )
    for name in columns:
        justify: Literal["right", "left"] = "right" if name in right else "left"
        table.add_column(name, justify=justify, style=_STYLES.get(name, ""))
    return table


def file_table(*columns: str) -> Table:
    """Return a table with files in its first column and lists in its last, which wrap."""
    table = plain_table(*columns)
    table.columns[0].overflow = "fold"
    for column in table.columns[1:-1]:
        column.no_wrap = True
    return table


def show_first(table: Table, rows: Sequence[tuple[str, ...]]) -> None:
    """Print the first rows of a dry run in a table of files, and how many more there are."""
    for row in rows[:_SHOWN]:
        table.add_row(*row)
    data().print(table)
    if len(rows) > _SHOWN:
        data().print(f"and {len(rows) - _SHOWN:,} more (--json lists them all)")
    data().print()


def facts(rows: Iterable[tuple[str, str]]) -> Table:
    """Return names and values, a pair per line."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(name, value)
    return grid


def kin_text(kin: Iterable[tuple[str, float]]) -> str:
    """Write kin in a line, files with their shares; a share that rounds to 0 % is left out."""
    shares = ((file, percent(share)) for file, share in kin)
    return ", ".join(f"{relative(file)} ({share})" for file, share in shares if share != "0 %")


def photographs_text(n: int, n_files: int) -> str:
    """Write how many photographs there are, and in how many files if some have copies.

    >>> photographs_text(3, 3), photographs_text(1, 2)
    ('3 photographs', '1 photograph (2 files)')
    """
    files = f" ({n_files:,} files)" if n_files > n else ""
    return count(n, "photograph") + files


def photographs_fact(n: int, n_files: int, n_untagged: int) -> str:
    """Write how many photographs a collection has, as a fact under that name.

    >>> photographs_fact(3, 4, 1)
    '3 (4 files), 1 of them without tags'
    """
    files = f" ({n_files:,} files)" if n_files > n else ""
    return f"{n:,}{files}, {n_untagged:,} of them without tags"


def suggestions_text(n: int, n_with: int, n_all: int, expected: float) -> str:
    """Write how many suggestions there are, for how many of all photographs, and their worth.

    >>> suggestions_text(5, 2, 3, 3.9)
    '5 suggestions for 2 photographs of 3; about 4 of them right'
    """
    if not n:
        return f"No suggestion for {count(n_all, 'photograph')}"
    text = f"{count(n, 'suggestion')} for {count(n_with, 'photograph')} of {n_all:,}"
    return f"{text}; about {expected:,.0f} of them right"


def size(n_bytes: int) -> str:
    """Write an amount of bytes as a person says it."""
    amount = float(n_bytes)
    for unit in ("bytes", "KB", "MB"):
        if amount < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:.3g} GB"
