"""A photograph with several files: every program that reads any of them sees its tags."""

import json

import pytest

from tagkin.catalogue import ACCEPTED, Filters
from tagkin.collection import read_keywords
from tagkin.collection.sidecars import ExifTool, tags_of
from tests.collection.sidecars.wrapped_exiftool import needs_exiftool
from tests.images.raw_writer import dng
from tests.images.synthetic import picture, saved

from .photographs import check_invariants, files, sidecar_text
from .suggested import offer
from .test_writing import times


def accept(catalogue, **tags):
    """Accept tags of photographs whose names are given without suffix."""
    for name, tag in tags.items():
        path = catalogue.database.value(
            "SELECT path FROM photographs WHERE path LIKE ?", (f"{name}.%",)
        )
        offer(catalogue, {path: {tag: 0.9}})
        catalogue.decisions.decide(ACCEPTED, Filters(tags=[tag], photographs=[path]))


def written(result):
    return {file.file: (file.is_new, file.is_embedded) for file in result.files}


@pytest.fixture
def both(folder, catalogue):
    """b.jpg with a sidecar of either name, and two tags that are accepted."""
    path = folder.root / "b.xmp"
    path.write_text(sidecar_text(["harbour"]))
    folder.age(path)
    catalogue.scan()
    accept(catalogue, b="animal|dog")
    return path


@needs_exiftool
def test_both_sidecars_get_the_tags_and_their_bytes_back(both, folder, catalogue):
    before, stamps = files(folder.root), times(folder.root)
    assert written(catalogue.write()) == dict.fromkeys(("b.jpg.xmp", "b.xmp"), (False, False))
    with ExifTool() as exiftool:
        for path in (both, folder.root / "b.jpg.xmp"):
            (fields,) = json.loads(exiftool.run("-j", "-XMP:all", str(path)))
            assert {*fields["Subject"]} == {"harbour", "beach", "dog"}
            assert {*fields["HierarchicalSubject"]} == {"harbour", "beach", "animal|dog"}
    assert catalogue.write().run is None
    assert [file.how for file in catalogue.undo().files] == ["restored", "restored"]
    assert (files(folder.root), times(folder.root)) == (before, stamps)
    check_invariants(catalogue)


def test_if_one_cannot_be_written_the_other_stays_as_it_was(both, folder, catalogue):
    both.write_text("<broken")
    before = files(folder.root)
    result = catalogue.write()
    assert (result.files, len(result.failures)) == ([], 1)
    assert "b.xmp: it is not well-formed" in result.failures[0].reason
    assert files(folder.root) == before
    both.write_text(sidecar_text([]))
    assert len(catalogue.write().files) == 2  # nothing was forgotten
    assert tags_of(both.read_bytes()) == ["animal|dog", "beach"]  # harbour was removed


def test_a_new_sidecar_repeats_the_tags_of_one_that_is_shared(folder, catalogue):
    """Programs that find img.jpg.xmp look no further."""
    folder.put("e.jpg", "e")
    folder.put("e.png", "another")
    (folder.root / "e.xmp").write_text(sidecar_text(["shared"]))
    catalogue.scan()
    path = catalogue.database.value("SELECT path FROM photographs WHERE path = 'e.jpg'")
    offer(catalogue, {path: {"sea": 0.9}})
    catalogue.decisions.decide(ACCEPTED, Filters(tags=["sea"], photographs=[path]))
    assert written(catalogue.write()) == {"e.jpg.xmp": (True, False)}
    assert tags_of((folder.root / "e.jpg.xmp").read_bytes()) == ["shared", "sea"]
    assert tags_of((folder.root / "e.xmp").read_bytes()) == ["shared"]


@pytest.fixture
def pairs(folder, catalogue):
    """A JPEG alone, with a RAW file, with a DNG file, and a RAW file alone, each with a tag."""
    jpeg, raw = saved(picture(), "JPEG"), dng(picture()[..., 0].astype("uint16"), b"")
    for name, data in (
        ("lone.jpg", jpeg),
        ("pair.jpg", jpeg + b"1"),
        ("pair.CR2", b"II*\0raw"),
        ("neg.jpg", jpeg + b"2"),
        ("neg.dng", raw),
        ("alone.nef", raw + b"3"),
    ):
        (folder.root / name).write_bytes(data)
    catalogue.scan()
    accept(catalogue, lone="sea", pair="dog", neg="beach", alone="holiday")
    return folder.root


@needs_exiftool
def test_embedding_gives_raw_files_a_sidecar(pairs, catalogue):
    before, stamps = files(pairs), times(pairs)
    result = catalogue.write(embed=True)
    assert result.failures == []
    assert written(result) == {
        "alone.xmp": (True, False),
        "lone.jpg": (False, True),
        "neg.dng": (False, True),
        "neg.jpg": (False, True),
        "pair.jpg": (False, True),
        "pair.xmp": (True, False),
    }
    for name, tag in (("lone", "sea"), ("pair", "dog"), ("neg", "beach")):
        assert read_keywords(pairs / f"{name}.jpg") == [tag]
    assert read_keywords(pairs / "neg.dng") == ["beach"]
    assert read_keywords(pairs / "pair.CR2") == ["dog"]
    assert read_keywords(pairs / "alone.nef") == ["holiday"]
    assert (pairs / "pair.CR2").read_bytes() == before["pair.CR2"]
    catalogue.scan()
    assert catalogue.write(embed=True).run is None
    catalogue.undo()
    assert (files(pairs), times(pairs)) == (before, stamps)


@needs_exiftool
def test_embedded_tags_also_go_into_existing_sidecars(folder, catalogue):
    """Programs that read the sidecar do not look into the photograph."""
    root = folder.root
    (root / "lone.jpg").write_bytes(saved(picture(), "JPEG"))
    for name in ("lone.jpg.xmp", "lone.xmp"):
        (root / name).write_text(sidecar_text(["theirs"]))
    catalogue.scan()
    accept(catalogue, lone="sea")
    before, stamps = files(root), times(root)
    assert written(catalogue.write(embed=True)) == {
        "lone.jpg": (False, True),
        "lone.jpg.xmp": (False, False),
        "lone.xmp": (False, False),
    }
    for name in ("lone.jpg.xmp", "lone.xmp"):
        assert tags_of((root / name).read_bytes()) == ["theirs", "sea"]
    catalogue.scan()
    assert catalogue.write(embed=True).run is None
    assert catalogue.undo().failures == []
    assert (files(root), times(root)) == (before, stamps)
    check_invariants(catalogue)


@needs_exiftool
def test_files_of_a_pair_are_found_where_they_were_moved(pairs, folder, catalogue):
    before = {name: data for name, data in files(pairs).items() if name.startswith("neg")}
    (pairs / "pair.CR2.xmp").write_text(sidecar_text(["theirs"]))
    before["pair.CR2.xmp"] = (pairs / "pair.CR2.xmp").read_bytes()
    catalogue.write(embed=True)
    for path in [*pairs.glob("neg*"), *pairs.glob("pair*")]:
        path.rename(pairs / "2024" / path.name)
    catalogue.scan()
    assert catalogue.undo().failures == []
    after = files(pairs / "2024")
    assert {name: after[name] for name in before} == before
