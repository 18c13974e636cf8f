"""Tags that other programs removed or added, and what a catalogue makes of that."""

import shutil

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Filters, open_catalogue, open_for_scan
from tagkin.catalogue.database import Database
from tagkin.collection.sidecars import ExifTool, with_tags
from tests.catalogue.photographs import check_invariants, files, found_tags, keep_decisions
from tests.catalogue.programs import (
    HIERARCHICAL,
    KEYWORDS,
    TAGS_LIST,
    LightroomInside,
    immich_tags,
)
from tests.catalogue.suggested import decisions, offer, open_suggestions
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.forking import needs_fork
from tests.images.synthetic import picture, saved
from tests.killing import kill_everywhere


def without(folder, name, words, prefix="digiKam:TagsList"):
    """Remove words from one list of a sidecar, as a program does that writes only this list."""
    path = folder.root / name
    head, rest = path.read_text().split(f"<{prefix}>")
    inside, tail = rest.split(f"</{prefix}>")
    for word in words:
        assert f"<rdf:li>{word}</rdf:li>" in inside
        inside = inside.replace(f"<rdf:li>{word}</rdf:li>", "")
    path.write_text(f"{head}<{prefix}>{inside}</{prefix}>{tail}")
    folder.age(path)


@pytest.fixture
def listed(folder, catalogue):
    """c.jpg with two tags in all lists."""
    xml, _ = with_tags(None, ["animal|dog", "sea"])
    path = folder.root / "2024/c.jpg.xmp"
    path.write_bytes(xml)
    folder.age(path)
    catalogue.scan()
    return catalogue


def tags_of_c(catalogue):
    return sorted(found_tags(catalogue).get("2024/c.jpg", {}))


def source(catalogue, tag, path="2024/c.jpg"):
    (explained,) = [t for t in catalogue.explain(path).tags if t.tag == tag]
    return explained.state, explained.said[-1].text


def test_a_tag_that_immich_removed_does_not_come_back(listed, folder):
    without(folder, "2024/c.jpg.xmp", ["animal/dog"])
    assert listed.scan().retagged == ["2024/c.jpg"]
    assert tags_of_c(listed) == ["sea"]
    state, text = source(listed, "animal|dog")
    assert state == "rejected"
    run = listed.runs.history(1)[0].id
    assert text == (
        f"removed in digiKam:TagsList, the list of digiKam and Immich (seen by run {run})"
    )
    offer(listed, {"2024/c.jpg": {"animal|dog": 0.9, "sun": 0.5}})
    assert open_suggestions(listed)["2024/c.jpg"] == {"sun": 0.5}
    listed.scan()
    assert tags_of_c(listed) == ["sea"]
    check_invariants(listed)


def test_a_write_brings_the_lists_in_step_only_when_it_writes(listed, folder):
    without(folder, "2024/c.jpg.xmp", ["animal/dog"])
    listed.scan()
    before = files(folder.root)
    assert listed.write().run is None
    assert files(folder.root) == before
    only_c = Filters(photographs=["2024/c.jpg"])
    (plan,) = listed.write(only_c, align=True, dry_run=True).files
    assert (plan.file, plan.removed) == ("2024/c.jpg.xmp", ["animal|dog"])
    listed.decisions.decide(ACCEPTED, Filters(photographs=["2024/c.jpg"], tags=["sun"]))
    run = listed.write().run
    assert b"dog" not in (folder.root / "2024/c.jpg.xmp").read_bytes()
    assert tags_of_c(listed) == ["sea", "sun"]
    listed.undo(run)
    assert files(folder.root) == before
    listed.scan()
    assert tags_of_c(listed) == ["sea"]
    check_invariants(listed)


def test_align_alone_and_undo(listed, folder):
    without(folder, "2024/c.jpg.xmp", ["sea"], "dc:subject")
    listed.scan()
    before = files(folder.root)
    result = listed.write(Filters(photographs=["2024/c.jpg"]), align=True)
    assert (result.n_written, result.n_removed) == (1, 1)
    assert b"sea" not in (folder.root / "2024/c.jpg.xmp").read_bytes()
    assert listed.write(Filters(photographs=["2024/c.jpg"]), align=True).run is None
    assert [file.how for file in listed.undo().files] == ["restored"]
    assert files(folder.root) == before
    # the flat sidecars of the others get all lists
    assert {file.file for file in listed.write(align=True).files} >= {"a.jpg.xmp", "b.jpg.xmp"}
    assert listed.write(align=True).run is None


