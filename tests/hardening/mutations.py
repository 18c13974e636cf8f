"""Files that are nearly right: what bad disks, bad programs and bad people make of good ones."""

import random
from collections.abc import Sequence

__all__ = ["mutated"]

# Numbers at which counts, sizes and offsets go wrong.
_NUMBERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)


def mutated(rng: random.Random, samples: Sequence[bytes]) -> bytes:
    """A sample with one to eight changes; now and then as it is, cut off, or of two samples."""
    data = bytearray(rng.choice(samples))
    for _ in range(rng.choice((0, 1, 1, 2, 3, 5, 8))):
        if not data:
            break
        rng.choice(_CHANGES)(rng, data)
    if rng.random() < 0.05:
        other = rng.choice(samples)
        data[rng.randrange(len(data) + 1) :] = other[rng.randrange(len(other)) :]
    return bytes(data)


def _position(rng: random.Random, data: bytearray) -> int:
    """Somewhere; half of the time near the start, where headers are."""
    return rng.randrange(min(len(data), 256) if rng.random() < 0.5 else len(data))


def _flip(rng: random.Random, data: bytearray) -> None:
    data[_position(rng, data)] ^= 1 << rng.randrange(8)


def _set(rng: random.Random, data: bytearray) -> None:
    data[_position(rng, data)] = rng.randrange(256)


def _number(rng: random.Random, data: bytearray) -> None:
    width, order = rng.choice((2, 4, 4, 8)), rng.choice(("big", "little"))
    value = rng.choice(_NUMBERS) & (256**width - 1)
    at = _position(rng, data)
    data[at : at + width] = value.to_bytes(width, order)


def _cut(rng: random.Random, data: bytearray) -> None:
    del data[_position(rng, data) :]


def _remove(rng: random.Random, data: bytearray) -> None:
    at = _position(rng, data)
    del data[at : at + rng.choice((1, 2, 4, 16, 100))]


def _repeat(rng: random.Random, data: bytearray) -> None:
    at = _position(rng, data)
    piece = data[at : at + rng.choice((1, 4, 16, 100, 1000))]
    data[at:at] = piece * rng.choice((1, 1, 2, 10))


def _zero(rng: random.Random, data: bytearray) -> None:
    at = _position(rng, data)
    n = min(rng.choice((4, 64, 1000)), len(data) - at)
    data[at : at + n] = bytes(n)


_CHANGES = (_flip, _flip, _set, _number, _number, _cut, _remove, _repeat, _zero)
