"""The web application: routes behind a guard, and errors as sentences."""

from __future__ import annotations

import functools

import anyio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from tagkin.errors import InvalidInput, NotFound, StorageError
from tagkin.server import api, pages
from tagkin.server.assets import render
from tagkin.server.security import Access, Guard
from tagkin.server.session import Review

_DESCRIPTION = """What the review page does, for other programs.

Photographs and tags are known by numbers: a photograph by its `content`, which copies share. Every
decision is stored at once, as part of a run that `POST /undo` takes back. Version 1 may gain routes
and fields; nothing in it is dropped or renamed.
"""
_HTTP_ERRORS = {404: "There is no such page.", 405: "This method is not allowed here."}


def create_app(review: Review, access: Access) -> ASGIApp:
    """Create the ASGI application of a review, which the caller closes."""
    routes = _create_routes()
    state = {"review": review, "pictures": anyio.CapacityLimiter(pages.N_PICTURES)}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await routes({**scope, "state": state}, receive, send)

    return Guard(app, access)


@functools.cache  # FastAPI compiles every route at its first use, which takes half a second
def _create_routes() -> FastAPI:
    """Create the routes; a request has its review in its state."""
    app = FastAPI(
        title="tagkin review",
        version="1",
        description=_DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{api.VERSIONED}/openapi.json",
        redirect_slashes=False,
        # nothing leaves the machine, whatever the environment asks for
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    app.include_router(api.router, prefix=api.VERSIONED)
    app.include_router(api.router, prefix=api.PREFIX, include_in_schema=False)
    app.include_router(pages.router, include_in_schema=False)
    for kind in (InvalidInput, StorageError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _answer_error)
    return app


def _answer_error(request: Request, error: Exception) -> Response:
    status, text = _describe(error)
    base = request.base_url.path
    if request.url.path.startswith(f"{base}api/"):
        return JSONResponse({"error": text}, status)
    return HTMLResponse(render("error.html.jinja", base=base, text=text), status)


def _describe(error: Exception) -> tuple[int, str]:
    """Return the status and the sentence for an error."""
    match error:
        case RequestValidationError():  # its values may be anything, so they are not repeated
            places = (".".join(map(str, detail["loc"][:2])) for detail in error.errors())
            return 422, f"The request was not understood: {', '.join(sorted(set(places)))}."
        case InvalidInput():
            return 404 if isinstance(error, NotFound) else 400, str(error)
        case StorageError():
            return 503, str(error)
        case HTTPException():
            text = _HTTP_ERRORS.get(error.status_code, "The request was not understood.")
            return error.status_code, text
    return 500, f"Internal error ({type(error).__name__}). The terminal says more."
