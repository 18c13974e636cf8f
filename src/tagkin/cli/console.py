"""Standard streams for people, laid out by rich; imported when something is shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bar,
)
from rich.text import Text

from tagkin.cli.streams import visible
from tagkin.progress import Progress

_WIDE = 160  # columns if the width of the window is unknown, so little is cut


class StreamConsole(Console):
    """A standard stream, with colours on a terminal; nothing in a text is markup."""

    def __init__(self, *, stderr: bool) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False, markup=False)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _WIDE

    def text(self, *parts: str | tuple[str, str]) -> Text:
        """Return text of parts, some of them with a style."""
        pairs = [(part, "") if isinstance(part, str) else part for part in parts]
        return Text.assemble(*((visible(text), style) for text, style in pairs))

    def render_str(self, text: str, **kwargs: Any) -> Text:  # rich's own parameters
        """Return text as it is laid out and written."""
        return self.text((text, kwargs.get("style", "")))

    def on_broken_pipe(self) -> None:
        """Let the caller handle a reader that has gone."""
        raise  # noqa: PLE0704 - rich calls this while it handles the error


@contextmanager
def draw_progress(console: StreamConsole) -> Iterator[Progress]:
    """Yield a function of (what, done, total) that draws a bar with the time that is left."""
    bar = Bar(
        SpinnerColumn("line", style="dim"),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # what is printed meanwhile stays above the bar
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task("Starting", total=None)
        current = "Starting"

        def step(what: str, done: int, total: int) -> None:
            nonlocal task, current
            counted = total if total > 1 else None
            if what != current:
                bar.remove_task(task)
                task, current = bar.add_task(what, total=counted), what
            bar.update(task, completed=done, total=counted)

        yield step
