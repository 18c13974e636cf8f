"""What a suggestion rests on, as a catalogue keeps it: few bytes each, since there are millions."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Evidence", "pack_evidence", "unpack_evidence"]

# Shares go in 1/65535. Kin take six bytes each; four bytes before them, where they are there, say
# how much the tag's name and the photograph itself have to do with it.
_KIN = struct.Struct("<IH")
_SHARES = struct.Struct("<HH")
_ONE = 0xFFFF


class Evidence(NamedTuple):
    """The evidence for a tag on a photograph."""

    kin: Sequence[tuple[int, float]] = ()
    """Contents that support it, with their shares of the support of all kin, from 0 to 1."""
    name_share: float | None = None
    """The part of the tag's name in the evidence for it; None where nobody noted it."""
    readout_share: float | None = None
    """The part that was read off the photograph itself. What is left to 1 is that of kin."""


def pack_evidence(
    kin: Iterable[tuple[int, float]] = (),
    name_share: float | None = None,
    readout_share: float | None = None,
) -> bytes:
    """Evidence as bytes; the two shares are both given, or neither."""
    data = b"".join(_KIN.pack(content, _whole(share)) for content, share in kin)
    if name_share is None or readout_share is None:
        return data
    return _SHARES.pack(_whole(name_share), _whole(readout_share)) + data


def unpack_evidence(data: bytes | None) -> Evidence:
    """What `pack_evidence` was given; shares to within 1/65535."""
    data = data or b""
    has_shares = len(data) % _KIN.size == _SHARES.size
    start = _SHARES.size if has_shares else 0
    end = len(data) - (len(data) - start) % _KIN.size  # of a damaged catalogue, what is whole
    kin = [(content, share / _ONE) for content, share in _KIN.iter_unpack(data[start:end])]
    if not has_shares:
        return Evidence(kin)
    name_share, readout_share = _SHARES.unpack_from(data)
    return Evidence(kin, name_share / _ONE, readout_share / _ONE)


def _whole(share: float) -> int:
    return round(_ONE * min(max(share, 0.0), 1.0))
