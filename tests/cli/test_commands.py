"""Every command, as a user would run it, through the real backbone."""

import csv
import importlib.util
import io
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tagkin
from tagkin.pages import contact_sheet
from tagkin.pages.map import COLOURS
from tests.conftest import needs_wordnet
from tests.images.raw_writer import dng
from tests.pages.page import Page

from .synthetic import make_photographs, write_sidecar, write_tag_file

COLUMNS = ["file_name", "tag", "confidence", "kin", "name_share", "readout_share"]


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


# --- train -------------------------------------------------------------------------------


def test_train_says_what_it_learned_and_what_comes_next(world):
    assert "Learned 5 tags from 42 photographs" in world.train.stdout
    assert "42 found, 42 tagged, 42 used" in world.train.stdout
    assert f"tagkin suggest PHOTOS --model {world.model}" in world.train.stdout
    assert world.train.stderr == ""


def test_train_in_json_lists_everything(run, world, tmp_path):
    photos = tmp_path / "photos"
    tags = make_photographs(photos, n_each=2)
    (photos / "broken.jpg").write_bytes(b"not a picture")
    shutil.copy(photos / "red-circle-0.jpg", photos / "same.jpg")
    (photos / "untagged.jpg").write_bytes((world.photos / "red-circle-3.jpg").read_bytes())
    tags |= {"broken.jpg": ["red"], "same.jpg": ["once"], "gone.jpg": ["red"]}
    tag_file = write_tag_file(photos / "metadata.jsonl", tags)
    said = run("train", photos, "--model", "model", "--json", "--no-denoise", "--no-cache")
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
    assert found["denoised"] == 0
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
    run("train", photos, "--model", "model", "--no-denoise", "--no-cache")
    told = " ".join(run("info", "model").stdout.split())
    assert "12, 2 of them in 1 series" in told  # a third of a dozen photographs is no fold
    assert "Held out as a whole: 2 photographs in 1 series." in told
    said = run("evaluate", photos, "--no-denoise", "--no-cache").stdout
    assert "2 photographs in 1 series" in " ".join(said.split())


def found_reason(found: dict) -> str:
    (one,) = found["photographs"]["unreadable"]
    assert one["reason"]
    return one["reason"]


def test_train_reads_keywords_beside_the_photographs(run, tmp_path):
    for name, tags in make_photographs(tmp_path / "photos", n_each=2).items():
        write_sidecar(tmp_path / "photos" / name, tags)
    said = run("train", "photos", "--model", "model")
    assert said.exit_code == 0, said.stderr
    assert "Learned 5 tags from 12 photographs" in said.stdout


def test_train_does_not_replace_a_model_unasked(run, world, tmp_path):
    shutil.copytree(world.model, tmp_path / "model")
    before = (tmp_path / "model" / "model.json").read_bytes()
    said = run("train", world.photos, "--tags", world.tags, "--model", "model")
    assert (said.exit_code, said.stdout) == (1, "")
    assert "Pass --overwrite" in said.stderr
    assert (tmp_path / "model" / "model.json").read_bytes() == before
    train = ("train", world.photos, "--tags", world.tags, "--model", "model", "--no-denoise")
    assert run(*train, "--overwrite").exit_code == 0
    assert (tmp_path / "model" / "model.json").read_bytes() != before


def test_a_refusal_comes_before_the_training(run, world, tmp_path):
    shutil.copytree(world.model, tmp_path / "model")
    (tmp_path / "model" / "notes.txt").write_text("mine")
    said = run("train", "nowhere", "--overwrite", "--model", "model")
    assert said.exit_code == 1
    assert "not a tagkin model (notes.txt)" in said.stderr


def test_what_systems_leave_in_a_folder_is_no_obstacle(run, world, tmp_path):
    shutil.copytree(world.model, tmp_path / "model")
    for name in (".DS_Store", "._model.json", "Thumbs.db", "desktop.ini"):
        (tmp_path / "model" / name).write_bytes(b"")
    assert run("info", "model").exit_code == 0
    train = ("train", world.photos, "--tags", world.tags, "--model", "model")
    said = run(*train)
    assert said.exit_code == 1
    assert "holds a model already. Pass --overwrite" in said.stderr
    said = run(*train, "--overwrite")
    assert said.exit_code == 0, said.stderr


