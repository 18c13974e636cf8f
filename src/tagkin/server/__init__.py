"""The review page: a local web server for one catalogue.

It needs FastAPI and uvicorn, which are an optional part of tagkin. The modules in reading order:

- `serving` listens at an address; `application` joins the routes.
- `security` decides which requests may pass.
- `pages` has the routes of pages and pictures, `api` those of JSON.
- `answers` and `overview` turn the catalogue into data for both.
- `assets` holds templates, scripts and styles.
- `session` is the state of a review; `readers` are its connections to the catalogue.
- `order` sorts suggestions by stored confidences, `live_order` also by the latest decisions.
- `thumbnail_cache` makes and stores thumbnails, `prefetch` makes them in advance.
- `background` runs `fitting` in another process; `mapping` makes and reads the map.
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
