"""Scans: what is in the folder, moved, renamed, copied, edited or deleted since."""

import json
import os
import shutil
import time

import pytest

from tagkin.catalogue import open_for_scan
from tagkin.collection import read_metadata
from tagkin.errors import InvalidInput
from tests.privileges import without_privileges

from .conftest import Folder
from .photographs import check_invariants, found_tags


def paths(catalogue) -> list[str]:
    return [
        p for (p,) in catalogue.database.rows("SELECT path FROM photographs WHERE gone IS NULL")
    ]


def test_a_scan_knows_photographs_and_where_their_tags_stand(catalogue):
    assert sorted(paths(catalogue)) == ["2024/c.jpg", "2024/d.jpg", "a.jpg", "b.jpg"]
    assert found_tags(catalogue) == {
        "2024/c.jpg": {"dog": [["dog", "2024/c.jpg.xmp"]]},
        "a.jpg": {"beach": [["beach", "a.jpg.xmp"]], "sea": [["sea", "a.jpg.xmp"]]},
        "b.jpg": {"beach": [["beach", "b.jpg.xmp"]]},
    }
    check_invariants(catalogue)


def test_an_unchanged_folder_is_not_read(catalogue, folder, rescan):
    """Whoever read the files would find that they are others: it is told by size and time alone."""
    before = found_tags(catalogue)
    for path in folder.root.rglob("*.*"):
        status, text = path.stat(), path.read_bytes()
        other = text.replace(b"sea", b"tea") if path.suffix == ".xmp" else b"\xff\xd8?\xff\xd9"
        assert len(other) == len(text)
        path.write_bytes(other)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    again = rescan()
    assert again.n_unchanged == again.n_photographs == 4
    assert found_tags(catalogue) == before
    for path in folder.root.rglob("*.*"):
        folder.age(path)
    assert rescan().n_unchanged == 0
    assert "tea" in found_tags(catalogue)["a.jpg"]


def test_a_file_of_a_moment_ago_is_read_again(catalogue, folder, rescan):
    path = folder.root / "a.jpg"
    path.write_bytes(b"\xff\xd8other\xff\xd9")
    soon = time.time() + 1000  # however long the scan waits
    os.utime(path, (soon, soon))
    assert rescan().edited == ["a.jpg"]
    assert rescan().n_unchanged == 3  # it may have changed again within the clock's tick


def test_moved_renamed_copied_deleted(catalogue, folder, rescan):
    before = dict(catalogue.database.rows("SELECT path, content FROM photographs"))
    (folder.root / "2023").mkdir()
    for name in ("a.jpg", "a.jpg.xmp"):
        (folder.root / name).rename(folder.root / "2023" / name)
    shutil.copy2(folder.root / "b.jpg", folder.root / "copy.jpg")
    (folder.root / "2024/c.jpg").unlink()
    scan = rescan()
    assert scan.moved == [("a.jpg", "2023/a.jpg")]
    assert scan.copied == ["copy.jpg"]
    assert scan.gone == ["2024/c.jpg"]
    after = dict(
        catalogue.database.rows("SELECT path, content FROM photographs WHERE gone IS NULL")
    )
    assert after == {
        "2023/a.jpg": before["a.jpg"],
        "2024/d.jpg": before["2024/d.jpg"],
        "b.jpg": before["b.jpg"],
        "copy.jpg": before["b.jpg"],
    }
    assert found_tags(catalogue)["2023/a.jpg"]["sea"] == [["sea", "2023/a.jpg.xmp"]]
    check_invariants(catalogue)


def test_what_comes_back_is_known(catalogue, folder, rescan):
    number = catalogue.database.value("SELECT content FROM photographs WHERE path = '2024/c.jpg'")
    moved = folder.root.parent / "away"
    (folder.root / "2024").rename(moved)
    assert sorted(rescan().gone) == ["2024/c.jpg", "2024/d.jpg"]
    moved.rename(folder.root / "2024")
    rescan()
    assert (
        catalogue.database.value("SELECT content FROM photographs WHERE path = '2024/c.jpg'")
        == number
    )
    assert found_tags(catalogue)["2024/c.jpg"] == {"dog": [["dog", "2024/c.jpg.xmp"]]}
    check_invariants(catalogue)


def test_names_that_were_swapped(catalogue, folder, rescan):
    contents = dict(catalogue.database.rows("SELECT path, content FROM photographs"))
    a, b, aside = (folder.root / name for name in ("a.jpg", "b.jpg", "aside"))
    a.rename(aside), b.rename(a), aside.rename(b)
    scan = rescan()
    assert not scan.edited
    after = dict(catalogue.database.rows("SELECT path, content FROM photographs"))
    assert (after["a.jpg"], after["b.jpg"]) == (contents["b.jpg"], contents["a.jpg"])


def test_other_tags_in_a_sidecar(catalogue, folder, rescan):
    folder.tag("b.jpg", ["harbour", "harbor"])
    (folder.root / "2024/c.jpg.xmp").unlink()
    assert sorted(rescan().retagged) == ["2024/c.jpg", "b.jpg"]
    tags = found_tags(catalogue)
    assert set(tags["b.jpg"]) == {"harbour", "harbor"}
    assert "2024/c.jpg" not in tags
    check_invariants(catalogue)


