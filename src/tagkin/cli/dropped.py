"""Open a folder that was dropped on the program, or opened with it, where nobody sees a terminal.

``python -m tagkin.cli.dropped FOLDER`` opens the start page, which opens the folder, or says why it
cannot.
"""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from tagkin.cli.guard import guard_command
from tagkin.cli.page import Serving, serve_page
from tagkin.cli.streams import only_our_words, prepare_streams


def main(folder: str) -> None:
    """Serve the page, as ``tagkin review FOLDER`` does."""
    prepare_streams()
    try:
        with only_our_words():
            guard_command(serve_page)(Path(folder), Serving(opens_on_page=True))
    except typer.Exit as end:
        raise SystemExit(end.exit_code) from None


if __name__ == "__main__":
    main(sys.argv[1])
