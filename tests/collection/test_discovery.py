"""Photographs in folders as people have them: links, odd names, closed doors."""

import os
import sys
from pathlib import Path

import pytest
from PIL import features

from tagkin.collection import find_photographs
from tagkin.errors import InvalidInput
from tagkin.images import Failure
from tests.privileges import without_privileges


def touch(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def names(folder, **options):
    return [p.relative_to(folder).as_posix() for p in find_photographs(folder, **options)]


def test_folders_are_walked_in_the_order_that_a_person_expects(tmp_path):
    touch(tmp_path, "img10.jpg", "IMG9.JPG", "img2.jpeg", "b/z.png", "B2/a.tif", "a.webp")
    touch(tmp_path, "b/10/x.gif", "b/9/x.bmp", "Äpfel.jpe", "straße.tiff", "img02.jpg")
    assert names(tmp_path) == [
        "a.webp",
        "b/9/x.bmp",
        "b/10/x.gif",
        "b/z.png",
        "B2/a.tif",
        "img2.jpeg",
        "img02.jpg",
        "IMG9.JPG",
        "img10.jpg",
        "straße.tiff",
        "Äpfel.jpe",
    ]


def test_only_photographs_and_nothing_hidden(tmp_path):
    touch(tmp_path, "a.jpg", "a.txt", "a.jpg.xmp", "a", "film.mp4", "x.pdf", ".hidden.jpg", "jpg")
    touch(tmp_path, ".git/a.jpg", "@eaDir/a.jpg", "__MACOSX/a.jpg", "Thumbs.db", "._a.jpg")
    touch(tmp_path, "$RECYCLE.BIN/a.jpg", "deep/@eaDir/a.jpg", "deep/.thumbnails/a.png")
    (tmp_path / "folder.jpg").mkdir()
    touch(tmp_path, "folder.jpg/b.png")
    assert names(tmp_path) == ["a.jpg", "folder.jpg/b.png"]


def test_suffixes_that_browsers_and_cameras_give(tmp_path):
    touch(tmp_path, "a.JFIF", "b.mpo", "c.apng", "d.HIF")
    assert names(tmp_path) == ["a.JFIF", "b.mpo", "c.apng", "d.HIF"]


def test_jpeg_xl_is_named(tmp_path):
    touch(tmp_path, "a.JXL", "b.psd", "c.jp2")
    skipped: list[Failure] = []
    photographs = find_photographs(tmp_path, on_skipped=skipped.append)
    assert [path.name for path in photographs] == ["b.psd", "c.jp2"]
    assert [(Path(failure.file).name, failure.reason) for failure in skipped] == [
        ("a.JXL", "JPEG XL, which tagkin does not read; export it as JPEG or TIFF")
    ]


def test_avif_is_taken_where_it_can_be_decoded_and_heif_always(tmp_path, monkeypatch):
    touch(tmp_path, "a.HEIC", "b.heif", "c.avif")
    monkeypatch.setattr(features, "check", lambda feature: False)
    skipped = []
    photographs = find_photographs(tmp_path, on_skipped=skipped.append)
    assert [path.name for path in photographs] == ["a.HEIC", "b.heif"]
    assert [Path(failure.file).name for failure in skipped] == ["c.avif"]
    assert "pip install 'pillow>=" in skipped[0].reason
    monkeypatch.setitem(features.modules, "avif", ("PIL._avif", None))
    monkeypatch.setattr(features, "check", lambda feature: feature == "avif")
    assert names(tmp_path) == ["a.HEIC", "b.heif", "c.avif"]


def test_raw_files_are_photographs_unless_one_lies_beside_them(tmp_path):
    touch(tmp_path, "a.JPG", "A.cr2", "a.dng", "b.NEF", "deep/a.arw", "c.heic.dng", "a.jpg.xmp")
    pairs = []
    expected = ["a.JPG", "b.NEF", "c.heic.dng", "deep/a.arw"]

    def note(raw, beside):
        pairs.append((raw.name, beside.name))

    assert names(tmp_path, on_raw=note) == names(tmp_path) == expected
    assert sorted(pairs) == [("A.cr2", "a.JPG"), ("a.dng", "a.JPG")]


def test_paths_come_back_as_the_folder_is_given(tmp_path, monkeypatch):
    touch(tmp_path, "a/1.jpg", "a/2.jpg", "b.jpg", "@eaDir/c.jpg")
    monkeypatch.chdir(tmp_path)
    assert find_photographs(".") == [Path("a/1.jpg"), Path("a/2.jpg"), Path("b.jpg")]
    assert find_photographs("a/") == [Path("a/1.jpg"), Path("a/2.jpg")]
    assert find_photographs("a/../@eaDir") == [Path("a/../@eaDir/c.jpg")]


@pytest.mark.parametrize("place", ["gone", "a.jpg", "a.jpg/inside", "a\0b", 7, ["a.jpg"]])
def test_a_missing_place_is_named(place, tmp_path, monkeypatch):
    touch(tmp_path, "a.jpg")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        find_photographs(place)
    assert str(place).split("\0")[0] in str(caught.value)


def test_link_loops_end_and_a_folder_is_searched_once_by_its_own_name(tmp_path):
    touch(tmp_path, "real/deep/a.jpg", "real/b.jpg", "outside/c.jpg")
    top = tmp_path / "top"
    touch(top, "z/a.jpg")
    (top / "z" / "loop").symlink_to(top, target_is_directory=True)
    (top / "a link to z").symlink_to(top / "z", target_is_directory=True)
    (top / "one").symlink_to(tmp_path / "real", target_is_directory=True)
    (top / "two").symlink_to(tmp_path / "real", target_is_directory=True)
    (top / "self").symlink_to(top / "self")
    (top / "file.jpg").symlink_to(tmp_path / "outside" / "c.jpg")
    assert names(top) == ["file.jpg", "one/b.jpg", "one/deep/a.jpg", "z/a.jpg"]


def test_what_is_skipped_is_said(tmp_path):
    touch(tmp_path, "a.jpg")
    (tmp_path / "dead.jpg").symlink_to(tmp_path / "gone")
    (tmp_path / "self.jpg").symlink_to(tmp_path / "self.jpg")
    os.mkfifo(tmp_path / "pipe.jpg")
    skipped = []
    assert names(tmp_path, on_skipped=skipped.append) == ["a.jpg"]
    assert names(tmp_path) == ["a.jpg"]
    assert sorted(skipped, key=lambda f: f.file) == [
        Failure(str(tmp_path / "dead.jpg"), "a link to a file that is not there"),
        Failure(str(tmp_path / "pipe.jpg"), "not a regular file"),
        Failure(str(tmp_path / "self.jpg"), "a link that leads back to itself"),
    ]


def test_a_closed_folder_does_not_stop_the_walk(open_folder):
    touch(open_folder, "a/1.jpg", "closed/2.jpg", "z/3.jpg")
    (open_folder / "closed").chmod(0)
    skipped = []
    with without_privileges():
        assert names(open_folder, on_skipped=skipped.append) == ["a/1.jpg", "z/3.jpg"]
        with pytest.raises(InvalidInput, match="permission denied"):
            find_photographs(open_folder / "closed")
    closed = str(open_folder / "closed")
    assert skipped == [Failure(closed, "folder not searched: permission denied")]


@pytest.mark.skipif(
    sys.platform in ("win32", "darwin"), reason="file names are Unicode on this system"
)
def test_names_that_are_not_text_survive(tmp_path):
    raw = os.fsencode(tmp_path)
    for name in (b"\xff\xfe.jpg", "日本 🐕.jpg".encode(), b"new\nline.jpg", b"e\xcc\x81.jpg"):
        with open(raw + b"/" + name, "wb") as file:
            file.write(b"x")
    photographs = find_photographs(tmp_path)
    assert sorted(os.fsencode(p.name) for p in photographs) == sorted(os.listdir(raw))
    assert all(p.read_bytes() == b"x" for p in photographs)
    assert find_photographs(raw)[0].exists()


def test_deep_folders(tmp_path):
    deep = tmp_path.joinpath(*["d"] * 300)
    deep.mkdir(parents=True)
    touch(deep, "a.jpg")
    assert find_photographs(tmp_path) == [deep / "a.jpg"]
