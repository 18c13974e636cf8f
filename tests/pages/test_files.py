"""Pages are written whole or not at all."""

import threading

import pytest

from tagkin.errors import StorageError
from tagkin.pages.report import write_page
from tests.killing import failing_at, steps_of


def test_folders_are_made_and_files_replaced(tmp_path):
    path = tmp_path / "new" / "folder" / "page.html"
    assert write_page(path, b"one") == path
    write_page(path, b"two")
    assert path.read_bytes() == b"two"
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]


def test_a_full_disk_leaves_what_was_there(tmp_path):
    path = tmp_path / "page.html"
    steps = steps_of(lambda: write_page(path, b"before"))
    for n in range(steps.index("fsync") + 1):
        with (
            failing_at(n),
            pytest.raises(StorageError, match=r"page\.html: No space left.*file is unchanged"),
        ):
            write_page(path, b"after")
        assert path.read_bytes() == b"before"
        assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("name", ["", "folder", "file/page.html", "zero\x00byte", "x" * 300])
def test_impossible_places_are_refused(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="Could not write"):
        write_page(tmp_path / name, b"page")
    assert (tmp_path / "file").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


def test_two_writers_at_once_leave_one_whole_page(tmp_path):
    path = tmp_path / "page.html"
    pages = [bytes([65 + k]) * 200_000 for k in range(4)]
    threads = [threading.Thread(target=write_page, args=(path, page)) for page in pages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() in pages
    assert len(list(tmp_path.iterdir())) == 1
