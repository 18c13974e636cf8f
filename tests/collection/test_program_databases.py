"""Tags in catalogues of digiKam and Lightroom, found where the photographs are today."""

import hashlib
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tagkin.collection import program_databases, read_tags
from tagkin.errors import InvalidInput, StorageError, TagkinError
from tests.journals import interrupt_transaction, plant_journal

from .matched import match_tags
from .program_catalogues import change, make_digikam, make_lightroom

TAGGED = {"a.jpg": ["animal/dog", "beach"], "2024/b.jpg": ["animal/cat"], "2024/c.jpg": ["beach"]}
FOUND = {"a.jpg": ["animal|dog", "beach"], "2024/b.jpg": ["animal|cat"], "2024/c.jpg": ["beach"]}


def put(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"\xff\xd8\xff\xd9")
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return put(tmp_path / "My Photos", *TAGGED, "2024/untagged.jpg")


def tags_in(folder: Path, catalogue: Path) -> dict[str, list[str]]:
    """Tags by path from the folder, of the photographs that have any."""
    return {name: sorted(tags) for name, tags in match_tags(folder, catalogue).tags.items() if tags}


# --- digiKam -----------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["path", "mountpath", "volume", "another machine"])
def test_digikam_names_roots_in_several_ways(tmp_path, photos, where):
    quoted = str(photos).replace(" ", "%20")
    identifier, specific_path = {
        "path": (f"volumeid:?path={quoted}", "/"),
        "mountpath": (f"networkshareid:?mountpath={quoted}", "/"),
        "volume": ("volumeid:?uuid=800b21c2-dadc-4930-829e-a96b04ce26fa", f"/{photos.name}"),
        "another machine": ("volumeid:?path=/home/elsewhere/Pictures", "/"),
    }[where]
    database = make_digikam(tmp_path / "digikam4.db", TAGGED, identifier, specific_path)
    assert tags_in(photos, database) == FOUND
    assert tags_in(photos / "2024", database) == {"b.jpg": ["animal|cat"], "c.jpg": ["beach"]}


def test_digikam_has_tags_of_its_own_that_nobody_gave(tmp_path, photos):
    database = make_digikam(tmp_path / "digikam4.db", TAGGED, f"volumeid:?path={photos}")
    change(
        database,
        """
        INSERT INTO ImageTags VALUES (1, 2), (1, 3);
        INSERT INTO Tags (id, pid, name) VALUES (90, 0, 'People'), (91, 90, 'Unknown'),
            (92, 90, 'Unconfirmed'), (93, 90, 'Anna'), (94, 0, 'AC|DC');
        INSERT INTO TagProperties VALUES (91, 'unknownPerson', NULL), (93, 'person', 'Anna'),
            (92, 'unconfirmedPerson', NULL);
        INSERT INTO ImageTags VALUES (3, 91), (3, 92), (3, 93), (3, 94);
        """,
    )
    assert tags_in(photos, database) == FOUND | {"2024/c.jpg": ["AC/DC", "People|Anna", "beach"]}
    change(database, "UPDATE Tags SET pid = -5 WHERE pid = 0")
    change(database, "INSERT INTO Tags (id, pid, name) VALUES (-5, -9, '_Digikam_root_tag_')")
    change(database, "UPDATE Tags SET name = 'dog' WHERE name = 'AC|DC'")
    assert tags_in(photos, database) == FOUND | {"2024/c.jpg": ["People|Anna", "beach", "dog"]}


def test_digikam_keeps_removed_files_and_films(tmp_path, photos):
    database = make_digikam(tmp_path / "digikam4.db", TAGGED, f"volumeid:?path={photos}")
    change(database, "UPDATE Images SET status = 3 WHERE name = 'a.jpg'")
    change(database, "UPDATE Images SET category = 2 WHERE name = 'b.jpg'")
    assert tags_in(photos, database) == {"2024/c.jpg": ["beach"]}


