"""The pages: a local web server for a start page and one catalogue at a time.

The modules:

Requests:

- `serving`: the web server, which addresses belong to what is open, and errors as sentences
- `security`: the guard in front of all routes
- `login`: the password and sessions of a server that other machines reach
- `pages`: routes of pages and pictures; templates, scripts and styles
- `api`: routes that answer with JSON
- `files_page`: which files were read, incomplete folders, and the export of decisions

The start page:

- `start`: its routes: recent collections, choosing a folder, Immich, the sample, the end
- `desk`: `Desk`, which has at most one collection open, and opens others in its place
- `start_folders`: the folders that a person may choose from
- `presence`: which pages are open, so the server can end with the last one
- `only_server`: one server for a person

Answers:

- `answers`: answers from a catalogue
- `filtering`: the filters of a page
- `stacks`: photographs of a burst as one tile
- `by_event`: photographs by event
- `searching`: photographs by tags, names, words or similarity
- `mapping`: the map, and similar photographs

The state of a review:

- `session`: `Review`, which holds everything below
- `readers`: read-only connections to the catalogue, and what filters leave
- `order`: the order of suggestions, and the next question
- `forecasting`: how long the rest takes
- `asking`: what a page is worth, and confidences that follow answers
- `near_answers`: confidences that follow answers to photographs of the same day
- `forgetting`: confidences that follow answers to photographs that a person tagged
- `correcting`: all of these corrections
- `thumbnail_cache`: thumbnails, made once and in advance
- `writing`: accepted tags written into files, and undone
- `background`: scans and fits in a process of their own, and changes of the folder
"""

from typing import TYPE_CHECKING

from tagkin.lazy_names import lazy_names

if TYPE_CHECKING:
    from tagkin.server.desk import Desk as Desk
    from tagkin.server.login import Password as Password
    from tagkin.server.only_server import OnlyServer as OnlyServer
    from tagkin.server.security import Access as Access
    from tagkin.server.serving import Server as Server
    from tagkin.server.session import Review as Review

# Imported at first use, because the process of a background fit needs none of them.
_HOMES = {
    "Access": "security",
    "Desk": "desk",
    "OnlyServer": "only_server",
    "Password": "login",
    "Review": "session",
    "Server": "serving",
}

__all__ = ["Access", "Desk", "OnlyServer", "Password", "Review", "Server"]

__getattr__ = lazy_names(__name__, _HOMES)
