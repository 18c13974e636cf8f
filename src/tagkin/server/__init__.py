"""The review page: a local web server for one catalogue.

It needs FastAPI and uvicorn, which are an optional part of tagkin.
"""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.server.live_order import LiveOrder as LiveOrder
    from tagkin.server.security import Access as Access
    from tagkin.server.serving import Server as Server
    from tagkin.server.session import Review as Review
    from tagkin.server.thumbnail_cache import Thumbnails as Thumbnails

# Imported at first use, because the process of a background fit needs none of them.
_HOMES = {
    "Access": "security",
    "LiveOrder": "live_order",
    "Review": "session",
    "Server": "serving",
    "Thumbnails": "thumbnail_cache",
}

__all__ = ["Access", "LiveOrder", "Review", "Server", "Thumbnails"]

__getattr__ = lazy_names(__name__, _HOMES)
