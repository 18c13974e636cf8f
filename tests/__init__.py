"""All tests. Imported before any of them, and before NumPy, which reads what is set here."""

import os

# Of processes side by side, one per core, each has one thread: more would only wait for each other.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(_name, "1")
