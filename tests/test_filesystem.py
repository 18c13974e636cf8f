"""Files take their place whole or not at all, also where Windows' rules hold."""

import errno
import os
import stat

import pytest

from tagkin.errors import StorageError
from tagkin.filesystem import (
    LinkFound,
    atomic_write,
    check_parent,
    is_litter,
    is_scratch,
    keep_backup,
    open_without_links,
    put_back,
    remove_file,
    replace_file,
    sync,
    write_whole,
    write_without_links,
)

LONG = f"{'写' * 80}{'x' * 8}.xmp"  # 252 bytes of the 255 that a name may have


@pytest.fixture(params=["this system", "windows"])
def system(request, monkeypatch):
    """This system as it is, and with what Windows refuses refused."""
    if request.param == "windows":
        refuse_as_windows_does(monkeypatch)
    return request.param


def refuse_as_windows_does(monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="Windows has no fcntl and refuses this itself")
    real = {name: getattr(os, name) for name in ("fsync", "rename", "replace")}

    def fsync(number):
        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        real["fsync"](number)

    def rename(source, target):
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, "File exists", str(source), 183, str(target))
        real["rename"](source, target)

    def replace(source, target):
        if os.path.isdir(target):
            raise PermissionError(errno.EACCES, "Access is denied", str(source), 5, str(target))
        real["replace"](source, target)

    for substitute in (fsync, rename, replace):
        monkeypatch.setattr(os, substitute.__name__, substitute)


