"""Which tags are merged and which are left out."""

import json

import pytest

from .synthetic import write_tag_file


@pytest.fixture
def variants(world, tmp_path):
    """The tags of the world in other forms: some flat, some with levels, some in the plural."""
    rows = {}
    for i, (name, (colour, shape)) in enumerate(world.tags_of.items()):
        forms = {"circle": ["circle", "circles"] * 2, "square": ["form|square"] * 3 + ["square"]}
        rows[name] = [colour, forms[shape][i % 4], "4k wallpaper", *(["crimson"] if i < 3 else [])]
    return write_tag_file(tmp_path / "variants.jsonl", rows)


def learned(run, world, variants, *options):
    train = ("model", "train", world.photos, "--tags", variants, "model")
    said = run(*train, "--overwrite", *options)
    assert said.exit_code == 0, said.stderr
    return json.loads(run("model", "info", "model", "--json").stdout)["tags"], said.stderr


def test_train_says_which_tags_may_be_one(run, world, variants):
    tags, stderr = learned(run, world, variants)
    assert tags["circle"] + tags["circles"] == 21
    assert (tags["form|square"], tags["form"]) == (21, 21)  # flat and with its level
    assert "circle and circles were learned as separate tags. --merge-plurals" in stderr


def test_tags_are_merged_replaced_and_left_out(run, world, variants, tmp_path):
    (tmp_path / "synonyms.csv").write_text("red, crimson\n")
    settings = ("--merge-plurals", "--synonyms", "synonyms.csv", "--exclude", "form")
    exclude = ("--exclude", "4K Wallpaper", "--exclude", "sunset")
    tags, stderr = learned(run, world, variants, *settings, *exclude)
    assert tags == {"blue": 14, "circle": 21, "green": 14, "red": 14, "form|square": 21}
    assert "were learned as" not in stderr
    assert "no photograph has these excluded tags: sunset" in stderr
    photo = world.fresh / "blue-square-0.jpg"
    for command in ("suggest", "explain"):
        found = json.loads(run("model", command, photo, "model", "-n", 5, "--json").stdout)
        named = {one["tag"] for one in found["suggestions"]}
        assert {tag for tag in named if "square" in tag} == {"form|square"}


def test_a_bad_list_is_said_before_the_work(run, world, variants, tmp_path):
    (tmp_path / "synonyms.csv").write_text("red\n")
    for file in ("synonyms.csv", "gone.csv"):
        said = run("model", "train", world.photos, "--tags", variants, "bad", "--synonyms", file)
        assert (said.exit_code, said.stdout) == (1, "")
        assert file in said.stderr
        assert not (tmp_path / "bad").exists()