# --- Lightroom ---------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["here", "Windows", "above"])
def test_lightroom_names_roots_by_their_paths(tmp_path, photos, where):
    roots = {"here": f"{photos}/", "Windows": "C:/Users/me/My Photos/", "above": "/Volumes/Disk/"}
    prefix = f"{photos.name}/" if where == "above" else ""
    tagged = {f"{prefix}{name}": tags for name, tags in TAGGED.items()}
    catalogue = make_lightroom(tmp_path / "Lightroom Catalog-v13.lrcat", tagged, roots[where])
    assert tags_in(photos, catalogue) == FOUND
    assert tags_in(photos / "2024", catalogue) == {"b.jpg": ["animal|cat"], "c.jpg": ["beach"]}


def test_virtual_copies_are_the_same_photograph_and_films_are_none(tmp_path, photos):
    catalogue = make_lightroom(tmp_path / "c.lrcat", TAGGED, f"{photos}/")
    change(
        catalogue,
        """
        INSERT INTO Adobe_images VALUES (3000, 'copy', 'Copy 1', 'JPG', 2002, NULL, 1002);
        INSERT INTO AgLibraryKeywordImage (image, tag)
            SELECT 3000, id_local FROM AgLibraryKeyword WHERE name = 'dog';
        UPDATE Adobe_images SET fileFormat = 'VIDEO' WHERE rootFile = 1001;
        """,
    )
    assert tags_in(photos, catalogue) == {
        "a.jpg": ["animal|dog", "beach"],
        "2024/c.jpg": ["animal|dog", "beach"],
    }


# --- both --------------------------------------------------------------------------------

Make = Callable[[Path, Path], Path]


def digikam(folder: Path, photos: Path) -> Path:
    return make_digikam(folder / "digikam4.db", TAGGED, f"volumeid:?path={photos}")


def lightroom(folder: Path, photos: Path) -> Path:
    return make_lightroom(folder / "c.lrcat", TAGGED, f"{photos}/")


both = pytest.mark.parametrize("make", [digikam, lightroom])


def snapshot(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file()
    }


@both
def test_last_changes_are_in_the_log_of_a_running_program(tmp_path, photos, make: Make):
    """Nothing beside the catalogue changes, nor does a file appear there."""
    catalogue = make(tmp_path, photos)
    with closing(sqlite3.connect(catalogue)) as program:
        program.execute("PRAGMA journal_mode = WAL")
        table = "Tags" if make is digikam else "AgLibraryKeyword"
        program.execute(f"UPDATE {table} SET name = 'wolf' WHERE name = 'dog'")
        program.commit()
        assert Path(f"{catalogue}-wal").stat().st_size
        before = snapshot(tmp_path)
        assert tags_in(photos, catalogue) == FOUND | {"a.jpg": ["animal|wolf", "beach"]}
        assert snapshot(tmp_path) == before


@both
def test_a_folder_without_permission_to_write_is_read(tmp_path, photos, make: Make):
    folder = tmp_path / "locked"
    folder.mkdir()
    catalogue = make(folder, photos)
    folder.chmod(0o500)
    try:
        assert tags_in(photos, catalogue) == FOUND
    finally:
        folder.chmod(0o700)


@both
@pytest.mark.parametrize("version", ["99", "9900001", "new", ""])
def test_an_unknown_version_is_named(tmp_path, photos, make: Make, version):
    catalogue = make(tmp_path, photos)
    table, program = ("Settings", "digiKam") if make is digikam else ("", "Lightroom")
    change(catalogue, f"UPDATE {table or 'Adobe_variablesTable'} SET value = ?", version)
    with pytest.raises(InvalidInput, match=f"of a {program} that tagkin does not know: its"):
        read_tags(catalogue)


@both
def test_another_database_is_not_a_catalogue(tmp_path, photos, make: Make):
    path = make(tmp_path, photos)
    path.write_bytes(b"no database at all, but long enough to be one" * 40)
    with pytest.raises(InvalidInput, match="damaged or not a catalogue of"):
        read_tags(path)
    path.unlink()
    change(path, "CREATE TABLE Tags (id, pid, name)")
    with pytest.raises(InvalidInput, match=r"not a catalogue of .* \(no such table"):
        read_tags(path)
    path.unlink()
    with pytest.raises(StorageError, match="cannot be read: No such file"):
        read_tags(path)
    with pytest.raises(InvalidInput, match="has no column odd"):
        read_tags(path, column="odd")


