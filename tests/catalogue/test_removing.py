"""Rejected tags leave files when asked, and undo brings them back."""

import contextlib
import itertools
import json

import pytest

from tagkin.catalogue import ACCEPTED, REJECTED, Filters, open_for_scan
from tagkin.collection import read_keywords
from tagkin.collection.sidecars import provenance_of, tags_of
from tests.catalogue.photographs import check_invariants, files, found_tags
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.images.synthetic import picture, saved


def decide(catalogue, verdict, photograph, *tags):
    filters = Filters(photographs=[photograph], tags=list(tags))
    return catalogue.decisions.decide(verdict, filters).run


def tags_in(folder, name="a.jpg.xmp"):
    return tags_of((folder.root / name).read_bytes())


def test_a_rejected_tag_leaves_the_sidecar_when_asked_and_undo_brings_it_back(catalogue, folder):
    before = files(folder.root)
    time = (folder.root / "a.jpg.xmp").stat().st_mtime_ns
    decide(catalogue, REJECTED, "a.jpg", "beach")
    assert catalogue.write().files == []
    assert files(folder.root) == before
    (planned,) = catalogue.write(remove=True, dry_run=True).files
    assert (planned.file, planned.removed, list(planned.tags)) == ("a.jpg.xmp", ["beach"], [])
    assert files(folder.root) == before
    result = catalogue.write(remove=True)
    assert (result.n_written, result.n_removed, result.failures) == (1, 1, [])
    assert tags_in(folder) == ["sea"]
    assert "beach" not in found_tags(catalogue)["a.jpg"]
    assert catalogue.write(remove=True).files == []
    catalogue.undo(result.run)
    assert files(folder.root) == before
    assert (folder.root / "a.jpg.xmp").stat().st_mtime_ns == time
    assert "beach" in found_tags(catalogue)["a.jpg"]
    assert catalogue.write(remove=True, dry_run=True).n_removed == 1
    check_invariants(catalogue)


def test_a_rejection_that_is_undone_meanwhile_removes_nothing(catalogue, folder):
    before = files(folder.root)
    decide(catalogue, REJECTED, "a.jpg", "beach")

    def undo_at_the_first(what, done, total):
        if done == 0:
            catalogue.decisions.undo_last()

    result = catalogue.write(remove=True, progress=undo_at_the_first)
    assert (result.n_written, result.failures) == (0, [])
    assert files(folder.root) == before


def test_what_somebody_wrote_since_stays_and_the_tag_comes_back(catalogue, folder):
    decide(catalogue, ACCEPTED, "a.jpg", "animal|dog")
    catalogue.write()
    path = folder.root / "a.jpg.xmp"
    (record,) = provenance_of(path.read_bytes())
    decide(catalogue, REJECTED, "a.jpg", "animal|dog", "sea")
    run = catalogue.write(remove=True).run
    assert tags_in(folder) == ["beach"]
    assert provenance_of(path.read_bytes()) == []
    path.write_bytes(path.read_bytes().replace(b"<rdf:Bag>", b"<rdf:Bag><rdf:li>mine</rdf:li>", 1))
    (undone,) = catalogue.undo(run).files
    assert undone.how == "untagged"
    assert set(tags_in(folder)) == {"animal|dog", "beach", "sea", "mine"}
    assert provenance_of(path.read_bytes()) == [record]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_runs_are_undone_to_the_byte_in_any_order(catalogue, folder, order):
    before = files(folder.root)
    decide(catalogue, ACCEPTED, "a.jpg", "dog")
    runs = [catalogue.write().run]
    decide(catalogue, REJECTED, "a.jpg", "beach", "dog")
    runs.append(catalogue.write(remove=True).run)
    decide(catalogue, ACCEPTED, "a.jpg", "holiday")
    runs.append(catalogue.write().run)
    assert set(tags_in(folder)) == {"sea", "holiday"}
    for n in order:
        undone = catalogue.undo(runs[n])
        assert not undone.failures
        assert not any("somebody" in file.said for file in undone.files)
    assert files(folder.root) == before
    check_invariants(catalogue)


def test_a_write_is_undone_after_the_removal_of_its_tag(catalogue, folder):
    decide(catalogue, ACCEPTED, "a.jpg", "dog")
    write = catalogue.write().run
    decide(catalogue, REJECTED, "a.jpg", "dog")
    removal = catalogue.write(remove=True).run
    path = folder.root / "a.jpg.xmp"
    path.write_bytes(path.read_bytes() + b"\n")
    assert len(catalogue.undo(write).failures) == 1  # its mark was removed with the tag
    catalogue.undo(removal)
    assert set(tags_in(folder)) == {"beach", "sea", "dog"}
    catalogue.undo(write)
    assert set(tags_in(folder)) == {"beach", "sea"}


