"""A write is found again by its mark in the file, whatever names photographs have by then."""

import subprocess

import pytest
from PIL import Image, ImageEnhance
from sklearn.datasets import load_sample_image

from tagkin import Annotator
from tagkin.catalogue import ACCEPTED, Filters
from tagkin.catalogue.edits import confirm_edits
from tagkin.collection import read_keywords
from tagkin.collection.sidecars import tags_of
from tagkin.features import FeatureCache
from tests.catalogue.photographs import check_invariants, files, sidecar_text
from tests.catalogue.suggested import decisions
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.images.synthetic import picture, saved


def accept(catalogue, tag, *paths):
    return catalogue.decisions.decide(ACCEPTED, Filters(photographs=list(paths), tags=[tag])).run


def move(root, old, new):
    """Rename a photograph with its sidecar."""
    for end in ("", ".xmp"):
        if (root / f"{old}{end}").exists():
            (root / f"{old}{end}").rename(root / f"{new}{end}")


def delete(root, name):
    for end in ("", ".xmp"):
        (root / f"{name}{end}").unlink(missing_ok=True)


@pytest.fixture
def numbered(catalogue, folder, rescan):
    """Photographs 0 to 3, of which 2 has a sidecar of its own with beach."""
    for n in range(4):
        folder.put(f"{n}.jpg", f"picture {n}", ["beach"] if n == 2 else None)
    rescan()
    return folder.root


# --- a person's tag --------------------------------------------------------------------------


@pytest.mark.parametrize("scan_often", [True, False])
@pytest.mark.parametrize("is_new", [True, False])
def test_the_sidecar_of_another_photograph_keeps_its_tag(
    catalogue, numbered, folder, rescan, scan_often, is_new
):
    accept(catalogue, "beach", "3.jpg")
    run = catalogue.write().run
    delete(numbered, "3.jpg")
    if scan_often:
        rescan()
    if is_new:
        folder.put("3.jpg", "another picture", ["beach"])
    else:
        move(numbered, "2.jpg", "3.jpg")
    rescan()
    before = files(numbered)
    undone = catalogue.undo(run)
    assert files(numbered) == before
    assert tags_of(before["3.jpg.xmp"]) == ["beach"]
    assert (undone.run, [file.file for file in undone.files]) == (None, [])
    assert ["3.jpg" in failure.file for failure in undone.failures] == [True]


def test_only_values_that_the_mark_names_are_removed(catalogue, numbered, folder):
    """Somebody took the sidecar away and made another one with the same tag."""
    accept(catalogue, "beach", "3.jpg")
    run = catalogue.write().run
    (numbered / "3.jpg.xmp").write_text(sidecar_text(["beach"]))
    before = files(numbered)
    assert len(catalogue.undo(run).failures) == 1
    assert files(numbered) == before


# --- names that shift ------------------------------------------------------------------------


@pytest.mark.parametrize("own", [True, False])
def test_names_that_shift_are_moves_and_every_file_is_put_back(
    catalogue, numbered, folder, rescan, own
):
    if own:
        for n in range(4):
            folder.tag(f"{n}.jpg", [f"own {n}"])
        rescan()
    before = files(numbered)
    accept(catalogue, "sea", *(f"{n}.jpg" for n in range(4)))
    catalogue.write()
    for n in (3, 2, 1, 0):
        move(numbered, f"{n}.jpg", f"{n + 1}.jpg")
    scan = rescan()
    assert sorted(scan.moved) == [(f"{n}.jpg", f"{n + 1}.jpg") for n in range(4)]
    assert (scan.copied, scan.gone, scan.edited, scan.added) == ([], [], [], [])
    undone = catalogue.undo()
    assert {file.how for file in undone.files} <= {"restored", "removed"}
    assert (len(undone.files), undone.failures) == (4, [])
    for n in range(4):
        move(numbered, f"{n + 1}.jpg", f"{n}.jpg")
    assert files(numbered) == before
    check_invariants(catalogue)


@needs_exiftool
@pytest.mark.parametrize("with_backups", [True, False])
def test_names_of_photographs_with_tags_inside_that_shift(catalogue, folder, rescan, with_backups):
    root = folder.root
    for n in range(3):
        (root / f"{n}.jpg").write_bytes(saved(picture(20 + 8 * n), "JPEG"))
    rescan()
    before = files(root)
    accept(catalogue, "sea", *(f"{n}.jpg" for n in range(3)))
    catalogue.write(embed=True)
    ends = ("", "_original") if with_backups else ("",)
    for n in (2, 1, 0):
        for end in ends:
            (root / f"{n}.jpg{end}").rename(root / f"{n + 1}.jpg{end}")
    scan = rescan()
    assert sorted(scan.moved) == [(f"{n}.jpg", f"{n + 1}.jpg") for n in range(3)]
    assert (scan.copied, scan.gone, scan.added) == ([], [], [])
    undone = catalogue.undo()
    assert ([file.how for file in undone.files], undone.failures) == (["restored"] * 3, [])
    for n in range(3):
        (root / f"{n + 1}.jpg").rename(root / f"{n}.jpg")
    assert files(root) == before


