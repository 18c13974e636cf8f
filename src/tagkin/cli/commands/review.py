"""tagkin review: decide on suggestions in the browser."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tagkin.cli import options
from tagkin.cli.catalogues import show_server_paths
from tagkin.cli.output import relative, report_problems, say, send_json
from tagkin.cli.registry import command

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue

_REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tagkin</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"></head>
<body><p><a href="{address}">To the review</a></p></body></html>
"""


@command("review")
def review(
    folder: options.Folder = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=0,
            max=65535,
            show_default=False,
            help="Port. Default: 8765, or any free port.",
        ),
    ] = None,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address; open no browser.")
    ] = False,
    vocabulary: Annotated[
        str | None,
        typer.Option(
            "--vocabulary",
            metavar="FILE|common",
            show_default=False,
            help="Tags to suggest by name if there is little to learn from: from a text file, one "
            "per line, or common tags.",
        ),
    ] = None,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Review suggestions in the browser: accept, reject, undo.

    Opens a page in the browser at once. In the background, it scans FOLDER, trains a model if
    needed and suggests tags; photographs and suggestions appear on the page as they come, and so
    do photographs that you add later. If you stop it, the next start continues. Without FOLDER,
    reviews the current folder's collection.

    The command serves the page on this machine and for you alone: its address holds a secret. Your
    decisions are stored at once. Press Ctrl-C to stop. --json writes the address.

    Examples
    --------
    tagkin review ~/Pictures
    tagkin review ~/Pictures --no-browser --port 9000
    tagkin review ~/Pictures --vocabulary words.txt
    """
    from tagkin.server import Access, Review, Server

    words = [] if vocabulary is None else options.read_words(vocabulary)
    from tagkin.catalogue import open_for_scan

    opened = open_for_scan(folder, catalogue, command="review")
    from tagkin.features import default_cache_folder

    page = Review(
        opened,
        default_cache_folder(),
        ahead=True,
        watches=not opened.server,
        words=words,
    )
    try:
        show_server_paths(opened)
        server = Server(page, Access(), port)
        page.catch_up()
        # Ctrl-C is how it ends
        with (
            contextlib.suppress(KeyboardInterrupt),
            _ended_by_signals(),
            contextlib.closing(server),
        ):
            _tell(server.address, opened, as_json)
            with contextlib.nullcontext() if no_browser else _open_browser(server.first_address):
                server.run()
    finally:
        page.close()
    report_problems(page.fit.failures.values(), most=None)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block like Ctrl-C, so nothing private stays behind."""
    names = ("SIGTERM", "SIGHUP") if threading.current_thread() is threading.main_thread() else ()
    ending = [getattr(signal, name) for name in names if hasattr(signal, name)]
    ending = [number for number in ending if signal.getsignal(number) is signal.SIG_DFL]
    try:
        for number in ending:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number in ending:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def _open_browser(address: str) -> Iterator[None]:
    """Open an address in the browser, by a private file that redirects there.

    All users of a machine can see the arguments of programs, so the address is not among them.
    A browser such as a command in BROWSER may block until it ends, so a thread starts it.
    """
    import tempfile
    import webbrowser
    from html import escape

    with tempfile.TemporaryDirectory(prefix="tagkin-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "review.html"
        file.touch(mode=0o600)
        file.write_text(_REDIRECT.format(address=escape(address)), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True).start()
        yield


def _tell(address: str, catalogue: Catalogue, as_json: bool) -> None:
    if as_json:
        send_json({"address": address, "folder": relative(catalogue.root)})
        sys.stdout.flush()
        return
    say(f"Reviewing {relative(catalogue.root)} at")
    say(f"  {address}")
    say("Press Ctrl-C to stop.")
