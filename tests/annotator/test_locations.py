"""Photographs that were moved or renamed since they were learned from."""

import os
import shutil
from pathlib import Path

import pytest
from PIL import Image

import tagkin
from tagkin import Annotator, NeighborVoting
from tagkin.annotator.locations import Locations, digest_reader, split_root
from tagkin.images import content_digest
from tests.hardening.crafting import settings_of

from .conftest import SPACE, SyntheticPhotographs, seen

N = 12


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TAGKIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make_photographs(folder):
    """Twelve files in two sub-folders; contents differ, names repeat."""
    for i in range(N):
        path = folder / ("spring", "summer")[i % 2] / f"{i // 2}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (20 * i, 0, 0)).save(path)
    return sorted(map(str, folder.rglob("*.png")))


def learned_from(files):
    synthetic = SyntheticPhotographs(N, d=8)
    photos = seen(synthetic.X)
    photos.files[:] = files
    photos.digests[:] = [content_digest(Path(file).read_bytes()) for file in files]
    method = NeighborVoting(5)  # which learns fast; where photographs are is the same for all
    return Annotator(method=method).fit(photos, synthetic.tags)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home" / "jane"


@pytest.fixture
def annotator(home):
    return learned_from(make_photographs(home / "Pictures"))


def named(annotator):
    return {kin.file for finding in annotator.audit(50) for kin in finding.kin}


# --- names and roots ---------------------------------------------------------------------


def test_names_are_relative_to_the_folder_in_common():
    root, names = split_root(["/a/b/c/1.jpg", "/a/b/2.jpg", "/a/b/c/d/3.jpg"])
    assert (root, names) == (os.path.abspath("/a/b"), ["c/1.jpg", "2.jpg", "c/d/3.jpg"])
    assert split_root(["x/1.jpg"]) == (os.path.abspath("x"), ["1.jpg"])
    assert split_root([]) == (None, [])


def test_paths_are_a_sequence():
    paths = Locations(["a/1.jpg", "2.jpg"], ["0", "1"], "/root", {1: "/else/x.jpg"})
    assert list(paths) == [os.path.join("/root", "a", "1.jpg"), "/else/x.jpg"]
    assert (paths[-1], paths[:1], len(paths)) == ("/else/x.jpg", [paths[0]], 2)
    assert list(Locations(["a/1.jpg"], ["0"])) == ["a/1.jpg"]
    with pytest.raises(IndexError):
        paths[2]


def test_a_model_holds_no_path_of_the_machine(annotator, home, tmp_path):
    folder = annotator.save(tmp_path / "model")
    for file in folder.iterdir():
        assert b"jane" not in file.read_bytes()
    assert settings_of(folder)["files_"] == {
        "$texts": [f"{season}/{i}.png" for season in ("spring", "summer") for i in range(6)]
    }


# --- found again -------------------------------------------------------------------------


def test_photographs_that_stayed_are_known_on_this_machine(annotator, tmp_path):
    folder = annotator.save(tmp_path / "elsewhere" / "model")
    loaded = tagkin.load(folder)
    assert list(loaded.paths_) == list(annotator.paths_)
    assert all(map(os.path.isfile, named(loaded)))


def test_model_and_photographs_can_be_moved_together(annotator, home, tmp_path, cache):
    annotator.save(home / "my-tags")
    annotator.save(home / "Pictures" / "inside")
    shutil.rmtree(cache)
    home.rename(tmp_path / "joe")
    for model in ("my-tags", "Pictures/inside"):
        loaded = tagkin.load(tmp_path / "joe" / model)
        assert loaded.paths_.root == str(tmp_path / "joe" / "Pictures")
        assert all(map(os.path.isfile, named(loaded)))


def test_other_photographs_of_the_same_names_beside_a_model_are_not_taken(annotator, tmp_path):
    folder = annotator.save(tmp_path / "model")
    for file in annotator.files_:
        other = tmp_path / "Pictures" / file
        other.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (0, 0, 200)).save(other)
    assert list(tagkin.load(folder).paths_) == list(annotator.paths_)


def test_a_model_whose_photographs_nobody_knows_names_them_as_they_were(annotator, tmp_path, cache):
    folder = annotator.save(tmp_path / "model")
    shutil.rmtree(cache)
    loaded = tagkin.load(folder)
    assert loaded.paths_.root is None
    assert list(loaded.paths_) == list(loaded.files_)
    assert loaded.paths_.missing() == list(range(N))


def test_without_a_cache_nothing_is_kept(annotator, tmp_path, cache):
    annotator.cache = False
    annotator.save(tmp_path / "model")
    assert not cache.exists()


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"root": 3, "moved": {}}', '{"moved": {"x": 1}}']
)
def test_a_damaged_memory_is_none(annotator, tmp_path, cache, text):
    folder = annotator.save(tmp_path / "model")
    (memory,) = (cache / "locations").iterdir()
    memory.write_text(text)
    assert tagkin.load(folder).paths_.root is None


def test_where_a_cache_cannot_be_written_saving_goes_on(annotator, tmp_path, cache):
    cache.write_text("a file, not a folder")
    assert tagkin.load(annotator.save(tmp_path / "model")).paths_.root is None


