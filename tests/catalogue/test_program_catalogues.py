"""Scans that read the catalogue of another program besides keywords."""

import sqlite3
from contextlib import closing

import pytest

from tagkin.errors import InvalidInput
from tests.collection.apple_library import make_library
from tests.collection.program_catalogues import change, make_digikam

from .photographs import check_invariants, found_tags


def test_tags_of_digikam_say_where_they_come_from(catalogue, folder, rescan):
    database = folder.root / "digikam4.db"
    tagged = {"a.jpg": ["place/beach", "holiday"], "2024/d.jpg": ["animal/dog"]}
    make_digikam(database, tagged, "volumeid:?path=/somewhere/else")
    folder.age(database)
    assert sorted(catalogue.scan("digikam4.db").retagged) == ["2024/d.jpg", "a.jpg"]
    assert found_tags(catalogue)["a.jpg"] == {
        "beach": [["beach", "a.jpg.xmp"]],
        "sea": [["sea", "a.jpg.xmp"]],
        "holiday": [["holiday", "digikam4.db"]],
        "place|beach": [["place|beach", "digikam4.db"]],
    }
    (tag,) = catalogue.explain("2024/d.jpg").tags
    assert (tag.tag, tag.said[0].text) == ("animal|dog", "is in digikam4.db")
    check_invariants(catalogue)
    assert not rescan().retagged  # an unchanged file is not read
    with closing(sqlite3.connect(database)) as program:  # as long as it runs, changes are in a log
        program.execute("PRAGMA journal_mode = WAL")
        program.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        folder.age(database)
        rescan()
        status = database.stat()
        program.execute("DELETE FROM ImageTags WHERE imageid = 2")
        program.commit()
        assert database.stat() == status
        assert rescan().retagged == ["2024/d.jpg"]
    assert "2024/d.jpg" not in found_tags(catalogue)
    catalogue.scan("embedded")
    assert set(found_tags(catalogue)["a.jpg"]) == {"beach", "sea"}
    check_invariants(catalogue)


def test_keywords_of_apple_photos_say_where_they_come_from(catalogue, folder, rescan):
    pytest.importorskip("osxphotos")
    library = folder.root / "My.photoslibrary"
    make_library(library, {f"{folder.root}/2024/d.jpg": ["dog"]})
    database = library / "database/Photos.sqlite"
    folder.age(database)
    assert catalogue.scan("My.photoslibrary").retagged == ["2024/d.jpg"]
    (tag,) = catalogue.explain("2024/d.jpg").tags
    place = "My.photoslibrary/database/Photos.sqlite"
    assert (tag.tag, tag.said[0].text) == ("dog", f"is in {place}")
    check_invariants(catalogue)
    assert not rescan().retagged
    change(database, "UPDATE ZKEYWORD SET ZTITLE = 'cat'")
    assert rescan().retagged == ["2024/d.jpg"]
    assert found_tags(catalogue)["2024/d.jpg"] == {"cat": [["cat", place]]}
    check_invariants(catalogue)


def test_a_folder_that_is_not_a_library_of_apple_photos(catalogue, folder):
    (folder.root / "My.photoslibrary").mkdir()
    with pytest.raises(InvalidInput, match=r"database.Photos\.sqlite cannot be read: No such file"):
        catalogue.scan("My.photoslibrary")


def test_a_device_in_place_of_a_catalogue_is_named(catalogue, folder):
    (folder.root.parent / "digikam4.db").symlink_to("/dev/zero")
    with pytest.raises(InvalidInput, match=r"digikam4\.db cannot be read: it is no file"):
        catalogue.scan(str(folder.root.parent / "digikam4.db"))
