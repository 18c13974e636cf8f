"""The fit beside the pages: what goes wrong with it is told, and stops nothing."""

import os
import re
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tagkin import Annotator
from tagkin.catalogue import Catalogue, open_catalogue, open_for_scan
from tagkin.server import Review
from tagkin.server.background import BackgroundFit, FolderWatcher
from tagkin.server.mapping import CollectionMap
from tests.catalogue.locking import nobody_writes
from tests.catalogue.photographs import put_red_and_blue, sidecar_text

from .browser import Browser, Running


def test_a_fit_that_fails_is_told(review: Review, browser: Browser, root: Path) -> None:
    for sidecar in root.rglob("*.xmp"):
        sidecar.unlink()
    for photograph in root.rglob("*.jpg"):
        photograph.unlink()  # nothing is left to look at
    assert browser.post("/api/v1/fit").json["started"]
    review.fit.wait(300)
    state = browser.get("/api/v1/state").json
    assert state["fit"]["state"] == "failed"
    assert state["fit"]["text"]
    assert "Traceback" not in state["fit"]["text"]
    page = browser.get("/tags")
    assert page.status == 200


def test_nothing_to_learn_from_is_not_tried(catalogue: Catalogue, browser: Browser) -> None:
    catalogue.database.execute("DELETE FROM found")
    assert not browser.post("/api/v1/fit").json["started"]
    assert browser.get("/api/v1/state").json["fit"] == {"state": "idle", "text": ""}


def test_a_page_without_suggestions_says_that_they_come(
    catalogue: Catalogue, review: Review, browser: Browser
) -> None:
    catalogue.database.execute("DELETE FROM suggestions")
    modes = ("/tags", "/events")
    for page in (browser.get(mode).text for mode in modes):
        assert "No suggestions yet. tagkin learns from photographs with tags" in page
        assert "Nothing left to review" not in page
        assert "Suggest common tags" not in page  # there are tags
    assert "No doubtful tags" in browser.get("/doubtful?tag=1&kind=wrong").text
    catalogue.database.execute("DELETE FROM doubts")
    assert "No doubtful tags." in browser.get("/doubtful").text
    with nobody_writes(catalogue.path):
        assert review.catch_up()
        for page in (browser.get(mode).text for mode in modes):
            assert "5 photographs found so far. Suggestions will appear here." in page
            assert re.search("<p data-now>(Starting|Scanning)", page)
            assert "No suggestions yet. tagkin learns" not in page
            assert "Nothing left to review" not in page
            page = browser.get("/events?folder=2024").text
            assert "Nothing to review with these filters so far." in page
        page = browser.get("/doubtful").text
        assert "photographs found so far. Doubtful tags will appear here after training." in page
        assert "No doubtful tags" not in page
        review.fit.stop()


def test_common_tags_are_offered_until_they_are_asked_for(
    catalogue: Catalogue, review: Review, browser: Browser
) -> None:
    catalogue.database.execute("DELETE FROM found")
    catalogue.database.execute("DELETE FROM suggestions")
    assert browser.get("/api/v1/state").json["progress"] == ""
    page = browser.get("/tags").text
    assert "Your photographs have no tags yet." in page
    with nobody_writes(catalogue.path):
        assert review.catch_up()
        page = browser.get("/tags").text
        assert "Your photographs have no tags so far." in page
        assert 'id="common-tags"' in page
        assert browser.post("/api/v1/common-tags").status == 200
        page = browser.get("/tags").text
        assert "Common tags are being suggested by their names." in page
        assert 'id="common-tags"' not in page
        review.fit.stop()


def test_a_page_without_photographs_says_that_they_are_looked_for(
    catalogue: Catalogue, review: Review, browser: Browser
) -> None:
    for table in ("found", "suggestions"):
        catalogue.database.execute(f"DELETE FROM {table}")
    catalogue.database.execute("UPDATE photographs SET gone = 1")
    with nobody_writes(catalogue.path):
        assert review.catch_up()
        page = browser.get("/tags").text
        assert "Looking for photographs. Suggestions will appear here." in page
        assert "no tags" not in page
        review.fit.stop()


def test_a_fit_ends_with_the_review(catalogue: Catalogue) -> None:
    ended = threading.Event()
    fit = BackgroundFit(catalogue.path, lambda has_ended: ended.set())
    with nobody_writes(catalogue.path):
        assert fit.start(catalogue.model.needs())
        assert fit.is_running
        assert not fit.start(catalogue.model.needs())
        fit.stop()
    assert not fit.is_running  # the process has ended
    assert not ended.is_set()
    assert not fit.start(catalogue.model.needs())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows runs no shell script")
