"""The background process ``python -m tagkin.server.background_process CATALOGUE JOB [BACKBONE]``.

The job ``catch-up`` scans the folder, trains and suggests, ``fit`` trains and suggests, ``suggest``
suggests for new photographs, and ``map`` does nothing of these; all jobs draw the map if there is a
new model, or a new photograph. Training may use another backbone. The process reports its progress
in lines of JSON. The first line of its standard input is a list of words for suggestions by name.
It ends with its standard input, because the review has ended then. The memory of all this work
returns to the system when it ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from tagkin.catalogue import open_catalogue
from tagkin.errors import TagkinError
from tagkin.images import Failure
from tagkin.server.mapping import CollectionMap, write_map

_NICE = 10  # a tenth of a core if all are busy


def main(path: str, job: str, backbone: str | None = None) -> int:
    """Run a job on a catalogue and return the exit code."""
    words = json.loads(sys.stdin.readline() or "[]")
    threading.Thread(target=_end_with_input, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    try:
        with open_catalogue(Path(path), write=True, is_lent=True) as catalogue:
            is_new = job == "suggest"  # photographs that are not on the map
            if job == "catch-up":
                is_new = catalogue.catch_up(words, backbone, progress=_tell, on_news=_tell_news)
            elif job == "fit":
                _tell_news(catalogue.model.refit(backbone=backbone, progress=_tell).failures)
            elif job == "suggest":
                _tell_news(catalogue.model.suggest_for_review(progress=_tell).failures)
            model = catalogue.model.fingerprint()
            if model is not None and (is_new or CollectionMap(catalogue.path).model != model):
                write_map(catalogue, *catalogue.model.load(), progress=_tell)
    except TagkinError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    return 0


def _tell(what: str, done: int, total: int) -> None:
    # in one piece, because two threads write
    sys.stdout.write(json.dumps({"what": what, "done": done, "total": total}) + "\n")
    sys.stdout.flush()


def _tell_news(failures: Sequence[Failure]) -> None:
    unread = [(failure.file, failure.reason) for failure in failures]
    print(json.dumps({"news": unread}), flush=True)


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
