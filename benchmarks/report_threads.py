"""The section of docs/benchmarks.md on BLAS threads."""

import statistics
from typing import Any

from benchmarks.tables import table

CASES = {
    "one": "one thread",
    "all": "all cores for every product",
    "policy": "**as many as a product can use**",
}


def threads_section(found: dict[str, Any] | None) -> str:
    """The results of `benchmarks.threads`."""
    if found is None:  # not measured yet
        return ""
    n, d, r = found["space"]
    works = {
        "learning": f"learning from {found['photographs']} photographs",
        "space": f"a space: {n:,} × {d:,}, {r:,} landmarks",
    }
    rows = []
    for work, words in works.items():
        for case, title in CASES.items():
            cells = [f"{words}, {title}"]
            for machine in ("idle", "busy"):
                seconds, cpu = (_median(found, machine, work, case, of) for of in _MEASURED)
                of_one = seconds / _median(found, machine, work, "one", "seconds")
                cells += [f"{seconds:.1f} s", "" if case == "one" else f"**{of_one:.2f}×**"]
                cells.append(f"{cpu:.1f} s")
            rows.append(cells)
    header = ["", "idle", "vs. one thread", "CPU", "busy", "vs. one thread", "CPU"]
    return f"""## Threads

This compares one BLAS thread, all {found["cores"]} cores for every product (BLAS's default), and as
many threads as a product can use, which is tagkin's choice. It ran on {found["machine"]}, idle and
with a busy loop on every core; medians over alternating repeats. To repeat it, run
`python -m benchmarks.threads`.

{table(header, rows)}"""


_MEASURED = ("seconds", "cpu_seconds")


def _median(found: dict[str, Any], machine: str, work: str, case: str, of: str) -> float:
    wanted = {"machine": machine, "work": work, "case": case}
    return statistics.median(run[of] for run in found["runs"] if wanted.items() <= run.items())
