"""tagkin watch: suggest tags for new photographs by itself."""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import TYPE_CHECKING

from tagkin.cli import options
from tagkin.cli.catalogues import tell_others
from tagkin.cli.output import note, progress_bar, relative, report_problems, say, send_json
from tagkin.cli.registry import command
from tagkin.errors import InvalidInput
from tagkin.wording import CHANGES, changes_text, count

if TYPE_CHECKING:
    from tagkin.catalogue import Catalogue
    from tagkin.server.background import BackgroundFit

_PAUSE = 0.5  # seconds between two looks at the progress


@command("watch")
def watch(
    folder: options.Folder = None,
    as_json: options.AsJson = False,
    catalogue: options.Catalogue = None,
) -> None:
    """Watch a folder, and suggest tags for new photographs.

    Scans FOLDER, trains a model if needed and suggests tags. Then it waits, and does the same with
    new and changed photographs, at a low priority. Without FOLDER, watches the current folder's
    collection. `tagkin review` watches its folder by itself while it runs, and only one of them
    can run at a time.

    Press Ctrl-C to stop. --json writes a line after each change.

    Examples
    --------
    tagkin watch ~/Pictures
    tagkin watch ~/Pictures --json
    """
    from tagkin.catalogue import open_for_scan
    from tagkin.server.background import BackgroundFit, FolderWatcher

    words, is_changed = options.read_words("common"), threading.Event()
    with open_for_scan(folder, catalogue, command="watch") as opened:
        if opened.server:
            raise InvalidInput(
                "A server tells nobody what is new. Let a timer run tagkin scan and tagkin suggest."
            )
        tell_others(opened, catalogue)
        job = BackgroundFit(opened.path, lambda has_ended: None, words)
        # Ctrl-C is how it ends
        with contextlib.suppress(KeyboardInterrupt), contextlib.ExitStack() as stack:
            watcher = stack.enter_context(
                contextlib.closing(FolderWatcher(opened.root, is_changed.set))
            )
            stack.callback(job.stop)
            if not as_json:
                say(f"Watching {relative(opened.root)}. Press Ctrl-C to stop.")
            while watcher.error is None:
                is_changed.clear()
                _catch_up(opened, job, as_json)
                while not is_changed.wait(_PAUSE) and watcher.error is None:
                    pass
            raise InvalidInput(f"{opened.root} cannot be watched: {watcher.error}.")


def _catch_up(catalogue: Catalogue, job: BackgroundFit, as_json: bool) -> None:
    """Bring the catalogue up to date, and say what is new."""
    last = max((run.id for run in catalogue.runs.history(1)), default=0)
    job.start(catalogue.model.needs(), "catch-up")
    with progress_bar() as step:
        while job.is_running:
            state = job.state()
            if state["state"] == "running":
                part = state["scan"] or state
                step(part["what"], part["done"], part["total"])
            job.wait(_PAUSE)
    state = job.state()
    if state["state"] == "failed":
        note(state["error"])
    problems = report_problems(job.failures.values())
    job.failures.clear()
    runs = [run for run in catalogue.runs.history() if run.id > last]
    scans = [run.outcome for run in runs if run.what == "scan"]
    changes = {name: sum(outcome.get(name, 0) for outcome in scans) for name in CHANGES}
    n_suggestions = sum(r.outcome.get("suggestions", 0) for r in runs if r.what == "suggest")
    if as_json:
        summary = {"folder": relative(catalogue.root), **changes, "suggestions": n_suggestions}
        send_json(summary | {"unreadable": problems})
        sys.stdout.flush()
        return
    sentences = [f"Photographs: {text}."] if (text := changes_text(changes)) else []
    if n_suggestions:
        sentences.append(f"{count(n_suggestions, 'suggestion')}.")
    if sentences:
        say(" ".join(sentences))
