"""Models with something wrong in them: refused with a `StorageError`, or good for use."""

import io
import random
import tempfile
import zipfile
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from sklearn.exceptions import NotFittedError

from tagkin import load
from tagkin.errors import StorageError, TagkinError
from tests.hardening.fuzzers import Effort, Report, try_inputs
from tests.hardening.model_mutations import mutated
from tests.hardening.model_samples import KINDS, numbers_of, saved, use


def check(data: bytes) -> None:
    """Load a model, which is a folder in a ZIP file, and use it."""
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(io.BytesIO(data)) as files:
            files.extractall(folder)
        check_folder(Path(folder))


def check_folder(folder: Path) -> str:
    """What became of a model: "refused", "of no use" or "used"; anything else is raised.

    What a model in use answers is finite.
    """
    try:
        model = load(folder)
    except StorageError as error:
        if not str(error).isprintable():
            raise AssertionError("an error that cannot be shown") from error
        return "refused"
    try:
        answers = use(model)
    except (TagkinError, NotFittedError):
        # numbers that are finite, and too large for what is asked; neighbours without embeddings
        return "of no use"
    except ValueError as error:
        if "features, but" in str(error):  # it is for images with other features
            return "of no use"
        raise
    if not all(np.isfinite(numbers).all() for numbers in numbers_of(answers)):
        raise AssertionError("an answer that is no number")
    return "used"


def fuzz(effort: Effort, seed: int, keep: Path) -> Report:
    """Saved models of every kind with something changed, and all checksums redone."""

    def make(rng: random.Random) -> bytes:
        try:
            return zipped(rng)
        # nested too deep to be written, or cut before a change of what was cut off
        except (RecursionError, SafetensorError):
            return make(rng)

    def zipped(rng: random.Random) -> bytes:
        crafted, _ = mutated(saved(rng.choice(KINDS)), rng)
        target = io.BytesIO()
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(target, "w") as files:
            for path in sorted(crafted.write(Path(folder)).iterdir()):
                files.write(path, path.name)
        return target.getvalue()

    return try_inputs("models", make, check, effort, seed, keep, ".zip")
