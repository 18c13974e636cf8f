"""tagkin model suggest, as a user would run it, through the real backbone."""

import csv
import importlib.util
import io
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.images.raw_writer import dng

from .conftest import call, lines
from .synthetic import make_photographs, write_sidecar, write_tag_file

COLUMNS = ["file_name", "tag", "confidence", "kin", "name_share", "readout_share"]


def test_suggestions_as_json_lines_have_exactly_this_shape(run, world, monkeypatch):
    monkeypatch.chdir(world.fresh.parent)
    photo = world.fresh / "red-circle-0.jpg"
    said = run("model", "suggest", photo, world.model, "-n", 2, "--n-kin", 3, "--json")
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
    said = run("model", "suggest", world.fresh, "--only-untagged", world.model, "--json")
    assert said.stdout == ""  # all of them are tagged
    files = sorted(world.fresh.glob("*.jpg"))
    said = run("model", "suggest", *files, world.model, "--json", "-n", 2)
    right = [
        s["tag"] in Path(one["file"]).name for one in lines(said.stdout) for s in one["suggestions"]
    ]
    assert len(right) == 2 * len(files)
    assert sum(right) > 0.8 * len(right)


def test_tags_that_a_photograph_carries_are_not_suggested(run, world):
    known = ("model", "suggest", world.photos, world.model, "--threshold", 0, "--json")
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
            said = run("model", "suggest", *places, model, "--only-untagged", "--json", *options)
            found = {Path(one["file"]).name: one["suggestions"] for one in lines(said.stdout)}
            assert sorted(found) == deleted
            assert any(s["tag"] == "red" for row in found.values() for s in row)

    for name, tags in world.tags_of.items():
        write_sidecar(photos / name, tags)
    assert run("model", "train", "photos", "keywords").exit_code == 0
    for name in deleted:
        Path(f"photos/{name}.xmp").unlink()
    check("keywords")
    write_tag_file(photos / "metadata.jsonl", left)
    check(world.model, "--tags", "photos/metadata.jsonl")
    said = run("model", "suggest", "photos", world.model, "--only-untagged", "--tags", "embedded")
    assert said.stderr == "No suggestion for 0 photographs.\n"  # nobody looked into the tag file
    assert run("model", "train", "photos", "both", "--tags", "both").exit_code == 0
    said = run("model", "suggest", "photos", "both", "--tags", "both", "--only-untagged", "--json")
    assert sorted(Path(one["file"]).name for one in lines(said.stdout)) == deleted
    said = run("model", "suggest", "photos", "both", "--tags", "none", "--json")
    named = {s["tag"] for one in lines(said.stdout) for s in one["suggestions"]}
    assert named == {"red", "green", "blue", "circle", "square"}  # as if they carried none


def test_a_foreign_metadata_file_and_the_way_out(run, world, tmp_path):
    photos = shutil.copytree(world.fresh, tmp_path / "photos")
    (photos / "metadata.jsonl").unlink()
    (photos / "metadata.csv").write_text("SourceFile,FileName\n./a.jpg,a.jpg\n")
    for name in ("red-circle-0.jpg", "red-circle-1.jpg"):
        write_sidecar(photos / name, ["red"])
    said = run("model", "evaluate", "photos", world.model)
    assert said.exit_code == 1
    assert "photos/metadata.csv comes from exiftool" in said.stderr
    assert "with --tags embedded" in said.stderr
    said = run("model", "suggest", "photos", world.model, "--tags", "embedded", "--json")
    assert said.exit_code == 0, said.stderr
    assert len(lines(said.stdout)) == 12
    said = run("model", "train", "photos", "m", "--tags", "none")
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
    command = ("model", "suggest", "photos", world.model, "--tags", "none", "--json", "-n", 2)
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
    other_cache = tmp_path / "cache"
    said = call(other_cache, "model", "suggest", "photos/alone.DNG", world.model)
    assert said.exit_code == 1
    assert "needs an extra: pip install rawpy" in said.stderr


def test_a_table_for_people(run, world):
    said = run("model", "suggest", world.fresh / "red-circle-0.jpg", world.model, "-n", 1)
    head, _, row = said.stdout.splitlines()[:3]
    assert head.split() == ["Photograph", "Tag", "Confidence", "Kin"]
    assert row.startswith(str(world.fresh / "red-circle-0.jpg")[:40])
    assert "\x1b" not in said.stdout + said.stderr
    assert said.stderr == "1 suggestion for 1 photograph of 1; about 1 of them right.\n"


