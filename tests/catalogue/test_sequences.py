"""Random sequences of what people do with files between the commands of tagkin.

Photographs never change unless tags are embedded, no value of a person is ever removed unless that
person rejected it later and said ``--remove``, and every file that an undo calls restored has bytes
that it had before.
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

from tagkin.annotator import Annotator
from tagkin.catalogue import ACCEPTED, REJECTED, Decided, Filters, open_for_scan
from tagkin.catalogue.source import FileWrite
from tagkin.collection import read_metadata
from tagkin.collection.sidecars import ExifTool, tags_of
from tagkin.errors import InvalidInput, NotFound
from tests.catalogue.photographs import check_invariants, sidecar_text
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.images.synthetic import picture, saved

TAGS = ("sea", "a|b")
OWN = ("own 1", "own 3")
LEARNED = ("hill", "wood")  # on photographs that stay as they are, so that there is enough to learn
names = st.integers(0, 4).map("{}.jpg".format)
few = st.integers(0, 1).map("{}.jpg".format)  # so that steps meet at the same photographs
tags = st.sampled_from(TAGS)
UNDOABLE = ("accept", "reject", "finish", "write", "undo")
CHANGES = ("shift", "swap", "move", "copy", "save", "delete")


@dataclass
class _File:
    """A file, whatever its name is by now."""

    mine: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The values that a person put into it, when, and for which picture."""
    removed: dict[int, dict[str, tuple[int, int]]] = field(default_factory=dict)
    """Such values that runs removed, because the person had rejected them."""
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
    picture: int = 0
    """The picture that a photograph shows; copies show the same."""


