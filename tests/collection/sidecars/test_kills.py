"""A write and its undo killed at every step: nothing half-written, nothing lost."""

import pytest

from tagkin.collection.sidecars import Provenance, add_tags, remove_scratch, restore, with_tags
from tests.collection.sidecars.forms import PROGRAMS
from tests.forking import needs_fork
from tests.killing import kill_everywhere

pytestmark = needs_fork

RUN = Provenance("12", {"sea": 0.9})
TAGS = ["sea", "nature|tree"]
# How many kills there are at least in a write, its undo, and its undo after somebody else's write:
# opened, written, half written, flushed, renamed, the folder flushed ... 206 in all.
N_KILLS = {"none": 26} | dict.fromkeys(
    ("lightroom", "darktable", "digikam", "exiftool", "immich"), 36
)


def state(path):
    """What stands at a path. Beside it there is nothing but the remains of killed writes."""
    remove_scratch(path.parent)
    assert {entry.name for entry in path.parent.iterdir()} <= {path.name}
    return path.read_bytes() if path.exists() else None


def put(path, data):
    path.unlink(missing_ok=True)
    if data is not None:
        path.write_bytes(data)


@pytest.mark.parametrize("start", N_KILLS)
def test_killed_at_every_step(start, tmp_path, lean):
    assert lean(n_survived, start, tmp_path) >= N_KILLS[start]


def n_survived(start, tmp_path):
    """How many kills a write, its undo, and its undo after another's write have survived."""
    path, before = tmp_path / "img.jpg.xmp", PROGRAMS.get(start)
    put(path, before)
    written = add_tags(path, TAGS, RUN)
    after = path.read_bytes()
    by_another = with_tags(after, ["theirs"], Provenance("13"))[0]

    def write():
        add_tags(path, TAGS, RUN)

    def undo():
        restore(written)

    def finished(work, states):
        """A check that nothing is lost, and that a second time finishes the work."""

        def check(n):
            assert state(path) in states
            work()
            assert state(path) == states[-1]

        return check

    n = kill_everywhere(write, lambda: put(path, before), finished(write, [before, after]))
    n += kill_everywhere(undo, lambda: put(path, after), finished(undo, [after, before]))
    put(path, by_another)
    undo()
    states = [by_another, path.read_bytes()]
    n += kill_everywhere(undo, lambda: put(path, by_another), finished(undo, states))
    return n
