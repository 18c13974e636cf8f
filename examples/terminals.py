"""Pictures of the terminal for the documentation: ``python -m examples.terminals [FOLDER]``.

Runs the commands of the tutorial on keeping tags in a folder of its own, and draws what they say
as SVG files into docs/images. FOLDER is a collection to work on; without it, scenes are painted.
"""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tagkin.scenes import make_scenes

IMAGES = Path(__file__).parent.parent / "docs" / "images"
WIDTH, LINES = 92, 16  # characters of a line, lines of an output
PICTURES = {
    "terminal-suggest": ["tagkin scan pictures", "tagkin train", "tagkin suggest"],
    "terminal-accept": [
        "tagkin accept --at-least 0.8 --dry-run",
        "tagkin accept --at-least 0.8",
        "tagkin status",
    ],
    "terminal-explain": ["tagkin explain pictures/scene-0754.jpg"],
    "terminal-write": ["tagkin write --dry-run", "tagkin write", "tagkin undo"],
}
_SHOWN_CURSOR = "\x1b[?25h"  # the last that a progress bar writes
_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # fetched from elsewhere


def said(command: str, home: Path) -> str:
    """What a command writes to a terminal, without progress."""
    env = os.environ | {
        "FORCE_COLOR": "1",
        "COLUMNS": str(WIDTH),
        "HOME": str(home),
        "TERM": "xterm",
    }
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(words, cwd=home, env=env, capture_output=True, text=True, check=True)  # noqa: S603
    words_for_people = done.stderr.rpartition(_SHOWN_CURSOR)[2]
    text = done.stdout + re.sub(r"\r|\x1b\[\d*[AK]", "", words_for_people)
    lines = text.rstrip().splitlines()
    if len(lines) > LINES:
        middle = len(lines) - (LINES - 2)
        lines = [*lines[: LINES - 4], f"\x1b[2m({middle:,} more lines)\x1b[0m", *lines[-3:]]
    return "\n".join(lines)


def draw(name: str, commands: list[str], home: Path) -> None:
    """Run commands and draw them as one picture."""
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    for k, command in enumerate(commands):
        console.print(Text.assemble("\n" if k else "", ("$ ", "green"), (command, "bold")))
        console.print(Text.from_ansi(said(command, home)))
    console.print()  # Rich cuts the last line at its baseline
    drawn = console.export_svg(title="tagkin")
    drawn = _FONT.sub("", drawn).replace("Fira Code", "DejaVu Sans Mono")
    (IMAGES / f"{name}.svg").write_text(drawn + "\n", encoding="utf-8")


def main(folder: str = "") -> None:
    """Draw all pictures."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(os.path.realpath(scratch))
        if folder:
            shutil.copytree(folder, home / "pictures")
        else:
            make_scenes(home / "pictures", n=1000, n_untagged=250, seed=0)
        for path in (home / "pictures").iterdir():
            os.utime(path, (1.7e9, 1.7e9))
        for name, commands in PICTURES.items():
            draw(name, commands, home)


if __name__ == "__main__":
    main(*sys.argv[1:])
