"""Journals beside SQLite files: one that names a victim, and one that a killed program left."""

import os
import shutil
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

MAGIC = bytes.fromhex("d9d505f920a163d7")
_SECTOR, _PAGE = 512, 4096


def plant_journal(database: Path, folder: Path) -> Path:
    """Put a journal beside a database, whose rollback deletes a new file; return this victim.

    No page is restored. After the header is the number of the page that locks are on, then the
    name of the super-journal, its length and checksum, and the magic again.
    """
    victim = folder / "victim.txt"
    victim.write_text("precious")
    name = os.fsencode(victim)
    header = MAGIC + struct.pack(">5I", 0, 0, 1, _SECTOR, _PAGE)
    locks = struct.pack(">I", (1 << 30) // _PAGE + 1)
    end = name + struct.pack(">2I", len(name), sum(name)) + MAGIC
    data = header.ljust(_SECTOR, b"\0") + locks + end
    assert len(data) < 700
    Path(f"{database}-journal").write_bytes(data)
    return victim


def interrupt_transaction(database: Path, statement: str) -> None:
    """Leave a database as a program does that is killed in a transaction with a journal."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA cache_size = 1")  # changed pages go into the file at once
        connection.execute("BEGIN")
        connection.execute(statement)
        for suffix in ("", "-journal"):
            shutil.copyfile(f"{database}{suffix}", f"{database}{suffix}.killed")
    for suffix in ("", "-journal"):
        Path(f"{database}{suffix}.killed").replace(f"{database}{suffix}")
