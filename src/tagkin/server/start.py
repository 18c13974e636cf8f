"""Routes of the start page: recent collections, choosing a folder, Immich, the sample, and the end.

Other pages use two of them: which pages are open, and what is open.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qs, quote

import anyio
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from tagkin.catalogue import open_catalogue
from tagkin.catalogue.known_catalogues import (
    default_data_folder,
    known_catalogues,
    server_folder,
    server_name,
    server_of,
)
from tagkin.catalogue.sources import connect
from tagkin.errors import InvalidInput, NotFound, TagkinError
from tagkin.images import encode_jpeg, read_bytes, thumbnail
from tagkin.server.api import Json
from tagkin.server.desk import Desk
from tagkin.server.pages import N_PICTURES, render
from tagkin.server.presence import Presence
from tagkin.server.start_folders import Folders
from tagkin.server.thumbnail_cache import SIZES, placeholder
from tagkin.wording import count, percent

router = APIRouter()
everywhere = APIRouter()
"""Routes that every page uses."""

SAMPLE_SIZE, SAMPLE_UNTAGGED = 300, 90
_N_RECENT = 12
_SHORT = "private, max-age=60"


@dataclass(frozen=True)
class Start:
    """What the start page works with."""

    desk: Desk
    folders: Folders
    presence: Presence
    end: Callable[[], object]
    is_shared: bool = False
    """Whether other machines reach the page, so that it does not end the server."""
    ends_when_left: bool = False
    """Whether the server ends after the last page was closed."""
    limiter: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(N_PICTURES)
    )


def _start_of(request: Request) -> Start:
    start: Start = request.app.state.start
    return start


def _asked_path(request: Request) -> str:
    """Return the path in an address, whose bytes need not be UTF-8."""
    query = request.scope["query_string"].decode("latin-1")
    values = parse_qs(query, encoding="utf-8", errors="surrogateescape", max_num_fields=4)
    return values.get("path", [""])[0]


def path_query(path: str) -> str:
    """Return the part of an address that names a path."""
    return f"path={quote(os.fsencode(path), safe='')}"


def _page(request: Request, template: str, **data: object) -> HTMLResponse:
    start = _start_of(request)
    data |= {"state": start.desk.state(), "start": start, "query": path_query}
    return HTMLResponse(render(template, base=request.base_url.path, **data))


# --- pages ---------------------------------------------------------------------------------------


@router.get("/")
def home(request: Request) -> RedirectResponse:
    """Lead to the open collection, or to the start page."""
    state = _start_of(request).desk.state()
    return RedirectResponse(f"{state['number']}/tags" if state["open"] else "start", 303)


@router.get("/start")
def start_page(request: Request) -> HTMLResponse:
    """Show recent collections, and ways to a new one."""
    start = _start_of(request)
    recent = list(_recent(start))
    return _page(request, "start.html.jinja", recent=recent, first=start.folders.start())


@router.get("/folders")
def folders_page(request: Request) -> HTMLResponse:
    """Show a folder, to choose it or to go on from it."""
    folders = _start_of(request).folders
    path = _asked_path(request) or folders.start()
    try:
        folder, error = folders.look(path), ""
    except InvalidInput as failure:
        folder, error = None, str(failure)
    pictures = [] if folder is None else [folders.number(file) for file in folder.photographs]
    return _page(
        request,
        "folders.html.jinja",
        folder=folder,
        error=error,
        pictures=pictures,
        places=folders.places(),
    )


@router.get("/pictures/{number}.jpg")
async def picture(request: Request, number: Annotated[int, Field(ge=0, le=2**53)]) -> Response:
    """Send a small copy of a photograph of a folder that was shown."""
    start = _start_of(request)
    return await run_sync(_make_picture, start.folders, number, limiter=start.limiter)


def _make_picture(folders: Folders, number: int) -> Response:
    headers = {"cache-control": _SHORT}
    try:
        path = folders.picture(number)
        jpeg = encode_jpeg(thumbnail(read_bytes(path), SIZES[0]))
    except NotFound:
        return Response("There is no such picture.", 404, media_type="text/plain")
    except InvalidInput as error:  # it cannot be read
        return Response(placeholder(str(error)), media_type="image/svg+xml", headers=headers)
    return Response(jpeg, media_type="image/jpeg", headers=headers)


def _recent(start: Start) -> Iterator[dict[str, object]]:
    """Yield the known collections with their progress, the last one that was opened first."""
    known = list(reversed(known_catalogues().items()))
    chosen = [(root, path) for root, path in known if _may_open(start, root)][:_N_RECENT]
    for root, path in chosen:
        server = server_name(root)
        entry: dict[str, object] = {
            "name": server or root.name or str(root),
            "path": str(root),
            "is_server": bool(server),
            "is_there": bool(server) or os.path.isdir(root),
            "used": _day(path),
        }
        try:
            with open_catalogue(path) as catalogue:
                counts = catalogue.photographs.count()
                left = catalogue.suggestions.progress().n_suggestions
                n_to_write = catalogue.writes.count_pending()
        except (TagkinError, OSError) as error:
            yield entry | {"error": str(error)}
            continue
        n, n_tagged = counts.n_photographs, counts.n_photographs - counts.n_untagged
        texts = [count(n, "photograph"), f"{percent(n_tagged / n if n else 0)} tagged"]
        texts += [f"{count(left, 'suggestion')} left"] if left else []
        texts += [f"{count(n_to_write, 'photograph')} to write"] if n_to_write else []
        yield entry | {"error": "", "share": n_tagged / n if n else 0, "texts": texts}


def _may_open(start: Start, root: Path) -> bool:
    """Whether a known collection may be chosen."""
    if server_of(root) or root == _sample_folder():
        return True
    return start.folders.allows(str(root))


def _day(path: Path) -> str:
    """Return the day on which a catalogue was last changed."""
    return f"{datetime.date.fromtimestamp(path.stat().st_mtime):%Y-%m-%d}"


def _sample_folder() -> Path:
    return Path(os.path.realpath(default_data_folder())) / "sample"


# --- what a person does -------------------------------------------------------------------------


@router.get("/api/v1/desk")
def desk_state(request: Request) -> Json:
    """Return what is open, and what is being opened."""
    return Json(_start_of(request).desk.state())


@router.post("/api/v1/desk/open")
def open_folder(request: Request) -> Json:
    """Open the collection of a folder, in the background."""
    start, path = _start_of(request), _asked_path(request)
    known = [root for root in known_catalogues() if str(root) == path]
    if not (known and _may_open(start, known[0])):
        path = start.folders.check(path)
    start.desk.open(Path(path))
    return Json(start.desk.state())


class Immich(BaseModel):
    """The address of an Immich server, and a key to it."""

    model_config = ConfigDict(extra="forbid")

    address: Annotated[str, Field(min_length=1, max_length=1000)]
    key: Annotated[str, Field(min_length=1, max_length=1000)]


@router.post("/api/v1/desk/immich")
def open_immich(request: Request, body: Immich) -> Json:
    """Connect to an Immich server, and open its photographs as a collection."""
    desk = _start_of(request).desk
    prepare = partial(connect, "immich", body.address, body.key)
    desk.open(server_folder("immich"), "Connecting to Immich …", prepare)
    return Json(desk.state())


@router.post("/api/v1/desk/sample")
def open_sample(request: Request) -> Json:
    """Paint the sample collection, unless it is there, and open it."""
    desk, folder = _start_of(request).desk, _sample_folder()
    desk.open(folder, "Painting the sample …", partial(_paint, folder))
    return Json(desk.state())


def _paint(folder: Path) -> None:
    from tagkin.scenes import make_scenes

    if not (folder / "metadata.jsonl").is_file():  # which is written last
        make_scenes(folder, SAMPLE_SIZE, SAMPLE_UNTAGGED)


@router.post("/api/v1/desk/quit")
def quit_server(request: Request) -> Json:
    """End the server."""
    start = _start_of(request)
    if start.is_shared:
        raise InvalidInput("Other machines use this server. End it where it was started.")
    if start.desk.is_writing:
        raise InvalidInput("Tags are being written into files. Wait until that is done.")
    start.end()
    return Json({"state": "ended"})


class OpenPage(BaseModel):
    """A page that was opened, or closed."""

    model_config = ConfigDict(extra="forbid")

    page: Annotated[str, Field(min_length=1, max_length=50)]
    is_open: bool


@everywhere.post("/api/v1/pages")
def note_page(request: Request, body: OpenPage) -> Json:
    """Note that a page is open, or was closed."""
    _start_of(request).presence.note(body.page, body.is_open)
    return Json({})
