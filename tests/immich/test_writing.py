"""Accepted tags that go to the server, and come back with undo."""

import os
import signal
import time
from queue import Queue

import pytest

from tagkin.catalogue import ACCEPTED, Filters
from tagkin.collection.sidecars import Convention
from tagkin.errors import InvalidInput, ServerError
from tests.forking import in_child, needs_fork

from .conftest import path_of
from .serving import CUT, CUT_AFTER


def accept(catalogue, photo, *tags: str) -> None:
    path = path_of(catalogue, photo)
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=[path], tags=list(tags)))


def test_tags_are_written_and_undone(catalogue, immich, photos):
    accept(catalogue, photos[3], "animals|cat", "beach")
    run = catalogue.write()
    assert (run.n_written, run.n_tags, run.failures) == (1, 2, [])
    assert immich.tags_of(photos[3]) == {"animals/cat", "beach"}
    assert catalogue.writes.count_pending() == 0
    assert catalogue.write().run is None
    explanation = catalogue.explain(path_of(catalogue, photos[3]))
    assert explanation.path == path_of(catalogue, photos[3])
    texts = [source.text for tag in explanation.tags for source in tag.said]
    assert texts.count("is in Immich") == 2
    assert sum(text == f"written to Immich by run {run.run}" for text in texts) == 2
    undone = catalogue.undo()
    assert [file.how for file in undone.files] == ["tags removed"]
    assert immich.tags_of(photos[3]) == set()
    assert catalogue.scan().retagged == []


def test_only_added_tags_are_removed(catalogue, immich, photos):
    """A tag that the photograph had meanwhile is not ours, and others stay."""
    accept(catalogue, photos[0], "beach", "dusk")
    immich.tag(photos[0], "dusk")
    run = catalogue.write()
    assert run.n_tags == 1
    immich.tag(photos[0], "later")
    catalogue.undo(run.run)
    assert immich.tags_of(photos[0]) == {"animals/dog", "dusk", "later"}


def test_a_tag_that_somebody_removed_stays_removed(catalogue, immich, photos):
    accept(catalogue, photos[3], "beach", "dusk")
    run = catalogue.write()
    immich.untag(photos[3], "beach")
    catalogue.scan()
    assert catalogue.write().run is None
    (undone,) = catalogue.undo(run.run).files
    assert undone.how == "kept"
    assert immich.tags_of(photos[3]) == set()


def test_tags_with_slashes(catalogue, immich, photos):
    accept(catalogue, photos[3], "music|AC/DC")
    catalogue.write()
    assert immich.tags_of(photos[3]) == {"music/AC|DC"}
    assert catalogue.scan().retagged == []


@pytest.mark.parametrize(
    "options",
    [
        {"embed": True},
        {"remove": True},
        {"convention": Convention("img.xmp")},
    ],
)
def test_ways_that_a_server_does_not_have(catalogue, options):
    with pytest.raises(InvalidInput):
        catalogue.write(**options)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"library": "an external one"}, "external library"),
        ({"is_ready": False}, "still reading it after an upload"),
        ({"is_trashed": True}, "trash"),
        ({"checksum": bytes(20)}, "another photograph"),
    ],
)
def test_photographs_whose_tags_would_be_lost_are_refused(
    catalogue, immich, photos, change, reason
):
    accept(catalogue, photos[3], "beach")
    accept(catalogue, photos[4], "beach")
    for name, value in change.items():
        setattr(photos[3], name, value)
    run = catalogue.write()
    (failure,) = run.failures
    assert reason in failure.reason
    assert immich.tags_of(photos[3]) == set()
    assert immich.tags_of(photos[4]) == {"beach"}  # the others are written


def test_a_photograph_deleted_in_between(catalogue, immich, photos):
    for photo in photos[3:]:
        accept(catalogue, photo, "beach")
    immich.fail("PUT /tags/", lambda: immich.delete(photos[3]))
    run = catalogue.write()
    (failure,) = run.failures
    assert "did not take beach: no_permission" in failure.reason
    assert run.n_written == 2
    gone = path_of(catalogue, photos[3])
    assert catalogue.scan().gone == [gone]
    immich.delete(photos[4])
    undone = catalogue.undo(run.run)
    assert sorted(file.how for file in undone.files) == ["gone", "tags removed"]
    assert immich.tags_of(photos[5]) == set()


@pytest.mark.parametrize(
    "faults", [(500, 503), (CUT,), (CUT_AFTER,), ((429, {"retry-after": "0"}),)]
)
@pytest.mark.parametrize("request_", ["PUT /tags$", "PUT /tags/", "GET /assets/"])
def test_a_write_survives_a_busy_server(catalogue, immich, photos, faults, request_):
    """A repeated request is answered with "duplicate"; the tag is ours nevertheless."""
    accept(catalogue, photos[3], "beach")
    immich.fail(request_, *faults)
    assert catalogue.write().n_tags == 1
    assert immich.tags_of(photos[3]) == {"beach"}
    catalogue.undo()
    assert immich.tags_of(photos[3]) == set()


def test_a_run_that_the_server_ends_is_finished_by_the_next(catalogue, immich, photos):
    for photo in photos[3:]:
        accept(catalogue, photo, "beach")
    immich.fail("PUT /tags/", CUT_AFTER, *[500] * 3)  # the first request was heard
    with pytest.raises(ServerError, match="busy or fails"):
        catalogue.write()
    assert catalogue.status().n_unfinished == 1
    run = catalogue.write()
    assert run.n_finished == 1
    assert all(immich.tags_of(photo) == {"beach"} for photo in photos[3:])
    catalogue.undo()  # the second run
    killed = catalogue.undo()  # and the first
    assert [file.how for file in killed.files] == ["tags removed"]
    assert all(immich.tags_of(photo) == set() for photo in photos[3:])


@needs_fork
@pytest.mark.parametrize("undoes", [False, True], ids=["finished", "undone"])
@pytest.mark.parametrize(
    ("n", "is_heard"),
    # of the first photograph look, make tags, add, read back; of the second one more is added
    [(2, True), (3, True), (6, True), (7, False), (7, True), (8, False)],
)
def test_killed_at_a_request(open_collection, immich, photos, n, is_heard, undoes):
    """The next run finishes the work, or undoes it; somebody's own tags stay."""
    with open_collection() as catalogue:
        catalogue.scan()
        immich.tag(photos[3], "beach")  # not known to the catalogue
        for photo in photos[3:]:
            accept(catalogue, photo, "beach", "dusk")
    children: Queue[int] = Queue()

    def kill() -> None:
        child = children.get()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        children.put(child)
        if not is_heard:
            raise ConnectionAbortedError

    def write() -> None:
        with open_collection() as catalogue:
            catalogue.write()

    passes = [lambda: None] * (4 + n)  # the first four look at the server
    immich.fail(".*", *passes, kill)
    children.put(in_child(write))
    while immich.faults:
        time.sleep(0.005)
    children.get()
    with open_collection() as catalogue:
        if not undoes:
            catalogue.write()
            assert all(immich.tags_of(photo) == {"beach", "dusk"} for photo in photos[3:])
        catalogue.source.finish_writes()
        while (run := catalogue.runs.last_undoable()) and run.what == "write":
            catalogue.undo(run.id)
        assert [immich.tags_of(photo) for photo in photos[3:]] == [{"beach"}, set(), set()]
        assert catalogue.status().n_unfinished == 0
