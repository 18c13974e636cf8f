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


def test_a_saved_model_knows_its_photographs_and_can_look_elsewhere(annotator, tmp_path):
    loaded = tagkin.load(annotator.save(tmp_path / "model"))
    assert loaded.paths_ == annotator.paths_
    assert set(loaded.files_) == {f"{s}/{i}.png" for s in ("spring", "summer") for i in range(6)}
    shutil.move(tmp_path / "Pictures", tmp_path / "Photos")
    loaded.relocate(tmp_path / "Photos")
    assert all(map(os.path.isfile, loaded.paths_))
    assert loaded.paths_ == tagkin.load(loaded.save(tmp_path / "again")).paths_
    kin = {kin.file for finding in loaded.audit(50) for kin in finding.kin}
    assert kin <= set(loaded.paths_)
