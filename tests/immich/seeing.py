"""A stand-in of Immich's machine learning service: it serves small ONNX networks by its protocol.

A network of three numbers says nothing about the quality of a real one.
"""

import email
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tagkin.features import get_backbone

MODEL = "ViT-B-32__openai"


class Service:
    """The service, with an image encoder and its text encoder from a folder."""

    def __init__(self, folder: Path):
        self.encoder = get_backbone(str(folder / "image.onnx"))
        assert self.encoder.text_encoder is not None
        self.words = self.encoder.text_encoder
        self.n_images = 0
        self.texts: list[str] = []
        self.models: set[str] = set()
        self.spoil = lambda answer: answer
        """Changes an answer, or gives a status and bytes in its place."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    def __enter__(self) -> "Service":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def predict(self, form: dict[str, bytes]) -> dict[str, Any]:
        entries = json.loads(form["entries"])["clip"]
        ((part, entry),) = entries.items()
        self.models.add(entry["modelName"])
        if part == "textual":
            text = form["text"].decode()
            self.texts.append(text)
            words = text.removeprefix("a ").rstrip(".").split(" of a ")
            return {"clip": json.dumps(self.words([words[-1]])[0].tolist())}
        self.n_images += 1
        image = Image.open(io.BytesIO(form["image"])).convert("RGB")
        square = self.encoder.prepare(np.asarray(image))
        row = self.encoder(square[None])[0].tolist()
        return {"clip": json.dumps(row), "imageHeight": image.height, "imageWidth": image.width}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
                parts: Any = email.message_from_bytes(head + body).get_payload()
                place = "content-disposition"
                form = {
                    part.get_param("name", header=place): part.get_payload(decode=True)
                    for part in parts
                }
                assert self.path == "/predict"
                assert "x-api-key" not in self.headers
                answer = service.spoil(service.predict(form))
                status, data = (200, answer) if not isinstance(answer, tuple) else answer
                data = data if isinstance(data, bytes) else json.dumps(data).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        return Handler
