"""Clients that never finish, and clients that ask without end: others are still answered."""

import contextlib
import socket
import time
from collections.abc import Iterator

import pytest

from tagkin.catalogue import Catalogue
from tests.catalogue.suggested import content, decisions

from .browser import Browser, Running
from .conftest import Shared

N = 400  # clients
PATIENCE = 120.0  # seconds

HEADERS = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
BODY = "POST /api/v1/undo HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{"
NOTHING = ""


def is_open(client: socket.socket) -> bool:
    """Whether the server still waits for a client."""
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def connect(running: Running, person: Browser, n: int) -> Iterator[socket.socket]:
    """Connect clients. A person asks now and then, and gets an answer.

    By then the server has accepted the clients before: one that comes to a full queue is only
    heard a second later.
    """
    for i in range(n):
        if i % 16 == 0:
            assert person.get("/tags").status == 200
        yield socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE)


@pytest.mark.parametrize("start", [HEADERS, BODY, NOTHING])
def test_requests_that_never_end_keep_nobody_out(
    shared: Shared, start: str, capfd: pytest.CaptureFixture[str]
) -> None:
    running = Running(shared.review)
    person = Browser(running.port)
    person.open(running.access.key)
    clients: list[socket.socket] = []
    try:
        for client in connect(running, person, N):
            clients.append(client)
            client.sendall(start.encode())
            client.setblocking(False)
        assert person.get("/tags").status == 200
        until = time.monotonic() + PATIENCE
        while sum(map(is_open, clients)) > 64:
            assert time.monotonic() < until
            time.sleep(0.05)
        assert person.get("/tags").status == 200
        assert capfd.readouterr().err == ""
    finally:
        for client in clients:
            client.close()
        running.stop()


def test_requests_one_after_the_other_keep_nobody_out(shared: Shared) -> None:
    """Each client sends many requests at once, so that none of them ever waits."""
    running = Running(shared.review)
    person = Browser(running.port)
    person.open(running.access.key)
    requests = b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 3000
    clients: list[socket.socket] = []
    try:
        for client in connect(running, person, 70):
            clients.append(client)
            client.setblocking(False)
        for client in clients:
            with contextlib.suppress(OSError):  # the server has closed the first of them
                client.send(requests)
        for _ in range(3):
            assert person.get("/tags").status == 200
    finally:
        for client in clients:
            client.close()
        running.stop()


def test_a_request_that_breaks_off_does_nothing(
    running: Running, browser: Browser, catalogue: Catalogue
) -> None:
    """Even if the part that arrived is valid JSON."""
    body = f'{{"accept": [[{content(catalogue, "a.jpg")}, "holiday"]]}}'
    request = (
        f"POST {browser.folder}/api/v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Cookie: {browser.cookie}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body) + 9}\r\n\r\n{body}"
    )
    with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as client:
        client.sendall(request.encode())
        client.shutdown(socket.SHUT_WR)
        assert b" 200 " not in client.recv(4096)
    assert browser.get("/api/v1/state").json["accepted"] == 0
    assert decisions(catalogue) == {}
