"""What is asked besides suggestions, as a user would ask, through the real backbone."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tagkin
from tagkin.pages import contact_sheet
from tagkin.pages.map import COLOURS
from tests.pages.page import Page

from .conftest import lines


def test_explain_names_kin_and_draws_a_sheet(run, world, tmp_path, monkeypatch):
    photo = world.fresh / "blue-square-1.jpg"
    said = run("model", "explain", photo, world.model, "-n", 2, "--sheet", "why.png")
    assert said.exit_code == 0, said.stderr
    assert said.stdout.count("Share") == 2
    assert "% confidence" in said.stdout
    assert "blue, square" in said.stdout
    assert "why.png" in said.stderr
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    (suggested,) = tagkin.load(world.model).suggest([photo], n=2, n_kin=6)
    expected = contact_sheet(suggested, tmp_path / "expected.png")
    assert (tmp_path / "why.png").read_bytes() == expected.read_bytes()
    said = run("model", "explain", photo, world.model, "--sheet", "why.png")
    assert said.exit_code == 1


def test_explain_of_a_known_photograph_says_what_it_carries(run, world):
    said = run("model", "explain", world.photos / "red-circle-0.jpg", world.model)
    assert "Has the tags red, circle." in said.stdout


def rounded(value: object) -> object:
    """As JSON has it: numbers of six digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def test_json_is_what_the_library_says(run, world, catalogue, monkeypatch):
    """`suggest --json` and `explain --json` write `PhotoSuggestions.to_dict`, and so on."""
    photo = world.photos / "red-circle-0.jpg"
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    annotator = tagkin.load(world.model)
    for command in ("suggest", "explain"):
        said = run("model", command, photo, world.model, "--json", "-n", 2, "--n-kin", 3)
        assert (said.exit_code, said.stderr) == (0, "")
        (expected,) = annotator.suggest([photo], n=2, n_kin=3)
        assert lines(said.stdout) == [rounded(expected.to_dict())]
        assert expected.tags == ("red", "circle")
        assert [len(one.kin) for one in expected.suggestions] == [3, 3]
    (found,) = lines(run("model", "similar", photo, world.model, "--json", "-n", 3).stdout)
    (expected,) = annotator.similar([photo], 3)
    assert found["similar"] == [rounded(one.to_dict()) for one in expected]
    found = lines(run("audit", "--catalogue", catalogue, "--json", "-n", 4).stdout)
    learned = tagkin.load(catalogue.with_suffix(".model"))
    assert found == [rounded(one.to_dict()) for one in learned.audit(4)]
    for kin in found[0]["kin"]:
        assert sorted(kin["tags"]) == sorted(world.tags_of[Path(kin["file"]).name])


def test_no_kin_where_none_are_asked_for(run, world, tmp_path):
    asked = (world.fresh / "red-circle-0.jpg", world.model, "-n", 2, "--n-kin", 0)
    for command in ("suggest", "explain"):
        (found,) = lines(run("model", command, *asked, "--json").stdout)
        assert [one["kin"] for one in found["suggestions"]] == [[], []]
    said = run("model", "suggest", *asked)
    assert said.stdout.split()[:3] == ["Photograph", "Tag", "Confidence"]
    assert "Kin" not in said.stdout
    said = run("model", "explain", *asked, "--sheet", "why.png")
    assert said.exit_code == 0, said.stderr
    assert "Share" not in said.stdout
    assert said.stdout.count("% confidence") == 2
    with Image.open(tmp_path / "why.png") as sheet:
        assert sheet.width == 3 * 32 + 480 + 210 + 174, "room for one kin, and none there"


def test_similar(run, world):
    photo = world.photos / "green-square-0.jpg"
    said = run("model", "similar", photo, world.model, "-n", 4, "--json")
    (found,) = lines(said.stdout)
    assert list(found) == ["file", "similar"]
    assert len(found["similar"]) == 4
    assert [list(one) for one in found["similar"]] == [["file", "similarity", "tags"]] * 4
    assert str(photo) not in {one["file"] for one in found["similar"]}
    assert "green" in found["similar"][0]["tags"]
    said = run("model", "similar", photo, world.model)
    assert said.stdout.split()[:3] == ["Photograph", "Similarity", "Tags"]


def test_audit_in_all_its_forms(run, catalogue, tmp_path):
    command = ("audit", "--catalogue", catalogue, "-n", 6)
    found = lines(run(*command, "--json").stdout)
    assert [list(one) for one in found] == [["file", "tag", "kind", "confidence", "kin"]] * 6
    rows = list(csv.DictReader(io.StringIO(run(*command, "--csv").stdout)))
    assert [(r["file_name"], r["tag"]) for r in rows] == [(f["file"], f["tag"]) for f in found]
    wrong = lines(run(*command, "--kind", "wrong", "--json").stdout)
    assert {one["kind"] for one in wrong} == {"wrong"}
    said = run(*command, "--report", "audit.html")
    assert said.stdout.split()[:5] == ["Photograph", "Tag", "Issue", "Confidence", "Kin"]
    assert "seem" in said.stderr
    page = Page(tmp_path / "audit.html")
    assert page.headings() == ["Tags to look at again"]
    assert len(page.all("article")) == len({one["file"] for one in found})
    kinds = [one["kind"] for one in found]
    assert page.text.count("✗ seems wrong") == kinds.count("wrong")
    assert page.text.count("+ seems missing") == kinds.count("missing")
    assert len(page.all("use")) == sum(len(one["kin"]) for one in found)
    assert run(*command, "--kind", "odd").exit_code == 2


