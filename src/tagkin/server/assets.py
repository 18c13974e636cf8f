"""Templates, scripts and styles of the page."""

from __future__ import annotations

import mimetypes
import os
from functools import cache
from importlib import resources

from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment

from tagkin.templating import shown, template_environment
from tagkin.wording import percent

CACHED = "private, max-age=86400, immutable"  # every review has new addresses

mimetypes.add_type("text/javascript", ".js")  # which Windows may call plain text


class Assets(StaticFiles):
    """The files in ``static``, which a browser keeps for a day."""

    def __init__(self) -> None:
        # some installers link the files of a package to their cache
        super().__init__(packages=[(__package__, "static")], follow_symlink=True)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, *args: object
    ) -> Response:
        """Return a file, or that the browser has it already."""
        response = super().file_response(full_path, stat_result, *args)  # type: ignore[arg-type]
        response.headers["cache-control"] = CACHED
        return response


def render(template: str, **data: object) -> str:
    """Render a page; every text in it is escaped."""
    return shown(_environment().get_template(template).render(data))


@cache
def _environment() -> Environment:
    environment = template_environment(
        "tagkin.server",
        percent=percent,
        thousands=lambda n: f"{n:,.0f}",
    )
    static = resources.files("tagkin.server") / "static"
    scripts = sorted(file.name for file in static.iterdir() if file.name.endswith(".js"))
    environment.globals["modules"] = scripts
    return environment
