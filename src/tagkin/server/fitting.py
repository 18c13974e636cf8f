"""The background process ``python -m tagkin.server.fitting CATALOGUE JOB [BACKBONE]``.

The job ``fit`` trains, perhaps with another backbone, suggests and draws the map. ``suggest`` does
not train, and ``map`` only draws the map. The process reports its progress in lines of JSON, and
ends with its standard input, because the review has ended then.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from tagkin.catalogue import Catalogue
from tagkin.errors import TagkinError
from tagkin.server.mapping import write_map

_NICE = 10  # a tenth of a core if all are busy


def main(path: str, job: str, backbone: str | None = None) -> int:
    """Run a job on a catalogue and return the exit code."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    try:
        with Catalogue(Path(path), write=True, is_lent=True) as catalogue:
            if job == "fit":
                catalogue.model.refit(backbone=backbone, progress=_tell)
            elif job == "suggest":
                catalogue.model.suggest_for_review(progress=_tell)
            write_map(catalogue, *catalogue.model.load(), progress=_tell)
    except TagkinError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    return 0


def _tell(what: str, done: int, total: int) -> None:
    print(json.dumps({"what": what, "done": done, "total": total}), flush=True)


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