def test_an_audit_says_how_far_it_looked(run, catalogue):
    few = run("audit", "--catalogue", catalogue, "-n", 3)
    shares = [int(share) for share in re.findall(r"(\d+) %  ", few.stdout)]
    below = sum(share < 50 for share in shares)
    assert (" of them with a confidence below 50 %" in few.stderr) == bool(below)
    said = run("audit", "--catalogue", catalogue, "--kind", "wrong")
    assert said.stdout == "", "these tags are all right"
    assert said.stderr == (
        "Checked 21 tagged photographs: no tag seems wrong with a confidence of 50 % or more. "
        "`tagkin audit -n 20` shows the 20 most likely.\n"
    )


def test_evaluate_a_model_on_photographs_that_it_has_not_seen(run, world, tmp_path):
    command = ("model", "evaluate", world.fresh, world.model)
    said = run(*command, "--json", "--report", "quality.html")
    assert said.exit_code == 0, said.stderr
    (found,) = lines(said.stdout)
    assert list(found) == [
        "how",
        "photographs",
        "tags_per_photograph",
        "semantic",
        "visual",
        "by_default",
        "reached",
        "reliability",
        "tags",
    ]
    assert (found["photographs"], found["tags_per_photograph"]) == (12, 2)
    for name in ("photograph_precision", "at_least_one_right", "macro_precision", "n_plus"):
        assert name in found["semantic"]
    assert found["semantic"]["photograph_precision"] == 0.4, "all five tags are given, two right"
    assert sum(one["pairs"] for one in found["reliability"]) == 12 * 5
    assert "12 tagged photographs that the model had not seen" in found["how"]
    assert found["semantic"]["MAP"] > 0.8
    assert set(found["visual"]) == set(found["semantic"])
    assert [one["wanted"] for one in found["reached"]] == [0.5, 0.7, 0.8, 0.9]
    assert {one["tag"] for one in found["tags"]} == {"red", "green", "blue", "circle", "square"}
    assert {one["support"] for one in found["tags"]} == {4, 6}
    # what is a suggestion here is one there
    asked = ("model", "suggest", world.fresh, world.model, "--tags", "none", "--json")
    for counted, how in ((found["by_default"], ()), (found["reached"][2], ("--precision", 0.8))):
        each = [len(one["suggestions"]) for one in lines(run(*asked, *how).stdout)]
        assert sum(each) == counted["suggestions"]
        assert each.count(0) / len(each) == pytest.approx(counted["photographs_without"], abs=1e-5)
    rows = list(csv.DictReader(io.StringIO(run(*command, "--csv").stdout)))
    page = (tmp_path / "quality.html").read_text()
    order = [one["tag"] for one in found["tags"]]
    assert [row["name"] for row in rows] == order
    assert re.findall(r'<th scope="row" data-value="(\w+)">', page) == order
    table = run(*command).stdout
    assert sorted(order, key=lambda tag: table.rindex(f"\n{tag} ")) == order
    for word in ("Visual neighbours", "Per photograph", "At least one right", "Mean over tags"):
        assert word in page
        assert word in table
    assert "red-circle-0.jpg" in page
    said = run("model", "evaluate", world.photos, "--tags", world.tags, world.model)
    assert said.exit_code == 1
    assert "Pass others" in said.stderr


def test_evaluate_by_cross_validation(run, world):
    said = run("scan", world.photos, "--tags", world.tags, "--catalogue", "own.sqlite")
    assert said.exit_code == 0, said.stderr
    said = run("evaluate", "--catalogue", "own.sqlite")
    assert said.exit_code == 0, said.stderr
    assert "5-fold cross-validation on 42 tagged photographs" in said.stdout
    assert "2.0 of 5 tags on average" in said.stdout
    for word in ("Semantic space", "Asked for (--precision)", "Average precision", "circle"):
        assert word in said.stdout


def numbered(pixels: np.ndarray) -> np.ndarray:
    """Colours as one number each, as in ``#rrggbb``."""
    return pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)


def panels_of(path: Path) -> list[np.ndarray]:
    """The two layouts of a map."""
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    return [pixels[124 : 124 + 1280, left : left + 1280] for left in (48, 48 + 1328)]


def test_map_of_a_collection(run, catalogue, tmp_path):
    said = run("map", "--catalogue", catalogue, "--output", "map.png", "-n", 20)
    assert said.exit_code == 0, said.stderr
    assert (said.stdout, said.stderr) == ("", "20 photographs drawn: map.png\n")
    panels = panels_of(tmp_path / "map.png")
    assert len(panels) == 2
    for panel in panels:
        # photographs have a frame in the colour of their tag
        there = set(np.unique(numbered(panel)))
        shown = {colour for colour in COLOURS if int(colour[1:], 16) in there}
        assert shown <= set(COLOURS[:5])
        assert len(shown) >= 3
        assert (numbered(panel) != 0xF6F7F9).sum() > 20 * 200, "dots and photographs"
    assert (panels[0] != panels[1]).any()
    assert run("map", "--catalogue", catalogue).exit_code == 1, "map.png is there already"


def test_info(run, world):
    said = run("model", "info", world.model)
    for word in ("Photographs", "42", "circle (21)", "efficientnet-lite0"):
        assert word in said.stdout
    (found,) = lines(run("model", "info", world.model, "--json").stdout)
    assert found["photographs"] == 42
    assert found["tags"] == {"blue": 14, "circle": 21, "green": 14, "red": 14, "square": 21}
    assert len(found["fingerprint"]) == 64
