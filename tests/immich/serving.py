"""A small stateful server that speaks as Immich 3 does, with faults when a test asks for them.

By hand, with a folder of photographs: python -m tests.immich.serving FOLDER [PORT]
"""

import base64
import hashlib
import json
import re
import struct
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "a-key-of-the-tests"
ALL = [
    *("asset.read", "asset.view", "tag.read", "tag.create", "tag.asset"),
    *("user.read", "userPreference.read"),
]
NEEDED = {
    "GET /assets/ID": "asset.read",
    "GET /assets/ID/thumbnail": "asset.view",
    "POST /search/metadata": "asset.read",
    "GET /tags": "tag.read",
    "PUT /tags": "tag.create",
    "PUT /tags/ID/assets": "tag.asset",
    "DELETE /tags/ID/assets": "tag.asset",
    "GET /users/me": "user.read",
    "GET /users/me/preferences": "userPreference.read",
}
CUT, CUT_AFTER, NONSENSE = "cut", "cut after the work was done", "nonsense"
Fault = int | str | tuple[int, dict[str, str]] | float | Callable[[], None]
"""A status, with headers or without; CUT and the like; seconds to wait; or a function to call."""
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def new_id() -> str:
    return str(uuid.uuid4())


@dataclass
class Photo:
    """A photograph on the server."""

    name: str
    preview: bytes
    taken: datetime
    id: str = field(default_factory=new_id)
    checksum: bytes = b""
    tags: set[str] = field(default_factory=set)
    is_ready: bool = True
    is_trashed: bool = False
    library: str | None = None
    owner: str | None = None
    make: str = "Kamera"
    exif: dict[str, Any] = field(default_factory=dict)
    updated: int = 0


