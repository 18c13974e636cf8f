"""The exiftool that is installed, behind a script that leaves a trace."""

import os
import shutil
from pathlib import Path

import pytest

needs_exiftool = pytest.mark.skipif(
    shutil.which("exiftool") is None, reason="exiftool is not installed"
)


def path_with_exiftool(folder: Path, trace: str) -> str:
    """A PATH on which exiftool is a script that does as one line of sh says before."""
    folder.mkdir()
    script = folder / "exiftool"
    script.write_text(f'#!/bin/sh\n{trace}\nexec {shutil.which("exiftool")} "$@"\n')
    script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
