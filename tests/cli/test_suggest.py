"""tagkin suggest, as a user would run it, through the real backbone."""

import csv
import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.images.raw_writer import dng

from .conftest import lines
from .synthetic import make_photographs, write_sidecar, write_tag_file

SHARES = ["name_share", "readout_share", "time_share", "place_share", "folder_share"]
COLUMNS = ["file_name", "tag", "confidence", "kin", *SHARES]


@pytest.fixture
def suggested(run, catalogue):
    """Suggest on the catalogue of the photographs, half of which have tags; what JSON says."""

    def suggest(*options):
        result = run("suggest", *options, "--json", "--catalogue", catalogue)
        assert result.exit_code == 0, result.stderr
        *photographs, summary = lines(result.stdout)
        assert summary["with_suggestions"] == len(photographs)
        return photographs

    return suggest


def test_suggestions_as_json_lines_have_exactly_this_shape(suggested, world, monkeypatch):
    monkeypatch.chdir(world.photos.parent)
    for photo in suggested("--only-untagged", "-n", 2):
        assert list(photo) == ["file", "tags", "suggestions"]
        assert photo["tags"] == []
        assert len(photo["suggestions"]) == 2
        for suggestion in photo["suggestions"]:
            assert list(suggestion) == ["tag", "confidence", "kin", *SHARES]
            assert 0 <= suggestion["confidence"] <= 1
            assert 1 <= len(suggestion["kin"]) <= 5
            for kin in suggestion["kin"]:
                assert list(kin) == ["file", "share", "tags"]
                assert suggestion["tag"] in world.tags_of[Path(kin["file"]).name]
                assert 0 <= kin["share"] <= 1
        assert os.path.dirname(photo["file"]) == "photos"
        assert photo["suggestions"][0]["kin"][0]["file"].startswith("photos/")


def test_most_suggestions_are_right(suggested, world):
    untagged = [*world.tags_of][1::2]
    photographs = suggested("--only-untagged", "-n", 2)
    assert sorted(Path(photo["file"]).name for photo in photographs) == sorted(untagged)
    right = [
        s["tag"] in Path(photo["file"]).name for photo in photographs for s in photo["suggestions"]
    ]
    assert len(right) == 2 * len(untagged)
    assert sum(right) > 0.8 * len(right)


def test_tags_that_a_photograph_has_are_not_suggested(suggested, world):
    photographs = suggested("--threshold", 0)
    assert len(photographs) == 42
    tagged = [*world.tags_of][::2]
    for photo in photographs:
        name = Path(photo["file"]).name
        assert sorted(photo["tags"]) == sorted(world.tags_of[name] if name in tagged else [])
        assert not {s["tag"] for s in photo["suggestions"]} & set(photo["tags"])


@pytest.mark.parametrize("place", ["keywords", "tag file"])
def test_tags_deleted_since_training_are_seen(run, world, tmp_path, place):
    """What counts is what the last scan found."""
    photos = shutil.copytree(world.photos, tmp_path / "photos")
    deleted = [f"red-{shape}-0.jpg" for shape in ("circle", "square")]
    left = {name: tags for name, tags in world.tags_of.items() if name not in deleted}
    if place == "keywords":
        for name, tags in world.tags_of.items():
            write_sidecar(photos / name, tags)
    else:
        write_tag_file(photos / "metadata.jsonl", world.tags_of)
    assert run("train", "photos").exit_code == 0
    if place == "keywords":
        for name in deleted:
            Path(f"photos/{name}.xmp").unlink()
    else:
        write_tag_file(photos / "metadata.jsonl", left)
    assert run("scan").exit_code == 0
    result = run("suggest", "--only-untagged", "--json")
    by_name = {Path(p["file"]).name: p["suggestions"] for p in lines(result.stdout)[:-1]}
    assert sorted(by_name) == deleted
    assert any(s["tag"] == "red" for row in by_name.values() for s in row)


def test_a_foreign_metadata_file_and_the_way_out(run, world, tmp_path):
    photos = shutil.copytree(world.fresh, tmp_path / "photos")
    (photos / "metadata.jsonl").unlink()
    (photos / "metadata.csv").write_text("name,size\na.jpg,1\n")
    for path in photos.glob("*.jpg"):
        write_sidecar(path, path.name.split("-")[:2])
    result = run("suggest", "photos")
    assert result.exit_code == 1
    assert "photos/metadata.csv, line 1: there is no column file_name" in result.stderr
    assert "with --tags embedded" in result.stderr
    assert run("scan", "photos", "--tags", "embedded").exit_code == 0
    result = run("suggest", "photos", "--threshold", 0, "--json")
    assert result.exit_code == 0, result.stderr
    assert len(lines(result.stdout)) == 12 + 1