def test_a_copy_of_some_beside_the_model_does_not_hide_the_rest(annotator, home, tmp_path):
    folder = annotator.save(tmp_path / "model")
    names = list(annotator.files_)
    copied = tmp_path / annotator.root_name_
    for name in names[: len(names) // 2]:
        (copied / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(home / "Pictures" / name, copied / name)
    assert tagkin.load(folder).paths_.root == str(home / "Pictures")


def test_a_renamed_folder_is_found_again(annotator, home, tmp_path):
    folder = annotator.save(tmp_path / "model")
    (home / "Pictures").rename(home / "Photos")
    loaded = tagkin.load(folder)
    assert loaded.paths_.missing() == list(range(N))
    assert loaded.relocate(home / "Photos") == []
    assert loaded.paths_.root == str(home / "Photos")
    again = tagkin.load(folder)  # and remembered
    assert all(map(os.path.isfile, named(again)))


def test_renamed_and_scattered_photographs_are_found_by_content(annotator, home, tmp_path):
    folder = annotator.save(tmp_path / "model")
    before = dict(zip(annotator.digests_, annotator.paths_, strict=True))
    new = home / "sorted"
    new.mkdir()
    for k, file in enumerate(before.values()):
        shutil.move(file, new / f"photo-{k:03}.png")
    (new / "photo-003.png").unlink()
    loaded = tagkin.load(folder)
    assert loaded.relocate(home) == [annotator.files_[3]]
    for digest, path in zip(loaded.digests_, loaded.paths_, strict=True):
        there = os.path.isfile(path)
        assert there == (digest != annotator.digests_[3])
        if there:
            assert content_digest(Path(path).read_bytes()) == digest
    assert list(tagkin.load(folder).paths_) == list(loaded.paths_)


def test_a_folder_above_or_below_finds_them_too(annotator, home, tmp_path):
    (home / "Pictures").rename(home / "Photos")
    assert annotator.relocate(home) == []
    assert annotator.paths_.root == str(home / "Photos")
    assert annotator.paths_.moved == {}
    (home / "Photos").rename(home / "Bilder")
    missing = annotator.relocate(home / "Bilder" / "spring")
    assert missing == []  # one tells where the others are


def test_photographs_that_were_tagged_in_place_are_found_by_name(annotator, home):
    (home / "Pictures").rename(home / "Photos")
    for file in (home / "Photos").rglob("*.png"):
        file.write_bytes(file.read_bytes() + b"keywords")
    assert annotator.relocate(home / "Photos") == []


def test_another_folder_with_some_of_the_names_is_not_believed(annotator, home, tmp_path):
    shutil.rmtree(home / "Pictures")
    other = tmp_path / "other" / "spring"
    other.mkdir(parents=True)
    Image.new("RGB", (4, 4), "blue").save(other / "0.png")
    assert len(annotator.relocate(tmp_path / "other")) == N


def test_photographs_that_are_looked_at_tell_where_they_are(annotator, home):
    (home / "Pictures").rename(home / "Photos")
    photos = seen(SyntheticPhotographs(N, d=8).X[:1])
    photos.files[:], photos.digests[:] = (
        [str(home / "Photos/spring/0.png")],
        [annotator.digests_[0]],
    )
    assert annotator.paths_.missing()
    annotator.similar(photos, 3)
    assert annotator.paths_.missing() == []


def test_a_copy_does_not_take_the_place_of_a_photograph_that_is_there(annotator, tmp_path):
    paths = list(annotator.paths_)
    copy = shutil.copy(paths[0], tmp_path / "copy.png")
    annotator.paths_.update_from([copy], [annotator.digests_[0]])
    assert list(annotator.paths_) == paths


def test_what_is_added_is_named_from_the_new_folder_in_common(annotator, home):
    more = home / "More" / "a.png"
    more.parent.mkdir()
    Image.new("RGB", (4, 4), "white").save(more)
    photos = seen(SyntheticPhotographs(1, seed=5, d=8).X, first=500)
    photos.files[:] = [str(more)]
    annotator.partial_fit(photos, [["snow"]])
    assert annotator.files_[0] == "Pictures/spring/0.png"
    assert annotator.files_[-1] == "More/a.png"
    assert annotator.paths_.root == str(home)
    assert annotator.paths_.missing() == []


def test_digests_come_from_the_cache_where_a_file_stayed_as_it_was(tmp_path):
    from tagkin.features import FeatureCache

    path = tmp_path / "a.png"
    path.write_bytes(b"content")
    os.utime(path, (1, 1))
    with FeatureCache(tmp_path / "cache") as cache:
        digest_of = digest_reader(cache)
        assert digest_of(str(path)) == content_digest(b"content")
        assert cache.digests([str(path)], [path.stat()]) == [content_digest(b"content")]
        cache.remember([str(path)], [path.stat()], ["0" * 64])
        assert digest_of(str(path)) == "0" * 64
    assert digest_reader(None)(str(path)) == content_digest(b"content")
    assert digest_reader(None)(str(tmp_path / "gone.png")) is None


def test_what_was_fitted_without_a_cache_leaves_no_trace_when_it_is_stored(tmp_path, home, cache):
    files = make_photographs(home / "Pictures")
    synthetic = SyntheticPhotographs(N, d=8)
    photos = seen(synthetic.X)
    photos.files[:] = files
    annotator = Annotator(space=SPACE, cache=False).fit(photos, synthetic.tags)
    annotator.cache = True  # as the command line does: each command says for itself
    annotator.save(tmp_path / "model")
    assert not cache.exists()
