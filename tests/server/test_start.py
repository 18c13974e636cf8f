"""The start page: recent collections, choosing a folder, Immich, the sample, and the end."""

import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image

from tagkin.catalogue import open_catalogue, open_for_scan
from tagkin.catalogue.known_catalogues import known_catalogues, server_folder
from tagkin.server import presence, start, start_folders
from tagkin.server.presence import Presence
from tests.catalogue.locking import nobody_writes
from tests.immich.serving import KEY, Immich

from .browser import Browser, Running
from .conftest import put_photographs

PATIENCE = 120.0


def wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.fixture
def empty() -> Iterator[Running]:
    """A server with nothing open."""
    running = Running(None)
    yield running
    running.stop()
    running.desk.close()


@pytest.fixture
def person(empty: Running) -> Browser:
    browser = Browser(empty.port)
    browser.open(empty.access.key)
    return browser


def ask(path: str | Path) -> str:
    return f"path={quote(os.fsencode(path), safe='')}"


def choose(person: Browser, path: str | Path) -> Any:
    """Open a folder and wait for it; the state then, or the error."""
    answer = person.post(f"/api/v1/desk/open?{ask(path)}")
    if answer.status != 200:
        return answer.json["error"]
    return opened(person)


def opened(person: Browser) -> Any:
    wait_until(lambda: person.get("/api/v1/desk").json["state"] != "opening")
    return person.get("/api/v1/desk").json


# --- choosing a folder ----------------------------------------------------------------------


def test_from_nothing_to_a_review(person: Browser, root: Path) -> None:
    assert person.get("/").headers["location"] == "start"
    assert "Which photographs?" in person.get("/start").text
    state = choose(person, root)
    assert (state["state"], state["open"], state["number"]) == ("idle", str(root), 1)
    assert person.get("/").headers["location"] == "1/tags"
    assert person.get("/1/tags").status == 200
    wait_until(lambda: person.get("/1/api/v1/state").json["photographs"] == 5)
    assert "open now" in person.get("/start").text


def test_a_folder_shows_what_is_in_it(person: Browser, root: Path) -> None:
    page = person.get(f"/folders?{ask(root)}")
    assert [e.text_content() for e in page.elements("//ul[@class='folders']/li")] == ["20242"]
    assert page.elements("//div[@class='choose']//strong")[0].text == "5"
    addresses = [e.get("src") for e in page.elements("//ul[@class='strip']//img")]
    pictures = [person.get(f"/{address}") for address in addresses]
    kinds = [picture.headers["content-type"] for picture in pictures]
    assert sorted(kinds) == ["image/jpeg", "image/jpeg", "image/svg+xml"]  # one is broken
    with Image.open(io.BytesIO(next(p.body for p in pictures if p.body[:1] == b"\xff"))) as small:
        assert small.size == (40, 60)  # upright
    above = page.elements("//ol[@class='path']//a")
    assert above[-1].get("href") == f"folders?{ask(root.parent)}"
    assert person.get("/pictures/999.jpg").status == 404