@both
def test_a_catalogue_of_other_folders_is_an_error(tmp_path, photos, make: Make):
    catalogue = make(tmp_path, photos)
    elsewhere = put(tmp_path / "elsewhere", "a.jpg", "x/b.jpg", "x/y.jpg")
    with pytest.raises(InvalidInput, match=r"has tags for photographs in .*My Photos, and none"):
        match_tags(elsewhere, catalogue)


@both
def test_files_of_another_root_do_not_lend_their_tags(tmp_path, photos, make: Make):
    """A backup has the same names. It is another root, so its tags stay there."""
    catalogue = make(tmp_path, photos)
    if make is digikam:
        change(
            catalogue,
            """
            INSERT INTO AlbumRoots VALUES (2, '', 0, 1, 'volumeid:?path=/backup/My Photos', '/', 2);
            INSERT INTO Albums (id, albumRoot, relativePath) VALUES (50, 2, '/');
            INSERT INTO Images (id, album, name, status, category) VALUES (50, 50, 'a.jpg', 1, 1);
            INSERT INTO Tags (id, pid, name) VALUES (50, 0, 'backup');
            INSERT INTO ImageTags VALUES (50, 50);
            """,
        )
    else:
        change(
            catalogue,
            """
            INSERT INTO AgLibraryRootFolder VALUES (6, 'x', 'D:/backup/My Photos/', '', NULL);
            INSERT INTO AgLibraryFolder VALUES (50, 'y', NULL, '', 6, NULL);
            INSERT INTO AgLibraryFile VALUES (50, 'z', 'a', 'jpg', 50, 'a.jpg', NULL);
            INSERT INTO Adobe_images VALUES (50, 'u', NULL, 'JPG', NULL, NULL, 50);
            INSERT INTO AgLibraryKeyword (id_local, id_global, name, parent)
                VALUES (50, 'k', 'backup', 1);
            INSERT INTO AgLibraryKeywordImage (image, tag) VALUES (50, 50);
            """,
        )
    assert tags_in(photos, catalogue) == FOUND
    moved = photos.rename(tmp_path / "New Name")
    assert tags_in(moved, catalogue) == FOUND


@both
def test_photographs_that_are_gone_are_named_only_in_searched_folders(tmp_path, photos, make: Make):
    catalogue = make(tmp_path, photos)
    (photos / "a.jpg").unlink()
    (photos / "2024" / "b.jpg").unlink()
    assert match_tags(photos / "2024", catalogue).absent == [str(photos / "2024" / "b.jpg")]


# --- hostile catalogues ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("UPDATE Tags SET pid = id WHERE name = 'dog'", "'dog' is below itself"),
        (
            "UPDATE Tags SET pid = (SELECT id FROM Tags WHERE name = 'dog') WHERE name = 'animal'",
            "is below itself",
        ),
        ("UPDATE Tags SET name = x'ff00' WHERE name = 'dog'", r"finds .*bytes"),
        ("UPDATE Tags SET name = printf('%.600c', 'a') WHERE name = 'dog'", "500 characters"),
        ("UPDATE Tags SET pid = 'high' WHERE name = 'dog'", r"finds .*a text"),
        ("UPDATE Images SET name = '../../etc/passwd' WHERE id = 1", "are not a path below"),
        ("UPDATE Albums SET relativePath = '/../..' WHERE id = 1", "are not a path below"),
        ("UPDATE Images SET name = '' WHERE id = 1", "are not a path below"),
        ("UPDATE Albums SET relativePath = printf('%.5000c', '/') WHERE id = 1", "a path has more"),
        ("UPDATE Albums SET albumRoot = 0.5", r"finds .*a fraction"),
        ("UPDATE AlbumRoots SET identifier = x'00'", r"finds .*bytes"),
        ("ALTER TABLE Images RENAME COLUMN status TO state", "no such column: i.status"),
        (
            "ALTER TABLE Tags RENAME TO Old; CREATE VIEW Tags AS WITH RECURSIVE "
            "n AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM n) "
            "SELECT id, 0 AS pid, 'x' AS name FROM n",
            "not authorized",
        ),
        (
            "ALTER TABLE TagProperties RENAME TO Old; CREATE VIEW TagProperties AS "
            "WITH RECURSIVE n AS (SELECT 1 AS tagid UNION ALL SELECT tagid + 1 FROM n LIMIT 9) "
            "SELECT tagid, 'internalTag' AS property FROM n",
            "not authorized",
        ),
        ("UPDATE Tags SET name = randomblob(17000000) WHERE name = 'dog'", "too big"),
    ],
)
def test_hostile_databases_are_refused(tmp_path, photos, script, message):
    catalogue = digikam(tmp_path, photos)
    change(catalogue, script)
    with pytest.raises(InvalidInput, match=message):
        read_tags(catalogue)


