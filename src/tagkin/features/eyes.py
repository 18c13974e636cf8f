"""The eyes of an Immich server as a backbone: its machine learning service.

`store_eyes` keeps which service a person chose; a model only says ``immich``, so a model from
somebody else leads to no address.
"""

from __future__ import annotations

import io
import json
import os
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image
from platformdirs import user_data_dir

from tagkin.errors import InvalidInput, ServerError, StorageError
from tagkin.features.backbone import Backbone, Preprocessing, check_batch, fingerprint_of
from tagkin.features.text_encoder import TextEncoder, TextSettings
from tagkin.filesystem import make_private_folder, write_whole
from tagkin.immich.client import UnusableAnswer, check_address
from tagkin.immich.eyes_service import EyesService

__all__ = ["Eyes", "ImmichEyes", "choose_eyes", "store_eyes"]

_MODEL = "ViT-B-32__openai"  # Immich's own choice
_SIZE = 448  # pixels: more than the networks see, so they scale it themselves


@dataclass(frozen=True)
class Eyes:
    """A machine learning service, and the network in it."""

    address: str
    model: str
    dimension: int


def choose_eyes(text: str) -> Eyes:
    """Return the service at an address, which answers; ``#MODEL`` after it names its network.

    Raises
    ------
    InvalidInput, ServerError
        If it is not an address, or if the service does not answer as Immich's does.
    """
    place, _, model = text.partition("#")
    service = EyesService(check_address(place), model or _MODEL)
    dimension = len(_see_grey(service))
    if len(service.embed_text("a photo of a dog.")) != dimension:
        raise ServerError(f"{service.model} has other vectors for texts than for photographs.")
    return Eyes(service.address, service.model, dimension)


def store_eyes(eyes: Eyes | None) -> None:
    """Keep the chosen service for this user alone, or forget it."""
    path = _eyes_file()
    if eyes is None:
        path.unlink(missing_ok=True)
        return
    make_private_folder(path.parent)
    write_whole(path, json.dumps(asdict(eyes)).encode(), private=True)


def _eyes_file() -> Path:
    folder = os.environ.get("TAGKIN_CATALOGUES") or user_data_dir("tagkin", appauthor=False)
    return Path(folder).expanduser() / "eyes.json"


def _read_eyes() -> Eyes:
    path = _eyes_file()
    try:
        eyes = Eyes(**json.loads(path.read_bytes()))
        return Eyes(check_address(eyes.address), str(eyes.model), int(eyes.dimension))
    except FileNotFoundError as error:
        raise InvalidInput(
            "No eyes are connected. Connect them: tagkin connect immich ADDRESS --eyes ADDRESS"
        ) from error
    except (OSError, ValueError, TypeError) as error:
        raise StorageError(
            f"{path} cannot be read ({error}). Connect again with --eyes."
        ) from error


class ImmichEyes(Backbone):
    """The network of the chosen service. Photographs go there as squares, without loss."""

    batch_size = 4  # a batch is kept in the cache at once, so little is lost

    def __init__(self, name: str):
        eyes = _read_eyes()
        self.name, self.dimension = name, eyes.dimension
        self.preprocessing = Preprocessing(size=_SIZE)
        self.fingerprint = fingerprint_of(
            "Immich's eyes", eyes.model, str(eyes.dimension), self.preprocessing
        )
        self._service = EyesService(eyes.address, eyes.model)

    @cached_property
    def text_encoder(self) -> TextEncoder:
        """The half of the network that reads words."""
        return _Words(self._service, self.dimension)

    def __call__(self, batch: np.ndarray) -> np.ndarray:
        """Return features (n, dimension) of prepared photographs (n, 448, 448, 3).

        A row is not finite if the service fails at that photograph, but not at others.
        """
        check_batch(batch, self, (_SIZE, _SIZE))
        return np.stack([self._see(pixels) for pixels in batch])

    def _see(self, pixels: np.ndarray) -> np.ndarray:
        """Return the features of a photograph; not finite if the service fails at this one."""
        try:
            row = self._service.embed_image(_encode(pixels))
        except UnusableAnswer as error:
            try:
                _see_grey(self._service)
            except ServerError:
                raise error from None  # it fails at every picture
            return np.full(self.dimension, np.nan, dtype=np.float32)
        return _check_length(row, self.dimension, self._service)


class _Words(TextEncoder):
    """Embeddings of names by the service, in the sentence that CLIP was measured with."""

    def __init__(self, service: EyesService, dimension: int):
        self.settings = TextSettings(model=service.model, tokenizer=service.model)
        self._service, self._dimension = service, dimension
        self._known: dict[str, np.ndarray] = {}

    def _run(self, text: str) -> np.ndarray:
        return _check_length(self._service.embed_text(text), self._dimension, self._service)


def _see_grey(service: EyesService) -> np.ndarray:
    """Return the vector of a grey square, at which no service fails that works."""
    grey = np.full((_SIZE, _SIZE, 3), 128, dtype=np.uint8)
    return service.check_finite(service.embed_image(_encode(grey)))


def _check_length(row: np.ndarray, dimension: int, service: EyesService) -> np.ndarray:
    if len(row) != dimension:
        raise ServerError(
            f"{service.address} answers with {len(row)} numbers; {service.model} had {dimension}. "
            "Connect again with --eyes."
        )
    return row


def _encode(pixels: np.ndarray) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG", compress_level=1)
    return out.getvalue()
