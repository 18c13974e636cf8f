"""The interface of backbones, which turn pixels into one feature vector per photograph."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from PIL import Image

from tagkin.errors import InvalidInput
from tagkin.records.forms import check_record
from tagkin.records.rules import AxisSizes, Choice, ListOf, Number, Refused, Whole

if TYPE_CHECKING:  # few backbones have one
    from tagkin.features.text_encoder import TextEncoder

__all__ = ["Backbone", "Preprocessing"]

_RESAMPLING = {
    "bicubic": Image.Resampling.BICUBIC,
    "bilinear": Image.Resampling.BILINEAR,
}
_MAX_SIDE = 1 << 14  # pixels


@dataclass(frozen=True)
class Preprocessing:
    """How a photograph becomes the input of a network.

    Parameters
    ----------
    size : int
        Height and width of the input.
    resize : {"crop", "warp"}
        ``crop`` keeps the proportions: it scales the shorter side to `short_side` and cuts out
        the middle. ``warp`` squeezes the whole photograph into the square.
    short_side : int or None
        Length of the shorter side before the middle is cut out; None means `size`.
    resample : {"bicubic", "bilinear"}
    scale : float
    mean, std : three floats
        A pixel value v from 0 to 255 becomes (scale · v − mean) / std, in each channel.
    """

    size: Annotated[int, Whole(1, _MAX_SIDE)]
    resize: Annotated[str, Choice(("crop", "warp"))] = "crop"
    short_side: Annotated[int | None, Whole(1, _MAX_SIDE)] = None
    resample: Annotated[str, Choice(tuple(_RESAMPLING))] = "bicubic"
    scale: Annotated[float, Number(above=0)] = 1 / 255
    mean: Annotated[Sequence[float], ListOf(Number())] = (0.0, 0.0, 0.0)
    std: Annotated[Sequence[float], ListOf(Number(above=0))] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        for name in ("mean", "std"):
            if isinstance(values := getattr(self, name), Sequence):
                object.__setattr__(self, name, list(values))
        try:
            check_record(self, AxisSizes(), "settings")
        except Refused as error:
            raise InvalidInput(f"{error}.") from error
        if len(self.mean) != 3 or len(self.std) != 3:
            raise InvalidInput("mean and std are three numbers each, one per channel.")
        if self.short_side is not None and (self.resize == "warp" or self.short_side < self.size):
            raise InvalidInput('short_side goes with resize "crop", and is at least size.')
        for name in ("mean", "std"):  # 0 and 0.0 have one fingerprint
            object.__setattr__(self, name, tuple(map(float, getattr(self, name))))

    @property
    def min_side(self) -> int:
        """Minimum length of the shorter side of a decoded photograph.

        It is 1.5 times the length that the network needs, because a JPEG decoder scales
        coarsely, and a photograph in two sizes should have similar features.
        """
        return -(-3 * (self.short_side or self.size) // 2)

    def prepare(self, pixels: np.ndarray) -> np.ndarray:
        """Return the uint8 square (size, size, 3) that the network sees of pixels (h, w, 3)."""
        height, width = pixels.shape[:2]
        box = (0.0, 0.0, float(width), float(height))
        if self.resize == "crop":
            # resample only the middle, with the scale of the whole photograph
            side = self.size * min(height, width) / (self.short_side or self.size)
            left, top = (width - side) / 2, (height - side) / 2
            if side == self.size:  # no resampling needed, so crop at whole pixels
                left, top = round(left), round(top)
                return np.ascontiguousarray(pixels[top : top + self.size, left : left + self.size])
            box = (left, top, left + side, top + side)
        elif height == width == self.size:
            return np.ascontiguousarray(pixels)
        square = (self.size, self.size)
        return np.asarray(Image.fromarray(pixels).resize(square, _RESAMPLING[self.resample], box))

    def normalize(self, batch: np.ndarray) -> np.ndarray:
        """Convert uint8 squares (n, size, size, 3) to float32 input (n, 3, size, size)."""
        numbers = batch.astype(np.float32)
        numbers *= np.float32(self.scale)
        numbers -= np.array(self.mean, dtype=np.float32)
        numbers /= np.array(self.std, dtype=np.float32)
        return np.ascontiguousarray(numbers.transpose(0, 3, 1, 2))


class Backbone(ABC):
    """A network that turns photographs into feature vectors.

    Features do not depend on the other photographs of a batch, up to rounding. A call runs in
    the calling thread, and several threads may call at once.
    """

    name: str
    """Name for `get_backbone`."""
    dimension: int
    """Length of a feature vector."""
    fingerprint: str
    """Hash of weights, graph and preprocessing; with the same hash, features are the same."""
    preprocessing: Preprocessing
    batch_size: int = 4
    """Smallest number of photographs per call that runs at full speed on a CPU."""
    has_captions: bool = False
    """Whether the map from photographs to words was learned for these features."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}, {self.dimension} features>"

    @property
    def text_encoder(self) -> TextEncoder | None:
        """The text encoder that was trained together with the network, or None."""
        return None

    @property
    def min_side(self) -> int:
        """Minimum length of the shorter side of a decoded photograph."""
        return self.preprocessing.min_side

    def prepare(self, pixels: np.ndarray) -> np.ndarray:
        """Return the uint8 input of a call for one photograph, as `Preprocessing.prepare` does."""
        return self.preprocessing.prepare(pixels)

    @abstractmethod
    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """Return float32 features (n, dimension) of prepared photographs (n, height, width, 3)."""


def fingerprint_of(*parts: bytes | str | Preprocessing) -> str:
    """Return one hash of everything that features depend on."""
    combined = hashlib.sha256()
    for part in parts:
        if isinstance(part, Preprocessing):
            part = json.dumps(asdict(part) | {"min_side": part.min_side}, sort_keys=True)
        data = part.encode() if isinstance(part, str) else part
        combined.update(hashlib.sha256(data).digest())
    return combined.hexdigest()


def check_batch(batch: np.ndarray, backbone: Backbone, shape: tuple[int, int]) -> None:
    """Reject anything but prepared photographs."""
    if batch.dtype != np.uint8 or batch.ndim != 4 or batch.shape[1:] != (*shape, 3):
        raise InvalidInput(
            f"{backbone.name} takes uint8 pixels of shape (n, {shape[0]}, {shape[1]}, 3) from "
            f"its `prepare`; found {batch.dtype} of shape {batch.shape}."
        )
