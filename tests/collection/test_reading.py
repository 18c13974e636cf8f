import json
import os
import shutil
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tagkin.collection import Collection, read_collection, read_tags
from tagkin.collection.tag_files import explain_found, find_tag_file
from tagkin.errors import InvalidInput
from tagkin.images import Failure
from tests.collection.matched import match_tags
from tests.privileges import without_privileges

XMP = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:subject><rdf:Bag>{}</rdf:Bag></dc:subject>
</rdf:Description></rdf:RDF></x:xmpmeta>"""


@pytest.fixture
def folder(tmp_path):
    """Three photographs, one of them in a folder of its own."""
    for name in ("a.jpg", "b.png", "trip/c.jpg"):
        path = tmp_path / "photos" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        Image.fromarray(np.full((8, 8, 3), 100, np.uint8)).save(path)
    return tmp_path / "photos"


def jsonl(path, rows):
    path.write_text("".join(json.dumps({"file_name": n, "tags": t}) + "\n" for n, t in rows))
    return path


def by_name(collection):
    return {
        file.rsplit("/", 1)[-1]: list(tags)
        for file, tags in zip(collection.files, collection.tags, strict=True)
    }


# --- tag files ---


def test_names_are_found_beside_the_tag_file_in_the_folder_and_alone(folder, tmp_path):
    rows = [("photos/a.jpg", ["x"]), ("b.png", ["y"]), ("c.jpg", ["z"]), ("gone.jpg", ["w"])]
    matched = match_tags(folder, jsonl(tmp_path / "tags.jsonl", rows))
    assert matched.tags == {"a.jpg": ["x"], "b.png": ["y"], "trip/c.jpg": ["z"]}
    assert matched.absent == ["gone.jpg"]
    part = match_tags(folder / "trip", jsonl(tmp_path / "other.jsonl", rows[:2]))
    assert part == ({}, [])


def test_a_bare_name_that_several_photographs_have_is_not_guessed(folder, tmp_path):
    (folder / "other").mkdir()
    (folder / "other" / "c.jpg").write_bytes((folder / "trip" / "c.jpg").read_bytes())
    rows = [("c.jpg", ["z"]), ("other/c.jpg", ["w"])]
    matched = match_tags(folder, jsonl(tmp_path / "tags.jsonl", rows))
    assert matched == ({"other/c.jpg": ["w"]}, ["c.jpg"])


def test_two_ways_to_name_a_photograph_put_its_tags_together(folder, tmp_path):
    (folder / "a.CR2").write_bytes(b"II*\0")
    rows = [("photos/a.jpg", ["x"]), (str(folder / "a.jpg"), ["x", "y"]), ("a.CR2", ["z"])]
    matched = match_tags(folder, jsonl(tmp_path / "tags.jsonl", rows))
    assert matched == ({"a.jpg": ["x", "y", "z"]}, [])


def test_names_as_other_systems_write_them_are_found(folder, tmp_path):
    """With the separators of Windows, and with letters as macOS or others compose them."""
    for form, name in (("NFD", "été.jpg"), ("NFC", "ötz.jpg")):
        path = folder / "trip" / unicodedata.normalize(form, name)
        path.write_bytes((folder / "a.jpg").read_bytes())
    rows = [
        ("trip\\c.jpg", ["x"]),
        ("trip/" + unicodedata.normalize("NFC", "été.jpg"), ["y"]),
        (unicodedata.normalize("NFD", "ötz.jpg"), ["z"]),
    ]
    matched = match_tags(folder, jsonl(tmp_path / "tags.jsonl", rows))
    assert not matched.absent
    assert sorted(tag for row in matched.tags.values() for tag in row) == ["x", "y", "z"]


def test_names_from_one_folder_up_are_found(folder):
    table = folder / "metadata.csv"
    table.write_text("file_name,tags\nphotos/a.jpg,sea\nphotos/trip/c.jpg,\n./b.png,boat\n")
    matched = match_tags(folder, table)
    assert matched == ({"a.jpg": ["sea"], "b.png": ["boat"], "trip/c.jpg": []}, [])


def test_a_tag_file_of_other_photographs_is_an_error(folder, tmp_path):
    tags = jsonl(tmp_path / "tags.jsonl", [("p.jpg", ["x"]), ("q.jpg", ["x"])])
    with pytest.raises(InvalidInput, match=r"None of the 2 photographs.*p\.jpg, q\.jpg"):
        match_tags(folder, tags)


@pytest.mark.parametrize("content", ["id,size\n1,2\n", "file_name,colour\na.jpg,red\n", ""])
def test_a_file_that_nobody_named_and_the_way_out(content, folder):
    (folder / "metadata.csv").write_text(content)
    path = find_tag_file(folder)
    with pytest.raises(InvalidInput, match=r'metadata\.csv.* tags="embedded"'), explain_found():
        read_tags(path)


def test_of_two_files_with_tags_one_must_be_named(folder):
    assert find_tag_file(folder) is None
    (folder / "metadata.csv").write_text("file_name,tags\na.jpg,x\n")
    jsonl(folder / "metadata.jsonl", [("a.jpg", ["y"])])
    with pytest.raises(InvalidInput, match=r'several tag files.* tags="embedded"'):
        find_tag_file(folder)


# --- keywords ---


def test_the_photographs_own_keywords_are_read(folder):
    (folder / "a.xmp").write_text(XMP.format("<rdf:li>sea</rdf:li><rdf:li>boat</rdf:li>"))
    collection = read_collection(folder)
    assert by_name(collection) == {"a.jpg": ["sea", "boat"], "b.png": [], "c.jpg": []}
    assert (collection.n_tagged, len(collection)) == (1, 3)
    assert len(collection.tagged()) == 1
    assert len(collection.untagged()) == 2


def test_the_tag_file_of_a_folder_is_read_too(folder):
    (folder / "a.xmp").write_text(XMP.format("<rdf:li>sea</rdf:li>"))
    jsonl(folder / "metadata.jsonl", [("a.jpg", ["boat", "sea"]), ("trip/c.jpg", ["beach"])])
    read = by_name(read_collection(folder))
    assert read == {"a.jpg": ["boat", "sea"], "b.png": [], "c.jpg": ["beach"]}
    read = by_name(read_collection(folder, tags="embedded"))
    assert read == {"a.jpg": ["sea"], "b.png": [], "c.jpg": []}
    (folder / "metadata.jsonl").rename(folder / "mine.jsonl")
    read = by_name(read_collection(folder, tags="mine.jsonl"))
    assert read == {"a.jpg": ["boat", "sea"], "b.png": [], "c.jpg": ["beach"]}


def test_one_bad_file_is_that_files_failure(folder, open_folder):
    """Closed, not to be entered, a pipe, a TIFF that leads nowhere: the others are still read."""
    photos = shutil.copytree(folder, open_folder / "photos")
    for name in ("a.jpg", "trip/c.jpg"):
        (photos / f"{name}.xmp").write_text(XMP.format("<rdf:li>sea</rdf:li>"))
    (photos / "shut").mkdir()
    for name in ("closed.jpg", "side.jpg", "shut/in.jpg"):
        shutil.copy(photos / "a.jpg", photos / name)
    (photos / "side.xmp").write_text(XMP.format("<rdf:li>boat</rdf:li>"))
    (photos / "big.tif").write_bytes(b"II+\0\x08\0\0\0" + b"\xff" * 7 + b"\x7f")
    os.mkfifo(photos / "pipe.jpg")
    for name, mode in (("closed.jpg", 0), ("side.xmp", 0), ("shut", 0o444)):
        (photos / name).chmod(mode)
    reasons = {
        "closed.jpg": "permission denied",
        "pipe.jpg": "not a regular file",
        "shut/in.jpg": "permission denied",
        "side.xmp": "permission denied",
    }
    with without_privileges():
        collection = read_collection(photos)
    assert set(collection.failures) >= {Failure(str(photos / n), r) for n, r in reasons.items()}
    assert {Path(failure.file).name for failure in collection.failures} == {
        Path(n).name for n in reasons
    }
    names = ("a.jpg", "b.png", "big.tif", "c.jpg", "closed.jpg", "in.jpg", "side.jpg")
    assert by_name(collection) == {n: ["sea"] if n in ("a.jpg", "c.jpg") else [] for n in names}


def test_a_photograph_and_its_raw_file_are_one(folder):
    for name in ("a.CR2", "trip/c.dng"):
        (folder / name).write_bytes(b"II*\0")
    (folder / "a.jpg.xmp").write_text(XMP.format("<rdf:li>sea</rdf:li>"))
    (folder / "a.CR2.xmp").write_text(XMP.format("<rdf:li>boat</rdf:li>"))
    collection = read_collection(folder)
    assert by_name(collection) == {"a.jpg": ["sea", "boat"], "b.png": [], "c.jpg": []}


def test_nothing_there_is_a_clear_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="No photograph in"):
        read_collection(tmp_path / "empty")
    with pytest.raises(InvalidInput, match="2 photographs and 1 lists"):
        Collection(["a", "b"], [["x"]])