def test_train_leaves_a_folder_with_other_things_alone(run, world, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    train = ("train", world.photos, "--tags", world.tags, "--overwrite", "--model")
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
    train = ("train", photos, "--model", "model", "--no-denoise", "--views", 2)
    said = run(*train, "--backbone", "efficientnet-lite0-gem")
    assert said.exit_code == 0, said.stderr
    said = run("info", "model", "--json")
    assert json.loads(said.stdout)["backbone"] == "efficientnet-lite0-gem@2"
    said = run("suggest", world.fresh / "red-circle-0.jpg", "--model", "model", "-n", 1, "--json")
    assert len(lines(said.stdout)[0]["suggestions"]) == 1, said.stderr
    said = run("evaluate", photos, "--views", 5)
    assert said.exit_code == 2
    assert "--views" in said.stderr


# --- suggest -----------------------------------------------------------------------------


def test_suggestions_as_json_lines_have_exactly_this_shape(run, world, monkeypatch):
    monkeypatch.chdir(world.fresh.parent)
    photo = world.fresh / "red-circle-0.jpg"
    said = run("suggest", photo, "--model", world.model, "-n", 2, "--n-kin", 3, "--json")
    assert said.exit_code == 0, said.stderr
    (found,) = lines(said.stdout)
    assert list(found) == ["file", "tags", "suggestions"]
    assert found["tags"] == []
    assert len(found["suggestions"]) == 2
    for one in found["suggestions"]:
        assert list(one) == ["tag", "confidence", "kin", "name_share", "readout_share"]
        assert 0 <= one["confidence"] <= 1
        assert 1 <= len(one["kin"]) <= 3
        for kin in one["kin"]:
            assert list(kin) == ["file", "share", "tags"]
            assert kin["tags"] == world.tags_of[Path(kin["file"]).name]
            assert one["tag"] in kin["tags"]
            assert 0 < kin["share"] <= 1
    assert found["file"] == os.path.relpath(photo)
    assert found["suggestions"][0]["kin"][0]["file"].startswith("photos/")


def test_most_suggestions_are_right(run, world):
    said = run("suggest", world.fresh, "--only-untagged", "--model", world.model, "--json")
    assert said.stdout == ""  # all of them are tagged
    files = sorted(world.fresh.glob("*.jpg"))
    said = run("suggest", *files, "--model", world.model, "--json", "-n", 2)
    right = [
        s["tag"] in Path(one["file"]).name for one in lines(said.stdout) for s in one["suggestions"]
    ]
    assert len(right) == 2 * len(files)
    assert sum(right) > 0.8 * len(right)


def test_tags_that_a_photograph_carries_are_not_suggested(run, world):
    known = ("suggest", world.photos, "--model", world.model, "--threshold", 0, "--json")
    found = lines(run(*known, "--tags", world.tags).stdout)
    assert found == lines(run(*known).stdout), "the model knows the tags of its photographs"
    assert len(found) == 42
    for one in found:
        carried = world.tags_of[Path(one["file"]).name]
        assert not {s["tag"] for s in one["suggestions"]} & set(carried)
    assert run(*known, "--only-untagged").stdout == ""


def test_tags_deleted_since_training_are_seen(run, world, tmp_path):
    """Where tags are keywords, in a tag file and in both: what counts is what is there now."""
    photos = shutil.copytree(world.photos, tmp_path / "photos")
    deleted = [f"red-{shape}-0.jpg" for shape in ("circle", "square")]
    left = {name: tags for name, tags in world.tags_of.items() if name not in deleted}

    def check(model, *options):
        for places in (["photos"], [f"photos/{name}" for name in deleted]):
            said = run("suggest", *places, "--model", model, "--only-untagged", "--json", *options)
            found = {Path(one["file"]).name: one["suggestions"] for one in lines(said.stdout)}
            assert sorted(found) == deleted
            assert any(s["tag"] == "red" for row in found.values() for s in row)

    for name, tags in world.tags_of.items():
        write_sidecar(photos / name, tags)
    assert run("train", "photos", "--model", "keywords").exit_code == 0
    for name in deleted:
        Path(f"photos/{name}.xmp").unlink()
    check("keywords")
    write_tag_file(photos / "metadata.jsonl", left)
    check(world.model, "--tags", "photos/metadata.jsonl")
    said = run("suggest", "photos", "--model", world.model, "--only-untagged", "--tags", "embedded")
    assert said.stderr == "0 suggestions for 0 photographs.\n"  # nobody looked into the tag file
    assert run("train", "photos", "--model", "both", "--tags", "both").exit_code == 0
    said = run(
        "suggest", "photos", "--model", "both", "--tags", "both", "--only-untagged", "--json"
    )
    assert sorted(Path(one["file"]).name for one in lines(said.stdout)) == deleted
    said = run("suggest", "photos", "--model", "both", "--tags", "none", "--json")
    named = {s["tag"] for one in lines(said.stdout) for s in one["suggestions"]}
    assert named == {"red", "green", "blue", "circle", "square"}  # as if they carried none


def test_a_foreign_metadata_file_and_the_way_out(run, world, tmp_path):
    photos = shutil.copytree(world.fresh, tmp_path / "photos")
    (photos / "metadata.jsonl").unlink()
    (photos / "metadata.csv").write_text("SourceFile,FileName\n./a.jpg,a.jpg\n")
    for name in ("red-circle-0.jpg", "red-circle-1.jpg"):
        write_sidecar(photos / name, ["red"])
    said = run("evaluate", "photos", "--model", world.model)
    assert said.exit_code == 1
    assert "photos/metadata.csv is as exiftool writes it" in said.stderr
    assert "with --tags embedded" in said.stderr
    said = run("suggest", "photos", "--model", world.model, "--tags", "embedded", "--json")
    assert said.exit_code == 0, said.stderr
    assert len(lines(said.stdout)) == 12
    said = run("train", "photos", "--model", "m", "--tags", "none")
    assert (said.exit_code, said.stderr) == (
        1,
        "Error: --tags none leaves no tags to learn from. Omit it.\n",
    )


def test_raw_files_are_counted_and_read_where_they_can_be(run, world, tmp_path, monkeypatch):
    photos = shutil.copytree(world.fresh, tmp_path / "photos")
    (photos / "metadata.jsonl").unlink()
    mosaic = np.full((64, 96), 20_000, np.uint16)
    large = Image.open(world.fresh / "red-circle-0.jpg").resize((480, 360))
    large.save(photos / "large.jpg")
    preview = (photos / "large.jpg").read_bytes()
    for name in ("red-circle-0", "alone"):
        (photos / f"{name}.DNG").write_bytes(dng(mosaic, preview))
    command = ("suggest", "photos", "--model", world.model, "--tags", "none", "--json", "-n", 2)
    pair = "Note: 1 RAW file lies beside a photograph of the same name: each pair counts as one"
    if importlib.util.find_spec("rawpy") is not None:
        said = run(*command)
        found = {Path(one["file"]).name: one["suggestions"] for one in lines(said.stdout)}
        assert len(found) == 14
        tags = [s["tag"] for s in found["large.jpg"]]
        assert [s["tag"] for s in found["alone.DNG"]] == tags  # of the same pixels
        assert pair in said.stderr
        assert "skipped" not in said.stderr
    monkeypatch.setitem(sys.modules, "rawpy", None)
    said = run(*command)
    assert len(lines(said.stdout)) == 13
    assert pair in said.stderr
    left_out = "Note: 1 RAW file was skipped. To read RAW files: pip install rawpy\n"
    assert left_out in said.stderr
    said = run("suggest", "photos/alone.DNG", "--model", world.model, "--no-cache")
    assert said.exit_code == 1
    assert "needs an extra: pip install rawpy" in said.stderr


def test_a_table_for_people(run, world):
    said = run("suggest", world.fresh / "red-circle-0.jpg", "--model", world.model, "-n", 1)
    head, _, row = said.stdout.splitlines()[:3]
    assert head.split() == ["Photograph", "Tag", "Confidence", "Kin"]
    assert row.startswith(str(world.fresh / "red-circle-0.jpg")[:40])
    assert "\x1b" not in said.stdout + said.stderr
    assert said.stderr == "1 suggestion for 1 photograph.\n"


def test_csv_reads_back_from_output_and_from_file(run, world, tmp_path):
    command = ("suggest", *sorted(world.fresh.glob("*.jpg")), "--model", world.model, "-n", 2)
    said = run(*command, "--csv")
    rows = list(csv.DictReader(io.StringIO(said.stdout)))
    assert list(rows[0]) == COLUMNS
    assert len(rows) == 24
    assert all(Path(kin).is_file() for row in rows for kin in row["kin"].split("|"))
    assert run(*command, "--output", "sub/new.csv").stdout == ""
    assert (tmp_path / "sub" / "new.csv").read_text() == said.stdout
    said = run(*command, "--output", "sub/new.csv")
    assert said.exit_code == 1
    assert "--overwrite" in said.stderr
    assert run(*command, "--output", "sub/new.csv", "--overwrite").exit_code == 0
    assert run(*command, "--output", "new.jsonl").exit_code == 0
    assert (tmp_path / "new.jsonl").read_text() == run(*command, "--json").stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["new.jsonl", "sub"]


def test_suggestions_for_the_rest_go_on_past_broken_photographs(run, world, tmp_path):
    shutil.copy(world.fresh / "red-circle-0.jpg", tmp_path / "a.jpg")
    for k in range(6):
        (tmp_path / f"b{k}.jpg").write_bytes(b"broken %d" % k)
    said = run("suggest", ".", "--model", world.model, "--json")
    assert said.exit_code == 0
    assert [one["file"] for one in lines(said.stdout)] == ["a.jpg"]
    assert "6 files could not be read" in said.stderr
    assert "and 3 more" in said.stderr
    assert "b5.jpg" not in said.stderr
    assert "b5.jpg" in run("suggest", ".", "--model", world.model, "--verbose").stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--threshold", 0.9, "--precision", 0.9),
        ("--json", "--csv"),
        ("--json", "--output", "x.csv"),
        ("--output", "x.txt"),
        ("--threshold", 1.5),
        ("-n", 0),
        ("--cache", "here", "--no-cache"),
        ("--no-such-option",),
    ],
)
def test_wrong_usage_is_2_and_says_so(run, world, options):
    said = run("suggest", world.fresh, "--model", world.model, *options)
    assert (said.exit_code, said.stdout) == (2, "")
    assert "Error: " in said.stderr