def test_a_removal_since_the_last_scan_is_not_written_back(listed, folder):
    without(folder, "2024/c.jpg.xmp", ["animal/dog"])
    listed.decisions.decide(ACCEPTED, Filters(photographs=["2024/c.jpg"], tags=["sun"]))
    listed.write()  # without a scan
    assert tags_of_c(listed) == ["sea", "sun"]
    assert source(listed, "animal|dog")[0] == "rejected"


def test_added_again_elsewhere_or_accepted_here(listed, folder):
    xml = (folder.root / "2024/c.jpg.xmp").read_bytes()
    without(folder, "2024/c.jpg.xmp", ["animal/dog"])
    listed.scan()
    (folder.root / "2024/c.jpg.xmp").write_bytes(xml)
    folder.age(folder.root / "2024/c.jpg.xmp")
    listed.scan()
    assert tags_of_c(listed) == ["animal|dog", "sea"]
    state, _ = source(listed, "animal|dog")
    assert state == "found"
    without(folder, "2024/c.jpg.xmp", ["animal/dog"])
    listed.scan()
    listed.decisions.decide(ACCEPTED, Filters(photographs=["2024/c.jpg"], tags=["animal|dog"]))
    listed.write()
    assert tags_of_c(listed) == ["animal|dog", "sea"]
    assert (folder.root / "2024/c.jpg.xmp").read_text().count("animal/dog") == 1
    check_invariants(listed)


def test_a_rejection_here_outlives_another_program(listed, folder):
    """A program may write its own database over the sidecar."""
    listed.decisions.decide(REJECTED, Filters(photographs=["2024/c.jpg"], tags=["sea"]))
    xml = (folder.root / "2024/c.jpg.xmp").read_bytes()
    listed.write(remove=True)
    (folder.root / "2024/c.jpg.xmp").write_bytes(xml)
    listed.scan()
    assert source(listed, "sea")[0] == "rejected"


def test_an_accepted_tag_that_is_removed_elsewhere(listed, folder):
    listed.decisions.decide(ACCEPTED, Filters(photographs=["2024/c.jpg"], tags=["sun"]))
    listed.write()
    without(folder, "2024/c.jpg.xmp", ["sun"])
    listed.scan()
    assert tags_of_c(listed) == ["animal|dog", "sea"]
    assert source(listed, "sun")[0] == "rejected"
    assert listed.write().run is None


def test_a_written_tag_that_was_removed_elsewhere_and_accepted_again_is_written(listed, folder):
    sun = Filters(photographs=["2024/c.jpg"], tags=["sun"])
    listed.decisions.decide(ACCEPTED, sun)
    listed.write()
    for prefix in ("dc:subject", "lr:hierarchicalSubject", "digiKam:TagsList"):
        without(folder, "2024/c.jpg.xmp", ["sun"], prefix)
    listed.scan()
    assert listed.write().run is None
    listed.decisions.decide(ACCEPTED, sun)
    assert listed.write().n_written == 1
    assert tags_of_c(listed) == ["animal|dog", "sea", "sun"]


def test_undo_is_no_removal(listed, folder):
    listed.decisions.decide(ACCEPTED, Filters(photographs=["2024/c.jpg"], tags=["sun"]))
    listed.undo(listed.write().run)
    listed.scan()
    assert source(listed, "sun")[0] == "accepted"


@needs_fork
def test_a_scan_after_a_killed_undo_records_no_removal(catalogue, folder, tmp_path, lean):
    offer(catalogue)
    catalogue.decisions.decide(ACCEPTED, Filters(photographs=["b.jpg"], tags=["sea"]))
    catalogue.close()
    assert lean(n_scanned_after_kills, catalogue.path, folder.root, tmp_path / "written") > 10


