"""Tags inside photographs, through exiftool: the photograph stays beside, and undo puts it back."""

import errno
import os
from contextlib import ExitStack
from unicodedata import normalize

import numpy as np
import pytest
from PIL import Image

from tagkin.collection import read_keywords
from tagkin.collection.sidecars import ExifTool, check_exiftool, restore_embedded
from tagkin.errors import InvalidInput, SidecarError
from tagkin.images import content_digest
from tests.collection import xmp_samples as samples
from tests.collection.sidecars.wrapped_exiftool import embed, needs_exiftool
from tests.forking import needs_fork
from tests.images.synthetic import picture, psd, saved
from tests.killing import counted, kill_everywhere, killing_at
from tests.privileges import needs_root

TAGS = ["nature|tree", "a=b <c> #d", "海", "شاطئ", "🐕"]


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "-img é.jpg"
    path.write_bytes(samples.with_xmp(saved(picture(), "JPEG"), samples.subjects("dog", "2024")))
    return path


@pytest.fixture(scope="module")
def exiftool():
    """One process for all tests here: no command is to see anything of those before."""
    with ExifTool() as tool:
        yield tool


def names(folder):
    return sorted(entry.name for entry in folder.iterdir())


@needs_exiftool
@pytest.mark.parametrize(
    "name", ["100%.jpg", "50 %f %d %%.jpg", "#1 $x {y} `z`.jpg", f"{'写' * 78}.jpg"]
)
def test_whatever_a_photograph_is_called(name, tmp_path, exiftool):
    folder = tmp_path / "100%d"
    folder.mkdir()
    path = folder / name
    path.write_bytes(saved(picture(), "JPEG"))
    before = path.read_bytes()
    written = embed(path, ["sea"], exiftool)
    assert read_keywords(path) == ["sea"]
    assert names(folder) == sorted([name, f"{name}_original"])
    assert restore_embedded(written, exiftool).how == "restored"
    assert (names(folder), path.read_bytes(), names(tmp_path)) == ([name], before, ["100%d"])


@needs_exiftool
def test_a_copy_of_somebody_elses_stays_where_a_write_fails(photo, exiftool, monkeypatch):
    """What exiftool kept before is theirs, also where it holds the same as the photograph."""
    copy = photo.with_name(f"{photo.name}_original")
    copy.write_bytes(photo.read_bytes())

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(SidecarError, match="It is unchanged"):
        embed(photo, ["sea"], exiftool)
    assert names(photo.parent) == [photo.name, copy.name]


@needs_exiftool
@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "PSD", "JP2"])
def test_written_and_taken_back(form, tmp_path, exiftool):
    path = tmp_path / f"img.{form.lower()}"
    is_psd, name = form == "PSD", form.replace("JP2", "JPEG2000")
    path.write_bytes(psd(picture()) if is_psd else saved(picture(), name))
    before, status = path.read_bytes(), path.stat()
    written = embed(path, TAGS, exiftool, known=["inside"])
    assert set(read_keywords(path)) == {*TAGS, "inside"}
    assert np.array_equal(np.asarray(Image.open(path)), np.asarray(Image.open(written.backup)))
    assert names(tmp_path) == [path.name, f"{path.name}_original"]
    assert written.backup.read_bytes() == before
    assert written.after_digest == content_digest(path.read_bytes())
    assert restore_embedded(written, exiftool).how == "restored"
    assert names(tmp_path) == [path.name]
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert restore_embedded(written, exiftool).how == "already"


@needs_exiftool
def test_tags_that_are_there_stay_and_are_not_written_twice(photo, exiftool):
    written = embed(photo, ["sea"], exiftool)
    assert read_keywords(photo) == ["dog", "2024", "sea"]
    again = embed(photo, ["sea", "dog"], exiftool)
    assert again.added == ()
    assert names(photo.parent) == [photo.name, written.backup.name]
    second = embed(photo, ["a|b"], exiftool)
    assert second.backup.name == f"{photo.name}_original2"
    assert restore_embedded(second, exiftool).how == "restored"
    assert restore_embedded(written, exiftool).how == "restored"
    assert read_keywords(photo) == ["dog", "2024"]
    assert names(photo.parent) == [photo.name]


@needs_exiftool
def test_where_somebody_wrote_since_only_our_tags_go(photo, exiftool):
    written = embed(photo, ["sea", "a|b"], exiftool)
    embed(photo, ["theirs"], exiftool)
    assert restore_embedded(written, exiftool).how == "untagged"
    assert set(read_keywords(photo)) == {"dog", "2024", "theirs"}
    assert restore_embedded(written, exiftool).how == "kept"
    photo.unlink()
    assert restore_embedded(written, exiftool).how == "gone"