# --- the others --------------------------------------------------------------------------


def test_explain_names_kin_and_draws_a_sheet(run, world, tmp_path, monkeypatch):
    photo = world.fresh / "blue-square-1.jpg"
    said = run("explain", photo, "--model", world.model, "-n", 2, "--sheet", "why.png")
    assert said.exit_code == 0, said.stderr
    assert said.stdout.count("Share") == 2
    assert "% confidence" in said.stdout
    assert "blue, square" in said.stdout
    assert "why.png" in said.stderr
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    (suggested,) = tagkin.load(world.model).suggest([photo], n=2, n_kin=6)
    expected = contact_sheet(suggested, tmp_path / "expected.png")
    assert (tmp_path / "why.png").read_bytes() == expected.read_bytes()
    said = run("explain", photo, "--model", world.model, "--sheet", "why.png")
    assert said.exit_code == 1


def test_explain_of_a_known_photograph_says_what_it_carries(run, world):
    said = run("explain", world.photos / "red-circle-0.jpg", "--model", world.model)
    assert "Carries red, circle." in said.stdout


def rounded(value: object) -> object:
    """As JSON has it: numbers of six digits."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return round(value, 6) if isinstance(value, float) else value


def test_json_is_what_the_library_says(run, world, monkeypatch):
    """`suggest --json` and `explain --json` write `PhotoSuggestions.to_dict`, and so on."""
    photo = world.photos / "red-circle-0.jpg"
    asked = ("--model", world.model, "--json")
    monkeypatch.setenv("TAGKIN_CACHE", str(world.cache))
    annotator = tagkin.load(world.model)
    for command in ("suggest", "explain"):
        said = run(command, photo, *asked, "-n", 2, "--n-kin", 3)
        assert (said.exit_code, said.stderr) == (0, "")
        (expected,) = annotator.suggest([photo], n=2, n_kin=3)
        assert lines(said.stdout) == [rounded(expected.to_dict())]
        assert expected.tags == ("red", "circle")
        assert [len(one.kin) for one in expected.suggestions] == [3, 3]
    (found,) = lines(run("similar", photo, *asked, "-n", 3).stdout)
    (expected,) = annotator.similar([photo], 3)
    assert found["similar"] == [rounded(one.to_dict()) for one in expected]
    found = lines(run("audit", *asked, "-n", 4).stdout)
    assert found == [rounded(one.to_dict()) for one in annotator.audit(4)]
    assert all(kin["tags"] == world.tags_of[Path(kin["file"]).name] for kin in found[0]["kin"])


def test_no_kin_where_none_are_asked_for(run, world, tmp_path):
    asked = (world.fresh / "red-circle-0.jpg", "--model", world.model, "-n", 2, "--n-kin", 0)
    for command in ("suggest", "explain"):
        (found,) = lines(run(command, *asked, "--json").stdout)
        assert [one["kin"] for one in found["suggestions"]] == [[], []]
    said = run("suggest", *asked)
    assert said.stdout.split()[:3] == ["Photograph", "Tag", "Confidence"]
    assert "Kin" not in said.stdout
    said = run("explain", *asked, "--sheet", "why.png")
    assert said.exit_code == 0, said.stderr
    assert "Share" not in said.stdout
    assert said.stdout.count("% confidence") == 2
    with Image.open(tmp_path / "why.png") as sheet:
        assert sheet.width == 3 * 32 + 480 + 210 + 174, "room for one kin, and none there"


def test_similar(run, world):
    photo = world.photos / "green-square-0.jpg"
    said = run("similar", photo, "--model", world.model, "-n", 4, "--json")
    (found,) = lines(said.stdout)
    assert list(found) == ["file", "similar"]
    assert len(found["similar"]) == 4
    assert [list(one) for one in found["similar"]] == [["file", "similarity", "tags"]] * 4
    assert str(photo) not in {one["file"] for one in found["similar"]}
    assert "green" in found["similar"][0]["tags"]
    said = run("similar", photo, "--model", world.model)
    assert said.stdout.split()[:3] == ["Photograph", "Similarity", "Tags"]


def test_audit_in_all_its_forms(run, world, tmp_path):
    command = ("audit", "--model", world.model, "-n", 6)
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


def test_evaluate_a_model_on_photographs_that_it_has_not_seen(run, world, tmp_path):
    command = ("evaluate", world.fresh, "--model", world.model)
    said = run(*command, "--json", "--report", "quality.html", "--csv", "tags.csv")
    assert said.exit_code == 0, said.stderr
    (found,) = lines(said.stdout)
    assert list(found) == [
        "how",
        "photographs",
        "tags_per_photograph",
        "semantic",
        "visual",
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
    rows = list(csv.DictReader((tmp_path / "tags.csv").open()))
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
    said = run("evaluate", world.photos, "--tags", world.tags, "--model", world.model)
    assert said.exit_code == 1
    assert "Pass others" in said.stderr


def test_evaluate_by_cross_validation(run, world):
    said = run("evaluate", world.photos, "--tags", world.tags, "--no-denoise")
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


def test_map_of_the_model_and_of_others(run, world, tmp_path):
    said = run("map", "--model", world.model, "--output", "map.png", "-n", 20)
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
    assert (panels[0] != panels[1]).any()
    said = run("map", world.fresh, "--model", world.model, "--output", "fresh.png")
    assert said.stderr == "12 photographs drawn: fresh.png\n"
    for panel in panels_of(tmp_path / "fresh.png"):
        assert (numbered(panel) != 0xF6F7F9).sum() > 12 * 200, "dots and photographs"
    assert run("map", "--model", world.model, "--output", "map.png").exit_code == 1


def test_info(run, world):
    said = run("info", world.model)
    for word in ("Photographs", "42", "circle (21)", "efficientnet-lite0"):
        assert word in said.stdout
    (found,) = lines(run("info", world.model, "--json").stdout)
    assert found["photographs"] == 42
    assert found["tags"] == {"blue": 14, "circle": 21, "green": 14, "red": 14, "square": 21}
    assert len(found["fingerprint"]) == 64


# --- by name ---


@needs_wordnet
def test_a_vocabulary_needs_neither_a_model_nor_a_tag(run, world, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("dog\n# not this\nlighthouse\nxyzzyq\n")
    said = run("suggest", world.fresh, "--tags", "none", "--vocabulary", words, "-n", "2", "--json")
    assert said.exit_code == 0, said.stderr
    assert "1 word has no known meaning" in said.stderr
    assert "xyzzyq" in said.stderr
    suggested = [s for line in lines(said.stdout) for s in line["suggestions"]]
    assert {s["tag"] for s in suggested} == {"dog", "lighthouse"}
    assert all(s["kin"] == [] and s["name_share"] == 1 for s in suggested)
    table = run("suggest", world.fresh, "--vocabulary", words, "-n", "1")
    assert "from the name alone, no kin yet" in table.stdout


@needs_wordnet
def test_a_vocabulary_comes_beside_what_was_learned(run, world, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("lighthouse\n")
    given = ("--tags", "none", "--model", world.model, "-n", "20", "--json")
    both = lines(run("suggest", world.fresh, *given, "--vocabulary", words).stdout)
    for line in both:
        tags = [s["tag"] for s in line["suggestions"]]
        assert tags.count("lighthouse") == 1
        assert len(tags) > 1


def test_a_vocabulary_that_is_not_there_is_told(run, world, tmp_path):
    said = run("suggest", world.fresh, "--vocabulary", tmp_path / "no.txt")
    assert said.exit_code == 1
    assert "no.txt cannot be read" in said.stderr
