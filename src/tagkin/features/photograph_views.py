"""Mean features of several views of a photograph, which depend less on the crop."""

from __future__ import annotations

import numpy as np

from tagkin.errors import InvalidInput
from tagkin.features.backbone import Backbone, check_batch, fingerprint_of
from tagkin.features.text_encoder import TextEncoder

__all__ = ["MAX_VIEWS", "Views"]

# Whether to use the backbone's other mode (middle or whole), and whether to mirror. The most useful
# view comes first: another mode shows more of the photograph, a mirrored view shows the same.
_VIEWS = ((False, False), (True, False), (False, True), (True, True))
MAX_VIEWS = len(_VIEWS)
_OTHER = {"crop": "warp", "warp": "crop"}


class Views(Backbone):
    """The mean of the features of several views.

    The views are, in this order, the backbone's own view (the middle of the photograph, if its
    preprocessing is "crop"), the other mode's view (the whole photograph, squeezed into the
    square), and both mirrored. 2 to 4 views take 2 to 4 times as long. A prepared photograph is its
    views side by side.
    """

    def __init__(self, backbone: Backbone, n_views: int):
        if not 2 <= n_views <= MAX_VIEWS:
            raise InvalidInput(
                f"n_views must be a whole number from 2 to {MAX_VIEWS}; found {n_views!r}."
            )
        if isinstance(backbone, Views):
            raise InvalidInput(
                f"{backbone.name} already has several views. Choose the number once."
            )
        self._backbone, self._views = backbone, _VIEWS[:n_views]
        self.name = f"{backbone.name}@{n_views}"
        self.dimension = backbone.dimension
        self.preprocessing = backbone.preprocessing
        self.batch_size = backbone.batch_size
        self.fingerprint = fingerprint_of("mean of views", repr(self._views), backbone.fingerprint)

    def prepare(self, pixels: np.ndarray, *, resize: str | None = None) -> np.ndarray:
        """Return all views of one photograph (h, w, 3), side by side."""
        own = resize or self.preprocessing.resize
        return np.concatenate(
            [
                self._backbone.prepare(
                    pixels[:, ::-1] if mirrored else pixels, resize=_OTHER[own] if other else own
                )
                for other, mirrored in self._views
            ],
            axis=1,
        )

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """Return features (n, dimension) of prepared photographs."""
        n_views = len(self._views)
        height, width = batch.shape[1], batch.shape[2] // n_views
        check_batch(batch, self, (height, n_views * width))
        mean = np.zeros((len(batch), self.dimension), dtype=np.float32)
        for k in range(n_views):
            view = np.ascontiguousarray(batch[:, :, k * width : (k + 1) * width])
            mean += self._backbone(view) / n_views
        return mean

    @property
    def text_encoder(self) -> TextEncoder | None:
        """The backbone's text encoder."""
        return self._backbone.text_encoder

    @property
    def caption_columns(self) -> slice | None:
        """The backbone's own, because a mean over views is like a mean over positions."""
        return self._backbone.caption_columns
