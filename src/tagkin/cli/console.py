"""What people read on a terminal, laid out by rich."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console
from rich.text import Text

from tagkin.cli.streams import encodable, own

__all__ = ["StreamConsole"]

_WIDE = 160  # columns where nobody's window is known, so that little is cut


class StreamConsole(Console):
    """A standard stream for people: colours on a terminal, and only characters that it has.

    Characters that the encoding lacks are replaced before anything is laid out, so that columns
    stay in line.
    """

    def __init__(self, *, stderr: bool) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _WIDE
        # where rich cuts a text, it writes one character: room for those in its place
        self.width -= len(encodable("…", self.encoding)) - 1

    def render_str(self, text: str, **kwargs: Any) -> Text:
        """Text with its markup applied, as it is laid out and written."""
        rendered = super().render_str(encodable(text, self.encoding), **kwargs)
        rendered.plain = own(rendered.plain)
        return rendered

    def on_broken_pipe(self) -> None:
        """Leave it to whoever prints what a reader that has gone means."""
        raise  # noqa: PLE0704 - rich calls this while it handles the error
