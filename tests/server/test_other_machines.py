"""A server that other machines reach: nobody gets in without the password, by any way."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tagkin.catalogue import Catalogue
from tagkin.errors import InvalidInput
from tagkin.server import Access, Desk, Password, Review, Server, login
from tagkin.server.security import MAX_BODY
from tests.catalogue.suggested import content, decisions

from .browser import Answer, Browser

SECRET = "correct horse battery"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NAME = "photos.example"


class Shared:
    """A server for other machines, in a thread of this process."""

    def __init__(self, review: Review | None, within: Path, host: str = "127.0.0.1"):
        names = frozenset({NAME})
        self.access = Access(host=host, password=Password(SECRET), names=names)
        self.desk = Desk(review)
        self.server = Server(self.desk, self.access, 0, within=within)
        self._thread = threading.Thread(target=self.server.run, daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return self.server.port

    def stop(self) -> None:
        self.server.stop()
        self._thread.join(120)


@pytest.fixture
def house(review: Review, root: Path) -> Iterator[Shared]:
    running = Shared(review, root)
    yield running
    running.stop()


def log_in(browser: Browser, password: str = SECRET, **headers: str) -> Answer:
    body = f"password={quote(password)}".encode()
    folder, browser.folder = browser.folder, ""
    answer = browser.ask("POST", "/login", body, FORM | headers)
    browser.folder = folder
    return answer


@pytest.fixture
def member(house: Shared) -> Browser:
    """Somebody who knows the password."""
    browser = Browser(house.port)
    browser.enter(log_in(browser))
    return browser


def patient(house: Shared) -> Browser:
    return Browser(house.port)


# --- without the password ---------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "127.0.0.2"])
def test_never_without_a_password(host: str) -> None:
    with pytest.raises(InvalidInput, match="needs a password"):
        Access(host=host)


def test_never_with_a_short_password() -> None:
    for text in ("", "short", "x" * 11):
        with pytest.raises(InvalidInput, match=f"has {len(text)} characters"):
            Password(text)
    with pytest.raises(InvalidInput, match="more than"):
        Password("x" * 2000)


def test_the_password_is_kept_as_a_slow_hash() -> None:
    password = Password(SECRET)
    assert SECRET not in repr(vars(password))
    began = time.process_time()
    assert password.matches(SECRET)
    assert not password.matches(SECRET[:-1])
    assert not password.matches("x" * 100_000)
    assert time.process_time() - began > 0.01  # two hashes
    assert vars(password) != vars(Password(SECRET))  # with salt


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/start",
        "/folders",
        "/1/tags",
        "/tags",
        "/1/api/v1/state",
        "/api/v1/desk",
        "/static/review.js",
        "/1/thumbnails/256/1-0000000000000000.jpg",
        "/pictures/1.jpg",
        "/login/../start",
    ],
)
def test_nothing_is_shown_without_a_session(house: Shared, member: Browser, path: str) -> None:
    stranger = Browser(house.port)
    for folder in ("", member.folder, f"/{house.access.folder}"):
        stranger.folder = folder
        for cookie in (None, "tagkin=", "tagkin=wrong", f"tagkin={house.access.session}"):
            stranger.cookie = cookie
            answer = stranger.get(path)
            assert (answer.status, answer.headers.get("location")) == (303, "/login")
            assert stranger.get(path, **{"Sec-Fetch-Mode": "cors"}).status in (401, 403)
            for key in (house.access.key, house.access.first_key, house.access.session):
                assert stranger.get(f"/?key={key}").headers["location"] == "/login"


def test_nothing_is_done_without_a_session(
    house: Shared, member: Browser, catalogue: Catalogue
) -> None:
    stranger = Browser(house.port)
    body = {"accept": [[content(catalogue, "a.jpg"), "holiday"]]}
    for stranger.folder in ("", member.folder, f"/{house.access.folder}"):
        for path in ("/api/v1/decisions", "/api/v1/desk/open", "/api/v1/desk/quit", "/logout"):
            assert stranger.post(path, body).status == 401
    assert decisions(catalogue) == {}
    assert member.get("/tags").status == 200


def test_the_page_that_asks_says_nothing_else(house: Shared) -> None:
    page = Browser(house.port).get("/login")
    assert page.status == 200
    assert house.access.folder not in page.text
    assert not re.findall(r"<script|<style|\sstyle=|\son\w+=", page.text)
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert Browser(house.port).get("/login.css").status == 200
    assert Browser(house.port).get("/login.js").status == 303


# --- with it ----------------------------------------------------------------------------------


def test_with_the_password_everything_is_there(member: Browser, catalogue: Catalogue) -> None:
    assert member.get("/tags").status == 200
    own = {"Origin": f"http://127.0.0.1:{member.port}", "Sec-Fetch-Site": "same-origin"}
    body = {"accept": [[content(catalogue, "a.jpg"), "holiday"]]}
    assert member.post("/api/v1/decisions", body, **own).status == 200
    assert len(decisions(catalogue)) == 1


def test_the_cookie_of_a_session(house: Shared) -> None:
    plain = log_in(Browser(house.port), Host=NAME, Origin=f"http://{NAME}")
    _, *attributes = plain.headers["set-cookie"].split("; ")
    limits = {f"Max-Age={int(login.LIFETIME)}", f"Path=/{house.access.folder}/"}
    assert set(attributes) == limits | {"HttpOnly", "SameSite=strict"}
    behind_tls = log_in(Browser(house.port), Host=NAME, Origin=f"https://{NAME}")
    assert "Secure" in behind_tls.headers["set-cookie"].split("; ")
    assert plain.headers["set-cookie"].split(";")[0] != behind_tls.headers["set-cookie"]


def test_every_session_has_its_own_secret(house: Shared) -> None:
    cookies = {log_in(Browser(house.port)).headers["set-cookie"].split(";")[0] for _ in range(3)}
    assert len(cookies) == 3
    assert min(map(len, cookies)) >= len("tagkin=") + 43


# --- replay -----------------------------------------------------------------------------------


def test_a_session_cannot_be_used_after_logging_out(house: Shared, member: Browser) -> None:
    other = Browser(house.port)
    other.enter(log_in(other))
    start = Browser(house.port)
    start.cookie, start.folder = member.cookie, f"/{house.access.folder}"
    assert start.post("/logout").headers["location"] == "/login"
    assert member.get("/tags").headers["location"] == "/login"
    assert member.post("/api/v1/undo").status == 401
    assert other.get("/tags").status == 200  # only that one


def test_a_session_ends_by_itself(
    house: Shared, member: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "LIFETIME", 0.3)
    short = Browser(house.port)
    short.enter(log_in(short))
    assert short.get("/tags").status == 200
    time.sleep(0.4)
    assert short.get("/tags").headers["location"] == "/login"
    assert member.get("/tags").status == 200


def test_a_session_of_another_start_is_not_known(
    house: Shared, member: Browser, root: Path
) -> None:
    again = Shared(None, root)
    try:
        replayed = Browser(again.port)
        replayed.cookie = member.cookie
        for replayed.folder in (member.folder, f"/{again.access.folder}"):
            assert replayed.get("/start").headers["location"] == "/login"
    finally:
        again.stop()


# --- guessing ---------------------------------------------------------------------------------


def test_wrong_passwords_are_slowed(house: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "FIRST_WAIT", 30.0)
    assert (log_in(patient(house), "wrong password").status) == 403
    for guess in ("wrong password", SECRET):  # even the right one: it is not checked
        answer = log_in(patient(house), guess)
        assert (answer.status, "set-cookie" in answer.headers) == (429, False)
        assert 20 < int(answer.headers["retry-after"]) <= 31


@pytest.mark.parametrize(("n", "seconds"), [(0, 100), (1, 200), (3, 800), (9, 1000)])
def test_each_wrong_password_costs_twice_as_much(
    house: Shared, monkeypatch: pytest.MonkeyPatch, n: int, seconds: int
) -> None:
    monkeypatch.setattr(login, "FIRST_WAIT", 0.0)
    monkeypatch.setattr(login, "LONGEST_WAIT", 1000.0)
    for _ in range(n):
        assert log_in(patient(house), "wrong password").status == 403
    monkeypatch.setattr(login, "FIRST_WAIT", 100.0)
    assert log_in(patient(house), "wrong password").status == 403
    wait = int(log_in(patient(house)).headers["retry-after"])
    assert 0.8 * seconds < wait <= seconds + 1


def test_the_right_password_ends_the_slowness(
    house: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "FIRST_WAIT", 0.0)
    for _ in range(3):
        assert log_in(patient(house), "wrong password").status == 403
    assert log_in(patient(house)).status == 303
    monkeypatch.setattr(login, "FIRST_WAIT", 100.0)
    assert log_in(patient(house), "wrong password").status == 403
    assert int(log_in(patient(house)).headers["retry-after"]) <= 101  # as after the first


def test_brute_force_side_by_side(house: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a hundred guesses at once, one is checked; those with a session go on."""
    monkeypatch.setattr(login, "FIRST_WAIT", 60.0)
    member = Browser(house.port)
    member.enter(log_in(member))
    codes: list[int] = []

    def guess(k: int) -> None:
        codes.append(log_in(patient(house), SECRET if k == 60 else f"guess number {k}").status)

    threads = [threading.Thread(target=guess, args=(k,)) for k in range(100)]
    for k, thread in enumerate(threads):
        thread.start()
        if k == 50:
            assert member.get("/tags").status == 200
    for thread in threads:
        thread.join(120)
    assert len(codes) == 100
    assert codes.count(403) == 1
    assert set(codes) == {403, 429}


