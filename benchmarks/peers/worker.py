"""The part that all peers' scripts share: read the problem, measure, write the result.

``python run_PEER.py INPUT.npz OUTPUT.npz``. INPUT holds ``KV`` (N×N visual kernel, uncentred),
``Y`` (N×D labels), ``kappa`` (the weight k of the public form (1 − k) K² + k K) and
``n_components``. OUTPUT gets ``projection`` (N × n_components, the visual view of the training
images), ``correlations`` and the measurements of ``measure.Measure`` around ``fit``.
"""

import sys
from collections.abc import Callable

import numpy as np
from measure import Measure  # type: ignore[import-not-found]  # beside this file

Solution = tuple[np.ndarray, np.ndarray, Measure]


def main(solve: Callable[[np.ndarray, np.ndarray, float, int], Solution]) -> None:
    """Solve the problem of the first argument and write the answer to the second."""
    source, target = sys.argv[1:]
    with np.load(source) as data:
        problem = data["KV"], data["Y"], float(data["kappa"]), int(data["n_components"])
    projection, correlations, measured = solve(*problem)
    np.savez(target, projection=projection, correlations=correlations, **measured.as_dict())
