"""Writes taken back: every byte, or the tags alone where somebody else wrote since."""

import os

import pytest

from tagkin.collection.sidecars import Provenance, add_tags, provenance_of, restore, tags_of
from tagkin.errors import SidecarError
from tests.collection.sidecars.forms import PROGRAMS

RUN = Provenance("12")


def write(path, *tags, run=RUN):
    return add_tags(path, tags, run, known=["inside"])


@pytest.mark.parametrize("form", PROGRAMS)
def test_every_byte_is_back(form, tmp_path):
    path = tmp_path / "img.xmp"
    path.write_bytes(PROGRAMS[form])
    os.utime(path, ns=(10**18, 10**18 + 1_000))
    written = write(path, "sea", "nature|tree")
    assert path.read_bytes() != PROGRAMS[form]
    assert path.stat().st_mtime_ns > 10**18 + 1_000
    undone = restore(written)
    assert undone.how == "restored"
    assert path.read_bytes() == PROGRAMS[form]
    assert path.stat().st_mtime_ns == 10**18 + 1_000
    assert restore(written).how == "already"


def test_a_file_that_was_not_there_goes(tmp_path):
    written = write(tmp_path / "img.xmp", "sea")
    assert restore(written).how == "removed"
    assert list(tmp_path.iterdir()) == []
    assert restore(written).how == "already"


def test_runs_are_taken_back_one_after_the_other(tmp_path):
    path, states, writes = tmp_path / "img.xmp", [None], []
    for i, tag in enumerate(("sea", "dog", "a|b")):
        writes.append(write(path, tag, run=Provenance(str(i))))
        states.append(path.read_bytes())
    for written, state in zip(reversed(writes), reversed(states[:-1]), strict=True):
        assert restore(written).how == ("removed" if state is None else "restored")
        assert (path.read_bytes() if path.exists() else None) == state


def test_a_run_in_the_middle(tmp_path):
    path = tmp_path / "img.xmp"
    first = write(path, "sea", run=Provenance("1"))
    write(path, "dog", run=Provenance("2"))
    undone = restore(first)
    assert undone.how == "untagged"
    assert "somebody changed it since; only tagkin's own changes" in undone.said
    assert set(tags_of(path.read_bytes())) == {"inside", "dog"}
    assert [record.run for record in provenance_of(path.read_bytes())] == ["2"]


@pytest.mark.parametrize("form", PROGRAMS)
def test_where_somebody_wrote_since_only_our_tags_go(form, tmp_path):
    path = tmp_path / "img.xmp"
    path.write_bytes(PROGRAMS[form])
    written = write(path, "sea", "nature|tree")
    theirs = write(path, "theirs", run=Provenance("another"))
    undone = restore(written)
    assert undone.how == "untagged"
    left = {*tags_of(PROGRAMS[form]), "inside"}  # new lists got the tags of the photograph
    assert set(tags_of(path.read_bytes())) - {"inside"} == {*left, "theirs"} - {"inside"}
    assert restore(written).how == "kept"
    assert restore(theirs).how == "untagged"
    assert set(tags_of(path.read_bytes())) <= left


def test_where_somebody_removed_it(tmp_path):
    path = tmp_path / "img.xmp"
    path.write_bytes(PROGRAMS["lightroom"])
    written = write(path, "sea")
    path.unlink()
    assert restore(written).how == "gone"
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path):
    path, moved = tmp_path / "img.xmp", tmp_path / "moved.xmp"
    path.write_bytes(PROGRAMS["lightroom"])
    written = write(path, "sea")
    path.rename(moved)
    path.symlink_to(moved)
    after = moved.read_bytes()
    with pytest.raises(SidecarError, match="a link replaced the file"):
        restore(written)
    assert path.is_symlink()
    assert moved.read_bytes() == after


def test_where_somebody_broke_it(tmp_path):
    path = tmp_path / "img.xmp"
    written = write(path, "sea")
    path.write_bytes(b"broken")
    with pytest.raises(SidecarError, match="somebody changed it since, and it is not well-formed"):
        restore(written)
    assert path.read_bytes() == b"broken"


def test_where_it_cannot_be_written(tmp_path, monkeypatch):
    path = tmp_path / "img.xmp"
    written = write(path, "sea")
    data = path.read_bytes()

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.unlink", refuse)
    with pytest.raises(SidecarError, match="permission denied"):
        restore(written)
    assert path.read_bytes() == data