def test_a_form_that_is_none(house: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "FIRST_WAIT", 0.0)
    asked = Browser(house.port)
    for body in (b"", b"password", b"\xff" * 500, b"&" * 5000, b"password=" + b"x" * 900_000):
        assert asked.ask("POST", "/login", body, FORM).status == 403
    assert asked.ask("POST", "/login", b"x" * (MAX_BODY + 100), FORM).status == 413
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert asked.ask(method, "/login", f"password={SECRET}".encode(), FORM).status == 401
    assert "set-cookie" not in asked.get(f"/login?password={quote(SECRET)}").headers


# --- other names, and other pages -----------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        f"{NAME}.evil.example",
        f"evil.{NAME}",
        f"evil.example@{NAME}",
        f"{NAME}@evil.example",
        f"{NAME},evil.example",
        f"{NAME} ",
        "",
        "[::1]evil.example",
        "127.0.0.1.evil.example",
        "0x7f000001",
        "2130706433",
    ],
)
def test_foreign_names_are_refused(member: Browser, host: str) -> None:
    if host != f"{NAME} ":  # spaces around a header are not part of it
        assert member.get("/tags", Host=host).status == 403
        assert log_in(Browser(member.port), Host=host).status == 403


@pytest.mark.parametrize("host", [NAME, NAME.upper(), f"{NAME}:8765", "192.0.2.7:80", "[2001::1]"])
def test_listed_names_and_numbers_are_not(member: Browser, host: str) -> None:
    assert member.get("/tags", Host=host).status == 200


