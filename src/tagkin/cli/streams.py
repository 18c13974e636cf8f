"""Standard streams: any text on any terminal, in the characters that its encoding has."""

from __future__ import annotations

import codecs
import contextlib
import os
import sys
import unicodedata
from collections.abc import Iterator
from typing import TextIO

_ERRORS = "tagkin-plain"

# Characters of our sentences in ASCII; other characters are escaped.
_PLAIN = {"–": "-", "−": "-", "…": "...", "�": "?"}

_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    """Return text with a mark in place of characters that would change the text around them.

    These are control characters, broken characters and characters that turn the direction of the
    text after them, which would read as another text.
    """
    return "".join("�" if _is_harmful(c) else c for c in text)


def _is_harmful(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} or char in _TURNING


# --- the streams themselves --------------------------------------------------------------


def prepare_streams() -> None:
    """Let standard output and standard error take any text; discard it if a stream is closed.

    Bytes of a file name that are not UTF-8 are written unchanged.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_ERRORS)


@contextlib.contextmanager
def only_our_words() -> Iterator[None]:
    """Let only Python write to standard error within the ``with`` statement.

    Libraries such as libtiff and onnxruntime write lines about files to file descriptor 2, so our
    messages get another descriptor. ``TAGKIN_DEBUG`` changes nothing.
    """
    ours = sys.stderr
    try:
        is_shared = ours.fileno() == 2 and not os.environ.get("TAGKIN_DEBUG")
        descriptor = os.dup(2) if is_shared else None
    except (AttributeError, OSError, ValueError):
        descriptor = None
    if descriptor is None:
        yield
        return
    ours.flush()
    apart = open(descriptor, "w", 1, ours.encoding, ours.errors)  # noqa: SIM115 (closed below)
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
        os.dup2(descriptor, 2)
        with contextlib.suppress(OSError, ValueError):
            apart.close()


def _replace_error(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    char = error.object[error.start]
    is_byte = "\udc80" <= char <= "\udcff"
    plain = _PLAIN.get(char) or char.encode("ascii", "backslashreplace").decode("ascii")
    return char.encode("utf-8", "surrogateescape") if is_byte else plain, error.start + 1


codecs.register_error(_ERRORS, _replace_error)


def encode_text(text: str) -> bytes:
    """Return data as UTF-8; bytes of file names are unchanged, broken characters escaped."""
    return text.encode("utf-8", _ERRORS)


def discard(stream: TextIO) -> None:
    """Write nothing more to a standard stream; Python would try again at its end, and complain."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
