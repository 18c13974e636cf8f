"""Immich behind the review page: whatever it answers, the page says a sentence and goes on."""

import gzip
import itertools
import time
from typing import Any

import pytest

from tagkin.catalogue.known_catalogues import server_folder
from tagkin.immich import Connection, http, store_connection
from tagkin.server import Review
from tests.server.browser import Browser, Running

from .hostile import HostileServer, drip, head
from .serving import KEY
from .test_writing import accept

JSON = b'{"message": "as the test wants it"}'


def answer(status: str, data: bytes = JSON, *headers: str) -> list[bytes]:
    return [
        head(*headers, f"content-length: {len(data)}", "connection: close", status=status) + data
    ]


ANSWERS: dict[str, tuple[Any, str]] = {
    "400": (lambda: answer("400 Bad Request"), "as the test wants it"),
    "500": (lambda: answer("500 Internal Server Error"), "is busy or fails (it answers 500)"),
    "nonsense": (lambda: answer("200 OK", b"<html>"), "does not answer as Immich does"),
    "a list": (lambda: answer("200 OK", b"[5]"), "is not an Immich server"),
    "gzip": (
        lambda: answer("200 OK", gzip.compress(b"{}"), "content-encoding: gzip"),
        "packs its answer (gzip)",
    ),
    "headers that drip": (
        lambda: itertools.chain([b"HTTP/1.1 200 OK\r\n"], drip(b"x: " + b"y" * 9_000)),
        "did not finish an answer within 1 seconds",
    ),
    "a body that drips": (
        lambda: itertools.chain([head("content-length: 9000")], drip(b"[" * 9_000)),
        "did not finish an answer within 1 seconds",
    ),
    "nothing": (lambda: [], "cannot be reached"),
}


def when_done(browser: Browser) -> dict[str, Any]:
    """The state of the job that writes, as soon as it has ended."""
    end = time.monotonic() + 60
    while (state := browser.get("/api/v1/state").json["write"])["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.02)
    return dict(state)


@pytest.mark.parametrize("what", ANSWERS)
def test_a_hostile_server_ends_in_a_sentence_and_the_page_goes_on(
    what, catalogue, photos, open_collection, immich, tmp_path, monkeypatch
):
    monkeypatch.setattr(http, "DEADLINE", 1.0)
    accept(catalogue, photos[3], "beach")
    written = catalogue.write().run
    accept(catalogue, photos[4], "boat")
    catalogue.close()
    give, sentence = ANSWERS[what]
    with HostileServer(give) as hostile:
        store_connection(server_folder("immich"), Connection(hostile.address, KEY))
        with open_collection() as again:
            review = Review(again, tmp_path / "thumbnails", fits=False)
            running = Running(review)
            try:
                browser = Browser(running.port)
                browser.open(running.access.key)
                for path in ("/api/v1/write", f"/api/v1/write/{written}/undo"):
                    while 'id="planning"' in browser.get("/write").text:
                        pass
                    assert browser.post(path).status == 200
                    state = when_done(browser)
                    said = [state["text"], *(f["reason"] for f in state.get("failures", ()))]
                    assert any(sentence in text for text in said), said
                    assert "Error(" not in " ".join(said)
                    for page in ("/write", "/overview", "/tags", "/search"):
                        assert browser.get(page).status == 200, page
            finally:
                running.stop()
                review.close()
            assert hostile.n_requests
    # whatever it said, nothing was lost: with the server back, both are finished
    store_connection(server_folder("immich"), Connection(immich.address, KEY))
    with open_collection() as again:
        again.write()
        assert immich.tags_of(photos[4]) == {"boat"}
        again.undo(written)
        assert immich.tags_of(photos[3]) == set()
