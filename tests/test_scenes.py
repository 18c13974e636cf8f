"""The scenes of the demo: their labels, their noisy tags, and that they are reproducible."""

import json
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from tagkin.collection.tag_files import read_tags
from tagkin.scenes import TAGS, make_scenes


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    target = tmp_path_factory.mktemp("scenes")
    make_scenes(target, n=30, n_untagged=10, seed=3)
    return target


def rows(folder):
    return [json.loads(line) for line in (folder / "metadata.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    target = tmp_path_factory.mktemp("many")
    make_scenes(target, n=250, n_untagged=0)
    return target


def test_a_question_about_the_program_paints_nothing(tmp_path):
    asked = [sys.executable, "-m", "tagkin.scenes", "--help"]
    told = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "default: build/scenes" in told.stdout
    assert list(tmp_path.iterdir()) == []


def test_every_scene_is_a_picture_with_a_line(folder):
    scenes = rows(folder)
    assert len(scenes) == 30
    assert {path.name for path in folder.glob("*.jpg")} == {row["file_name"] for row in scenes}
    for row in scenes:
        with Image.open(folder / row["file_name"]) as picture:
            assert picture.size == (320, 240)
            assert picture.mode == "RGB"


def test_the_last_are_untagged_and_the_truth_is_known_of_all(folder):
    scenes = rows(folder)
    assert not any(row["tags"] for row in scenes[20:])
    assert sum(bool(row["tags"]) for row in scenes[:20]) > 17
    assert all(row["labels"] and set(row["labels"]) <= set(TAGS) for row in scenes)
    assert read_tags(folder / "metadata.jsonl").tags[0] == scenes[0]["tags"]


def test_some_tags_are_missing_and_some_wrong(many):
    scenes = rows(many)
    labels = sum(len(row["labels"]) for row in scenes)
    n_right = sum(len(set(row["tags"]) & set(row["labels"])) for row in scenes)
    wrong = sum(len(set(row["tags"]) - set(row["labels"])) for row in scenes)
    assert 0.03 < 1 - n_right / labels < 0.08
    assert 0.008 < wrong / (n_right + wrong) < 0.04


def test_the_same_seed_gives_the_same_bytes(folder, tmp_path):
    make_scenes(tmp_path, n=30, n_untagged=10, seed=3)
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_scenes_do_not_depend_on_their_number(folder, tmp_path):
    make_scenes(tmp_path, n=5, n_untagged=0, seed=3)
    assert [row["labels"] for row in rows(tmp_path)] == [row["labels"] for row in rows(folder)[:5]]
    make_scenes(tmp_path / "other", n=5, n_untagged=0, seed=4)
    name = "scene-0000.jpg"
    assert (tmp_path / name).read_bytes() != (tmp_path / "other" / name).read_bytes()


def test_labels_of_a_scene_are_consistent(many):
    for row in rows(many):
        labels = set(row["labels"])
        assert "boat" not in labels or "sea" in labels
        assert "beach" not in labels or "sea" in labels
        assert "stars" not in labels or "night" in labels
        assert "night" not in labels or not labels & {"sun", "sunset", "sky", "rainbow"}
        assert "sunset" not in labels or "sun" not in labels
        assert "snow" not in labels or not labels & {"beach", "desert", "rain"}
        assert "car" not in labels or "road" in labels
        assert "forest" not in labels or "tree" in labels


def test_every_tag_occurs_and_pictures_have_several(many):
    labels = [row["labels"] for row in rows(many)]
    counts = Counter(label for row in labels for label in row)
    assert set(counts) == set(TAGS)
    assert min(counts.values()) >= 5
    assert 3.5 < np.mean([len(row) for row in labels]) < 6.5


def test_colours_of_one_tag_differ_widely(many):
    seas = [
        np.asarray(Image.open(many / row["file_name"])).mean(axis=(0, 1))
        for row in rows(many)[:120]
        if "sea" in row["labels"]
    ]
    assert np.ptp(seas, axis=0).min() > 80
