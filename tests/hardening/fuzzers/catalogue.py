"""Catalogues and exported decisions that are nearly right: read, or refused with a sentence."""

import functools
import json
import os
import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters, open_catalogue, open_for_scan
from tagkin.errors import InvalidInput, StorageError
from tests.catalogue.conftest import Folder
from tests.catalogue.photographs import check_invariants
from tests.catalogue.suggested import offer
from tests.hardening.fuzzers import Effort, Report, try_inputs
from tests.hardening.mutations import mutated

_DATABASE = b"SQLite"


@functools.cache
def samples() -> tuple[bytes, bytes]:
    """The database of a small catalogue with a bit of everything, and what is exported of it."""
    with tempfile.TemporaryDirectory() as top, _catalogues_in(Path(top, "data")):
        folder = Folder(Path(top, "photos"))
        for name, tags in (("a.jpg", ["sea"]), ("b.jpg", ["dog"]), ("2024/c.jpg", ["dog"])):
            folder.put(name, name, tags)
        folder.put("2024/d.jpg", "d")
        with open_for_scan(folder.root) as catalogue:
            catalogue.scan()
            offer(catalogue)
            catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
            catalogue.decisions.decide(REJECTED, Filters(tags=["dog"]))
            lines = "".join(f"{json.dumps(line)}\n" for line in catalogue.export_lines())
            path = catalogue.path
        return path.read_bytes(), lines.encode()


@contextmanager
def _catalogues_in(folder: Path) -> Iterator[None]:
    before = os.environ.get("TAGKIN_CATALOGUES")
    os.environ["TAGKIN_CATALOGUES"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TAGKIN_CATALOGUES"]
        else:
            os.environ["TAGKIN_CATALOGUES"] = before


def check(data: bytes) -> None:
    """A damaged database is read or refused; lines are taken whole or not at all."""
    with tempfile.TemporaryDirectory() as top, _catalogues_in(Path(top, "data")):
        path = Path(top, "catalogue.sqlite")
        is_database = data.startswith(_DATABASE)
        path.write_bytes(data if is_database else samples()[0])
        try:
            with open_catalogue(path, write=not is_database) as catalogue:
                if is_database:
                    _look_at(catalogue)
                else:
                    _take_in(catalogue, data)
        except (StorageError, InvalidInput) as error:
            _check_sentence(str(error))


def _check_sentence(text: str) -> None:
    assert text.rstrip().endswith((".", ")")), text


def _look_at(catalogue: Catalogue) -> None:
    catalogue.status()
    catalogue.runs.history()
    catalogue.tags.list_all()
    list(catalogue.export_lines())


def _take_in(catalogue: Catalogue, data: bytes) -> None:
    before = catalogue.database.value("SELECT count(*) FROM decisions")
    try:
        catalogue.import_lines(data.decode("utf-8", "replace").splitlines())
    except InvalidInput:
        assert catalogue.database.value("SELECT count(*) FROM decisions") == before
        check_invariants(catalogue)
        raise
    check_invariants(catalogue)


def fuzz(effort: Effort, seed: int, keep: Path) -> Report:
    """Changed databases and changed lines."""
    database, lines = samples()

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.5:
            return _DATABASE + mutated(rng, [database])[len(_DATABASE) :]
        return _changed_lines(rng, lines)

    return try_inputs("catalogue", make, check, effort, seed, keep)


def _changed_lines(rng: random.Random, lines: bytes) -> bytes:
    """Bytes changed anywhere, or values of an object replaced by others."""
    if rng.random() < 0.3:
        return mutated(rng, [lines])
    objects = [json.loads(line) for line in lines.splitlines()]
    values: list[Any] = [
        None,
        -1,
        2**70,
        1.5,
        "",
        "x",
        "\ud800",
        "0" * 64,
        [],
        {},
        True,
        [["0" * 64, 0.5]],
    ]
    for _ in range(rng.choice((1, 1, 2, 4))):
        chosen = rng.choice(objects)
        name = rng.choice(sorted(chosen))
        if rng.random() < 0.2:
            del chosen[name]
        else:
            chosen[name] = rng.choice(values)
    if rng.random() < 0.2:
        rng.shuffle(objects)
    return "".join(f"{json.dumps(record)}\n" for record in objects).encode()
