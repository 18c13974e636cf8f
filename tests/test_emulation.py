"""The tests as on another machine: what they need, and what starts them."""

import struct
from importlib.metadata import distributions

import pytest

from tests.emulation import LEFT_OUT, MAGIC, MASK, by_kind, check_possible


def header(machine: int, kind: int = 3, system: int = 0) -> bytes:
    """The first bytes of a little-endian ELF file of 64 bits."""
    return b"\x7fELF\x02\x01\x01" + bytes([system]) + bytes(8) + struct.pack("<HH", kind, machine)


@pytest.mark.parametrize(
    ("data", "matches"),
    [
        (header(183), True),  # aarch64
        (header(183, kind=2), True),  # linked to fixed addresses
        (header(183, system=3), True),  # says that it is Linux's
        (header(62), False),  # x86-64
        (header(183, kind=1), False),  # an object file
        (b"#!/bin/sh\n".ljust(20), False),
    ],
)
def test_programs_of_that_architecture_are_emulated_and_no_others(data, matches):
    magic, mask = (text.decode("unicode_escape").encode("latin-1") for text in (MAGIC, MASK))
    assert len(magic) == len(mask) == len(data)
    assert all((a ^ b) & bits == 0 for a, b, bits in zip(data, magic, mask, strict=True)) is matches


def test_packages_with_machine_code_are_got_anew():
    every = list(distributions())
    same, other = by_kind(every)
    names = {package.name for package in same}, {package.partition("==")[0] for package in other}
    assert {"numpy", "scipy", "onnxruntime"} <= names[1]
    assert {"pytest", "typer", "dask"} <= names[0]
    assert names[0] | names[1] == {
        package.name for package in every if package.name.lower() not in LEFT_OUT
    }
    assert not names[0] & names[1]
    machine_code = [
        (package.name, file)
        for package in same
        for file in package.files or []
        if file.suffix == ".so"
    ]
    assert not machine_code


@pytest.mark.parametrize(
    ("version", "missing", "is_root", "message"),
    [
        ((3, 11), ["debootstrap"], True, "debootstrap: not found. On Debian as root: apt-get"),
        ((3, 11), [], False, "Only root"),
        ((3, 12), [], True, "This is Python 3.12; .* 3.11 or 3.13"),
    ],
)
def test_what_is_missing_is_said(version, missing, is_root, message):
    with pytest.raises(SystemExit, match=message):
        check_possible(version, missing, is_root)


def test_nothing_is_said_where_it_is_possible():
    check_possible((3, 11), [], True)