def folder_with(path, **files):
    path.mkdir()
    for name, text in files.items():
        (path / name).write_text(text)
    return path


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_a_file_takes_its_place_whole(system, tmp_path):
    path = tmp_path / "page.html"
    for data in (b"first", b"second"):
        write_whole(path, data)
        assert path.read_bytes() == data
    with atomic_write(path) as scratch:
        scratch.write_bytes(b"third")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"third"
    (tmp_path / "partial").write_bytes(b"fourth")
    replace_file(tmp_path / "partial", path)
    assert path.read_bytes() == b"fourth"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def write_half(path, fail):
    with atomic_write(path) as scratch:
        scratch.write_bytes(b"half")
        fail()


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_no_other(step, system, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "page.html"
    write_whole(path, b"old")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    with pytest.raises(OSError, match="No space left"):
        write_half(path, full)
    assert contents(tmp_path) == {"page.html": "old"}


def test_the_place_is_asked_for_at_the_last_moment(system, tmp_path):
    path, asked = tmp_path / "page.html", []

    def check():
        (scratch,) = [p for p in tmp_path.iterdir() if is_scratch(p.name, ".html")]
        asked.append((scratch.read_bytes(), path.exists()))
        if len(asked) > 1:
            raise StorageError("it is taken")

    write_whole(path, b"first", check)
    with pytest.raises(StorageError, match="taken"):
        write_whole(path, b"second", check)
    assert asked == [(b"first", False), (b"second", True)]
    assert contents(tmp_path) == {"page.html": "first"}


def test_names_are_flushed_to_the_disk(system, tmp_path, monkeypatch):
    flushed, real = [], os.fsync

    def fsync(number):
        flushed.append(os.fstat(number).st_ino)
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(tmp_path / "file", b"1")
    assert flushed == [(tmp_path / "file").stat().st_ino, tmp_path.stat().st_ino]
    remove_file(tmp_path / "file")
    assert flushed[2:] == [tmp_path.stat().st_ino]
    assert contents(tmp_path) == {}


def test_a_disk_that_fails_at_the_end_is_said(tmp_path, monkeypatch):
    real = os.fsync

    def fsync(number):
        if os.fstat(number).st_ino == tmp_path.stat().st_ino:
            raise OSError(errno.EIO, "Input/output error")
        real(number)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output"):
        write_whole(tmp_path / "file", b"1")
    assert contents(tmp_path) == {"file": "1"}


def test_a_name_that_fits_is_written_however_long(tmp_path):
    seen = []
    with atomic_write(tmp_path / LONG) as scratch:
        scratch.write_bytes(b"new")
        seen.append(scratch.name)
    assert [path.name for path in tmp_path.iterdir()] == [LONG]
    assert is_scratch(seen[0], ".xmp")
    assert len(os.fsencode(seen[0])) <= 255


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = tmp_path / "tags.csv"
    write_whole(path, b"1")
    path.chmod(0o640)
    write_whole(path, b"2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_is_flushed_through_a_handle_that_may_write(system, tmp_path):
    (tmp_path / "file").write_text("kept")
    sync(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"


def test_where_nothing_can_be_written_is_known_before(tmp_path):
    (tmp_path / "file").write_text("")
    check_parent(tmp_path / "new" / "deep" / "model")
    assert not (tmp_path / "new").exists()
    with pytest.raises(NotADirectoryError) as caught:
        check_parent(tmp_path / "file" / "deep" / "model")
    assert caught.value.filename == str(tmp_path / "file")


def test_litter_is_what_systems_leave():
    assert all(map(is_litter, (".DS_Store", "Thumbs.db", "desktop.ini", "Desktop.ini", "._a.json")))
    assert not any(map(is_litter, ("model.safetensors", ".hidden", "README.md", "_", ".")))


# --- links -------------------------------------------------------------------------------


@pytest.fixture
def swapped(tmp_path):
    """A folder, another one outside with the same names, and a swap of the first for a link."""
    inside = folder_with(tmp_path / "inside", file="mine", copy="kept")
    outside = folder_with(tmp_path / "outside", file="theirs", copy="theirs, too")

    def swap():
        inside.rename(tmp_path / "aside")
        inside.symlink_to(outside, target_is_directory=True)

    return inside, outside, swap


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: write_without_links(folder / "file", b"new"),
        lambda folder: write_without_links(folder / "fresh", b"new"),
        lambda folder: replace_file(folder / "copy", folder / "file", follow_links=False),
        lambda folder: keep_backup(folder / "file", folder / "second"),
        lambda folder: put_back(folder / "copy", folder / "file"),
        lambda folder: remove_file(folder / "file"),
    ],
)
def test_a_folder_that_became_a_link_is_not_followed(change, swapped):
    inside, outside, swap = swapped
    before = contents(outside)
    swap()
    with pytest.raises(LinkFound, match="a link leads to its folder"):
        change(inside)
    assert contents(outside) == before


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="this system cannot keep a folder open")
def test_a_folder_that_becomes_a_link_at_the_last_moment_is_not_followed(swapped, tmp_path):
    inside, outside, swap = swapped
    before = contents(outside)
    write_without_links(inside / "file", b"new", swap)
    assert contents(outside) == before
    assert (tmp_path / "aside" / "file").read_bytes() == b"new"


def test_a_new_file_that_became_a_link_gives_nobody_elses_file_its_permissions(tmp_path):
    folder = folder_with(tmp_path / "inside", file="mine")
    victim = tmp_path / "victim"
    victim.write_text("private")
    victim.chmod(0o600)
    (folder / "file").chmod(0o666)
    (folder / "scratch").symlink_to(victim)
    with pytest.raises(OSError):  # noqa: PT011 (each system has its own)
        replace_file(folder / "scratch", folder / "file", follow_links=False)
    assert stat.S_IMODE(victim.stat().st_mode) == 0o600
    assert (folder / "file").read_text() == "mine"


def test_a_file_is_opened_without_links_or_not_at_all(tmp_path):
    folder = folder_with(tmp_path / "inside", file="mine")
    (folder / "link").symlink_to(folder / "file")
    (tmp_path / "way").symlink_to(folder, target_is_directory=True)
    with open(folder / "file", "rb", opener=open_without_links) as file:
        assert file.read() == b"mine"
    for path in (folder / "link", tmp_path / "way" / "file"):
        with pytest.raises(LinkFound):
            open_without_links(path, os.O_RDONLY)
