"""Fit mvlearn's KMCCA on a precomputed visual kernel and a linear label kernel.

Usage: ``python run_mvlearn.py INPUT.npz OUTPUT.npz``, in an environment made from
``mvlearn-requirements.txt``.

INPUT holds ``KV`` (N x N visual kernel, uncentred), ``Y`` (N x D labels), ``kappa`` (the weight
k of the public form (1 - k) K^2 + k K) and ``n_components``. OUTPUT gets ``projection``
(N x n_components, visual view of the training images), ``correlations`` and the measurements
of ``measure.Measure`` around ``fit``.
"""

import sys

import numpy as np
from measure import Measure  # type: ignore[import-not-found]  # beside this file
from mvlearn.embed import KMCCA

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


def main(source: str, target: str) -> None:
    """Read the problem from ``source``, solve it and write the answer to ``target``."""
    with np.load(source) as data:
        KV, Y = data["KV"], data["Y"]
        kappa, n_components = float(data["kappa"]), int(data["n_components"])
    projection, correlations, measured = solve(KV, Y, kappa, n_components)
    np.savez(target, projection=projection, correlations=correlations, **measured.as_dict())


if __name__ == "__main__":
    main(*sys.argv[1:])
