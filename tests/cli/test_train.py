"""tagkin model train, as a user would run it, through the real backbone."""

import json
import shutil

import tagkin

from .conftest import lines
from .synthetic import make_photographs, write_sidecar, write_tag_file


def test_train_says_what_it_learned_and_what_comes_next(world):
    assert "Learned 5 tags from 42 photographs" in world.train.stdout
    assert "42 found, 42 tagged, 42 used" in world.train.stdout
    assert f"tagkin model suggest PHOTOS {world.model}" in world.train.stdout
    assert world.train.stderr == ""


def test_train_in_json_lists_everything(run, world, tmp_path):
    photos = tmp_path / "photos"
    tags = make_photographs(photos, n_each=2)
    (photos / "broken.jpg").write_bytes(b"not a picture")
    shutil.copy(photos / "red-circle-0.jpg", photos / "same.jpg")
    (photos / "untagged.jpg").write_bytes((world.photos / "red-circle-3.jpg").read_bytes())
    tags |= {"broken.jpg": ["red"], "same.jpg": ["once"], "gone.jpg": ["red"]}
    tag_file = write_tag_file(photos / "metadata.jsonl", tags)
    said = run("model", "train", photos, "model", "--json")
    assert said.exit_code == 0, said.stderr
    (found,) = lines(said.stdout)
    assert found["photographs"] == {
        "found": 15,
        "tagged": 14,
        "used": 12,
        "in_series": 0,
        "series": 0,
        "unreadable": [{"file": "photos/broken.jpg", "reason": found_reason(found)}],
        "absent": ["gone.jpg"],
        "raw_beside_photographs": 0,
        "raw_left_out": 0,
    }
    assert found["tags"] == {"learned": 5, "dropped": {"once": 1}}
    assert set(found["tags_reaching_precision"]) == {"0.5", "0.8"}
    assert found["model"] == "model"
    assert "1 photograph that is not there: gone.jpg" in said.stderr
    assert f"{tag_file.relative_to(tmp_path)} names" in said.stderr
    assert "photos/broken.jpg: " in said.stderr
    assert tagkin.load(tmp_path / "model").cache is True


def test_series_are_counted_where_there_are_some(run, tmp_path):
    photos = tmp_path / "photos"
    tags = make_photographs(photos, n_each=2)
    shots = list(tags)[:3]
    for second, name in enumerate(shots):
        new = f"IMG_20240131_1200{second:02}.jpg"
        (photos / name).rename(photos / new)
        tags[new] = tags.pop(name)
    write_tag_file(photos / "metadata.jsonl", tags)
    run("model", "train", photos, "model")
    told = " ".join(run("model", "info", "model").stdout.split())
    assert "12, 2 of them in 1 series" in told  # a third of a dozen photographs is no fold
    assert "Held out as a whole: 2 photographs in 1 series." in told
    said = run("evaluate", photos).stdout
    assert "2 photographs in 1 series" in " ".join(said.split())


def found_reason(found: dict) -> str:
    (one,) = found["photographs"]["unreadable"]
    assert one["reason"]
    return one["reason"]


def test_train_reads_keywords_beside_the_photographs(run, tmp_path):
    for name, tags in make_photographs(tmp_path / "photos", n_each=2).items():
        write_sidecar(tmp_path / "photos" / name, tags)
    said = run("model", "train", "photos", "model")
    assert said.exit_code == 0, said.stderr
    assert "Learned 5 tags from 12 photographs" in said.stdout


def test_train_does_not_replace_a_model_unasked(run, world, tmp_path):
    shutil.copytree(world.model, tmp_path / "model")
    before = (tmp_path / "model" / "model.json").read_bytes()
    said = run("model", "train", world.photos, "--tags", world.tags, "model")
    assert (said.exit_code, said.stdout) == (1, "")
    assert "Pass --overwrite" in said.stderr
    assert (tmp_path / "model" / "model.json").read_bytes() == before
    train = ("model", "train", world.photos, "--tags", world.tags, "model")
    assert run(*train, "--overwrite", "--min-count", 3).exit_code == 0
    assert (tmp_path / "model" / "model.json").read_bytes() != before


def test_a_refusal_comes_before_the_training(run, world, tmp_path):
    shutil.copytree(world.model, tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    said = run("model", "train", "nowhere", "--overwrite", "model")
    assert said.exit_code == 1
    assert "not a tagkin model (notes.txt)" in said.stderr


def test_what_systems_leave_in_a_folder_is_no_obstacle(run, world, tmp_path):
    shutil.copytree(world.model, tmp_path / "model")
    for name in (".DS_Store", "._model.json", "Thumbs.db", "desktop.ini"):
        (tmp_path / "model" / name).write_bytes(b"")
    assert run("model", "info", "model").exit_code == 0
    train = ("model", "train", world.photos, "--tags", world.tags, "model")
    said = run(*train)
    assert said.exit_code == 1
    assert "holds a model already. Pass --overwrite" in said.stderr
    said = run(*train, "--overwrite")
    assert said.exit_code == 0, said.stderr


def test_train_leaves_a_folder_with_other_things_alone(run, world, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    train = ("model", "train", world.photos, "--tags", world.tags, "--overwrite")
    said = run(*train, "mine")
    assert said.exit_code == 1
    assert "not a tagkin model" in said.stderr
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["letter.txt"]
    said = run(*train, "mine/letter.txt")
    assert said.exit_code == 1
    assert "is a file" in said.stderr


def test_a_model_keeps_its_views_and_pooling(run, world, tmp_path):
    photos = tmp_path / "photos"
    write_tag_file(photos / "metadata.jsonl", make_photographs(photos, n_each=2))
    train = ("model", "train", photos, "model")
    said = run(*train, "--backbone", "efficientnet-lite0-gem@2")
    assert said.exit_code == 0, said.stderr
    said = run("model", "info", "model", "--json")
    assert json.loads(said.stdout)["backbone"] == "efficientnet-lite0-gem@2"
    said = run("model", "suggest", world.fresh / "red-circle-0.jpg", "model", "-n", 1, "--json")
    assert len(lines(said.stdout)[0]["suggestions"]) == 1, said.stderr
    said = run("evaluate", photos, "--backbone", "efficientnet-lite0@5")
    assert said.exit_code == 1
    assert "found 5" in said.stderr