def test_a_list_of_names_has_names() -> None:
    for name in ("http://nas.home", "nas.home:80", "", "a b", "*.home"):
        with pytest.raises(InvalidInput, match="is not the name of a machine"):
            Access(host="0.0.0.0", password=Password(SECRET), names=frozenset({name}))
    with pytest.raises(InvalidInput, match="is not the number of an address"):
        Access(host="nas.home", password=Password(SECRET))


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1"},
        {"Origin": f"http://{NAME}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
        {"X-Forwarded-Host": "evil.example", "Origin": "http://evil.example"},
        {"Forwarded": "host=evil.example", "Origin": "https://evil.example"},
    ],
)
def test_other_pages_do_nothing(
    house: Shared, member: Browser, catalogue: Catalogue, headers: dict[str, str]
) -> None:
    body = {"accept": [[content(catalogue, "a.jpg"), "holiday"]]}
    assert member.post("/api/v1/decisions", body, **headers).status == 403
    assert member.post("/api/v1/write", **headers).status == 403
    start = Browser(house.port)
    start.cookie, start.folder = member.cookie, f"/{house.access.folder}"
    for path in ("/logout", "/api/v1/desk/sample", "/api/v1/desk/open"):
        assert start.post(path, **headers).status == 403
    assert log_in(Browser(house.port), **headers).status == 403  # nor log anybody in
    assert member.get("/tags").status == 200
    assert decisions(catalogue) == {}


