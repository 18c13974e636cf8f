"""Tags go to the photograph that was decided on, and nothing outside the collection is touched."""

import hashlib
import zlib

import pytest

from tagkin.catalogue import ACCEPTED, Filters
from tagkin.collection.sidecars import tags_of
from tagkin.errors import StorageError
from tests.catalogue.photographs import files, sidecar_text
from tests.catalogue.suggested import offer
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.images.synthetic import picture, saved


@pytest.fixture
def outside(folder):
    """A folder beside the collection, with files of the names that the collection has."""
    there = folder.root.parent / "outside"
    there.mkdir()
    for name in ("c.jpg", "d.jpg"):
        (there / name).write_bytes((folder.root / "2024" / name).read_bytes())
    (there / "d.jpg.xmp").write_text(sidecar_text(["private"]))
    (there / ".d.jpg.xmp-0123456789abcdef").write_text("looks like the rest of a killed write")
    return there


def swap_for_link(path, target):
    """Put a link in the place of a file or folder, which is kept beside the collection."""
    path.rename(path.parent.parent / f"{path.name} as it was")
    path.symlink_to(target, target_is_directory=target.is_dir())


# --- the photograph that was decided on --------------------------------------------------


def test_another_picture_under_the_name_gets_no_tags(accepted, folder, rescan):
    folder.put("a.jpg", "another picture")
    before = files(folder.root)
    result = accepted.write()
    (failure,) = result.failures
    assert failure.file.endswith("a.jpg")
    assert "may be another photograph. Scan the folder" in failure.reason
    assert "a.jpg.xmp" not in {file.file for file in result.files}
    assert files(folder.root)["a.jpg.xmp"] == before["a.jpg.xmp"]
    assert result.n_written == 2


@needs_exiftool
def test_another_picture_under_the_name_gets_no_tags_inside(catalogue, folder, rescan):
    path = folder.root / "2024/d.jpg"
    path.write_bytes(saved(picture(32), "JPEG"))
    rescan()
    offer(catalogue, {"2024/d.jpg": {"sea": 0.9}})
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    path.write_bytes(saved(picture(48), "JPEG"))
    before = files(folder.root)
    assert "may be another" in catalogue.write(embed=True).failures[0].reason
    assert files(folder.root) == before


@needs_exiftool
def test_what_tagkin_wrote_into_a_photograph_makes_it_no_other(catalogue, folder, rescan):
    path = folder.root / "2024/d.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    rescan()
    offer(catalogue, {"2024/d.jpg": {"sea": 0.9, "beach": 0.8}})
    for tag in ("sea", "beach"):
        catalogue.decisions.decide(ACCEPTED, Filters(tags=[tag]))
        assert not catalogue.write(embed=True).failures


# --- links -------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["2024", "2024/d.jpg", "2024/d.jpg.xmp"])
def test_no_tags_are_written_through_a_link(accepted, folder, outside, what):
    if what == "2024/d.jpg.xmp":
        (folder.root / what).touch()
    before = files(outside)
    swap_for_link(folder.root / what, outside if what == "2024" else outside / what[5:])
    result = accepted.write()
    assert [
        "a link leads out of the collection" in failure.reason for failure in result.failures
    ] == [True]
    assert files(outside) == before
    assert {file.file for file in result.files} == {"a.jpg.xmp", "b.jpg.xmp"}


@pytest.mark.parametrize("what", ["2024", "2024/d.jpg.xmp"])
def test_nothing_is_undone_through_a_link(accepted, folder, outside, what):
    run = accepted.write().run
    (outside / "d.jpg.xmp").write_bytes((folder.root / "2024/d.jpg.xmp").read_bytes())
    before = files(outside)
    swap_for_link(folder.root / what, outside if what == "2024" else outside / "d.jpg.xmp")
    undone = accepted.undo(run)
    assert [
        "a link leads out of the collection" in failure.reason for failure in undone.failures
    ] == [True]
    assert files(outside) == before
    (folder.root / what).unlink()
    (folder.root / what).parent.parent.joinpath(f"{what.rsplit('/')[-1]} as it was").rename(
        folder.root / what
    )
    assert not accepted.undo(run).failures


def test_a_link_inside_the_collection_stays_a_link(accepted, folder):
    link, target = folder.root / "2024/d.jpg.xmp", folder.root / "sidecars/d.xmp"
    target.parent.mkdir()
    target.write_text(sidecar_text(["mine"]))
    before = target.read_bytes()
    link.symlink_to(target)
    run = accepted.write(Filters(folder="2024")).run
    assert set(tags_of(target.read_bytes())) == {"mine", "sea", "beach"}
    accepted.undo(run)
    assert link.is_symlink()
    assert target.read_bytes() == before


@pytest.mark.parametrize("path", ["../outside/d.jpg", "/etc/d.jpg", "2024/../../outside/d.jpg"])
def test_a_catalogue_edited_by_hand_leads_nowhere(accepted, outside, path):
    accepted.database.execute("UPDATE photographs SET path = ? WHERE path = '2024/d.jpg'", (path,))
    before = files(outside)
    result = accepted.write()
    assert ["outside the collection" in failure.reason for failure in result.failures] == [True]
    assert files(outside) == before


@pytest.mark.parametrize("before", [None, zlib.compress(b"attacker's")])
@pytest.mark.parametrize("file", ["../victim/x.xmp", "2024/../../victim/x.xmp", "notes.txt"])
def test_a_catalogue_that_names_another_file_does_not_undo_there(accepted, folder, file, before):
    victim = folder.root / file
    victim.resolve().parent.mkdir(exist_ok=True)
    victim.resolve().write_bytes(b"theirs")
    run = accepted.write(Filters(photographs=["a.jpg"])).run
    after = hashlib.sha256(b"theirs").digest()
    with accepted.database.transaction():
        values = (file, before, after)
        accepted.database.execute("UPDATE writes SET file = ?, before = ?, after = ?", values)
    undone = accepted.undo(run)
    assert ["must be" in failure.reason for failure in undone.failures] == [True]
    assert victim.resolve().read_bytes() == b"theirs"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("before", b"not zlib"),
        ("before", zlib.compress(b"\0" * (1 << 28), 9)),
        ("tags", "[1]"),
        ("added", "[[]]"),
        ("added", "{}"),
        ("after", "text"),
        ("file", b"bytes"),
    ],
)
def test_a_damaged_write_is_a_sentence(accepted, folder, column, value):
    accepted.write()
    before = files(folder.root)
    accepted.database.execute(f"UPDATE writes SET {column} = ?", (value,))
    with pytest.raises(StorageError, match="The catalogue is damaged"):
        accepted.undo()
    assert files(folder.root) == before


def test_a_killed_write_is_not_finished_through_a_link(accepted, folder, outside):
    accepted.write()
    accepted.database.execute("UPDATE writes SET state = 'planned'")  # as a kill leaves it
    before = files(outside)
    swap_for_link(folder.root / "2024", outside)
    assert accepted.write().n_finished == 2
    assert files(outside) == before
