"""The exiftool that is installed, behind a script that leaves a trace."""

import os
import secrets
import shutil
from pathlib import Path
from typing import Any

import pytest

from tagkin.collection.sidecars import Embedded, embed_tags

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


def embed(*arguments: Any, **options: Any) -> Embedded:
    """Embed tags with a mark that no other write has."""
    return embed_tags(*arguments, mark=f"1-{secrets.token_hex(8)}", **options)
