"""How far it is: a bar with the time that is left, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import rich.progress
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

from tagkin.cli.output import messages
from tagkin.progress import Progress, silent

__all__ = ["progress_bar"]


class _WhereCounted(ProgressColumn):
    """A column for work that can be counted; empty for a single piece of work."""

    def __init__(self, column: ProgressColumn):
        self.column = column
        super().__init__()

    def render(self, task: Task) -> Text:
        """The column's text, or nothing."""
        return self.column.render(task) if task.total is not None else Text("")  # type: ignore[return-value]


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A function to be told (what, done, all); it draws where standard error is a terminal."""
    console = messages()
    if not console.is_terminal:
        yield silent
        return
    bar = rich.progress.Progress(
        SpinnerColumn("line" if console.options.ascii_only else "dots", style="dim"),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        _WhereCounted(MofNCompleteColumn()),
        _WhereCounted(TimeRemainingColumn(compact=True, elapsed_when_finished=True)),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bar:
        task = bar.add_task("Starting", total=None)
        what_now = "Starting"

        def step(what: str, done: int, total: int) -> None:
            nonlocal task, what_now
            counted = total if total > 1 else None
            if what != what_now:
                bar.remove_task(task)
                task, what_now = bar.add_task(what, total=counted), what
            bar.update(task, completed=done, total=counted)

        yield step
