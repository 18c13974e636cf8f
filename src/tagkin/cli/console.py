"""Standard streams for people, laid out by rich; imported when something is shown."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import rich.progress
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tagkin.cli.streams import encodable, visible
from tagkin.progress import Progress

_TRAILING = re.compile(" +$", re.MULTILINE)
_WIDE = 160  # columns if the width of the window is unknown, so little is cut


# Any: rich's own parameters, which are passed on.


class StreamConsole(Console):
    """A standard stream: colours on a terminal, and only characters that its encoding has.

    Characters that the encoding lacks are replaced before the layout, so columns stay in line.
    """

    def __init__(self, *, stderr: bool) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _WIDE
        # where rich cuts a text, it writes a single character: leave space for its replacement
        self.width -= len(encodable("…", self.encoding)) - 1

    def text(self, *parts: str | tuple[str, str]) -> Text:
        """Return text of parts, some of them with a style, in characters that can be shown."""
        pairs = [(part, "") if isinstance(part, str) else part for part in parts]
        shown = ((encodable(visible(text), self.encoding), style) for text, style in pairs)
        return Text.assemble(*shown)

    def render_str(self, text: str, **kwargs: Any) -> Text:
        """Return text as it is laid out and written; nothing in it is markup."""
        return self.text((text, kwargs.get("style", "")))

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does; in a file or a pipe, no line ends with blanks."""
        if self.is_terminal:
            super().print(*objects, **options)
            return
        with self.capture() as printed:
            super().print(*objects, **options)
        self.file.write(_TRAILING.sub("", printed.get()))

    def on_broken_pipe(self) -> None:
        """Let the caller handle a reader that has gone."""
        raise  # noqa: PLE0704 - rich calls this while it handles the error


class _IfCounted(ProgressColumn):
    """A column for work that can be counted; empty for a single piece of work."""

    def __init__(self, column: ProgressColumn):
        self.column = column
        super().__init__()

    def render(self, task: Task) -> Text:
        """Return the column's text, or no text."""
        return self.column.render(task) if task.total is not None else Text("")  # type: ignore[return-value]


@contextmanager
def draw_progress(console: StreamConsole) -> Iterator[Progress]:
    """Yield a function of (what, done, total) that draws a bar with the time that is left."""
    bar = rich.progress.Progress(
        SpinnerColumn("line" if console.options.ascii_only else "dots", style="dim"),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        _IfCounted(MofNCompleteColumn()),
        _IfCounted(TimeRemainingColumn(compact=True, elapsed_when_finished=True)),
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
