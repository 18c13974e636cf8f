"""Keywords in a library of Apple Photos, which osxphotos reads."""

import hashlib
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tagkin.collection import read_tags
from tagkin.errors import InvalidInput, MissingExtra, StorageError
from tests.journals import plant_journal

from .apple_library import make_library
from .matched import match_tags
from .program_catalogues import change

TAGGED = {"A/a.jpeg": ["dog", "AC|DC"], "B/b.jpeg": ["beach"], "C/c.jpeg": [], "D/d.jpeg": ["dog"]}


def put(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"\xff\xd8\xff\xd9")


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library with three of its photographs; D/d.jpeg is only in iCloud."""
    library = make_library(tmp_path / "My Photos.photoslibrary", TAGGED)
    put(*(library / "originals" / name for name in list(TAGGED)[:3]))
    return library


def digests(folder: Path) -> dict[Path, str]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return {file: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


# --- with osxphotos ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "database/Photos.sqlite"])
def test_keywords_are_read_and_the_library_stays_as_it_is(library, capfd, name):
    pytest.importorskip("osxphotos")
    originals = library / "originals"
    with closing(sqlite3.connect(library / "database/Photos.sqlite")) as photos:  # Photos runs
        photos.execute("PRAGMA journal_mode = WAL")
        photos.execute("UPDATE ZKEYWORD SET ZTITLE = 'shore' WHERE ZTITLE = 'beach'")
        photos.commit()
        before = digests(library)
        matched = match_tags(originals, library / name)
        assert digests(library) == before
    assert matched.tags == {"A/a.jpeg": ["AC/DC", "dog"], "B/b.jpeg": ["shore"]}
    assert capfd.readouterr() == ("", "")


def test_a_library_in_rest_gets_no_further_file(library):
    pytest.importorskip("osxphotos")
    change(library / "database/Photos.sqlite", "PRAGMA journal_mode = WAL")
    before = digests(library)
    assert len(read_tags(library)) == 2
    assert digests(library) == before


def test_photographs_outside_the_library_and_in_its_trash(library, tmp_path):
    pytest.importorskip("osxphotos")
    database = library / "database/Photos.sqlite"
    put(tmp_path / "elsewhere/b.jpeg")
    change(
        database,
        "UPDATE ZASSET SET ZDIRECTORY = ? WHERE ZFILENAME = 'b.jpeg'",
        str(tmp_path / "elsewhere"),
    )
    assert match_tags(tmp_path / "elsewhere", library).tags == {"b.jpeg": ["beach"]}
    change(database, "UPDATE ZASSET SET ZTRASHEDSTATE = 1 WHERE ZFILENAME = 'b.jpeg'")
    assert read_tags(library).tags == [["AC/DC", "dog"]]
    change(database, "UPDATE ZASSET SET ZKIND = 1 WHERE ZFILENAME = 'a.jpeg'")  # a film
    assert not len(read_tags(library))


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("DROP TABLE ZASSET", "osxphotos cannot read it .*ZASSET"),
        ("DELETE FROM ZGENERICALBUM", "osxphotos cannot read it .*root folder"),
        ("UPDATE ZASSET SET ZDIRECTORY = '../originals/A'", "is not a path below a folder"),
        ("UPDATE ZKEYWORD SET ZTITLE = printf('%.*c', 9999, 'x')", "more than .* characters"),
    ],
)
def test_a_library_that_photos_would_not_make(library, script, problem):
    pytest.importorskip("osxphotos")
    change(library / "database/Photos.sqlite", script)
    with pytest.raises(InvalidInput, match=f"is not as Apple Photos writes it: .*{problem}"):
        read_tags(library)


def test_a_planted_journal_beside_another_database_of_the_library_is_not_read(library, tmp_path):
    """osxphotos opens nothing but the copy, which is alone in its folder."""
    pytest.importorskip("osxphotos")
    for name in ("database/photos.db", "database/search/psi.sqlite"):
        (library / name).parent.mkdir(exist_ok=True)
        change(library / name, "CREATE TABLE word_embedding (x)")
        victim = plant_journal(library / name, tmp_path)
    before = digests(library)
    assert len(read_tags(library)) == 2
    assert digests(library) == before
    assert victim.exists()


# --- everywhere --------------------------------------------------------------------------


def test_without_osxphotos_a_sentence_names_the_command(library, monkeypatch):
    monkeypatch.setitem(sys.modules, "osxphotos", None)  # its import fails
    with pytest.raises(MissingExtra, match=r"needs osxphotos: pip install osxphotos$"):
        read_tags(library)


def test_a_planted_journal_deletes_nothing(library, tmp_path):
    victim = plant_journal(library / "database/Photos.sqlite", tmp_path)
    before = digests(library)
    with pytest.raises(StorageError, match="-journal names another file"):
        read_tags(library)
    assert victim.exists()
    assert digests(library) == before


@pytest.mark.parametrize("version", [12_000, 19_000, 20_000, 271_000_000, "x" * 50])
def test_versions_that_are_not_known(tmp_path, version):
    library = make_library(tmp_path / "a.photoslibrary", TAGGED, version)
    problem = f"tagkin does not know: its version is {str(version)[:20]}. Export the photographs"
    with pytest.raises(InvalidInput, match=problem):
        read_tags(library)


@pytest.mark.parametrize("data", [b"", b"bplist00", b"<plist/>", b"\xff" * 99])
def test_a_version_that_cannot_be_read(library, data):
    change(library / "database/Photos.sqlite", "UPDATE Z_METADATA SET Z_PLIST = ?", data)
    with pytest.raises(InvalidInput, match="writes it: it does not say its version"):
        read_tags(library)


def test_what_is_not_a_library(tmp_path):
    library = tmp_path / "Old.photoslibrary"
    library.mkdir()
    with pytest.raises(StorageError, match=r"Photos\.sqlite cannot be read: No such file"):
        read_tags(library)
    other = tmp_path / "other.sqlite"
    change(other, "CREATE TABLE a (b)")
    with pytest.raises(InvalidInput, match=r"not a catalogue of .* \(no such table"):
        read_tags(other)
    other.write_text("no database " * 100)
    with pytest.raises(InvalidInput, match="damaged or not a catalogue of Apple Photos"):
        read_tags(other)
    with pytest.raises(InvalidInput, match="has no column tags"):
        read_tags(library, column="tags")
