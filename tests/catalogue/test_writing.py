"""Accepted tags go into files and are taken back, with a history, whatever happens meanwhile."""

import os
import shutil

import pytest

from tagkin.catalogue import ACCEPTED, Filters, open_catalogue, open_for_scan
from tagkin.catalogue.database import Database
from tagkin.catalogue.selection import Selection
from tagkin.collection import read_keywords
from tagkin.collection.sidecars import Convention, add_tags, provenance_of, tags_of
from tagkin.errors import InvalidInput, SidecarError
from tests.catalogue.photographs import check_invariants, dry_copy
from tests.catalogue.suggested import OFFERED, decisions, offer, open_suggestions
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool, path_with_exiftool
from tests.collection.xmp_samples import subjects, with_xmp
from tests.forking import needs_fork
from tests.images.synthetic import picture, saved
from tests.killing import kill_everywhere


@pytest.fixture
def accepted(catalogue):
    """The catalogue, with the surest suggestions accepted."""
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.7))
    return catalogue


EXPECTED = {
    "2024/d.jpg.xmp": {"beach"},
    "a.jpg.xmp": {"beach", "sea", "holiday"},
    "b.jpg.xmp": {"beach", "sea", "holiday"},
}


def files(root):
    """Every file of a folder, with its bytes and its time."""
    contents = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                contents[os.path.relpath(path, root)] = file.read()
    return contents


def written_tags(root):
    return {name: set(tags_of(data)) for name, data in files(root).items() if "xmp" in name}


def times(root):
    return {p: os.stat(p).st_mtime_ns for p in map(str, root.rglob("*")) if os.path.isfile(p)}


def test_decisions_that_change_meanwhile(accepted, folder):
    """What somebody undoes on the review page while a write runs is not written."""

    def undo_at_the_first(what, done, total):
        if done == 0:
            accepted.decisions.undo_last()

    result = accepted.write(progress=undo_at_the_first)
    assert (result.n_written, result.failures) == (0, [])
    assert "holiday" not in written_tags(folder.root)["a.jpg.xmp"]


def test_written_and_undone(accepted, folder):
    before, stamps = files(folder.root), times(folder.root)
    result = accepted.write()
    assert (result.n_written, result.failures) == (3, [])
    tags = written_tags(folder.root)
    assert {name: tags[name] for name in EXPECTED} == EXPECTED
    (record,) = provenance_of(files(folder.root)["2024/d.jpg.xmp"])
    assert (record.tag, record.run, record.confidence) == ("beach", str(result.run), 0.92)
    assert {write.state for write in accepted.writes.of_run(result.run)} == {"done"}
    assert accepted.write().run is None  # nothing is left
    undone = accepted.undo()
    assert undone.undoes.id == result.run
    assert sorted(file.how for file in undone.files) == ["removed", "restored", "restored"]
    assert files(folder.root) == before
    assert times(folder.root) == stamps
    assert [(run.what, run.undoes) for run in accepted.runs.history(2)] == [
        ("undo", result.run),
        ("write", None),
    ]
    assert accepted.write().n_written == 3  # they are accepted still


def test_the_scan_between_changes_nothing(accepted, folder, rescan):
    before = files(folder.root)
    accepted.write()
    rescan()
    assert accepted.write().run is None
    accepted.undo()
    assert files(folder.root) == before
    assert accepted.write().n_written == 3
    check_invariants(accepted)


def test_a_dry_run_writes_nothing(accepted, folder):
    before, n_runs = files(folder.root), len(accepted.runs.history())
    result = accepted.write(dry_run=True)
    assert {(file.file, file.is_new) for file in result.files} == {
        ("a.jpg.xmp", False),
        ("b.jpg.xmp", False),
        ("2024/d.jpg.xmp", True),
    }
    assert (files(folder.root), len(accepted.runs.history())) == (before, n_runs)
    accepted.write()
    written = files(folder.root)
    with dry_copy(accepted) as copy:
        hows = [file.how for file in copy.undo().files]
    assert sorted(hows) == ["to remove", "to restore", "to restore"]
    assert files(folder.root) == written


def test_filters_and_the_convention(accepted, folder):
    result = accepted.write(Filters(folder="2024"), convention=Convention.STEM)
    assert [file.file for file in result.files] == ["2024/d.xmp"]
    assert read_keywords(folder.root / "2024" / "d.jpg") == ["beach"]
    result = accepted.write(Filters(tags=["sea"]))
    assert [(file.file, list(file.tags)) for file in result.files] == [("b.jpg.xmp", ["sea"])]


def test_the_habit_of_the_collection_names_new_ones(accepted, folder):
    for name in ("a", "b", "2024/c"):
        (folder.root / f"{name}.jpg.xmp").rename(folder.root / f"{name}.xmp")
    assert {file.file for file in accepted.write().files} == {"a.xmp", "b.xmp", "2024/d.xmp"}


