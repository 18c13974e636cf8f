"""The documents of the project, and what can be checked in them: links, anchors, commands, output.

`python -m tests.documents` runs the code of the pages that have some, and writes below each block
what it prints.
"""

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "experiments" / "datasets" / "README.md",
    *sorted(DOCS.rglob("*.md")),
]
ROOMS = {path.parent.name for path in (ROOT / "src" / "tagkin").glob("*/__init__.py")}

WITH_CODE = [
    ROOT / name for name in ("README.md", "docs/tutorial.md", "docs/how-to.md", "docs/sidecars.md")
]

_CODE = re.compile(
    r"^```python\n(?P<code>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?",
    flags=re.DOTALL | re.MULTILINE,
)
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    """Fenced blocks in one language; "" for those that name none."""
    return [text for name, text in _FENCED.findall(page.read_text("utf-8")) if name == language]


def run_code(page: Path) -> Iterator[tuple[re.Match[str], str]]:
    """Run the Python blocks of a page, one after the other; yield each with what it printed."""
    names: dict[str, object] = {}
    for block in _CODE.finditer(page.read_text("utf-8")):
        line = page.read_text("utf-8")[: block.start("code")].count("\n")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block["code"], str(page), "exec"), names)
        lines = [text.rstrip() for text in printed.getvalue().rstrip().splitlines()]
        yield block, "".join(f"{text}\n" for text in lines)


def write_output(page: Path) -> None:
    """Write below each Python block of a page what it prints."""
    text = page.read_text("utf-8")
    for block, printed in run_code(page):
        below = f"\n```text\n{printed}```\n" if printed else ""
        text = text.replace(block[0], f"```python\n{block['code']}```\n{below}")
    page.write_text(text, encoding="utf-8")


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCED.sub("", page.read_text("utf-8"))


def links(page: Path) -> list[str]:
    """Targets of links and pictures."""
    return re.findall(r"\]\(([^)\s]+)\)", prose(page))


def anchors(page: Path) -> set[str]:
    """What a link may name after #, as Markdown makes it of headings."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {re.sub(r"[-\s]+", "-", heading).strip("-") for heading in plain}


def shell_lines(page: Path) -> list[list[str]]:
    """Commands of shell blocks, in words; comments and what follows > are left out."""
    lines = "\n".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    return [line[: line.index(">")] if ">" in line else line for line in words if line]


def inline_commands(page: Path) -> list[list[str]]:
    """Commands in the running text, which may be parts of commands."""
    commands = re.findall(r"`((?:tagkin|python|make|pip) [^`]+)`", prose(page))
    return [shlex.split(command) for command in dict.fromkeys(commands)]


if __name__ == "__main__":
    for with_code in WITH_CODE:
        write_output(with_code)
