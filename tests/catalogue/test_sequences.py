"""Random sequences of what people do with files between the commands of tagkin.

Photographs never change unless tags are embedded, no value of a person is ever removed, and every
file that an undo calls restored has bytes that it had before.
"""

import contextlib
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tagkin.catalogue import ACCEPTED, REJECTED, Filters, open_for_scan
from tagkin.collection import read_metadata
from tagkin.collection.sidecars import ExifTool, tags_of
from tagkin.errors import InvalidInput, NotFound
from tests.catalogue.photographs import check_invariants, sidecar_text
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.images.synthetic import picture, saved

TAGS = ("sea", "a|b")
names = st.integers(0, 4).map("{}.jpg".format)
tags = st.sampled_from(TAGS)
CHANGES = ("shift", "swap", "move", "copy", "save", "delete")


@dataclass
class _File:
    """A file, whatever its name is by now."""

    mine: set[str] = field(default_factory=set)
    """The values that a person put into it."""
    states: set[bytes | None] = field(default_factory=set)
    """Its contents so far; None if it was not there."""
    first: bytes | None = None
    """Its content before tagkin first wrote to it; only if `is_ours`."""
    writes: set[int] = field(default_factory=set)
    """The runs that wrote to it and were not undone."""
    is_ours: bool = False
    """Whether only tagkin changed it since."""
    original: tuple[bytes, int] | None = None
    """The content and time of a photograph."""


