import json
import os
import shutil
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tagkin.collection import Collection, read_collection
from tagkin.errors import InvalidInput
from tagkin.images import Failure
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


def test_names_are_found_beside_the_tag_file_in_the_folders_and_alone(folder, tmp_path):
    rows = [("photos/a.jpg", ["x"]), ("b.png", ["y"]), ("c.jpg", ["z"]), ("gone.jpg", ["w"])]
    collection = read_collection([folder], jsonl(tmp_path / "tags.jsonl", rows))
    assert by_name(collection) == {"a.jpg": ["x"], "b.png": ["y"], "c.jpg": ["z"]}
    assert collection.absent == ["gone.jpg"]
    assert collection.n_tagged == 3
    few = read_collection([folder / "b.png"], tmp_path / "tags.jsonl")
    assert (by_name(few), few.absent) == ({"b.png": ["y"]}, ["c.jpg", "gone.jpg"])
    part = read_collection([folder / "trip"], jsonl(tmp_path / "other.jsonl", rows[:2]))
    assert (by_name(part), part.absent) == ({"c.jpg": []}, [])


def test_a_bare_name_that_several_photographs_have_is_not_guessed(folder, tmp_path):
    (folder / "other").mkdir()
    (folder / "other" / "c.jpg").write_bytes((folder / "trip" / "c.jpg").read_bytes())
    rows = [("c.jpg", ["z"]), ("other/c.jpg", ["w"])]
    collection = read_collection([folder], jsonl(tmp_path / "tags.jsonl", rows))
    assert collection.absent == ["c.jpg"]
    assert sum(map(bool, collection.tags)) == 1


def test_two_ways_to_name_a_photograph_put_its_tags_together(folder, tmp_path):
    rows = [("photos/a.jpg", ["x"]), (str(folder / "a.jpg"), ["x", "y"])]
    collection = read_collection([folder], jsonl(tmp_path / "tags.jsonl", rows))
    assert by_name(collection)["a.jpg"] == ["x", "y"]


def test_a_tag_file_without_photographs_is_said(folder, tmp_path):
    with pytest.raises(InvalidInput, match=r"tags\.jsonl names no photograph"):
        read_collection([folder], jsonl(tmp_path / "tags.jsonl", []))


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
    collection = read_collection([folder], jsonl(tmp_path / "tags.jsonl", rows))
    assert not collection.absent
    assert sorted(tag for row in collection.tags for tag in row) == ["x", "y", "z"]


def test_tags_of_a_file_come_before_the_keywords_in_photographs(folder):
    path = jsonl(folder / "metadata.jsonl", [("a.jpg", ["x"]), ("b.png", ["y"]), ("gone.jpg", [])])
    (folder / "a.xmp").write_text(XMP.format("<rdf:li>sea</rdf:li><rdf:li>x</rdf:li>"))
    for tags in (path, None):
        collection = read_collection([folder], tags)
        assert by_name(collection) == {"a.jpg": ["x", "sea"], "b.png": ["y"], "c.jpg": []}
        assert collection.absent == ["gone.jpg"]
    collection = read_collection([folder], "embedded")
    assert by_name(collection) == {"a.jpg": ["sea", "x"], "b.png": [], "c.jpg": []}
    assert collection.absent == []


def test_names_from_one_folder_up_are_found(folder):
    table = folder / "metadata.csv"
    table.write_text("file_name,tags\nphotos/a.jpg,sea\nphotos/trip/c.jpg,\n./b.png,boat\n")
    collection = read_collection([folder], table)
    assert by_name(collection) == {"a.jpg": ["sea"], "b.png": ["boat"], "c.jpg": []}
    assert not collection.absent


@pytest.mark.parametrize(
    "content",
    [
        "id,size\n1,2\n",
        "file_name,colour\na.jpg,red\n",
        "",
        "file_name,tags\n",
        "file_name,tags\nsong.wav,loud\n",
    ],
)
def test_a_file_without_tags_is_an_error(content, folder):
    (folder / "metadata.csv").write_text(content)
    with pytest.raises(InvalidInput, match=r"metadata\.csv"):
        read_collection([folder], folder / "metadata.csv")
    with pytest.raises(InvalidInput, match=r'metadata\.csv.* tags="embedded"'):
        read_collection([folder])
    assert len(read_collection([folder], "embedded")) == 3


