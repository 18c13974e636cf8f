"""Fit cca-zoo's KCCA on a precomputed visual kernel and a linear label kernel.

Usage: ``python run_cca_zoo.py INPUT.npz OUTPUT.npz``, in an environment made from
``cca-zoo-requirements.txt``.

INPUT holds ``KV`` (N x N visual kernel, uncentred), ``Y`` (N x D labels), ``kappa`` (the weight
k of the public form (1 - k) K^2 + k K) and ``n_components``. OUTPUT gets ``projection``
(N x n_components, visual view of the training images), ``correlations`` and the measurements
of ``measure.Measure`` around ``fit``.
"""

import sys

import numpy as np
from cca_zoo.nonparametric import KCCA
from measure import Measure  # type: ignore[import-not-found]  # beside this file


class PlainKCCA(KCCA):
    """KCCA without the permutation importances that ``fit`` computes after the solution.

    They permute each of the N columns of a precomputed kernel in turn, which takes longer than
    the solution, has no option to turn it off and says nothing about the canonical directions.
    """

    def _permutation_importances(self, views: list[np.ndarray]) -> list[np.ndarray]:
        return [np.ones(view.shape[1]) for view in views]


def solve(
    KV: np.ndarray, Y: np.ndarray, kappa: float, n_components: int
) -> tuple[np.ndarray, np.ndarray, Measure]:
    """Return the projections of the visual view, the correlations and the measurements."""
    # cca-zoo's form is (1 - c) K^2 / (N - 1) + c K: the same directions with
    # c / (1 - c) = kappa / (1 - kappa) / (N - 1). It raises the smallest eigenvalue of
    # the denominator to 1e-6 of the largest: no effect while ridge > 1e-6 * max eigenvalue of K.
    ridge = kappa / (1.0 - kappa)
    shrinkage = ridge / (len(KV) - 1 + ridge)
    model = PlainKCCA(
        n_components,
        center=False,  # of the columns of the views; the kernels are always centred
        shrinkage=shrinkage,
        kernel=["precomputed", "linear"],
    )
    with Measure() as measured:
        model.fit([KV, Y])
    projection, labels = model.transform([KV, Y])
    # The eigenvalues are not kept. They are the covariances of the paired scores, here brought
    # from cca-zoo's form to the public one.
    covariances = np.einsum("ij,ij->j", projection, labels) / (len(KV) - 1)
    return projection, covariances * (1.0 - shrinkage) / (1.0 - kappa), measured


def main(source: str, target: str) -> None:
    """Read the problem from ``source``, solve it and write the answer to ``target``."""
    with np.load(source) as data:
        KV, Y = data["KV"], data["Y"]
        kappa, n_components = float(data["kappa"]), int(data["n_components"])
    projection, correlations, measured = solve(KV, Y, kappa, n_components)
    np.savez(target, projection=projection, correlations=correlations, **measured.as_dict())


if __name__ == "__main__":
    main(*sys.argv[1:])
