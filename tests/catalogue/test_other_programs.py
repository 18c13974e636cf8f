"""Programs that write different lists of tags, and tagkin among them.

A person adds, removes and renames tags in one program after the other, in any case. An oracle
keeps the tags that the person wants. After each scan the catalogue has exactly these: nothing that
was removed comes back, and nothing is lost. After `write --align` every program shows them.
"""

import os
import random
import shutil
from pathlib import Path

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Catalogue, Filters, open_for_scan
from tagkin.collection.sidecars import ExifTool
from tests.catalogue import programs
from tests.catalogue.photographs import check_invariants, files, found_tags, keep_decisions
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.images.synthetic import picture, saved

pytestmark = needs_exiftool
TAGS = ("sea", "sun", "animal|dog", "animal|cat", "toy|dog", "music|AC/DC", "a|b|c")
BESIDE = (programs.Immich, programs.Darktable, programs.Lightroom, programs.DigiKam)
INSIDE = (programs.Immich, programs.Darktable, programs.LightroomInside, programs.DigiKamInside)


def spelled(tags) -> set[str]:
    """Tags without their case, and with / for |: digiKam cannot tell music|AC/DC from AC|DC."""
    return {tag.replace("|", "/").casefold() for tag in tags}


class Story:
    """A photograph that a person tags in several programs."""

    def __init__(self, catalogue: Catalogue, exiftool: ExifTool, kinds, seed: int):
        self.catalogue, self.random = catalogue, random.Random(seed)
        self.photograph = catalogue.root / "a.jpg"
        self.programs = [kind(exiftool, self.photograph) for kind in kinds]
        self.wanted: set[str] = set()
        self.rejected: set[str] = set()  # in tagkin, where a person's no holds
        self.steps: list[tuple] = []

    @property
    def tags(self) -> set[str]:
        """The tags by the catalogue, without rejected ones."""
        content = self.catalogue.photographs.content_of("a.jpg")
        (photo,) = [p for p in self.catalogue.photographs.with_tags() if p.content == content]
        return spelled(photo.tags)

    def act(self, program: programs.Program) -> None:
        """Change what a program shows, as a person does."""
        shown = program.shown()
        known = spelled(shown) | self.rejected
        missing = [tag for tag in TAGS if spelled([tag]).isdisjoint(known)]
        what = self.random.choice(["add", "remove", "rename", "add", "respell"])
        old = self.random.choice(sorted(shown)) if shown and what != "add" else None
        new = self.random.choice(missing) if missing and what != "remove" else None
        new = self.random.choice((str, str, str.upper, str.title))(new) if new else None
        if what == "respell":
            new = old.swapcase() if old and spelled([old]) <= self.wanted else old
        # a new list without any old tag looks as if its program had never read them
        if old == new or (shown == {old} and new and not program.has_lists()):
            return
        self.steps.append((type(program).__name__, old, new))
        after = (shown - {old}) | ({new} if new else set())
        before = files(self.catalogue.root)
        program.save(after)
        if files(self.catalogue.root) == before:
            return  # no program makes a list without tags
        if what != "respell":
            self.wanted -= spelled([old] if old else ())
            self.wanted |= spelled([new] if new else ())

    def act_in_tagkin(self) -> None:
        """Accept or reject a tag, and write."""
        tag = self.random.choice(TAGS)
        is_accepted = spelled([tag]).isdisjoint(self.wanted)
        names = [tag]
        if not is_accepted:  # as the catalogue spells it
            tags = found_tags(self.catalogue)["a.jpg"]
            names = [name for name in tags if spelled([name]) == spelled([tag])]
        self.steps.append(("tagkin", None if is_accepted else tag, tag if is_accepted else None))
        filters = Filters(photographs=["a.jpg"], tags=names)
        self.catalogue.decisions.decide(ACCEPTED if is_accepted else REJECTED, filters)
        self.wanted -= spelled(names)
        self.rejected -= spelled(names)
        changed = self.wanted if is_accepted else self.rejected
        changed |= spelled(names)

    def check(self) -> None:
        self.catalogue.scan()
        keep_decisions(self.catalogue)
        assert self.tags == self.wanted, self.steps
        check_invariants(self.catalogue)


@pytest.fixture
def exiftool():
    with ExifTool() as opened:
        yield opened


def tell(tmp_path: Path, exiftool: ExifTool, kinds, seed: int) -> Story:
    root = tmp_path / f"{seed}"
    root.mkdir()
    (root / "a.jpg").write_bytes(saved(picture(), "JPEG"))
    catalogue = open_for_scan(root, tmp_path / f"{seed}.sqlite")
    story = Story(catalogue, exiftool, kinds, seed)
    story.check()
    return story


SEEDS = range(1, 1 + int(os.environ.get("TAGKIN_STORIES", "56")))
WAYS = pytest.mark.parametrize("kinds", [BESIDE, INSIDE], ids=["beside", "inside"])


@WAYS
def test_all_programs_converge(kinds, tmp_path, exiftool):
    """tagkin brings the lists in step after each program."""
    check_that_all_converge(tell(tmp_path, exiftool, kinds, 0), 4)


@WAYS
@pytest.mark.parametrize("seed", SEEDS)
def test_more_stories(kinds, seed, tmp_path, exiftool):
    check_that_all_converge(tell(tmp_path, exiftool, kinds, seed), 12)


def check_that_all_converge(story: Story, n_steps: int) -> None:
    embed = any(getattr(program, "is_inside", False) for program in story.programs)
    for _ in range(n_steps):
        if story.random.random() < 0.2:
            story.act_in_tagkin()
        else:
            story.act(story.random.choice(story.programs))
        story.check()
        before = files(story.catalogue.root)
        written = story.catalogue.write(align=True, remove=True, embed=embed)
        assert written.failures == [], (written.failures, story.steps)
        if written.run is not None and story.random.random() < 0.3:
            undone = story.catalogue.undo(written.run)
            assert undone.failures == []
            assert files(story.catalogue.root) == before, story.steps
            story.check()
            story.catalogue.write(align=True, remove=True, embed=embed)
        for program in story.programs:
            assert spelled(program.shown()) == story.wanted, (type(program), story.steps)
        story.check()
        for backup in story.catalogue.root.glob("*_original*"):
            backup.unlink()
    story.catalogue.close()


@pytest.mark.parametrize("seed", SEEDS)
def test_more_scans_alone(seed, tmp_path, exiftool):
    """tagkin writes nothing, so programs show different tags; it knows what was removed.

    A program may write over a list that it does not read. Then the tags of that list are gone.
    """
    story = tell(tmp_path, exiftool, BESIDE, seed)
    for _ in range(12):
        program = story.random.choice(story.programs)
        story.act(program)
        lists = program.lists(program.sidecar).values()
        story.wanted &= spelled(word for words in lists for word in words)
        story.check()
    story.catalogue.close()
    shutil.rmtree(story.catalogue.root)
