"""The review page: a local web server on one catalogue.

It needs FastAPI and uvicorn, which are an optional part of tagkin.
"""

from tagkin.errors import MissingExtra, pip_install

try:
    import fastapi  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    raise MissingExtra(f"The review page needs more packages: {pip_install('review')}") from error

from tagkin.server.app import create_app
from tagkin.server.live_order import LiveOrder
from tagkin.server.order import Asked, Order, StoredOrder
from tagkin.server.review import Review
from tagkin.server.security import Access
from tagkin.server.serving import DEFAULT_PORT, Server
from tagkin.server.thumbnails import Thumbnails

__all__ = [
    "DEFAULT_PORT",
    "Access",
    "Asked",
    "LiveOrder",
    "Order",
    "Review",
    "Server",
    "StoredOrder",
    "Thumbnails",
    "create_app",
]