def test_a_tag_file_is_read_besides_keywords_and_again_when_it_changes(catalogue, folder, rescan):
    table = folder.root / "metadata.jsonl"

    def write(tags):
        rows = [{"file_name": name, "tags": tags_of_file} for name, tags_of_file in tags.items()]
        table.write_text("".join(json.dumps(row) + "\n" for row in rows))
        folder.age(table)

    write({"a.jpg": ["beach", "holiday"], "nowhere.jpg": ["x"]})
    scan = rescan()
    assert scan.absent == ["nowhere.jpg"]
    assert scan.retagged == ["a.jpg"]
    places = found_tags(catalogue)["a.jpg"]
    assert places["beach"] == [["beach", "a.jpg.xmp"], ["beach", "metadata.jsonl"]]
    assert places["holiday"] == [["holiday", "metadata.jsonl"]]
    folder.tag("a.jpg", ["sea"])  # what the tag file says stays
    rescan()
    assert set(found_tags(catalogue)["a.jpg"]) == {"beach", "holiday", "sea"}
    write({"b.jpg": ["late"]})
    assert sorted(rescan().retagged) == ["a.jpg", "b.jpg"]
    assert set(found_tags(catalogue)["a.jpg"]) == {"sea"}
    catalogue.scan("embedded")
    assert set(found_tags(catalogue)["b.jpg"]) == {"beach"}
    check_invariants(catalogue)


@pytest.fixture
def closed(open_folder, monkeypatch):
    """A collection that an ordinary user scans."""
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(open_folder / "data"))
    folder = Folder(open_folder / "photos")
    with without_privileges():
        folder.put("a.jpg", "a", ["beach"])
        folder.put("2024/c.jpg", "c", ["dog"])
        with open_for_scan(folder.root) as catalogue:
            catalogue.scan()
            yield folder, catalogue


def test_a_folder_that_cannot_be_searched_tells_nothing(closed):
    folder, catalogue = closed
    hidden = folder.root / "2024"
    hidden.chmod(0)
    scan = catalogue.scan()
    assert not scan.gone
    assert [failure.file for failure in scan.failures] == [str(hidden)]
    assert len(paths(catalogue)) == 2


def test_a_photograph_that_cannot_be_read_keeps_what_is_known(closed):
    folder, catalogue = closed
    path = folder.root / "a.jpg"
    path.write_bytes(b"other")
    path.chmod(0)
    scan = catalogue.scan()
    assert [failure.reason for failure in scan.failures] == ["permission denied"]
    assert found_tags(catalogue)["a.jpg"]
    assert not scan.edited


def test_one_bad_sidecar_is_that_files_failure(catalogue, folder, rescan):
    sidecar = folder.root / "b.jpg.xmp"
    sidecar.write_text("<x:xmpmeta")
    folder.age(sidecar)
    scan = rescan()
    assert [failure.file for failure in scan.failures] == [str(sidecar)]
    assert catalogue.database.value("SELECT problem FROM photographs WHERE path = 'b.jpg'")


def test_names_that_are_not_text(catalogue, folder, rescan):
    name = os.fsdecode(b"na\xefve.jpg")
    try:
        folder.put(name, "latin", ["caf\u00e9"])
    except OSError:
        pytest.skip("file names must be UTF-8 on this file system")
    assert rescan().added == [name]
    assert rescan().n_unchanged == 5
    assert catalogue.absolute(name) == str(folder.root / name)
    assert found_tags(catalogue)[name]["caf\u00e9"] == [["caf\u00e9", f"{name}.xmp"]]


def test_an_empty_folder_is_no_collection(catalogue, folder, rescan):
    shutil.rmtree(folder.root)
    folder.root.mkdir()
    with pytest.raises(InvalidInput, match="is the drive connected"):
        rescan()
    assert len(paths(catalogue)) == 4


# --- one folder, one catalogue -----------------------------------------------------------


def test_a_folder_keeps_its_catalogue_also_when_it_moves(catalogue, folder, tmp_path):
    path = catalogue.path
    catalogue.close()
    elsewhere = tmp_path / "moved"
    folder.root.rename(elsewhere)
    with open_for_scan(elsewhere) as again:
        assert again.path == path
        scan = again.scan()
        assert (scan.n_unchanged, again.root) == (4, elsewhere)


def test_another_folder_has_another_catalogue(catalogue, folder, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(folder.root, other)
    with open_for_scan(other) as another:
        assert another.path != catalogue.path
    with pytest.raises(InvalidInput, match="Name another file"):
        open_for_scan(folder.root, another.path)
    with pytest.raises(InvalidInput, match=r"is in .*, which has a catalogue"):
        open_for_scan(folder.root / "2024")


def test_nothing_is_written_into_the_folder(catalogue, folder, data_folder):
    names = {path.suffix for path in folder.root.rglob("*") if path.is_file()}
    assert names == {".jpg", ".xmp"}
    assert catalogue.path.is_relative_to(data_folder)


def test_where_keywords_stand(folder):
    metadata = read_metadata(folder.root / "a.jpg")
    tags, problems = metadata.tags, metadata.problems
    sidecar = str(folder.root / "a.jpg.xmp")
    assert tags == {"beach": {sidecar: "beach"}, "sea": {sidecar: "sea"}}
    assert not problems
