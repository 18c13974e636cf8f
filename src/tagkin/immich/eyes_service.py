"""Immich's machine learning service, which turns pictures and texts into vectors of one space.

It listens on port 3003, without a key. A request is a form: ``entries`` names the model, such as
``{"clip": {"visual": {"modelName": "ViT-B-32__openai"}}}``, and ``image`` or ``text`` follows. The
answer has the vector under ``clip``, as a list or as JSON in a text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection

import numpy as np

from tagkin.errors import ServerError
from tagkin.immich.client import UnusableAnswer
from tagkin.immich.http import BUSY, Host, one_line
from tagkin.version import __version__

__all__ = ["EyesService"]

_MOST = 16_384  # numbers of a vector


class EyesService:
    """A machine learning service, and one of its models."""

    def __init__(self, address: str, model: str):
        self.address, self.model = address, model
        self._host = Host(address, {"user-agent": f"tagkin/{__version__}"})

    def embed_image(self, data: bytes) -> np.ndarray:
        """Return the vector (d,) of a picture in a file format; it may not be finite.

        Raises
        ------
        UnusableAnswer
            If the service refuses the picture, or fails at it.
        """
        return self._predict("visual", "image", data, BUSY - {500})

    def embed_text(self, text: str) -> np.ndarray:
        """Return the vector (d,) of a text."""
        data = text.encode(errors="replace")
        return self.check_finite(self._predict("textual", "text", data, BUSY))

    def check_finite(self, row: np.ndarray) -> np.ndarray:
        """Return a vector of the service; reject one that is not finite."""
        if not np.isfinite(row).all():
            raise ServerError(
                f"{self.address} answers with numbers that are not finite (model {self.model})."
            )
        return row

    def _predict(self, part: str, field: str, data: bytes, busy: Collection[int]) -> np.ndarray:
        entries = json.dumps({"clip": {part: {"modelName": self.model}}}).encode()
        boundary = secrets.token_hex(16)
        name = '; filename="image.png"' if field == "image" else ""
        body = b"".join(
            (
                f'--{boundary}\r\nContent-Disposition: form-data; name="entries"\r\n\r\n'.encode(),
                entries,
                f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="{field}"'.encode(),
                f"{name}\r\n\r\n".encode(),
                data,
                f"\r\n--{boundary}--\r\n".encode(),
            )
        )
        kind = f"multipart/form-data; boundary={boundary}"
        answer = self._host.request("POST", "predict", body, kind, busy)
        if answer.status != 200:
            said = one_line(answer.data[:200].decode(errors="replace"))
            error_class = UnusableAnswer if answer.status >= 400 else ServerError
            raise error_class(
                f"{self.address} answers {answer.status} for the model {self.model}: {said}"
            )
        try:
            vector = json.loads(answer.data)["clip"]
            vector = json.loads(vector) if isinstance(vector, str) else vector
            with np.errstate(over="ignore"):
                row = np.array(vector, dtype=np.float64).astype(np.float32)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise self._nonsense(type(error).__name__) from error
        if row.ndim != 1 or not 2 <= len(row) <= _MOST:
            raise self._nonsense(f"numbers of shape {row.shape}")
        return row

    def _nonsense(self, found: str) -> ServerError:
        return ServerError(
            f"{self.address} does not answer as Immich's machine learning does ({found}). It "
            "usually has the port 3003."
        )
