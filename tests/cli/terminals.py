"""The whole program in this process, on a terminal or pipe of any encoding."""

import contextlib
import io
import struct
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

import pytest

from tagkin.cli import main


class Said(NamedTuple):
    """What a command wrote, byte by byte."""

    exit_code: int
    out: bytes
    err: bytes


class Terminal(io.BytesIO):
    """Where a stream writes to."""

    def __init__(self, is_terminal: bool = False) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


class Closed(io.RawIOBase):
    """A pipe whose reader has gone."""

    def writable(self) -> bool:
        return True

    def write(self, _: object) -> int:
        raise BrokenPipeError(32, "Broken pipe")


def speak(
    monkeypatch: pytest.MonkeyPatch,
    *args: object,
    encoding: str,
    is_terminal: bool = False,
    columns: int = 120,
) -> Said:
    """Run ``tagkin`` with standard streams of an encoding."""
    streams = Terminal(is_terminal), Terminal(is_terminal)
    out, err = (io.TextIOWrapper(s, encoding=encoding, errors="strict") for s in streams)
    monkeypatch.setenv("COLUMNS", str(columns))
    code = ended(monkeypatch, out, err, *args)
    return Said(code, *(stream.getvalue() for stream in streams))


def ended(monkeypatch: pytest.MonkeyPatch, out: object, err: object, *args: object) -> int:
    """The exit code of ``tagkin`` with these standard streams."""
    with monkeypatch.context() as here:
        here.setattr(sys, "argv", ["tagkin", *map(str, args)])
        here.setattr(sys, "stdout", out)
        here.setattr(sys, "stderr", err)
        with pytest.raises(SystemExit) as end:
            main()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(BrokenPipeError):
                stream.flush()
    return int(end.value.code or 0)


def write_broken_png(path: Path, chunk: bytes = b"[/a]") -> None:
    """A picture whose data breaks off: the reason that it cannot be read names the next chunk."""
    head = struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(range(256)) * 50)[:40]
    parts = [
        _chunk(b"IHDR", head),
        _chunk(b"IDAT", pixels),
        _chunk(chunk, b"odd!"),
        _chunk(b"IEND", b""),
    ]
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def _chunk(name: bytes, content: bytes) -> bytes:
    check = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", check)
