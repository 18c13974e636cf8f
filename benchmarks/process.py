"""Run measured work in its own process, so that cases do not influence each other."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
WORK = ROOT / ".bench"
DATA = Path(os.environ.get("TAGKIN_DATA", ROOT.parent / "shared" / "data"))


def say(text: str) -> None:
    """Print progress to stderr."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def run_python(*arguments: str | Path, threads: int | None = None) -> str:
    """Run Python with these arguments in the project's root and return its output."""
    environment = dict(os.environ)
    if threads is not None:
        environment |= {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def run_json(*arguments: str | Path, threads: int | None = None) -> Any:
    """Run Python and parse the JSON that it prints."""
    return json.loads(run_python(*arguments, threads=threads))
