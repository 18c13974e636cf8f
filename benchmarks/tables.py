"""Markdown for the report: tables and wrapped paragraphs."""

import textwrap

MIB = 2**20
_WIDTH = 100


def table(header: list[str], rows: list[list[str]], *, numbers: bool = True) -> str:
    """A Markdown table; columns of numbers, all but the first, are right-aligned."""
    rule = ["---", *["---:" if numbers else "---"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *rows])


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
