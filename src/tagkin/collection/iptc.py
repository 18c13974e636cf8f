"""Keywords in IPTC-IIM blocks, the older way to write them into photographs."""

from __future__ import annotations

__all__ = ["iptc_keywords"]

_MARK = 0x1C
_CHARACTER_SET, _KEYWORD = (1, 90), (2, 25)
_LATIN_1 = {b"\x1b.A", b"\x1b-A", b"\x1b,A"}
_MAX_FIELDS = 1 << 16
_LONGEST = 64  # bytes that IPTC allows a keyword; some writers leave one for a zero


def iptc_keywords(block: bytes) -> list[str]:
    """The keywords of a block, in its order.

    A block can say that it is Latin-1. If it says UTF-8 or nothing, a keyword is UTF-8 where
    that makes sense of it, else Latin-1: many programs wrote UTF-8 without saying so. Of one that
    was cut inside a character, the whole characters are left.
    """
    fields = _fields(_in_order(block))
    latin = any(key == _CHARACTER_SET and value in _LATIN_1 for key, value in fields)
    return [_text(value, latin) for key, value in fields if key == _KEYWORD]


def _text(value: bytes, latin: bool) -> str:
    if not latin:
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError as error:
            whole = value[: error.start]
            if error.reason == "unexpected end of data" and _is_cut(value, whole):
                return whole.decode("utf-8")
    try:
        return value.decode("cp1252")  # what writers of Latin-1 use in truth
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _is_cut(value: bytes, whole: bytes) -> bool:
    """Whether it is UTF-8 that ends inside a character; "café" in Latin-1 looks like that, too.

    Then it is as long as they get, or has other characters that make sense in UTF-8.
    """
    return len(value) >= _LONGEST - 1 or not whole.isascii()


def _in_order(block: bytes) -> bytes:
    """TIFF files may have it as 32-bit numbers, with the bytes of each turned round."""
    if block[:1] != bytes([_MARK]) and block[3:4] == bytes([_MARK]):
        whole = len(block) // 4 * 4
        turned = bytearray(whole)
        for i in range(4):
            turned[i::4] = block[3 - i : whole : 4]
        return bytes(turned) + block[whole:][::-1]
    return block


def _fields(block: bytes) -> list[tuple[tuple[int, int], bytes]]:
    """((record, dataset), value) for each field, up to where the block makes no sense."""
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
