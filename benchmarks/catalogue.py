"""A catalogue of 100,000 photographs and 1,000,000 suggestions: queries, scans, size.

``python -m benchmarks.catalogue [PHOTOGRAPHS]`` prints JSON. The photographs are tiny files in
hundreds of folders, a third of them with a sidecar; the first scan reads them all, the second one
finds nothing changed. Every query that a page of review asks is timed a hundred times, each time
for another tag or photograph. The size is measured again in a catalogue with as many suggestions as
a review keeps at most, twenty for each photograph.
"""

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.process import say
from tagkin.annotator.suggestions import Kin, TagSuggestion
from tagkin.catalogue import ACCEPTED, Catalogue, Filters, open_for_scan

N_TAGS, N_SUGGESTED, N_MOST, N_KIN, REPEATS = 1000, 10, 20, 5, 100
SIDECAR = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
    'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><rdf:Bag>{}</rdf:Bag></dc:subject>'
    "</rdf:Description></rdf:RDF></x:xmpmeta>"
)


def tag_names(rng: np.random.Generator, n: int, n_each: int) -> list[list[str]]:
    """Tags of n photographs as people use them: few often, most seldom."""
    numbers = np.minimum(rng.zipf(1.3, (n, n_each)), N_TAGS)
    return [[f"tag {number:04}" for number in dict.fromkeys(row)] for row in numbers.tolist()]


