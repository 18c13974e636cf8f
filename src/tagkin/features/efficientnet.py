"""EfficientNet-Lite0, the default backbone: small, and fast without a GPU.

Its weights are in an ONNX file beside this module, which ``python -m release.network`` makes;
``efficientnet-lite0.txt`` names their authors and licence.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tagkin.errors import InvalidInput, StorageError
from tagkin.features.backbone import Backbone, Preprocessing, check_batch, fingerprint_of
from tagkin.features.model_files import sha256_of_file

if TYPE_CHECKING:
    from tagkin.features.onnx_sessions import Network

__all__ = ["NETWORK", "EfficientNetLite0"]

NETWORK = Path(__file__).with_name("efficientnet-lite0.onnx")
_SHA256 = "e81cfdf4374aac6c3b155e471aa092f3261528fe5a536968c7fbcf8b74036305"

_WHOLE = Preprocessing(288, "warp", scale=1.0, mean=(127.0,) * 3, std=(128.0,) * 3)
# How each backbone prepares photographs. The network was evaluated on the middle, with a margin of
# 32 pixels. It sees more at a higher resolution than it was trained with (Touvron et al., "Fixing
# the train-test resolution discrepancy", 2019).
_VARIANTS = {
    "efficientnet-lite0": replace(_WHOLE, size=224, resize="crop", short_side=256),
    "efficientnet-lite0-whole": _WHOLE,
}
_hash_once = functools.cache(sha256_of_file)


class EfficientNetLite0(Backbone):
    """EfficientNet-Lite0: 1,280 pooled features after ReLU6, none of them negative.

    Parameters
    ----------
    name : {"efficientnet-lite0-whole", "efficientnet-lite0"}
        The network sees the whole photograph, squeezed into a square of 288 pixels, or the middle
        of the photograph at its training size of 224.
    """

    dimension = 1280
    has_captions = True

    def __init__(self, name: str = "efficientnet-lite0-whole"):
        if name not in _VARIANTS:
            raise InvalidInput(f"name must be one of {', '.join(_VARIANTS)}; found {name!r}.")
        self.name = name
        self.preprocessing = _VARIANTS[name]
        if (digest := _hash_once(NETWORK)) != _SHA256:  # fails now, not at the first photograph
            raise StorageError(
                f"{NETWORK} is damaged: its SHA-256 is {digest}, expected {_SHA256}. Install "
                "tagkin again."
            )
        self.fingerprint = fingerprint_of(digest, self.preprocessing)
        self._opening = threading.Lock()
        self._opened: Network | None = None

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """Return features (n, 1280) of prepared photographs (n, size, size, 3)."""
        size = self.preprocessing.size
        check_batch(batch, self, (size, size))
        return self._network("features", {"pixels": batch})

    @property
    def _network(self) -> Network:
        """The network, opened only when needed, because features may be cached."""
        from tagkin.features.onnx_sessions import Network

        with self._opening:  # several threads may ask for it
            if self._opened is None:
                self._opened = Network(str(NETWORK), self.name)
            return self._opened
