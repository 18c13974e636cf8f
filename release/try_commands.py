"""Try every command of a bundle, on the system that it is for.

    python -m release.try_commands build/bundle/tagkin/tagkin

asks each command for its help, opens a catalogue of a former version, and goes from a scan to an
undone write on a sample folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from tagkin.cli.registry import MODULES
from tagkin.scenes import make_scenes

FORMER = Path(__file__).parents[1] / "tests" / "catalogue" / "former" / "version-6.tar.gz"
WAY = (
    "history --catalogue former/catalogue.sqlite",
    "scan former/photos --catalogue former/catalogue.sqlite",
    "scan photos",
    "train photos",
    "suggest photos -n 3",
    "accept photos --at-least 0.01",
    "write photos",
    "undo photos",
    "find sunset --folder photos",
    "audit photos",
)


def put_samples(home: Path, n: int = 60) -> None:
    """Put a sample folder, and photographs with their former catalogue, into a home."""
    make_scenes(home / "photos", n, n // 2)
    with tarfile.open(FORMER) as archive:
        archive.extractall(home / "former", filter="data")


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files in a folder."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def try_commands(program: Sequence[str], home: Path, names: Iterable[str] = MODULES) -> None:
    """Run commands in a home with samples; the first that fails ends all."""

    def ask(words: str) -> None:
        command = [*program, *words.split()]
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            raise SystemExit(f"tagkin {words} ended with {done.returncode}:\n{done.stderr}")

    for name in names:
        ask(f"{name} --help")
    before = contents(home / "photos")
    for words in WAY:
        ask(words)
        sidecars = sum(name.endswith(".xmp") for name in contents(home / "photos"))
        if (sidecars > 0) != (words == "write photos"):
            raise SystemExit(f"After tagkin {words}, there are {sidecars} sidecars.")
    if contents(home / "photos") != before:
        raise SystemExit("An undone write left something behind.")


def main(program: str) -> None:
    """Try the commands of a program in a temporary home."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        put_samples(home)
        os.environ |= {"TAGKIN_CATALOGUES": f"{home}/data", "TAGKIN_CACHE": f"{home}/cache"}
        try_commands([os.path.abspath(program)], home)
    print(f"{len(MODULES)} commands, and the way from a scan to an undone write: done")


if __name__ == "__main__":
    main(*sys.argv[1:])
