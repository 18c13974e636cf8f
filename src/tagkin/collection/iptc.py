"""Keywords in IPTC-IIM blocks, the older way to write them into photographs."""

from __future__ import annotations

__all__ = ["iptc_keywords"]

_MARK = 0x1C
_CHARACTER_SET, _KEYWORD = (1, 90), (2, 25)
_LATIN_1 = {b"\x1b.A", b"\x1b-A", b"\x1b,A"}
_MAX_FIELDS = 1 << 16
_LONGEST = 64  # bytes that IPTC allows a keyword; some writers leave one for a zero


def iptc_keywords(block: bytes) -> list[str]:
    """Return the keywords of a block, in order.

    A block can declare Latin-1. Otherwise a keyword is read as UTF-8 if it is valid UTF-8, else
    as Latin-1, because many programs write UTF-8 without declaring it. If a keyword was cut
    inside a character, that character is dropped.
    """
    fields = _read_fields(_restore_byte_order(block))
    latin = any(key == _CHARACTER_SET and value in _LATIN_1 for key, value in fields)
    return [_decode(value, latin) for key, value in fields if key == _KEYWORD]


def _decode(value: bytes, latin: bool) -> str:
    if not latin:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            whole = value[: error.start]
            if error.reason == "unexpected end of data" and _is_cut(value, whole):
                return whole.decode("utf-8")
    try:
        return value.decode("cp1252")  # which most writers of "Latin-1" use
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _is_cut(value: bytes, whole: bytes) -> bool:
    """Whether a value is UTF-8 that ends inside a character.

    "café" in Latin-1 looks the same. A cut value has the full length, or has other characters
    that are valid UTF-8.
    """
    return len(value) >= _LONGEST - 1 or not whole.isascii()


def _restore_byte_order(block: bytes) -> bytes:
    """Undo the byte order of TIFF files that hold the block as 32-bit numbers."""
    if block[:1] != bytes([_MARK]) and block[3:4] == bytes([_MARK]):
        whole = len(block) // 4 * 4
        turned = bytearray(whole)
        for i in range(4):
            turned[i::4] = block[3 - i : whole : 4]
        return bytes(turned) + block[whole:][::-1]
    return block


def _read_fields(block: bytes) -> list[tuple[tuple[int, int], bytes]]:
    """Return ((record, dataset), value) for each field before the first invalid field."""
    fields: list[tuple[tuple[int, int], bytes]] = []
    at = 0
    while at + 5 <= len(block) and block[at] == _MARK and len(fields) < _MAX_FIELDS:
        key = block[at + 1], block[at + 2]
        size = int.from_bytes(block[at + 3 : at + 5], "big")
        at += 5
        if size & 0x8000:  # the size of the size
            width = size & 0x7FFF
            size = int.from_bytes(block[at : at + width], "big")
            at += width
        if at + size > len(block):
            break
        fields.append((key, block[at : at + size]))
        at += size
    return fields
