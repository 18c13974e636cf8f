"""A server that drips, repeats, swells or sends nonsense: one sentence, in time and in memory."""

import gzip
import itertools
import shutil
import ssl
import subprocess
import threading
import time
import tracemalloc
import zlib
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tagkin.errors import ServerError, TagkinError
from tagkin.immich import Connection, ImmichServer, http, server
from tagkin.immich.client import Client

from .conftest import path_of
from .hostile import HostileServer, drip, head
from .serving import KEY, NONSENSE
from .test_writing import accept


@pytest.fixture
def deadline(monkeypatch):
    monkeypatch.setattr(http, "DEADLINE", 1.0)


def check(address, folder):
    """Look at a server as a command does; return the error and the seconds it took."""
    start = time.monotonic()
    with pytest.raises(ServerError) as caught:
        ImmichServer(Connection(address, KEY), folder).check()
    return str(caught.value), time.monotonic() - start


# --- time --------------------------------------------------------------------------------

LONG = b'{"major": 3, "minor": 3, "patch": 5}' + b" " * 10_000
DRIPPING = {
    "status line": lambda: drip(head() + LONG),
    "headers": lambda: itertools.chain([b"HTTP/1.1 200 OK\r\n"], drip(b"x: " + b"y" * 60_000)),
    "body": lambda: itertools.chain([head(f"content-length: {len(LONG)}")], drip(LONG)),
    "body without a length": lambda: itertools.chain([head("connection: close")], drip(LONG)),
    "chunks": lambda: itertools.chain(
        [head("transfer-encoding: chunked")], drip(b"1\r\n \r\n" * 9_000)
    ),
    "trailers": lambda: itertools.chain(
        [head("transfer-encoding: chunked"), b"0\r\n"], itertools.repeat(b"x: y\r\n")
    ),
    "100 Continue": lambda: itertools.repeat(head(status="100 Continue")),
}


@pytest.mark.parametrize("what", DRIPPING)
def test_a_request_as_a_whole_has_a_deadline(tmp_path, deadline, what):
    """However steadily its bytes come, each far within the time between two bytes."""
    with HostileServer(DRIPPING[what]) as hostile:
        error, seconds = check(hostile.address, tmp_path)
        assert hostile.n_requests == 1  # it is not repeated
    assert "did not finish an answer within 1 seconds" in error
    assert seconds < 10


def test_a_handshake_has_a_deadline(tmp_path, deadline):
    """The first bytes of a record of TLS, and then one by one."""
    record = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc"
    answer = lambda: itertools.chain([record], drip(bytes(16_000)))  # noqa: E731
    with HostileServer(answer, reads_request=False) as hostile:
        error, _ = check(f"https://127.0.0.1:{hostile.port}", tmp_path)
    assert "did not finish an answer" in error


def test_early_hints_without_end(tmp_path, deadline):
    hints = lambda: itertools.repeat(head("link: </x>", status="103 Early Hints"))  # noqa: E731
    with HostileServer(hints) as hostile:
        error, _ = check(hostile.address, tmp_path)
    assert "answers 103" in error


# --- size --------------------------------------------------------------------------------


def packed(size: int, times: int) -> bytes:
    """Return zeros that gzip packed several times."""
    packer = zlib.compressobj(9, wbits=31)
    data = b"".join(packer.compress(bytes(1 << 20)) for _ in range(size >> 20)) + packer.flush()
    for _ in range(times - 1):
        data = gzip.compress(data, 9)
    return data


