"""Where the photographs of a model are."""

import os
import shutil
from pathlib import Path

import pytest
from PIL import Image

import tagkin
from tagkin import Annotator
from tagkin.annotator.suggestions import join_root, split_root
from tagkin.images import content_digest

from .conftest import VOTING, SyntheticPhotographs, seen

N = 12


@pytest.fixture
def annotator(tmp_path):
    folder = tmp_path / "Pictures"
    for i in range(N):
        path = folder / ("spring", "summer")[i % 2] / f"{i // 2}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (20 * i, 0, 0)).save(path)
    synthetic = SyntheticPhotographs(N, d=8)
    photos = seen(synthetic.X)
    photos.files[:] = sorted(map(str, folder.rglob("*.png")))
    photos.digests[:] = [content_digest(Path(file).read_bytes()) for file in photos.files]
    return Annotator(method=VOTING, cache=False).fit(photos, synthetic.tags)


def test_names_are_relative_to_the_folder_in_common():
    root, names = split_root(["/a/b/c/1.jpg", "/a/b/2.jpg", "/a/b/c/d/3.jpg"])
    assert (root, names) == (os.path.abspath("/a/b"), ["c/1.jpg", "2.jpg", "c/d/3.jpg"])
    assert split_root(["x/1.jpg"]) == (os.path.abspath("x"), ["1.jpg"])
    assert split_root([]) == ("", [])
    assert join_root("/a/b", "c/1.jpg") == os.path.join("/a/b", "c", "1.jpg")
    assert join_root("", "D:/c/1.jpg") == "D:/c/1.jpg"


def test_a_saved_model_has_names_relative_to_the_folder(annotator, tmp_path):
    saved = annotator.save(tmp_path / "model")
    folder = str(tmp_path).encode()
    assert not any(folder in file.read_bytes() for file in saved.rglob("*") if file.is_file())
    loaded = tagkin.load(saved)
    names = {f"{s}/{i}.png" for s in ("spring", "summer") for i in range(6)}
    assert set(loaded.files_) == set(loaded.paths_) == names
    assert {kin.file for finding in loaded.audit(50) for kin in finding.kin} <= names


def test_a_loaded_model_finds_its_photographs_where_they_are_now(annotator, tmp_path):
    loaded = tagkin.load(annotator.save(tmp_path / "model"))
    loaded.relocate(tmp_path / "Pictures")
    assert loaded.paths_ == annotator.paths_
    shutil.move(tmp_path / "Pictures", tmp_path / "Photos")
    loaded.relocate(tmp_path / "Photos")
    assert all(map(os.path.isfile, loaded.paths_))
    kin = {kin.file for finding in loaded.audit(50) for kin in finding.kin}
    assert kin <= set(loaded.paths_)


def test_photographs_are_added_to_a_loaded_model_by_their_names(annotator, tmp_path):
    loaded = tagkin.load(annotator.save(tmp_path / "model"))
    names = list(loaded.files_)
    photos = seen(SyntheticPhotographs(3, d=8).X)
    photos.files[:] = [str(tmp_path / "Pictures" / "winter" / f"{i}.png") for i in range(3)]
    photos.digests[:] = [*loaded.digests_[:1], "a" * 64, "b" * 64]
    loaded.partial_fit(photos, [["a"]] * 3)
    assert list(loaded.paths_) == [*names, "1.png", "2.png"]
    assert str(tmp_path) not in "".join(loaded.files_)