@needs_exiftool
@needs_root
def test_root_leaves_a_photograph_to_its_owner(photo, exiftool):
    os.chown(photo, 1234, 2345)
    photo.chmod(0o640)
    written = embed(photo, ["sea"], exiftool)
    for path in (photo, written.backup):
        status = path.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 2345, 0o640)
    restore_embedded(written, exiftool)
    assert (photo.stat().st_uid, photo.stat().st_gid) == (1234, 2345)


@needs_exiftool
def test_a_name_that_one_tag_loses_and_another_gets_stays(tmp_path, exiftool):
    path = tmp_path / "img.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    embed(path, ["toy|dog"], exiftool)
    embed(path, ["animal|dog"], exiftool, remove=["toy|dog"])
    assert read_keywords(path) == ["animal|dog"]


@needs_exiftool
def test_what_cannot_be_written_stays(tmp_path, exiftool):
    path = tmp_path / "img.jpg"
    path.write_bytes(b"junk")
    with pytest.raises(
        SidecarError,
        match=r"img.jpg: exiftool could not use it \(Error: [!-~ ]+\)\. It is unchanged",
    ):
        embed(path, ["sea"], exiftool)
    with pytest.raises(SidecarError, match="there is no such file"):
        embed(tmp_path / "gone.jpg", ["sea"], exiftool)
    assert names(tmp_path) == ["img.jpg"]
    assert path.read_bytes() == b"junk"


def test_without_exiftool(photo, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InvalidInput, match="exiftool, which is not installed"):
        check_exiftool()
    with pytest.raises(InvalidInput, match="not installed"):
        embed(photo, ["sea"], ExifTool())


class _Ended(Exception):
    """Every step was tried."""


@needs_exiftool
@needs_fork
def test_killed_while_the_files_change_their_names(photo, exiftool):
    """From the moment on when exiftool's file is ready; before it, nothing is touched."""
    before, planned, n_kills = photo.read_bytes(), [], 0
    children = ExitStack()

    def put(contents):
        for entry in photo.parent.iterdir():
            entry.unlink()
        for name, data in contents.items():
            photo.with_name(name).write_bytes(data)

    def check_write(change):
        if photo.read_bytes() != before:
            assert "sea" in read_keywords(photo)
            assert change.backup.read_bytes() == before

    def try_every_step(change):
        """Each child goes on from here, and is killed one step later than the one before."""
        nonlocal n_kills
        planned.append(change)
        ready = {entry.name: entry.read_bytes() for entry in photo.parent.iterdir()}
        while (child := os.fork()) != 0:
            _, status = os.waitpid(child, 0)
            if not os.WIFSIGNALED(status):
                raise _Ended
            check_write(change)
            put(ready)
            n_kills += 1
        children.enter_context(counted(killing_at(n_kills)))  # never left

    parent = os.getpid()
    try:
        embed(photo, ["sea"], exiftool, record=try_every_step)
        os._exit(0)  # a child that had fewer steps
    except _Ended:
        assert n_kills >= 6
    finally:
        if os.getpid() != parent:
            os._exit(1)
    (written,), after = planned, photo.read_bytes()
    assert "sea" in read_keywords(photo)

    def undo():
        restore_embedded(written, exiftool)

    def check_undo(n):
        undo()
        assert photo.read_bytes() == before
        assert names(photo.parent) == [photo.name]

    states = {photo.name: after, written.backup.name: before}
    assert kill_everywhere(undo, lambda: put(states), check_undo) >= 3


@needs_exiftool
def test_decomposed_letters_stay_and_can_be_removed(tmp_path, exiftool):
    cafe = normalize("NFD", "café")
    path = tmp_path / "img.jpg"
    path.write_bytes(samples.with_xmp(saved(picture(), "JPEG"), samples.subjects(cafe)))
    written = embed(path, ["AC/DC"], exiftool, known=[cafe])
    assert [value for _, value in written.added].count(cafe) == 2  # in the lists that are made
    assert normalize("NFC", cafe) not in path.read_bytes().decode("utf-8", "replace")
    assert read_keywords(path) == ["café", "AC/DC"]
    removed = embed(path, [], exiftool, remove=["café"])
    assert removed.removed
    assert read_keywords(path) == ["AC/DC"]
    path.write_bytes(path.read_bytes() + b"\n")  # somebody wrote since
    assert restore_embedded(removed, exiftool).how == "untagged"
    assert set(read_keywords(path)) == {"AC/DC", "café"}
    assert normalize("NFC", cafe) not in path.read_bytes().decode("utf-8", "replace")
    assert restore_embedded(written, exiftool).how == "untagged"
    assert read_keywords(path) == ["café"]