class Immich:
    """The state of the server, and its address while it runs."""

    def __init__(self, port: int = 0) -> None:
        self.version = (3, 3, 5)
        self.permissions = list(ALL)
        self.has_tags, self.user = True, new_id()
        self.photos: dict[str, Photo] = {}
        self.tags: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.faults: list[tuple[str, Fault]] = []
        self.page_size, self.has_cursor = 1000, False
        self.lock = threading.RLock()
        self._clock = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    def __enter__(self) -> "Immich":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    # --- what a person does in Immich ---------------------------------------------------------

    def upload(self, name: str, preview: bytes, tags: tuple[str, ...] = (), **more: Any) -> Photo:
        taken = datetime(2024, 5, 1, 12, tzinfo=UTC) + timedelta(hours=len(self.photos))
        photo = Photo(name, preview, more.pop("taken", taken), **more)
        photo.checksum = photo.checksum or hashlib.sha1(preview).digest()
        self.photos[photo.id] = photo
        for tag in tags:
            self.tag(photo, tag)
        return self.touch(photo)

    def touch(self, photo: Photo) -> Photo:
        self._clock += 600
        photo.updated = self._clock
        return photo

    def trash(self, photo: Photo) -> None:
        photo.is_trashed = True
        self.touch(photo)

    def delete(self, photo: Photo) -> None:
        del self.photos[photo.id]

    def tag(self, photo: Photo, value: str) -> str:
        id = self.upsert(value)
        photo.tags.add(id)
        return id

    def untag(self, photo: Photo, value: str) -> None:
        photo.tags.remove(self.upsert(value))

    def tags_of(self, photo: Photo) -> set[str]:
        return {self.tags[id]["value"] for id in photo.tags}

    def upsert(self, value: str) -> str:
        """Return the id of a tag; made with its parents if needed."""
        parent, path = None, ""
        for level in filter(None, value.split("/")):
            path = f"{path}/{level}" if path else level
            known = [tag["id"] for tag in self.tags.values() if tag["value"] == path]
            id = known[0] if known else new_id()
            if not known:
                moment = self._moment(0)
                self.tags[id] = {"id": id, "name": level, "value": path, "createdAt": moment}
                self.tags[id] |= {"updatedAt": moment}
                self.tags[id] |= {} if parent is None else {"parentId": parent}
            parent = id
        assert parent is not None
        return parent

    def fail(self, request: str, *faults: Fault) -> None:
        """Let the next requests fail that match a pattern, such as "PUT /tags"."""
        self.faults += [(request, fault) for fault in faults]

    # --- answers ------------------------------------------------------------------------------

    def _moment(self, seconds: int) -> str:
        moment = datetime(2024, 6, 1, tzinfo=UTC) + timedelta(seconds=seconds)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def item(self, photo: Photo, *, exif: bool = False, tags: bool = False) -> dict[str, Any]:
        taken = photo.taken.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        item: dict[str, Any] = {
            "id": photo.id,
            "ownerId": photo.owner or self.user,
            "type": "IMAGE",
            "originalFileName": photo.name,
            "originalPath": f"/data/library/{photo.name}",
            "checksum": base64.b64encode(photo.checksum).decode(),
            "thumbhash": "AAAA" if photo.is_ready else None,
            "visibility": "timeline",
            "libraryId": photo.library,
            "updatedAt": self._moment(photo.updated),
            **dict.fromkeys(("createdAt", "fileCreatedAt", "fileModifiedAt"), taken),
            "localDateTime": taken,
            **dict.fromkeys(("duration", "width", "height"), None),
            **dict.fromkeys(("isArchived", "isEdited", "isFavorite", "isOffline"), False),
            "isTrashed": photo.is_trashed,
            "hasMetadata": True,
        }
        if exif:
            item["exifInfo"] = {"make": photo.make, "model": "X1", "dateTimeOriginal": taken}
            item["exifInfo"] |= photo.exif
        if tags:
            item["tags"] = [self.tags[id] for id in sorted(photo.tags)]
        return item

    def search(self, query: dict[str, Any]) -> dict[str, Any]:
        photos = [p for p in self.photos.values() if not p.is_trashed]
        for tag in query.get("tagIds", ()):
            value = self.tags[tag]["value"]
            below = {
                t["id"] for t in self.tags.values() if f"{t['value']}/".startswith(f"{value}/")
            }
            photos = [p for p in photos if p.tags & below]
        size, page = min(query.get("size", 250), self.page_size), query.get("page", 1)
        cursor, following = None, None
        if self.has_cursor:  # after the last photograph, whatever became of those before
            numbers = {id: n for n, id in enumerate(self.photos)}
            last = int(query.get("cursor", -1))
            photos = [photo for photo in photos if numbers[photo.id] > last]
            items = photos[:size]
            cursor = str(numbers[items[-1].id]) if len(photos) > size else None
        else:
            items = photos[(page - 1) * size : page * size]
            following = str(page + 1) if len(photos) > page * size else None
        page_items = [self.item(photo, exif=query.get("withExif", False)) for photo in items]
        counts = {"count": len(page_items), "total": len(page_items), "facets": []}
        return {
            "albums": {"items": [], "count": 0, "total": 0, "facets": []},
            "assets": {"items": page_items, "nextPage": following, "nextCursor": cursor, **counts},
        }

    def _change(self, method: str, tag: str, ids: list[str]) -> list[dict[str, Any]]:
        answers = []
        for id in ids:
            photo = self.photos.get(id)
            if photo is None:
                answers.append({"id": id, "success": False, "error": "no_permission"})
            elif (tag in photo.tags) == (method == "PUT"):
                error = "duplicate" if method == "PUT" else "not_found"
                answers.append({"id": id, "success": False, "error": error})
            else:
                (photo.tags.add if method == "PUT" else photo.tags.remove)(tag)
                answers.append({"id": id, "success": True})
        return answers

    def route(self, path: str) -> str:
        """Return a path with ID in place of ids."""
        return _ID.sub("ID", path)

    def answer(self, method: str, path: str, query: dict[str, Any], body: Any) -> Any:
        """Return the answer to a request: bytes, or JSON; None if there is no such thing."""
        ids = [match.group() for match in _ID.finditer(path)]
        route = f"{method} {self.route(path)}"
        needed = NEEDED.get(route)
        if needed is not None and not {needed, "all"} & set(self.permissions):
            return 403, {"message": f"Missing required permission: {needed}"}
        photo = self.photos.get(ids[0]) if ids else None
        match route:
            case "GET /server/version":
                parts = zip(("major", "minor", "patch"), self.version, strict=True)
                return dict(parts) | {"prerelease": None}
            case "GET /api-keys/me":
                times = dict.fromkeys(("createdAt", "updatedAt"), self._moment(0))
                return {"id": new_id(), "name": "k", "permissions": self.permissions} | times
            case "GET /users/me":
                return {"id": self.user, "name": "Ada", "email": "ada@example.org"}
            case "GET /users/me/preferences":
                return {"tags": {"enabled": self.has_tags, "sidebarWeb": True}}
            case "GET /tags":
                return list(self.tags.values())
            case "PUT /tags":
                return [self.tags[self.upsert(value)] for value in body["tags"]]
            case "POST /search/metadata":
                return self.search(body)
            case "GET /assets/ID":
                return photo and self.item(photo, exif=True, tags=True)
            case "GET /assets/ID/thumbnail":
                is_there = photo is not None and photo.is_ready and query == {"size": ["preview"]}
                return photo.preview if photo is not None and is_there else None
            case "PUT /tags/ID/assets" | "DELETE /tags/ID/assets":
                return self._change(method, ids[0], body["ids"]) if ids[0] in self.tags else None
        return None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        state = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def answer(self) -> None:
                where = urlsplit(self.path)
                path = where.path.removeprefix("/api")
                size = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                with state.lock:
                    state.requests.append((self.command, path))
                    fault = self.take_fault(path)
                if callable(fault):
                    try:
                        fault()
                    except ConnectionAbortedError:
                        return self.cut()
                elif isinstance(fault, float):
                    time.sleep(fault)
                elif fault == CUT:
                    return self.cut()
                elif fault == NONSENSE:
                    return self.reply(200, b"<html>", {})
                elif isinstance(fault, int | tuple):
                    status, headers = fault if isinstance(fault, tuple) else (fault, {})
                    return self.reply(status, b'{"message": "as the test wants it"}', headers)
                if self.headers.get("x-api-key") != KEY and path != "/server/version":
                    return self.reply(401, b'{"message": "Invalid API key"}', {})
                with state.lock:
                    answer = state.answer(self.command, path, parse_qs(where.query), body)
                if fault == CUT_AFTER:
                    return self.cut()
                if answer is None:
                    return self.reply(400, b'{"message": "Not found or no access"}', {})
                status, answer = answer if isinstance(answer, tuple) else (200, answer)
                if isinstance(answer, dict) and answer.keys() == {"json"}:  # as a test wants it
                    answer = answer["json"]
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.reply(status, data, {})

            def take_fault(self, path: str) -> Fault | None:
                for i, (pattern, fault) in enumerate(state.faults):
                    if re.match(pattern, f"{self.command} {path}"):
                        del state.faults[i]
                        return fault
                return None

            def cut(self) -> None:
                reset = struct.pack("ii", 1, 0)  # the connection is reset, not closed in order
                self.connection.setsockopt(1, 13, reset)
                self.close_connection = True

            def reply(self, status: int, data: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815

        return Handler


if __name__ == "__main__":
    with Immich(int((*sys.argv, "2283")[2])) as server:
        for file in sorted(Path(sys.argv[1]).rglob("*.jpg")):
            sidecar = Path(f"{file}.tags")
            tags = sidecar.read_text().splitlines() if sidecar.exists() else []
            server.upload(file.name, file.read_bytes(), tuple(tags))
        print(f"{server.address} with {len(server.photos)} photographs; key {KEY}", flush=True)
        threading.Event().wait()