def test_a_tag_that_was_removed_and_accepted_again_is_written_again(catalogue, folder):
    decide(catalogue, ACCEPTED, "a.jpg", "dog")
    catalogue.write()
    decide(catalogue, REJECTED, "a.jpg", "dog")
    catalogue.write(remove=True)
    decide(catalogue, ACCEPTED, "a.jpg", "dog")
    catalogue.write(remove=True)
    assert set(tags_in(folder)) == {"beach", "sea", "dog"}


def test_a_removed_tag_that_somebody_put_back_stays(catalogue, folder, rescan):
    decide(catalogue, REJECTED, "a.jpg", "beach")
    catalogue.write(remove=True)
    folder.tag("a.jpg", ["beach"])
    rescan()
    assert catalogue.write(remove=True).files == []
    decide(catalogue, REJECTED, "a.jpg", "beach")
    assert catalogue.write(remove=True).n_removed == 1


@pytest.mark.parametrize("program", ["rejected", "finished", "on a page", "imported"])
def test_a_tag_that_somebody_adds_after_it_was_rejected_stays(
    catalogue, folder, rescan, tmp_path, program
):
    photograph = Filters(photographs=["2024/d.jpg"], tags=["dog"])
    content, tag = catalogue.photographs.content_of("2024/d.jpg"), catalogue.tags.find(["dog"])[0]
    if program in ("rejected", "imported"):
        catalogue.decisions.decide(REJECTED, photograph)
    elif program == "finished":
        catalogue.completeness.finish(photograph)
    else:
        catalogue.decisions.decide_pairs(rejected=[(content, tag)])
    folder.tag("2024/d.jpg", ["dog"])
    rescan()
    with contextlib.ExitStack() as stack:
        if program == "imported":
            exported = list(map(json.dumps, catalogue.export_lines()))
            new = open_for_scan(folder.root, tmp_path / "new.sqlite")
            catalogue = stack.enter_context(new)
            catalogue.scan()
            assert catalogue.import_lines(exported).decisions == 1
        assert catalogue.status().n_to_remove == 0
        assert catalogue.write(remove=True).files == []
        assert tags_in(folder, "2024/d.jpg.xmp") == ["dog"]
        decide(catalogue, REJECTED, "2024/d.jpg", "dog")  # again, now that it is there
        assert catalogue.write(remove=True).n_removed == 1
        assert tags_in(folder, "2024/d.jpg.xmp") == []


def test_a_page_can_reject_a_tag_again_after_somebody_added_it(catalogue, folder, rescan):
    pair = catalogue.photographs.content_of("2024/d.jpg"), catalogue.tags.find(["dog"])[0]
    assert catalogue.decisions.decide_pairs(rejected=[pair]).run is not None
    assert catalogue.decisions.decide_pairs(rejected=[pair]).run is None
    folder.tag("2024/d.jpg", ["dog"])
    rescan()
    assert catalogue.decisions.decide_pairs(rejected=[pair]).run is not None
    assert catalogue.write(remove=True).n_removed == 1


@needs_exiftool
def test_a_tag_just_embedded_is_removed_after_a_rejection(catalogue, folder, rescan):
    path = folder.root / "2024/d.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    rescan()
    decide(catalogue, ACCEPTED, "2024/d.jpg", "sea")
    catalogue.write(embed=True)
    decide(catalogue, REJECTED, "2024/d.jpg", "sea")  # no scan found it in the photograph yet
    rescan()
    assert catalogue.write(remove=True, embed=True).n_removed == 1
    assert read_keywords(path) == []


@needs_exiftool
def test_out_of_the_photograph_with_embed(catalogue, folder, rescan):
    path = folder.root / "2024/d.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    rescan()
    decide(catalogue, ACCEPTED, "2024/d.jpg", "animal|dog", "sea")
    catalogue.write(embed=True)
    rescan()
    before = files(folder.root)
    decide(catalogue, REJECTED, "2024/d.jpg", "animal|dog")
    assert catalogue.write(remove=True).files == []
    assert files(folder.root) == before
    run = catalogue.write(remove=True, embed=True).run
    assert read_keywords(path) == ["sea"]
    catalogue.undo(run)
    assert files(folder.root) == before
