"""Sidecars as files: written whole or not at all, and the photographs are never touched."""

import errno
import os
import sys

import pytest

from tagkin.collection.sidecars import (
    Provenance,
    SidecarNaming,
    add_tags,
    remove_scratch,
    restore,
    tags_of,
)
from tagkin.collection.sidecars import sidecar_files as module
from tagkin.errors import InvalidInput, SidecarError
from tagkin.images import content_digest
from tests.collection.sidecars.forms import PROGRAMS
from tests.collection.xmp_samples import subjects
from tests.killing import failing_at, steps_of
from tests.privileges import needs_root, without_privileges

RUN = Provenance("12", {"sea": 0.9})
BEFORE = PROGRAMS["lightroom"]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "img.jpg.xmp").write_bytes(BEFORE)
    return tmp_path / "img.jpg.xmp"


def contents(folder):
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


# --- the first promise ---


def test_photographs_are_never_opened_for_writing_and_stay(tmp_path):
    photograph = tmp_path / "img.jpg"
    photograph.write_bytes(b"pixels")
    os.utime(photograph, ns=(1_000, 2_000))
    before, opened = photograph.stat(), []
    armed = True

    def watch(event, arguments):
        if armed and event == "open" and str(tmp_path) in str(arguments[0]):
            writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
            opened.append((os.path.basename(arguments[0]), bool(arguments[2] & writes)))

    sys.addaudithook(watch)  # it cannot be taken off: `armed` is what ends it
    written = add_tags(SidecarNaming().sidecars(photograph)[0].path, ["sea"], RUN)
    restore(written)
    armed = False
    assert any(writes for _, writes in opened)
    assert not [name for name, _ in opened if name == photograph.name]
    assert photograph.read_bytes() == b"pixels"
    after = photograph.stat()
    assert (after.st_mtime_ns, after.st_ctime_ns, after.st_ino, after.st_mode) == (
        before.st_mtime_ns,
        before.st_ctime_ns,
        before.st_ino,
        before.st_mode,
    )


# --- written, merged, refused ---


def test_what_is_returned_is_what_stands_there(path):
    written = add_tags(path, ["sea"], RUN)
    assert written.before == BEFORE
    assert written.after_digest == content_digest(path.read_bytes())
    assert tags_of(path.read_bytes()) == ["animal|dog", "Lake & shore", "sea"]
    again = add_tags(path, ["sea"], RUN)
    assert (again.added, again.after_digest) == ((), written.after_digest)


def test_a_new_one(tmp_path):
    path = tmp_path / "img.jpg.xmp"
    assert add_tags(path, [], RUN).after_digest == ""
    assert not path.exists()
    written = add_tags(path, ["sea"], RUN, known=["dog"])
    assert written.before is None
    assert tags_of(path.read_bytes()) == ["dog", "sea"]


def test_one_that_another_program_changed_keeps_these_changes(path):
    by_another = BEFORE.replace(
        b"<rdf:li>dog</rdf:li>", b"<rdf:li>dog</rdf:li><rdf:li>cat</rdf:li>"
    )
    path.write_bytes(by_another)
    written = add_tags(path, ["sea"], RUN)
    assert written.before == by_another
    assert {"cat", "sea", "animal|dog"} <= set(tags_of(path.read_bytes()))


def test_one_that_changes_while_it_is_written_is_read_again(path):
    changes = []

    def meanwhile(change):
        changes.append(change)
        if len(changes) == 1:
            path.write_bytes(subjects("theirs").encode())

    written = add_tags(path, ["sea"], RUN, record=meanwhile)
    assert [change.before for change in changes] == [BEFORE, subjects("theirs").encode()]
    assert written.after_digest == changes[-1].after_digest
    assert tags_of(path.read_bytes()) == ["theirs", "sea"]
    assert list(contents(path.parent)) == [path.name]


def test_one_that_never_stands_still_is_left_alone(path):
    count = iter(range(100))

    def meanwhile(change):
        path.write_bytes(subjects(f"theirs{next(count)}").encode())

    with pytest.raises(SidecarError, match="another program keeps writing to it"):
        add_tags(path, ["sea"], RUN, record=meanwhile)
    assert tags_of(path.read_bytes()) == ["theirs4"]


def test_what_is_recorded_is_recorded_before(path):
    def refuse(change):
        assert path.read_bytes() == change.before == BEFORE
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        add_tags(path, ["sea"], RUN, record=refuse)
    assert contents(path.parent) == {path.name: BEFORE}


