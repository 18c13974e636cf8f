"""Kin as a catalogue keeps them: six bytes each, since there are millions."""

from __future__ import annotations

import struct
from collections.abc import Iterable

__all__ = ["pack_kin", "unpack_kin"]

_KIN = struct.Struct("<IH")  # number of the content, share of the support in 1/65535
_ONE = 0xFFFF


def pack_kin(kin: Iterable[tuple[int, float]]) -> bytes:
    """Contents and their shares of the support, from 0 to 1, as bytes."""
    return b"".join(_KIN.pack(content, _whole(share)) for content, share in kin)


def unpack_kin(data: bytes | None) -> list[tuple[int, float]]:
    """What `pack_kin` was given; shares to within 1/65535."""
    return [(content, share / _ONE) for content, share in _KIN.iter_unpack(data or b"")]


def _whole(share: float) -> int:
    return round(_ONE * min(max(share, 0.0), 1.0))
