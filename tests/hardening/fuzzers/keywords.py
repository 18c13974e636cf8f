"""Metadata that are nearly right: keywords, or problems in a line each; nothing else."""

import random
import tempfile
import time
import zlib
from pathlib import Path

from tagkin.collection import capture_of, read_metadata
from tagkin.collection.keywords import MAX_LENGTH
from tagkin.errors import UnreadableImage
from tests.collection import xmp_samples
from tests.hardening.fuzzers import Effort, Report, try_inputs
from tests.hardening.fuzzers.decoding import check_reason
from tests.hardening.hostile_metadata import jpeg_with_xmp, png_with_text
from tests.hardening.mutations import mutated
from tests.hardening.samples import photographs, xmp_packet

MAX_CPU_SECONDS = 20


def check(data: bytes) -> None:
    """Read the tags of a photograph, and of one that has the same bytes as its sidecar."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        for name, sidecar in (("a.jpg", b""), ("b.jpg", data)):
            path = Path(folder, name)
            path.write_bytes(photographs()["jpeg"] if sidecar else data)
            if sidecar:
                Path(folder, f"{name}.xmp").write_bytes(sidecar)
            _check_file(path)
    assert time.process_time() - start < MAX_CPU_SECONDS, "too slow"


def _check_file(path: Path) -> None:
    try:
        metadata = read_metadata(path)
        tags, problems = metadata.tags, metadata.problems
    except UnreadableImage as error:
        check_reason(str(error))
        return
    for problem in problems:
        check_reason(problem.reason)
    for tag, places in tags.items():
        assert tag
        assert "\0" not in tag
        assert len(tag) <= 2 * MAX_LENGTH  # composing can make a text longer
        assert places
        tag.encode("utf-8")
    capture_of(metadata.facts)


def fuzz(effort: Effort, seed: int, keep: Path) -> Report:
    """Changed photographs, and changed packets in photographs that are whole."""
    texts = (xmp_samples.LIGHTROOM, xmp_samples.DIGIKAM, xmp_samples.DARKTABLE)
    packets = [xmp_packet("sea", "größe", "a;b"), *(text.encode() for text in texts)]
    files = list(photographs().values())

    def make(rng: random.Random) -> bytes:
        kind = rng.randrange(4)
        if kind == 0:
            return mutated(rng, files)
        packet = mutated(rng, packets)
        if kind == 1:
            return packet
        return jpeg_with_xmp(packet) if kind == 2 else png_with_text(zlib.compress(packet))

    return try_inputs("keywords", make, check, effort, seed, keep)