def test_a_name_may_be_behind_tls(member: Browser) -> None:
    own = {"Host": NAME, "Sec-Fetch-Site": "same-origin"}
    assert member.post("/api/v1/undo", Origin=f"https://{NAME}", **own).status == 200
    assert member.post("/api/v1/undo", Origin=f"http://{NAME}", **own).status == 200


# --- folders outside -------------------------------------------------------------------------


def test_folders_outside_are_neither_shown_nor_opened(
    house: Shared, member: Browser, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "photos-of-others"
    outside.mkdir()
    (outside / "secret.jpg").write_bytes((root / "a.jpg").read_bytes())
    (outside / "hidden").mkdir()
    try:
        (root / "link").symlink_to(outside, target_is_directory=True)
        (root / "secret.jpg").symlink_to(outside / "secret.jpg")
    except OSError:
        pytest.skip("this system makes no links")
    start = Browser(house.port)
    start.cookie, start.folder = member.cookie, f"/{house.access.folder}"
    page = start.get("/folders")
    assert [e.text_content() for e in page.elements("//ul[@class='folders']/li")] == ["20242"]
    assert page.elements("//ol[@class='path']//a") == []  # nothing above
    shown = [e.get("alt") for e in page.elements("//ul[@class='strip']//img")]
    assert "a.jpg" in shown
    assert "secret.jpg" not in shown
    ways = [
        str(outside),
        "/",
        "/etc",
        str(tmp_path),
        f"{root}/..",
        f"{root}/../photos-of-others",
        f"{root}/link",
        f"{root}/2024/../../photos-of-others",
        f"//{outside}",
        f"{root}-of-others",
        "..",
        "~",
        "",
        f"{root}\0/../photos-of-others",
    ]
    for path in ways:
        asked = f"path={quote(path, safe='')}"
        text = start.get(f"/folders?{asked}").text
        assert "secret.jpg" not in text
        assert ">hidden<" not in text
        assert "<li><img" not in text or not path
        assert start.post(f"/api/v1/desk/open?{asked}").status in (400, 404)
    double = quote(quote(f"{root}/../photos-of-others", safe=""), safe="")
    assert start.post(f"/api/v1/desk/open?path={double}").status == 400
    assert start.get("/pictures/../../etc/passwd.jpg").status in (303, 404, 422)
    assert house.desk.opened is not None
    assert house.desk.opened.review.root == root


def test_the_server_is_not_ended_from_another_machine(house: Shared, member: Browser) -> None:
    start = Browser(house.port)
    start.cookie, start.folder = member.cookie, f"/{house.access.folder}"
    answer = start.post("/api/v1/desk/quit")
    assert (answer.status, answer.json["error"][:14]) == (400, "Other machines")
    assert "Log out" in start.get("/start").text
    assert 'id="quit"' not in start.get("/start").text


def test_other_addresses_of_the_machine_answer_then(root: Path) -> None:
    running = Shared(None, root, host="0.0.0.0")
    try:
        assert Browser(running.port, "127.0.0.2").get("/start").headers["location"] == "/login"
        assert running.server.address == f"http://{NAME}:{running.port}/"
    finally:
        running.stop()
    with pytest.raises(ConnectionRefusedError), socket.socket() as gone:
        gone.connect(("127.0.0.2", running.port))