@pytest.mark.parametrize(
    ("script", "why"),
    [("echo one >&2; echo two >&2", "two"), (":", "it ended with code 3")],
)
def test_a_process_that_dies_says_why(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\nexit 3\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    fit = BackgroundFit(catalogue.path, lambda has_ended: None)
    assert fit.start(catalogue.model.needs())
    fit.wait(60)
    state = fit.state()
    assert (state["state"], state["text"]) == (
        "failed",
        f"The fit in the background failed: {why}",
    )
    fit.stop()


def test_a_model_of_another_version_is_learned_anew(tmp_path: Path) -> None:
    """The map needs it, though nothing is new to suggest for."""
    with open_for_scan(put_red_and_blue(tmp_path / "photos")) as catalogue:
        catalogue.scan()
        catalogue.model.refit(Annotator(names=False))
        path, model = catalogue.model.folder / "model.safetensors", catalogue.model.fingerprint()
        path.write_bytes(path.read_bytes().replace(b'"format_version":"', b'"format_version":"9'))
        fit = BackgroundFit(catalogue.path, lambda has_ended: None)
        assert fit.start(catalogue.model.needs(), "catch-up")
        fit.wait(300)
        assert fit.state()["state"] == "done", fit.state()
        fit.stop()
        assert model != catalogue.model.fingerprint() == CollectionMap(catalogue.path).model


def test_two_writers_take_turns(catalogue: Catalogue, running: Running) -> None:
    """The process of a fit writes by the right of the review, while a person decides."""
    person = Browser(running.port)
    person.open(running.access.key)
    number = catalogue.database.value("SELECT min(id) FROM contents")
    with open_catalogue(catalogue.path, write=True, is_lent=True) as lent:

        def fit() -> None:
            for _ in range(30):
                with lent.database.run("suggest"):
                    pass

        other = threading.Thread(target=fit)
        other.start()
        for k in range(20):
            response = person.post("/api/v1/decisions", {"accept": [[number, f"tag {k}"]]})
            assert response.status == 200, response.text
        other.join()
    assert catalogue.database.value("SELECT count(*) FROM decisions") == 20
    assert catalogue.database.value("SELECT count(*) FROM runs WHERE what = 'suggest'") == 31


def test_a_new_photograph_is_noticed(catalogue: Catalogue, root: Path, tmp_path: Path) -> None:
    review = Review(catalogue, tmp_path / "cache", fits=False, watches=True)
    deadline = time.monotonic() + 60
    try:
        with nobody_writes(catalogue.path):
            number = 0
            while review.fit.state()["state"] == "idle":
                assert time.monotonic() < deadline
                (root / f"new {number}.jpg").write_bytes(b"\xff\xd8 %d \xff\xd9" % number)
                number += 1  # the folder may not have been watched yet when the first came
                patience = time.monotonic() + 4  # longer than the watcher waits for further changes
                while review.fit.state()["state"] == "idle" and time.monotonic() < patience:
                    time.sleep(0.05)
            assert review.fit.state()["job"] == "catch-up"
            assert not review.catch_up()  # after the job that runs
    finally:
        review.close()


def test_files_that_are_no_photographs_are_not_noticed(root: Path) -> None:
    changed, other = threading.Event(), threading.Event()
    watchers = [FolderWatcher(root, changed.set), FolderWatcher(root / "2024", other.set)]
    deadline = time.monotonic() + 60
    while not changed.is_set():
        assert time.monotonic() < deadline
        (root / "2024" / "notes.txt").write_text(str(time.monotonic()))
        (root / "2024" / ".hidden.jpg").write_text(str(time.monotonic()))
        (root / "a.jpg.xmp").write_text(sidecar_text(["sea"]))
        time.sleep(4)
    for watcher in watchers:
        watcher.close()
        assert watcher.error is None
    assert not other.is_set()


def wait_for(changed: threading.Event, change: Callable[[int], object]) -> None:
    """Repeat a change until it is noticed, because the folder may not have been watched yet."""
    deadline, number = time.monotonic() + 60, 0
    while not changed.is_set():
        assert time.monotonic() < deadline
        change(number)
        number += 1
        changed.wait(6)


def test_a_name_that_is_not_utf_8_does_not_end_the_watch(root: Path) -> None:
    try:
        Path(root, os.fsdecode(b"bad \xff.jpg")).write_bytes(b"\xff\xd8")
    except OSError:
        pytest.skip("this file system takes no such name")
    changed = threading.Event()
    watcher = FolderWatcher(root, changed.set)
    for name in (b"worse %d \xff.jpg", b"fine %d.jpg"):
        changed.clear()

        def write(k: int, name: bytes = name) -> None:
            (root / os.fsdecode(name % k)).write_bytes(b"\xff")

        wait_for(changed, write)
    watcher.close()
    assert watcher.error is None


class Stuck(Review):
    """A review whose disk is full when it notices something."""

    def catch_up(self) -> bool:
        raise OSError("No space left on device")


def test_a_folder_that_is_not_watched_any_more_is_told(
    catalogue: Catalogue, root: Path, tmp_path: Path
) -> None:
    review = Stuck(catalogue, tmp_path / "cache", fits=False, watches=True)
    deadline, number = time.monotonic() + 60, 0
    try:
        while (state := review.state()["fit"])["state"] != "failed":
            assert time.monotonic() < deadline
            (root / f"new {number}.jpg").write_bytes(b"\xff\xd8")
            number += 1
            time.sleep(4)  # longer than the watcher waits for further changes
        assert state["text"].startswith("New photographs are no longer noticed: No space left")
    finally:
        review.close()
