"""A review that runs, for a window to look at."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from tagkin.catalogue import Catalogue
from tagkin.server import Review
from tagkin.server.mapping import map_path

from .browser import Running
from .window import TAGS, make_catalogue


@dataclass(frozen=True)
class Served:
    """A running review of photographs that each have a suggestion of every tag."""

    catalogue: Catalogue
    review: Review
    running: Running
    contents: list[int]
    tags: dict[str, int]

    @property
    def address(self) -> str:
        return self.running.access.address(self.running.port)

    def decisions(self) -> dict[tuple[int, str], int]:
        """Return the verdict on each content and tag, as the catalogue has it."""
        with self.review.readers.connection() as catalogue:
            rows = catalogue.database.rows(
                "SELECT d.content, t.name, d.verdict FROM decisions d JOIN tags t ON t.id = d.tag "
                "WHERE d.holds"
            )
        return {(content, tag): verdict for content, tag, verdict in rows}

    def decided(self, verdict: int) -> set[tuple[int, str]]:
        """Return the contents and tags with this verdict."""
        return {pair for pair, other in self.decisions().items() if other == verdict}

    def undo_all(self) -> None:
        while self.review.change(lambda c: c.decisions.undo_last()).run is not None:
            pass


@contextmanager
def serve(
    home: Path, n: int, prepare: Callable[[Catalogue, list[int]], None] = lambda *_: None
) -> Iterator[Served]:
    """Review `n` photographs and a broken file; `prepare` changes the catalogue before."""
    catalogue = make_catalogue(home / "photos", home / "catalogue.sqlite", n)
    contents = [
        content for (content,) in catalogue.database.rows("SELECT id FROM contents ORDER BY id")
    ]
    prepare(catalogue, contents)
    review = Review(catalogue, home / "cache", fits=False)
    running = Running(review)
    yield Served(catalogue, review, running, contents, catalogue.tags.numbers_of(TAGS))
    running.stop()
    review.close()


def put_map(catalogue: Catalogue, contents: list[int]) -> None:
    """Put all photographs on a line of the map, from left to right."""
    n = len(contents)
    line = np.stack([np.linspace(0, 1, n), np.full(n, 0.5)], axis=1).astype(np.float32)
    rng = np.random.default_rng(0)
    arrays = {
        "contents": np.array(contents),
        "embeddings": rng.normal(size=(n, 4)).astype(np.float16),
        "drawn": np.arange(n),
        "positions": line,
        "colours": np.zeros(n, np.int64),
    }
    data = save(arrays, {"model": "f", "tags": json.dumps(["beach"])})
    map_path(catalogue.path).write_bytes(data)
