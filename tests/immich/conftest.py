"""An Immich of our own with a few photographs, and its collection."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.catalogue.known_catalogues import server_folder
from tagkin.immich import Connection, store_connection

from .serving import KEY, Immich, Photo


def picture(seed: int, size: tuple[int, int] = (160, 120)) -> bytes:
    """Return a JPEG that no other seed has."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC).save(out, "JPEG", quality=90)
    return out.getvalue()


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    monkeypatch.setenv("TAGKIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tagkin.immich.http.PAUSES", (0.01, 0.01, 0.01))
    return tmp_path / "data"


@pytest.fixture
def immich() -> Iterator[Immich]:
    with Immich() as server:
        yield server


@pytest.fixture
def photos(immich: Immich) -> list[Photo]:
    """Six photographs, three of them with tags."""
    tags = [("animals/dog",), ("animals/dog", "beach"), ("animals",), (), (), ()]
    return [immich.upload(f"IMG_{i}.HEIC", picture(i), tags[i]) for i in range(6)]


@pytest.fixture
def open_collection(immich: Immich) -> Callable[[], Catalogue]:
    """Return a function that opens the collection of the server."""
    folder = server_folder("immich")
    store_connection(folder, Connection(immich.address, KEY))
    return lambda: open_for_scan(folder)


@pytest.fixture
def catalogue(photos: list[Photo], open_collection: Callable[[], Catalogue]) -> Iterator[Catalogue]:
    with open_collection() as opened:
        opened.scan()
        yield opened


def path_of(catalogue: Catalogue, photo: Photo) -> str:
    """Return where a photograph is in the catalogue."""
    rows = catalogue.photographs.search(photo.name.rpartition(".")[0])
    (path,) = {path for _, path, _ in rows}
    return path