def test_raw_files_are_counted_and_read(run, world, tmp_path):
    photos = shutil.copytree(world.photos, tmp_path / "photos")
    write_tag_file(tmp_path / "tags.jsonl", world.tags_of)
    mosaic = np.full((64, 96), 20_000, np.uint16)
    large = Image.open(world.fresh / "red-circle-0.jpg").resize((480, 360))
    large.save(photos / "large.jpg")
    preview = (photos / "large.jpg").read_bytes()
    for name in ("red-circle-0", "alone"):
        (photos / f"{name}.DNG").write_bytes(dng(mosaic, preview))
    scan = ("scan", "photos", "--tags", "tags.jsonl")
    suggest = ("suggest", "--only-untagged", "--json", "-n", 2)
    pair = "Note: 1 RAW file lies beside a photograph of the same name: each pair counts as one"
    assert pair in run(*scan).stderr
    photographs = lines(run(*suggest).stdout)[:-1]
    tags = {Path(p["file"]).name: [s["tag"] for s in p["suggestions"]] for p in photographs}
    assert tags["alone.DNG"] == tags["large.jpg"]  # of the same pixels
    assert len(tags) == 2


def test_csv_reads_back(run, catalogue, world):
    command = ("suggest", "-n", 2, "--catalogue", catalogue)
    rows = list(csv.DictReader(io.StringIO(run(*command, "--csv").stdout)))
    assert list(rows[0]) == COLUMNS
    assert all(Path(kin).is_file() for row in rows for kin in row["kin"].split("|"))
    photographs = lines(run(*command, "--json").stdout)[:-1]
    pairs = [(photo["file"], s["tag"]) for photo in photographs for s in photo["suggestions"]]
    assert sorted((row["file_name"], row["tag"]) for row in rows) == sorted(pairs)
    assert len(rows) == 2 * len(world.tags_of)


def test_suggestions_for_the_rest_go_on_past_broken_photographs(run, world, tmp_path):
    photos = shutil.copytree(world.photos, tmp_path / "photos")
    write_tag_file(photos / "metadata.jsonl", world.tags_of)
    shutil.copy(world.fresh / "red-circle-0.jpg", photos / "a.jpg")
    for k in range(6):
        (photos / f"b{k}.jpg").write_bytes(b"broken %d" % k)
    assert run("train", "photos").exit_code == 0
    result = run("suggest", "--only-untagged", "--json")
    assert result.exit_code == 0
    photo, summary = lines(result.stdout)
    assert photo["file"] == "photos/a.jpg"
    assert "6 files could not be read" in result.stderr
    assert "and 3 more" in result.stderr
    assert "b5.jpg" not in result.stderr
    assert [Path(failure["file"]).name for failure in summary["unreadable"]] == [
        f"b{k}.jpg" for k in range(6)
    ]


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
    result = run("suggest", world.fresh, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


# --- by name -----------------------------------------------------------------------------


def test_a_vocabulary_needs_neither_a_model_nor_a_tag(run, tmp_path):
    make_photographs(tmp_path / "photos", n_each=1)
    words = tmp_path / "words.txt"
    words.write_text("dog\n# not this\nlighthouse\n2019\n")
    asked = ("suggest", "photos", "--vocabulary", words, "--threshold", "0.0001")
    result = run(*asked, "--csv")
    assert result.exit_code == 0, result.stderr
    assert "1 word has no known meaning" in result.stderr
    assert "2019" in result.stderr
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert {row["tag"] for row in rows} == {"dog", "lighthouse"}
    assert len(rows) == 12
    assert all(row["kin"] == "" and float(row["name_share"]) == 1 for row in rows)
    shown = run(*asked).stdout
    assert "12 suggestions for 6 photographs of 6" in shown
    assert "Next: tagkin review" in shown  # none is likely enough to accept unseen
    # plain shapes show neither, so without a threshold nothing is suggested
    assert "No suggestion for 6 photographs" in run(*asked[:-2], "-n", "2").stdout


def test_a_vocabulary_comes_beside_what_was_learned(run, catalogue, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("lighthouse\n")
    least = ("--threshold", "0.0001")
    asked = ("suggest", *least, "--vocabulary", words, "--csv", "--catalogue", catalogue)
    rows = list(csv.DictReader(io.StringIO(run(*asked).stdout)))
    by_name = [row["file_name"] for row in rows if row["tag"] == "lighthouse"]
    assert len(by_name) == len(set(by_name)) == 42
    assert {row["tag"] for row in rows} > {"lighthouse", "red"}


def test_a_vocabulary_that_is_not_there_is_told(run, world, tmp_path):
    result = run("suggest", world.fresh, "--vocabulary", tmp_path / "no.txt")
    assert result.exit_code == 1
    assert "no.txt cannot be read" in result.stderr