def test_tags_inside_the_photograph_are_repeated_in_a_new_sidecar(folder, catalogue, rescan):
    """Programs that look at the sidecar alone would no longer see them."""
    path = folder.root / "2024" / "d.jpg"
    path.write_bytes(with_xmp(saved(picture(), "JPEG"), subjects("inside", "place|Wien")))
    rescan()
    offer(catalogue, {"2024/d.jpg": {"sea": 0.9}})
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["sea"]))
    catalogue.write()
    sidecar = (folder.root / "2024" / "d.jpg.xmp").read_bytes()
    assert set(tags_of(sidecar)) == {"inside", "place|Wien", "sea"}
    assert [record.tag for record in provenance_of(sidecar)] == ["sea"]


def test_one_bad_file_is_one_failure(accepted, folder):
    (folder.root / "a.jpg.xmp").write_text("<broken")
    (folder.root / "2024" / "d.jpg").unlink()
    result = accepted.write()
    assert [file.file for file in result.files] == ["b.jpg.xmp"]
    reasons = {os.path.basename(failure.file): failure.reason for failure in result.failures}
    assert "not well-formed" in reasons["a.jpg"]
    assert "vanished" in reasons["d.jpg"]
    assert (folder.root / "a.jpg.xmp").read_text() == "<broken"
    assert not (folder.root / "2024" / "d.jpg.xmp").exists()
    folder.tag("a.jpg", ["beach", "sea"])
    assert [file.file for file in accepted.write().files] == ["a.jpg.xmp"]


def test_a_failure_may_name_a_file_that_is_not_utf8(folder, catalogue, rescan, monkeypatch):
    name = os.fsdecode(b"caf\xe9.jpg")
    try:
        folder.put(name, "other")
    except OSError:
        pytest.skip("this system has no such names")
    rescan()
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=[name, "a.jpg"], tags=["dog"]))

    def add_tags_to_most(path, tags, provenance, *, record, **options):
        def record_and_fail(change):
            record(change)
            if path.name.startswith("caf"):
                raise SidecarError(f"{path}: it cannot be replaced.")

        return add_tags(path, tags, provenance, record=record_and_fail, **options)

    monkeypatch.setattr("tagkin.catalogue.sources.folder_writer.add_tags", add_tags_to_most)
    result = catalogue.write()
    assert [failure.file for failure in result.failures] == [catalogue.absolute(name)]
    assert result.n_written == 1
    (failed,) = [write for write in catalogue.writes.of_run(result.run) if write.state == "failed"]
    assert failed.note == f"{catalogue.absolute(name)}.xmp: it cannot be replaced."


def test_the_history_has_the_selection_of_a_write(accepted):
    run = accepted.write(selection=Selection(untagged=False, folder="2024")).run
    chosen = {"selection": {"untagged": False, "folder": "2024"}}
    assert accepted.runs.get(run).parameters == chosen


def test_an_undo_that_ends_before_suggestions_reopen_is_finished_later(accepted, monkeypatch):
    decided, written = accepted.runs.last_undoable().id, accepted.write().run
    accepted.undo(decided)  # while files have the tags, which the scan reads

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tagkin.catalogue.undo.reopen_unwritten", fail)
        with pytest.raises(KeyboardInterrupt):
            accepted.undo(written)
    assert {write.state for write in accepted.writes.of_run(written)} == {"done"}
    accepted.undo(written)
    assert open_suggestions(accepted) == OFFERED


def test_where_somebody_wrote_since(accepted, folder):
    result = accepted.write()
    path = folder.root / "a.jpg.xmp"
    path.write_bytes(path.read_bytes().replace(b">holiday<", b">holiday</rdf:li><rdf:li>mine<"))
    (folder.root / "b.jpg.xmp").write_text("<broken")
    undone = accepted.undo(result.run)
    assert {file.file: file.how for file in undone.files} == {
        "a.jpg.xmp": "untagged",
        "2024/d.jpg.xmp": "removed",
    }
    assert [os.path.basename(failure.file) for failure in undone.failures] == ["b.jpg.xmp"]
    assert [file.file for file in undone.not_exact] == ["a.jpg.xmp"]
    assert set(read_keywords(folder.root / "a.jpg")) == {"beach", "sea", "mine"}
    folder.tag("b.jpg", ["beach", "holiday"])  # made again by a person, so holiday is theirs
    assert len(accepted.undo(result.run).failures) == 1
    assert set(read_keywords(folder.root / "b.jpg")) == {"beach", "holiday"}


@pytest.mark.parametrize("later_first", [True, False])
def test_times_come_back_in_whatever_order_runs_are_undone(accepted, folder, later_first):
    before, stamps = files(folder.root), times(folder.root)
    runs = [
        accepted.write(Filters(tags=["holiday"])).run,
        accepted.write().run,
    ]
    for run in runs[::-1] if later_first else runs:
        accepted.undo(run)
    assert (files(folder.root), times(folder.root)) == (before, stamps)