@pytest.mark.parametrize("name", ["%", "a&b=c", "#?", "<b>", "日本", "name \n line"])
def test_any_name_of_a_folder_can_be_chosen(person: Browser, tmp_path: Path, name: str) -> None:
    try:
        root = put_photographs(tmp_path / "all" / name)
    except OSError:
        pytest.skip("this system has no such names")
    (link,) = person.get(f"/folders?{ask(root.parent)}").elements("//ul[@class='folders']//a")
    page = person.get(f"/{link.get('href')}")
    (button,) = page.elements("//button[@data-open]")
    answer = person.post(f"/api/v1/desk/open?{button.get('data-open')}")
    assert answer.status == 200
    assert opened(person)["open"] == str(root)
    assert "<b>" not in page.text.replace("&lt;b&gt;", "")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_a_name_that_is_not_utf_8_can_be_chosen(person: Browser, tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    root = put_photographs(tmp_path / "all" / name)
    (link,) = person.get(f"/folders?{ask(root.parent)}").elements("//ul[@class='folders']//a")
    assert link.get("href") == f"folders?{ask(root)}"
    assert choose(person, root)["open"] == str(root)


def test_what_cannot_be_chosen_is_a_sentence(person: Browser, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    state = choose(person, tmp_path / "empty")
    assert state["state"] == "failed"
    assert "No photograph in" in state["text"]
    assert state["open"] is None
    assert "There is no folder" in choose(person, tmp_path / "nowhere")
    assert "not the whole path" in choose(person, "Pictures")
    assert "not the whole path" in choose(person, f"{tmp_path}\0")
    page = person.get(f"/folders?{ask(tmp_path / 'nowhere')}")
    assert "There is no folder" in page.elements("//*[@role='alert']")[0].text
    assert known_catalogues() == {}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
def test_a_forbidden_folder_is_a_sentence(person: Browser, root: Path) -> None:
    (root / "2024").chmod(0)
    try:
        page = person.get(f"/folders?{ask(root / '2024')}")
        assert "cannot be read" in page.elements("//*[@role='alert']")[0].text
    finally:
        (root / "2024").chmod(0o700)


def test_very_many_photographs_are_counted_for_a_moment_only(
    person: Browser, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_folders, "BUDGET", 0.0)
    page = person.get(f"/folders?{ask(root)}")
    assert page.elements("//div[@class='choose']//strong")[0].text == "3+"


def test_hidden_folders_are_not_shown(person: Browser, root: Path) -> None:
    (root / ".git").mkdir()
    (root / "@eaDir").mkdir()
    page = person.get(f"/folders?{ask(root)}")
    assert len(page.elements("//ul[@class='folders']/li")) == 1


# --- who may ask ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/start", "/folders", "/pictures/1.jpg", "/api/v1/desk"])
def test_the_start_page_needs_both_secrets(empty: Running, person: Browser, path: str) -> None:
    assert person.get(path).status in (200, 303, 404)
    with_cookie, in_folder = Browser(empty.port), Browser(empty.port)
    with_cookie.cookie, in_folder.folder = person.cookie, person.folder
    for stranger in (Browser(empty.port), with_cookie, in_folder):
        assert stranger.get(path).status == 403
    assert person.get(path, Host="evil.example").status == 403
    image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert person.get(path, **image).status == 403


@pytest.mark.parametrize("what", ["open", "immich", "sample", "quit"])
@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}],
)
def test_other_pages_open_and_end_nothing(
    empty: Running, person: Browser, what: str, headers: dict[str, str]
) -> None:
    body = {"address": "http://127.0.0.1:1", "key": "key"}
    assert person.post(f"/api/v1/desk/{what}", body, **headers).status == 403
    assert Browser(empty.port).post(f"/api/v1/desk/{what}", body).status == 403
    state = person.get("/api/v1/desk").json
    assert (state["state"], state["open"]) == ("idle", None)


def test_pages_of_the_start_have_no_inline_script_or_style(person: Browser, root: Path) -> None:
    for path in ("/start", f"/folders?{ask(root)}"):
        page = person.get(path)
        assert not page.elements("//script[not(@src)] | //style | //*[@style]")
        assert "default-src 'none'" in page.headers["content-security-policy"]
    assert person.get("/nowhere").elements("//a[@href='./']")


# --- one collection after the other ----------------------------------------------------------


def test_another_collection_takes_the_place_of_the_first(
    person: Browser, empty: Running, root: Path, tmp_path: Path
) -> None:
    choose(person, root)
    wait_until(lambda: person.get("/1/api/v1/state").json["photographs"] == 5)
    other = Path(shutil.copytree(root, tmp_path / "other"))
    assert choose(person, other)["number"] == 2
    assert empty.desk.opened is not None
    assert empty.desk.opened.review.root == other
    wait_until(lambda: person.get("/2/api/v1/state").json["photographs"] == 5)
    # a window that shows the first cannot decide on the second
    content = 1
    stale = person.post("/1/api/v1/decisions", {"accept": [[content, "holiday"]]})
    assert (stale.status, stale.json["error"][:7]) == (410, "Another")
    assert person.get("/1/tags").headers["location"].endswith("/start")
    assert person.get("/1/tags", **{"Sec-Fetch-Mode": "cors"}).status == 410
    assert person.post("/2/api/v1/decisions", {"accept": [[content, "holiday"]]}).status == 200
    first, second = known_catalogues()[root], known_catalogues()[other]
    wait_until(lambda: not locked(first))  # others may write to the first again
    with open_catalogue(first) as catalogue:
        assert catalogue.decisions.last_run() is None
    with open_catalogue(second) as catalogue:
        assert catalogue.decisions.last_run() is not None


def locked(catalogue: Path) -> bool:
    try:
        with open_catalogue(catalogue, write=True, command="review"):
            return False
    except OSError:
        return True


def test_a_collection_that_is_in_use_stays_closed(person: Browser, root: Path) -> None:
    with open_for_scan(root) as catalogue, nobody_writes(catalogue.path):
        state = choose(person, root)
    assert state["state"] == "failed"
    assert "is writing to the catalogue" in state["text"]


def test_the_same_collection_stays_open(person: Browser, root: Path) -> None:
    assert choose(person, root)["number"] == 1
    assert choose(person, root)["number"] == 1


