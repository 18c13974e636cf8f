"""The review page: a local web server on one catalogue.

It needs FastAPI and uvicorn, which are an optional part of tagkin.
"""

from typing import TYPE_CHECKING, Any

from tagkin.errors import MissingExtra, pip_install
from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.server.app import create_app as create_app
    from tagkin.server.live_order import LiveOrder as LiveOrder
    from tagkin.server.order import Asked as Asked
    from tagkin.server.order import Order as Order
    from tagkin.server.order import StoredOrder as StoredOrder
    from tagkin.server.review import Review as Review
    from tagkin.server.security import Access as Access
    from tagkin.server.serving import DEFAULT_PORT as DEFAULT_PORT
    from tagkin.server.serving import Server as Server
    from tagkin.server.thumbnails import Thumbnails as Thumbnails

# Loaded at first use: a fit beside the pages serves none.
_HOMES = {
    "DEFAULT_PORT": "serving",
    "Access": "security",
    "Asked": "order",
    "LiveOrder": "live_order",
    "Order": "order",
    "Review": "review",
    "Server": "serving",
    "StoredOrder": "order",
    "Thumbnails": "thumbnails",
    "create_app": "app",
}

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

_imported = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        try:
            import fastapi  # noqa: F401
            import uvicorn  # noqa: F401
        except ImportError as error:
            text = f"The review page needs more packages: {pip_install('review')}"
            raise MissingExtra(text) from error
    return _imported(name)
