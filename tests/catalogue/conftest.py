"""A small folder of photographs, and a catalogue of it."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tagkin.catalogue import ACCEPTED, Catalogue, Filters, Scan, open_for_scan

from .photographs import sidecar_text
from .suggested import offer


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Catalogues of a test are its own."""
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    return tmp_path / "data"


class Folder:
    """Photographs that are files with some bytes: what is in them is for others to say."""

    def __init__(self, root: Path):
        self.root = root

    def put(self, name: str, content: str, tags: list[str] | None = None) -> Path:
        """A photograph, with a sidecar where it has tags; not of a moment ago."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\xff\xd8" + content.encode() + b"\xff\xd9")
        self.age(path)
        if tags is not None:
            self.tag(name, tags)
        return path

    def tag(self, name: str, tags: list[str]) -> Path:
        sidecar = self.root / f"{name}.xmp"
        sidecar.write_text(sidecar_text(tags))
        self.age(sidecar)
        return sidecar

    def age(self, path: Path, seconds: float = 100) -> None:
        """Let a file be older than what may change again at the same time."""
        self._times = getattr(self, "_times", 0) + 1
        moment = time.time() - seconds + self._times / 1000
        os.utime(path, (moment, moment))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    photographs = Folder(tmp_path / "photos")
    photographs.put("a.jpg", "a", ["beach", "sea"])
    photographs.put("b.jpg", "b", ["beach"])
    photographs.put("2024/c.jpg", "c", ["dog"])
    photographs.put("2024/d.jpg", "d")
    return photographs


@pytest.fixture
def catalogue(folder: Folder) -> Iterator[Catalogue]:
    with open_for_scan(folder.root) as opened:
        opened.scan()
        yield opened


@pytest.fixture
def accepted(catalogue: Catalogue) -> Catalogue:
    """The catalogue, with the surest suggestions accepted."""
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.6))
    return catalogue


@pytest.fixture
def rescan(catalogue: Catalogue) -> Callable[[], Scan]:
    return lambda: catalogue.scan()
