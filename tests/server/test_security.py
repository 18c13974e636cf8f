"""Who may ask: every promise of the guard, through real HTTP."""

import random
import re
import socket
from pathlib import Path

import pytest

from tagkin.catalogue import Catalogue
from tagkin.errors import InvalidInput
from tagkin.server import Access, Desk, Review, Server
from tagkin.server.pages import Assets
from tagkin.server.security import MAX_BODY
from tests.catalogue.suggested import content, decisions

from .browser import Browser, Running
from .conftest import tag

pytestmark = pytest.mark.usefixtures("shared")

EVERYWHERE = [
    "/",
    "/tags",
    "/events/1",
    "/doubtful",
    "/search",
    "/overview",
    "/api/v1/state",
    "/api/v1/tags",
    "/static/review.js",
    "/thumbnails/256/1-0000000000000000.jpg",
    "/nowhere",
]


# --- the secret ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", EVERYWHERE)
def test_nothing_without_the_secret(running: Running, path: str) -> None:
    stranger = Browser(running.port)
    assert stranger.get(path).status == 403
    stranger.cookie = "tagkin=wrong"
    assert stranger.get(path).status == 403
    assert stranger.get(f"{path}?key=wrong").status == 403


@pytest.mark.parametrize("path", EVERYWHERE)
def test_one_secret_of_two_is_not_enough(running: Running, browser: Browser, path: str) -> None:
    """Other ports receive cookies; an address may be seen in a history of a browser."""
    assert browser.get(path).status in (200, 303, 404)
    with_cookie, in_folder = Browser(running.port), Browser(running.port)
    with_cookie.cookie, in_folder.folder = browser.cookie, browser.folder
    assert with_cookie.get(path).status == 403
    assert in_folder.get(path).status == 403


def test_a_cookie_of_the_same_name_from_another_port_locks_nobody_out(browser: Browser) -> None:
    browser.cookie = f"tagkin=planted; {browser.cookie}; tagkin=planted"
    assert browser.get("/tags").status == 200


def test_nothing_is_done_without_the_secret(running: Running, catalogue: Catalogue) -> None:
    stranger = Browser(running.port)
    body = {"accept": [[content(catalogue, "a.jpg"), "holiday"]]}
    for path in ("/api/v1/decisions", "/api/v1/undo", "/api/v1/redo", "/api/v1/fit"):
        assert stranger.post(path, body).status == 403
        assert stranger.post(f"{path}?key={running.access.key}", body).status == 403
    assert decisions(catalogue) == {}


def test_the_secret_becomes_a_cookie_that_no_script_reads(running: Running) -> None:
    person = Browser(running.port)
    response = person.open(running.access.key)
    folder = f"/{running.access.folder}/"
    assert (response.status, response.headers["location"]) == (
        303,
        f"{folder}1/",
    )  # without the key
    name, *attributes = response.headers["set-cookie"].split("; ")
    assert set(attributes) == {"HttpOnly", "SameSite=strict", f"Path={folder}"}
    assert running.access.key not in name
    assert person.get("/tags").status == 200


def test_whoever_comes_from_elsewhere_is_led_on_by_a_page_of_ours(running: Running) -> None:
    """A redirect would still come from there, and the browser would keep the cookie back."""
    person = Browser(running.port)
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    response = person.get(f"/?key={running.access.key}", **link)
    assert (response.status, "set-cookie" in response.headers) == (200, True)
    assert f'http-equiv="refresh" content="0; url=/{running.access.folder}/1/"' in response.text
    assert running.access.key not in response.text


def test_the_secret_that_a_browser_is_started_with_opens_once(running: Running) -> None:
    path = f"/?key={running.access.first_key}"
    assert running.server.first_address.endswith(path)
    assert Browser(running.port).get(path).status == 303
    assert Browser(running.port).get(path).status == 403
    assert Browser(running.port).get(f"/?key={running.access.key}").status == 303


def test_secrets_are_long_and_new_each_time() -> None:
    first, other = Access(), Access()
    each = [(it.key, it.first_key, it.session, it.folder) for it in (first, other)]
    assert len({*each[0], *each[1]}) == 8
    assert min(map(len, each[0])) >= 43  # 256 bits
    assert not [secret for secret in each[0] if secret in repr(first)]


# --- the address ---------------------------------------------------------------------------


def test_bound_to_loopback_only(running: Running) -> None:
    assert running.server.address.startswith(f"http://127.0.0.1:{running.port}/?key=")
    # another address of this machine, which a server on all addresses would answer at
    with socket.socket() as own, pytest.raises(ConnectionRefusedError):
        own.connect(("127.0.0.2", running.port))


