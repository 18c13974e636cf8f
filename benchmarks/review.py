"""The review page at 100,000 photographs, while a fit runs in the background.

``python -m benchmarks.review [PHOTOGRAPHS [REPEATS]]`` prints JSON. The catalogue is that of
`benchmarks.catalogue`; features of the photographs, which are a few bytes each, are put into the
cache, so that a whole fit runs. Then `tagkin review` is started as a person would, a fit is asked
for, and every page and every request of a script is asked for a hundred times over HTTP, each time
for another tag or photograph. Thumbnails are those of 12-megapixel photographs.
"""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from PIL import Image

from benchmarks.catalogue import make_folder, put_everything
from benchmarks.process import say
from tagkin.annotator import Annotator
from tagkin.catalogue import Catalogue, open_catalogue, open_for_scan
from tagkin.features import FeatureCache, get_backbone
from tagkin.images import content_digest
from tagkin.server.thumbnail_cache import Thumbnails

N_PHOTOS, N_LEARNED, PATIENCE = 40, 3000, 300
SIZE = (4000, 3000)  # 12 megapixels


class Person:
    """A browser with one connection that stays open."""

    def __init__(self, address: str, process: int):
        self.address, self.process = address, process
        self._threads = Path(f"/proc/{process}/task")
        parts = urlsplit(address)
        self.connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self.headers: dict[str, str] = {}
        self.connection.request("GET", f"/?{parts.query}")
        answer = self.connection.getresponse()
        answer.read()
        self.headers = {"Cookie": (answer.getheader("set-cookie") or "").partition(";")[0]}
        self.folder = (answer.getheader("location") or "").removesuffix("/")

    def ask(self, path: str, body: Any = None) -> bytes:
        """A page, or what came of a request with a body."""
        headers = dict(self.headers)
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        method = "GET" if data is None else "POST"
        self.connection.request(method, self.folder + path, data, headers)
        answer = self.connection.getresponse()
        found = answer.read()
        if answer.status == 303:
            return self.ask(f"/{answer.getheader('location')}")
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {found[:200]!r}")
        return found

    def cpu(self) -> float:
        """Seconds in which a processor was at work for the server."""
        return (
            sum(int((one / "schedstat").read_text().split()[0]) for one in self._threads.iterdir())
            / 1e9
        )

    def json(self, path: str, body: Any = None) -> Any:
        """The same, read."""
        return json.loads(self.ask(path, body))


def put_features(catalogue: Catalogue, cache: Path) -> None:
    """Features that have to do with the tags, for every photograph."""
    rng = np.random.default_rng(2)
    backbone = get_backbone()
    every = catalogue.photographs.with_tags()
    of_tag: dict[str, np.ndarray] = {}
    with FeatureCache(cache) as kept:
        for start in range(0, len(every), 2000):
            block = every[start : start + 2000]
            rows = rng.normal(size=(len(block), backbone.dimension)).astype(np.float32)
            for row, one in zip(rows, block, strict=True):
                for tag in one.tags:
                    if tag not in of_tag:
                        of_tag[tag] = rng.normal(size=backbone.dimension).astype(np.float32)
                    row += of_tag[tag]
            kept.store(backbone, [one.digest for one in block], np.maximum(rows, 0))


def put_model(catalogue: Catalogue) -> None:
    """A model that was learned from some of the photographs, as a former run would have."""
    some = [one for one in catalogue.photographs.with_tags() if one.tags][:N_LEARNED]
    annotator = Annotator(names=False)
    with catalogue.database.run("train") as run:
        annotator.fit([one.file for one in some], [one.tags for one in some])
        annotator.save(catalogue.model.folder)
        run.model = catalogue.model.load()[1]


