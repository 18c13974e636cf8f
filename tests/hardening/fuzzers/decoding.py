"""Photographs that are nearly right: decoded, or refused with a sentence; nothing else."""

import os
import random
import time
from pathlib import Path

import numpy as np

from tagkin.images import UnreadableImage, decode
from tests.hardening.fuzzers import Effort, Report, try_inputs
from tests.hardening.mutations import mutated
from tests.hardening.samples import photographs, photographs_in

MAX_CPU_SECONDS = 60  # far more than any photograph of that size takes, on any machine


def check_reason(reason: str) -> None:
    """It is a line of text."""
    assert reason
    assert reason.isprintable(), "a reason that cannot be shown"


def check(data: bytes) -> None:
    """Decode in full and small; pixels or `UnreadableImage`, in a time that has a bound."""
    start = time.process_time()
    for min_side in (0, 40):
        try:
            pixels = decode(data, min_side=min_side)
        except UnreadableImage as error:
            check_reason(str(error))
            continue
        assert pixels.dtype == np.uint8
        assert pixels.ndim == 3
        assert pixels.shape[2] == 3
        assert pixels.size
    assert time.process_time() - start < MAX_CPU_SECONDS, "too slow"


def fuzz(effort: Effort, seed: int, keep: Path) -> Report:
    """Changed photographs; of TAGKIN_FUZZ_IMAGES as well, where that names a folder."""
    samples = list(photographs().values())
    if folder := os.environ.get("TAGKIN_FUZZ_IMAGES"):
        samples += photographs_in(Path(folder))

    def make(rng: random.Random) -> bytes:
        return mutated(rng, samples)

    return try_inputs("decoding", make, check, effort, seed, keep)