def test_of_two_files_with_tags_one_must_be_named(folder):
    (folder / "metadata.csv").write_text("file_name,tags\na.jpg,x\n")
    jsonl(folder / "metadata.jsonl", [("a.jpg", ["y"])])
    with pytest.raises(InvalidInput, match=r'several tag files.* tags="embedded"'):
        read_collection([folder])
    assert by_name(read_collection([folder], folder / "metadata.csv"))["a.jpg"] == ["x"]


def test_without_a_file_the_photographs_own_keywords_are_read(folder):
    (folder / "a.xmp").write_text(XMP.format("<rdf:li>sea</rdf:li><rdf:li>boat</rdf:li>"))
    seen = []
    collection = read_collection([folder], progress=lambda *at: seen.append(at))
    assert by_name(collection) == {"a.jpg": ["sea", "boat"], "b.png": [], "c.jpg": []}
    assert seen[-1] == ("Reading keywords", 3, 3)
    assert len(collection.tagged()) == 1
    assert len(collection.untagged()) == 2


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
        "pipe.jpg": "not a regular file but a pipe, a socket or a device",
        "shut/in.jpg": "permission denied",
        "side.xmp": "permission denied",
    }
    with without_privileges():
        collection = read_collection([photos, photos / "pipe.jpg"])
        shut = read_collection([photos / "a.jpg", photos / "shut"])
    assert set(collection.failures) >= {Failure(str(photos / n), r) for n, r in reasons.items()}
    assert {Path(failure.file).name for failure in collection.failures} == {
        Path(n).name for n in reasons
    }
    names = ("a.jpg", "b.png", "big.tif", "c.jpg", "closed.jpg", "in.jpg", "pipe.jpg", "side.jpg")
    assert by_name(collection) == {n: ["sea"] if n in ("a.jpg", "c.jpg") else [] for n in names}
    assert [Path(failure.file).name for failure in shut.failures] == ["in.jpg"]


def test_a_place_that_cannot_be_read_is_skipped_unless_it_is_all_there_is(folder):
    (folder / "self").symlink_to(folder / "self")
    collection = read_collection([folder / "a.jpg", folder / "self"])
    assert collection.files == [str(folder / "a.jpg")]
    assert collection.failures == [
        Failure(str(folder / "self"), "a link that leads back to itself")
    ]
    with pytest.raises(InvalidInput, match=r"No photograph in .*self: a link that leads back"):
        read_collection([folder / "self"])


def test_a_photograph_and_its_raw_file_are_one(folder, tmp_path):
    """Tags of both are its tags, whether they stand in sidecars or in a tag file."""
    for name in ("a.CR2", "trip/c.dng"):
        (folder / name).write_bytes(b"II*\0")
    (folder / "a.jpg.xmp").write_text(XMP.format("<rdf:li>sea</rdf:li>"))
    (folder / "a.CR2.xmp").write_text(XMP.format("<rdf:li>boat</rdf:li>"))
    collection = read_collection([folder])
    assert by_name(collection) == {"a.jpg": ["sea", "boat"], "b.png": [], "c.jpg": []}
    pairs = {"a.CR2": "a.jpg", "trip/c.dng": "trip/c.jpg"}
    assert collection.raw_of == {
        str(folder / raw): str(folder / photo) for raw, photo in pairs.items()
    }
    assert not collection.unread_raw
    rows = [("photos/a.CR2", ["x"]), ("photos/a.jpg", ["y"])]
    named = read_collection([folder], jsonl(tmp_path / "tags.jsonl", rows))
    assert by_name(named)["a.jpg"] == ["x", "y", "sea", "boat"]
    assert not named.absent


def test_raw_files_that_cannot_be_read_are_counted(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "rawpy", None)
    for name in ("x.CR2", "y.dng"):
        (folder / name).write_bytes(b"II*\0")
    collection = read_collection([folder])
    assert len(collection) == 3
    assert sorted(collection.unread_raw) == [str(folder / "x.CR2"), str(folder / "y.dng")]
    for name in ("a.jpg", "b.png", "trip/c.jpg"):
        (folder / name).unlink()
    with pytest.raises(InvalidInput, match=r"Found 2 raw files; they need pip install rawpy"):
        read_collection([folder])


def test_nothing_there_is_a_clear_error(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="No photograph in"):
        read_collection([tmp_path / "empty"])
    tags = jsonl(tmp_path / "tags.jsonl", [("p.jpg", ["x"]), ("q.jpg", ["x"])])
    with pytest.raises(InvalidInput, match=r"None of the 2 photographs.*p\.jpg, q\.jpg"):
        read_collection([folder], tags)
    with pytest.raises(InvalidInput, match="2 photographs and 1 lists"):
        Collection(["a", "b"], [["x"]])