@dataclass
class _Answer:
    """A decision on a tag of a picture."""

    run: int
    when: int
    picture: int
    tag: str
    verdict: int
    undone_by: int | None = None


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
        self.answers: list[_Answer] = []
        self.edited: dict[int, int] = {}  # pictures that were saved over others, and these
        self.n_values = 0
        for n in range(4):
            self._put(f"{n}.jpg")
            if n % 2:
                self._put_sidecar(f"{n}.jpg", f"own {n}", "sea")
        (self.root / "others").mkdir()
        for n in range(6):
            self._put(f"others/{n}.jpg")
            self._put_sidecar(f"others/{n}.jpg", LEARNED[n % 2])
        self.catalogue = open_for_scan(self.root, self.top / "catalogue.sqlite")
        self.scan()

    def close(self) -> None:
        check_invariants(self.catalogue)
        self.catalogue.close()
        shutil.rmtree(self.top)

    # --- files -------------------------------------------------------------------------------

    def _put(self, name: str) -> None:
        self.n_values += 1
        (self.root / name).write_bytes(saved(picture(12 + self.n_values), "JPEG"))
        if name in self.files:  # suggestions may find that it shows the same
            self.edited[self.n_values] = self.files[name].picture
        self.files[name] = _File(picture=self.n_values)

    def _put_sidecar(self, photograph: str, *tags: str) -> None:
        (self.root / f"{photograph}.xmp").write_text(sidecar_text(list(tags)))
        self._file(f"{photograph}.xmp").mine |= dict.fromkeys(tags, (0, self.n_values))

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

    def rearrange(self, way: str, first: str, second: str, with_sidecars: bool) -> None:
        """Shift all names, swap two, move, copy or save over another, or delete."""
        there = [name for name in (first, second) if (self.root / name).exists()]
        pairs = {}
        if way == "shift":
            pairs = {name: f"{int(name[0]) + 1}.jpg" for name in self._photographs()}
        elif way == "swap" and first != second and len(there) == 2:
            pairs = {first: second, second: first}
        elif way in ("move", "copy") and first in there and first != second:
            for end in ("", ".xmp") if with_sidecars else ("",):
                self._delete(f"{second}{end}")
            pairs = {first: second}
        elif way == "save":
            self._put(first)
        elif way == "delete" and len(self._photographs()) > 2:
            self._delete(f"{first}.xmp")
            if with_sidecars:
                self._delete(first)
        pairs = self._with_sidecars(pairs) if with_sidecars else pairs
        if way == "copy":
            for old, new in pairs.items():
                shutil.copy2(self.root / old, self.root / new)
                known = self._file(old)
                self.files[new] = _File(dict(known.mine), picture=known.picture)
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
        known.mine[value] = self.n_values, self.files[name].picture
        known.is_ours = False

    # --- commands ----------------------------------------------------------------------------

    def scan(self) -> None:
        self.catalogue.scan()
        self.scanned = {name: known.picture for name, known in self.files.items()}

    def train(self) -> None:
        """Learn from the tags and suggest tags, which also keeps decisions on edited pictures."""
        self.catalogue.model.refit(Annotator(names=False))

    def decide(self, name: str | None, tag: str, verdict: int) -> None:
        """Accept or reject a tag for a photograph, or wherever it is suggested."""
        filters = Filters(photographs=[] if name is None else [name], tags=[tag])
        with contextlib.suppress(NotFound, InvalidInput):
            decided = self.catalogue.decisions.decide(verdict, filters)
            self._note_answers(decided, verdict)

    def finish(self, name: str, tag: str | None) -> None:
        """Finish a photograph, or a tag on it."""
        filters = Filters(photographs=[name], tags=[] if tag is None else [tag])
        with contextlib.suppress(NotFound, InvalidInput):
            self._note_answers(self.catalogue.completeness.finish(filters), REJECTED)

    def _note_answers(self, decided: Decided, verdict: int) -> None:
        self.n_values += 1
        self.answers += [
            _Answer(decided.run or 0, self.n_values, self.scanned[answer.path], answer.tag, verdict)
            for answer in decided.each
        ]

    def _rejected_at(self, picture: int | None, tag: str) -> int:
        """When a person rejected a tag of a picture, or of one that it was saved over."""
        pictures = set()
        while picture is not None:
            pictures.add(picture)
            picture = self.edited.get(picture)
        answers = [
            answer
            for answer in self.answers
            if answer.picture in pictures and answer.tag == tag and answer.undone_by is None
        ]
        return answers[-1].when if answers and answers[-1].verdict == REJECTED else -1

    def write(self, tag: str | None, remove: bool, scan_first: bool) -> None:
        """Write what is accepted, and the tag into all photographs; remove what is rejected."""
        if scan_first:
            self.scan()
        for name in self._photographs() if tag is not None else ():
            self.decide(name, tag or "", ACCEPTED)
        before = {name: (self._read(name), self._values(name)) for name in self._all_names()}
        result = self.catalogue.write(embed=self.embed, remove=remove)
        for file in result.files:
            if file.state == "written":
                known, run = self._file(file.file), result.run or 0
                content, values = before.get(file.file, (None, set()))
                if not known.is_ours:
                    known.first, known.is_ours = content, True
                    known.writes.clear()
                known.writes.add(run)
                known.states |= {content, self._read(file.file)}
                self._note_removals(file, values - self._values(file.file), run)

    def _note_removals(self, file: FileWrite, values: set[str], run: int) -> None:
        """Check that a person rejected what a run removed."""
        known = self._file(file.file)
        for value in values:
            assert value in file.removed, (file, value, "was not named")
            picture = self.files[file.photograph].picture
            put, put_for = known.mine.get(value, (0, picture))
            rejected = self._rejected_at(picture, value)
            assert rejected > (put if put_for == picture else 0), (file, value, "was not rejected")
            if value in known.mine:
                known.removed.setdefault(run, {})[value] = known.mine.pop(value)

    def undo(self, which: int, scan_first: bool) -> None:
        """Undo one of the last runs, whatever it did; an undo of decisions can be undone, too."""
        if scan_first:
            self.scan()
        runs = [run.id for run in self.catalogue.runs.history() if run.what in UNDOABLE]
        if not runs:
            return
        run = runs[min(which, len(runs)) - 1]
        for name, known in self.files.items():
            known.states.add(self._read(name))
        try:
            result = self.catalogue.undo(run)
        except InvalidInput:
            return
        for answer in self.answers:
            if answer.undone_by == run:
                answer.undone_by = None
            elif answer.run == run and answer.undone_by is None:
                answer.undone_by = result.run
        for file in result.files:
            known = self._file(file.file)
            known.writes.discard(run)
            if file.how in ("restored", "removed", "already"):
                now = self._read(file.file)
                assert now in known.states | {None}, (file, "has never been so")
                if known.is_ours and not known.writes:
                    assert now == known.first, (file, "is not as before")
            if file.how != "gone":
                values = known.removed.pop(run, {})
                again = {value for removed in known.removed.values() for value in removed}
                known.mine |= {v: when for v, when in values.items() if v not in again}

    # --- what holds --------------------------------------------------------------------------

    def _all_names(self) -> list[str]:
        paths = self.root.rglob("*.*")
        ends = (".jpg", ".xmp")
        return [str(p.relative_to(self.root)) for p in paths if p.suffix in ends]

    def _values(self, name: str) -> set[str]:
        path = self.root / name
        if not path.exists():
            return set()
        if path.suffix == ".xmp":
            return set(tags_of(path.read_bytes()))
        places = read_metadata(str(path)).tags
        return {tag for tag, words in places.items() if str(path) in words}

    def no_value_of_a_person_is_removed(self) -> None:
        for name, known in self.files.items():
            lost = known.mine.keys() - self._values(name)
            assert not lost, (name, lost)

    def photographs_are_unchanged(self) -> None:
        if self.embed:
            return
        for name in (name for name in self._all_names() if name.endswith(".jpg")):
            stamp = (self.root / name).read_bytes(), os.stat(self.root / name).st_mtime_ns
            known = self._file(name)
            known.original = known.original or stamp
            assert stamp == known.original


class EmbeddedSequences(Sequences):
    """The same, with tags inside the photographs."""

    embed = True


flags = st.booleans()
answered = st.sampled_from([*TAGS, *OWN, *LEARNED])
verdicts = st.sampled_from([ACCEPTED, REJECTED, REJECTED])
STEPS = st.one_of(
    st.tuples(st.just("write"), st.none() | tags, flags, flags),
    st.tuples(st.just("rearrange"), st.sampled_from(CHANGES), names, names, flags),
    st.tuples(st.just("undo"), st.integers(1, 8), flags),
    st.tuples(st.just("edit"), names | few, st.none() | tags, flags),
    st.tuples(st.just("decide"), names | few, answered, verdicts),
    st.tuples(st.just("decide"), st.none() | few, tags, verdicts),
    st.tuples(st.just("finish"), few, st.none() | tags),
    st.tuples(st.just("scan")),
    st.tuples(st.just("train")),
)


@needs_exiftool
@pytest.mark.parametrize("kind", [Sequences, EmbeddedSequences])
def test_sequences(kind, tmp_path, shared_cache, monkeypatch):
    monkeypatch.setenv("TAGKIN_CACHE", str(shared_cache))

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