@pytest.mark.parametrize("data", [b"", b"junk", BEFORE[:-30], BEFORE + b"\0", b"\xff" + BEFORE])
def test_one_that_cannot_be_parsed_stays_byte_for_byte(data, path):
    path.write_bytes(data)
    before = path.stat()
    with pytest.raises(SidecarError, match=r"img\.jpg\.xmp: .* It is unchanged"):
        add_tags(path, ["sea"], RUN)
    assert contents(path.parent) == {path.name: data}
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_one_that_is_too_large(path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    with pytest.raises(SidecarError, match="above the cap of 100 bytes"):
        add_tags(path, ["sea"], RUN)


def test_what_is_no_file_is_left_alone(tmp_path):
    (tmp_path / "a.xmp").mkdir()
    (tmp_path / "b.xmp").symlink_to(tmp_path / "b.xmp")
    for name, reason in (("a.xmp", "a folder, not a file"), ("b.xmp", "leads")):
        with pytest.raises(SidecarError, match=reason):
            add_tags(tmp_path / name, ["sea"], RUN)
    with pytest.raises(SidecarError, match="there is no such file"):
        add_tags(tmp_path / "gone" / "img.xmp", ["sea"], RUN)
    with pytest.raises(InvalidInput, match="is empty"):
        add_tags(tmp_path / "c.xmp", [""], RUN)


def test_permissions_stay(path):
    path.chmod(0o640)
    add_tags(path, ["sea"], RUN)
    assert "sea" in tags_of(path.read_bytes())
    assert path.stat().st_mode & 0o777 == 0o640


def test_no_link_is_followed(tmp_path, path):
    before = path.read_bytes()
    (tmp_path / "link.xmp").symlink_to(path.name)
    (tmp_path / "folder").symlink_to(tmp_path, target_is_directory=True)
    for name in ("link.xmp", f"folder/{path.name}", "folder/new.xmp"):
        with pytest.raises(SidecarError, match="a link"):
            add_tags(tmp_path / name, ["sea"], RUN)
    assert path.read_bytes() == before
    assert not (tmp_path / "new.xmp").exists()


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(tmp_path):
    """When everything is ready and the file is about to be written."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "img.xmp").write_bytes(BEFORE)

    def swap(change):
        inside.rename(tmp_path / "aside")
        inside.symlink_to(outside, target_is_directory=True)

    with pytest.raises(SidecarError, match="a link leads to its folder"):
        add_tags(inside / "img.xmp", ["sea"], RUN, record=swap)
    for folder in (outside, tmp_path / "aside"):
        assert contents(folder) == {"img.xmp": BEFORE}


# --- full disks, closed folders ---


def test_a_full_disk_at_every_step(path):
    n_steps = len(steps_of(lambda: add_tags(path, ["sea"], RUN)))
    path.write_bytes(BEFORE)
    n_left_alone = 0
    for n in range(n_steps):
        with failing_at(n, errno.ENOSPC):
            try:
                add_tags(path, ["sea"], RUN)
            except SidecarError as error:
                assert "no space left on device" in str(error)  # noqa: PT017 (some succeed)
                n_left_alone += path.read_bytes() == BEFORE
        assert list(contents(path.parent)) == [path.name]
        assert path.read_bytes() == BEFORE or "sea" in tags_of(path.read_bytes())
        add_tags(path, ["sea"], RUN)  # when there is space again
        assert "sea" in tags_of(path.read_bytes())
        path.write_bytes(BEFORE)
    assert n_left_alone >= 5


def test_a_closed_folder_and_a_protected_file(open_folder):
    closed = open_folder / "closed"
    closed.mkdir()
    (closed / "img.xmp").write_bytes(BEFORE)
    (open_folder / "img.xmp").write_bytes(BEFORE)
    (open_folder / "img.xmp").chmod(0o444)
    closed.chmod(0o555)
    with without_privileges():
        for path in (closed / "new.xmp", closed / "img.xmp", open_folder / "img.xmp"):
            with pytest.raises(SidecarError, match=r"permission denied|protected"):
                add_tags(path, ["sea"], RUN)
    closed.chmod(0o755)
    assert contents(closed) == {"img.xmp": BEFORE}
    assert (open_folder / "img.xmp").read_bytes() == BEFORE


def test_one_that_vanishes_is_made_anew(path):
    """What stood there is in nobody's hands but those who removed it."""

    def meanwhile(change):
        path.unlink(missing_ok=True)

    written = add_tags(path, ["sea"], RUN, record=meanwhile)
    assert written.before is None
    assert tags_of(path.read_bytes()) == ["sea"]


def test_what_killed_writes_left_is_removed(tmp_path):
    names = [f".{name}-0123456789abcdef" for name in ("img.jpg.xmp", "img.xmp")]
    names.append(".img.tagkin-0123456789abcdef.jpg")
    others = ["img.xmp", ".img.xmp", ".img.jpg-0123456789abcdef", "img.xmp-0123456789abcdef"]
    others.append(".img-0123456789abcdef.jpg")
    for name in names + others:
        (tmp_path / name).write_bytes(b"")
    assert remove_scratch(tmp_path) == 3
    assert sorted(contents(tmp_path)) == sorted(others)
    assert remove_scratch(tmp_path / "gone") == 0


# --- whose file it is ---


@needs_root
def test_root_leaves_a_sidecar_to_its_owner(path):
    os.chown(path, 1234, 2345)
    path.chmod(0o640)
    written = add_tags(path, ["sea"], RUN)
    for _ in range(2):
        status = path.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 2345, 0o640)
        restore(written)


@needs_root
def test_a_new_sidecar_that_root_writes_belongs_to_the_owner_of_the_photograph(tmp_path):
    photograph = tmp_path / "img.jpg"
    photograph.write_bytes(b"pixels")
    os.chown(photograph, 1234, 2345)
    path = SidecarNaming().sidecars(photograph)[0].path
    add_tags(path, ["sea"], RUN, photograph=photograph)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


def test_extended_attributes_stay(path):
    """File managers keep tags and ratings there."""
    try:
        os.setxattr(path, "user.xdg.tags", b"mine")
    except (AttributeError, OSError):
        pytest.skip("the file system has no extended attributes")
    add_tags(path, ["sea"], RUN)
    assert os.getxattr(path, "user.xdg.tags") == b"mine"
