"""tagkin find, the backbone of a collection, and where it runs."""

import json
from pathlib import Path

import pytest

from tests.features.joint import write_colors, write_joint_encoder

pytest.importorskip("tokenizers")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Plain photographs and two encoders that know their colours."""
    write_colors(tmp_path / "colors")
    write_joint_encoder(tmp_path / "encoder")
    write_joint_encoder(tmp_path / "other", "siglip")
    monkeypatch.setenv("TAGKIN_CATALOGUES", str(tmp_path / "data"))
    monkeypatch.setenv("TAGKIN_DEVICE", "cpu")
    monkeypatch.chdir(tmp_path / "colors")
    return tmp_path


def test_photographs_are_found_by_words(run, desk: Path) -> None:
    colors = write_colors(desk / "colors")
    assert run("train", ".", "--backbone", desk / "encoder/image.onnx").exit_code == 0
    result = run("find", "blue", "-n", 8, "--json")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    assert answer["words"] == "blue"
    names = [Path(photo["file"]).name for photo in answer["photographs"]]
    assert {colors[name] for name in names} == {"blue"}
    assert [photo["fit"] for photo in answer["photographs"]] == sorted(
        (photo["fit"] for photo in answer["photographs"]), reverse=True
    )
    assert answer["photographs"][0]["fit"] == 1
    # several words need no quotes, and what does not fit has no bar
    result = run("find", "photo", "of", "blue", "-n", 24, "--json")
    answer = json.loads(result.stdout)
    assert answer["words"] == "photo of blue"
    fits = {Path(photo["file"]).name: photo["fit"] for photo in answer["photographs"]}
    assert all((fits[name] > 0) == (color == "blue") for name, color in colors.items())
    result = run("find", "blue", "-n", 4, "--tag", "OLD")
    assert result.stdout.count(".png") == result.stdout.count("blue, old") == 4
    result = run("find", "blue", "--tag", "nowhere")
    assert result.exit_code == 1
    assert "There is no tag 'nowhere'" in result.stderr


def test_words_or_a_photograph(run, world):
    photo = sorted(world.photos.glob("*.jpg"))[0]
    for wrong in ((), ("blue", "--like", photo), ("--like", photo, "--tag", "OLD")):
        result = run("find", *wrong)
        assert result.exit_code == 2
        assert "--like" in result.stderr