# --- what is not there -----------------------------------------------------------------------


def test_a_sidecar_that_moved_without_a_scan_is_not_counted_as_restored(
    catalogue, numbered, folder, rescan
):
    before = files(numbered)
    accept(catalogue, "sea", "0.jpg")
    run = catalogue.write().run
    move(numbered, "0.jpg", "x.jpg")
    folder.put("0.jpg", "a new picture")
    undone = catalogue.undo(run)
    assert (undone.run, undone.files, len(undone.failures)) == (None, [], 1)
    assert tags_of((numbered / "x.jpg.xmp").read_bytes()) == ["sea"]
    rescan()
    assert [file.how for file in catalogue.undo(run).files] == ["removed"]
    (numbered / "x.jpg").rename(numbered / "0.jpg")
    assert files(numbered) == before


def test_files_that_are_away_and_come_back_can_still_be_undone(
    catalogue, numbered, folder, rescan, tmp_path
):
    before = files(numbered)
    first = accept(catalogue, "dog", "1.jpg")
    accept(catalogue, "sea", "0.jpg")
    run = catalogue.write(Filters(photographs=["0.jpg"])).run
    away = tmp_path / "away"
    away.mkdir()
    for name in ("0.jpg", "0.jpg.xmp"):
        (numbered / name).rename(away / name)
    rescan()
    undone = catalogue.undo(run)
    assert (undone.run, [file.how for file in undone.files]) == (None, ["gone"])
    assert catalogue.runs.get(run).undone_by is None
    # the next undo is of an earlier run, and the write can be undone by its number
    assert catalogue.undo().undoes.what == "accept"
    for name in ("0.jpg", "0.jpg.xmp"):
        (away / name).rename(numbered / name)
    rescan()
    assert [file.how for file in catalogue.undo(run).files] == ["removed"]
    assert files(numbered) == before
    assert first


def test_a_sidecar_left_behind_gives_its_photograph_no_tags(catalogue, numbered, folder, rescan):
    accept(catalogue, "sea", "2.jpg")
    run = catalogue.write().run
    (numbered / "2.jpg").rename(numbered / "x.jpg")
    rescan()
    assert [file.how for file in catalogue.undo(run).files] == ["restored"]
    tags = "SELECT t.name FROM found f JOIN tags t ON t.id = f.tag JOIN photographs p "
    rows = catalogue.database.rows(tags + "ON p.id = f.photograph WHERE p.path = 'x.jpg'")
    assert rows == []


# --- another photograph under the name -------------------------------------------------------


@pytest.mark.parametrize("scan_often", [True, False])
def test_another_photograph_gets_no_tag_after_a_scan(
    catalogue, numbered, folder, rescan, scan_often
):
    accept(catalogue, "beach", "3.jpg")
    if scan_often:
        (numbered / "3.jpg").unlink()
        rescan()
    folder.put("3.jpg", "another picture")
    scan = rescan()
    before = files(numbered)
    assert catalogue.write().n_written == 0
    assert files(numbered) == before
    assert ("3.jpg", "beach") not in decisions(catalogue)
    if not scan_often:
        assert scan.edited == ["3.jpg"]
    assert catalogue.status().to_confirm == ["3.jpg"]
    accept(catalogue, "beach", "3.jpg")
    assert catalogue.status().to_confirm == []
    assert catalogue.write().n_written == 1


@needs_exiftool
def test_tags_inside_are_undone_by_their_mark(catalogue, folder, rescan):
    """Somebody adds a keyword; what the mark names goes, and nothing else."""
    path = folder.root / "2024/d.jpg"
    path.write_bytes(saved(picture(), "JPEG"))
    rescan()
    accept(catalogue, "sea", "2024/d.jpg")
    run = catalogue.write(embed=True).run
    command = ["exiftool", "-config", "", "-q", "-overwrite_original"]
    subprocess.run([*command, "-XMP-dc:Subject+=mine", str(path)], check=True)
    assert [file.how for file in catalogue.undo(run).files] == ["untagged"]
    assert read_keywords(path) == ["mine"]


@pytest.mark.parametrize("is_same", [True, False])
def test_decisions_on_an_edited_photograph_are_kept_if_it_shows_the_same(
    catalogue, folder, rescan, is_same, tmp_path
):
    names = ("china.jpg", "flower.jpg")
    first, second = (Image.fromarray(load_sample_image(name)) for name in names)
    path = folder.root / "photo.jpg"
    first.save(path, quality=95)
    rescan()
    accept(catalogue, "sea", "photo.jpg")
    annotator = Annotator(cache=FeatureCache(tmp_path / "cache"))
    annotator.read_features([str(path)])
    edited = first.crop((10, 10, first.width - 10, first.height - 10)) if is_same else second
    ImageEnhance.Brightness(edited).enhance(1.2).save(path, quality=80)
    assert rescan().to_confirm == ["photo.jpg"]
    assert confirm_edits(catalogue.database, annotator) == is_same
    assert catalogue.write().to_confirm == ([] if is_same else ["photo.jpg"])
    assert path.with_name("photo.jpg.xmp").exists() == is_same
    check_invariants(catalogue)