def test_an_address_that_is_taken_is_a_sentence(review: Review, running: Running) -> None:
    with pytest.raises(InvalidInput, match=rf"port {running.port}: .*--port"):
        Server(Desk(review), Access(), running.port)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "",
        "127.0.0.1.evil.example",
        "evil.example@127.0.0.1",
        "127.0.0.1@evil.example",
        "127.0.0.1/evil.example",
        "127.0.0.1,evil.example",
        "[::1",
        "[::1]evil.example",
        "[",
    ],
)
def test_foreign_names_for_this_machine_are_refused(browser: Browser, host: str) -> None:
    """DNS rebinding: a page of evil.example whose name comes to point to 127.0.0.1."""
    assert browser.get("/tags", Host=host).status == 403


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1:9000", "[::1]:9000", "LOCALHOST"])
def test_own_names_are_not(browser: Browser, host: str) -> None:
    assert browser.get("/tags", Host=host).status == 200


# --- other pages ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://evil.example@127.0.0.1:{port}"},
        {"Origin": "http://["},
        {"Origin": "http://127.0.0.1:{port} http://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "null"},
    ],
)
def test_other_pages_change_nothing(
    browser: Browser, catalogue: Catalogue, headers: dict[str, str]
) -> None:
    body = {"accept": [[content(catalogue, "a.jpg"), "holiday"]]}
    sent = {name: value.format(port=browser.port) for name, value in headers.items()}
    assert browser.post("/api/v1/decisions", body, **sent).status == 403
    assert decisions(catalogue) == {}


def test_forms_of_other_pages_change_nothing(browser: Browser, catalogue: Catalogue) -> None:
    """What a form sends without asking first is not JSON, whatever is in it."""
    body = f'{{"accept": [[{content(catalogue, "a.jpg")}, "holiday"]]}}'.encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert browser.ask("POST", "/api/v1/decisions", body, {"Content-Type": kind}).status == 422
    assert decisions(catalogue) == {}


def test_other_pages_show_no_pictures(browser: Browser) -> None:
    image = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    for path in ("/api/v1/state", "/tags", "/thumbnails/256/1-0000000000000000.jpg"):
        assert browser.get(path, **image).status == 403
    assert browser.get("/api/v1/state").headers["cross-origin-resource-policy"] == "same-origin"


def test_own_pages_do(browser: Browser, running: Running, catalogue: Catalogue) -> None:
    body = {"accept": [[content(catalogue, "a.jpg"), "holiday"]]}
    own = {"Origin": f"http://127.0.0.1:{running.port}", "Sec-Fetch-Site": "same-origin"}
    assert browser.post("/api/v1/decisions", body, **own).status == 200
    assert browser.post("/api/v1/undo", **own).json["decisions"] == 1
    assert decisions(catalogue) == {}


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_nothing_is_done_by_other_methods(
    browser: Browser, catalogue: Catalogue, method: str
) -> None:
    response = browser.ask(method, "/api/v1/decisions")
    assert response.status in (403, 404, 405)
    assert "access-control-allow-origin" not in response.headers
    assert decisions(catalogue) == {}


# --- what answers carry ----------------------------------------------------------------------


@pytest.mark.parametrize("path", [*EVERYWHERE, "/tags/1", "/photographs/1"])
@pytest.mark.parametrize("has_cookie", [True, False])
def test_headers_of_every_answer(running: Running, path: str, has_cookie: bool) -> None:
    person = Browser(running.port)
    if has_cookie:
        person.open(running.access.key)
    headers = person.get(path).headers
    policy = dict(
        part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert set(policy.values()) == {"'none'", "'self'"}  # nothing inline, nothing from elsewhere
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers
    assert "x-powered-by" not in headers


def test_pages_have_no_inline_script_or_style(browser: Browser, catalogue: Catalogue) -> None:
    number = content(catalogue, "a.jpg")
    for path in [*EVERYWHERE[1:6], f"/tags/{tag(catalogue, 'beach')}", f"/photographs/{number}"]:
        page = browser.get(path).text
        assert not re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", page)
        assert not re.findall(r"<style|\sstyle=|\son\w+=|javascript:", page)
        assert not re.findall(r"(?:src|href|action)=\"(?:\w+:|//)[^\"]*\"", page)  # from here alone


def test_no_documentation_and_no_listing(browser: Browser) -> None:
    for path in ("/docs", "/redoc", "/openapi.json", "/static", "/static/", "/thumbnails/256/"):
        assert browser.get(path).status == 404, path


# --- paths and sizes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../serving.py", "..%2fserving.py", "%2e%2e/serving.py", "/etc/passwd", "%00"]
)
def test_no_path_reaches_the_file_system(browser: Browser, name: str) -> None:
    for path in (
        f"/static/{name}",
        f"/thumbnails/256/{name}",
        f"/thumbnails/{name}/1-0000000000000000.jpg",
        f"/photographs/{name}",
        f"/tags/{name}",
        f"/{name}",
    ):
        response = browser.get(path)
        assert response.status in (404, 422), path
        assert b"root:" not in response.body
        assert b"FastAPI" not in response.body


