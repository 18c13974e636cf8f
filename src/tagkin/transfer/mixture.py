"""Weights of two scores per label, learned from held-out images."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from tagkin.arrays import expit
from tagkin.transfer.kin_votes import Mixture

__all__ = ["fit_mixture", "share_logits"]

_ROUNDS = 40
_MOVED = 1e-3  # a smaller step ends the iteration
_FARTHEST = 1.0  # longest step, as a root mean square in logits, if the loss bends
_LARGEST = 5.0  # longest step in any parameter, if the loss hardly bends
_CACHED = 2**15  # pairs of images and labels whose arrays fit in a core's cache
_SHRINKAGE = 30.0  # s: pull of a label's weights to the common weights
_OFFSET = 1.0  # pull of a label's offset to that of its share, for labels on very few images
# Weights of votes and read-out that are typical of small collections, and the number of labels
# that they count as. On other draws of COCO, Flickr8k and photos, the MAP of 20 images was .3 to .8
# higher than with ¼ and 1, and that of 50 images .0 to .4.
_TYPICAL = (0.1, 1.5)
_N_TYPICAL = 4.0


def fit_mixture(
    u: np.ndarray,
    v: np.ndarray,
    labels: scipy.sparse.csr_array,
    start: Mixture | None = None,
    n_typical: float = _N_TYPICAL,
    judged: np.ndarray | None = None,
) -> Mixture:
    """Fit the mixture of scores u and v (N×D) that makes the labels (N×D) most likely.

    The scores are 0 if they say nothing about an image: logits, less that of the label's share of
    the images, lₜ. Each label has its own weights, drawn to the common weights of all labels, and
    an offset drawn to lₜ. The loss is
    Σ log(1 + exp(∓f)) + s/2 Σₜ [(aₜ − ā)² + (bₜ − b̄)²] + ½ Σₜ (oₜ − lₜ)². The means include
    `n_typical` more labels, above 0, with the weights of small collections. So a label on few
    images stays near the common weights, and if labels are few, all stay near the typical weights.
    A `start` near the result saves rounds. Labels outside the mask `judged` (D,) get the common
    weights. Default: every label is fitted.
    """
    sums = _Likelihood(u, v, labels)
    if judged is not None:
        sums.learned &= judged
    level = share_logits(labels)
    theta = np.column_stack([np.tile(_TYPICAL, (len(level), 1)), level])
    if start is not None:
        theta = np.column_stack(start.parts)
    known, expected = theta[sums.learned], level[sums.learned]
    pull = np.array([_SHRINKAGE, _SHRINKAGE, _OFFSET])
    for _ in range(_ROUNDS):
        gradient, hessian = sums.at(known)
        gradient += pull * (known - _shrinkage_target(known, expected, n_typical))
        step = _newton_steps(gradient, hessian + np.diag(pull), n_typical)
        step *= _step_shares(step, hessian)[:, None]
        known = known + step
        if np.abs(step).max(initial=0) < _MOVED:
            break
    theta[sums.learned] = known
    theta[~sums.learned] = _shrinkage_target(known, level[~sums.learned], n_typical)
    return Mixture(np.maximum(theta[:, 0], 0), np.maximum(theta[:, 1], 0), theta[:, 2])


def share_logits(Y: scipy.sparse.csr_array) -> np.ndarray:
    """Return the logit of each label's share of the images, shape (C,).

    While an image of a rare label is held out, the label has fewer images than in other folds, and
    lower scores. Without this correction, its own images would rank last across folds.
    """
    share = (np.bincount(Y.indices, minlength=Y.shape[1]) + 0.5) / (Y.shape[0] + 1)
    return np.asarray(np.log(share) - np.log1p(-share), dtype=np.float32)


def _shrinkage_target(theta: np.ndarray, level: np.ndarray, n_typical: float) -> np.ndarray:
    """Return the target of shrinkage (k×3): mean weights of labels (D×3), and the levels (k,)."""
    total = theta[:, :2].sum(axis=0) + n_typical * np.array(_TYPICAL)
    weights = total / (len(theta) + n_typical)
    return np.column_stack([np.tile(weights, (len(level), 1)), level])


def _newton_steps(gradient: np.ndarray, hessian: np.ndarray, n_typical: float) -> np.ndarray:
    """Return Newton's step (D×3) of all labels, solved together with their common weights.

    With common weights c, A δₜ − s P δ_c = −gₜ for each label, P being the first two columns of
    the identity, and (D + h) δ_c = Σ Pᵀδₜ with h typical labels. Alternating between c and the
    labels would take many rounds.
    """
    inverse = np.linalg.inv(hessian)
    own = -np.einsum("tab,tb->ta", inverse, gradient)
    by_common = _SHRINKAGE * inverse[:, :, :2]
    left = (len(own) + n_typical) * np.eye(2) - by_common[:, :2].sum(axis=0)
    return own + by_common @ np.linalg.solve(left, own[:, :2].sum(axis=0))


def _step_shares(step: np.ndarray, hessian: np.ndarray) -> np.ndarray:
    """Return the share of each step to take (D,); the loss is a parabola only nearby."""
    bend = np.maximum(hessian[:, 2, 2], np.finfo(np.float32).tiny)
    logits = np.sqrt(np.maximum(np.einsum("ta,tab,tb->t", step, hessian, step), 0) / bend)
    far = np.maximum(logits / _FARTHEST, np.abs(step).max(axis=1) / _LARGEST)
    return 1 / np.maximum(far, 1)


class _Likelihood:
    """Sums over the images of the logistic loss's derivatives, for each label."""

    def __init__(self, u: np.ndarray, v: np.ndarray, labels: scipy.sparse.csr_array):
        # a row per label, so blocks of labels are contiguous
        self.u, self.v = (np.ascontiguousarray(part.T, dtype=np.float32) for part in (u, v))
        n, d = labels.shape
        there = labels.tocoo()
        n_present = np.bincount(there.col, minlength=d)
        self.learned = (n_present > 0) & (n_present < n)
        values = (part[there.col, there.row] for part in (self.u, self.v))
        present_sums = [np.bincount(there.col, there.data * scores, d) for scores in values]
        present_sums.append(np.bincount(there.col, there.data, d))
        self._present_sums = np.stack(present_sums, axis=1)

    def at(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient (C×3) and Hessian (C×3×3) of C learned labels at theta (C×3)."""
        gradient, hessian = np.empty(theta.shape), np.empty((*theta.shape, 3))
        labels, step = np.flatnonzero(self.learned), max(1, _CACHED // self.u.shape[1])
        for block in (slice(start, start + step) for start in range(0, len(theta), step)):
            gradient[block], hessian[block] = self._compute(labels[block], theta[block])
        return gradient, hessian

    def _compute(self, labels: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the derivatives of these labels from all images."""
        x = np.empty((len(labels), 3, self.u.shape[1]), dtype=np.float32)
        x[:, 0], x[:, 1], x[:, 2] = self.u[labels], self.v[labels], 1
        p = np.asarray(expit((theta.astype(np.float32)[:, None] @ x)[:, 0]))
        gradient = (x @ p[..., None])[..., 0]
        p -= p * p  # second derivative of the loss
        hessian = (x * p[:, None]) @ x.transpose(0, 2, 1)
        return gradient - self._present_sums[labels], hessian