@pytest.mark.parametrize(("encoding", "times"), [("gzip, gzip", 2), ("gzip", 1), ("br", 1)])
def test_nothing_is_unpacked(tmp_path, encoding, times):
    data = packed(1 << 27, times)
    assert times == 1 or len(data) < 2_000
    answer = [head(f"content-encoding: {encoding}", f"content-length: {len(data)}") + data]
    with HostileServer(lambda: answer) as hostile:
        tracemalloc.start()
        error, _ = check(hostile.address, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert f"packs its answer ({encoding}), which tagkin does not read" in error
    assert peak < 20e6


BOMB = 9_677  # bytes that once became 3,667 MB


def bomb() -> bytes:
    """Return 9,677 bytes that two unpackings make 3,667 MB."""
    packer = zlib.compressobj(9, wbits=-15)
    megabyte = packer.compress(bytes(10**6)) + packer.flush(zlib.Z_FULL_FLUSH)
    inner = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + megabyte * 3_667
    data = gzip.compress(inner + b"\3\0", 9)
    name = b"x" * (BOMB - len(data) - 1) + b"\0"  # of the file, as gzip may tell it
    return data[:3] + b"\x08" + data[4:10] + name + data[10:]


def test_a_bomb_of_ten_kilobytes_takes_no_memory(tmp_path):
    from tests.hardening.limits import within

    data = bomb()
    assert len(data) == BOMB
    unpacker = zlib.decompressobj(wbits=31)
    assert zlib.decompressobj(wbits=31).decompress(unpacker.decompress(data), 10**6) == bytes(10**6)
    for encoding in ("gzip, gzip", "GZIP,gzip", "identity, gzip"):
        head_of_it = head(f"content-encoding: {encoding}", f"content-length: {len(data)}")
        with HostileServer(lambda: [head_of_it + data]) as hostile:  # noqa: B023
            address = hostile.address

            def look(address=address) -> None:
                error, _ = check(address, tmp_path)
                assert "packs its answer" in error

            within(200_000_000, look, cpu_seconds=20)
            assert hostile.n_requests == 1


@pytest.mark.parametrize("length", ["content-length: 5000000000", "connection: close"])
def test_an_answer_without_end_is_cut(tmp_path, length):
    answer = lambda: itertools.chain([head(length)], itertools.repeat(bytes(1 << 20)))  # noqa: E731
    with HostileServer(answer) as hostile:
        error, _ = check(hostile.address, tmp_path)
    assert f"answers with more than {http.MAX_BYTES:,} bytes" in error


def test_a_chunk_of_fewer_than_no_bytes_has_an_end(tmp_path):
    """Python's client reads such a chunk until the connection ends."""
    start = head("transfer-encoding: chunked") + b"-1\r\n"
    answer = lambda: itertools.chain([start], itertools.repeat(bytes(1 << 20), 2000))  # noqa: E731
    with HostileServer(answer) as hostile:
        error, _ = check(hostile.address, tmp_path)
        assert hostile.n_requests == 1
    assert f"answers with more than {http.MAX_BYTES:,} bytes" in error


@pytest.mark.parametrize("length", ["content-length: 99", "transfer-encoding: chunked"])
def test_half_an_answer_is_no_answer(tmp_path, length):
    answer = lambda: [head(length, "connection: close") + b'{"major": 3}']  # noqa: E731
    with HostileServer(answer) as hostile:
        error, _ = check(hostile.address, tmp_path)
    assert "cannot be reached" in error


# --- encryption --------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
def test_an_unknown_certificate_is_refused_before_the_key_is_sent(tmp_path, monkeypatch):
    """Only the system's certificates count, and those that OpenSSL is told of."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    made += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        [*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(self.headers["x-api-key"])
            self.send_error(400)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.socket = context.wrap_socket(listening.socket, server_side=True)
        threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True).start()
        error, _ = check(f"https://localhost:{listening.server_port}", tmp_path)
        assert "certificate" in error
        assert seen == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        check(f"https://localhost:{listening.server_port}", tmp_path)
        assert seen
        seen.clear()
        error, _ = check(f"https://127.0.0.1:{listening.server_port}", tmp_path)  # another name
        assert "certificate" in error
        assert seen == []
        listening.shutdown()


# --- listings ----------------------------------------------------------------------------


def test_a_listing_that_repeats_itself_ends(photos, immich, open_collection):
    """Each page says that there is one more."""
    answer, immich.search = immich.search, lambda query: endless(answer(query | {"page": 1}), query)
    with open_collection() as catalogue:
        with pytest.raises(ServerError, match=r"lists no new photograph after 6, and says that"):
            catalogue.scan()
        searches = [path for _, path in immich.requests if path == "/search/metadata"]
        assert len(searches) == 2
        assert catalogue.photographs.count().n_photographs == 0


def endless(found, query):
    found["assets"]["nextPage"] = str(query.get("page", 1) + 1)
    return found


def test_a_listing_that_never_ends_has_a_cap(photos, immich, open_collection, monkeypatch):
    monkeypatch.setattr(server, "MAX_PHOTOGRAPHS", 50)
    item = immich.item(photos[0], exif=True)

    def one_more(query):
        page = query["page"]
        items = [item | {"id": f"{page:036}", "checksum": "A" * 23 + f"{page:04}="}]
        return {"assets": {"items": items, "nextPage": str(page + 1)}}

    immich.search = one_more
    with (
        open_collection() as catalogue,
        pytest.raises(ServerError, match="lists more than 50 photographs"),
    ):
        catalogue.scan()


@pytest.mark.parametrize("has_cursor", [True, False])
@pytest.mark.parametrize("removed", [0, 1, 4])
def test_a_photograph_that_is_trashed_while_pages_are_listed(
    photos, immich, open_collection, has_cursor, removed
):
    """It moves all others one place to the front. Only it is gone."""
    immich.has_cursor = has_cursor
    with open_collection() as catalogue:
        catalogue.scan()
        paths = [path_of(catalogue, photo) for photo in photos]
        immich.page_size = 2
        immich.fail("POST /search/metadata", lambda: None, lambda: immich.trash(photos[removed]))
        immich.requests.clear()
        result = catalogue.scan()
        gone = set(result.gone)
        assert gone <= {paths[removed]}  # or it was listed before
        assert result.retagged == []
        assert set(catalogue.scan().gone) | gone == {paths[removed]}
        n_asked = sum(path.startswith("/assets/") for _, path in immich.requests)
        assert n_asked <= 3


def test_a_tag_is_not_lost_because_a_list_shifts(photos, immich, open_collection):
    """While the list of its photographs is read, another one loses the tag."""
    for photo in photos:
        immich.tag(photo, "sky")
    with open_collection() as catalogue:
        catalogue.scan()
        paths = [path_of(catalogue, photo) for photo in photos]
        immich.page_size = 2

        def untag() -> None:
            immich.untag(photos[0], "sky")

        # three pages of photographs, then those of animals (2), dog and beach
        tags = [tag["value"] for tag in immich.tags.values()]
        assert tags[-1] == "sky"
        n_before = 3 + 2 + 1 + 1 + 1
        immich.fail("POST /search/metadata", *[lambda: None] * n_before, untag)
        result = catalogue.scan()
        assert immich.faults == []
        assert result.retagged in ([], [paths[0]])
        again = catalogue.scan()
        assert {*result.retagged, *again.retagged} == {paths[0]}
        assert catalogue.photographs.count().n_photographs == 6
        rejected = catalogue.database.column("SELECT content FROM decisions WHERE holds")
        assert rejected == [catalogue.photographs.content_of(paths[0])]


# --- what it says ------------------------------------------------------------------------


@pytest.mark.parametrize("request_", ["POST /search/metadata", "GET /tags"])
def test_the_message_of_a_bad_request_is_shown(catalogue, immich, request_):
    immich.fail(request_, (400, {}))
    with pytest.raises(ServerError, match=r"answers 400: as the test wants it\.$"):
        catalogue.scan()


FAULTS: list[Any] = [
    ((400, {}), "as the test wants it"),
    ((409, {}), "as the test wants it"),
    (NONSENSE, "does not answer"),
]


@pytest.mark.parametrize(("fault", "sentence"), FAULTS)
@pytest.mark.parametrize("request_", ["GET /assets/[^/]*$", "PUT /tags$", "PUT /tags/"])
def test_a_photograph_that_is_refused_does_not_end_a_write(
    catalogue, photos, immich, request_, fault, sentence
):
    for photo in photos[3:]:
        accept(catalogue, photo, "beach")
    immich.fail(request_, fault)
    (failure,) = catalogue.write().failures
    assert sentence in failure.reason
    assert sum("beach" in immich.tags_of(photo) for photo in photos[3:]) == 2
    assert catalogue.write().failures == []
    assert all("beach" in immich.tags_of(photo) for photo in photos[3:])


@pytest.mark.parametrize(("fault", "sentence"), FAULTS)
def test_a_photograph_that_is_refused_does_not_end_an_undo(
    catalogue, photos, immich, fault, sentence
):
    for photo in photos[3:]:
        accept(catalogue, photo, "beach")
    run = catalogue.write().run
    immich.fail("DELETE /tags/", fault)
    (failure,) = catalogue.undo(run).failures
    assert sentence in failure.reason
    assert sum("beach" in immich.tags_of(photo) for photo in photos[3:]) == 1
    assert catalogue.undo(run).failures == []
    assert not any("beach" in immich.tags_of(photo) for photo in photos[3:])


@pytest.mark.parametrize("status", [400, 409, 500])
def test_a_preview_that_is_refused_costs_one_photograph(photos, immich, open_collection, status):
    """Immich answers 500 if it has lost a file of its own."""
    immich.fail(f"GET /assets/{photos[0].id}/thumbnail", *[(status, {})] * 4)
    with open_collection() as catalogue:
        result = catalogue.scan()
        (failure,) = result.failures
        assert failure.reason.endswith(f"answers {status}: as the test wants it.")
        assert len(immich.faults) == 3  # it is not repeated
        assert len(result.added) == 6
        immich.faults.clear()
        assert catalogue.scan().failures == []


def test_a_bad_request_is_not_an_absent_photograph(catalogue, photos, immich):
    """Neither when it is written, nor when a list lacks it."""
    accept(catalogue, photos[3], "beach")
    immich.fail(f"GET /assets/{photos[3].id}", (400, {}))
    (failure,) = catalogue.write().failures
    assert "as the test wants it" in failure.reason
    assert catalogue.scan().gone == []
    immich.trash(photos[0])
    immich.fail(f"GET /assets/{photos[0].id}", (400, {}))
    result = catalogue.scan()
    assert result.gone == []
    assert "1 photograph cannot be read; the first: http" in result.failures[0].reason
    path = path_of(catalogue, photos[0])
    assert catalogue.scan().gone == [path]


@pytest.mark.parametrize("name", ["\U0001f600" * 80, "漢" * 90, "é" * 300, "a" * 300])
def test_a_name_that_is_too_long_for_a_file(photos, immich, open_collection, name):
    """Characters can have four bytes each, and file systems count bytes."""
    photos[0].name = f"{name}.jpg"
    with open_collection() as catalogue:
        assert len(catalogue.scan().added) == 6
        assert catalogue.scan().n_unchanged == 6


ODD_IDS = [None, 5, ["a"], "", "a\rb", "a\r\nx: y", "../x", "a" * 100_000]
ODD_ITEMS: list[Any] = [None, 5, "text", [], ["id"], {}, *({"id": id} for id in ODD_IDS)]


@pytest.mark.parametrize("odd", ODD_ITEMS, ids=lambda odd: repr(odd)[:20])
def test_a_photograph_that_is_no_object_or_has_an_odd_id(photos, immich, open_collection, odd):
    """A sentence; the others are read."""
    if isinstance(odd, dict) and "id" in odd:
        odd = immich.item(photos[0], exif=True) | odd
    answer = immich.search

    def with_odd(query):
        found = answer(query)
        found["assets"]["items"].insert(1, odd)
        return found

    immich.search = with_odd
    with open_collection() as catalogue:
        result = catalogue.scan()
        assert len(result.added) == 6
        (failure,) = result.failures
        assert failure.reason == "1 photograph cannot be read; the first: it has no id"
        assert catalogue.scan().n_unchanged == 6


ODD_FIELDS: dict[str, list[Any]] = {
    "checksum": [None, 5, "AAAA", "é" * 27 + "=", []],
    "localDateTime": [None, 5, "yesterday", "9" * 100_000, {}],
    "originalFileName": [None, 5, ["a"]],
    "exifInfo": ["text", [1], 5],
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in ODD_FIELDS.items() for value in values],
    ids=lambda value: repr(value)[:20],
)
def test_a_photograph_with_an_odd_field(photos, immich, open_collection, field, value):
    """A new one is left out; a known one stays as it was."""
    item = immich.item

    def odd_item(photo, **more):
        return item(photo, **more) | ({field: value} if photo is photos[0] else {})

    immich.item = odd_item
    with open_collection() as catalogue:
        result = catalogue.scan()
        assert len(result.added) == 5
        assert "1 photograph cannot be read; the first: http" in result.failures[0].reason
        immich.item = item
        assert len(catalogue.scan().added) == 1
        immich.item = odd_item
        again = catalogue.scan()
        assert (again.gone, again.n_unchanged, len(again.failures)) == ([], 6, 1)


ODD_TAGS: list[Any] = [
    *(None, 5, {}),
    *({"id": id, "value": "x"} for id in ODD_IDS),
    *({"id": "c", "value": 5}, {"id": "c", "value": None}, {"id": "c", "value": "x" * 100_000}),
]


@pytest.mark.parametrize("odd", ODD_TAGS, ids=lambda odd: repr(odd)[:30])
def test_an_odd_tag(photos, immich, open_collection, odd):
    answer = immich.answer
    immich.answer = lambda method, path, *more: (
        [odd, *immich.tags.values()] if path == "/tags" else answer(method, path, *more)
    )
    with open_collection() as catalogue:
        result = catalogue.scan()
        assert len(result.added) == 6
        assert [failure.reason for failure in result.failures] == ["1 tag cannot be read"]


def test_half_a_surrogate_in_a_name_and_a_tag(photos, immich, open_collection):
    photos[0].name = "\ud800.jpg"
    immich.tag(photos[1], "half \udc00 tag")
    with open_collection() as catalogue:
        result = catalogue.scan()
        assert (len(result.added), result.failures) == (6, [])
        names = catalogue.database.column("SELECT name FROM tags")
        assert "half \ufffd tag" in names
        assert path_of(catalogue, photos[1])


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'["x\xed\xa0\x80"]', ["x\ufffd\ufffd\ufffd"]),  # half a surrogate, not escaped
        (b'["x\xff"]', ["x\ufffd"]),
        (b'["\\ud83d\\ude00", "\\ud83d"]', ["\U0001f600", "\ufffd"]),
        (b"", None),
    ],
)
def test_no_text_of_an_answer_has_half_a_surrogate(data, value):
    answer = head(f"content-length: {len(data)}") + data
    with HostileServer(lambda: [answer]) as hostile:
        assert Client(Connection(hostile.address, KEY)).get("tags") == value


def test_json_in_another_encoding_is_a_sentence():
    data = '["x"]'.encode("utf-16")
    answer = head(f"content-length: {len(data)}") + data
    with (
        HostileServer(lambda: [answer]) as hostile,
        pytest.raises(ServerError, match="does not answer as Immich does"),
    ):
        Client(Connection(hostile.address, KEY)).get("tags")


@pytest.mark.parametrize("status", ["400 Bad Request", "403 Forbidden", "302 Found"])
def test_the_key_is_in_no_message(tmp_path, status):
    body = f'{{"message": "Invalid header x-api-key: {KEY}"}}'.encode()
    lines = (f"location: http://elsewhere/?key={KEY}", f"content-length: {len(body)}")
    with HostileServer(lambda: [head(*lines, status=status) + body]) as hostile:
        error, _ = check(hostile.address, tmp_path)
    assert "…" in error
    assert KEY not in error


@pytest.mark.parametrize("tag", ["a||b", "|a", "a|", "a/b||c"])
def test_tags_with_empty_levels_are_made(photos, immich, tmp_path, tag):
    ids = ImmichServer(Connection(immich.address, KEY), tmp_path).make_tags([tag])
    assert immich.tags[ids[tag]]["value"] == "/".join(
        level.replace("/", "|") for level in tag.split("|") if level
    )


ANSWERS: list[Any] = [
    *(None, True, 5, 1e999, "text", "\ud800", [], [[]], [5], {}),
    *({"assets": 5}, {"assets": {"items": 5}}, {"assets": {"items": {}}}),
    {"assets": {"items": [], "nextPage": 1e999}},
]
PATHS = [
    *("GET /server/version", "GET /api-keys/me", "GET /users/me", "GET /users/me/preferences"),
    *("POST /search/metadata", "GET /tags", "PUT /tags", "GET /assets/ID", "PUT /tags/ID/assets"),
]


@pytest.mark.parametrize("path", PATHS)
def test_any_json_in_place_of_an_answer_is_a_sentence(photos, immich, open_collection, path):
    """No other error than those that tagkin raises on purpose, whatever a server answers."""
    right = immich.answer
    with open_collection() as catalogue:
        catalogue.scan()
        accept(catalogue, photos[3], "beach", "a|b")
    for answer in ANSWERS:

        def odd(method, where, query, body, answer=answer):
            route = f"{method} {immich.route(where)}"
            return ({"json": answer}) if route == path else right(method, where, query, body)

        immich.answer = odd
        for work in ("scan", "write", "undo"):
            with open_collection() as catalogue, suppress(TagkinError):
                getattr(catalogue, work)()
    immich.answer = right
    with open_collection() as catalogue:
        assert catalogue.scan().gone == []
        accept(catalogue, photos[3], "beach", "a|b")  # the run may be undone
        catalogue.write()
    assert {"beach", "a/b"} <= immich.tags_of(photos[3])


def test_deep_json_is_a_sentence(photos, immich, open_collection):
    immich.answer = lambda *_: b"[" * 1_000_000
    with open_collection() as catalogue, pytest.raises(ServerError, match="not answer as Immich"):
        catalogue.scan()
