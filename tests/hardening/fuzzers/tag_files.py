"""Tag files that are nearly right: read, or refused with the line; what was read can be written."""

import csv
import io
import json
import random
import tempfile
from pathlib import Path

from hypothesis import strategies as st

from tagkin.collection import read_tags
from tagkin.errors import InvalidInput, StorageError
from tests.collection.tag_file_writer import write_tag_file
from tests.hardening.fuzzers import Effort, Report, together, try_inputs, try_structured
from tests.hardening.mutations import mutated

SAMPLES = [
    b"file_name,tags\na.jpg,sea;tree\nb.jpg,\n",
    b'file_name,tag\r\na.jpg,"sea, blue"\r\na.jpg,tree\r\n',
    b'\xef\xbb\xbffile_name,other,labels\n"a\nb.jpg",1,sea|tree\n',
    b'{"file_name": "a.jpg", "tags": ["sea", "tree"]}\n{"file_name": "b.jpg", "tags": null}\n',
    '{"file_name": "größe.jpg", "label": "\\ud83d\\ude00"}\n\n'.encode(),
]
_CELL = st.text("ab;|,\"'\n\r\t =+-@é海\ud800\x00\x1b\u202e", max_size=6)
_COLUMN = st.sampled_from(["file_name", "tags", "labels", "tag", "label", "Subject"])


def check(data: bytes) -> None:
    """In both formats: a table, which can be written and read again, or a sentence."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tags.csv", "tags.jsonl"):
            path = Path(folder, name)
            path.write_bytes(data)
            try:
                table = read_tags(path)
            except (InvalidInput, StorageError) as error:
                _check_sentence(str(error))
                continue
            is_separated = any(";" in tag for tags in table.tags for tag in tags)
            for again in ("again.jsonl",) if is_separated else ("again.csv", "again.jsonl"):
                try:
                    write_tag_file(Path(folder, again), table)
                except UnicodeEncodeError:  # half a pair in the name of a file
                    continue
                assert read_tags(Path(folder, again)) == table


def _check_sentence(text: str) -> None:
    assert text.rstrip().endswith((".", "…", ")")), text
    assert len(text) < 10_000


@st.composite
def tables(draw: st.DrawFn) -> bytes:
    """A file with any columns, and any cells in them."""
    columns = draw(st.lists(_COLUMN, min_size=1, max_size=4))
    rows = draw(st.lists(st.lists(_CELL, min_size=1, max_size=4), max_size=4))
    if draw(st.booleans()):
        text = io.StringIO(newline="")
        csv.writer(text).writerows([columns, *rows])
        return text.getvalue().encode("utf-8", "surrogatepass")
    values = st.one_of(_CELL, st.none(), st.lists(_CELL, max_size=3), st.integers(), st.booleans())
    lines = [json.dumps({column: draw(values) for column in columns}) for _ in rows]
    return "\n".join(lines).encode()


def fuzz(effort: Effort, seed: int, keep: Path) -> Report:
    """Changed bytes by half of the effort, made tables by the other."""

    def make(rng: random.Random) -> bytes:
        return mutated(rng, SAMPLES)

    return together(
        "tag_files",
        try_inputs("tag_files", make, check, effort.half(), seed, keep),
        try_structured("tag_files", tables(), check, effort.half(), seed, keep),
    )
