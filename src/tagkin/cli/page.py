"""Serve the page of this machine's user: the start page, or the review of a collection."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tagkin.cli.output import relative, report_problems, say, send_json
from tagkin.errors import InvalidInput, StorageError

if TYPE_CHECKING:
    from tagkin.server import Desk, Review, Server

_REDIRECT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tagkin</title>
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"></head>
<body><p><a href="{address}">To the review</a></p></body></html>
"""


@dataclass(frozen=True)
class Serving:
    """How to serve a page."""

    port: int | None = None
    opens_browser: bool = True
    as_json: bool = False
    host: str | None = None
    """The address to listen at for other machines."""
    password_file: Path | None = None
    """A file with the password for them. Default: the person at the terminal is asked."""
    names: tuple[str, ...] = ()
    """The names by which they reach this machine."""
    opens_on_page: bool = False
    """Whether the page opens the folder and says why it cannot, where nobody sees a terminal."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines reach the page."""
        return self.host is not None


def serve_page(
    folder: Path | None,
    serving: Serving,
    *,
    catalogue: Path | None = None,
    words: Sequence[str] = (),
) -> None:
    """Serve a collection, or the start page without one, until it ends.

    If this person's server runs already, and shows the same, its page is opened instead.
    """
    from tagkin.catalogue.known_catalogues import check_data_folder, default_data_folder
    from tagkin.server import Access, Desk, OnlyServer, Server
    from tagkin.server.desk import open_review

    if catalogue is None and not serving.opens_on_page:  # otherwise the page says so
        check_data_folder()
    if serving.is_shared:
        _serve_others(folder, serving, catalogue=catalogue, words=words)
        return
    only = OnlyServer(default_data_folder())
    is_start = folder is None and catalogue is None
    is_same = folder is not None and only.root == Path(os.path.realpath(folder))
    if only.address is not None and (is_start or (is_same and catalogue is None)):
        _show_other(only.address, only.root, serving)
        return
    with contextlib.closing(only):
        is_later = is_start or serving.opens_on_page
        review = None if is_later else open_review(folder, catalogue, words)
        access = Access()
        desk = Desk(review, lambda root: only.announce(server.address, root))
        try:
            server = Server(desk, access, serving.port, ends_when_left=serving.opens_browser)
            only.announce(server.address, None if review is None else review.root)
            if folder is not None and serving.opens_on_page:
                desk.open(folder)
            _tell(server.address, review, serving.as_json)
            _run(server, serving)
            if server.was_left:
                say("Ended: its last page was closed a minute ago.")
        finally:
            desk.close()
        _report(desk)


def _serve_others(
    folder: Path | None, serving: Serving, *, catalogue: Path | None, words: Sequence[str]
) -> None:
    """Serve the page for other machines, with a password, until Ctrl-C."""
    from tagkin.server import Access, Desk, Password, Server
    from tagkin.server.desk import open_review
    from tagkin.server.start_folders import Folders

    within = Path(Folders().pictures() if folder is None else folder)
    access = Access(
        host=serving.host or "",
        password=Password(_read_password(serving.password_file)),
        names=frozenset(serving.names),
    )
    is_start = folder is None and catalogue is None
    review = None if is_start else open_review(folder, catalogue, words)
    desk = Desk(review)
    try:
        server = Server(desk, access, serving.port, within=within)
        _tell(server.address, review, serving.as_json)
        say("Other machines can open it with the password, and choose folders in")
        say(f"  {relative(within)}")
        say("The connection is not encrypted: a reverse proxy with TLS belongs in front of it.")
        _run(server, Serving(opens_browser=False))
    finally:
        desk.close()
    _report(desk)


def _read_password(file: Path | None) -> str:
    """Return the password from a file, or as a person types it, unseen."""
    if file is not None:
        try:
            return file.read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "it is not UTF-8"
            raise StorageError(f"{relative(file)} cannot be read: {why}.") from error
    if not sys.stdin.isatty():
        raise InvalidInput(
            "Other machines need a password: name a file with --password-file, or type it in a "
            "terminal."
        )
    text: str = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    return text


def _run(server: Server, serving: Serving) -> None:
    """Answer until Ctrl-C, Quit or the end of the last page."""
    with (
        contextlib.suppress(KeyboardInterrupt),  # which is how it ends
        _ended_by_signals(),
        contextlib.closing(server),
        _browser(server.first_address, serving),
    ):
        server.run()


def _report(desk: Desk) -> None:
    """Name the files that could not be read."""
    if desk.opened is not None:
        report_problems(desk.opened.review.fit.failures.values(), most=None)


def _show_other(address: str, root: Path | None, serving: Serving) -> None:
    """Open the page of the server that runs already."""
    if serving.as_json:
        send_json({"address": address, "folder": None if root is None else relative(root)})
        return
    say("tagkin runs already, at")
    say(f"  {address}")
    with _browser(address, serving) as thread:
        if thread is not None:
            thread.join()


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
def _browser(address: str, serving: Serving) -> Iterator[threading.Thread | None]:
    """Open an address in the browser, by a private file that redirects there.

    All users of a machine can see the arguments of programs, so the address is not among them.
    A browser such as a command in BROWSER may block until it ends, so a thread starts it.
    """
    import tempfile
    import webbrowser
    from html import escape

    if not serving.opens_browser:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="tagkin-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "review.html"
        file.touch(mode=0o600)
        file.write_text(_REDIRECT.format(address=escape(address)), encoding="utf-8")
        thread = threading.Thread(target=webbrowser.open, args=(file.as_uri(),), daemon=True)
        thread.start()
        yield thread


def _tell(address: str, review: Review | None, as_json: bool) -> None:
    if as_json:
        folder = None if review is None else relative(review.root)
        send_json({"address": address, "folder": folder})
        sys.stdout.flush()
        return
    say("tagkin is at" if review is None else f"Reviewing {relative(review.root)} at")
    say(f"  {address}")
    say("Press Ctrl-C to stop.")