def make_folder(root: Path, n: int) -> None:
    """Photographs of a few bytes, 500 in a folder; every third has a sidecar."""
    rng = np.random.default_rng(0)
    earlier = time.time() - 1000
    names = tag_names(rng, n // 3 + 1, 4)
    for i in range(n):
        folder = f"{root}/{2000 + i // 5000}/{i // 500:04}"
        if i % 500 == 0:
            os.makedirs(folder)
        replace_file(f"{folder}/IMG_{i:06}.jpg", b"\xff\xd8%d\xff\xd9" % i, earlier)
        if i % 3 == 0:
            items = "".join(f"<rdf:li>{name}</rdf:li>" for name in names[i // 3])
            replace_file(f"{folder}/IMG_{i:06}.jpg.xmp", SIDECAR.format(items).encode(), earlier)


def replace_file(path: str, data: bytes, moment: float) -> None:
    """A file that was changed at a moment."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(number, data)
    os.utime(number, (moment, moment))
    os.close(number)


def put_everything(catalogue: Catalogue, n_suggested: int = N_SUGGESTED) -> int:
    """Suggestions for all photographs, doubts about some; how many suggestions."""
    rng = np.random.default_rng(1)
    contents = catalogue.database.column("SELECT id FROM contents")
    numbers = {str(content): content for content in contents}
    n = 0
    with catalogue.database.run("suggest", model="0" * 64) as run:
        for start in range(0, len(contents), 1000):
            some = contents[start : start + 1000]
            rare = rng.integers(1, N_TAGS, (len(some), n_suggested)).tolist()
            names = tag_names(rng, len(some), 3 * n_suggested)
            sure = rng.beta(1.5, 1.5, (len(some), n_suggested)).tolist()
            kin = rng.choice(contents, (len(some), N_KIN)).tolist()
            each = []
            for i, content in enumerate(some):
                row = dict.fromkeys([*names[i], *(f"tag {k:04}" for k in rare[i])])
                support = tuple(Kin(str(one), 1 / N_KIN) for one in kin[i])
                pairs = zip(row, sure[i], strict=False)
                suggested = [TagSuggestion(tag, p, support, 0.1, 0.4) for tag, p in pairs]
                each.append((content, suggested))
            n += sum(map(len, catalogue.suggestions.replace(run.id, each, numbers)))
    catalogue.database.execute(
        "INSERT INTO doubts SELECT content, tag, run, iif(content % 2, 'wrong', 'missing'), "
        "confidence, evidence FROM suggestions WHERE content % 10 = 0"
    )
    return n


def queries(catalogue: Catalogue) -> dict[str, Callable[[], Any]]:
    """What a page asks, each time for something else."""
    rng = random.Random(0)  # noqa: S311
    contents = [content for (content,) in catalogue.database.rows("SELECT id FROM contents")]
    paths = [path for (path,) in catalogue.database.rows("SELECT path FROM photographs")]
    tags = [tag.id for tag in catalogue.tags.list_all()]
    often = tags[:20]

    def later_part() -> None:
        first = catalogue.suggestions.for_tag(rng.choice(tags), 60)
        if first:
            catalogue.suggestions.for_tag(rng.choice(tags), 60, rng.choice(first))

    def decide_and_undo() -> None:
        content = rng.choice(contents)
        (path,) = catalogue.database.row(
            "SELECT path FROM photographs WHERE content = ?", (content,)
        ) or ("",)
        done = catalogue.decisions.decide(ACCEPTED, Filters(photographs=[path]))
        if done.run is not None:
            catalogue.decisions.undo(done.run)

    return {
        "by tag, first 60": lambda: catalogue.suggestions.for_tag(rng.choice(often), 60),
        "by tag, any part": later_part,
        "by photograph, with kin": lambda: catalogue.suggestions.for_photograph(
            rng.choice(contents)
        ),
        "doubtful, 60": lambda: catalogue.doubts.list_open(
            rng.choice([None, "wrong", "missing"]), 60
        ),
        "counts of all tags": lambda: catalogue.tags.list_all(),
        "progress": lambda: catalogue.suggestions.progress(),
        "history, 50 runs": lambda: catalogue.runs.history(50),
        "explain a photograph": lambda: catalogue.explain(rng.choice(paths)),
        "a decision and its undo": decide_and_undo,
    }


def measure(n: int = 100_000) -> dict[str, Any]:
    """Scans, queries, size."""
    with tempfile.TemporaryDirectory() as home:
        root, path = Path(home, "photographs"), Path(home, "catalogue.sqlite")
        os.environ["TAGKIN_CATALOGUES"] = home
        say(f"making {n:,} photographs")
        make_folder(root, n)
        with open_for_scan(root, path) as catalogue:
            found: dict[str, Any] = {"photographs": n}
            found["first_scan"] = timed(lambda: catalogue.scan())
            say("first scan: {:.1f} s, CPU {:.1f} s".format(*found["first_scan"]))
            found["unchanged_scans"] = [timed(lambda: catalogue.scan()) for _ in range(3)]
            for one in found["unchanged_scans"]:
                say("unchanged: {:.1f} s, CPU {:.1f} s".format(*one))
            found["suggesting"] = timed(lambda: found.update(suggestions=put_everything(catalogue)))
            say(f"{found['suggestions']:,} suggestions: {found['suggesting'][0]:.0f} s")
            decided = catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.95))
            found["decisions"] = len(decided)
            found["queries"] = {}
            for name, query in queries(catalogue).items():
                query()
                times = np.array([timed(query) for _ in range(REPEATS)])
                found["queries"][name] = {
                    "seconds": np.quantile(times[:, 0], [0.5, 0.95]).tolist(),
                    "cpu_seconds": np.quantile(times[:, 1], [0.5, 0.95]).tolist(),
                }
                wall, cpu = (1000 * np.quantile(times, 0.95, axis=0)).tolist()
                say(f"{name}: {wall:.1f} ms (95 of 100), CPU {cpu:.1f} ms")
        found["bytes"] = path.stat().st_size
        say(f"{found['bytes'] / 1e6:.0f} MB")
        found["full"] = full_size(root, Path(home, "full.sqlite"))
    return found


def full_size(root: Path, path: Path) -> dict[str, int]:
    """The size of a catalogue with as many suggestions as a review keeps at most."""
    with open_for_scan(root, path) as catalogue:
        catalogue.scan()
        n = put_everything(catalogue, N_MOST)
        catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.95))
    say(f"{n:,} suggestions: {path.stat().st_size / 1e6:.0f} MB")
    return {"suggestions": n, "bytes": path.stat().st_size}


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of some work, and those in which a processor was at it."""
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
