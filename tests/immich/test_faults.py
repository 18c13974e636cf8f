"""A server that refuses, fails, lies or waits: one sentence each, and nothing is lost."""

import time

import pytest

from tagkin.errors import InvalidInput, ServerError
from tagkin.immich import Connection, ImmichServer, check_address, http
from tagkin.immich.server import PERMISSIONS

from .conftest import picture
from .serving import CUT, KEY, NONSENSE


@pytest.fixture
def check(immich, tmp_path):
    """Return a function that looks at the server with a key."""
    return lambda key=KEY: ImmichServer(Connection(immich.address, key), tmp_path).check()


def test_a_server_and_its_user(check):
    assert check() == "Ada"


def test_a_wrong_key(check):
    with pytest.raises(ServerError, match="does not know the key") as caught:
        check("wrong-key")
    assert "wrong-key" not in str(caught.value)


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_a_key_without_a_permission(immich, check, permission):
    immich.permissions.remove(permission)
    with pytest.raises(ServerError, match=rf"lacks {permission}\. Add it"):
        check()


def test_a_key_with_all_permissions(immich, check):
    immich.permissions = ["all"]
    assert check() == "Ada"


def test_a_permission_that_was_taken_away(catalogue, immich):
    immich.fail("POST /search/metadata", (403, {}))
    with pytest.raises(ServerError, match="refuses the key: as the test wants"):
        catalogue.scan()


def test_another_version(immich, check):
    immich.version = (2, 7, 1)
    with pytest.raises(ServerError, match=r"is Immich 2\.7\.1\. tagkin works with Immich 3\.x"):
        check()


def test_tags_that_are_switched_off(immich, check):
    immich.has_tags = False
    with pytest.raises(ServerError, match="Tags are switched off for you"):
        check()


@pytest.mark.parametrize("answer", [NONSENSE, 404])
def test_another_program(immich, check, answer):
    immich.fail("GET /server/version", answer)
    with pytest.raises(ServerError, match=r"not an Immich server|not answer as Immich"):
        check()


def test_nobody_answers(immich, tmp_path):
    server = ImmichServer(Connection("http://127.0.0.1:9", KEY), tmp_path)
    with pytest.raises(ServerError, match="cannot be reached"):
        server.check()


def test_redirects_are_not_followed(immich, check):
    immich.fail("GET /users/me", (302, {"location": "http://elsewhere.example/api/users/me"}))
    with pytest.raises(ServerError, match=r"elsewhere\.example.*does not follow"):
        check()


def test_proxies_of_the_environment_are_not_used(immich, check, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert check() == "Ada"


@pytest.mark.parametrize("faults", [(500, 502, 503), (CUT, CUT), ((429, {"retry-after": "0"}),)])
def test_a_busy_server_is_asked_again(immich, check, faults):
    immich.fail("GET /users/me$", *faults)
    assert check() == "Ada"


@pytest.mark.parametrize("fault", [500, CUT, (429, {})])
def test_a_server_that_stays_busy_is_given_up(immich, check, fault):
    immich.fail("GET /users/me$", *[fault] * 4)
    with pytest.raises(ServerError, match="try again later"):
        check()
    assert immich.faults == []
    assert check() == "Ada"


def test_the_pause_that_a_server_asks_for_is_kept(immich, check, monkeypatch):
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 30))
    waits = ("7", later, "999999")
    immich.fail("GET /users/me$", *((429, {"retry-after": wait}) for wait in waits))
    assert check() == "Ada"
    assert pauses[0] == 7
    assert pauses[1] == http.PAUSES[1]  # a date is not understood
    assert pauses[2] == 60  # no longer, whatever it asks for


def test_a_slow_server_is_waited_for_with_patience(immich, check, monkeypatch):
    immich.fail("GET /users/me$", 0.2)
    assert check() == "Ada"
    monkeypatch.setattr("tagkin.immich.http.TIMEOUT", 0.1)
    immich.fail("GET /users/me$", *[0.5] * 4)
    with pytest.raises(ServerError, match="cannot be reached"):
        check()


def test_an_answer_has_a_limit(immich, photos, open_collection, monkeypatch):
    monkeypatch.setattr("tagkin.immich.http.MAX_BYTES", 100_000)
    photos[0].preview = picture(1) + bytes(200_000)
    with open_collection() as catalogue, pytest.raises(ServerError, match="100,000 bytes"):
        catalogue.scan()


@pytest.mark.parametrize("request_", ["POST /search/metadata", "GET /tags"])
def test_answers_of_another_form(immich, photos, open_collection, request_):
    immich.fail(request_, NONSENSE)
    with open_collection() as catalogue, pytest.raises(ServerError, match="not answer as Immich"):
        catalogue.scan()


def test_a_scan_that_breaks_off_is_continued(immich, open_collection):
    for i in range(40):
        immich.upload(f"{i}.jpg", picture(i))
    with open_collection() as catalogue:
        # the first batch is stored before the last photographs are read
        immich.fail(r"GET /assets/\S+/thumbnail", *[lambda: None] * 34, *[503] * 40)
        with pytest.raises(ServerError):
            catalogue.scan()
        immich.faults.clear()
        n_known = catalogue.photographs.count().n_photographs
        assert 0 < n_known < 40
        assert len(catalogue.scan().added) == 40 - n_known


# --- addresses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("https://immich.example.org/", "https://immich.example.org"),
        ("https://example.org:8443/photos/api/", "https://example.org:8443/photos"),
        ("http://192.168.1.5:2283", "http://192.168.1.5:2283"),
        ("http://localhost:2283/api", "http://localhost:2283"),
        ("http://nas.local", "http://nas.local"),
        ("http://nas.home:2283", "http://nas.home:2283"),
        ("http://[fd00::5]:2283", "http://[fd00::5]:2283"),
        ("http://127.1:2283", "http://127.1:2283"),
        ("https://b\u00fccher.example", "https://xn--bcher-kva.example"),
        ("http://3232235777", "http://3232235777"),  # 192.168.1.1
    ],
)
def test_addresses(typed, expected):
    assert check_address(typed) == expected


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("immich.example.org", "not the address"),
        ("ftp://example.org", "not the address"),
        ("https://", "not the address"),
        ("https://example.org:port", "not the address"),
        ("https://ada:secret@example.org", "neither a name and password"),
        ("https://example.org/?key=secret", "neither a name and password"),
        ("http://immich.example.org", "could send the key unencrypted"),
        ("http://home.example.org", "unencrypted"),
        ("http://93.184.216.34:2283", "unencrypted"),
        ("http://134744072", "unencrypted"),  # 8.8.8.8
        ("http://0x08080808", "unencrypted"),
        ("http://010.8.8.8", "unencrypted"),
        ("http://8.526344", "unencrypted"),
        ("http://[::ffff:8.8.8.8]", "unencrypted"),
        (
            "http://\uff11\uff13\uff14\uff17\uff14\uff14\uff10\uff17\uff12",
            "unencrypted",
        ),  # wide digits
        ("http://8\u30028\u30028\u30028", "unencrypted"),  # full stops of Chinese
        ("http://nas .local", "unusual letters"),
        (f"http://{'a' * 64}", "not the address"),
        ("https://example.org/a b", "unusual letters"),
        ("https://example.org/\u00e9", "unusual letters"),
    ],
)
def test_addresses_that_are_refused(typed, reason):
    with pytest.raises(InvalidInput, match=reason):
        check_address(typed)
