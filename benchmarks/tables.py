"""Markdown for the report: tables and wrapped paragraphs."""

import textwrap
from collections.abc import Mapping
from typing import Any

MIB = 2**20
_WIDTH = 100


def table(header: list[str], rows: list[list[str]], *, numbers: bool = True) -> str:
    """A Markdown table; columns of numbers, all but the first, are right-aligned."""
    rule = ["---", *["---:" if numbers else "---"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *rows])


def timings(kind: str, found: Mapping[str, Any], digits: int) -> str:
    """A table of median and 95 % quantile of every call, by the clock and of the processor."""
    rows = [
        [name, *(f"{1000 * t:.{digits}f} ms" for t in (*one["seconds"], *one["cpu_seconds"]))]
        for name, one in found.items()
    ]
    return table([kind, "median", "95 of 100", "CPU, median", "CPU, 95 of 100"], rows)


def wrapped(markdown: str) -> str:
    """Wrap the paragraphs of a page; headings, tables and images stay as they are."""
    blocks = [
        block
        if block.startswith(("#", "|", "!"))
        else textwrap.fill(
            " ".join(block.split()), _WIDTH, break_long_words=False, break_on_hyphens=False
        )
        for block in markdown.strip().split("\n\n")
    ]
    return "\n\n".join(blocks) + "\n"
