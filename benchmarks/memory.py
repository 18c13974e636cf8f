"""Memory of a review after hours of work: pages, decisions, thumbnails, and refits.

``python -m benchmarks.memory [PHOTOGRAPHS [REFITS]]`` prints JSON: the resident memory of `tagkin
review` in MiB at its start, when it learns from decisions, after the thumbnails of 12-megapixel
photographs, after each refit, and the most of it. The photographs are those of
`benchmarks.review`, and some large ones that are looked at. The processes of fits end with them, so
they are not counted.
"""

import json
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.process import say
from benchmarks.review import SIZE, Person, collection, reviewed
from tagkin.catalogue import open_catalogue

N_LARGE, N_STEPS, N_WINDOWS = 120, 100, 4


def put_large(root: Path) -> None:
    """Photographs of 12 megapixels."""
    root.mkdir(parents=True)
    small = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    Image.fromarray(small).resize(SIZE, Image.Resampling.BICUBIC).save(root / "0.jpg", quality=90)
    data = (root / "0.jpg").read_bytes()
    for number in range(1, N_LARGE):
        (root / f"{number}.jpg").write_bytes(data + b"%d" % number)


def resident(process: int, field: str = "VmRSS") -> float:
    """Resident memory of a process, in MiB; VmHWM is the most that it had."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(field))
    return int(line.split()[1]) / 1024


def look(address: str, process: int, large: list[tuple[int, str]]) -> None:
    """Look at the large photographs in several windows at once."""

    def window(some: list[tuple[int, str]]) -> None:
        person = Person(address, process)
        for content, digest in some:
            for size in (256, 512, 1024):
                person.ask(f"/thumbnails/{size}/{content}-{digest[:16]}.jpg")

    threads = [
        threading.Thread(target=window, args=(large[k::N_WINDOWS],)) for k in range(N_WINDOWS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def work(address: str, process: int) -> None:
    """Look at pages, decide and undo, in a new window."""
    person = Person(address, process)
    rng = random.Random(0)  # noqa: S311
    tags = [tag["id"] for tag in person.json("/api/v1/tags")["tags"]]
    for _ in range(N_STEPS):
        tag = rng.choice(tags)
        shown = person.json(f"/api/v1/tags/{tag}/suggestions")["suggestions"]
        pairs = [[suggestion["content"], tag] for suggestion in shown]
        for page in (f"/tags/{tag}", "/doubtful", "/overview", "/search?untagged=true"):
            person.ask(page)
        decided = {"accept": pairs[2:], "reject": pairs[:2], "only_open": True}
        person.ask("/api/v1/decisions", decided)
    person.ask("/api/v1/undo", {})


def wait(address: str, process: int) -> None:
    """Wait until nothing runs in the background."""
    person = Person(address, process)
    while True:
        state = person.json("/api/v1/state")
        if state["fit"]["state"] != "running":
            return
        time.sleep(1)


def measure(n: int = 10_000, n_refits: int = 3) -> dict[str, Any]:
    """Resident memory at points of a review."""
    with collection(n, lambda root: put_large(root / "large")) as (path, results):
        with open_catalogue(path) as catalogue:
            query = "SELECT content FROM photographs WHERE path LIKE 'large/%'"
            numbers = [content for (content,) in catalogue.database.rows(query)]
            files = catalogue.photographs.files_of(numbers).values()
            large = [(file.content, file.digest) for file in files]
        with reviewed(path) as (person, _):
            where = person.address, person.process

            def note(name: str) -> None:
                results[name] = round(resident(person.process))
                say(f"{name}: {results[name]} MiB")

            note("start")
            wait(*where)
            look(*where, large)
            note("thumbnails")
            work(*where)
            note("decisions")
            for number in range(n_refits):
                Person(*where).ask("/api/v1/fit", {})
                wait(*where)
                work(*where)
                note(f"refit {number + 1}")
            results["peak"] = round(resident(person.process, "VmHWM"))
    return results


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
