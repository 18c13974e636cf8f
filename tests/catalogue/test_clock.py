"""A clock that goes back a day before every step: nothing is lost, and undo goes step by step."""

import datetime
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters, open_for_scan
from tagkin.collection.sidecars import tags_of

from .conftest import Folder
from .photographs import check_invariants, files
from .suggested import decisions, offer

DAY = 86_400


class Clock:
    """The time of this process, and of the files that it writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.behind = 0
        now, now_ns = time.time, time.time_ns
        monkeypatch.setattr(time, "time", lambda: now() - self.behind)
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() - self.behind * 10**9)
        clock = self

        class Moved(datetime.datetime):
            @classmethod
            def now(cls, tz: Any = None) -> "Moved":
                return super().now(tz) - datetime.timedelta(seconds=clock.behind)

        class Module:
            UTC, datetime = datetime.UTC, Moved

        monkeypatch.setattr("tagkin.catalogue.database.datetime", Module)

    def go_back(self, root: Path, before: dict[str, bytes]) -> None:
        """Files that changed since have the time of this clock; then it goes back."""
        moment = time.time()
        for name, data in files(root).items():
            if before.get(name) != data:
                os.utime(root / name, (moment, moment))
        self.behind += DAY


def tag_elsewhere(catalogue: Catalogue) -> None:
    path = catalogue.root / "2024/c.jpg.xmp"
    path.write_bytes(path.read_bytes().replace(b"dog", b"cat"))


B = Filters(photographs=["b.jpg"], tags=["sea"])
STEPS: dict[str, Callable[[Catalogue], object]] = {
    "scan": lambda c: c.scan(),
    "suggest": offer,
    "accept": lambda c: c.decisions.decide(ACCEPTED, Filters(at_least=0.6)),
    "write": lambda c: c.write(),
    "tag elsewhere": tag_elsewhere,
    "scan again": lambda c: c.scan(),
    "reject": lambda c: c.decisions.decide(REJECTED, B),
    "write again": lambda c: c.write(remove=True),
    "the last scan": lambda c: c.scan(),
}


def test_between_all_steps(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    states: dict[str, dict[str, bytes]] = {}
    held: dict[str, dict[tuple[str, str], int]] = {}
    with open_for_scan(folder.root) as catalogue:
        for name, step in STEPS.items():
            before = files(folder.root)
            step(catalogue)
            clock.go_back(folder.root, before)
            states[name], held[name] = files(folder.root), decisions(catalogue)
            check_invariants(catalogue)
        runs = catalogue.runs.history()
        assert [run.what for run in runs] == [
            *("scan", "write", "reject", "scan", "write", "accept", "suggest", "scan")
        ]
        started = [run.started_at for run in runs]
        assert started == sorted(started)  # the latest run has the earliest time
        assert "cat" in tags_of(states["the last scan"]["2024/c.jpg.xmp"])
        assert "cat" in str(catalogue.photographs.with_tags())
        assert "sea" not in tags_of(states["the last scan"]["b.jpg.xmp"])

        for what, state in (
            ("write", states["reject"]),
            ("reject", states["reject"]),
            ("write", states["accept"] | {"2024/c.jpg.xmp": states["reject"]["2024/c.jpg.xmp"]}),
            ("accept", None),
        ):
            before = files(folder.root)
            undone = catalogue.undo()
            assert undone.undoes.what == what
            assert getattr(undone, "failures", []) == []
            clock.go_back(folder.root, before)
            assert state is None or files(folder.root) == state, what
            catalogue.scan()
            check_invariants(catalogue)
        assert held["suggest"] == {}
        assert decisions(catalogue) == {("2024/c.jpg", "dog"): REJECTED}  # removed elsewhere
