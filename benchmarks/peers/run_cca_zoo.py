"""Fit cca-zoo's KCCA on a precomputed visual kernel and a linear label kernel.

Runs in an environment with ``cca-zoo-requirements.txt``. ``worker.py`` has the file formats.
"""

import numpy as np
from cca_zoo.nonparametric import KCCA
from measure import Measure  # type: ignore[import-not-found]  # beside this file
from worker import main  # type: ignore[import-not-found]  # beside this file


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


if __name__ == "__main__":
    main(solve)