@contextmanager
def reviewed(catalogue: Path) -> Iterator[tuple[Person, float]]:
    """`tagkin review` in a process of its own, and the seconds until it answers."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "tagkin", "review", "--no-browser", "--port", "0", "--json"]
    process = subprocess.Popen(
        [*command, "--catalogue", str(catalogue)], stdout=subprocess.PIPE, text=True
    )
    try:
        line = process.stdout.readline() if process.stdout else ""
        person = Person(json.loads(line)["address"], process.pid)
        person.ask("/tags")
        yield person, time.perf_counter() - start
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def calls(person: Person, catalogue: Catalogue) -> dict[str, Callable[[], Any]]:
    """What a browser asks, each time for something else."""
    rng = random.Random(0)  # noqa: S311
    contents = [content for (content,) in catalogue.database.rows("SELECT id FROM contents")]
    tags = [tag.id for tag in catalogue.tags.list_all()]
    often = tags[:20]
    grid: dict[str, Any] = {}

    def next_grid() -> None:
        tag = rng.choice(often)
        shown = person.json(f"/api/v1/tags/{tag}/suggestions")["suggestions"]
        pairs = [[one["content"], tag] for one in shown]
        grid["body"] = {"accept": pairs[2:], "reject": pairs[:2], "only_open": True}

    def decide() -> None:
        person.ask("/api/v1/decisions", grid["body"])

    return {
        "page: by tag": lambda: person.ask("/tags"),
        "page: one tag, 60 photographs": lambda: person.ask(f"/tags/{rng.choice(often)}"),
        "page: one photograph": lambda: person.ask(f"/photographs/{rng.choice(contents)}"),
        "page: the best event": lambda: person.ask("/events"),
        "page: one event": lambda: person.ask(f"/events/{rng.choice(contents)}"),
        "page: doubtful": lambda: person.ask("/doubtful"),
        "page: search, a tag": lambda: person.ask(f"/search?tag={rng.choice(tags)}"),
        "page: by tag, one folder": lambda: person.ask(f"/tags?folder={rng.randint(2000, 2001)}"),
        "page: one tag, one folder": lambda: person.ask(
            f"/tags/{rng.choice(often)}?folder={rng.randint(2000, 2001)}"
        ),
        "page: choices of filters": lambda: person.ask(f"/filters?tag={rng.choice(often)}"),
        "page: write": lambda: person.ask("/write"),
        "page: overview": lambda: person.ask("/overview"),
        "state": lambda: person.ask("/api/v1/state"),
        "tags": lambda: person.ask("/api/v1/tags"),
        "60 suggestions": next_grid,
        "58 accepted, 2 rejected": decide,
        "undo of them": lambda: person.ask("/api/v1/undo", {}),
        "completion of a tag": lambda: person.ask(
            f"/api/v1/tags/complete?text={rng.randint(1, 99)}"
        ),
        "60 doubts": lambda: person.ask("/doubtful"),
        "page: search by name": lambda: person.ask(f"/search?name=IMG_0{rng.randint(10, 99)}"),
        "page: search without tags": lambda: person.ask("/search?untagged=true"),
    }


def learning(person: Person) -> None:
    """Ask for a fit, and wait until it has read what it learns from."""
    while person.json("/api/v1/state")["fit"]["state"] == "running":
        time.sleep(1)  # at the map
    person.ask("/api/v1/fit", {})
    for _ in range(PATIENCE):
        fit = person.json("/api/v1/state")["fit"]
        if fit["state"] != "running" or fit["what"] == "Learning":
            break
        time.sleep(1)
    say(f"the fit: {fit}")


def timed(work: Callable[[], Any]) -> float:
    """Seconds of some work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def asked(person: Person, catalogue: Catalogue, repeats: int) -> dict[str, dict[str, list[float]]]:
    """Every call many times, in turn, so that all of them meet all parts of a fit."""
    every = calls(person, catalogue)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in every}
    for work in every.values():
        work()
    for _ in range(repeats):
        for name, work in every.items():
            before = person.cpu()
            seconds = timed(work)
            times[name].append((seconds, person.cpu() - before))
    return {
        name: {
            kind: np.quantile(np.array(some)[:, column], [0.5, 0.95]).tolist()
            for column, kind in enumerate(("seconds", "cpu_seconds"))
        }
        for name, some in times.items()
    }


def thumbnails(folder: Path) -> dict[str, float]:
    """Thumbnails per second: made, and served again."""
    small = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    path = folder / "one.jpg"
    Image.fromarray(small).resize(SIZE, Image.Resampling.BICUBIC).save(path, quality=90)
    data = path.read_bytes()
    wanted = []
    for number in range(N_PHOTOS):
        file = folder / f"{number}.jpg"
        file.write_bytes(data + b"%d" % number)
        wanted.append((str(file), content_digest(file.read_bytes()), 256))
    kept = Thumbnails(folder / "cache")
    made = timed(lambda: [kept.picture(*one) for one in wanted])
    again = timed(lambda: [kept.picture(*one) for _ in range(20) for one in wanted])
    kept.close()
    return {"made": N_PHOTOS / made, "again": 20 * N_PHOTOS / again, "bytes": float(len(data))}


@contextmanager
def collection(
    n: int, add: Callable[[Path], None] = lambda folder: None
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The catalogue of n photographs, and those that `add` makes, with a model; what it has."""
    with tempfile.TemporaryDirectory() as home:
        root, path = Path(home, "photographs"), Path(home, "catalogue.sqlite")
        os.environ["TAGKIN_CATALOGUES"] = home
        os.environ["TAGKIN_CACHE"] = str(Path(home, "cache"))
        say(f"making {n:,} photographs")
        make_folder(root, n)
        add(root)
        with open_for_scan(root, path) as catalogue:
            catalogue.scan()
            say("features, and a model")
            put_features(catalogue, Path(home, "cache"))
            put_model(catalogue)
            n_suggestions = put_everything(catalogue)
            say(f"{n_suggestions:,} suggestions")
        yield path, {"photographs": n, "suggestions": n_suggestions}


def measure(n: int = 100_000, repeats: int = 100) -> dict[str, Any]:
    """The second start, every call while a fit runs, thumbnails."""
    with collection(n) as (path, found):
        with reviewed(path) as (person, started), open_catalogue(path) as catalogue:
            found["start_seconds"] = started
            say(f"answers after {started:.1f} s")
            learning(person)
            start = time.perf_counter()
            found["calls"] = asked(person, catalogue, repeats)
            found["seconds"] = time.perf_counter() - start
            found["fit"] = person.json("/api/v1/state")["fit"]
            for name, one in found["calls"].items():
                wall, cpu = (1000 * one[kind][1] for kind in ("seconds", "cpu_seconds"))
                say(f"{name}: {wall:.0f} ms (95 of 100), CPU {cpu:.0f} ms")
            say(f"the fit: {found['fit']}")
        large = path.with_name("large")
        large.mkdir()
        found["thumbnails"] = thumbnails(large)
        say(f"thumbnails: {found['thumbnails']}")
    return found


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