def test_names_of_any_bytes_are_read(tmp_path, photos):
    catalogue = digikam(tmp_path, photos)
    change(catalogue, "UPDATE Tags SET name = CAST(x'64ff00670a' AS TEXT) WHERE name = 'dog'")
    assert tags_in(photos, catalogue)["a.jpg"] == ["animal|d\ufffdg", "beach"]


def test_numbers_of_rows_and_steps_and_bytes_are_limited(tmp_path, photos, monkeypatch):
    catalogue = digikam(tmp_path, photos)
    with monkeypatch.context() as patched:
        patched.setattr(program_databases, "MAX_ROWS", 5)
        with pytest.raises(InvalidInput, match="more than 5 entries"):
            read_tags(catalogue)
    with monkeypatch.context() as patched:
        patched.setattr(program_databases, "MAX_TAGS", 5)
        with pytest.raises(InvalidInput, match="more than 5 tags"):
            read_tags(catalogue)
    with monkeypatch.context() as patched:
        patched.setattr(program_databases, "MAX_CHARACTERS", 60)
        with pytest.raises(InvalidInput, match="more than 60 characters"):
            read_tags(catalogue)
    with monkeypatch.context() as patched:
        patched.setattr(program_databases, "MAX_CHARACTERS", 15)
        with pytest.raises(InvalidInput, match="its tags have more than 15 characters"):
            read_tags(catalogue)
    with monkeypatch.context() as patched:
        patched.setattr(program_databases, "MAX_PHOTOGRAPHS", 2)
        with pytest.raises(InvalidInput, match="tags of more than 2 photographs"):
            read_tags(catalogue)
    with monkeypatch.context() as patched:
        patched.setattr(program_databases, "MAX_BYTES", 1000)
        with pytest.raises(StorageError, match="tagkin reads a copy"):
            read_tags(catalogue)
    # joins that never end: all pairs of many rows, and no row of the last table fits
    change(
        catalogue,
        """
        DROP TABLE Albums; CREATE TABLE Albums (id, albumRoot, relativePath);
        DROP TABLE Images; CREATE TABLE Images (id, album, name, status, category);
        WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO Images SELECT 1, 1, 'a.jpg', 1, 1 FROM n;
        WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO Albums SELECT 1, 1, '/' FROM n;
        """,
    )
    monkeypatch.setattr(program_databases, "MAX_STEPS", 2)
    with pytest.raises(InvalidInput, match="interrupted"):
        read_tags(catalogue)