def test_csv_reads_back(run, world, tmp_path):
    command = ("model", "suggest", *sorted(world.fresh.glob("*.jpg")), world.model, "-n", 2)
    said = run(*command, "--csv")
    rows = list(csv.DictReader(io.StringIO(said.stdout)))
    assert list(rows[0]) == COLUMNS
    assert len(rows) == 24
    assert all(Path(kin).is_file() for row in rows for kin in row["kin"].split("|"))
    listed = lines(run(*command, "--json").stdout)
    pairs = [(photo["file"], s["tag"]) for photo in listed for s in photo["suggestions"]]
    assert [(row["file_name"], row["tag"]) for row in rows] == pairs
    assert not list(tmp_path.iterdir())


def test_suggestions_for_the_rest_go_on_past_broken_photographs(run, world, tmp_path):
    shutil.copy(world.fresh / "red-circle-0.jpg", tmp_path / "a.jpg")
    for k in range(6):
        (tmp_path / f"b{k}.jpg").write_bytes(b"broken %d" % k)
    said = run("model", "suggest", ".", world.model, "--json")
    assert said.exit_code == 0
    assert [one["file"] for one in lines(said.stdout)] == ["a.jpg"]
    assert "6 files could not be read" in said.stderr
    assert "and 3 more" in said.stderr
    assert "b5.jpg" not in said.stderr
    assert "b5.jpg" in run("model", "suggest", ".", world.model, "--verbose").stderr


@pytest.mark.parametrize(
    "options",
    [
        ("--threshold", 0.9, "--precision", 0.9),
        ("--json", "--csv"),
        ("--csv", "--json"),
        ("--precision", 0.9, "--threshold", 0.9),
        ("--threshold", 1.5),
        ("-n", 0),
        ("--no-such-option",),
    ],
)
def test_wrong_usage_is_2_and_says_so(run, world, options):
    said = run("model", "suggest", world.fresh, world.model, *options)
    assert (said.exit_code, said.stdout) == (2, "")
    assert "Error: " in said.stderr


# --- by name -----------------------------------------------------------------------------


def test_a_vocabulary_needs_neither_a_model_nor_a_tag(run, tmp_path):
    make_photographs(tmp_path / "photos", n_each=1)
    words = tmp_path / "words.txt"
    words.write_text("dog\n# not this\nlighthouse\n2019\n")
    asked = ("suggest", "photos", "--vocabulary", words, "--threshold", "0.0001")
    said = run(*asked, "--csv")
    assert said.exit_code == 0, said.stderr
    assert "1 word has no known meaning" in said.stderr
    assert "2019" in said.stderr
    rows = list(csv.DictReader(io.StringIO(said.stdout)))
    assert {row["tag"] for row in rows} == {"dog", "lighthouse"}
    assert len(rows) == 12
    assert all(row["kin"] == "" and float(row["name_share"]) == 1 for row in rows)
    assert "12 suggestions for 6 photographs of 6" in run(*asked).stdout
    # plain shapes show neither, so without a threshold nothing is suggested
    assert "No suggestion for 6 photographs" in run(*asked[:-2], "-n", "2").stdout


def test_a_vocabulary_comes_beside_what_was_learned(run, world, catalogue, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("lighthouse\n")
    least = ("--threshold", "0.0001")
    given = ("--tags", "none", *least, "--json", "--vocabulary", words)
    for line in lines(run("model", "suggest", world.fresh, world.model, *given).stdout):
        tags = [s["tag"] for s in line["suggestions"]]
        assert tags.count("lighthouse") == 1
        assert len(tags) > 1
    asked = ("suggest", *least, "--vocabulary", words, "--csv", "--catalogue", catalogue)
    rows = list(csv.DictReader(io.StringIO(run(*asked).stdout)))
    by_name = [row["file_name"] for row in rows if row["tag"] == "lighthouse"]
    assert len(by_name) == len(set(by_name)) == 42
    assert {row["tag"] for row in rows} > {"lighthouse", "red"}


def test_a_vocabulary_that_is_not_there_is_told(run, world, tmp_path):
    for command in (("suggest", world.fresh), ("model", "suggest", world.fresh, world.model)):
        said = run(*command, "--vocabulary", tmp_path / "no.txt")
        assert said.exit_code == 1
        assert "no.txt cannot be read" in said.stderr
