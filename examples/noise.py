"""Add forgotten, wrong and personal tags, to test how methods handle noise."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tagkin.arrays import Array, check_label_matrix, to_numpy
from tagkin.errors import InvalidInput

__all__ = ["with_noise"]


def with_noise(
    tags: Array,
    *,
    dropped: float = 0.0,
    wrong: float = 0.0,
    personal: float = 0.0,
    untagged: float = 0.0,
    n_personal: int = 20,
    random_state: int | None = 0,
) -> scipy.sparse.csr_array:
    """Return tags (N×D) with forgotten, wrong and personal tags, and with untagged images.

    Parameters
    ----------
    tags : array or sparse matrix of shape (N, D)
    dropped : float from 0 to 1
        Share of the tags to remove.
    wrong : float from 0 on
        Number of wrong tags, as a multiple of the number of tags. They go on random images, each
        tag in proportion to its frequency.
    personal : float from 0 on
        Number of personal tags per image, such as albums or cameras, that say nothing about its
        content. They are in `n_personal` further columns.
    untagged : float from 0 to 1
        Share of the images without tags.
    n_personal : int, default 20
    random_state : int or None, default 0
        Seed. With the same seed, more noise contains the noise of less.

    Returns
    -------
    noisy : CSR array of ones, shape (N, D), or (N, D + n_personal) with personal tags

    Examples
    --------
    >>> import numpy as np
    >>> from examples.noise import with_noise
    >>> tags = np.ones((1000, 4))
    >>> round(float(with_noise(tags, dropped=0.3).mean()), 2)
    0.71
    """
    for name, share, most in (
        ("dropped", dropped, 1.0),
        ("untagged", untagged, 1.0),
        ("wrong", wrong, np.inf),
        ("personal", personal, np.inf),
    ):
        if not 0 <= share <= most:
            raise InvalidInput(f"{name} must be from 0 to {most}; found {share!r}.")
    n = int(tags.shape[0])
    checked = check_label_matrix(tags, n)
    known = scipy.sparse.csr_array(
        checked if scipy.sparse.issparse(checked) else to_numpy(checked) != 0
    ).tocoo()
    d = known.shape[1]
    # separate generators, so one kind of noise does not change another
    rng_dropped, rng_wrong, rng_personal, rng_untagged = (
        np.random.default_rng(seed) for seed in np.random.SeedSequence(random_state).spawn(4)
    )
    is_kept = rng_dropped.random(known.nnz) >= dropped
    n_wrong = round(wrong * known.nnz)
    rows = [known.row[is_kept], rng_wrong.integers(0, n, n_wrong)]
    columns = [known.col[is_kept], known.col[rng_wrong.integers(0, max(known.nnz, 1), n_wrong)]]
    if personal > 0:
        n_personal_tags = round(personal * n)
        rows.append(rng_personal.integers(0, n, n_personal_tags))
        columns.append(d + rng_personal.integers(0, n_personal, n_personal_tags))
    row, column = np.concatenate(rows), np.concatenate(columns)
    tagged = (rng_untagged.random(n) >= untagged)[row]
    row, column = row[tagged], column[tagged]
    noisy = scipy.sparse.csr_array(
        (np.ones(len(row), dtype=np.float32), (row, column)),
        shape=(n, d + (n_personal if personal > 0 else 0)),
    )
    noisy.data[:] = 1  # a tag added twice counts once
    return noisy
