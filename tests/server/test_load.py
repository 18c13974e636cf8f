"""Many windows that answer, undo and look at once, some over a line that drips.

TAGKIN_LOAD_SECONDS=600 tries it for longer.
"""

import json
import os
import random
import socket
import statistics
import threading
import time

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue
from tests.catalogue.photographs import check_invariants
from tests.catalogue.suggested import content, decisions

from .browser import Browser, Running
from .conftest import tag

SECONDS = float(os.environ.get("TAGKIN_LOAD_SECONDS", "3"))
N_WINDOWS = 6
PAGES = ("/tags", "/overview", "/search", "/write", "/api/v1/state", "/photographs/1")
PHOTOGRAPHS = ("a.jpg", "b.jpg", "2024/c.jpg", "2024/d.jpg")


def drip(browser: Browser, path: str, body: object) -> int:
    """Send a request byte by byte; the status of its answer, which is read byte by byte."""
    data = json.dumps(body)
    request = (
        f"POST {browser.folder}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        f"Cookie: {browser.cookie}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n{data}"
    )
    answer = b""
    with socket.create_connection(("127.0.0.1", browser.port), timeout=120) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request.encode():
            client.sendall(bytes([byte]))
            time.sleep(0.001)
        while byte_read := client.recv(1):
            answer += byte_read
    return int(answer.split()[1])


def test_a_dripping_answer_is_stored_once_and_others_go_on(
    running: Running, browser: Browser, catalogue: Catalogue
) -> None:
    pair = [content(catalogue, "a.jpg"), tag(catalogue, "holiday")]
    statuses: list[int] = []
    dripping = threading.Thread(
        target=lambda: statuses.append(drip(browser, "/api/v1/decisions", {"accept": [pair]}))
    )
    dripping.start()
    n_others = 0
    while dripping.is_alive():
        assert browser.get("/api/v1/state").status == 200
        n_others += 1
    assert statuses == [200]
    assert n_others > 1
    assert decisions(catalogue) == {("a.jpg", "holiday"): ACCEPTED}


def test_answers_under_load(running: Running, browser: Browser, catalogue: Catalogue) -> None:
    """Every answer is there or was undone, and no page waits for long."""
    contents = [content(catalogue, path) for path in PHOTOGRAPHS]
    tags = [tag(catalogue, name) for name in ("holiday", "sea", "beach", "dog")]
    end = time.monotonic() + SECONDS
    seconds: list[float] = []
    faults: list[object] = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        window = Browser(running.port)
        window.cookie, window.folder = browser.cookie, browser.folder
        while time.monotonic() < end:
            start, way = time.monotonic(), rng.random()
            pair = [rng.choice(contents), rng.choice(tags)]
            body = {rng.choice(("accept", "reject")): [pair]}
            if way < 0.5:
                status = window.post("/api/v1/decisions", body).status
            elif way < 0.6:
                status = drip(window, "/api/v1/decisions", body)
            elif way < 0.75:
                status = window.post(rng.choice(("/api/v1/undo", "/api/v1/redo"))).status
            else:
                status = window.get(rng.choice(PAGES)).status
            if way >= 0.6 or way < 0.5:
                seconds.append(time.monotonic() - start)
            if status not in (200, 422):  # 422: another window has undone it already
                faults.append((way, body, status))

    def watched(seed: int) -> None:
        try:
            work(seed)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=watched, args=(seed,)) for seed in range(N_WINDOWS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert len(seconds) > N_WINDOWS
    assert statistics.median(seconds) < 5
    check_invariants(catalogue)
    pair = [contents[0], tags[0]]
    for verdict, name in ((ACCEPTED, "accept"), (REJECTED, "reject")):
        assert browser.post("/api/v1/decisions", {name: [pair]}).status == 200
        assert decisions(catalogue)["a.jpg", "holiday"] == verdict
    print(f"{len(seconds):,} requests, median {statistics.median(seconds):.3f} s")
