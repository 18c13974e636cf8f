"""tagkin review: look at suggestions in the browser, and decide."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import tag_file_in, tell_others
from tagkin.cli.output import json_line, note, relative, say, send, shown
from tagkin.cli.progress import progress_bar
from tagkin.cli.sources import report_problems, use_cache
from tagkin.cli.tables import count
from tagkin.cli.vocabularies import words_of
from tagkin.progress import Progress

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue
    from tagkin.server import Server

__all__ = ["EXAMPLES", "run"]

EXAMPLES = """\b
Examples:
  tagkin review ~/Pictures
  tagkin review
  tagkin review ~/Pictures --no-browser --port 9000
  tagkin review ~/Pictures --vocabulary words.txt
"""

_REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tagkin</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"></head>
<body><p><a href="{address}">To the review</a></p></body></html>
"""


def run(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", show_default=False, hidden=True, readable=False),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            show_default=False,
            help="The port of the page; without it 8765, or any that is free.",
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address, and open no browser.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            help="The address to listen on. Others can reach any but the default: it needs a "
            "password, and should be used in networks that you trust.",
        ),
    ] = "127.0.0.1",
    password: Annotated[
        str | None,
        typer.Option(
            "--password",
            metavar="TEXT",
            envvar="TAGKIN_PASSWORD",
            show_envvar=True,
            show_default=False,
            help="What others have to type who open the page; best given in TAGKIN_PASSWORD.",
        ),
    ] = None,
    vocabulary: Annotated[
        str,
        typer.Option(
            "--vocabulary",
            metavar="FILE",
            help="Tags to suggest by their names where no photograph carries a tag yet: a text "
            "file with one tag per line, or the word common for some hundred common ones.",
        ),
    ] = "common",
    tags: Annotated[
        Path | None,
        typer.Option(
            "--tags",
            metavar="FILE|embedded",
            help="A tag file to read besides the keywords in photographs and sidecars, as in "
            "tagkin scan.",
        ),
    ] = None,
    column: options.Column = None,
    catalogue: options.Catalogue = None,
    cache: options.Cache = None,
    verbose: options.Verbose = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Write one line of JSON with the address to standard output."),
    ] = False,
) -> None:
    """Review suggestions in the browser: accept, reject, undo.

    FOLDER is scanned, learned from where that has not been done, and its photographs get
    suggestions; then a page opens in the browser. The second time this takes seconds. Without
    FOLDER, the folder whose catalogue is meant is reviewed.

    The page is served by this command, on this machine and for you alone: its address holds a
    secret. What you decide is kept at once. Ctrl-C ends it.
    """
    from tagkin.server import Access, LiveOrder, Review, Server  # or what to install

    use_cache(cache, False)
    access = Access(host=host, password=password)
    one = _prepared(folder, catalogue, tags, column, vocabulary, verbose)
    from tagkin.features import default_cache_folder

    review = Review(one, default_cache_folder(), order=LiveOrder(one.path), ahead=True)
    try:
        server = Server(review, access, port)
        # Ctrl-C is how it ends
        with contextlib.suppress(KeyboardInterrupt), contextlib.closing(server):
            _serve(server, one, no_browser, as_json)
    finally:
        review.close()
    if review.has_running_thread:
        sys.stdout.flush()
        os._exit(0)  # all is kept; a thread in a library would make an orderly end an abort


def _serve(server: Server, catalogue: Catalogue, no_browser: bool, as_json: bool) -> None:
    _tell(server.address, catalogue, as_json)
    with contextlib.nullcontext() if no_browser else _opened_in_browser(server.first_address):
        server.run()


@contextlib.contextmanager
def _opened_in_browser(address: str) -> Iterator[None]:
    """Open an address in the browser, by a private file that leads there.

    All users of a machine can see the arguments of programs, so the address is not one of them.
    Some browsers, such as a command in BROWSER, keep this thread until they end; so another
    thread starts them.
    """
    with tempfile.TemporaryDirectory(prefix="tagkin-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "review.html"
        file.touch(mode=0o600)
        file.write_text(_REDIRECT.format(address=escape(address)), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield


def _tell(address: str, catalogue: Catalogue, as_json: bool) -> None:
    if as_json:
        send(json_line({"address": address, "folder": relative(catalogue.root)}))
        sys.stdout.flush()
        return
    say(f"Reviewing {shown(catalogue.root)} at")
    say(f"  {address}")
    say("Ctrl-C ends it.")


def _prepared(
    folder: Path | None,
    path: Path | None,
    tags: Path | None,
    column: str | None,
    vocabulary: str,
    verbose: bool,
) -> Catalogue:
    """A catalogue with suggestions, open for writing: scanned, learned from, suggested for."""
    from tagkin.catalogue import open_for_scan

    with progress_bar() as step:
        catalogue = open_for_scan(folder, path, command="review")
        try:
            tell_others(catalogue, path)
            found = catalogue.scan(tag_file_in(catalogue, tags), column, progress=step)
            failures = [*found.failures, *_suggested(catalogue, vocabulary, step)]
        except BaseException:
            catalogue.close()
            raise
    report_problems(failures, verbose)
    return catalogue


def _suggested(catalogue: Catalogue, vocabulary: str, step: Progress) -> list[Any]:
    """Suggest where nothing was suggested yet; what could not be read."""
    from tagkin.errors import MissingExtra

    needs = catalogue.model.needs()
    if not needs.suggestions:
        return []
    if not needs.tags:
        if needs.model:
            return catalogue.model.refit(progress=step).failures
        return catalogue.model.suggest_for_review(progress=step).failures
    from tagkin.annotator import Annotator

    try:
        found = catalogue.model.suggest_by_name(Annotator(), words_of(vocabulary), progress=step)
    except MissingExtra as error:
        note(f"no photograph carries a tag, and none can be suggested by name: {error}")
        return []
    note(
        f"no photograph carries a tag yet: {count(found.n_suggestions, 'suggestion')} by name alone"
    )
    return found.failures
