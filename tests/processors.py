"""Tests under kernels of other processors: ``python -m tests.processors [arguments of pytest]``.

Results of BLAS and NumPy depend on the kernels that they choose for a processor, and on threads.
What can be varied is varied: OpenBLAS's core type, NumPy's vector extensions, one thread and two.
Without arguments the tests of numbers run; with ``tests`` all do.
"""

import os
import platform
import subprocess
import sys
from typing import NamedTuple

import numpy as np

CORES = {
    "x86_64": ["Haswell", "SkylakeX", "Zen"],
    "aarch64": ["NEOVERSEN1", "ARMV8"],
}
SAME_NAME = {"AMD64": "x86_64", "arm64": "aarch64"}

NUMBERS = [
    *("neighbors", "transfer", "space", "kernels", "arrays", "paper", "labels", "calibration"),
    *("evaluation", "model_selection", "annotator", "feature_files", "test_docs.py", "storage"),
]

PROBE = """
import numpy as np
from threadpoolctl import threadpool_info
np.ones((40, 40)) @ np.ones((40, 40))
print(*{part["architecture"] for part in threadpool_info() if part["internal_api"] == "openblas"})
"""


class Setting(NamedTuple):
    """How numbers are computed."""

    core: str | None
    """OpenBLAS's core type; None for the machine's own."""
    n_threads: int
    vectors: bool
    """Whether NumPy uses vector extensions beyond those that it was built for."""

    def environment(self) -> dict[str, str]:
        """Environment variables that make it so."""
        variables = dict(os.environ, OPENBLAS_NUM_THREADS=str(self.n_threads))
        if self.core is not None:
            variables["OPENBLAS_CORETYPE"] = self.core
        if not self.vectors:
            variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(vector_extensions())
        return variables

    def __str__(self) -> str:
        core = self.core or "own kernels"
        vectors = "" if self.vectors else ", NumPy's baseline"
        return f"{core}, {self.n_threads} BLAS thread{'s'[: self.n_threads - 1]}{vectors}"


def vector_extensions() -> list[str]:
    """Those that NumPy has code for beyond its baseline, and this processor has."""
    return list(np.show_config(mode="dicts")["SIMD Extensions"]["found"])


def settings(machine: str) -> list[Setting]:
    """What is run on a machine of that architecture."""
    cores = CORES.get(SAME_NAME.get(machine, machine), [])
    by_core = [Setting(core, 1 + i % 2, bool(i % 2)) for i, core in enumerate(cores)]
    return [Setting(None, 1, True), Setting(None, 2, False), *by_core]


def kernels_of(setting: Setting) -> str | None:
    """The kernels that OpenBLAS takes (it may not have those asked for); None if they crash."""
    probe = subprocess.run(
        [sys.executable, "-c", PROBE], env=setting.environment(), capture_output=True, text=True
    )
    return probe.stdout.strip() if probe.returncode == 0 else None


def main(arguments: list[str]) -> int:
    """Run the tests under one setting after the other; the number of those that failed."""
    failed = []
    for setting in settings(platform.machine()):
        kernels = kernels_of(setting)
        if kernels is None:
            print(f"--- {setting}: not on this processor", flush=True)
            continue
        print(f"--- {setting} (OpenBLAS takes {kernels})", flush=True)
        tests = arguments or [f"tests/{name}" for name in NUMBERS]
        run = subprocess.run([sys.executable, "-m", "pytest", *tests], env=setting.environment())
        if run.returncode:
            failed.append(setting)
    print("\n".join(f"Failed: {setting}" for setting in failed) or "All passed.")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