def test_recent_collections_come_first_with_their_progress(person: Browser, root: Path) -> None:
    with open_for_scan(root) as catalogue:
        catalogue.scan()
    gone = Path(shutil.copytree(root, root.parent / "gone"))
    open_for_scan(gone).close()
    shutil.rmtree(gone)
    damaged = Path(shutil.copytree(root, root.parent / "damaged"))
    open_for_scan(damaged).close()
    known_catalogues()[damaged].write_bytes(b"no catalogue")
    texts = [e.text_content() for e in person.get("/start").elements("//ul[@id='recent']/li")]
    assert [text[:4] for text in texts] == ["dama", "gone", "phot"]
    assert "is not a catalogue" in texts[0] or "damaged" in texts[0]
    assert "not there" in texts[1]
    assert "5 photographs" in texts[2]
    assert "60 % tagged" in texts[2]
    (button,) = person.get("/start").elements("//ul[@id='recent']//button")
    assert person.post(f"/api/v1/desk/open?{button.get('data-open')}").status == 200
    assert opened(person)["open"] == str(root)


# --- Immich and the sample -------------------------------------------------------------------


def test_immich_is_connected_and_opened(person: Browser, root: Path) -> None:
    with Immich() as immich:
        immich.upload("IMG_1.HEIC", (root / "a.jpg").read_bytes(), ("beach",))
        wrong = {"address": immich.address, "key": "wrong"}
        assert person.post("/api/v1/desk/immich", wrong).status == 200
        state = opened(person)
        assert (state["state"], state["open"]) == ("failed", None)
        assert "does not know the key" in state["text"]
        assert not server_folder("immich").exists()
        right = {"address": f"{immich.address}/api", "key": KEY}
        assert person.post("/api/v1/desk/immich", right).status == 200
        assert opened(person)["open"] == str(server_folder("immich"))
        wait_until(lambda: person.get("/1/api/v1/state").json["photographs"] == 1)
        text = person.get("/start").elements("//ul[@id='recent']/li")[0].text_content()
        assert text.startswith("Immich")
        assert KEY not in person.get("/start").text


def test_an_address_on_the_internet_needs_encryption(person: Browser) -> None:
    person.post("/api/v1/desk/immich", {"address": "http://immich.example.org", "key": KEY})
    state = opened(person)
    assert state["state"] == "failed"
    assert "unencrypted" in state["text"]


def test_the_sample_is_painted_once(
    person: Browser, data_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "SAMPLE_SIZE", 8)
    monkeypatch.setattr(start, "SAMPLE_UNTAGGED", 2)
    person.post("/api/v1/desk/sample")
    sample = data_folder / "sample"
    assert opened(person)["open"] == os.path.realpath(sample)
    moments = {file: file.stat().st_mtime_ns for file in sample.iterdir()}
    assert len(moments) == 9
    person.post("/api/v1/desk/sample")
    opened(person)
    assert {file: file.stat().st_mtime_ns for file in sample.iterdir()} == moments


# --- the end ----------------------------------------------------------------------------------


def test_quit_ends_the_server(root: Path) -> None:
    running = Running(None)
    person = Browser(running.port)
    person.open(running.access.key)
    assert person.post("/api/v1/desk/quit").json == {"state": "ended"}
    running.stop()  # which waits for it
    assert not running.server.was_left


def test_closing_the_last_page_ends_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "PATIENCE", 0.2)
    running = Running(None, ends_when_left=True)
    person = Browser(running.port)
    person.open(running.access.key)
    for page, is_open in (("one", True), ("two", True), ("one", False)):
        assert person.post("/api/v1/pages", {"page": page, "is_open": is_open}).status == 200
    time.sleep(1)
    assert person.get("/start").status == 200
    person.post("/api/v1/pages", {"page": "two", "is_open": False})
    wait_until(lambda: running.server.was_left)
    running.stop()


def test_work_is_finished_before_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "PATIENCE", 0.0)
    pages, ended, is_busy = Presence(), threading.Event(), threading.Event()
    is_busy.set()
    pages.note("one", True)
    pages.note("one", False)
    pages.watch(ended.set, is_busy.is_set)
    assert not ended.wait(1.2)
    is_busy.clear()
    assert ended.wait(PATIENCE)


def test_a_page_that_was_opened_again_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "PATIENCE", 0.0)
    pages = Presence()
    assert not pages.is_left()  # before the first page
    pages.note("one", True)
    pages.note("one", False)
    pages.note("two", True)  # as on the way from one page to the next
    assert not pages.is_left()
    pages.note("two", False)
    time.sleep(0.01)
    assert pages.is_left()


def test_a_page_that_is_silent_for_long_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "PATIENCE", 0.0)
    pages = Presence()
    pages.note("one", True)
    monkeypatch.setattr(presence, "SILENCE", 0.0)
    time.sleep(0.01)
    pages.is_left()
    time.sleep(0.01)
    assert pages.is_left()
