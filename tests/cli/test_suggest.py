"""tagkin suggest, as a user would run it, through the real backbone."""

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

from tests.conftest import needs_wordnet
from tests.images.raw_writer import dng

from .conftest import lines
from .synthetic import write_sidecar, write_tag_file

COLUMNS = ["file_name", "tag", "confidence", "kin", "name_share", "readout_share"]


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
    assert said.stderr == "No suggestion for 0 photographs.\n"  # nobody looked into the tag file
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
    assert "photos/metadata.csv comes from exiftool" in said.stderr
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
    assert said.stderr == "1 suggestion for 1 photograph of 1; about 1 of them right.\n"


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


# --- by name -----------------------------------------------------------------------------


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