@pytest.mark.parametrize("creator_first", [True, False])
def test_two_catalogues_leave_no_empty_sidecar(folder, tmp_path, creator_first):
    before = files(folder.root)
    paths = [tmp_path / "one.catalogue", tmp_path / "two.catalogue"]
    for path, tag in zip(paths, ("sea", "animal|dog"), strict=True):
        with open_for_scan(folder.root, path) as catalogue:
            catalogue.scan()
            offer(catalogue, {"2024/d.jpg": {tag: 0.9}})
            catalogue.decisions.decide(ACCEPTED, Filters(tags=[tag]))
            assert [file.file for file in catalogue.write().files] == ["2024/d.jpg.xmp"]
    for path in paths if creator_first else paths[::-1]:
        with open_catalogue(path, write=True) as catalogue:
            catalogue.undo()
    assert files(folder.root) == before


def test_undo_goes_back_run_by_run(accepted, folder):
    before = files(folder.root)
    first = accepted.write(Filters(tags=["holiday"]))
    second = accepted.write()
    assert accepted.undo().undoes.id == second.run
    assert accepted.undo().undoes.id == first.run
    assert files(folder.root) == before
    undone = accepted.undo()  # the decisions
    assert undone.undoes.what == "accept"
    assert len(undone.decisions) == 4
    assert decisions(accepted) == {}
    assert open_suggestions(accepted) == OFFERED
    with pytest.raises(InvalidInput, match="Nothing to undo"):
        accepted.undo()
    with pytest.raises(InvalidInput, match="no run 99"):
        accepted.undo(99)


@needs_exiftool
def test_into_the_photographs(folder, catalogue, rescan, tmp_path, monkeypatch):
    starts = tmp_path / "starts"
    monkeypatch.setenv("PATH", path_with_exiftool(tmp_path / "bin", f"echo $$ >> {starts}"))
    path = folder.root / "2024" / "d.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    rescan()
    before = files(folder.root)
    offer(catalogue, {"2024/d.jpg": {"sea": 0.9}, "a.jpg": {"dog": 0.9}})
    catalogue.decisions.decide(ACCEPTED, Filters(at_least=0.9))
    result = catalogue.write(embed=True)
    assert [file.file for file in result.files] == ["2024/d.jpg"]
    assert "exiftool could not use it" in result.failures[0].reason  # bytes, not a photograph
    assert read_keywords(path) == ["sea"]
    assert len(starts.read_text().split()) == 1  # one process for all photographs
    assert sorted(files(folder.root)) == sorted([*before, "2024/d.jpg_original"])
    assert [file.how for file in catalogue.undo().files] == ["restored"]
    assert files(folder.root) == before


@needs_fork
@pytest.mark.parametrize("stride", [7, 1])
def test_killed_at_every_step_and_finished_by_a_second_run(
    stride, catalogue, folder, tmp_path, lean
):
    """At every step of a file, or every few, and before transactions of the catalogue."""
    shutil.copy(folder.root / "a.jpg.xmp", folder.root / "a.xmp")
    offer(catalogue)
    catalogue.decisions.decide(
        ACCEPTED, Filters(at_least=0.91)
    )  # two sidecars are there, one is new
    catalogue.close()
    n_writes, n_undoes = lean(n_survived, catalogue.path, folder.root, tmp_path, stride)
    assert n_writes >= 30 // stride
    assert n_undoes >= 20 // stride


def n_survived(path, root, tmp_path, stride):
    """How many kills of a write and of its undo nothing was lost by."""
    start, before = shutil.copy(path, tmp_path / "start"), files(root)
    run = 0

    def opened():
        opened = open_catalogue(path, write=True)
        opened.database.row(
            "PRAGMA synchronous = OFF"
        )  # what a killed process wrote, the system keeps
        return opened

    def put(catalogue_file, contents):
        for old in path.parent.glob(f"{path.name}*"):
            old.unlink()
        shutil.copy(catalogue_file, path)
        for name in files(root):
            (root / name).unlink()
        for name, data in contents.items():
            (root / name).write_bytes(data)

    def write():
        with opened() as catalogue:
            catalogue.write()

    def undo():
        with opened() as catalogue:
            catalogue.undo(run)

    def check_write(n):
        write()
        assert written_tags(root) == tags
        with opened() as catalogue:
            while (undone := catalogue.undo()).undoes.what == "write":
                assert not undone.not_exact
        assert files(root) == before

    def check_undo(n):
        with opened() as catalogue:
            if any(write.state == "done" for write in catalogue.writes.of_run(run)):
                catalogue.undo(run)
            assert {write.state for write in catalogue.writes.of_run(run)} == {"undone"}
        assert files(root) == before

    write()
    after, tags = files(root), written_tags(root)
    with opened() as catalogue:
        run = catalogue.runs.history(1)[0].id
    written = shutil.copy(path, tmp_path / "written")
    options = {"also": ((Database, "transaction"),), "stride": stride}
    return (
        kill_everywhere(write, lambda: put(start, before), check_write, **options),
        kill_everywhere(undo, lambda: put(written, after), check_undo, **options),
    )
