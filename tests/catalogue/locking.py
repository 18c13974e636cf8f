"""A catalogue that is held by another program."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def nobody_writes(path: Path) -> Iterator[None]:
    """Let all who write to a catalogue wait, as a fit in the background does at its beginning."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.close()
