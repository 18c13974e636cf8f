"""A small folder of pictures, a catalogue with suggestions, and a review of it that runs."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from PIL import Image

from tagkin.catalogue import Catalogue, open_for_scan
from tagkin.server import Review
from tests.catalogue.photographs import sidecar_text
from tests.catalogue.suggested import content, offer

from .browser import Browser, Running
from .served import Served
from .window import Window, chromium

MARKUP = "<script>alert(1)</script>"
TAGS = {"a.jpg": ["beach", "sea"], "b.jpg": ["beach"], "2024/c.jpg": ["dog"], "2024/d.jpg": []}
OFFERED = {
    "a.jpg": {"holiday": 0.95, "dog": 0.3},
    "b.jpg": {"holiday": 0.7, "sea": 0.9, MARKUP: 0.2},
    "2024/c.jpg": {"beach": 0.55},
    "2024/d.jpg": {"beach": 0.92, "sea": 0.6, "dog": 0.2},
}


def put_photograph(path: Path, colour: int, tags: list[str]) -> None:
    """A picture wider than high, that is stored upright and turned by its orientation."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.full((40, 60, 3), colour, np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save(path, exif=exif)
    if tags:
        path.with_name(f"{path.name}.xmp").write_text(sidecar_text(tags))
    moment = time.time() - 100
    for other in path.parent.glob(f"{path.name}*"):
        os.utime(other, (moment, moment))


@pytest.fixture(scope="package", autouse=True)
def _not_at_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Catalogues that several tests share are not remembered in the user's own folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TAGKIN_CATALOGUES", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(autouse=True)
def data_folder(tmp_path: Path, shared_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Catalogues of a test are its own."""
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    monkeypatch.setenv("TAGKIN_CACHE", str(shared_cache))
    return tmp_path / "data"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return put_photographs(tmp_path / "photos")


def put_photographs(folder: Path) -> Path:
    for colour, (name, tags) in enumerate(TAGS.items()):
        put_photograph(folder / name, 40 * colour + 20, tags)
    (folder / f"{MARKUP.replace('/', '_')}.jpg").write_bytes(b"\xff\xd8 no picture \xff\xd9")
    return folder


def tag(catalogue: Catalogue, name: str) -> int:
    return catalogue.database.value("SELECT id FROM tags WHERE name = ?", (name,))


# A test has its own catalogue, review and server. With `usefixtures("shared")`, all tests of a
# module have the same.


@pytest.fixture
def catalogue(request: pytest.FixtureRequest) -> Iterator[Catalogue]:
    if "shared" in request.fixturenames:
        yield request.getfixturevalue("shared").catalogue
    else:
        with with_suggestions(request.getfixturevalue("root")) as opened:
            yield opened


@contextmanager
def with_suggestions(root: Path) -> Iterator[Catalogue]:
    """Open for writing, with suggestions and doubts; the review closes it."""
    opened = open_for_scan(root, command="review")
    opened.scan()
    run = offer(opened, OFFERED)
    with opened.database.transaction():
        for path, name, kind, sure in (
            ("a.jpg", "sea", "wrong", 0.9),
            ("2024/d.jpg", "beach", "missing", 0.8),
        ):
            pair = content(opened, path), tag(opened, name)
            opened.database.execute(
                "INSERT INTO doubts VALUES (?, ?, ?, ?, ?, x'')", (*pair, run, kind, sure)
            )
    yield opened
    opened.close()


@pytest.fixture
def review(
    request: pytest.FixtureRequest, catalogue: Catalogue, tmp_path: Path
) -> Iterator[Review]:
    if "shared" in request.fixturenames:
        yield request.getfixturevalue("shared").review
    else:
        review = Review(catalogue, tmp_path / "cache", fits=False)
        yield review
        review.close()


@pytest.fixture
def running(request: pytest.FixtureRequest, review: Review) -> Iterator[Running]:
    if "shared" in request.fixturenames:
        yield request.getfixturevalue("shared").running
    else:
        running = Running(review)
        yield running
        running.stop()


class Shared(NamedTuple):
    """A review that runs, and its catalogue."""

    catalogue: Catalogue
    review: Review
    running: Running


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """One for all tests of a module, which change nothing or take it back."""
    home = tmp_path_factory.mktemp("shared")
    with with_suggestions(put_photographs(home / "photos")) as catalogue:
        review = Review(catalogue, home / "cache", fits=False)
        running = Running(review)
        yield Shared(catalogue, review, running)
        running.stop()
        review.close()


@pytest.fixture(scope="package")
def chrome() -> Iterator[Any]:
    """A real browser, for these tests alone: while it is there, no other loop of events can run."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def opened(chrome: Any, served: Served) -> Iterator[Window]:
    """One window for all tests: each new one is a process that compiles the page's code anew."""
    window = Window(chrome, served.address)
    yield window
    window.close()


@pytest.fixture
def window(opened: Window, served: Served) -> Iterator[Window]:
    """A window on a module's review, as for somebody who comes for the first time."""
    opened.start_again()
    yield opened
    served.undo_all()
    assert opened.faults == []


@pytest.fixture
def browser(running: Running) -> Browser:
    """That of the person who started the review."""
    opened = Browser(running.port)
    opened.open(running.access.key)
    return opened
