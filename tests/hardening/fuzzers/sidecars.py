"""Sidecars that are nearly right: tags go in and out again, or the file stays as it is."""

import random
import time
from pathlib import Path

from lxml import etree

from tagkin.collection.sidecars import Provenance, tags_of, with_tags, without_tags
from tagkin.collection.sidecars.tag_fields import has_tag
from tagkin.errors import SidecarError
from tests.collection.sidecars.forms import PROGRAMS
from tests.collection.sidecars.test_editing_at_random import sidecars
from tests.hardening.fuzzers import Effort, Report, together, try_inputs, try_structured
from tests.hardening.fuzzers.decoding import check_reason
from tests.hardening.mutations import mutated

_TAGS = ["harbour", "place|by the sea", 'a "quoted" & <b>']
_RUN = Provenance("7", {"harbour": 0.9})
MAX_CPU_SECONDS = 20


def check(data: bytes) -> None:
    """Add tags and take them out, if it can be parsed; everything else is lxml's to judge."""
    start = time.process_time()
    try:
        had = tags_of(data)
        after, added = with_tags(data, _TAGS, _RUN)
    except SidecarError as error:
        check_reason(str(error))
        return
    has = tags_of(after)
    assert all(has_tag(has, tag) for tag in [*had, *_TAGS]), "a tag is lost"
    etree.fromstring(after, etree.XMLParser(resolve_entities=False, no_network=True))
    assert with_tags(after, _TAGS, _RUN) == (after, ()), "a second time adds something"
    back = without_tags(after, added, _RUN.mark)
    assert not set(_TAGS) & set(tags_of(back)) - set(had), "a tag stays"
    assert time.process_time() - start < MAX_CPU_SECONDS, "too slow"


def fuzz(effort: Effort, seed: int, keep: Path) -> Report:
    """Changed sidecars of programs by half of the effort, made ones by the other."""
    samples = [data for data in PROGRAMS.values() if data]

    def make(rng: random.Random) -> bytes:
        return mutated(rng, samples)

    return together(
        "sidecars",
        try_inputs("sidecars", make, check, effort.half(), seed, keep, ".xmp"),
        try_structured("sidecars", sidecars(), check, effort.half(), seed, keep, ".xmp"),
    )
