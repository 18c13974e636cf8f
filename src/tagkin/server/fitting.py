"""What the process of a background fit does: ``python -m tagkin.server.fitting CATALOGUE``.

It tells how far it is in lines of JSON, and ends when standard input does: whoever started it has
ended then.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from tagkin.catalogue import Catalogue, refit
from tagkin.errors import TagkinError

__all__ = ["main"]

_NICE = 19


def main(path: str) -> int:
    """Learn from a catalogue and suggest; the exit code."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICE)
    try:
        with Catalogue(Path(path), write=True, is_lent=True) as catalogue:
            refit(catalogue, progress=_tell)
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
    sys.exit(main(sys.argv[1]))
