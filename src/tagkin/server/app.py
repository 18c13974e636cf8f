"""The application: routes behind a guard, errors as sentences."""

from __future__ import annotations

from typing import Any

import anyio
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException

from tagkin.errors import InvalidInput, NotFound, StorageError
from tagkin.server import api, pages
from tagkin.server.assets import render
from tagkin.server.review import Review
from tagkin.server.security import Access, App, Guard

__all__ = ["create_app"]


def create_app(review: Review, access: Access) -> App:
    """The application of a review.

    Parameters
    ----------
    review : Review
        Whoever made it closes it.
    access : Access
        Who may use it.

    Returns
    -------
    app : ASGI application
    """
    app = FastAPI(
        title="tagkin",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        # nothing leaves the machine, whatever the environment asks for
        telemetry={"auto_configure": False, "tracing": False, "metrics": False, "logs": False},
    )
    app.state.review = review
    app.state.pictures = anyio.CapacityLimiter(pages.N_PICTURES)
    app.include_router(api.router)
    app.include_router(pages.router)
    app.add_exception_handler(InvalidInput, _invalid)
    app.add_exception_handler(StorageError, _not_stored)
    app.add_exception_handler(RequestValidationError, _misunderstood)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _internal)
    return Guard(app, access)


def _answer(request: Request, status: int, text: str) -> Response:
    base = request.base_url.path
    if request.url.path.startswith(f"{base}api/"):
        return JSONResponse({"error": text}, status)
    return HTMLResponse(render("error.html.jinja", base=base, text=text), status)


def _invalid(request: Request, error: Exception) -> Response:
    return _answer(request, 404 if isinstance(error, NotFound) else 400, str(error))


def _not_stored(request: Request, error: Exception) -> Response:
    return _answer(request, 503, str(error))


def _misunderstood(request: Request, error: Exception) -> Response:
    """What was asked for is not repeated: it may be anything."""
    details: list[Any] = list(error.errors()) if isinstance(error, RequestValidationError) else []
    names = sorted({".".join(str(part) for part in one["loc"][:2]) for one in details})
    return _answer(request, 422, f"The request was not understood: {', '.join(names)}.")


def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    texts = {404: "There is no such page.", 405: "That cannot be done here."}
    return _answer(request, status, texts.get(status, "The request was not understood."))


def _internal(request: Request, error: Exception) -> Response:
    return _answer(
        request, 500, f"Internal error ({type(error).__name__}). The terminal says more."
    )
