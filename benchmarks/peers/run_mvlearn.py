"""Fit mvlearn's KMCCA on a precomputed visual kernel and a linear label kernel.

Runs in an environment with ``mvlearn-requirements.txt``. ``worker.py`` has the file formats.
"""

import numpy as np
from measure import Measure  # type: ignore[import-not-found]  # beside this file
from mvlearn.embed import KMCCA
from worker import main  # type: ignore[import-not-found]  # beside this file

# Singular values of K / N below this are dropped. mvlearn's default of 1e-3 cuts most of the
# spectrum of a visual kernel and so solves another problem. This drops no more than the null
# space, which keeps the eigenproblem at rank(KV) + rank(Y) rows instead of 2 N.
SVAL_THRESH = 1e-12


def solve(
    KV: np.ndarray, Y: np.ndarray, kappa: float, n_components: int
) -> tuple[np.ndarray, np.ndarray, Measure]:
    """Return the projections of the visual view, the correlations and the measurements."""
    model = KMCCA(
        n_components=n_components,
        kernel=["precomputed", "linear"],
        regs=kappa,
        diag_mode="A",  # (1 - kappa) K^2 + kappa K
        sval_thresh=SVAL_THRESH,
        center=True,  # centres the kernels, not the columns of the views
    )
    with Measure() as measured:
        model.fit([KV, Y])
    projection = model.transform_view(KV.copy(), 0)  # centres its argument in place
    return projection, model.evals_ - 1.0, measured


if __name__ == "__main__":
    main(solve)