def test_scripts_that_an_installer_linked_are_served(tmp_path: Path) -> None:
    static, outside = tmp_path / "static", tmp_path / "outside.js"
    static.mkdir()
    outside.write_text("// of the installer's cache")
    assets = Assets()
    assets.all_directories = [static]
    try:
        (static / "page.js").symlink_to(outside)
    except OSError:
        pytest.skip("this system makes no links")
    assert assets.lookup_path("page.js")[1] is not None
    assert assets.lookup_path("../outside.js")[1] is None


def test_requests_have_a_limit(browser: Browser, catalogue: Catalogue) -> None:
    large = b'{"accept": [' + b" " * MAX_BODY + b"]}"
    headers = {"Content-Type": "application/json"}
    assert browser.ask("POST", "/api/v1/decisions", large, headers).status == 413
    # in pieces, without a word on how many there will be
    pieces = (b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in [b" " * 65536] * 17)
    request = (
        f"POST {browser.folder}/api/v1/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Cookie: {browser.cookie}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", browser.port), timeout=120) as connection:
        connection.sendall(request.encode() + b"".join(pieces) + b"0\r\n\r\n")
        assert b" 413 " in connection.recv(4096).split(b"\r\n")[0]
    assert browser.get("/tags?" + "x" * 100_000).status in (400, 414, 431)
    assert browser.get(f"/search?name={'x' * 1000}").status == 422
    assert browser.get("/search?n=100000").status == 422
    assert browser.get("/api/v1/state").status == 200


def test_headers_at_random_are_answered(
    browser: Browser, catalogue: Catalogue, capfd: pytest.CaptureFixture[str]
) -> None:
    """Every answer is a refusal or a page: never an internal error, never a traceback."""
    rng = random.Random(0)
    pieces = ["127.0.0.1", "localhost", "[::1]", "[", "]", ":", "@", "/", "http://", "null", "%"]
    pieces += [
        "evil.example",
        "tagkin=",
        ";",
        ",",
        '"',
        "\\",
        "\xff",
        "\t",
        "9" * 30,
        "=",
        "?",
        "é",
    ]
    names = ["Host", "Origin", "Cookie", "Sec-Fetch-Site", "Sec-Fetch-Mode", "Content-Type"]
    names += ["Content-Length", "Transfer-Encoding", "Referer", "X-Forwarded-For", "Forwarded"]
    for _ in range(300):
        own = {"Host": "127.0.0.1", "Cookie": browser.cookie or ""}
        for name in rng.sample(names, rng.randrange(1, 4)):
            own[name] = "".join(rng.choices(pieces, k=rng.randrange(5)))
        method = rng.choice(["GET", "HEAD", "POST", "OPTIONS"])
        path = rng.choice(["/", f"{browser.folder}/tags", f"{browser.folder}/api/v1/decisions"])
        lines = [f"{method} {path} HTTP/1.1", *(f"{k}: {v}" for k, v in own.items()), "", ""]
        with socket.create_connection(("127.0.0.1", browser.port), timeout=120) as connection:
            connection.sendall("\r\n".join(lines).encode("latin-1"))
            connection.shutdown(socket.SHUT_WR)
            status = connection.recv(4096).split(b" ", 2)[1:2]
        assert status in ([], [b"200"], [b"303"], [b"400"], [b"403"], [b"405"], [b"422"]), lines
    assert browser.get("/api/v1/state").status == 200
    assert decisions(catalogue) == {}
    assert "Traceback" not in capfd.readouterr().err


def test_numbers_that_are_none(browser: Browser) -> None:
    for number in ("-1", "1e9", "99999999999999999999", "1;DROP TABLE tags", "0x10", "null"):
        path = number.replace(" ", "%20")
        assert browser.get(f"/photographs/{path}").status == 422, number
        assert browser.get(f"/search?tag={path}").status == 422, number
    assert browser.get("/api/v1/tags/1/suggestions?after=x:y").status == 400
