"""What commands say: options that nearly fit, files that are not there, names of any characters."""

import json
import shutil

import pytest

from tagkin.cli.output import json_line
from tagkin.cli.tables import kin_text

from .conftest import lines


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("suggest", "--threshold"),
        ("suggest", "--precision"),
        ("accept", "--at-least"),
        ("reject", "--below"),
    ],
)
def test_percentages_get_a_hint(run, world, command, option):
    result = run(command, world.photos, option, "80")
    assert result.exit_code == 2
    assert "80 is not between 0 and 1. For 80 %, write 0.8." in result.stderr
    assert "'x' is not a number" in run(command, world.photos, option, "x").stderr


def test_a_missing_photograph_is_missing(run, catalogue, tmp_path):
    result = run("find", "--like", tmp_path / "gone.jpg", "--catalogue", catalogue)
    assert result.exit_code == 1
    assert "there is no such file" in result.stderr
    assert "vanished" not in result.stderr


def test_a_report_does_not_create_folders(run, catalogue, tmp_path):
    report = tmp_path / "typo" / "report.html"
    result = run("evaluate", "--catalogue", catalogue, "--report", report)
    assert result.exit_code == 1
    assert "There is no folder" in result.stderr
    assert not report.parent.exists()


def test_tags_of_a_named_collection(run, world, tmp_path):
    root = tmp_path / "lib"
    (root / "2024").mkdir(parents=True)
    photo = next(iter(sorted(world.photos.glob("*.jpg"))))
    shutil.copy(photo, root / "2024")
    assert run("scan", root).exit_code == 0
    assert run("accept", root / "2024" / photo.name, "--tag", "beach").exit_code == 0
    result = run("tags", "list", root, "--json")
    assert [tag["name"] for tag in lines(result.stdout)] == ["beach"]
    result = run("tags", "list", root / "2024")
    assert "is not the folder of a collection" in result.stderr


def test_json_escapes_what_controls_a_terminal():
    tag = "a\x9b31mb\x7f\u2028c\u202ed é 🐕"
    text = json_line({"tag": tag})
    assert json.loads(text) == {"tag": tag}
    assert r"a\u009b31mb\u007f\u2028c\u202ed é 🐕" in text


def test_kin_of_no_weight_are_not_shown():
    assert kin_text([("/a.jpg", 0.6), ("/b.jpg", 0.004)]) == "/a.jpg (60 %)"
