"""tagkin review: decide on suggestions in the browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tagkin.cli import options
from tagkin.cli.page import Serving, serve_page
from tagkin.cli.registry import command


def _parse_port(text: str) -> int:
    if text.isdecimal() and int(text) < 1 << 16:
        return int(text)
    raise typer.BadParameter(f"{text} is not a port. Ports are numbers from 0 to 65535.")


@command("review")
def review(
    folder: options.Folder = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            parser=_parse_port,
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
    host: Annotated[
        str | None,
        typer.Option(
            "--host",
            metavar="ADDRESS",
            show_default=False,
            help="Let other machines in, with a password: listen at this address, such as 0.0.0.0.",
        ),
    ] = None,
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file",
            metavar="FILE",
            help="A file with the password for --host. Default: you are asked for it.",
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            metavar="NAME",
            help="A name by which browsers reach this machine with --host. Can be repeated.",
        ),
    ] = None,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Review suggestions in the browser: accept, reject, undo.

    Opens a page in the browser at once. In the background, it scans FOLDER, trains a model if
    needed and suggests tags; photographs and suggestions appear on the page as they come, and so
    do photographs that you add later. The next start continues. Without FOLDER, reviews the
    current folder, if it has photographs, or the only collection; otherwise you choose on the page.

    The page is on this machine and for you alone: its address holds a secret. Your decisions are
    stored at once. The command ends a minute after you close the last page, or with Quit or
    Ctrl-C; with --no-browser only with these. --json writes the address.

    With --host, other machines that know the password open the page, too, and see folders in
    FOLDER, or else in your Pictures. Put a reverse proxy with TLS in front of it.

    Examples
    --------
    tagkin review ~/Pictures
    tagkin review ~/Pictures --no-browser --port 9000
    tagkin review ~/Pictures --vocabulary words.txt
    tagkin review ~/Pictures --host 0.0.0.0 --password-file password.txt
    """
    if host is None and (password_file or names):
        raise typer.BadParameter("--password-file and --name belong to --host.")
    words = [] if vocabulary is None else options.read_words(vocabulary)
    serve_page(
        folder if folder or catalogue or host else _choose_folder(),
        Serving(port, not no_browser, as_json, host, password_file, tuple(names or ())),
        catalogue=catalogue,
        words=words,
    )


def _choose_folder() -> Path | None:
    """Return the collection that a person means who names none; None for the start page."""
    from tagkin.catalogue.known_catalogues import find_root, known_catalogues
    from tagkin.collection.discovery import has_photograph

    known, here = known_catalogues(), Path.cwd()
    root = find_root(here, known)
    if root is not None:
        return root
    home = Path(os.path.expanduser("~"))  # a container may run as anybody
    # a person's whole home is not meant by being there
    if here not in (home, *home.parents) and has_photograph(here):
        return here
    return next(iter(known)) if len(known) == 1 else None


def open_start_page() -> None:
    """Serve the start page, for whoever starts tagkin without a command."""
    serve_page(None, Serving())
