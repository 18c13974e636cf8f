"""Tables of the reports."""

MIB = 2**20


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; numbers are in all columns but the first."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
