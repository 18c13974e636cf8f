"""The review page: a local web server for one catalogue.

It needs FastAPI and uvicorn, which are an optional part of tagkin. The modules:

Requests:

- `serving`: listens at the address of a review
- `application`: the web application, and errors as sentences
- `security`: the guard in front of all routes
- `pages`, `assets`: routes of pages and pictures; templates, scripts and styles
- `api`, `answer_models`: routes that answer with JSON, and the description of their answers

Answers:

- `answers`, `overview`, `forecast`: answers from a catalogue, and how long the rest takes
- `filtering`, `filtered_views`: the filters of a page, and what they leave
- `stacks`: photographs of a series as one tile
- `word_search`: photographs by words
- `mapping`: the map, and similar photographs

The state of a review:

- `session`: `Review`, which holds everything below
- `readers`: read-only connections to the catalogue
- `order`: the order of suggestions, and the next question
- `asking`, `answer_curve`: what a page is worth, and confidences that follow answers
- `thumbnail_cache`, `prefetch`: thumbnails, made once and in advance
- `writing`: accepted tags written into files, and undone
- `background`, `background_process`: scans and fits, and the process that runs them
- `watching`: new and changed photographs
"""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.server.security import Access as Access
    from tagkin.server.serving import Server as Server
    from tagkin.server.session import Review as Review
    from tagkin.server.thumbnail_cache import Thumbnails as Thumbnails

# Imported at first use, because the process of a background fit needs none of them.
_HOMES = {
    "Access": "security",
    "Review": "session",
    "Server": "serving",
    "Thumbnails": "thumbnail_cache",
}

__all__ = ["Access", "Review", "Server", "Thumbnails"]

__getattr__ = lazy_names(__name__, _HOMES)
