"""Metadata that ask for far more time or memory than they weigh: read in a moment, or left."""

import os

import pytest

from tagkin.collection import capture_of, read_metadata
from tagkin.collection.keywords import MAX_KEYWORDS, MAX_LENGTH
from tests.forking import needs_fork
from tests.hardening.hostile_metadata import CASES
from tests.hardening.limits import within
from tests.hardening.samples import photographs, xmp_packet

MB = 1 << 20
CPU_SECONDS = 20  # each takes a fifth of one; several took a hundred, or had no end


@needs_fork
@pytest.mark.parametrize("name", CASES)
def test_in_a_moment_and_in_little_memory(name, tmp_path, lean):
    lean(read_within_limits, tmp_path, name)


def read_within_limits(folder, name):
    path = folder / name
    for sample in ("jpeg", "avif", "heif"):  # whatever is loaded at first use is no part of it
        path.write_bytes(photographs().get(sample, b""))
        read_metadata(path)
    CASES[name](path)

    def work():
        metadata = read_metadata(path)
        words, problems = metadata.tags, metadata.problems
        capture_of(metadata.facts)
        assert len(words) <= MAX_KEYWORDS
        assert all(
            str(path) == problem.file and problem.reason.isprintable() for problem in problems
        )

    within(96 * MB, work, cpu_seconds=CPU_SECONDS)


def test_what_is_left_out_is_told(tmp_path):
    path = tmp_path / "a.xmp.jpg"
    path.write_bytes(photographs()["jpeg-grey"])
    sidecar = tmp_path / "a.xmp.xmp"
    sidecar.write_bytes(xmp_packet("sea", "x" * (MAX_LENGTH + 1), "y" * MAX_LENGTH))
    metadata = read_metadata(path)
    words, problems = metadata.tags, metadata.problems
    assert list(words) == ["place|sea", "y" * MAX_LENGTH]
    assert [problem.reason for problem in problems] == [
        f"keywords of more than {MAX_LENGTH} characters were left out"
    ]
    sidecar.write_bytes(xmp_packet(*(str(k) for k in range(MAX_KEYWORDS + 5))))
    metadata = read_metadata(path)
    words, problems = metadata.tags, metadata.problems
    assert len(words) == MAX_KEYWORDS
    assert problems[0].file == os.fspath(sidecar)
    assert "more than 10,000 keywords" in problems[0].reason


def test_a_second_picture_in_the_metadata_is_no_problem(tmp_path):
    """Telephones put megabytes of it into XMP; it has no keywords, and nothing is said of it."""
    path = tmp_path / "a.jpg"
    path.write_bytes(photographs()["jpeg-grey"])
    picture = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'>" + b"QUJD" * (3 << 20) + b"</x:xmpmeta>"
    (tmp_path / "a.jpg.xmp").write_bytes(picture[: 8 << 20])
    metadata = read_metadata(path)
    assert (metadata.tags, metadata.problems) == ({}, [])