class Sequences:
    """Photographs with sidecars, a person and tagkin."""

    embed = False
    folder: Path
    exiftool: ExifTool

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(dir=self.folder))
        self.root = self.top / "photos"
        self.root.mkdir()
        self.files: dict[str, _File] = {}
        self.n_values = 0
        for n in range(4):
            self._put(f"{n}.jpg")
            if n % 2:
                (self.root / f"{n}.jpg.xmp").write_text(sidecar_text([f"own {n}", "sea"]))
                self._file(f"{n}.jpg.xmp").mine |= {f"own {n}", "sea"}
        self.catalogue = open_for_scan(self.root, self.top / "catalogue.sqlite")
        self.runs: list[int] = []
        self.catalogue.scan()

    def close(self) -> None:
        check_invariants(self.catalogue)
        self.catalogue.close()
        shutil.rmtree(self.top)

    # --- files -------------------------------------------------------------------------------

    def _put(self, name: str) -> None:
        self.n_values += 1
        (self.root / name).write_bytes(saved(picture(12 + self.n_values), "JPEG"))
        self.files[name] = _File()

    def _file(self, name: str) -> _File:
        return self.files.setdefault(name, _File())

    def _read(self, name: str) -> bytes | None:
        path = self.root / name
        return path.read_bytes() if path.exists() else None

    def _rename(self, pairs: dict[str, str]) -> None:
        """Rename files all at once, over what has the new names."""
        for old in pairs:
            (self.root / old).rename(self.root / f"{old}.away")
        moved = {new: self.files.pop(old, _File()) for old, new in pairs.items()}
        for old, new in pairs.items():
            (self.root / f"{old}.away").rename(self.root / new)
        self.files |= moved

    def _with_sidecars(self, pairs: dict[str, str]) -> dict[str, str]:
        sidecars = {f"{old}.xmp": f"{new}.xmp" for old, new in pairs.items()}
        there = {old: new for old, new in sidecars.items() if (self.root / old).exists()}
        return pairs | there

    def _photographs(self) -> list[str]:
        return sorted(path.name for path in self.root.glob("*.jpg"))

    # --- what a person does ------------------------------------------------------------------

    def rearrange(self, how: str, first: str, second: str, with_sidecars: bool) -> None:
        """Shift all names, swap two, move, copy or save over another, or delete."""
        there = [name for name in (first, second) if (self.root / name).exists()]
        pairs = {}
        if how == "shift":
            pairs = {name: f"{int(name[0]) + 1}.jpg" for name in self._photographs()}
        elif how == "swap" and first != second and len(there) == 2:
            pairs = {first: second, second: first}
        elif how in ("move", "copy") and first in there and first != second:
            for end in ("", ".xmp") if with_sidecars else ("",):
                self._delete(f"{second}{end}")
            pairs = {first: second}
        elif how == "save":
            self._put(first)
        elif how == "delete" and len(self._photographs()) > 2:
            self._delete(f"{first}.xmp")
            if with_sidecars:
                self._delete(first)
        pairs = self._with_sidecars(pairs) if with_sidecars else pairs
        if how == "copy":
            for old, new in pairs.items():
                shutil.copy2(self.root / old, self.root / new)
                self.files[new] = _File(set(self._file(old).mine))
        else:
            self._rename(pairs)

    def _delete(self, name: str) -> None:
        (self.root / name).unlink(missing_ok=True)
        self.files.pop(name, None)

    def edit(self, name: str, tag: str | None, inside: bool) -> None:
        """Add a keyword with exiftool, of a person's own or one of the tags."""
        if not (self.root / name).exists():
            return
        file = name if inside and self.embed else f"{name}.xmp"
        self.n_values += 1
        value = f"mine {self.n_values}" if tag is None or "|" in tag else tag
        if value in self._values(file):
            return
        path = str(self.root / file)
        self.exiftool.run(f"-XMP-dc:Subject+={value}", "-overwrite_original", path)
        known = self._file(file)
        known.mine.add(value)
        known.is_ours = False

    # --- commands ----------------------------------------------------------------------------

    def scan(self) -> None:
        self.catalogue.scan()

    def decide(self, name: str, tag: str, verdict: int | None) -> None:
        """Accept or reject a tag, or finish the photograph."""
        with contextlib.suppress(NotFound, InvalidInput):
            if verdict is None:
                self.catalogue.completeness.finish(Filters(photographs=[name]))
            else:
                self.catalogue.decisions.decide(verdict, Filters(photographs=[name], tags=[tag]))

    def write(self, tag: str, scan_first: bool) -> None:
        """Accept a tag for all photographs, and write what is accepted."""
        if scan_first:
            self.catalogue.scan()
        for name in self._photographs():
            self.decide(name, tag, ACCEPTED)
        before = {name: self._read(name) for name in self._all_names()}
        result = self.catalogue.write(embed=self.embed)
        for file in result.files:
            if file.state == "written":
                known = self._file(file.file)
                if not known.is_ours:
                    known.first, known.is_ours = before.get(file.file), True
                    known.writes.clear()
                known.writes.add(result.run or 0)
                known.states |= {before.get(file.file), self._read(file.file)}
        if result.run is not None and result.n_written:
            self.runs.append(result.run)

    def undo(self, which: int, scan_first: bool) -> None:
        """Undo one of the last runs that wrote."""
        if scan_first:
            self.catalogue.scan()
        if not self.runs:
            return
        run = self.runs[-min(which, len(self.runs))]
        for name, known in self.files.items():
            known.states.add(self._read(name))
        try:
            result = self.catalogue.undo(run)
        except InvalidInput:
            return
        for file in result.files:
            known = self._file(file.file)
            known.writes.discard(run)
            if file.how in ("restored", "removed", "already"):
                now = self._read(file.file)
                assert now in known.states | {None}, (file, "has never been so")
                if known.is_ours and not known.writes:
                    assert now == known.first, (file, "is not as before")

    # --- what holds --------------------------------------------------------------------------

    def _all_names(self) -> list[str]:
        return [path.name for path in self.root.iterdir() if path.suffix in (".jpg", ".xmp")]

    def _values(self, name: str) -> set[str]:
        path = self.root / name
        if not path.exists():
            return set()
        if path.suffix == ".xmp":
            return set(tags_of(path.read_bytes()))
        places = read_metadata(str(path), ()).tags
        return {tag for tag, words in places.items() if str(path) in words}

    def no_value_of_a_person_is_removed(self) -> None:
        for name, known in self.files.items():
            assert known.mine <= self._values(name), (name, known.mine - self._values(name))

    def photographs_are_unchanged(self) -> None:
        if self.embed:
            return
        for name in self._photographs():
            stamp = (self.root / name).read_bytes(), os.stat(self.root / name).st_mtime_ns
            known = self._file(name)
            known.original = known.original or stamp
            assert stamp == known.original


class EmbeddedSequences(Sequences):
    """The same, with tags inside the photographs."""

    embed = True


flags = st.booleans()
STEPS = st.one_of(
    st.tuples(st.just("write"), tags, flags),
    st.tuples(st.just("rearrange"), st.sampled_from(CHANGES), names, names, flags),
    st.tuples(st.just("undo"), st.integers(1, 4), flags),
    st.tuples(st.just("edit"), names, st.none() | tags, flags),
    st.tuples(st.just("decide"), names, tags, st.sampled_from([ACCEPTED, REJECTED, None])),
    st.tuples(st.just("scan")),
)


@needs_exiftool
@pytest.mark.parametrize("kind", [Sequences, EmbeddedSequences])
def test_sequences(kind, tmp_path):
    @settings(
        max_examples=int(os.environ.get("TAGKIN_SEQUENCES", "60")),
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(STEPS, min_size=8, max_size=20))
    def check(steps):
        sequence = kind()
        for name, *arguments in steps:
            getattr(sequence, name)(*arguments)
            sequence.no_value_of_a_person_is_removed()
            sequence.photographs_are_unchanged()
        sequence.close()

    kind.folder = tmp_path
    with ExifTool() as kind.exiftool:
        check()