@pytest.fixture
def largest_temporary() -> Callable[[], int]:
    """Return how many bytes SQLite had in temporary files at most."""
    largest = [0]

    def measure() -> None:
        while not stop.wait(0.01):
            sizes = 0
            for link in Path("/proc/self/fd").glob("*"):
                with suppress(OSError):
                    if "etilqs_" in os.readlink(link):  # SQLite's name for them
                        sizes += link.stat().st_size
            largest[0] = max(largest[0], sizes)

    stop = threading.Event()
    thread = threading.Thread(target=measure)
    thread.start()

    def end() -> int:
        stop.set()
        thread.join()
        return largest[0]

    return end


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc")
@pytest.mark.parametrize("length", [1_000_000, 60_000, 4_000])
def test_nine_terabytes_of_rows_do_not_fill_the_disk(
    tmp_path, photos, monkeypatch, length, largest_temporary
):
    """A megabyte of catalogue whose tables, joined, have 9,000,000 rows of a megabyte."""
    monkeypatch.setattr(program_databases, "MAX_STEPS", 30)
    catalogue = digikam(tmp_path, photos)
    change(
        catalogue,
        f"""
        DROP TABLE Images; CREATE TABLE Images (id, album, name, status, category);
        DROP TABLE ImageTags; CREATE TABLE ImageTags (imageid, tagid);
        DROP TABLE Albums; CREATE TABLE Albums (id, albumRoot, relativePath);
        INSERT INTO Albums VALUES (1, 1, '/');
        WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
            INSERT INTO ImageTags SELECT 1, 9 FROM n;
        INSERT INTO Images VALUES (1, 1, printf('%.{length}c', 'a'), 1, 1);
        WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 2999)
            INSERT INTO Images SELECT 1, 1, 'a.jpg', 1, 1 FROM n;
        """,
    )
    assert catalogue.stat().st_size < 1_300_000
    with suppress(InvalidInput):
        read_tags(catalogue)
    assert largest_temporary() < 1_000_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no limit of memory")
def test_eighteen_gigabytes_of_names_take_no_memory(tmp_path, photos):
    """SQLite computes 300,000 tags of 60,000 letters from a few bytes each."""
    from tests.hardening.limits import within

    catalogue = digikam(tmp_path, photos)
    change(
        catalogue,
        """
        DROP TABLE Tags; CREATE TABLE Tags (id INTEGER PRIMARY KEY, pid INTEGER,
            name TEXT GENERATED ALWAYS AS (printf('%.60000c', 'a')) VIRTUAL);
        WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
            INSERT INTO Tags (id, pid) SELECT i, 0 FROM n;
        """,
    )
    assert catalogue.stat().st_size < 5_000_000

    def read() -> None:
        with pytest.raises(InvalidInput, match="'Tags' computes a column"):
            read_tags(catalogue)

    within(200_000_000, read, cpu_seconds=60)


def test_one_step_of_days_is_refused(tmp_path, photos):
    """SQLite counts a comparison of 900 million letters as one step."""
    catalogue = digikam(tmp_path, photos)
    change(
        catalogue,
        """
        DROP TABLE AlbumRoots;
        CREATE TABLE AlbumRoots (id INTEGER PRIMARY KEY, identifier TEXT, specificPath TEXT
            GENERATED ALWAYS AS (CASE WHEN replace(hex(zeroblob(30000)), '0', 'a') || id LIKE
            '%' || replace(hex(zeroblob(12000)), '0', 'a') || 'b' THEN 'x' ELSE 'y' END) VIRTUAL);
        INSERT INTO AlbumRoots (id) VALUES (1);
        """,
    )
    start = time.process_time()
    with pytest.raises(InvalidInput, match="'AlbumRoots' computes a column"):
        read_tags(catalogue)
    assert time.process_time() - start < 5


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no devices")
@pytest.mark.parametrize("name", ["digikam4.db", "c.lrcat", "Photos.sqlite", "tags.csv", "a.jsonl"])
def test_only_regular_files_are_read(tmp_path, name):
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(InvalidInput, match="is not a file"):
        read_tags(tmp_path / name)


def test_a_log_that_is_a_device_is_not_copied(tmp_path, photos):
    catalogue = digikam(tmp_path, photos)
    Path(f"{catalogue}-wal").symlink_to("/dev/zero")
    assert tags_in(photos, catalogue) == FOUND


