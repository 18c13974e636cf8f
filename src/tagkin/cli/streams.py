"""Standard streams: any text on any terminal, in what its encoding has."""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import sys
import unicodedata
from collections.abc import Iterator
from typing import TextIO

__all__ = [
    "discard",
    "encodable",
    "encoded",
    "foreign",
    "is_closed_pipe",
    "only_our_words",
    "own",
    "prepare_streams",
    "write_data",
]

_ERRORS = "tagkin-plain"

# What we draw with, in characters that every encoding has; all else is escaped.
_PLAIN = {"━": "#", "┄": "-", "─": "-", "–": "-", "—": "-", "…": "...", "·": "-", "�": "?"}

# Text that is not ours carries its brackets and backslashes as characters that no text has, so
# that rich reads no markup in it, whatever stands before and after it.
_FOREIGN = {ord("["): "\ufdd0", ord("\\"): "\ufdd1"}
_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_OWN = {ord(there): chr(char) for char, there in _FOREIGN.items()}


def foreign(text: str) -> str:
    """Text that is not ours, for a `StreamConsole`: never markup, and nothing to a terminal.

    Control characters and broken ones are replaced, and so are those that turn the direction of
    the text after them: it would read as something else.
    """
    return "".join("�" if _is_harmful(c) else c for c in text).translate(_FOREIGN)


def own(text: str) -> str:
    """Text that went through `foreign`, once no markup is looked for any more."""
    return text.translate(_OWN)


def _is_harmful(char: str) -> bool:
    if unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} or char in _TURNING:
        return True
    return ord(char) in _OWN


def encodable(text: str, encoding: str) -> str:
    """The text in characters of an encoding."""
    try:
        own(text).encode(encoding)
    except UnicodeEncodeError:
        return "".join(_replaced(char, encoding) for char in text)
    return text


def _replaced(char: str, encoding: str) -> str:
    try:
        own(char).encode(encoding)
    except UnicodeEncodeError:
        return _plain(char).translate(_FOREIGN)
    return char


def _plain(char: str) -> str:
    """A character in ASCII."""
    return _PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode("ascii")


# --- the streams themselves --------------------------------------------------------------


def prepare_streams() -> None:
    """Let standard output and standard error take any text; where one is closed, it goes nowhere.

    Bytes of a file name that are not UTF-8 go out as the bytes that they are.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ERRORS)


@contextlib.contextmanager
def only_our_words() -> Iterator[None]:
    """Within the ``with`` statement, nothing but Python writes to standard error.

    Libraries such as libtiff and onnxruntime write lines of their own about files, to whatever
    stands at number 2. So our words get another number. ``TAGKIN_DEBUG`` leaves all as it is.
    """
    ours = sys.stderr
    try:
        is_theirs_too = ours.fileno() == 2 and not os.environ.get("TAGKIN_DEBUG")
        kept = os.dup(2) if is_theirs_too else None
    except (AttributeError, OSError, ValueError):
        kept = None
    if kept is None:
        yield
        return
    ours.flush()
    apart = open(kept, "w", 1, ours.encoding, ours.errors)  # noqa: SIM115 (closed below)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    sys.stderr = apart
    try:
        yield
    finally:
        sys.stderr = ours
        with contextlib.suppress(OSError, ValueError):
            apart.flush()
        os.dup2(kept, 2)
        with contextlib.suppress(OSError, ValueError):
            apart.close()


def _replace_error(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    char = error.object[error.start]
    kept = "\udc80" <= char <= "\udcff"
    return char.encode("utf-8", "surrogateescape") if kept else _plain(char), error.start + 1


codecs.register_error(_ERRORS, _replace_error)


def write_data(text: str) -> None:
    """Write data to standard output: UTF-8 and plain line ends, whatever the terminal."""
    stream = sys.stdout
    if not hasattr(stream, "buffer"):
        stream.write(text)
        return
    stream.flush()
    stream.buffer.write(encoded(text))


def encoded(text: str) -> bytes:
    """Data as UTF-8. Bytes of file names go out as they are, what is no character as its escape."""
    return text.encode("utf-8", _ERRORS)


def is_closed_pipe(error: BaseException | None) -> bool:
    """Whether an error says that whoever read, such as head, has gone."""
    return isinstance(error, OSError) and error.errno == errno.EPIPE


def discard(stream: TextIO) -> None:
    """Let nothing more go to a standard stream: at the end Python would try again, and complain."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