def n_scanned_after_kills(path, root, backup):
    """How many kills of an undo a scan followed that knew whose change it saw."""
    sidecar = root / "b.jpg.xmp"
    before = sidecar.read_bytes()
    with open_catalogue(path, write=True) as catalogue:
        run = catalogue.write().run
        decided = decisions(catalogue)
    after = sidecar.read_bytes()
    shutil.copy(path, backup)

    def put():
        for old in path.parent.glob(f"{path.name}*"):
            old.unlink()
        shutil.copy(backup, path)
        sidecar.write_bytes(after)

    def undo():
        with open_catalogue(path, write=True) as catalogue:
            catalogue.undo(run)

    def check(n):
        with open_catalogue(path, write=True) as catalogue:
            catalogue.scan()
            assert decisions(catalogue) == decided
            if catalogue.runs.list_undoable([run]):
                catalogue.undo(run)
            catalogue.scan()
            assert decisions(catalogue) == decided
        assert sidecar.read_bytes() == before

    return kill_everywhere(undo, put, check, also=((Database, "transaction"),))


def test_a_sidecar_that_is_gone_or_unreadable_removes_nothing(listed, folder):
    path = folder.root / "2024/c.jpg.xmp"
    xml = path.read_bytes()
    path.write_bytes(xml[: len(xml) // 2])
    listed.scan()
    assert tags_of_c(listed) == ["animal|dog", "sea"]
    path.unlink()
    listed.scan()
    assert tags_of_c(listed) == []
    path.write_bytes(xml)
    listed.scan()
    assert tags_of_c(listed) == ["animal|dog", "sea"]
    assert listed.database.value("SELECT count(*) FROM decisions") == 0


def test_a_copy_that_still_has_the_tag_keeps_it(listed, folder):
    for end in ("", ".xmp"):
        shutil.copy2(folder.root / f"2024/c.jpg{end}", folder.root / f"2024/e.jpg{end}")
    listed.scan()
    without(folder, "2024/c.jpg.xmp", ["animal/dog"])
    listed.scan()
    assert tags_of_c(listed) == ["sea"]
    assert source(listed, "animal|dog", "2024/e.jpg")[0] == "found"


def test_sidecars_that_changed_places_remove_nothing(catalogue, folder, rescan):
    """Each photograph has the sidecar of the other now."""
    for name in ("a.jpg", "b.jpg"):
        (folder.root / name).rename(folder.root / f"{name}.away")
    (folder.root / "a.jpg.away").rename(folder.root / "b.jpg")
    (folder.root / "b.jpg.away").rename(folder.root / "a.jpg")
    rescan()
    assert catalogue.database.value("SELECT count(*) FROM decisions") == 0


@needs_exiftool
def test_a_removal_inside_the_photograph_waits_with_other_decisions(tmp_path):
    """The content is another one, and may be another photograph."""
    root = tmp_path / "photos"
    root.mkdir()
    (root / "a.jpg").write_bytes(saved(picture(), "JPEG"))
    with ExifTool() as exiftool, open_for_scan(root, tmp_path / "c.sqlite") as catalogue:
        program = LightroomInside(exiftool, root / "a.jpg")
        program.save({"animal|dog", "sea"})
        catalogue.scan()
        program.save({"sea"})
        assert catalogue.scan().to_confirm == ["a.jpg"]
        assert sorted(found_tags(catalogue)["a.jpg"]) == ["sea"]
        keep_decisions(catalogue)
        state, text = source(catalogue, "animal|dog", "a.jpg")
        assert state == "rejected"
        assert "lr:hierarchicalSubject, dc:subject and IPTC:Keywords, inside the phot" in text


# --- a tool that overwrites a list ---


def overwrite(folder, words):
    """Replace dc:subject, as `exiv2 -M"set Xmp.dc.subject XmpBag WORD"` does."""
    path = folder.root / "2024/c.jpg.xmp"
    head, rest = path.read_text().split("<dc:subject>")
    items = "".join(f"<rdf:li>{word}</rdf:li>" for word in words)
    tail = rest.split("</dc:subject>")[1]
    path.write_text(f"{head}<dc:subject><rdf:Bag>{items}</rdf:Bag></dc:subject>{tail}")
    folder.age(path)


def test_a_list_that_a_tool_overwrote_rejects_nothing_and_is_named_once(listed, folder):
    overwrite(folder, ["holiday"])
    assert listed.scan().overwritten == {"dc:subject": ["2024/c.jpg"]}
    assert tags_of_c(listed) == ["animal|dog", "holiday", "sea"]
    assert decisions(listed) == {}
    assert listed.scan().overwritten == {}
    listed.write(Filters(photographs=["2024/c.jpg"]), align=True)
    assert tags_of_c(listed) == ["animal|dog", "holiday", "sea"]
    check_invariants(listed)


def test_one_tag_of_two_that_is_replaced_is_removed(listed, folder):
    overwrite(folder, ["dog", "holiday"])
    assert listed.scan().overwritten == {}
    assert tags_of_c(listed) == ["animal|dog", "holiday"]
    assert source(listed, "sea")[0] == "rejected"


# --- case ---


@pytest.fixture
def in_two_cases(folder, catalogue):
    """c.jpg with Beach in one list and beach in another."""
    xml, _ = with_tags(None, ["beach", "sea"])
    path = folder.root / "2024/c.jpg.xmp"
    head, tail = xml.decode().split("<dc:subject>")
    path.write_text(f"{head}<dc:subject>{tail.replace('beach', 'Beach')}")
    folder.age(path)
    catalogue.scan()
    return catalogue


def test_a_tag_in_two_cases_that_is_removed_in_one_does_not_come_back(in_two_cases, folder):
    without(folder, "2024/c.jpg.xmp", ["beach"])
    in_two_cases.scan()
    assert tags_of_c(in_two_cases) == ["sea"]
    for align in (False, True):
        in_two_cases.write(Filters(photographs=["2024/c.jpg"]), align=align)
        in_two_cases.scan()
        assert tags_of_c(in_two_cases) == ["sea"]
    assert b"each" not in (folder.root / "2024/c.jpg.xmp").read_bytes()
    check_invariants(in_two_cases)


def test_a_rejected_tag_leaves_the_lists_in_every_case(in_two_cases, folder):
    only_c = Filters(photographs=["2024/c.jpg"], tags=["beach"])
    in_two_cases.decisions.decide(REJECTED, only_c)
    before = files(folder.root)
    run = in_two_cases.write(remove=True).run
    assert b"each" not in (folder.root / "2024/c.jpg.xmp").read_bytes()
    in_two_cases.undo(run)
    assert files(folder.root) == before


def test_a_tag_that_is_removed_and_accepted_in_another_case_has_one_decision(in_two_cases, folder):
    """The last one counts."""
    without(folder, "2024/c.jpg.xmp", ["beach"])
    in_two_cases.scan()
    filters = Filters(photographs=["2024/c.jpg"], tags=["BEACH"])
    in_two_cases.decisions.decide(ACCEPTED, filters)
    about = [v for (path, tag), v in decisions(in_two_cases).items() if tag.lower() == "beach"]
    assert about == [1]
    in_two_cases.write(remove=True, align=True)
    in_two_cases.scan()
    assert [tag.lower() for tag in tags_of_c(in_two_cases)] == ["beach", "sea"]


# --- Immich's rule ---


@pytest.mark.parametrize(
    ("photograph", "sidecar", "tags"),
    [
        ({}, {}, []),
        ({KEYWORDS: ["dog"]}, {}, ["dog"]),
        ({KEYWORDS: ["dog"], HIERARCHICAL: ["animal|dog", "AC/DC"]}, {}, ["animal/dog", "AC|DC"]),
        ({TAGS_LIST: ["a/b"], HIERARCHICAL: ["c"]}, {HIERARCHICAL: ["d"]}, ["a/b"]),
        ({TAGS_LIST: ["a/b"]}, {TAGS_LIST: ["a/c"]}, ["a/c"]),
    ],
)
def test_immichs_rule(photograph, sidecar, tags):
    assert immich_tags(photograph, sidecar) == tags