def test_a_file_that_grows_is_copied_up_to_the_size_it_had(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(b"x" * 3_000_000)
    program_databases.copy_file(str(source), tmp_path / "target", 2_500_000)
    assert (tmp_path / "target").stat().st_size == 2_500_000


@both
def test_damaged_bytes_end_in_an_error_or_in_tags(tmp_path, photos, make: Make):
    """Nothing else: no hang, no crash, no error of SQLite."""
    catalogue = make(tmp_path, photos)
    original = catalogue.read_bytes()
    chance = random.Random(7)
    n_refused = 0
    for _ in range(150):
        data = bytearray(original)
        for _ in range(chance.choice((1, 4, 30))):
            data[chance.randrange(len(data))] = chance.randrange(256)
        del data[chance.choice((len(data), chance.randrange(len(data)))) :]
        catalogue.write_bytes(data)
        try:
            match_tags(photos, catalogue)
        except TagkinError:
            n_refused += 1
    assert 20 < n_refused < 150


@both
@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("by", ["name", "link"])
def test_a_planted_journal_deletes_nothing(tmp_path, photos, make: Make, mode, by):
    catalogue = make(tmp_path, photos)
    change(catalogue, f"PRAGMA journal_mode = {mode}")
    named = tmp_path / f"link{catalogue.suffix}"
    named.symlink_to(catalogue)
    victim = plant_journal(catalogue, tmp_path)
    before = snapshot(tmp_path)
    with pytest.raises(StorageError, match="-journal names another file"):
        read_tags(catalogue if by == "name" else named)
    assert victim.read_text() == "precious"
    assert snapshot(tmp_path) == before


def test_a_planted_journal_is_not_copied_when_it_appears_later(tmp_path, photos, monkeypatch):
    """At whatever step it appears."""
    catalogue = digikam(tmp_path, photos)
    copy_file = program_databases.copy_file
    victims = []

    def copy_and_plant(source: str, target: Path, n_bytes: int) -> None:
        copy_file(source, target, n_bytes)
        victims.append(plant_journal(catalogue, tmp_path))

    monkeypatch.setattr(program_databases, "copy_file", copy_and_plant)
    with pytest.raises(StorageError, match="-journal names another file"):
        read_tags(catalogue)
    assert [victim.read_text() for victim in victims] == ["precious"]


@both
def test_an_interrupted_program_has_to_finish_first(tmp_path, photos, make: Make):
    """Its journal is neither copied nor rolled back."""
    catalogue = make(tmp_path, photos)
    table = "Tags" if make is digikam else "AgLibraryKeyword"
    interrupt_transaction(catalogue, f"UPDATE {table} SET name = name || printf('%.5000c', 'x')")
    before = snapshot(tmp_path)
    program = "digiKam" if make is digikam else "Lightroom"
    with pytest.raises(StorageError, match=f"^Close {program} first: it is changing .*-journal"):
        read_tags(catalogue)
    assert snapshot(tmp_path) == before
    with closing(sqlite3.connect(catalogue)) as repaired:  # as the program does when it opens
        repaired.execute(f"SELECT count(*) FROM {table}").fetchall()
    assert tags_in(photos, catalogue) == FOUND


def test_the_copy_is_private_and_removed(tmp_path, photos, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    modes = []
    copy_file = program_databases.copy_file

    def watch(source: str, target: Path, n_bytes: int) -> None:
        modes.append(target.parent.stat().st_mode & 0o777)
        copy_file(source, target, n_bytes)

    monkeypatch.setattr(program_databases, "copy_file", watch)
    catalogue = digikam(tmp_path, photos)
    read_tags(catalogue)
    change(catalogue, "DROP TABLE Tags")
    with pytest.raises(InvalidInput):
        read_tags(catalogue)
    assert modes == [0o700, 0o700] or os.name == "nt"
    assert list(temporary.iterdir()) == []


def test_a_file_that_changes_all_the_time_is_not_read(tmp_path, photos, monkeypatch):
    catalogue = digikam(tmp_path, photos)
    copy_file = program_databases.copy_file

    def copy_while_it_is_written(source: str, target: Path, n_bytes: int) -> None:
        copy_file(source, target, n_bytes)
        change(catalogue, "INSERT INTO Tags (pid, name) VALUES (0, hex(randomblob(400)))")

    monkeypatch.setattr(program_databases, "copy_file", copy_while_it_is_written)
    with pytest.raises(StorageError, match="Close digiKam and try again"):
        read_tags(catalogue)
